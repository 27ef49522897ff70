//! A large step in parts: each part is written at once, and the last one publishes them.
//!
//! In: a part's changes. Out: rows in both indexes and in the catalogue that no version names yet, and sums over them.
//!
//! ```text
//!  part ──► vectors ──► tantivy ──► database ──► sums  ┐
//!  part ──► vectors ──► tantivy ──► database ──► sums  ├─► one record: delta, tokens, digest, receipt of the whole step
//!  last ──► vectors ──► tantivy ──► database ─────────►┘
//! ```
//!
//! **Invariant:** a part adds nothing to the log, so its rows are as invisible as orphans: only the record at the end of the step
//! reaches them. The memory of a part does not grow with its texts: bitmaps and a sum. The result does not depend on how a step
//! was cut, because versions, digests and receipts are computed from the head's bitmaps before the first part and after the last.

use super::{ApplyError, Batch, IndexWriter};
use dataflows::data::View;
use dataflows::run::EpochDone;
use dataflows::work::Work;
use roaring::RoaringBitmap;
use snapshots::{Digest, Tokens};
use std::time::{Duration, Instant};

/// The changes of a step's parts so far.
#[derive(Default)]
pub(super) struct Parts {
    /// Entries that are new in these parts: their tokens and digest are summed here, so that they need no second look-up.
    pub(super) entries: RoaringBitmap,
    /// Their tokens.
    pub(super) tokens: Tokens,
    /// Their digest.
    pub(super) digest: Digest,
    /// The work of the stages.
    pub(super) work: Work,
    /// The time in the graph.
    pub(super) graph: Duration,
    /// The time of writing.
    pub(super) apply: Duration,
}

impl IndexWriter {
    /// Writes a part of a head's step, durably, and publishes nothing.
    pub(super) fn write_part(&mut self, head: View, done: &EpochDone) -> Result<(), ApplyError> {
        let started = Instant::now();
        let graph = super::target::in_hand(done, self.graph_free);
        self.graph_free = Some(done.finished);
        self.memo.check()?;
        let mut batch = Batch::default();
        let before = self.heads.get(&head).map(|head| head.alive.clone()).unwrap_or_default();
        let alive = self.move_on(before, done, &mut batch)?;
        self.write_indexes(&mut batch)?;
        let mapping = self.database.mapping()?;
        let (transaction, flush) = self.write_catalogue(&mapping, &batch)?;
        transaction.commit()?;
        self.memo.flushed(flush);
        self.heads.entry(head).or_default().alive = alive;
        let parts = self.parts.entry(head).or_default();
        for (ordinal, (id, tokens)) in &batch.touched {
            parts.entries.insert(ordinal.get());
            parts.tokens.add(*tokens);
            parts.digest.add(&id.to_bytes());
        }
        parts.work.add(done.work);
        parts.graph += graph;
        parts.apply += started.elapsed();
        Ok(())
    }
}

//! A large step in parts: what each brings is written at once, and published by the last of them.
//!
//! In: a part's changes. Out: rows in both indexes and in the catalogue that no version names yet, and sums over them.
//!
//! ```text
//!  part ──► vectors ──► tantivy ──► database ──► sums  ┐
//!  part ──► vectors ──► tantivy ──► database ──► sums  ├─► one record: delta, tokens, digest, receipt of the whole step
//!  last ──► vectors ──► tantivy ──► database ─────────►┘
//! ```
//!
//! **Invariant:** a part adds nothing to the log, so what it wrote is as invisible as what an unfinished publish left: only
//! the record that ends the step reaches it. What is kept in memory of a part does not grow with its texts: bitmaps, and a
//! sum. The outcome does not depend on how a step was cut, since versions, digests and receipts are made of the head's
//! bitmaps before the first part and after the last.

use super::{ApplyError, Batch, IndexWriter};
use dataflows::data::View;
use dataflows::run::EpochDone;
use dataflows::work::Work;
use roaring::RoaringBitmap;
use snapshots::{Digest, Tokens};
use std::time::{Duration, Instant};

/// What the parts of one step have brought so far.
#[derive(Default)]
pub(super) struct Parts {
    /// Entries that they were the first to bring: those whose tokens and digest are summed here, so that nobody need look
    /// them up again.
    pub(super) entries: RoaringBitmap,
    /// Their tokens.
    pub(super) tokens: Tokens,
    /// Their digest.
    pub(super) digest: Digest,
    /// What the stages did.
    pub(super) work: Work,
    /// How long the graph had them in hand.
    pub(super) graph: Duration,
    /// How long writing took.
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

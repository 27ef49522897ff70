//! Documents that no version needs any more, removed in short steps between commits.
//!
//! In: the entries that must stay. Out: a segment without the others, and in the end none that holds removed documents.
//!
//! ```text
//!  forget ── a segment holds others? ──► removed from it, committed            one segment a step
//!  forget ── no more of them? ─────────► from now on whatever holds removed documents is merged, by tantivy's thread
//!  forget ── merged? ──────────────────► merged as before
//! ```
//!
//! **Invariant:** a step costs one commit and one look at the ordinals of one segment; what large segments hold is read by a
//! thread, and merges go on beside commits and searches.

use super::LexicalError;
use super::temperature::{Move, Next};
use super::writer::LexicalWriter;
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::{Duration, Instant};
use tantivy::TantivyError;
use tantivy::index::SegmentId;

/// Documents that one step removes at the most: a fraction of a million takes milliseconds.
const AT_ONCE: usize = 100_000;
/// After so long nobody waits for merges any more: something keeps them from ending, and the next collection tries again.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a step of forgetting came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forgotten {
    /// So many documents were removed.
    Some(u64),
    /// A thread has to end first.
    Later,
    /// Only what must stay is there.
    All,
}

/// Segments that held removed documents when nothing more was to be removed.
pub(super) struct Purge {
    segments: FxHashSet<SegmentId>,
    begun: Instant,
}

impl LexicalWriter {
    /// Takes one short step of removing the documents of the entries below `below` that are not `needed`, and of giving back
    /// their space. Nothing may be added that is not committed yet.
    ///
    /// # Errors
    /// [`LexicalError::Commit`]: nothing was removed; open the writer again. And where a segment cannot be read.
    pub fn forget(&mut self, needed: &RoaringBitmap, below: u32) -> Result<Forgotten, LexicalError> {
        let failed = |source: TantivyError| LexicalError::Load(Box::new(source));
        if !self.take_read()? {
            return Ok(Forgotten::Later);
        }
        let index = self.writer.index().clone();
        let segments = index.searchable_segment_metas().map_err(failed)?;
        match self.temperature.superfluous(needed, below, &index, &segments, AT_ONCE)? {
            Next::Read(unknown) => {
                self.begin_to_read(unknown)?;
                Ok(Forgotten::Later)
            }
            Next::Move(Move { from, entries, documents }) => {
                self.sweep()?;
                self.remove_from(&segments, from, &entries, documents)?;
                self.temperature.left(&entries, None);
                self.commit(self.next_ordinal())?;
                Ok(Forgotten::Some(entries.len()))
            }
            Next::Rest => {
                let Some(Purge { segments: old, begun }) = &self.purge else {
                    let old: FxHashSet<SegmentId> =
                        segments.iter().filter(|segment| segment.has_deletes()).map(|segment| segment.id()).collect();
                    if old.is_empty() {
                        return Ok(Forgotten::All);
                    }
                    self.purge = Some(Purge { segments: old, begun: Instant::now() });
                    self.hold_merges(false);
                    // The policy is asked when a commit or a merge ends.
                    self.commit(self.next_ordinal())?;
                    return Ok(Forgotten::Later);
                };
                if segments.iter().any(|segment| old.contains(&segment.id())) && begun.elapsed() < PATIENCE {
                    return Ok(Forgotten::Later);
                }
                self.purge = None;
                self.hold_merges(false);
                Ok(Forgotten::All)
            }
        }
    }

    /// Removes entries from one segment, of which these are the documents.
    pub(super) fn remove_from(
        &self,
        segments: &[tantivy::index::SegmentMeta],
        from: SegmentId,
        entries: &RoaringBitmap,
        documents: Vec<tantivy::DocId>,
    ) -> Result<(), LexicalError> {
        // An entry is in one segment. That may be merged meanwhile, into one that is not listed here.
        let mut known: FxHashMap<_, _> = segments.iter().map(|segment| (segment.id(), Vec::new())).collect();
        known.insert(from, documents);
        let query = super::removal::documents_of(entries.clone(), known);
        self.writer.delete_query(Box::new(query)).map_err(|source| LexicalError::Commit(Box::new(source)))?;
        Ok(())
    }
}

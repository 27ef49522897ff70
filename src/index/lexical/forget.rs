//! Garbage collection in the lexical index: deletes documents that no version needs, and rewrites segments without them.
//!
//! In: the entries that must stay. Out: no segment with garbage entries, and in the end none with deleted documents.
//!
//! ```text
//!  forget ── a segment holds garbage? ─────────► deleted from it, committed            one segment a step
//!  forget ── none, but some deleted documents? ─► thread: the rest is copied into one segment, which is adopted when it is done
//! ```
//!
//! **Invariant:** a step costs one commit and one read of the ordinals of one segment. A thread reads large segments and makes
//! copies, beside commits and searches.

use super::LexicalError;
use super::merging::MAX_DOCUMENTS;
use super::temperature::{self, Documents, Next};
use super::upkeep::COPIED_AT_ONCE;
use super::writer::LexicalWriter;
use crate::index::background::Urgency;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use tantivy::TantivyError;
use tantivy::index::{SegmentId, SegmentMeta};

/// Most documents that one step deletes: a fraction of a million takes milliseconds.
const AT_ONCE: usize = 100_000;
/// Most documents of one copy if no publish waits: the most that a segment may have.
const COMPACTED_AT_ONCE: usize = MAX_DOCUMENTS as usize;
/// Discarded copies after which the rest is left to the next collection.
const MOST_IN_VAIN: u32 = 16;

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forgotten {
    /// So many documents were deleted.
    Some(u64),
    /// A thread has to finish first.
    Later,
    /// Only needed documents are left.
    All,
}

impl LexicalWriter {
    /// Takes one short step: deletes documents of the entries below `below` that are not `needed`, or reclaims their space. There
    /// must be no uncommitted entries.
    ///
    /// # Errors
    /// [`LexicalError::Commit`]: nothing was deleted; open the writer again. Also if a segment cannot be read.
    pub fn forget(&mut self, needed: &RoaringBitmap, below: u32) -> Result<Forgotten, LexicalError> {
        self.leave_upkeep();
        if !self.take_read()? || self.is_copying() {
            return Ok(Forgotten::Later);
        }
        if self.is_copied() {
            // A copy that is done, whatever started it.
            let moved = self.take_copy()?;
            self.upkeep.in_vain = if moved > 0 { 0 } else { self.upkeep.in_vain + 1 };
            return Ok(Forgotten::Later);
        }
        let (index, segments) = (self.writer.index().clone(), self.segments()?);
        match self.temperature.superfluous(needed, below, &index, &segments, AT_ONCE)? {
            Next::Read(unknown) => {
                self.begin_to_read(unknown, Urgency::Awaited)?;
                Ok(Forgotten::Later)
            }
            Next::Take(documents) => {
                self.sweep()?;
                let entries = documents.1.clone();
                self.remove_from(segments.iter().map(SegmentMeta::id), &[documents])?;
                self.temperature.left(&entries, None);
                self.commit(self.next_ordinal())?;
                self.held -= &entries;
                Ok(Forgotten::Some(entries.len()))
            }
            Next::Rest => {
                let sources = self.temperature.to_purge(&index, &segments, COPIED_AT_ONCE);
                if sources.is_empty() || self.upkeep.in_vain > MOST_IN_VAIN {
                    self.temperature.let_go();
                    self.upkeep.in_vain = 0;
                    return Ok(Forgotten::All);
                }
                self.begin_to_copy(sources, Urgency::Awaited)?;
                Ok(Forgotten::Later)
            }
        }
    }

    /// Rewrites every segment with deleted documents, small ones together, and waits for it; `go_on` is called in between. Open
    /// searchers keep the old files.
    ///
    /// # Errors
    /// If a segment cannot be read or written, which leaves it unchanged. [`LexicalError::Commit`]: open the writer again.
    pub fn compact(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<(), LexicalError> {
        let failed = |source: TantivyError| LexicalError::Merge(source.into());
        let index = self.writer.index().clone();
        while go_on() {
            let segments = self.segments()?;
            let unknown = self.temperature.unknown(&index, &segments)?;
            self.temperature.learn(temperature::read(&index, &unknown)?);
            let sources = self.temperature.to_purge(&index, &segments, COMPACTED_AT_ONCE);
            if sources.is_empty() || self.copy_now(sources)? == 0 {
                break;
            }
        }
        self.writer.garbage_collect_files().wait().map_err(failed)?;
        Ok(())
    }

    /// Deletes documents from their segments with the next commit; of these `segments` only the listed documents are read.
    pub(super) fn remove_from(
        &self,
        segments: impl Iterator<Item = SegmentId>,
        documents: &[Documents],
    ) -> Result<(), LexicalError> {
        // An entry is in one segment. A merge may have moved it meanwhile, into a segment that is not listed here.
        let mut known: FxHashMap<_, _> = segments.map(|segment| (segment, Vec::new())).collect();
        let mut all = RoaringBitmap::new();
        for (segment, entries, documents) in documents {
            known.insert(*segment, documents.clone());
            all |= entries;
        }
        let query = super::removal::documents_of(all, known);
        self.writer.delete_query(Box::new(query)).map_err(|source| LexicalError::Commit(source.into()))?;
        Ok(())
    }
}

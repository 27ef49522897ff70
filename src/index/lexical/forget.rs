//! Documents that no version needs any more, removed, and segments written anew without them.
//!
//! In: the entries that must stay. Out: no segment that holds others, and in the end none that holds removed documents.
//!
//! ```text
//!  forget ── a segment holds others? ───────────► removed from it, committed            one segment a step
//!  forget ── none, but some removed documents? ─► thread: what stays is copied into one segment, taken over when it is there
//! ```
//!
//! **Invariant:** a step costs one commit and one look at the ordinals of one segment; what large segments hold is read by a
//! thread, and copies are made beside commits and searches.

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

/// Documents that one step removes at the most: a fraction of a million takes milliseconds.
const AT_ONCE: usize = 100_000;
/// Documents of one copy where nobody publishes meanwhile: all that a segment may have.
const COMPACTED_AT_ONCE: usize = MAX_DOCUMENTS as usize;
/// So often a copy may come to nothing before that is left to the next collection.
const MOST_IN_VAIN: u32 = 16;

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

impl LexicalWriter {
    /// Takes one short step of removing the documents of the entries below `below` that are not `needed`, and of giving back
    /// their space. Nothing may be added that is not committed yet.
    ///
    /// # Errors
    /// [`LexicalError::Commit`]: nothing was removed; open the writer again. And where a segment cannot be read.
    pub fn forget(&mut self, needed: &RoaringBitmap, below: u32) -> Result<Forgotten, LexicalError> {
        self.leave_upkeep();
        if !self.take_read()? || self.is_copying() {
            return Ok(Forgotten::Later);
        }
        if self.is_copied() {
            // What somebody has copied meanwhile, for whatever reason.
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

    /// Writes every segment anew that holds removed documents, small ones together, and waits for it; `go_on` is asked in
    /// between. Searchers that are open keep the old files.
    ///
    /// # Errors
    /// Where a segment cannot be read or written: it stays as it was. [`LexicalError::Commit`]: open the writer again.
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

    /// Removes documents from the segments that they are in, with the next commit; no others of these `segments` are looked at.
    pub(super) fn remove_from(
        &self,
        segments: impl Iterator<Item = SegmentId>,
        documents: &[Documents],
    ) -> Result<(), LexicalError> {
        // An entry is in one segment. That may be merged meanwhile, into one that is not listed here.
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

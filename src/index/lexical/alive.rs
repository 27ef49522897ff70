//! The live documents of a segment in a version.
//!
//! In: a segment's ordinals, and a version's bitmap or its difference to another version. Out: one bit per document.
//!
//! **Invariant:** a document's bit is set if and only if the version holds the document's ordinal and the document is not deleted
//! (maintenance may have moved its entry to another segment). The map from documents to ordinals belongs to the segment, is read
//! once and shared by all versions. The bits belong to one version; two versions that are equal in a segment share them, together
//! with the document frequencies counted under them.
//!
//! Merged segments are not ordered by ordinal, so each map keeps the inverse as well.

use super::error::LexicalError;
use super::schema::ORDINAL;
use crate::index::window::Window;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use snapshots::Ordinal;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tantivy::fastfield::AliveBitSet;
use tantivy::index::{SegmentId, SegmentReader};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Opstamp, Term};

/// A segment's cache of document frequencies holds at most so many terms; some 100 bytes a term.
const MAX_CACHED_TERMS: usize = 4096;
/// The ordinals of a segment's documents, and the inverse map.
#[derive(Debug)]
pub(super) struct OrdinalMap {
    /// The ordinal of each document.
    ordinals: Vec<u32>,
    /// The documents ordered by ordinal, unless that is their own order.
    by_ordinal: Option<Vec<DocId>>,
}

impl OrdinalMap {
    fn read(reader: &SegmentReader) -> Result<Self, LexicalError> {
        let damaged = |what| LexicalError::Segment { segment: reader.segment_id().uuid_string(), what };
        let column = reader.fast_fields().u64(ORDINAL).map_err(|_| damaged("it has no ordinals"))?.values;
        if column.num_vals() != reader.max_doc() {
            return Err(damaged("documents and ordinals differ in number"));
        }
        let documents: Vec<DocId> = (0..reader.max_doc()).collect();
        let mut values = vec![0; documents.len()];
        column.get_vals(&documents, &mut values);
        let ordinals: Vec<u32> = values
            .into_iter()
            .map(u32::try_from)
            .collect::<Result<_, _>>()
            .map_err(|_| damaged("an ordinal has more than 32 bits"))?;
        Self::new(ordinals).ok_or_else(|| damaged("two documents have one ordinal"))
    }

    /// Returns nothing if an ordinal occurs twice.
    fn new(ordinals: Vec<u32>) -> Option<Self> {
        if ordinals.is_sorted_by(|before, after| before < after) {
            return Some(Self { ordinals, by_ordinal: None });
        }
        let ordinal = |document: DocId| ordinals[document as usize];
        let mut by_ordinal: Vec<DocId> = (0u32..).take(ordinals.len()).collect();
        // A stable sort finds the ascending runs that merging left.
        by_ordinal.sort_by_key(|&document| ordinal(document));
        let distinct = by_ordinal.is_sorted_by(|&before, &after| ordinal(before) < ordinal(after));
        distinct.then_some(Self { ordinals, by_ordinal: Some(by_ordinal) })
    }

    fn document(&self, ordinal: u32) -> Option<DocId> {
        match &self.by_ordinal {
            None => self.ordinals.binary_search(&ordinal).ok().map(|document| document as DocId),
            Some(documents) => {
                let at = documents.binary_search_by_key(&ordinal, |&document| self.ordinals[document as usize]);
                at.ok().map(|at| documents[at])
            }
        }
    }

    /// Returns the least and the greatest ordinal.
    fn bounds(&self) -> Option<(u32, u32)> {
        match &self.by_ordinal {
            None => Some((*self.ordinals.first()?, *self.ordinals.last()?)),
            Some(documents) => {
                Some((self.ordinals[*documents.first()? as usize], self.ordinals[*documents.last()? as usize]))
            }
        }
    }

    /// Returns one bit per document: whether `entries` holds its ordinal.
    fn alive(&self, entries: &RoaringBitmap) -> Vec<u64> {
        let mut words = vec![0; self.ordinals.len().div_ceil(64)];
        let Some((least, greatest)) = self.bounds() else { return words };
        let window = Window::new(entries, least, greatest, self.ordinals.len());
        for (word, ordinals) in words.iter_mut().zip(self.ordinals.chunks(64)) {
            for (shift, &ordinal) in ordinals.iter().enumerate() {
                *word |= u64::from(window.contains(ordinal)) << shift;
            }
        }
        words
    }
}

/// Returns the positions of the set bits, counted from `base`, ascending.
pub(super) fn ones(words: &[u64], base: DocId) -> impl Iterator<Item = DocId> {
    words.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(move |(at, &word)| {
        let start = base + at as u32 * 64;
        std::iter::successors((word != 0).then_some(word), |word| Some(word & (word - 1)).filter(|rest| *rest != 0))
            .map(move |word| start + word.trailing_zeros())
    })
}

#[inline]
fn bit(words: &[u64], at: u32) -> bool {
    words[at as usize / 64] >> (at % 64) & 1 == 1
}

/// The ordinal maps of segments that some view still uses; clones share them.
#[derive(Clone, Default)]
pub struct OrdinalMaps(Arc<Mutex<FxHashMap<SegmentId, Weak<OrdinalMap>>>>);

impl OrdinalMaps {
    /// Returns an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn of(&self, reader: &SegmentReader) -> Result<Arc<OrdinalMap>, LexicalError> {
        // The state after a panic elsewhere is consistent: maps are inserted and never changed.
        let mut maps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(map) = maps.get(&reader.segment_id()).and_then(Weak::upgrade) {
            return Ok(map);
        }
        let map = Arc::new(OrdinalMap::read(reader)?);
        maps.retain(|_, map| map.strong_count() > 0);
        maps.insert(reader.segment_id(), Arc::downgrade(&map));
        Ok(map)
    }
}

/// A segment, with the state of its deletions.
pub(super) type SegmentState = (SegmentId, Option<Opstamp>);

/// Returns the segment state that a reader has open.
pub(super) fn state(reader: &SegmentReader) -> SegmentState {
    (reader.segment_id(), reader.delete_opstamp())
}

/// The documents of one segment that are alive in a version.
pub(super) struct AliveSegment {
    segment: SegmentState,
    /// The documents that are not deleted, if some are.
    present: Option<AliveBitSet>,
    map: Arc<OrdinalMap>,
    words: Vec<u64>,
    count: u32,
    frequencies: Mutex<FxHashMap<Term, u32>>,
}

impl AliveSegment {
    /// Returns the segment as seen by the version of `entries`.
    pub(super) fn new(
        reader: &SegmentReader,
        maps: &OrdinalMaps,
        entries: &RoaringBitmap,
    ) -> Result<Self, LexicalError> {
        let map = maps.of(reader)?;
        let words = map.alive(entries);
        Ok(Self::of(reader, map, words))
    }

    /// Returns the same segment as seen by a later reader, in which more documents are deleted.
    pub(super) fn reread(&self, reader: &SegmentReader) -> Self {
        Self::of(reader, self.map.clone(), self.words.clone())
    }

    fn of(reader: &SegmentReader, map: Arc<OrdinalMap>, mut words: Vec<u64>) -> Self {
        let present = reader.alive_bitset().cloned();
        if let Some(present) = &present {
            let removed: Vec<DocId> = ones(&words, 0).filter(|&document| present.is_deleted(document)).collect();
            for document in removed {
                words[document as usize / 64] &= !(1 << (document % 64));
            }
        }
        Self::with(state(reader), present, map, words)
    }

    fn with(segment: SegmentState, present: Option<AliveBitSet>, map: Arc<OrdinalMap>, words: Vec<u64>) -> Self {
        let count = words.iter().map(|word| word.count_ones()).sum();
        Self { segment, present, map, words, count, frequencies: Mutex::default() }
    }

    /// Returns the segment as seen by a version that differs by `changes`, or nothing if it does not differ here.
    pub(super) fn changed<'a>(&self, changes: impl Iterator<Item = (&'a RoaringBitmap, bool)>) -> Option<Self> {
        let (least, greatest) = self.map.bounds()?;
        let mut words = None;
        for (ordinals, alive) in changes {
            for document in ordinals.range(least..=greatest).filter_map(|ordinal| self.map.document(ordinal)) {
                let is_removed = self.present.as_ref().is_some_and(|present| present.is_deleted(document));
                if bit(&self.words, document) != alive && !is_removed {
                    let words = words.get_or_insert_with(|| self.words.clone());
                    words[document as usize / 64] ^= 1 << (document % 64);
                }
            }
        }
        Some(Self::with(self.segment, self.present.clone(), self.map.clone(), words?))
    }

    /// Returns the state of this segment.
    pub(super) const fn segment(&self) -> SegmentState {
        self.segment
    }

    /// Returns how many documents are alive.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub(super) fn is_alive(&self, document: DocId) -> bool {
        bit(&self.words, document)
    }

    /// Returns the documents that are alive, ascending.
    pub(super) fn documents(&self) -> impl Iterator<Item = DocId> {
        ones(&self.words, 0)
    }

    /// Returns the documents that are alive and whose ordinals `entries` holds, ascending.
    pub(super) fn documents_of(&self, entries: &RoaringBitmap) -> Vec<DocId> {
        let Some((least, greatest)) = self.map.bounds() else { return Vec::new() };
        let documents = entries.range(least..=greatest).filter_map(|ordinal| self.map.document(ordinal));
        let mut documents: Vec<DocId> = documents.filter(|&document| self.is_alive(document)).collect();
        documents.sort_unstable();
        documents
    }

    #[inline]
    pub(super) fn ordinal(&self, document: DocId) -> Ordinal {
        Ordinal::new(self.map.ordinals[document as usize])
    }

    /// Returns how many live documents hold `term`: counted from its postings the first time, then cached.
    pub(super) fn document_frequency(&self, reader: &SegmentReader, term: &Term) -> tantivy::Result<u32> {
        if let Some(&known) = self.frequencies.lock().unwrap_or_else(PoisonError::into_inner).get(term) {
            return Ok(known);
        }
        let index = reader.inverted_index(term.field())?;
        let mut count = 0;
        if self.count == reader.max_doc() {
            count = index.doc_freq(term)?;
        } else if let Some(mut postings) = index.read_block_postings(term, IndexRecordOption::Basic)? {
            while postings.block_len() > 0 {
                count += postings.docs().iter().map(|&document| u32::from(self.is_alive(document))).sum::<u32>();
                postings.advance();
            }
        }
        let mut frequencies = self.frequencies.lock().unwrap_or_else(PoisonError::into_inner);
        if frequencies.len() >= MAX_CACHED_TERMS {
            frequencies.clear();
        }
        frequencies.insert(term.clone(), count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::index::cases(128))]
        #[test]
        fn bits_follow_the_bitmap(
            ordinals in prop::collection::hash_set(prop_oneof![0u32..300, 1_000_000u32..1_000_200, Just(u32::MAX)], 0..200),
            ranges in prop::collection::vec((0u32..400, 0u32..150), 0..6),
            far in prop::collection::vec(1_000_000u32..1_000_200, 0..20),
        ) {
            let ordinals: Vec<u32> = ordinals.into_iter().collect();
            let mut entries: RoaringBitmap = far.into_iter().chain([u32::MAX]).collect();
            for (start, length) in ranges {
                entries.insert_range(start..start + length);
            }
            let map = OrdinalMap::new(ordinals.clone()).expect("a set holds an ordinal once");
            let words = map.alive(&entries);
            for (document, &ordinal) in (0u32..).zip(&ordinals) {
                prop_assert_eq!(bit(&words, document), entries.contains(ordinal));
                prop_assert_eq!(map.document(ordinal), Some(document));
            }
            prop_assert_eq!(
                words.iter().map(|word| word.count_ones()).sum::<u32>() as usize,
                ordinals.iter().filter(|&&ordinal| entries.contains(ordinal)).count()
            );
        }
    }

    #[test]
    fn an_ordinal_that_occurs_twice_is_damage() {
        assert!(OrdinalMap::new(vec![3, 1, 3]).is_none());
        assert!(OrdinalMap::new(vec![1, 1]).is_none());
    }
}

//! Ranks the entries of one version by BM25, exactly.
//!
//! In: a searcher, a version's bitmap and statistics, and a query. Out: the best entries with their scores.
//!
//! **Invariant:** ids and score bits are those of an index built from scratch with only the version's entries, whatever was
//! committed, retracted and merged before, and whichever segments hold the entries.
//!
//! A match is skipped only if bounds under the version's own statistics show that it cannot be kept ([`prune`](super::prune)).
//! tantivy's `TopDocs` is different: it skips blocks of postings whose best (length, frequency) pair cannot reach the k-th score.
//! That pair was chosen under the segment's average length at the time of writing. Under a version's average it is no bound, so
//! the true first hit can be lost (a test shows it). `TopDocs` also adds clauses in another order, and breaks ties by position in
//! the index. A lint forbids it.
//!
//! ```text
//! query ─► clauses, weighed and bounded ─┐
//! Searcher ── segments, large ones first ┴► windows of documents: alive? ─ could it be kept? ─ filter? ─► TopK
//! ```

use super::alive::{self, AliveSegment, OrdinalMaps};
use super::clause::Clause;
use super::error::LexicalError;
use super::prune::search_segment;
use super::query::LexicalQuery;
use super::schema::{self, Fields};
use super::statistics::LiveStatistics;
use crate::index::{TieOrder, TopK};
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use snapshots::Ordinal;
use std::cmp::Reverse;
use std::sync::Arc;
use tantivy::index::{SegmentId, SegmentReader};
use tantivy::{Searcher, TantivyError, Term};

/// The lexical index as seen by one version; immutable, and shared by all its searches.
pub struct LexicalView {
    searcher: Searcher,
    fields: Fields,
    maps: OrdinalMaps,
    /// One for each segment of the searcher, in its order.
    segments: Vec<Arc<AliveSegment>>,
    statistics: LiveStatistics,
}

impl LexicalView {
    /// Returns the view of the version with these live entries and statistics.
    ///
    /// The cost is proportional to all documents of the index: some 4 ms a million, more if a segment's ordinals are not in
    /// `maps` yet.
    ///
    /// # Errors
    /// [`LexicalError::Entries`] if the searcher lacks some of the entries, [`LexicalError::Statistics`] if these count others,
    /// [`LexicalError::Segment`] if a segment is damaged.
    pub fn new(
        searcher: Searcher,
        maps: &OrdinalMaps,
        entries: &RoaringBitmap,
        statistics: LiveStatistics,
    ) -> Result<Self, LexicalError> {
        let alive = |reader: &SegmentReader| AliveSegment::new(reader, maps, entries).map(Arc::new);
        let segments = searcher.segment_readers().iter().map(alive).collect::<Result<_, _>>()?;
        Self { searcher, fields: schema::schema().1, maps: maps.clone(), segments, statistics }.checked(entries)
    }

    /// Returns the view of another version, given how it differs from this one.
    ///
    /// The cost is proportional to the difference, the segments that it touches and those that are new in `searcher`: only they
    /// get new bits. `entries` are all live entries of the other version.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn advance(
        &self,
        searcher: Searcher,
        entries: &RoaringBitmap,
        inserted: &RoaringBitmap,
        retracted: &RoaringBitmap,
        statistics: LiveStatistics,
    ) -> Result<Self, LexicalError> {
        let known: FxHashMap<SegmentId, &Arc<AliveSegment>> =
            self.segments.iter().map(|segment| (segment.segment().0, segment)).collect();
        let alive = |reader: &SegmentReader| {
            let now = alive::state(reader);
            // More documents of an older searcher's segment may be deleted now, and none fewer.
            let Some(&segment) = known.get(&now.0).filter(|segment| segment.segment() <= now) else {
                return AliveSegment::new(reader, &self.maps, entries).map(Arc::new);
            };
            let segment = if segment.segment() == now { Arc::clone(segment) } else { Arc::new(segment.reread(reader)) };
            let changed = segment.changed([(retracted, false), (inserted, true)].into_iter());
            Ok(changed.map_or(segment, Arc::new))
        };
        let segments = searcher.segment_readers().iter().map(alive).collect::<Result<_, _>>()?;
        Self { searcher, fields: self.fields, maps: self.maps.clone(), segments, statistics }.checked(entries)
    }

    /// Checks that segments and statistics are those of the version. Otherwise scores would be silently wrong, or tantivy would
    /// abort the process over a document frequency above N.
    fn checked(self, entries: &RoaringBitmap) -> Result<Self, LexicalError> {
        let expected = entries.len();
        let found = self.segments.iter().map(|segment| u64::from(segment.count())).sum();
        if found != expected {
            return Err(LexicalError::Entries { expected, found });
        }
        let counted = self.statistics.entries;
        if counted != expected {
            return Err(LexicalError::Statistics { expected, counted });
        }
        Ok(self)
    }

    /// Returns the best `limit` entries that hold a term of the query in text or name, and pass the filter: by descending score,
    /// ties in the order of `ties`.
    ///
    /// # Errors
    /// [`LexicalError::Search`] if a segment cannot be read.
    pub fn search(
        &self,
        query: &LexicalQuery,
        limit: usize,
        filter: Option<&RoaringBitmap>,
        ties: &dyn TieOrder,
    ) -> Result<Vec<(Ordinal, f32)>, LexicalError> {
        self.best(query, query.over(&self.fields), limit, filter, ties)
    }

    /// As [`Self::search`], of the names alone.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub fn search_names(
        &self,
        query: &LexicalQuery,
        limit: usize,
        filter: Option<&RoaringBitmap>,
        ties: &dyn TieOrder,
    ) -> Result<Vec<(Ordinal, f32)>, LexicalError> {
        self.best(query, query.over_name(&self.fields), limit, filter, ties)
    }

    fn best(
        &self,
        query: &LexicalQuery,
        weighed: impl Iterator<Item = (Vec<(usize, Term)>, f32)>,
        limit: usize,
        filter: Option<&RoaringBitmap>,
        ties: &dyn TieOrder,
    ) -> Result<Vec<(Ordinal, f32)>, LexicalError> {
        if query.is_empty() || limit == 0 || self.statistics.entries == 0 {
            return Ok(Vec::new());
        }
        let failed = |source: TantivyError| LexicalError::Search(source.into());
        let mut clauses = Vec::new();
        for (terms, boost) in weighed {
            clauses.extend(Clause::weigh(terms, boost, self, &self.searcher).map_err(failed)?);
        }
        let mut best = TopK::new(limit, ties);
        // Large segments first: their hits raise the bar for the rest.
        let mut segments: Vec<_> = self.segments().filter(|(_, segment)| segment.count() > 0).collect();
        segments.sort_by_key(|(_, segment)| Reverse(segment.count()));
        for (reader, segment) in segments {
            search_segment(reader, segment, &clauses, filter, &mut best).map_err(failed)?;
        }
        Ok(best.into_ranked())
    }

    /// Returns the version's statistics.
    #[must_use]
    pub const fn statistics(&self) -> LiveStatistics {
        self.statistics
    }

    pub(super) const fn fields(&self) -> &Fields {
        &self.fields
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = (&SegmentReader, &AliveSegment)> {
        self.searcher.segment_readers().iter().zip(self.segments.iter().map(Arc::as_ref))
    }
}

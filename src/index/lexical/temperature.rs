//! Decides which segments are hot: at least four fifths of their documents are alive in a head.
//!
//! In: the entries alive in some head, and the entries of each segment. Out: the segments to merge with each other, and the live
//! documents to move out of a segment next.
//!
//! ```text
//!            ┌ hot: mostly alive     ◄─┐ live documents   Dead documents stay behind, where no search of a head
//!  segments ─┼ mixed                 ──┘ are copied       reads them, and are not merged with live ones.
//!            └ cold: nothing is alive                     Each kind is merged with its own kind only.
//! ```
//!
//! **Invariant:** a segment's temperature follows from its entries and from the live ones, so it is not stored. No answer depends
//! on it: it decides only the place of a document, and a version finds it anywhere.
//!
//! A thread reads the entries of large or many segments. Until these are known, such segments are neither merged nor a source:
//! reading a million ordinals would delay a publish.
//!
//! Live documents move once one in five is dead. So each death pays for four moves at most, and a search of a head reads at most
//! a quarter more than the live documents, except in segments that are too small to matter.

use super::error::LexicalError;
use super::merging::ByShare;
use super::schema::ORDINAL;
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tantivy::DocId;
use tantivy::index::{Index, SegmentId, SegmentMeta, SegmentReader};
use tantivy::indexer::{MergeCandidate, MergePolicy};

/// Of so many entries of a hot segment, ...
const OF: u64 = 5;
/// ... at least so many are alive.
const ALIVE: u64 = 4;
/// Fewer documents are not worth a move: such segments are merged soon.
const WORTH_A_MOVE: u64 = if cfg!(test) { 8 } else { 256 };

/// A thread reads more documents, or more segments; fewer take a millisecond or so.
const READ_AT_ONCE: u32 = if cfg!(test) { 32 } else { 16_384 };
const OPENED_AT_ONCE: u32 = 4;

/// The known state of the segments, shared by the writer and its merge policy.
#[derive(Clone, Default)]
pub(super) struct Temperature(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The entries alive in some head. Until they are known, all segments count as hot.
    alive: Option<RoaringBitmap>,
    /// Entries from here on were added since, most of them by commits of a head.
    told_up_to: u32,
    /// The entries of each segment; an entry is in one segment only.
    held: FxHashMap<SegmentId, RoaringBitmap>,
    /// Segments whose documents are being copied, and which are therefore not merged.
    copied: FxHashSet<SegmentId>,
    /// Whether large merges wait, ...
    is_busy: bool,
    /// ... and whether one does.
    is_put_off: bool,
}

/// The next step.
pub(super) enum Next<T> {
    /// Move or delete these documents.
    Take(T),
    /// Read the entries of these segments.
    Read(Vec<SegmentMeta>),
    /// Nothing.
    Rest,
}

/// The entries that some segments hold.
pub(super) type Held = Vec<(SegmentId, RoaringBitmap)>;

/// Entries to move out of a segment.
pub(super) struct Source {
    pub(super) segment: SegmentMeta,
    pub(super) wanted: RoaringBitmap,
}

/// The documents of some entries: the segment, the entries, and their positions in it, ascending.
pub(super) type Documents = (SegmentId, RoaringBitmap, Vec<DocId>);

impl Temperature {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every step leaves consistent sets, and a wrong one costs time and no correctness.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the live entries, among those below `next`, and the list of segments. Once all segments are known, returns the
    /// next step: live entries in the wrong place, at most `limit`, from the segment with the smallest live part.
    ///
    /// The returned segments are not merged until [`Self::let_go`] is called.
    pub(super) fn tell(
        &self,
        alive: &RoaringBitmap,
        next: u32,
        index: &Index,
        segments: &[SegmentMeta],
        limit: usize,
    ) -> Result<Next<Vec<Source>>, LexicalError> {
        let mut state = self.state();
        state.alive = Some(alive.clone());
        state.told_up_to = next;
        state.held.retain(|id, _| segments.iter().any(|segment| segment.id() == *id));
        let unknown = state.read(index, segments)?;
        if !unknown.is_empty() {
            return Ok(Next::Read(unknown));
        }
        let living = state.sources(alive).into_iter().filter_map(|from| {
            let segment = segments.iter().find(|segment| segment.id() == from)?;
            Some((segment.clone(), state.held.get(&from)? & alive))
        });
        let sources = take(living, limit);
        if sources.is_empty() {
            return Ok(Next::Rest);
        }
        state.copied = sources.iter().map(|source| source.segment.id()).collect();
        Ok(Next::Take(sources))
    }

    /// Allows merging all segments again.
    pub(super) fn let_go(&self) {
        self.state().copied.clear();
    }

    /// Makes large merges wait, or allows them with the next commit.
    pub(super) fn let_large_merges_wait(&self, wait: bool) {
        self.state().is_busy = wait;
    }

    /// Returns whether a delayed merge may begin now, with the next commit.
    pub(super) fn is_put_off(&self) -> bool {
        let mut state = self.state();
        !state.is_busy && std::mem::take(&mut state.is_put_off)
    }

    /// Returns some of the entries below `below` that are not `needed`, with their documents: at most `limit` of one segment,
    /// once all segments are known.
    pub(super) fn superfluous(
        &self,
        needed: &RoaringBitmap,
        below: u32,
        index: &Index,
        segments: &[SegmentMeta],
        limit: usize,
    ) -> Result<Next<Documents>, LexicalError> {
        let mut state = self.state();
        state.held.retain(|id, _| segments.iter().any(|segment| segment.id() == *id));
        let unknown = state.read(index, segments)?;
        if !unknown.is_empty() {
            return Ok(Next::Read(unknown));
        }
        for meta in segments {
            let held = state.held.entry(meta.id()).or_default();
            let mut wanted = &*held - needed;
            wanted.remove_range(below..);
            let wanted: RoaringBitmap = wanted.iter().take(limit).collect();
            if wanted.is_empty() {
                continue;
            }
            // A merge that ended during a deletion may have been read before it: then it holds less than was read.
            let found = find(&open(index, meta)?, &wanted)?;
            if !found.is_empty() {
                let (entries, documents) = found.into_iter().unzip();
                return Ok(Next::Take((meta.id(), entries, documents)));
            }
            *held -= wanted;
        }
        Ok(Next::Rest)
    }

    /// Returns segments with deleted documents to copy into one, each with at most `limit` of its remaining documents: segments
    /// of one temperature, up to the size limit. All of their entries are known.
    ///
    /// The returned segments are not merged until [`Self::let_go`] is called.
    pub(super) fn to_purge(&self, index: &Index, segments: &[SegmentMeta], limit: usize) -> Vec<Source> {
        let groups = self.groups(index, segments).map(|mut group| {
            group.retain(SegmentMeta::has_deletes);
            group
        });
        let group = groups.into_iter().find(|group| !group.is_empty()).unwrap_or_default();
        let mut state = self.state();
        let held = group.into_iter().map(|segment| {
            let held = state.held.get(&segment.id()).cloned().unwrap_or_default();
            (segment, held)
        });
        let sources = take(held, limit);
        state.copied = sources.iter().map(|source| source.segment.id()).collect();
        sources
    }

    /// Returns the segments whose entries are unknown because they are large or many.
    pub(super) fn unknown(&self, index: &Index, segments: &[SegmentMeta]) -> Result<Vec<SegmentMeta>, LexicalError> {
        self.state().read(index, segments)
    }

    /// Adds the entries that were read of segments.
    ///
    /// Entries may have left them meanwhile only by a merge.
    pub(super) fn learn(&self, held: Held) {
        self.state().held.extend(held);
    }

    /// Notes that these entries leave their segments, all or but one.
    pub(super) fn left(&self, entries: &RoaringBitmap, from: Option<SegmentId>) {
        for (id, held) in &mut self.state().held {
            if from.is_none_or(|from| from == *id) {
                *held -= entries;
            }
        }
    }

    /// Returns those of some segments that may be merged.
    fn free(&self, segments: &[SegmentMeta]) -> Vec<SegmentMeta> {
        let state = self.state();
        segments.iter().filter(|segment| !state.copied.contains(&segment.id())).cloned().collect()
    }

    /// Delays a large merge, if such merges wait; returns whether they do.
    fn put_off(&self) -> bool {
        let mut state = self.state();
        state.is_put_off |= state.is_busy;
        state.is_busy
    }

    /// Groups segments by temperature, hot ones first; before the live entries are known they are one group. Unread segments are
    /// in no group.
    pub(super) fn groups(&self, index: &Index, segments: &[SegmentMeta]) -> [Vec<SegmentMeta>; 3] {
        let mut state = self.state();
        // The code that needs the entries of an unreadable segment will report it.
        let is_known = state.alive.is_some() && state.read(index, segments).is_ok();
        let mut groups = [Vec::new(), Vec::new(), Vec::new()];
        for segment in segments {
            let group = match state.held.get(&segment.id()) {
                _ if !is_known => 0,
                None => continue,
                Some(held) => match state.living(held) {
                    0 => 2,
                    living => usize::from(is_mixed(living, held)),
                },
            };
            groups[group].push(segment.clone());
        }
        groups
    }
}

/// Takes whole segments up to `limit` entries in total, or a part of the first.
fn take(segments: impl Iterator<Item = (SegmentMeta, RoaringBitmap)>, limit: usize) -> Vec<Source> {
    let (mut sources, mut left) = (Vec::new(), limit);
    for (segment, entries) in segments {
        if entries.len() > left as u64 && !sources.is_empty() {
            break;
        }
        let wanted: RoaringBitmap = entries.iter().take(left).collect();
        left -= wanted.len() as usize;
        sources.push(Source { segment, wanted });
    }
    sources
}

fn is_mixed(living: u64, held: &RoaringBitmap) -> bool {
    living * OF < held.len() * ALIVE
}

impl State {
    fn living(&self, held: &RoaringBitmap) -> u64 {
        self.alive.as_ref().map_or(held.len(), |alive| held.intersection_len(alive))
            + held.range_cardinality(self.told_up_to..)
    }

    /// Returns the segments with live documents to move, the smallest live part first.
    fn sources(&self, alive: &RoaringBitmap) -> Vec<SegmentId> {
        let sources = self.held.iter().filter_map(|(id, held)| {
            let living = held.intersection_len(alive);
            let gives = living > 0 && is_mixed(self.living(held), held) && held.len() >= WORTH_A_MOVE;
            gives.then_some((living as f64 / held.len() as f64, *id))
        });
        let mut sources: Vec<_> = sources.collect();
        sources.sort_unstable_by(|(left, left_id), (right, right_id)| {
            left.total_cmp(right).then_with(|| left_id.cmp(right_id))
        });
        sources.into_iter().map(|(_, id)| id).collect()
    }

    /// Reads the unknown entries of a few small segments; returns the segments that stay unknown.
    fn read(&mut self, index: &Index, segments: &[SegmentMeta]) -> Result<Vec<SegmentMeta>, LexicalError> {
        let (mut others, mut documents, mut opened) = (Vec::new(), READ_AT_ONCE, OPENED_AT_ONCE);
        for meta in segments {
            match self.held.entry(meta.id()) {
                Entry::Vacant(unknown) if meta.max_doc() <= documents && opened > 0 => {
                    (documents, opened) = (documents - meta.max_doc(), opened - 1);
                    unknown.insert(held(&open(index, meta)?)?);
                }
                Entry::Vacant(_) => others.push(meta.clone()),
                Entry::Occupied(_) => {}
            }
        }
        Ok(others)
    }
}

/// Reads the entries of these segments.
pub(super) fn read(index: &Index, segments: &[SegmentMeta]) -> Result<Held, LexicalError> {
    segments.iter().map(|meta| Ok((meta.id(), held(&open(index, meta)?)?))).collect()
}

pub(super) fn open(index: &Index, meta: &SegmentMeta) -> Result<SegmentReader, LexicalError> {
    SegmentReader::open(&index.segment(meta.clone())).map_err(|source| LexicalError::Load(source.into()))
}

/// Returns the entries of a segment.
pub(super) fn held(reader: &SegmentReader) -> Result<RoaringBitmap, LexicalError> {
    let mut ordinals = Vec::with_capacity(reader.num_docs() as usize);
    for_each_document(reader, |ordinal, _| ordinals.push(ordinal))?;
    // Merged segments hold ascending runs, for which a stable sort is fast.
    ordinals.sort();
    RoaringBitmap::from_sorted_iter(ordinals).map_err(|_| damaged(reader, "two documents have one ordinal"))
}

/// Returns those of some entries that a segment holds, each with its document, in the order of documents.
pub(super) fn find(reader: &SegmentReader, entries: &RoaringBitmap) -> Result<Vec<(u32, DocId)>, LexicalError> {
    let range = entries.min().unwrap_or(u32::MAX)..=entries.max().unwrap_or(0);
    let mut found = Vec::new();
    for_each_document(reader, |ordinal, document| {
        if range.contains(&ordinal) && entries.contains(ordinal) {
            found.push((ordinal, document));
        }
    })?;
    Ok(found)
}

/// Calls `look` with the ordinal of each document that is not deleted.
fn for_each_document(reader: &SegmentReader, mut look: impl FnMut(u32, DocId)) -> Result<(), LexicalError> {
    let column = reader.fast_fields().u64(ORDINAL).map_err(|_| damaged(reader, "it has no ordinals"))?.values;
    if column.num_vals() != reader.max_doc() {
        return Err(damaged(reader, "documents and ordinals differ in number"));
    }
    let mut values = [0; 1024];
    for start in (0..reader.max_doc()).step_by(values.len()) {
        let values = &mut values[..(reader.max_doc() - start).min(1024) as usize];
        column.get_range(u64::from(start), values);
        for (document, ordinal) in (start..).zip(values.iter()) {
            if !reader.is_deleted(document) {
                let ordinal =
                    u32::try_from(*ordinal).map_err(|_| damaged(reader, "an ordinal has more than 32 bits"))?;
                look(ordinal, document);
            }
        }
    }
    Ok(())
}

fn damaged(reader: &SegmentReader, what: &'static str) -> LexicalError {
    LexicalError::Segment { segment: reader.segment_id().uuid_string(), what }
}

/// Merges segments with segments of their temperature.
#[derive(Clone)]
pub(super) struct ByTemperature {
    pub(super) sizes: ByShare,
    pub(super) index: Index,
    pub(super) temperature: Temperature,
}

impl fmt::Debug for ByTemperature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ByTemperature").field(&self.sizes).finish()
    }
}

impl MergePolicy for ByTemperature {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let segments = self.temperature.free(segments);
        let groups = self.temperature.groups(&self.index, &segments);
        let merges =
            |sizes: ByShare| groups.iter().flat_map(move |group| sizes.compute_merge_candidates(group)).collect();
        let (all, small): (Vec<MergeCandidate>, Vec<MergeCandidate>) = (merges(self.sizes), merges(self.sizes.small()));
        let is_same = all.iter().map(|merge| &merge.0).eq(small.iter().map(|merge| &merge.0));
        if is_same || !self.temperature.put_off() { all } else { small }
    }
}

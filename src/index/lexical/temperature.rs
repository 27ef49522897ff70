//! Which segments are hot: at least four fifths of what they hold is alive in a head.
//!
//! In: what is alive in some head, and which entries each segment holds. Out: the segments that are merged with each other,
//! and the living documents that a segment gives up next.
//!
//! ```text
//!            ┌ hot: mostly alive     ◄─┐ what is alive    What has died stays behind, where no search of a head
//!  segments ─┼ mixed                 ──┘ is copied there  reads it, and is not merged with what is alive.
//!            └ cold: nothing is alive                     Each kind is merged with its own kind only.
//! ```
//!
//! **Invariant:** a segment's temperature follows from the entries that it holds and from what is alive, so nothing of it is
//! on disk. No answer depends on it: it decides where a document lies, and a version finds it anywhere.
//!
//! What large or many segments hold is read by a thread, and until that is known they are neither merged nor a source: reading a
//! million ordinals would hold up a publish.
//!
//! Where living documents are moved once one in five is dead, each death pays for four moves at the most, and what a search of
//! a head reads is at most a quarter more than what is alive, but for segments that are too small to matter.

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
/// ... so many are alive, at least.
const ALIVE: u64 = 4;
/// Fewer documents are not worth a move: such segments are merged soon.
const WORTH_A_MOVE: u64 = if cfg!(test) { 8 } else { 256 };

/// More documents, or more segments, are read beside whoever publishes: fewer take a millisecond or so.
const READ_AT_ONCE: u32 = if cfg!(test) { 32 } else { 16_384 };
const OPENED_AT_ONCE: u32 = 4;

/// What is known of the segments, shared by the writer and its merge policy.
#[derive(Clone, Default)]
pub(super) struct Temperature(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// What is alive in some head. Until it is told, all segments are taken for hot.
    alive: Option<RoaringBitmap>,
    /// Entries from here on were added since, most of them by commits of a head.
    told_up_to: u32,
    /// The entries that each segment holds; an entry is in one segment only.
    held: FxHashMap<SegmentId, RoaringBitmap>,
    /// Segments of which documents are being copied, and which therefore are not merged.
    copied: FxHashSet<SegmentId>,
    /// Whether large merges wait, ...
    is_busy: bool,
    /// ... and whether one does.
    is_put_off: bool,
}

/// What is to be done next.
pub(super) enum Next<T> {
    /// These documents are to be moved or removed.
    Take(T),
    /// It has to be read what these segments hold.
    Read(Vec<SegmentMeta>),
    /// Nothing.
    Rest,
}

/// The entries that some segments hold.
pub(super) type Held = Vec<(SegmentId, RoaringBitmap)>;

/// Entries that are to leave a segment.
pub(super) struct Source {
    pub(super) segment: SegmentMeta,
    pub(super) wanted: RoaringBitmap,
}

/// The documents of some entries: the segment, the entries, and where they are in it, ascending.
pub(super) type Documents = (SegmentId, RoaringBitmap, Vec<DocId>);

impl Temperature {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every step leaves whole sets behind, and a wrong one costs time and no answer.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns what is alive, among the entries below `next`, and which of these segments there are; returns what is next, once all
    /// segments are known: what is alive where it should not be, at most `limit` entries, from where the fewest are alive.
    ///
    /// The segments that it returns are not merged until [`Self::let_go`] is called.
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

    /// Lets all segments be merged again.
    pub(super) fn let_go(&self) {
        self.state().copied.clear();
    }

    /// Lets large merges wait, or begin again with the next commit.
    pub(super) fn let_large_merges_wait(&self, wait: bool) {
        self.state().is_busy = wait;
    }

    /// Returns whether a merge was put off that may begin now, with the next commit.
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
            // A merge that ended beside a removal may have been read before it: then less is there than was read.
            let found = find(&open(index, meta)?, &wanted)?;
            if !found.is_empty() {
                let (entries, documents) = found.into_iter().unzip();
                return Ok(Next::Take((meta.id(), entries, documents)));
            }
            *held -= wanted;
        }
        Ok(Next::Rest)
    }

    /// Returns segments that hold removed documents, each with at most `limit` of the others, to be copied into one: those of one
    /// temperature, as far as they are not too many documents. Of all of them it is known what they hold.
    ///
    /// The segments that it returns are not merged until [`Self::let_go`] is called.
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

    /// Returns those segments of which it is not known what they hold, for they are large or many.
    pub(super) fn unknown(&self, index: &Index, segments: &[SegmentMeta]) -> Result<Vec<SegmentMeta>, LexicalError> {
        self.state().read(index, segments)
    }

    /// Learns what was read of segments.
    ///
    /// Nothing may have left them meanwhile, other than by a merge.
    pub(super) fn learn(&self, held: Held) {
        self.state().held.extend(held);
    }

    /// Learns that these entries leave their segments, all or but one.
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

    /// Puts a large merge off, if such wait; returns whether they do.
    fn put_off(&self) -> bool {
        let mut state = self.state();
        state.is_put_off |= state.is_busy;
        state.is_busy
    }

    /// Groups segments by temperature, hot ones first; where nothing was told they are one group. Those that are not
    /// read yet are in none.
    pub(super) fn groups(&self, index: &Index, segments: &[SegmentMeta]) -> [Vec<SegmentMeta>; 3] {
        let mut state = self.state();
        // A segment that cannot be read will be reported by whoever needs what it holds.
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

/// Takes whole segments while they have at most `limit` entries together, or a part of the first.
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

    /// Returns the segments that should give up what is alive, those first where it is the least part.
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

    /// Reads which entries a few small segments hold that are not known yet; returns the others of which it is not known.
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

/// Reads which entries these segments hold.
pub(super) fn read(index: &Index, segments: &[SegmentMeta]) -> Result<Held, LexicalError> {
    segments.iter().map(|meta| Ok((meta.id(), held(&open(index, meta)?)?))).collect()
}

pub(super) fn open(index: &Index, meta: &SegmentMeta) -> Result<SegmentReader, LexicalError> {
    SegmentReader::open(&index.segment(meta.clone())).map_err(|source| LexicalError::Load(source.into()))
}

/// Returns the entries that a segment holds.
pub(super) fn held(reader: &SegmentReader) -> Result<RoaringBitmap, LexicalError> {
    let mut ordinals = Vec::with_capacity(reader.num_docs() as usize);
    for_each_document(reader, |ordinal, _| ordinals.push(ordinal))?;
    // Merged segments hold ascending runs, which a stable sort finds.
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

/// Calls `look` with the ordinal of each document that was not removed.
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

//! One immutable segment: which ordinals, and their vectors, in an engine or still in their file.
//!
//! In: sorted rows, or blocks of a sealed file. Out: the living positions under a version's bitmap, the best of them, and each
//! vector again.
//!
//! **Invariant:** position *n* of the engine is the *n*-th smallest ordinal; neither ever changes.
//!
//! ```text
//! in a file ── first search ──► its living rows are read, checked, handed over and forgotten
//!           └─ second search ─► all rows are read and checked into an engine, which stays
//! ```
//!
//! So one question costs no memory behind it, and a process that asks on pays for the engine of what it searches, once.
//!
//! The list of ordinals is explicit, because garbage collection, temperature and late vectors leave gaps; without gaps two
//! numbers replace it.

use super::format::pull_components;
use super::rows::Rows;
use super::scan::{Alive, Backend, Scan};
use super::stored::StoredFile;
use super::{VectorError, search::Question};
use crate::index::window::Window;
use half::f16;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// An immutable, searchable block of vectors.
pub(super) struct VectorSegment {
    backend: Backend,
    dimensions: usize,
    ordinals: Ordinals,
    /// Where the rows lie; nothing: in the engine, which is there from the beginning.
    stored: Option<Stored>,
    engine: OnceLock<Box<dyn Scan>>,
}

/// Where the rows of a segment lie.
struct Stored {
    file: Arc<StoredFile>,
    blocks: Range<usize>,
    /// Whether they were searched before.
    was_searched: AtomicBool,
}

/// Living rows of segments that have no engine, together.
#[derive(Default)]
pub(super) struct Gathered {
    ordinals: Vec<Ordinal>,
    components: Vec<f16>,
    /// The block that is read.
    bytes: Vec<u8>,
}

impl Gathered {
    pub(super) const fn len(&self) -> usize {
        self.ordinals.len()
    }

    /// Hands the rows over to an engine of their own, and begins again.
    pub(super) fn take(&mut self, backend: Backend, dimensions: usize) -> Result<GatheredScan, VectorError> {
        let scan = backend.build(dimensions, &self.components)?;
        self.components.clear();
        Ok(GatheredScan { ordinals: std::mem::take(&mut self.ordinals), scan })
    }
}

/// An engine over gathered rows.
pub(super) struct GatheredScan {
    ordinals: Vec<Ordinal>,
    scan: Box<dyn Scan>,
}

impl GatheredScan {
    pub(super) const fn len(&self) -> usize {
        self.ordinals.len()
    }

    /// Returns the best `count` of all rows with their scores, best first.
    pub(super) fn best(&self, question: &Question, count: usize) -> Result<Vec<(Ordinal, f32)>, VectorError> {
        let found = self.scan.best(question.components(), &Alive::all(self.len()), count)?;
        Ok(found.into_iter().map(|(at, score)| (self.ordinals[at as usize], score)).collect())
    }
}

/// The ordinals of a segment in ascending order.
enum Ordinals {
    /// `first`, `first + 1`, … up to `len` of them.
    Range {
        first: u32,
        len: usize,
    },
    List(Box<[u32]>),
}

impl Ordinals {
    fn new(sorted: &[u32]) -> Self {
        match (sorted.first(), sorted.last()) {
            (Some(&first), Some(&last)) if (last - first) as usize == sorted.len() - 1 => {
                Self::Range { first, len: sorted.len() }
            }
            _ => Self::List(sorted.into()),
        }
    }

    const fn len(&self) -> usize {
        match self {
            Self::Range { len, .. } => *len,
            Self::List(list) => list.len(),
        }
    }

    fn get(&self, position: usize) -> u32 {
        match self {
            Self::Range { first, .. } => first + position as u32,
            Self::List(list) => list[position],
        }
    }

    /// Returns how many ordinals from position `from` on are smaller than `ordinal`, as a position.
    fn position_from(&self, from: usize, ordinal: u64) -> usize {
        match self {
            Self::Range { first, len } => (ordinal.saturating_sub(u64::from(*first)) as usize).clamp(from, *len),
            Self::List(list) => from + list[from..].partition_point(|&own| u64::from(own) < ordinal),
        }
    }
}

impl VectorSegment {
    pub(super) fn new(backend: Backend, rows: &Rows) -> Result<Self, VectorError> {
        let (dimensions, ordinals) = (rows.dimensions(), Ordinals::new(rows.ordinals()));
        let engine = OnceLock::from(backend.build(dimensions, rows.components())?);
        Ok(Self { backend, dimensions, ordinals, stored: None, engine })
    }

    /// Returns the segment of some blocks of a file, which hold the rows of these ordinals.
    pub(super) fn stored(
        backend: Backend,
        dimensions: usize,
        file: Arc<StoredFile>,
        blocks: Range<usize>,
        ordinals: &[u32],
    ) -> Self {
        let stored = Some(Stored { file, blocks, was_searched: AtomicBool::new(false) });
        Self { backend, dimensions, ordinals: Ordinals::new(ordinals), stored, engine: OnceLock::new() }
    }

    pub(super) const fn backend(&self) -> Backend {
        self.backend
    }

    /// Returns whether there is an engine; the second time it is asked for there is.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged, or the engine refuses.
    pub(super) fn is_ready(&self) -> Result<bool, VectorError> {
        let Some(stored) = self.stored.as_ref().filter(|_| self.engine.get().is_none()) else { return Ok(true) };
        if !stored.was_searched.swap(true, Relaxed) {
            return Ok(false);
        }
        let engine = self.backend.build(self.dimensions, &stored.file.components(stored.blocks.clone())?)?;
        // Another thread may have been quicker.
        let _ = self.engine.set(engine);
        Ok(true)
    }

    /// Adds the living rows to those of other segments.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged, or the engine refuses.
    pub(super) fn gather(&self, alive: &Alive, into: &mut Gathered) -> Result<(), VectorError> {
        let Some(Stored { file, blocks, .. }) = &self.stored else { return Ok(()) };
        let (first, width) = (file.rows_of(blocks.start).start, 2 * self.dimensions);
        let before = into.components.len();
        for block in blocks.clone() {
            let rows = file.rows_of(block);
            let (start, end) = (rows.start - first, rows.end - first);
            if !(start..end).any(|position| alive.contains(position)) {
                continue;
            }
            file.read_block(block, &mut into.bytes)?;
            for (position, row) in (start..end).zip(into.bytes.chunks_exact(width)) {
                if alive.contains(position) {
                    into.ordinals.push(Ordinal::new(self.ordinals.get(position)));
                    pull_components(row, &mut into.components);
                }
            }
        }
        file.are_finite(&into.components[before..])
    }

    /// Returns the components of the rows from `start` on.
    fn components(&self, start: usize, count: usize) -> Result<Vec<f16>, VectorError> {
        match (self.engine.get(), &self.stored) {
            (Some(engine), _) => engine.components(start, count),
            (None, Some(Stored { file, blocks, .. })) => {
                let from = file.rows_of(blocks.start).start + start;
                let blocks = file.block_of(from)..file.block_of(from + count.max(1) - 1) + 1;
                let skipped = (from - file.rows_of(blocks.start).start) * self.dimensions;
                let mut components = file.components(blocks)?;
                components.drain(..skipped);
                components.truncate(count * self.dimensions);
                Ok(components)
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Returns how many vectors the segment holds.
    pub(super) const fn len(&self) -> usize {
        self.ordinals.len()
    }

    /// Returns the ordinal of a position.
    #[inline]
    pub(super) fn ordinal(&self, position: usize) -> u32 {
        self.ordinals.get(position)
    }

    /// Returns the ordinals, ascending.
    pub(super) fn ordinals(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(|position| self.ordinals.get(position))
    }

    /// Returns the vector of `ordinal`, bit for bit, if it is in this segment.
    ///
    /// # Errors
    /// If the engine fails.
    pub(super) fn vector_of(&self, ordinal: Ordinal) -> Result<Option<Vec<f16>>, VectorError> {
        let position = self.ordinals.position_from(0, u64::from(ordinal.get()));
        if position == self.len() || self.ordinals.get(position) != ordinal.get() {
            return Ok(None);
        }
        self.components(position, 1).map(Some)
    }

    /// Returns the positions whose ordinals `entries` has.
    pub(super) fn alive(&self, entries: &RoaringBitmap) -> Alive {
        let (len, last) = (self.len(), self.len().saturating_sub(1));
        if len == 0 {
            return Alive::all(0);
        }
        let (first, last) = (self.ordinals.get(0), self.ordinals.get(last));
        if let Ordinals::Range { .. } = self.ordinals
            && entries.contains_range(first..=last)
        {
            return Alive::all(len);
        }
        let mut living = entries.iter();
        living.advance_to(first);
        let mut at = 0;
        let runs = std::iter::from_fn(|| {
            let run = living.next_range().filter(|run| *run.start() <= last)?;
            let start = self.ordinals.position_from(at, u64::from(*run.start()));
            at = self.ordinals.position_from(start, u64::from(*run.end()) + 1);
            Some((start, at))
        });
        Alive::from_runs(len, runs.filter(|(start, end)| start < end))
    }

    /// Returns the positions that a window over the segment's ordinals has.
    pub(super) fn alive_in(&self, living: &Window) -> Alive {
        match &self.ordinals {
            Ordinals::Range { first, len } => {
                Alive::from_bits(*len, (0..*len).map(|at| living.contains(first + at as u32)))
            }
            Ordinals::List(list) => Alive::from_bits(list.len(), list.iter().map(|&ordinal| living.contains(ordinal))),
        }
    }

    /// Returns the best `count` of the living with their scores, best first; nothing where there is no engine yet.
    pub(super) fn best(
        &self,
        question: &Question,
        alive: &Alive,
        count: usize,
    ) -> Result<Vec<(Ordinal, f32)>, VectorError> {
        let Some(engine) = self.engine.get() else { return Ok(Vec::new()) };
        let found = engine.best(question.components(), alive, count)?;
        Ok(found.into_iter().map(|(at, score)| (Ordinal::new(self.ordinals.get(at as usize)), score)).collect())
    }

    /// Returns the segment's ordinals.
    pub(super) fn bitmap(&self) -> RoaringBitmap {
        match &self.ordinals {
            Ordinals::Range { first, len } => {
                let mut bitmap = RoaringBitmap::new();
                bitmap.insert_range(*first..=*first + (*len as u32 - 1));
                bitmap
            }
            Ordinals::List(list) => {
                RoaringBitmap::from_sorted_iter(list.iter().copied()).expect("ordinals of a segment ascend")
            }
        }
    }

    /// Returns the rows of the segment.
    pub(super) fn rows(&self) -> Result<Rows, VectorError> {
        let ordinals = (0..self.len()).map(|position| self.ordinals.get(position)).collect();
        let components = self.components(0, self.len())?;
        Ok(Rows::from_parts(self.dimensions, ordinals, components).expect("a segment is built from sorted rows"))
    }

    /// Returns one segment with the rows of all `parts`.
    pub(super) fn merge<'a>(
        backend: Backend,
        dimensions: usize,
        parts: impl Iterator<Item = &'a Self>,
    ) -> Result<Self, VectorError> {
        let parts: Vec<Rows> = parts.map(Self::rows).collect::<Result<_, _>>()?;
        Self::new(backend, &Rows::merge(dimensions, &parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn segment(ordinals: &BTreeSet<u32>) -> VectorSegment {
        let ordinals: Vec<u32> = ordinals.iter().copied().collect();
        let components = vec![f16::ONE; ordinals.len()];
        VectorSegment::new(Backend::Flat, &Rows::from_parts(1, ordinals, components).unwrap()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_position_is_alive_when_the_bitmap_has_its_ordinal(
            start in prop::sample::select(vec![0_u32, 65_500, u32::MAX - 100]),
            own in prop::collection::btree_set(0_u32..=100, 1..60),
            contiguous in any::<bool>(),
            living in prop::collection::btree_set(0_u32..=100, 0..101),
        ) {
            let own: BTreeSet<u32> = if contiguous {
                (start + own.first().unwrap()..=start + own.last().unwrap()).collect()
            } else {
                own.iter().map(|ordinal| start + ordinal).collect()
            };
            let entries: RoaringBitmap = living.iter().map(|ordinal| start + ordinal).collect();
            let segment = segment(&own);
            let alive = segment.alive(&entries);
            let expected: Vec<bool> = own.iter().map(|&ordinal| entries.contains(ordinal)).collect();
            prop_assert_eq!((0..own.len()).map(|at| alive.contains(at)).collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(alive.count(), expected.iter().filter(|&&alive| alive).count());
            prop_assert_eq!(segment.bitmap(), own.iter().copied().collect::<RoaringBitmap>());
            for ordinal in start..=start + 100 {
                let vector = segment.vector_of(Ordinal::new(ordinal)).unwrap();
                prop_assert_eq!(vector.is_some(), own.contains(&ordinal));
            }
        }
    }
}

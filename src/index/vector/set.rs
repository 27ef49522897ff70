//! All vectors at one moment, as an immutable value.
//!
//! In: segments. Out: searches, single vectors, and which of the expected ones are missing.
//!
//! **Invariant:** a set never changes, so a search needs no lock and sees one state; cloning it is one count more.

use super::format::{Shape, decode_sealed};
use super::search::{Question, search};
use super::segment::VectorSegment;
use super::{Backend, VectorError, files};
use crate::index::TieOrder;
use half::f16;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::path::Path;
use std::sync::Arc;

/// The vectors that a search reads.
#[derive(Clone)]
pub struct VectorSet {
    dimensions: usize,
    segments: Arc<[Arc<VectorSegment>]>,
}

impl VectorSet {
    pub(super) const fn new(dimensions: usize, segments: Arc<[Arc<VectorSegment>]>) -> Self {
        Self { dimensions, segments }
    }

    /// Returns the best `k` of `entries` with their cosines, best first; equal cosines come in the order of `order`.
    ///
    /// Exact. `entries` is a version's bitmap, and-ed with a filter where there is one; entries without a vector are
    /// passed over. `question` need not have length 1. Takes some 20 ns a stored vector and thread.
    ///
    /// # Errors
    /// When the question is zero, not finite or of another dimension, or the engine refuses.
    pub fn search(
        &self,
        entries: &RoaringBitmap,
        question: &[f32],
        k: usize,
        order: &dyn TieOrder,
    ) -> Result<Vec<(Ordinal, f32)>, VectorError> {
        search(&self.segments, entries, &Question::new(question, self.dimensions)?, k, order)
    }

    /// Returns the vector of `ordinal`, bit for bit, if there is one.
    ///
    /// # Errors
    /// When the engine refuses.
    pub fn vector_of(&self, ordinal: Ordinal) -> Result<Option<Vec<f16>>, VectorError> {
        for segment in self.segments.iter() {
            if let Some(vector) = segment.vector_of(ordinal)? {
                return Ok(Some(vector));
            }
        }
        Ok(None)
    }

    /// Returns the ordinals that have a vector.
    #[must_use]
    pub fn ordinals(&self) -> RoaringBitmap {
        let mut ordinals = RoaringBitmap::new();
        for segment in self.segments.iter() {
            ordinals |= segment.bitmap();
        }
        ordinals
    }

    /// Returns those of `expected` that have no vector: what must be made again after damage.
    #[must_use]
    pub fn missing(&self, expected: &RoaringBitmap) -> Vec<Ordinal> {
        (expected - self.ordinals()).iter().map(Ordinal::new).collect()
    }

    /// Returns the number of vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum()
    }

    /// Returns whether there is no vector at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the number of components of every vector.
    #[must_use]
    pub const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the segments, sealed ones first.
    #[must_use]
    pub fn segments(&self) -> &[Arc<VectorSegment>] {
        &self.segments
    }
}

/// The segments behind a writer or reader: sealed ones by number, and what the tail holds in small ones.
pub(super) struct Segments {
    pub(super) dimensions: usize,
    pub(super) backend: Backend,
    pub(super) sealed: Vec<Arc<VectorSegment>>,
    /// Each at least twice as long as the next, so there are few.
    pub(super) small: Vec<Arc<VectorSegment>>,
}

impl Segments {
    pub(super) const fn new(dimensions: usize, backend: Backend) -> Self {
        Self { dimensions, backend, sealed: Vec::new(), small: Vec::new() }
    }

    /// Adds a small segment, and merges small ones until each is at least twice as long as the next: a row is copied
    /// once for each doubling at most.
    pub(super) fn push_small(&mut self, segment: VectorSegment) -> Result<(), VectorError> {
        let mut lengths: Vec<usize> = self.small.iter().map(|small| small.len()).collect();
        let mut merged = segment.len();
        while lengths.last().is_some_and(|&last| last < 2 * merged) {
            merged += lengths.pop().unwrap_or_default();
        }
        let kept = lengths.len();
        let segment = if kept == self.small.len() {
            segment
        } else {
            let parts = self.small[kept..].iter().map(Arc::as_ref).chain([&segment]);
            VectorSegment::merge(self.backend, self.dimensions, parts)?
        };
        self.small.truncate(kept);
        self.small.push(Arc::new(segment));
        Ok(())
    }

    /// Takes in a sealed file, without the rows that `held` has already, and adds its ordinals to `held`; returns whether it
    /// brought any.
    ///
    /// Some 8 ms a file, two thirds of it in building the engine; a second thread gains nothing, for both wait for memory.
    pub(super) fn load_sealed(
        &mut self,
        path: &Path,
        shape: Shape,
        held: &mut RoaringBitmap,
    ) -> Result<bool, VectorError> {
        let rows = decode_sealed(&files::read_whole(path)?, shape, path)?.admit(held);
        if !rows.is_empty() {
            self.sealed.push(Arc::new(VectorSegment::new(self.backend, &rows)?));
        }
        Ok(!rows.is_empty())
    }

    pub(super) fn set(&self) -> VectorSet {
        VectorSet::new(self.dimensions, self.sealed.iter().chain(&self.small).cloned().collect())
    }
}

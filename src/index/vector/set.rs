//! All vectors at one moment, as an immutable value.
//!
//! In: segments. Out: searches, single vectors, and which of the expected ones are missing.
//!
//! **Invariant:** a set never changes (snapshot isolation), so a search needs no lock and sees one state; cloning it increments a
//! count.

use super::VectorError;
use super::clustered::ClusteredSegment;
use super::search::{Nearest, Question, Reach, search};
use super::segment::VectorSegment;
use crate::index::TieOrder;
use half::f16;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::sync::{Arc, OnceLock};

/// The vectors that a search reads.
#[derive(Clone)]
pub struct VectorSet {
    dimensions: usize,
    blocks: Arc<Blocks>,
}

/// The segments of a set, by kind.
#[derive(Default)]
pub(super) struct Blocks {
    /// Those whose rows are all scored, sealed ones first.
    pub(super) flat: Vec<Arc<VectorSegment>>,
    /// Those with IVF lists.
    pub(super) clustered: Vec<Arc<ClusteredSegment>>,
    /// The ordinals of all of them, once they were asked for.
    pub(super) held: OnceLock<RoaringBitmap>,
}

impl VectorSet {
    pub(super) fn new(dimensions: usize, blocks: Blocks) -> Self {
        Self { dimensions, blocks: Arc::new(blocks) }
    }

    /// Returns the best `k` of `entries` with their cosines, best first; equal cosines come in the order of `order`.
    ///
    /// Exact with [`Reach::All`], and with [`Reach::Near`] as long as no large segment holds many of `entries`; the answer says
    /// which it was. `entries` is a version's bitmap, intersected with a filter if there is one; entries without a vector are
    /// skipped. `question` need not have length 1.
    ///
    /// # Errors
    /// If the question is zero, not finite or of another dimension, or the engine fails.
    pub fn search(
        &self,
        entries: &RoaringBitmap,
        question: &[f32],
        k: usize,
        reach: Reach,
        order: &dyn TieOrder,
    ) -> Result<Nearest, VectorError> {
        search(&self.blocks, entries, &Question::new(question, self.dimensions)?, k, reach, order)
    }

    /// Returns the vector of `ordinal`, bit for bit, if there is one.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn vector_of(&self, ordinal: Ordinal) -> Result<Option<Vec<f16>>, VectorError> {
        for segment in &self.blocks.flat {
            if let Some(vector) = segment.vector_of(ordinal)? {
                return Ok(Some(vector));
            }
        }
        for segment in &self.blocks.clustered {
            if let Some(vector) = segment.vector_of(ordinal)? {
                return Ok(Some(vector));
            }
        }
        Ok(None)
    }

    /// Returns the ordinals that have a vector. Costs a union of the segments' bitmaps the first time, and nothing later.
    #[must_use]
    pub fn has(&self) -> &RoaringBitmap {
        self.blocks.held.get_or_init(|| {
            let flat = self.blocks.flat.iter().fold(RoaringBitmap::new(), |all, segment| all | segment.bitmap());
            self.blocks.clustered.iter().fold(flat, |all, segment| all | segment.bitmap())
        })
    }

    /// Returns those of `expected` without a vector: these must be made again after damage.
    #[must_use]
    pub fn missing(&self, expected: &RoaringBitmap) -> Vec<Ordinal> {
        (expected - self.has()).iter().map(Ordinal::new).collect()
    }

    /// Returns the number of vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.flat.iter().map(|segment| segment.len()).sum::<usize>() + self.clustered()
    }

    /// Returns how many vectors are in segments whose lists a search may skip.
    #[must_use]
    pub fn clustered(&self) -> usize {
        self.blocks.clustered.iter().map(|segment| segment.len()).sum()
    }

    /// Returns whether there is no vector at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of components of every vector.
    #[must_use]
    pub const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the number of segments.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.blocks.flat.len() + self.blocks.clustered.len()
    }
}

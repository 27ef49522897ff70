//! The segments of a writer or a reader, each with its file.
//!
//! In: the rows of files, and rows of the tail. Out: segments, and a [`VectorSet`] of them.
//!
//! **Invariant:** a row is in one segment. If it is in two files, the higher number counts: files are only rewritten under higher
//! numbers or their own.

use super::clustered::ClusteredSegment;
use super::format::{SealedRows, Shape, read_sealed};
use super::segment::VectorSegment;
use super::set::Blocks;
use super::{Backend, VectorError, VectorSet, files};
use roaring::RoaringBitmap;
use std::path::Path;
use std::sync::Arc;

/// A sealed file's segment.
#[derive(Clone)]
pub(super) struct Sealed {
    /// The file's number.
    pub(super) number: u32,
    pub(super) block: Block,
    /// The ordinals of the block's rows.
    pub(super) ordinals: Arc<RoaringBitmap>,
}

impl Sealed {
    /// Builds the segment over at least one row.
    pub(super) fn new(number: u32, backend: Backend, rows: &SealedRows) -> Result<Self, VectorError> {
        Ok(Self { number, block: Block::new(backend, rows)?, ordinals: Arc::new(rows.bitmap()) })
    }
}

/// A segment of either kind.
#[derive(Clone)]
pub(super) enum Block {
    Flat(Arc<VectorSegment>),
    Clustered(Arc<ClusteredSegment>),
}

impl Block {
    fn new(backend: Backend, rows: &SealedRows) -> Result<Self, VectorError> {
        Ok(match rows {
            SealedRows::Flat(rows) => Self::Flat(Arc::new(VectorSegment::new(backend, rows)?)),
            SealedRows::Clustered(rows) => Self::Clustered(Arc::new(ClusteredSegment::new(backend, rows)?)),
        })
    }

    pub(super) const fn is_clustered(&self) -> bool {
        matches!(self, Self::Clustered(_))
    }

    /// Returns the rows of the segment.
    pub(super) fn rows(&self) -> Result<SealedRows, VectorError> {
        Ok(match self {
            Self::Flat(segment) => SealedRows::Flat(segment.rows()?),
            Self::Clustered(segment) => SealedRows::Clustered(segment.rows()?),
        })
    }
}

/// Returns the rows of a sealed file.
pub(super) fn read(path: &Path, shape: Shape) -> Result<SealedRows, VectorError> {
    let (mut file, length) = files::open(path)?;
    read_sealed(&mut file, length, shape, path)
}

/// Sealed segments, and the tail's rows in small ones.
pub(super) struct Segments {
    pub(super) dimensions: usize,
    pub(super) backend: Backend,
    pub(super) sealed: Vec<Sealed>,
    /// Each at least twice as long as the next, so there are few.
    pub(super) small: Vec<Arc<VectorSegment>>,
}

impl Segments {
    pub(super) const fn new(dimensions: usize, backend: Backend) -> Self {
        Self { dimensions, backend, sealed: Vec::new(), small: Vec::new() }
    }

    /// Adds a small segment, and merges small ones until each is at least twice as long as the next: a row is copied at most once
    /// per doubling.
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

    /// Adds a sealed file, without the rows that `held` has already, and adds its ordinals to `held`; returns whether it had new
    /// ones.
    ///
    /// It takes some 8 ms for 4 MB, two thirds of it for building the engine; a second thread gains nothing, because both wait
    /// for memory.
    pub(super) fn load(
        &mut self,
        path: &Path,
        number: u32,
        shape: Shape,
        held: &mut RoaringBitmap,
    ) -> Result<bool, VectorError> {
        let rows = read(path, shape)?.admit(held);
        if !rows.is_empty() {
            self.sealed.push(Sealed::new(number, self.backend, &rows)?);
        }
        Ok(!rows.is_empty())
    }

    /// Adds the rows of a sealed file, which have precedence over those of files with smaller numbers: duplicates are removed
    /// there.
    pub(super) fn adopt(&mut self, rows: SealedRows, number: u32) -> Result<(), VectorError> {
        let mut held = RoaringBitmap::new();
        for sealed in self.sealed.iter().filter(|sealed| sealed.number > number) {
            held |= &*sealed.ordinals;
        }
        let rows = rows.admit(&mut held);
        if rows.is_empty() {
            return Ok(());
        }
        let (own, mut kept) = (rows.bitmap(), Vec::with_capacity(self.sealed.len() + 1));
        for sealed in &self.sealed {
            if sealed.number > number || sealed.ordinals.is_disjoint(&own) {
                kept.push(sealed.clone());
                continue;
            }
            let rest = sealed.block.rows()?.without(&own);
            if !rest.is_empty() {
                kept.push(Sealed::new(sealed.number, self.backend, &rest)?);
            }
        }
        kept.push(Sealed::new(number, self.backend, &rows)?);
        self.sealed = kept;
        Ok(())
    }

    /// Returns the ordinals of all sealed segments.
    pub(super) fn sealed_ordinals(&self) -> RoaringBitmap {
        self.sealed.iter().fold(RoaringBitmap::new(), |all, sealed| all | &*sealed.ordinals)
    }

    pub(super) fn set(&self) -> VectorSet {
        let mut blocks = Blocks::default();
        for sealed in &self.sealed {
            match &sealed.block {
                Block::Flat(segment) => blocks.flat.push(segment.clone()),
                Block::Clustered(segment) => blocks.clustered.push(segment.clone()),
            }
        }
        blocks.flat.extend(self.small.iter().cloned());
        VectorSet::new(self.dimensions, blocks)
    }
}

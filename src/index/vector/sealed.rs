//! The segments of a writer or a reader, each with its file.
//!
//! In: the rows of files, and rows of the tail. Out: segments, and a [`VectorSet`] of them.
//!
//! **Invariant:** a row is in one segment. If it is in two files, the higher number counts: files are only rewritten under higher
//! numbers or their own.

use super::clustered::ClusteredSegment;
use super::earlier;
use super::format::{CLUSTERED, FORMAT, HEAD, SealedRows, Shape, number};
use super::segment::VectorSegment;
use super::set::Blocks;
use super::stored::{self, StoredFile};
use super::{Backend, VectorError, VectorSet, files};
use roaring::RoaringBitmap;
use std::cmp::Reverse;
use std::os::unix::fs::FileExt;
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
    /// Builds the segment over rows in memory, of which there is one at least.
    pub(super) fn new(number: u32, backend: Backend, rows: &SealedRows) -> Result<Self, VectorError> {
        Ok(Self { number, block: Block::new(backend, rows)?, ordinals: Arc::new(rows.bitmap()) })
    }

    /// Returns the segment of a file, whose rows have these ordinals.
    pub(super) fn stored(
        number: u32,
        backend: Backend,
        shape: Shape,
        (file, ordinals): (StoredFile, Vec<u32>),
    ) -> Self {
        let held = Arc::new(file.bitmap().clone());
        Self { number, block: Block::stored(backend, shape, Arc::new(file), &ordinals), ordinals: held }
    }

    /// Writes rows beside `path`, durably, and returns their segment; the file is yet to be put in place.
    pub(super) fn write_beside(
        path: &Path,
        number: u32,
        backend: Backend,
        shape: Shape,
        rows: &SealedRows,
    ) -> Result<Self, VectorError> {
        Ok(Self::stored(number, backend, shape, stored::write_beside(path, shape, rows)?))
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

    fn stored(backend: Backend, shape: Shape, file: Arc<StoredFile>, ordinals: &[u32]) -> Self {
        let (dimensions, blocks) = (shape.components(), 0..file.blocks());
        if file.is_in_lists() {
            Self::Clustered(Arc::new(ClusteredSegment::stored(backend, dimensions, file, ordinals)))
        } else {
            Self::Flat(Arc::new(VectorSegment::stored(backend, dimensions, file, blocks, ordinals)))
        }
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

/// What a sealed file turned out to be.
pub(super) enum Opened {
    /// A file that is read as it is needed, and the ordinals of its rows.
    Stored(StoredFile, Vec<u32>),
    /// The rows of a file that an earlier build wrote.
    Earlier(SealedRows),
}

/// Opens a sealed file.
pub(super) fn open(path: &Path, shape: Shape) -> Result<Opened, VectorError> {
    let (mut file, length) = files::open(path)?;
    let mut format = [0; 12];
    if length >= HEAD as u64 {
        file.read_exact_at(&mut format, 0).map_err(VectorError::io("read", path))?;
    }
    // A wrong byte here leads to a sum that does not fit.
    if [FORMAT, CLUSTERED].contains(&number(&format[8..])) {
        return earlier::read_sealed(&mut file, length, shape, path).map(Opened::Earlier);
    }
    let (file, ordinals) = StoredFile::open(file, length, shape, path)?;
    Ok(Opened::Stored(file, ordinals))
}

/// Returns the rows of a sealed file.
pub(super) fn read(path: &Path, shape: Shape) -> Result<SealedRows, VectorError> {
    match open(path, shape)? {
        Opened::Earlier(rows) => Ok(rows),
        Opened::Stored(file, ordinals) => {
            file.check()?;
            Block::stored(Backend::Flat, shape, Arc::new(file), &ordinals).rows()
        }
    }
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

    /// Opens the sealed file of a number.
    pub(super) fn open(&self, directory: &Path, number: u32, shape: Shape) -> Result<Sealed, VectorError> {
        match open(&files::sealed_path(directory, number), shape)? {
            Opened::Stored(file, ordinals) => Ok(Sealed::stored(number, self.backend, shape, (file, ordinals))),
            Opened::Earlier(rows) => Sealed::new(number, self.backend, &rows),
        }
    }

    /// Leaves out what is in two files, so that it counts in that of the higher number alone.
    ///
    /// Costs nothing but a look at bitmaps where a file is in others as a whole, or not at all.
    ///
    /// # Errors
    /// When a file of which a part is left out cannot be read; then all stays as it is.
    pub(super) fn settle(&mut self) -> Result<(), VectorError> {
        self.sealed.sort_unstable_by_key(|sealed| Reverse(sealed.number));
        let (mut held, mut settled) = (RoaringBitmap::new(), Vec::with_capacity(self.sealed.len()));
        for sealed in &self.sealed {
            let twice = sealed.ordinals.intersection_len(&held);
            if twice == 0 {
                settled.push(sealed.clone());
            } else if twice < sealed.ordinals.len() {
                let rest = sealed.block.rows()?.without(&held);
                settled.push(Sealed::new(sealed.number, self.backend, &rest)?);
            }
            held |= &*sealed.ordinals;
        }
        self.sealed = settled;
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

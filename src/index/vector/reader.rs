//! Follows the files of a writer, in this process or another; never writes.
//!
//! In: a directory. Out: a [`VectorSet`] with every row of a sealed file, and of a frame that is whole.
//!
//! **Invariant:** the result of `refresh` holds all rows that were durable when it was called, and none twice. An incomplete
//! frame at the end does not count yet; the next `refresh` reads it again.

use super::files::{self, Listing};
use super::format::{self, Ending, Shape};
use super::rows::Rows;
use super::sealed::Segments;
use super::segment::VectorSegment;
use super::writer::SEAL_ROWS;
use super::{Backend, VectorError, VectorSet, folder};
use roaring::RoaringBitmap;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How often a file that was removed between listing and opening (a sealed tail, or merged files) is looked up again.
const ATTEMPTS: usize = 64;

/// A reader of a directory of vectors.
pub struct VectorReader {
    directory: PathBuf,
    shape: Shape,
    segments: Segments,
    /// Numbers of the sealed files that were read and still exist.
    sealed: BTreeSet<u32>,
    /// The ordinals of the sealed files.
    held: RoaringBitmap,
    tail: Option<Tail>,
    /// Whether the segments changed since the set was made.
    changed: bool,
    set: VectorSet,
}

/// Tells whether a file was missing when it was to be read.
pub(super) fn is_gone(error: &VectorError) -> bool {
    matches!(error, VectorError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// The tail file up to the last read.
struct Tail {
    number: u32,
    file: File,
    /// The end of the last whole frame; 0 before the header was checked.
    bytes: u64,
    /// The ordinals it holds.
    held: RoaringBitmap,
}

impl VectorReader {
    /// Opens the set of a shape among those in a folder for reading; one that is not there yet is empty.
    ///
    /// # Errors
    /// When the file system refuses, a file is damaged or of another format, or there are files of other models alone.
    pub fn open(vectors: &Path, shape: Shape) -> Result<Self, VectorError> {
        Self::open_with(&folder::find(vectors, shape)?, shape, Backend::of_this_machine())
    }

    pub(super) fn open_with(directory: &Path, shape: Shape, backend: Backend) -> Result<Self, VectorError> {
        if shape.dimensions == 0 {
            return Err(VectorError::OtherDimensions { found: 0, expected: 1 });
        }
        let segments = Segments::new(shape.components(), backend);
        let mut reader = Self {
            directory: directory.into(),
            shape,
            set: segments.set(),
            segments,
            sealed: BTreeSet::new(),
            held: RoaringBitmap::new(),
            tail: None,
            changed: false,
        };
        reader.refresh()?;
        Ok(reader)
    }

    /// Reads what was appended since the last call; returns whether there was anything.
    ///
    /// # Errors
    /// If the file system fails, or a file is damaged or of another format or model; the set does not change then.
    pub fn refresh(&mut self) -> Result<bool, VectorError> {
        'look: for _ in 0..ATTEMPTS {
            let listing = Listing::read_settled(&self.directory)?;
            let fresh: Vec<u32> = listing.sealed.difference(&self.sealed).copied().collect();
            match self.adopt(&fresh) {
                Err(error) if is_gone(&error) => continue 'look,
                adopted => adopted?,
            }
            self.forget(&listing.sealed);
            self.held = self.segments.sealed_ordinals();
            if self.follow(listing.tail)? {
                self.read_tail()?;
                break;
            }
        }
        let changed = std::mem::take(&mut self.changed);
        if changed {
            self.set = self.segments.set();
        }
        Ok(changed)
    }

    /// Takes in sealed files by ascending numbers, so that one which went meanwhile is made up for by a higher one, opened after
    /// it.
    fn adopt(&mut self, numbers: &[u32]) -> Result<(), VectorError> {
        let mut fresh = Vec::with_capacity(numbers.len());
        for &number in numbers {
            fresh.push(self.segments.open(&self.directory, number, self.shape)?);
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let before = self.segments.sealed.clone();
        self.segments.sealed.extend(fresh);
        if let Err(error) = self.segments.settle() {
            self.segments.sealed = before;
            return Err(error);
        }
        self.sealed.extend(numbers);
        self.changed = true;
        Ok(())
    }

    /// Removes deleted files: their live rows are in other files, which were read.
    fn forget(&mut self, listed: &BTreeSet<u32>) {
        self.sealed.retain(|number| listed.contains(number));
        let before = self.segments.sealed.len();
        self.segments.sealed.retain(|sealed| listed.contains(&sealed.number));
        self.changed |= self.segments.sealed.len() != before;
    }

    /// Follows `number` as the tail; returns whether it still existed.
    fn follow(&mut self, number: Option<u32>) -> Result<bool, VectorError> {
        if self.tail.as_ref().map(|tail| tail.number) == number {
            return Ok(true);
        }
        self.changed |= !self.segments.small.is_empty();
        self.segments.small.clear();
        self.tail = None;
        let Some(number) = number else { return Ok(true) };
        let path = files::tail_path(&self.directory, number);
        match File::open(&path) {
            Ok(file) => {
                self.tail = Some(Tail { number, file, bytes: 0, held: RoaringBitmap::new() });
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(VectorError::Io { action: "open", path, source }),
        }
    }

    /// Adds the whole frames after the known ones.
    fn read_tail(&mut self) -> Result<(), VectorError> {
        let Some(tail) = &mut self.tail else { return Ok(()) };
        let path = files::tail_path(&self.directory, tail.number);
        let most = self.shape.tail_bytes(SEAL_ROWS) as u64;
        let mut bytes = Vec::new();
        let read = tail.file.seek(SeekFrom::Start(tail.bytes)).and_then(|_| {
            // A writer that could not seal continues only after it did, so no tail is longer.
            Read::by_ref(&mut tail.file).take(most + 1).read_to_end(&mut bytes)
        });
        read.map_err(VectorError::io("read", &path))?;
        if bytes.len() as u64 + tail.bytes > most {
            return Err(VectorError::damaged(path, "it is longer than a tail can be"));
        }
        let mut frames = bytes.as_slice();
        if tail.bytes == 0 {
            format::check_tail_header(frames, self.shape, &path)?;
            tail.bytes = format::TAIL_HEADER as u64;
            frames = &frames[format::TAIL_HEADER..];
        }
        let (found, used, ending) = format::decode_frames(frames, self.shape);
        if ending == Ending::Damaged {
            return Err(VectorError::damaged(path, "a frame's checksum does not fit"));
        }
        let mut held = &self.held | &tail.held;
        let fresh: Vec<Rows> = found.into_iter().map(|rows| rows.admit(&mut held)).collect();
        let rows = Rows::merge(self.shape.components(), &fresh);
        if !rows.is_empty() {
            self.segments.push_small(VectorSegment::new(self.segments.backend, &rows)?)?;
            self.changed = true;
        }
        tail.bytes += used as u64;
        tail.held |= rows.bitmap();
        Ok(())
    }

    /// Returns the vectors as of the last `refresh`, as a value that later calls do not change.
    #[must_use]
    pub fn set(&self) -> VectorSet {
        self.set.clone()
    }
}

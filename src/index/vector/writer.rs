//! Appends vectors, and seals the tail when it is full. One process has one writer, under the store's lock.
//!
//! In: rows, once per physical commit. Out: durable files, and a [`VectorSet`] with the rows in it.
//!
//! **Invariant:** when `append` returns, its rows are on disk. If it fails, the set does not change, and rows on the disk are
//! truncated at the next `open` or are orphans. The version record, which is written later, publishes them.
//!
//! `open` repairs: it removes temporary files, drops a sealed tail, truncates a torn one, and sets damaged files aside. The rows
//! of a damaged file are then missing ([`VectorSet::missing`]) and can be appended again from the memo: a vector is a function of
//! text and model, so the same ordinal gets the same bits. A row that is already there is skipped, and another vector for its
//! ordinal is refused.

use super::files::{self, Listing};
use super::format::SealedRows;
use super::format::{self, Ending, Shape};
use super::rows::Rows;
use super::sealed::{self, Opened, Sealed, Segments};
use super::segment::VectorSegment;
use super::upkeep::Upkeep;
use super::{Backend, VectorError, VectorSet, folder};
use dataflows::embed::Vector;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Rows of a full tail: with 256 components a sealed file of 4 MB, whose engine is built in some 10 ms.
pub(super) const SEAL_ROWS: usize = 8192;

/// The repairs of `open`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Healed {
    /// Bytes of a torn frame that were truncated.
    pub cut_bytes: u64,
    /// Damaged files, under their new names.
    pub set_aside: Vec<PathBuf>,
}

/// The one writer of a directory of vectors.
pub struct VectorWriter {
    pub(super) directory: PathBuf,
    pub(super) shape: Shape,
    pub(super) seal_rows: usize,
    pub(super) segments: Segments,
    /// The ordinals that have a vector.
    pub(super) held: RoaringBitmap,
    /// The number of the tail, or of the one that the next row creates.
    pub(super) number: u32,
    pub(super) tail: Option<Tail>,
    /// Whether a write failed in the middle.
    pub(super) interrupted: bool,
    pub(super) upkeep: Upkeep,
    healed: Healed,
    pub(super) set: VectorSet,
}

/// The open tail file.
pub(super) struct Tail {
    pub(super) file: File,
    /// The end of the last whole frame.
    pub(super) bytes: u64,
    pub(super) rows: usize,
}

impl VectorWriter {
    /// Opens the set of a shape among those in a folder for writing, makes it if need be, and mends what a crash left behind.
    ///
    /// # Errors
    /// When the file system refuses, the files are of another format, or there are files of other models alone.
    pub fn open(vectors: &Path, shape: Shape) -> Result<Self, VectorError> {
        let directory = &folder::find(vectors, shape)?;
        Self::open_with(directory, shape, Backend::of_this_machine(), SEAL_ROWS)
    }

    pub(super) fn open_with(
        directory: &Path,
        shape: Shape,
        backend: Backend,
        seal_rows: usize,
    ) -> Result<Self, VectorError> {
        if shape.dimensions == 0 {
            return Err(VectorError::OtherDimensions { found: 0, expected: 1 });
        }
        folder::make(directory)?;
        let listing = Listing::read(directory)?;
        for path in &listing.temporary {
            fs::remove_file(path).map_err(VectorError::io("remove", path))?;
        }
        let segments = Segments::new(shape.components(), backend);
        let mut writer = Self {
            directory: directory.into(),
            shape,
            seal_rows,
            set: segments.set(),
            segments,
            held: RoaringBitmap::new(),
            number: listing.next_number(),
            tail: None,
            interrupted: false,
            upkeep: Upkeep::default(),
            healed: Healed::default(),
        };
        for &number in &listing.sealed {
            let path = files::sealed_path(directory, number);
            match writer.load(number, &path) {
                Err(VectorError::Damaged { reason, .. }) => writer.set_aside(&path, &reason)?,
                loaded => writer.segments.sealed.push(loaded?),
            }
        }
        let loaded: Vec<u32> = writer.segments.sealed.iter().map(|sealed| sealed.number).collect();
        writer.segments.settle()?;
        // A file all of whose rows are in one above it is what collecting left behind.
        let counts = |number: &u32| writer.segments.sealed.iter().any(|sealed| sealed.number == *number);
        for number in loaded.into_iter().filter(|number| !counts(number)) {
            files::remove(&files::sealed_path(directory, number))?;
        }
        writer.held = writer.segments.sealed_ordinals();
        for &number in &listing.stale {
            let path = files::tail_path(directory, number);
            fs::remove_file(&path).map_err(VectorError::io("remove", path))?;
        }
        if let Some(number) = listing.tail {
            writer.load_tail(number)?;
        }
        writer.set = writer.segments.set();
        Ok(writer)
    }

    /// Opens a sealed file, all of which is checked; one of an earlier build is written anew, under its own number.
    fn load(&self, number: u32, path: &Path) -> Result<Sealed, VectorError> {
        let (backend, shape) = (self.segments.backend, self.shape);
        match sealed::open(path, shape)? {
            Opened::Stored(file, ordinals) => {
                file.check()?;
                Ok(Sealed::stored(number, backend, shape, (file, ordinals)))
            }
            Opened::Earlier(rows) => {
                let sealed = Sealed::write_beside(path, number, backend, shape, &rows)?;
                files::put_in_place(path)?;
                files::sync_directory(&self.directory)?;
                Ok(sealed)
            }
        }
    }

    fn load_tail(&mut self, number: u32) -> Result<(), VectorError> {
        let path = files::tail_path(&self.directory, number);
        let bytes = match files::read_whole(&path).and_then(|bytes| {
            format::check_tail_header(&bytes, self.shape, &path)?;
            Ok(bytes)
        }) {
            Err(VectorError::Damaged { reason, .. }) => return self.set_aside(&path, &reason),
            bytes => bytes?,
        };
        let (frames, used, ending) = format::decode_frames(&bytes[format::TAIL_HEADER..], self.shape);
        let good = (format::TAIL_HEADER + used) as u64;
        let mut file = OpenOptions::new().read(true).write(true).open(&path).map_err(VectorError::io("open", &path))?;
        if ending == Ending::Damaged {
            let aside = files::aside_path(&path);
            fs::copy(&path, &aside).map_err(VectorError::io("copy", &path))?;
            tracing::warn!(path = %path.display(), "a frame of the vector tail is damaged; what follows it is cut");
            self.healed.set_aside.push(aside);
        }
        if ending != Ending::Whole {
            self.healed.cut_bytes += bytes.len() as u64 - good;
            let cut = file.set_len(good).and_then(|()| file.sync_all());
            cut.map_err(VectorError::io("cut", &path))?;
        }
        file.seek(SeekFrom::Start(good)).map_err(VectorError::io("open", &path))?;
        let frames: Vec<Rows> = frames.into_iter().map(|rows| rows.admit(&mut self.held)).collect();
        let rows = Rows::merge(self.shape.components(), &frames);
        if !rows.is_empty() {
            self.segments.push_small(VectorSegment::new(self.segments.backend, &rows)?)?;
        }
        self.number = number;
        self.tail = Some(Tail { file, bytes: good, rows: rows.len() });
        Ok(())
    }

    fn set_aside(&mut self, path: &Path, reason: &str) -> Result<(), VectorError> {
        tracing::warn!(path = %path.display(), reason, "a vector file is damaged and set aside");
        self.healed.set_aside.push(files::set_aside(path)?);
        Ok(())
    }

    /// Appends rows in any order, durably, and adds them to the set.
    ///
    /// The cost is one write and one sync, and occasionally the sealing of a full tail.
    ///
    /// # Errors
    /// If a vector is of another dimension, an ordinal has another vector already, or the file system fails.
    pub fn append(&mut self, rows: &[(Ordinal, Vector)]) -> Result<(), VectorError> {
        if self.interrupted {
            return Err(VectorError::Interrupted { path: self.directory.clone() });
        }
        let fresh = self.fresh(rows)?;
        let mut rest = fresh.as_slice();
        while !rest.is_empty() {
            let filled = self.tail.as_ref().map_or(0, |tail| tail.rows);
            let (now, later) = rest.split_at(rest.len().min(self.seal_rows.saturating_sub(filled)));
            let mut rows = Rows::new(self.shape.components());
            now.iter().for_each(|(ordinal, vector)| rows.push(*ordinal, vector));
            if filled == 0 && rows.len() == self.seal_rows {
                self.seal(rows)?;
            } else if rows.is_empty() {
                self.seal_tail()?;
            } else {
                self.append_frame(&rows)?;
            }
            rest = later;
        }
        if self.tail.as_ref().is_some_and(|tail| tail.rows >= self.seal_rows)
            && let Err(error) = self.seal_tail()
        {
            // The rows are safe in the tail, and the next append tries again.
            tracing::warn!(%error, "the full vector tail could not be sealed");
        }
        Ok(())
    }

    /// Returns the rows that are not held yet, by ordinal.
    fn fresh<'a>(&self, rows: &'a [(Ordinal, Vector)]) -> Result<Vec<&'a (Ordinal, Vector)>, VectorError> {
        let expected = self.shape.components();
        if let Some((_, odd)) = rows.iter().find(|(_, vector)| vector.dimensions() != expected) {
            return Err(VectorError::OtherDimensions { found: odd.dimensions(), expected });
        }
        let mut fresh: Vec<&(Ordinal, Vector)> = Vec::with_capacity(rows.len());
        for row in rows {
            if !self.held.contains(row.0.get()) {
                fresh.push(row);
            } else if self.set.vector_of(row.0)?.is_none_or(|held| held != row.1.components()) {
                return Err(VectorError::Conflict { ordinal: row.0 });
            }
        }
        fresh.sort_by_key(|(ordinal, _)| *ordinal);
        if let Some(twins) = fresh.windows(2).find(|twins| twins[0].0 == twins[1].0 && twins[0].1 != twins[1].1) {
            return Err(VectorError::Conflict { ordinal: twins[0].0 });
        }
        fresh.dedup_by_key(|(ordinal, _)| *ordinal);
        Ok(fresh)
    }

    fn append_frame(&mut self, rows: &Rows) -> Result<(), VectorError> {
        let segment = VectorSegment::new(self.segments.backend, rows)?;
        let path = files::tail_path(&self.directory, self.number);
        let frame = format::encode_frame(self.shape, rows);
        let tail = match &mut self.tail {
            Some(tail) => tail,
            none => none.insert(open_tail(&path, self.shape)?),
        };
        let written = tail.file.write_all(&frame).and_then(|()| tail.file.sync_data());
        if let Err(source) = written {
            // The content of the file is unknown now, so nothing more is written to it before it is read again.
            self.interrupted = true;
            let _ = tail.file.set_len(tail.bytes);
            return Err(VectorError::Io { action: "write", path, source });
        }
        tail.bytes += frame.len() as u64;
        tail.rows += rows.len();
        self.held |= rows.bitmap();
        // From here on the rows are durable; if the merge fails, reading the files again repairs the state.
        if let Err(error) = self.segments.push_small(segment) {
            self.interrupted = true;
            return Err(error);
        }
        self.set = self.segments.set();
        Ok(())
    }

    /// Seals the tail's rows.
    pub(super) fn seal_tail(&mut self) -> Result<(), VectorError> {
        let rows = self.tail_rows()?;
        self.seal(rows)
    }

    /// Returns the tail's rows.
    pub(super) fn tail_rows(&self) -> Result<Rows, VectorError> {
        let parts: Vec<Rows> = self.segments.small.iter().map(|small| small.rows()).collect::<Result<_, _>>()?;
        Ok(Rows::merge(self.shape.components(), &parts))
    }

    /// Writes `rows` as the sealed file of this number, and starts the next number: its tail is empty.
    pub(super) fn seal(&mut self, rows: Rows) -> Result<(), VectorError> {
        self.next_number()?;
        self.give_up_sealing();
        let rows = SealedRows::Flat(rows);
        let path = files::sealed_path(&self.directory, self.number);
        self.put_sealed(Sealed::write_beside(&path, self.number, self.segments.backend, self.shape, &rows)?)
    }

    /// Puts the sealed file of this number, which a thread wrote, in place, and starts the next number.
    pub(super) fn put_sealed(&mut self, sealed: Sealed) -> Result<(), VectorError> {
        let next = self.next_number()?;
        let path = files::sealed_path(&self.directory, self.number);
        if let Err(error) = files::put_in_place(&path).and_then(|()| files::sync_directory(&self.directory)) {
            // Renamed but possibly not durable: only reading the directory again tells.
            self.interrupted |= path.exists();
            return Err(error);
        }
        self.held |= &*sealed.ordinals;
        self.segments.sealed.push(sealed);
        self.segments.small.clear();
        if self.tail.take().is_some() {
            // The sealed file counts from now on; the next start removes a leftover tail.
            let _ = fs::remove_file(files::tail_path(&self.directory, self.number));
        }
        self.number = next;
        self.set = self.segments.set();
        Ok(())
    }

    fn next_number(&self) -> Result<u32, VectorError> {
        self.number.checked_add(1).ok_or_else(|| {
            VectorError::damaged(files::tail_path(&self.directory, self.number), "no number is left for its successor")
        })
    }

    /// Reserves so many numbers for rewritten files, and returns the first of them: they are above those of all sealed files and
    /// below that of the next tail.
    pub(super) fn reserve(&mut self, count: usize) -> Result<u32, VectorError> {
        match &self.tail {
            Some(tail) if tail.rows > 0 => self.seal_tail()?,
            // It stays behind, so that its number stays in use, and is ignored once there is a higher one.
            Some(_) => {
                self.tail = None;
                self.number = self.number.saturating_add(1);
            }
            None => {}
        }
        let first = self.number;
        let next = u32::try_from(count).ok().and_then(|count| first.checked_add(count));
        self.number = next.ok_or_else(|| {
            VectorError::damaged(files::tail_path(&self.directory, first), "no number is left for its successors")
        })?;
        Ok(first)
    }

    /// Returns the vectors appended so far, as a value that later appends do not change.
    #[must_use]
    pub fn set(&self) -> VectorSet {
        self.set.clone()
    }

    /// Returns the vector of `ordinal`, bit for bit, if there is one.
    ///
    /// # Errors
    /// When the engine refuses.
    pub fn vector_of(&self, ordinal: Ordinal) -> Result<Option<Vec<half::f16>>, VectorError> {
        self.set.vector_of(ordinal)
    }

    /// Returns the ordinals that have a vector.
    #[must_use]
    pub const fn held(&self) -> &RoaringBitmap {
        &self.held
    }

    /// Returns the number above every ordinal with a vector: orphans of a crash are never reused.
    #[must_use]
    pub fn next_ordinal(&self) -> u32 {
        self.held.max().map_or(0, |last| last.saturating_add(1))
    }

    /// Returns the repairs of `open`.
    #[must_use]
    pub const fn healed(&self) -> &Healed {
        &self.healed
    }
}

/// Creates an empty tail file, durably, and opens it after its header.
pub(super) fn open_tail(path: &Path, shape: Shape) -> Result<Tail, VectorError> {
    let header = format::encode_tail_header(shape);
    files::write_whole(path, &header)?;
    let mut file = OpenOptions::new().write(true).open(path).map_err(VectorError::io("open", path))?;
    let bytes = header.len() as u64;
    file.seek(SeekFrom::Start(bytes)).map_err(VectorError::io("open", path))?;
    Ok(Tail { file, bytes, rows: 0 })
}

//! The version log: one append-only file, the commit point of everything.
//!
//! In: groups of records. Out: the same groups, in order, to this and to other processes.
//!
//! ```text
//! header   "tidemlog" format:u32 sum:u32               sum: the first 4 bytes of BLAKE3 of all bytes before it;
//!                                                      format 1, 2 from the first drop of a version on, 3 from the
//!                                                      first move of a view on that has a time, 4 from the first
//!                                                      recount on, and 5 from the first version on that has tokens in
//!                                                      more than two fields
//! frame    length:u32 check:u16 sum:u64 payload        one group; all numbers little-endian
//!          check: the first 2 bytes of BLAKE3 of `length`; sum: the first 8 bytes of BLAKE3 of `length` and payload
//! ```
//!
//! **Invariant:** a group is in the log as a whole or not at all: one frame, one write, one sync. The frames up to
//! [`LogFile::end`] are whole and stay. Only the header is overwritten: its format rises, in place and durably, before the first
//! group that a build of the current format could not read. Such a build then reports the format instead of damage.
//!
//! A crash can tear only the last group, so bytes that are no frame are the *tail* if no whole frame follows: the next writer
//! truncates it, readers stop before it. If a whole frame does follow, something else damaged the file, and truncating would lose
//! published groups: that is an error. `check` keeps the search for a later frame cheap: a random position passes it once in
//! 65,536 times, and only then are bytes hashed.

pub(crate) mod record;

use crate::codec::{CodecError, Reader};
use crate::error::ArchiveError;
use crate::history::{Chain, FIRST_FORMAT, Group, History, LISTED_FORMAT, Staging};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The newest format that this build reads and writes.
pub const FORMAT: u32 = LISTED_FORMAT;

const MAGIC: &[u8; 8] = b"tidemlog";
const HEADER: usize = 16;
const FRAME_HEADER: usize = 14;

/// Bytes that the search for a whole frame after a broken one may hash. No crash comes near it, only a forged file, and that is
/// refused and not truncated.
const SEARCH_BYTES: usize = 1 << 28;

/// The log, open for reading or writing.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    path: PathBuf,
    /// The end of the last whole frame.
    end: u64,
    chain: Chain,
    format: u32,
    /// Whether this handle may append, and whether the state of the file's end is known.
    writing: Writing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Writing {
    Never,
    Settled,
    Unsettled,
}

impl LogFile {
    /// Opens a log for reading.
    pub(crate) fn open_reader(path: &Path) -> Result<Self, ArchiveError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ArchiveError::Missing { path: path.to_path_buf() });
            }
            Err(error) => return Err(ArchiveError::io("open", path)(error)),
        };
        Self::begin(file, path, Writing::Never)
    }

    /// Opens a log for writing, and creates it if there is none.
    pub(crate) fn create_or_open_writer(path: &Path) -> Result<Self, ArchiveError> {
        if !path.try_exists().map_err(ArchiveError::io("look for", path))? {
            write_whole(path, &header(FIRST_FORMAT))?;
        }
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(ArchiveError::io("open", path))?;
        Self::begin(file, path, Writing::Settled)
    }

    /// Checks the header and positions after it.
    fn begin(mut file: File, path: &Path, writing: Writing) -> Result<Self, ArchiveError> {
        let foreign = || ArchiveError::Foreign { path: path.to_path_buf() };
        let mut bytes = [0; HEADER];
        match file.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(foreign()),
            Err(error) => return Err(ArchiveError::io("read", path)(error)),
        }
        let found = u32::from_le_bytes(bytes[8..12].try_into().expect("the format number is four bytes"));
        if bytes != header(found) {
            return Err(foreign());
        }
        if !(FIRST_FORMAT..=FORMAT).contains(&found) {
            return Err(ArchiveError::Format { path: path.to_path_buf(), found, reads: FORMAT });
        }
        Ok(Self { file, path: path.to_path_buf(), end: HEADER as u64, chain: [0; 16], format: found, writing })
    }

    /// Returns the end of the last whole frame.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Returns the file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads from the last whole frame into `history`; returns the bytes of tail after the last one.
    pub(crate) fn read_on(&mut self, history: &mut History) -> Result<u64, ArchiveError> {
        let found = self.file.metadata().map_err(ArchiveError::io("measure", &self.path))?.len();
        if found < self.end {
            return Err(ArchiveError::Shrank { path: self.path.clone(), expected: self.end, found });
        }
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.end))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .map_err(ArchiveError::io("read", &self.path))?;
        let start = self.end;
        let damaged = |at: usize, reason: String| ArchiveError::Damaged {
            path: self.path.clone(),
            offset: start + at as u64,
            reason,
        };
        let mut at = 0;
        while let Some(payload) = frame(&bytes[at..]) {
            let payload = at + payload.start..at + payload.end;
            let group = decode_group(&bytes[payload.clone()], history).map_err(|why| damaged(at, why.to_string()))?;
            self.chain = link(self.chain, &bytes[at..payload.start]);
            at = payload.end;
            self.end = start + at as u64;
            history.take(group, self.chain, self.end);
        }
        match whole_frame_after(&bytes[at..]) {
            Later::None => Ok((bytes.len() - at) as u64),
            Later::At(later) => Err(damaged(
                at,
                format!("no whole group is there, but one follows at byte {}", start + (at + later) as u64),
            )),
            Later::Unknown => Err(damaged(at, "no whole group is there, and what follows is no torn write".into())),
        }
    }

    /// Truncates the bytes after the last whole frame.
    pub(crate) fn cut_tail(&mut self) -> Result<(), ArchiveError> {
        self.file
            .set_len(self.end)
            .and_then(|()| self.file.sync_all())
            .map_err(ArchiveError::io("cut the torn end of", &self.path))
    }

    /// Returns an error unless this handle may append.
    pub(crate) fn may_append(&self) -> Result<(), ArchiveError> {
        match self.writing {
            Writing::Settled => Ok(()),
            Writing::Never => Err(ArchiveError::ReadOnly { path: self.path.clone() }),
            Writing::Unsettled => Err(ArchiveError::Unsettled { path: self.path.clone() }),
        }
    }

    /// Raises the format in the header to at least this one, durably: sixteen bytes, which no disk writes in part.
    ///
    /// Readers with the log open continue; readers that open it later must know the format.
    pub(crate) fn raise_format(&mut self, format: u32) -> Result<(), ArchiveError> {
        self.may_append()?;
        if self.format >= format {
            return Ok(());
        }
        // The log's own handle can only append.
        let raised = OpenOptions::new().write(true).open(&self.path).and_then(|mut file| {
            file.write_all(&header(format))?;
            file.sync_data()
        });
        raised.map_err(ArchiveError::io("write the header of", &self.path))?;
        self.format = format;
        Ok(())
    }

    /// Appends one group and syncs it; returns the chain up to it.
    ///
    /// A failed write is undone, so a full disk leaves a usable handle. After a failed sync the state of the disk is unknown
    /// (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020): the handle refuses writes until the
    /// log is read again.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<Chain, ArchiveError> {
        self.may_append()?;
        let length = u32::try_from(payload.len()).map_err(|_| ArchiveError::GroupTooLarge { bytes: payload.len() })?;
        let mut bytes = Vec::with_capacity(FRAME_HEADER + payload.len());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&check(length));
        bytes.extend_from_slice(&sum(length, payload));
        bytes.extend_from_slice(payload);

        self.writing = Writing::Unsettled;
        if let Err(error) = self.file.write_all(&bytes) {
            if self.cut_tail().is_ok() {
                self.writing = Writing::Settled;
            }
            return Err(ArchiveError::io("append to", &self.path)(error));
        }
        self.file.sync_data().map_err(ArchiveError::io("sync", &self.path))?;
        self.writing = Writing::Settled;
        self.chain = link(self.chain, &bytes[..FRAME_HEADER]);
        self.end += bytes.len() as u64;
        Ok(self.chain)
    }
}

/// Reads all records of a group on top of `history`.
pub(crate) fn decode_group(payload: &[u8], history: &History) -> Result<Group, CodecError> {
    let mut staging = Staging::new(history);
    let mut reader = Reader::new(payload);
    while !reader.rest().is_empty() {
        record::decode(&mut reader, &mut staging)?;
    }
    Ok(staging.finish())
}

/// Returns the range of the payload, if `bytes` begin with a whole frame.
fn frame(bytes: &[u8]) -> Option<Range<usize>> {
    let payload = announced(bytes)?;
    let length = payload.len() as u32;
    (bytes[6..FRAME_HEADER] == sum(length, &bytes[payload.clone()])).then_some(payload)
}

/// Returns the announced range of the payload, if `bytes` begin with a valid frame header.
fn announced(bytes: &[u8]) -> Option<Range<usize>> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    let end = FRAME_HEADER.checked_add(length as usize)?;
    (length > 0 && end <= bytes.len() && bytes[4..6] == check(length)).then_some(FRAME_HEADER..end)
}

/// Whether a whole frame begins behind the first byte.
enum Later {
    None,
    At(usize),
    /// There are more bytes to hash than any torn write explains.
    Unknown,
}

fn whole_frame_after(bytes: &[u8]) -> Later {
    let mut hashed = 0;
    for at in 1..bytes.len() {
        let Some(payload) = announced(&bytes[at..]) else { continue };
        hashed += payload.len();
        if hashed > SEARCH_BYTES {
            return Later::Unknown;
        }
        if frame(&bytes[at..]).is_some() {
            return Later::At(at);
        }
    }
    Later::None
}

fn header(format: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&format.to_le_bytes());
    let sum = blake3::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&sum.as_bytes()[..4]);
    bytes
}

fn check(length: u32) -> [u8; 2] {
    let hash = blake3::hash(&length.to_le_bytes());
    [hash.as_bytes()[0], hash.as_bytes()[1]]
}

fn sum(length: u32, payload: &[u8]) -> [u8; 8] {
    let hash = blake3::Hasher::new().update(&length.to_le_bytes()).update(payload).finalize();
    hash.as_bytes()[..8].try_into().expect("a hash is longer than eight bytes")
}

/// Returns the chain after one more frame.
fn link(chain: Chain, frame_header: &[u8]) -> Chain {
    let hash = blake3::Hasher::new().update(&chain).update(frame_header).finalize();
    hash.as_bytes()[..16].try_into().expect("a hash is longer than sixteen bytes")
}

/// Writes a file under a temporary name, syncs and renames it: it exists as a whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let temporary = path.with_extension("tmp");
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // Best effort: the next writer removes the rest.
        let _ = fs::remove_file(&temporary);
        return Err(ArchiveError::io("write", path)(error));
    }
    match path.parent() {
        Some(folder) => sync_folder(folder),
        None => Ok(()),
    }
}

/// Syncs a folder, if the system can.
fn sync_folder(folder: &Path) -> Result<(), ArchiveError> {
    if cfg!(unix) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(ArchiveError::io("sync", folder))?;
    }
    Ok(())
}

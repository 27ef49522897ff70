//! The directory of vector files: its listing, and the few operations on it.
//!
//! In: a directory. Out: its numbered files, and durable writes.
//!
//! **Invariant:** the name of a file is enough: `seg-N` holds the rows of `tail-N`, so once `seg-N` exists `tail-N` is ignored.
//! Renaming `seg-N` into place is the one step that seals, and a crash before or after it neither loses nor doubles a row. So no
//! manifest is needed.
//!
//! Sealed files are rewritten in the same way, under a number above theirs and below the next tail's, and the old ones are
//! removed afterwards: without garbage rows, or in lists, or sorted by temperature. A reader that opens files by ascending
//! numbers finds each row in the old file or in the new one. If a row is in two files, the higher number counts. A number is
//! never used again.
//!
//! ```text
//! tail-0000000a.tmv          the open tail; at most one counts: the highest, if it is above every seg
//! seg-0000000a.tmv           sealed and immutable; written as seg-0000000a.tmv.tmp, synced, renamed, directory synced
//! seg-00000009.tmv.damaged   set aside by the writer; its number is not used again
//! ```

use super::VectorError;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How names of vector files end, but for what is set aside or being written.
pub(super) const SUFFIX: &str = ".tmv";
const TEMPORARY: &str = ".tmp";
const DAMAGED: &str = ".damaged";

/// Largest file that is read: far larger than any merged segment, and a bound for a hostile one.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The files at one moment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Listing {
    pub(super) sealed: BTreeSet<u32>,
    /// The tail that counts.
    pub(super) tail: Option<u32>,
    /// Tails that are already sealed.
    pub(super) stale: BTreeSet<u32>,
    /// The highest number of a damaged file that was set aside.
    pub(super) damaged: Option<u32>,
    pub(super) temporary: Vec<PathBuf>,
}

impl Listing {
    /// Reads the directory; a missing one is empty.
    pub(super) fn read(directory: &Path) -> Result<Self, VectorError> {
        let failed = || VectorError::io("list", directory);
        let mut listing = Self::default();
        let mut tails = BTreeSet::new();
        let mut sealed_up_to = None;
        let damaged = format!("{SUFFIX}{DAMAGED}");
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
            entries => entries.map_err(failed())?,
        };
        for entry in entries {
            let name = entry.map_err(failed())?.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.ends_with(TEMPORARY) {
                listing.temporary.push(directory.join(name));
            } else if let Some(number) = parse(name, "seg-", SUFFIX) {
                listing.sealed.insert(number);
                sealed_up_to = sealed_up_to.max(Some(number));
            } else if let Some(number) = parse(name, "tail-", SUFFIX) {
                tails.insert(number);
            } else if let Some(number) = parse(name, "seg-", &damaged) {
                listing.damaged = listing.damaged.max(Some(number));
                sealed_up_to = sealed_up_to.max(Some(number));
            } else if let Some(number) = parse(name, "tail-", &damaged) {
                // A tail with a damaged frame is copied aside and stays in use.
                listing.damaged = listing.damaged.max(Some(number));
            }
        }
        listing.tail = tails.last().copied().filter(|&tail| sealed_up_to.is_none_or(|sealed| sealed < tail));
        tails.retain(|&tail| Some(tail) != listing.tail);
        listing.stale = tails;
        listing.temporary.sort();
        Ok(listing)
    }

    /// Reads the directory until two passes agree.
    ///
    /// A listing is not atomic: while the writer seals, one pass may see the new tail and not the new sealed file. The next pass
    /// begins after the new tail existed, so it must see the sealed file.
    pub(super) fn read_settled(directory: &Path) -> Result<Self, VectorError> {
        let mut before = Self::read(directory)?;
        loop {
            let now = Self::read(directory)?;
            if now == before {
                return Ok(now);
            }
            before = now;
        }
    }

    /// Returns the first number above all that were ever used.
    pub(super) fn next_number(&self) -> u32 {
        let used = [self.sealed.last(), self.damaged.as_ref(), self.stale.last(), self.tail.as_ref()];
        used.into_iter().flatten().max().map_or(0, |&number| number.saturating_add(1))
    }
}

fn parse(name: &str, prefix: &str, suffix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let plain = digits.len() == 8 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if plain { u32::from_str_radix(digits, 16).ok() } else { None }
}

pub(super) fn sealed_path(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("seg-{number:08x}{SUFFIX}"))
}

pub(super) fn tail_path(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("tail-{number:08x}{SUFFIX}"))
}

/// Opens a file for reading, if it is not too large; returns its length as well.
pub(super) fn open(path: &Path) -> Result<(File, u64), VectorError> {
    let file = File::open(path).map_err(VectorError::io("open", path))?;
    let length = file.metadata().map_err(VectorError::io("read", path))?.len();
    if length > MAX_FILE_BYTES {
        return Err(VectorError::damaged(path, format!("it has {length} bytes, and no vector file is so long")));
    }
    Ok((file, length))
}

/// Reads a whole file into memory, if it is not too large.
pub(super) fn read_whole(path: &Path) -> Result<Vec<u8>, VectorError> {
    let (file, length) = open(path)?;
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(VectorError::io("read", path))?;
    Ok(bytes)
}

/// Writes `bytes` as `path`, all of them or nothing, and durably.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), VectorError> {
    write_beside(path, bytes)?;
    put_in_place(path)?;
    sync_directory(path.parent().unwrap_or(path))
}

/// Writes the new content of `path` under its temporary name, durably.
pub(super) fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), VectorError> {
    let temporary = temporary_path(path);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|source| {
        // The next start removes the rest; the first failure is the one to report.
        let _ = fs::remove_file(&temporary);
        VectorError::Io { action: "write", path: path.into(), source }
    })
}

/// Renames the temporary file of `path` into place; the directory is yet to be synced.
pub(super) fn put_in_place(path: &Path) -> Result<(), VectorError> {
    let temporary = temporary_path(path);
    fs::rename(&temporary, path).map_err(|source| {
        let _ = fs::remove_file(&temporary);
        VectorError::Io { action: "write", path: path.into(), source }
    })
}

/// Removes the temporary file of `path`, which is not wanted any more.
pub(super) fn remove_beside(path: &Path) -> Result<(), VectorError> {
    remove(&temporary_path(path))
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> Result<(), VectorError> {
    fs::remove_file(path).map_err(VectorError::io("remove", path))
}

/// Returns the name under which a file is written.
pub(super) fn temporary_path(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(TEMPORARY);
    temporary.into()
}

/// Renames a damaged file, so that it is ignored and can still be examined; returns its new name.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, VectorError> {
    let aside = aside_path(path);
    fs::rename(path, &aside).map_err(VectorError::io("rename", path))?;
    sync_directory(path.parent().unwrap_or(path))?;
    Ok(aside)
}

/// Returns the name under which a damaged file is kept.
pub(super) fn aside_path(path: &Path) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(DAMAGED);
    aside.into()
}

/// Syncs a directory.
pub(super) fn sync_directory(directory: &Path) -> Result<(), VectorError> {
    File::open(directory).and_then(|file| file.sync_all()).map_err(VectorError::io("sync", directory))
}

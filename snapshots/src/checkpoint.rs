//! Checkpoints: the whole bitmaps of a version, from which near versions are rebuilt faster.
//!
//! In: bitmaps, occasionally. Out: the same, or nothing.
//!
//! ```text
//! "tidemchk" format:u32 version:u32 chain[16] entries_bytes:u64   all numbers little-endian
//! entries, document rows                                          in the Roaring format (RoaringFormatSpec)
//! sum[32]                                                         BLAKE3 of everything before it
//! ```
//!
//! **Invariant:** a checkpoint is only a cache. The log has every delta. A checkpoint that is missing, damaged, of another format
//! or of another log is skipped, and `verify` names it.
//!
//! `chain` is a hash of the log up to the version. The version number alone is not enough: after a crash the tail of the log is
//! truncated and the number is assigned again. The checksum is verified before parsing.

use crate::bitmaps::Bitmaps;
use crate::error::ArchiveError;
use crate::history::Chain;
use crate::identity::VersionId;
use crate::log::write_whole;
use roaring::RoaringBitmap;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"tidemchk";
const FORMAT: u32 = 1;
const HEADER: usize = 40;
const SUM: usize = 32;

/// Bytes of a file beside its bitmaps.
pub(crate) const OVERHEAD_BYTES: usize = HEADER + SUM;

/// The folder of checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
    /// The versions with a file when the folder was last listed.
    files: BTreeSet<VersionId>,
}

/// Reason why a checkpoint is skipped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it cannot be read")]
    Io(#[source] io::Error),
    #[error("its bytes do not match their sum")]
    Damaged,
    #[error("it is of another format, or of another version or log")]
    Other,
    #[error("its bitmaps cannot be parsed")]
    Bitmap(#[source] io::Error),
}

impl Checkpoints {
    /// Lists the checkpoints in a folder, which need not exist.
    pub(crate) fn open(folder: PathBuf) -> Result<Self, ArchiveError> {
        let mut checkpoints = Self { folder, files: BTreeSet::new() };
        checkpoints.list()?;
        Ok(checkpoints)
    }

    /// Lists the folder again.
    pub(crate) fn list(&mut self) -> Result<(), ArchiveError> {
        let listing = match fs::read_dir(&self.folder) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(ArchiveError::io("list", &self.folder)(error)),
        };
        self.files.clear();
        for file in listing {
            let file = file.map_err(ArchiveError::io("list", &self.folder))?;
            self.files.extend(file.file_name().to_str().and_then(version_named));
        }
        Ok(())
    }

    /// Removes checkpoints of versions that the log lacks, and unfinished files.
    pub(crate) fn clear_strays(&mut self, versions: usize) -> Result<(), ArchiveError> {
        let listing = match fs::read_dir(&self.folder) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(ArchiveError::io("list", &self.folder)(error)),
        };
        for file in listing {
            let path = file.map_err(ArchiveError::io("list", &self.folder))?.path();
            let named = path.file_name().and_then(|name| name.to_str()).and_then(version_named);
            let unfinished = path.extension().is_some_and(|extension| extension == "tmp");
            if unfinished || named.is_some_and(|version| version.index() >= versions) {
                fs::remove_file(&path).map_err(ArchiveError::io("remove", &path))?;
            }
        }
        self.files.retain(|version| version.index() < versions);
        Ok(())
    }

    /// Returns whether there is a file for a version, usable or not.
    pub(crate) fn has(&self, version: VersionId) -> bool {
        self.files.contains(&version)
    }

    /// Returns the versions that have a file.
    pub(crate) fn versions(&self) -> impl Iterator<Item = VersionId> + '_ {
        self.files.iter().copied()
    }

    /// Returns the bytes of all existing files.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes_of = |&version: &VersionId| fs::metadata(self.path(version)).map_or(0, |metadata| metadata.len());
        self.files.iter().map(bytes_of).sum()
    }

    /// Reads the bitmaps of a version, if `chain` still matches the log up to it.
    pub(crate) fn read(&self, version: VersionId, chain: Chain) -> Result<Bitmaps, Unusable> {
        let bytes = fs::read(self.path(version)).map_err(Unusable::Io)?;
        let body = bytes.len().checked_sub(SUM).filter(|&body| body >= HEADER).ok_or(Unusable::Damaged)?;
        let (body, sum) = bytes.split_at(body);
        if blake3::hash(body).as_bytes() != sum {
            return Err(Unusable::Damaged);
        }
        let (header, bitmaps) = body.split_at(HEADER);
        if header[..32] != header_of(version, chain, 0)[..32] {
            return Err(Unusable::Other);
        }
        let entries = u64::from_le_bytes(header[32..].try_into().expect("the header ends with eight bytes"));
        let entries = usize::try_from(entries).ok().filter(|&at| at <= bitmaps.len()).ok_or(Unusable::Damaged)?;
        let (entries, documents) = bitmaps.split_at(entries);
        let parse = |bytes: &[u8]| RoaringBitmap::deserialize_from(bytes).map_err(Unusable::Bitmap);
        Ok(Bitmaps { entries: parse(entries)?, documents: parse(documents)? })
    }

    /// Writes the bitmaps of a version; returns the file's size in bytes.
    pub(crate) fn write(&mut self, version: VersionId, chain: Chain, bitmaps: &Bitmaps) -> Result<u64, ArchiveError> {
        fs::create_dir_all(&self.folder).map_err(ArchiveError::io("create", &self.folder))?;
        let (mut entries, mut documents) = (bitmaps.entries.clone(), bitmaps.documents.clone());
        entries.optimize();
        documents.optimize();
        let mut bytes = header_of(version, chain, entries.serialized_size() as u64).to_vec();
        let path = self.path(version);
        for bitmap in [&entries, &documents] {
            bitmap.serialize_into(&mut bytes).map_err(ArchiveError::io("write", &path))?;
        }
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(sum.as_bytes());
        write_whole(&path, &bytes)?;
        self.files.insert(version);
        Ok(bytes.len() as u64)
    }

    /// Returns the path of a version's checkpoint.
    fn path(&self, version: VersionId) -> PathBuf {
        self.folder.join(version.to_string())
    }

    /// Returns the folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Returns the version of a file name, which is its number in decimal, without leading zeros.
fn version_named(name: &str) -> Option<VersionId> {
    let number = name.parse::<u32>().ok()?;
    (number.to_string() == name).then(|| VersionId::new(number))
}

fn header_of(version: VersionId, chain: Chain, entries_bytes: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[12..16].copy_from_slice(&version.get().to_le_bytes());
    bytes[16..32].copy_from_slice(&chain);
    bytes[32..].copy_from_slice(&entries_bytes.to_le_bytes());
    bytes
}

//! Computes the git blob id of a file on disk, and the stamp that tells whether it may have changed since.
//!
//! In: a path. Out: the id of the bytes of one moment, and the bytes if they are few.
//!
//! **Invariant:** an id is returned only if size and times were equal before and after the read. A file that is being written is
//! skipped and tried again. Only regular files are read and no link is followed, even if the path changed its kind a moment ago.
//!
//! The id is SHA-1 over `blob SIZE NUL` and the bytes (gitformat-object). Collisions are not checked: an id only decides whether
//! to read again, and two colliding files belong to the same owner.

use crate::watch::encoding::DiskEncoding;
use dataflows::data::ContentId;
use sha1::{Digest, Sha1};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Largest file that is hashed. A larger sparse file would delay every other change.
const MAX_BYTES: u64 = 4 << 30;
/// Bytes read at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// Number of reads of a file that keeps changing, before it is left for the next look.
const ATTEMPTS: usize = 2;
/// Coarsest tick of file times in use: two seconds, on FAT (Microsoft FAT specification, section 6).
const TICK: Duration = Duration::from_secs(2);

/// The fields of `stat` that change with a file's content, within the clock's tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::watch) struct Stamp {
    device: u64,
    inode: u64,
    pub(in crate::watch) bytes: u64,
    modified: (i64, i64),
    /// The inode's own time, which no program can set back.
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Tells whether the file was at rest at `now`: a later write would change its times.
    ///
    /// This is git's "racily clean" rule (Documentation/technical/racy-git.txt), with the coarsest tick there is in
    /// place of the index's own time. A file from the future is never at rest.
    fn is_at_rest(&self, now: SystemTime) -> bool {
        let newest = self.modified.max(self.changed);
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
        (newest.0, newest.1) < (i64::try_from(now.as_secs()).unwrap_or(i64::MAX), i64::from(now.subsec_nanos()))
    }
}

/// A file as it was at one moment.
pub(in crate::watch) struct Hashed {
    pub(in crate::watch) content: ContentId,
    pub(in crate::watch) stamp: Stamp,
    /// Whether an equal stamp later proves equal bytes.
    pub(in crate::watch) at_rest: bool,
    /// The bytes, where there are at most as many as were asked for.
    pub(in crate::watch) bytes: Option<Vec<u8>>,
    /// The encoding by which the content is not the bytes on disk.
    pub(super) encoding: Option<DiskEncoding>,
}

impl Hashed {
    /// Puts what git would store in place of the bytes of a file that has this encoding on disk; a file whose bytes are not kept
    /// stays as it is.
    pub(super) fn in_git(self, encoding: Option<DiskEncoding>) -> Self {
        let converted = encoding.zip(self.bytes.as_deref()).and_then(|(encoding, bytes)| encoding.to_git(bytes));
        match converted {
            Some(bytes) => Self { content: hash_bytes(&bytes), bytes: Some(bytes), encoding, ..self },
            None => Self { encoding, ..self },
        }
    }
}

/// Reason why a file has no id.
#[derive(Debug, thiserror::Error)]
pub(in crate::watch) enum HashError {
    /// It is gone, or no longer a regular file.
    #[error("the file is gone")]
    Gone,
    /// It changes while it is read.
    #[error("the file is being written")]
    Unsettled,
    /// It is larger than anything that is hashed.
    #[error("{0} bytes are more than any file that is hashed")]
    TooLarge(u64),
    /// The system does not let it be read.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for HashError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Gone,
            _ => Self::Io(error),
        }
    }
}

/// Hashes the regular file at `path`, and keeps its bytes where they are at most `keep_bytes`.
pub(in crate::watch) fn hash_file(path: &Path, keep_bytes: u64) -> Result<Hashed, HashError> {
    for _ in 0..ATTEMPTS {
        if let Some(hashed) = attempt(path, keep_bytes)? {
            return Ok(hashed);
        }
    }
    Err(HashError::Unsettled)
}

/// Returns the id of bytes in memory.
pub(in crate::watch) fn hash_bytes(bytes: &[u8]) -> ContentId {
    let mut hasher = blob_hasher(bytes.len() as u64);
    hasher.update(bytes);
    ContentId::from_bytes(hasher.finalize().into())
}

fn blob_hasher(bytes: u64) -> Sha1 {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {bytes}\0"));
    hasher
}

fn attempt(path: &Path, keep_bytes: u64) -> Result<Option<Hashed>, HashError> {
    // Without `O_NONBLOCK` a pipe that took the file's place would block for ever.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = match opened {
        // `O_NOFOLLOW` met a link that took the file's place just now; a loop of links above it is another matter.
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) && path.symlink_metadata().is_ok() => {
            return Err(HashError::Unsettled);
        }
        opened => opened?,
    };
    let now = SystemTime::now();
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(HashError::Gone);
    }
    let stamp = Stamp::of(&metadata);
    if stamp.bytes > MAX_BYTES {
        return Err(HashError::TooLarge(stamp.bytes));
    }
    let mut bytes = (stamp.bytes <= keep_bytes).then(Vec::new);
    let mut hasher = blob_hasher(stamp.bytes);
    let read = read_all(&file, stamp.bytes, |part| {
        hasher.update(part);
        if let Some(bytes) = &mut bytes {
            bytes.extend_from_slice(part);
        }
    })?;
    if read != stamp.bytes || Stamp::of(&file.metadata()?) != stamp {
        return Ok(None);
    }
    let content = ContentId::from_bytes(hasher.finalize().into());
    Ok(Some(Hashed { content, stamp, at_rest: stamp.is_at_rest(now), bytes, encoding: None }))
}

/// Reads to the end, or one byte past what was expected; returns how many bytes there were.
fn read_all(file: &File, expected: u64, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES.min(usize::try_from(expected + 1).unwrap_or(BUFFER_BYTES))];
    let mut file = file.take(expected + 1);
    let mut total = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(read) => {
                take(&buffer[..read]);
                total += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

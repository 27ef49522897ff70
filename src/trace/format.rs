//! The layout of a trace: frames, each with its sums, and the values inside them.
//!
//! ```text
//! magic    "tidemtrc" format:u32 sum[4]                  sum: BLAKE3 of all bytes before it
//! frame    kind:u8 length:u32 check[3] payload sum[16]   check: BLAKE3 of kind and length; sum: of kind, length, payload
//!
//! about    01  About                                     the first frame; as long when the trace is finished as before
//! content  02  id[20] state:u8 size:u64, zstd of bytes   before the first epoch that names it
//! epoch    03  zstd of an EpochRecord
//! index    04  zstd of an Index                          positions of epochs and contents
//! end      05  position of the index:u64                the last 32 bytes of a whole trace
//! ```
//!
//! **Invariant:** a frame is accepted only if both of its checksums fit. A length whose check fits and that passes the end of the
//! file is a torn write; anything else that does not fit is damage. The stated size bounds unpacking, and [`MAX_CONTENT_BYTES`]
//! bounds that size.
//!
//! The codec is bincode in its standard configuration, as in the store; only this file of `trace` uses it.

use crate::watch::{Content, ReadError};
use dataflows::data::{ContentId, DocumentPath, FileChange, FileState, SkipReason};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use snapshots::{CommitId, Digest};
use std::io;
use std::path::{Path, PathBuf};

/// The format that this build writes and reads.
pub const FORMAT: u32 = 1;
/// The first bytes of a trace.
pub(super) const MAGIC: &[u8; 8] = b"tidemtrc";
/// Bytes of magic, format and sum.
pub(super) const MAGIC_BYTES: u64 = 16;
/// Bytes before a frame's payload.
pub(super) const HEAD_BYTES: u64 = 8;
/// Bytes after a frame's payload.
pub(super) const SUM_BYTES: u64 = 16;
/// Bytes before a content's packed bytes.
pub(super) const CONTENT_HEAD: usize = 29;
/// The largest content that is kept whole: the limit of a rule's `max_bytes`.
pub(super) const MAX_CONTENT_BYTES: u64 = 256 << 20;
/// The largest epoch, unpacked: some four million files of usual names.
pub(super) const MAX_EPOCH_BYTES: usize = 1 << 30;
/// Kept bytes of a content that is not text: no reader looks further to see that.
pub(super) const BINARY_HEAD: usize = 8_000;
/// zstd's own default: fast, and within some percent of higher levels for source code.
const LEVEL: i32 = 3;

/// Why a trace cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file system failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file exists.
    #[error("{} is there already; record into another file, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// No trace.
    #[error("{} is no trace; `tidemill record {} --source PATH` writes one", path.display(), path.display())]
    NoTrace {
        /// The file.
        path: PathBuf,
    },
    /// A trace of another format.
    #[error("the trace {} is format {found}, this build reads format {FORMAT}; replay it with the release that wrote it, or record it again", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its stated format.
        found: u32,
    },
    /// The file's bytes are not those that were written.
    #[error("the trace {} is damaged at byte {at}: {reason}; copy it again from where it was recorded", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The beginning of the wrong frame.
        at: u64,
        /// The finding.
        reason: String,
    },
    /// A trace that ends before its first whole epoch.
    #[error("the trace {} holds no whole epoch; record it again", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The range of commits is empty or not on one line.
    #[error(
        "{from} is no first parent of {to}, or of one before it; `git log --first-parent {to}` lists those that are"
    )]
    NoLine {
        /// The first commit.
        from: String,
        /// The last one.
        to: String,
    },
    /// The recorded repository failed.
    #[error(transparent)]
    Git(#[from] crate::watch::git::GitError),
}

impl TraceError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// A trace's description of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct About {
    /// The name of the source, or of the scenario; empty in a redacted trace.
    pub source: String,
    /// The recorded range in words: commits, or a scenario with its seed.
    pub range: String,
    /// The fingerprint of the rules for which the digests hold, or zeros where there are none.
    pub fingerprint: [u8; 16],
    /// The fingerprint of the built-in model where it was recorded.
    pub model: [u8; 16],
    /// The rules before the built-in ones, as in their file, or nothing.
    pub rules: String,
    /// Whether words were replaced by pseudonyms.
    pub redacted: bool,
    /// A hash over all events without the digests; zeros in an unfinished trace.
    pub corpus: [u8; 32],
}

/// One epoch: the event, its time, and its changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EpochRecord {
    /// Its arrival, in milliseconds since the first epoch.
    pub arrived: u64,
    /// The event.
    pub step: TraceStep,
    /// The files added, changed or removed at the moved head.
    pub changes: Vec<FileChange>,
}

/// The event of an epoch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TraceStep {
    /// A head moved to a commit.
    Commit {
        /// The view that points at the commit from now on, if any.
        view: Option<String>,
        /// Whether the commit only passes through, on the head that tags and past commits share.
        passes: bool,
        /// The commit.
        commit: CommitId,
        /// Its first parent.
        parent: Option<CommitId>,
        /// Its committer's time, in seconds since 1970.
        time: i64,
        /// The digest of its version, if it was recorded.
        digest: Option<Digest>,
    },
    /// A view moved to a known commit.
    Point {
        /// The view.
        view: String,
        /// The commit.
        commit: CommitId,
    },
    /// A head was removed.
    Leave {
        /// The view, or nothing for the head on which commits pass through.
        view: Option<String>,
    },
}

impl EpochRecord {
    /// Returns the name of the head whose files changed: a view's, or nothing for the one on which commits pass through.
    #[must_use]
    pub fn head(&self) -> Option<&str> {
        match &self.step {
            TraceStep::Commit { passes: true, .. } => None,
            TraceStep::Commit { view, .. } | TraceStep::Leave { view } => view.as_deref(),
            TraceStep::Point { view, .. } => Some(view),
        }
    }

    /// Returns the commit that the epoch leads to, if it leads to one.
    #[must_use]
    pub const fn commit(&self) -> Option<CommitId> {
        match &self.step {
            TraceStep::Commit { commit, .. } | TraceStep::Point { commit, .. } => Some(*commit),
            TraceStep::Leave { .. } => None,
        }
    }

    /// Returns the digest that was recorded for the epoch.
    #[must_use]
    pub const fn digest(&self) -> Option<Digest> {
        match &self.step {
            TraceStep::Commit { digest, .. } => *digest,
            _ => None,
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let change = |change: &FileChange| (change.path.clone(), change.before, change.after);
        encode(&(self.arrived, &self.step, self.changes.iter().map(change).collect::<Vec<_>>()))
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        type Change = (DocumentPath, Option<FileState>, Option<FileState>);
        let (arrived, step, changes): (u64, TraceStep, Vec<Change>) = decode(bytes)?;
        let change = |(path, before, after)| FileChange { path, before, after };
        Ok(Self { arrived, step, changes: changes.into_iter().map(change).collect() })
    }
}

/// A source's answer to a request for a content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stored {
    /// All of its bytes.
    Whole(Vec<u8>),
    /// It is not text: its size, and the first bytes, which show that.
    Head(u64, Vec<u8>),
    /// It has this many bytes, more than the rules allow.
    TooLarge(u64),
    /// It stands for an object that the source lacked.
    Absent(SkipReason),
    /// The source did not hold it, for this reason.
    Missing(String),
}

impl Stored {
    /// Returns the size of the content in bytes, if that is known.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Head(size, _) | Self::TooLarge(size) => *size,
            Self::Absent(_) | Self::Missing(_) => 0,
        }
    }

    /// Returns the answer of a source with this content to a request for at most so many bytes.
    pub(super) fn answer(self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        match self {
            Self::Missing(_) => Err(ReadError::Missing(content)),
            Self::Absent(reason) => Ok(Content::Absent(reason)),
            Self::TooLarge(size) => Ok(Content::TooLarge(size)),
            stored if stored.size() > max_bytes => Ok(Content::TooLarge(stored.size())),
            Self::Whole(bytes) | Self::Head(_, bytes) => Ok(Content::Bytes(bytes)),
        }
    }

    /// Returns the payload of a content frame.
    pub(super) fn to_payload(&self, id: ContentId) -> io::Result<Vec<u8>> {
        let (state, kept) = match self {
            Self::Whole(bytes) => (0, bytes.clone()),
            Self::Head(_, bytes) => (1, bytes.clone()),
            Self::TooLarge(_) => (2, Vec::new()),
            Self::Absent(reason) => (3, encode(reason)),
            Self::Missing(reason) => (4, reason.clone().into_bytes()),
        };
        let mut payload = Vec::with_capacity(CONTENT_HEAD + kept.len() / 3);
        payload.extend_from_slice(id.as_bytes());
        payload.push(state);
        payload.extend_from_slice(&self.size().to_le_bytes());
        payload.extend(pack(&kept)?);
        Ok(payload)
    }

    /// Returns the content of a frame's payload.
    pub(super) fn from_payload(payload: &[u8]) -> Result<(ContentId, Self), String> {
        let head = ContentHead::of(payload)?;
        let kept = unpack(&payload[CONTENT_HEAD..], head.most()?)?;
        let stored = match head.state {
            0 => Self::Whole(kept),
            1 => Self::Head(head.size, kept),
            2 => Self::TooLarge(head.size),
            3 => Self::Absent(decode(&kept)?),
            4 => Self::Missing(String::from_utf8_lossy(&kept).into_owned()),
            state => return Err(format!("a content has the state {state}")),
        };
        Ok((head.id, stored))
    }
}

/// The data before a content's packed bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContentHead {
    pub(super) id: ContentId,
    pub(super) state: u8,
    pub(super) size: u64,
}

impl ContentHead {
    pub(super) fn of(payload: &[u8]) -> Result<Self, String> {
        let short = || "a content is too short".to_owned();
        let (id, rest) = payload.split_first_chunk::<20>().ok_or_else(short)?;
        let (state, rest) = rest.split_first().ok_or_else(short)?;
        let (size, _) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        Ok(Self { id: ContentId::from_bytes(*id), state: *state, size: u64::from_le_bytes(*size) })
    }

    /// Returns the most bytes that unpacking may give.
    fn most(&self) -> Result<usize, String> {
        match self.state {
            0 if self.size > MAX_CONTENT_BYTES => Err(format!("a content claims {} bytes", self.size)),
            0 => Ok(self.size as usize),
            1 => Ok(BINARY_HEAD),
            _ => Ok(4_096),
        }
    }
}

/// The positions of all frames.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    /// The place of each epoch's frame.
    pub(super) epochs: Vec<u64>,
    /// Each content, the place of its frame, and its size.
    pub(super) contents: Vec<(ContentId, u64, u64)>,
}

/// The kinds of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    About = 1,
    Content = 2,
    Epoch = 3,
    Index = 4,
    End = 5,
}

impl Kind {
    pub(super) const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::About,
            2 => Self::Content,
            3 => Self::Epoch,
            4 => Self::Index,
            5 => Self::End,
            _ => return None,
        })
    }
}

/// Returns what a trace of this format begins with.
pub(super) fn magic(format: u32) -> [u8; MAGIC_BYTES as usize] {
    let mut bytes = [0; MAGIC_BYTES as usize];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&format.to_le_bytes());
    let sum = blake3::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&sum.as_bytes()[..4]);
    bytes
}

/// Returns the bytes before a payload of this kind and length.
pub(super) fn frame_head(kind: u8, length: u32) -> [u8; HEAD_BYTES as usize] {
    let mut head = [0; HEAD_BYTES as usize];
    head[0] = kind;
    head[1..5].copy_from_slice(&length.to_le_bytes());
    let check = blake3::hash(&head[..5]);
    head[5..].copy_from_slice(&check.as_bytes()[..3]);
    head
}

/// Returns the bytes after a payload.
pub(super) fn frame_sum(head: &[u8], payload: &[u8]) -> [u8; SUM_BYTES as usize] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&head[..5]).update(payload);
    let mut sum = [0; SUM_BYTES as usize];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..SUM_BYTES as usize]);
    sum
}

/// Packs bytes.
pub(super) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}

/// Unpacks bytes that are at most so many.
pub(super) fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>, String> {
    zstd::bulk::decompress(packed, most).map_err(|error| format!("it cannot be unpacked ({error})"))
}

/// Returns the bytes of a value.
pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(value, bincode::config::standard())
        .expect("plain data in memory always encodes: no maps of unknown length, no failing writers")
}

/// Returns the value of the bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let config = bincode::config::standard().with_limit::<MAX_EPOCH_BYTES>();
    let (value, read) = bincode::serde::decode_from_slice(bytes, config).map_err(|error| error.to_string())?;
    if read == bytes.len() { Ok(value) } else { Err("there are bytes behind it".to_owned()) }
}

/// Returns the git blob id of bytes.
pub(super) fn blob_id(bytes: &[u8]) -> ContentId {
    use sha1::Digest as _;
    let mut hasher = sha1::Sha1::new();
    hasher.update(format!("blob {}\0", bytes.len()));
    hasher.update(bytes);
    ContentId::from_bytes(hasher.finalize().into())
}

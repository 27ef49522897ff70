//! Errors of the archive as a whole.
//!
//! **Invariant:** a message names the thing, the reason and the next step; the cause of an I/O error prints once, from the chain.

use crate::identity::{Epoch, VersionId, ViewId};
use std::io;
use std::path::{Path, PathBuf};

/// Reason why the archive cannot do a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no log to read.
    #[error("no version log at {}; track a source first", path.display())]
    Missing {
        /// Where the log should be.
        path: PathBuf,
    },
    /// Another process writes.
    #[error("another writer holds {}; wait for it or stop it", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
    },
    /// The file does not begin like a version log.
    #[error("{} is no version log, or its first bytes are damaged; restore it from a backup, or build the store again", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The log is of another format.
    #[error("cannot open {}: the log is format {found}, this build reads format {reads}; {}", path.display(), if found > reads { "install a newer release" } else { "build the store again with this release" })]
    Format {
        /// The log.
        path: PathBuf,
        /// The format that the log names.
        found: u32,
        /// The format that this build reads.
        reads: u32,
    },
    /// Bytes before the last group are not those that were written.
    #[error("{} is damaged at byte {offset}: {reason}; restore it from a backup, or build the store again", path.display())]
    Damaged {
        /// The log.
        path: PathBuf,
        /// The position of the damaged group.
        offset: u64,
        /// The finding.
        reason: String,
    },
    /// The log is shorter than at the last read.
    #[error("{} shrank from {expected} to {found} bytes while it was open; open the archive again", path.display())]
    Shrank {
        /// The log.
        path: PathBuf,
        /// Bytes read before.
        expected: u64,
        /// Bytes there are now.
        found: u64,
    },
    /// A read-only handle was asked to write.
    #[error("the archive at {} is open for reading; open it as the writer", path.display())]
    ReadOnly {
        /// The log.
        path: PathBuf,
    },
    /// An earlier write failed and left the end of the log in an unknown state.
    #[error("an earlier write to {} failed and may have left half a group; open the archive again", path.display())]
    Unsettled {
        /// The log.
        path: PathBuf,
    },
    /// A version that the log lacks.
    #[error("the archive has no version {version}; it knows {known}")]
    UnknownVersion {
        /// The version asked for.
        version: VersionId,
        /// How many versions there are.
        known: usize,
    },
    /// A version's changes insert live ordinals, or retract dead ones.
    #[error("the changes of version {version} do not fit its base; run `snapshots verify`")]
    Inexact {
        /// The version.
        version: VersionId,
    },
    /// A record may not follow the log.
    #[error("refused record {position} of the group: {refusal}")]
    Refused {
        /// The record's position in the group, from 0.
        position: usize,
        /// The reason.
        refusal: Refusal,
    },
    /// A group takes more bytes than a frame can name.
    #[error("a group of {bytes} bytes does not fit into the log; append fewer versions at once")]
    GroupTooLarge {
        /// Its size.
        bytes: usize,
    },
}

/// Reason why a record may not follow the log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Epochs never decrease.
    #[error("epoch {epoch} lies before epoch {last} of the record in front; take the epoch from `next_epoch`")]
    EpochGoesBack {
        /// The record's epoch.
        epoch: Epoch,
        /// The epoch of the record before.
        last: Epoch,
    },
    /// A base or a view names a version that does not exist yet.
    #[error("version {version} does not come before it; append that version first")]
    NoSuchVersion {
        /// The version named.
        version: VersionId,
    },
    /// A view would point at a dropped version, or a dropped version is to be dropped again.
    #[error("version {version} is dropped; make the commit's snapshot again")]
    Dropped {
        /// The version named.
        version: VersionId,
    },
    /// A version that a view points at is to be dropped.
    #[error("view {view} points at version {version}; a head is never dropped")]
    InUse {
        /// The version named.
        version: VersionId,
        /// The view.
        view: ViewId,
    },
    /// `base_is_parent` contradicts the rest of the record.
    #[error("its base is not its first parent's version under the same rules; clear `base_is_parent`")]
    BaseIsNotParent,
    /// The changes insert live ordinals of the base, retract dead ones, or do both to one ordinal.
    #[error("its changes are not exact against its base; compute them from the base's bitmaps")]
    Inexact,
    /// A recount has another number of versions than the log, or shares its group.
    #[error("a recount names every version so far and is alone in its group; take it from `Archive::recount`")]
    Recount,
    /// All version numbers are used.
    #[error("every version number is used; build a new store from the sources")]
    VersionsExhausted,
}

impl ArchiveError {
    /// Returns a function that wraps an input or output error.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

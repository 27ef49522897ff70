//! A version: the entries alive at one commit of a source, with its metadata.
//!
//! In: the writer's data of a commit. Out: the archive's record, with the values that follow from the delta. **Invariant:** the
//! content of a version never changes once appended; its tokens change if another analyzer recounts them. Its counts follow from
//! its base's counts and its own delta. The writer states only values that need the entries themselves (tokens, digest), and
//! `verify` checks them.

use crate::bitmaps::{Changes, Moved};
use crate::digest::Digest;
use crate::identity::{CommitId, Epoch, SourceId, VersionId, ViewId};
use crate::tokens::Tokens;
use roaring::RoaringBitmap;

/// The writer's data of a new version.
#[derive(Clone, PartialEq, Debug)]
pub struct NewVersion {
    /// The epoch that made it.
    pub epoch: Epoch,
    /// The source that the commit belongs to.
    pub source: SourceId,
    /// The commit, or the tree hash of a directory.
    pub commit: CommitId,
    /// The commit's first parent, even if it has no snapshot.
    pub parent: Option<CommitId>,
    /// The version that the changes are relative to; without one they are relative to nothing.
    pub base: Option<VersionId>,
    /// Whether this commit introduced the inserted entries: the base is the first parent's version under the same rules, or the
    /// commit is a root.
    pub base_is_parent: bool,
    /// The committer's time, in seconds since 1970.
    pub time: i64,
    /// Tokens of all live entries by field.
    pub live_tokens: Tokens,
    /// The digest of all live entries.
    pub digest: Digest,
    /// The fingerprint of the rules.
    pub fingerprint: [u8; 16],
    /// The fingerprint of the model.
    pub model: [u8; 16],
    /// The version's changes against its base.
    pub changes: Changes,
}

/// One step of the log.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::large_enum_variant, reason = "a group holds a few records, and most are versions")]
pub enum Record {
    /// A new version. It gets the next [`VersionId`], which views of the same group may name.
    Version(NewVersion),
    /// A view points at a version from this epoch on.
    View {
        /// When it moved.
        epoch: Epoch,
        /// Which view.
        view: ViewId,
        /// The target.
        version: VersionId,
        /// The time at which that was seen, in milliseconds since 1970; missing in logs of formats 1 and 2.
        time: Option<i64>,
    },
    /// A view is gone from this epoch on.
    ViewGone {
        /// When it went.
        epoch: Epoch,
        /// Which view.
        view: ViewId,
        /// The time at which that was seen, as for a move.
        time: Option<i64>,
    },
    /// Versions are kept no more from this epoch on: no commit leads to them, and entries that only they hold may be removed.
    Dropped {
        /// When they went.
        epoch: Epoch,
        /// Their numbers. No view points at any of them.
        versions: RoaringBitmap,
    },
    /// Another analyzer recounted the tokens of every version so far. This is the only record of its group.
    Recounted {
        /// When they were counted.
        epoch: Epoch,
        /// Tokens of the live entries by field, of each version in order.
        live_tokens: Vec<Tokens>,
    },
}

/// A version's statistics for BM25, and its number of documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Entries alive.
    pub live_entries: u64,
    /// Tokens of the live entries by field.
    pub live_tokens: Tokens,
    /// Document rows alive, whatever their outcome.
    pub live_documents: u64,
}

/// A version as the archive keeps it, without its bitmaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// Its id: the position in the log.
    pub id: VersionId,
    /// The epoch that made it.
    pub epoch: Epoch,
    /// The source that the commit belongs to.
    pub source: SourceId,
    /// The commit, or the tree hash of a directory.
    pub commit: CommitId,
    /// The commit's first parent, even where that has no snapshot.
    pub parent: Option<CommitId>,
    /// The base of its changes; always an earlier version.
    pub base: Option<VersionId>,
    /// Whether this commit introduced the inserted entries.
    pub base_is_parent: bool,
    /// The committer's time, in seconds since 1970.
    pub time: i64,
    /// Counts over everything alive.
    pub statistics: Statistics,
    /// The digest of all live entries.
    pub digest: Digest,
    /// The fingerprint of the rules.
    pub fingerprint: [u8; 16],
    /// The fingerprint of the model.
    pub model: [u8; 16],
    /// How many entries moved against the base.
    pub entries: Moved,
    /// How many document rows moved against the base.
    pub documents: Moved,
    /// Bytes that the version's record takes in the log.
    pub bytes: u64,
}

/// The target of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ViewHead {
    /// The version.
    pub version: VersionId,
    /// The epoch since which the view points there.
    pub epoch: Epoch,
}

/// One move of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// When it moved.
    pub epoch: Epoch,
    /// The target; nothing if the view is gone.
    pub version: Option<VersionId>,
    /// The time at which that was seen, in milliseconds since 1970, as the log states it.
    pub time: Option<i64>,
}

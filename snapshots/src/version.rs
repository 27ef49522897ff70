//! A version: which entries were alive at one commit of a source, and what was known about it.
//!
//! In: what the writer states of a commit. Out: the record that the archive keeps, with what follows from the delta.
//! **Invariant:** what a version holds never changes once appended; its tokens do where another analyzer counted them again. Its counts follow from its base's counts and its own delta;
//! only what needs the entries themselves (tokens, digest) is stated by the writer, and checked by `verify`.

use crate::bitmaps::{Changes, Moved};
use crate::digest::Digest;
use crate::identity::{CommitId, Epoch, SourceId, VersionId, ViewId};
use crate::tokens::Tokens;
use roaring::RoaringBitmap;

/// What the writer states of a new version.
#[derive(Clone, PartialEq, Debug)]
pub struct NewVersion {
    /// The epoch that made it.
    pub epoch: Epoch,
    /// The source that the commit belongs to.
    pub source: SourceId,
    /// The commit, or the tree hash of a directory.
    pub commit: CommitId,
    /// The commit's first parent, even where that has no snapshot.
    pub parent: Option<CommitId>,
    /// The version that the changes are against; nothing is alive before where there is none.
    pub base: Option<VersionId>,
    /// Whether what the changes insert was introduced by this very commit: the base is the first parent's version under
    /// the same rules, or the commit is a root.
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
    /// What the version changes against its base.
    pub changes: Changes,
}

/// One step of the log.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::large_enum_variant, reason = "a group holds a few records, and most are versions")]
pub enum Record {
    /// A version came to be. It gets the next [`VersionId`], which views of the same group may name.
    Version(NewVersion),
    /// A view points at a version from this epoch on.
    View {
        /// When it moved.
        epoch: Epoch,
        /// Which view.
        view: ViewId,
        /// Where to.
        version: VersionId,
        /// When that was seen, in milliseconds since 1970; logs of formats 1 and 2 do not say it.
        time: Option<i64>,
    },
    /// A view is gone from this epoch on.
    ViewGone {
        /// When it went.
        epoch: Epoch,
        /// Which view.
        view: ViewId,
        /// When that was seen, as for a move.
        time: Option<i64>,
    },
    /// Versions are kept no more from this epoch on: no commit leads to them, and what only they hold may be removed.
    Dropped {
        /// When they went.
        epoch: Epoch,
        /// Their numbers. No view points at one of them.
        versions: RoaringBitmap,
    },
    /// The tokens of every version so far were counted again, by another analyzer. It is the only record of its group.
    Recounted {
        /// When they were counted.
        epoch: Epoch,
        /// Tokens of the live entries by field, of each version in order.
        live_tokens: Vec<Tokens>,
    },
}

/// What BM25 needs to know of a version, and how many documents it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Entries alive.
    pub live_entries: u64,
    /// Tokens of the live entries by field.
    pub live_tokens: Tokens,
    /// Document rows alive, whatever became of the document.
    pub live_documents: u64,
}

/// A version as the archive keeps it, without its bitmaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// Its name: the position in the log.
    pub id: VersionId,
    /// The epoch that made it.
    pub epoch: Epoch,
    /// The source that the commit belongs to.
    pub source: SourceId,
    /// The commit, or the tree hash of a directory.
    pub commit: CommitId,
    /// The commit's first parent, even where that has no snapshot.
    pub parent: Option<CommitId>,
    /// The version that its changes are against; always an earlier one.
    pub base: Option<VersionId>,
    /// Whether what the changes insert was introduced by this very commit.
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

/// Where a view points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ViewHead {
    /// The version.
    pub version: VersionId,
    /// The epoch in which the view came to point there.
    pub epoch: Epoch,
}

/// One move of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// When it moved.
    pub epoch: Epoch,
    /// Where to; nowhere, where the view is gone.
    pub version: Option<VersionId>,
    /// When that was seen, in milliseconds since 1970, as the log says it.
    pub time: Option<i64>,
}

//! Sources: the content of a git repository or a directory, and its changes, as values.
//!
//! In: a repository's objects and refs, a directory's files, and kernel events. Out: commits, the files of a state, the changes
//! between two states, and the bytes of a content.
//!
//! **Invariant:** content and kind decide what is a change, never a time stamp, a rename guess or an event: two states with the
//! same (path, content, kind) give no change, however they arose. Events only say *when* to look. The state is read from the
//! source itself, so a lost or doubled event costs time and never correctness.
//!
//! Wall time enters here (committer times, settling) and travels on as data. Later modules decide what a content means, whether a
//! rule wants it, and which epoch it belongs to.

pub mod directory;
mod editors;
mod encoding;
mod events;
pub mod git;
mod stores;
#[cfg(test)]
mod testing;
pub mod worktree;

use dataflows::data::{ContentId, DocumentPath};
pub use dataflows::data::{FileChange, FileMode, FileState};
pub use dataflows::memo::Content;
use snapshots::CommitId;
use std::collections::BTreeMap;

pub use editors::left_by_editor;
pub use events::EventState;
use events::Events;
pub use stores::{STORE_MARK, is_store};
use stores::{Stores, store_above, store_reason};

/// The data of a commit that a tracker needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Commit {
    /// Its id.
    pub id: CommitId,
    /// The first parent that the commit names, even if a shallow clone lacks it.
    pub first_parent: Option<CommitId>,
    /// Committer time in seconds since 1970-01-01T00:00:00Z.
    pub time: i64,
}

/// What a look at files on disk left out of the state, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeftOut {
    /// Stores of tidemill.
    pub stores: usize,
    /// Files that an editor left.
    pub editors: usize,
}

/// Reason why a content could not be read; a fault of one document, never of the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source does not hold the content (a partial clone, a pruned object, a file that is gone).
    #[error("content {0} is not in the source; fetch it, or wait for the next change of its file")]
    Missing(ContentId),
    /// The file was written again after its content id was computed.
    #[error("the file with content {0} has changed since; its next change is on the way")]
    Changed(ContentId),
    /// The id names a commit, tree or tag.
    #[error("object {0} is no file content but a {1}")]
    NotABlob(ContentId, &'static str),
    /// The object database could not answer.
    #[error("cannot read content {content} from the repository")]
    Object {
        /// The requested content.
        content: ContentId,
        /// Git's error.
        source: git2::Error,
    },
    /// The disk could not answer.
    #[error("cannot read content {content} from {path}")]
    File {
        /// The requested content.
        content: ContentId,
        /// The file that held it.
        path: DocumentPath,
        /// The system's error.
        source: std::io::Error,
    },
    /// The repository could not be opened again for this thread.
    #[error(transparent)]
    Repository(#[from] git::GitError),
}

/// Returns the bytes of a content id, from any thread.
pub trait Contents: Send + Sync {
    /// Returns the bytes of `content`, or its size where that exceeds `max_bytes`.
    ///
    /// # Errors
    ///
    /// If the source does not (or no longer) hold exactly these bytes.
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError>;

    /// Returns a number that changes when the source of `content` was rewritten, as far as that is known. It only tells when to
    /// try an unreadable content again.
    fn stamp(&self, content: ContentId) -> u64 {
        let _ = content;
        0
    }
}

/// Returns the changes that lead from one set of files to another, in the order of their paths.
///
/// ```
/// use std::collections::BTreeMap;
/// use tidemill::watch::{FileMode, FileState, changes};
/// let state = FileState { content: Default::default(), mode: FileMode::Regular };
/// let after = BTreeMap::from([("README.md".into(), state)]);
/// assert_eq!(changes(&BTreeMap::new(), &after).len(), 1);
/// assert_eq!(changes(&after, &after), []);
/// ```
#[must_use]
pub fn changes(
    before: &BTreeMap<DocumentPath, FileState>,
    after: &BTreeMap<DocumentPath, FileState>,
) -> Vec<FileChange> {
    let gone_or_new = before.iter().filter_map(|(path, old)| {
        let new = after.get(path);
        (new != Some(old)).then(|| FileChange { path: path.clone(), before: Some(*old), after: new.copied() })
    });
    let added = after.iter().filter(|(path, _)| !before.contains_key(path)).map(|(path, new)| FileChange {
        path: path.clone(),
        before: None,
        after: Some(*new),
    });
    let mut changes: Vec<FileChange> = gone_or_new.chain(added).collect();
    changes.sort_unstable();
    changes
}

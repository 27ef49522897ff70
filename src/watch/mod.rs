//! Sources: what a git repository or a directory holds, and what changed in it, as values.
//!
//! In: a repository's objects and refs, a directory's files, and the kernel's word that something moved.
//! Out: commits, the files of a state, the changes between two states, and the bytes of a content.
//!
//! **Invariant:** a change is decided by content and kind, never by a time stamp, a rename guess or an event: two
//! states that hold the same (path, content, kind) give no change, however they came about. Events only say *when* to
//! look; what is there is read from the source itself, so a lost or doubled event costs time and never truth.
//!
//! Wall time enters here (committer times, settling) and travels on as data. What a content means, whether a rule wants
//! it, and which epoch it belongs to is left to the modules behind.

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

/// One commit, as far as a tracker needs it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Commit {
    /// Its id.
    pub id: CommitId,
    /// The first parent that the commit names, also where a shallow clone does not hold it.
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

/// Why a content could not be read; a fault of one document, never of the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source does not hold the content (a partial clone, a pruned object, a file that is gone).
    #[error("content {0} is not in the source; fetch it, or wait for the next change of its file")]
    Missing(ContentId),
    /// The file was written again since its content was named.
    #[error("the file with content {0} has changed since; its next change is on the way")]
    Changed(ContentId),
    /// The id names a commit, tree or tag.
    #[error("object {0} is no file content but a {1}")]
    NotABlob(ContentId, &'static str),
    /// The object database could not answer.
    #[error("cannot read content {content} from the repository")]
    Object {
        /// What was asked for.
        content: ContentId,
        /// What git says.
        source: git2::Error,
    },
    /// The disk could not answer.
    #[error("cannot read content {content} from {path}")]
    File {
        /// What was asked for.
        content: ContentId,
        /// The file that held it.
        path: DocumentPath,
        /// What the system says.
        source: std::io::Error,
    },
    /// The repository could not be opened again for this thread.
    #[error(transparent)]
    Repository(#[from] git::GitError),
}

/// Gives the bytes behind a content id, from any thread.
pub trait Contents: Send + Sync {
    /// Returns the bytes of `content`, or its size where that exceeds `max_bytes`.
    ///
    /// # Errors
    ///
    /// Where the source does not (or no longer) hold exactly these bytes.
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError>;

    /// Returns a number that changes when what holds `content` was written anew, as far as the source can tell: it says when to
    /// look again at what could not be read, and nothing else.
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

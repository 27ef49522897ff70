//! What the tracker will do next: a plan made of small steps, none of which reads a file yet.
//!
//! In: where a source's refs are and what was published. Out: steps in the order in which they must be fed.
//!
//! **Invariant:** a plan names commits only; where a head stands, and what changed since, is found when the step is taken. So a plan
//! for ten thousand commits is small, stopping between two steps loses nothing, and a step that cannot be taken is left out: the
//! one behind it starts from the last that was.

use crate::watch::git::{Commit, GitError, GitSource};
use dataflows::data::{DocumentPath, FileChange, FileState, View};
use snapshots::{CommitId, ViewId};
use std::collections::BTreeMap;

/// One step of a git source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A head of the graph moves to a commit, which gets its snapshot.
    Move {
        /// The head of the graph.
        graph_view: View,
        /// The commit that it moves to.
        to: Commit,
        /// The view that stands there afterwards, if one does.
        view: Option<ViewId>,
    },
    /// A view moves to a commit that has its snapshot, or will have it by then.
    Point {
        /// The view.
        view: ViewId,
        /// The commit.
        commit: CommitId,
    },
    /// A head leaves the graph.
    Leave {
        /// The head of the graph.
        graph_view: View,
        /// The view that is gone, if it was one.
        view: Option<ViewId>,
    },
}

/// What leads from where a head of the graph stands to a commit.
#[derive(Debug)]
pub(super) enum Diff {
    /// These changes.
    Changes(Vec<FileChange>),
    /// All of these files: after a rewrite the old commit may be gone from the repository, for this reason; the store still knows it.
    Files(BTreeMap<DocumentPath, FileState>, GitError),
}

impl Diff {
    /// Compares the trees of two commits, the first of which may be none.
    ///
    /// # Errors
    /// Where the second cannot be read, or is too large.
    pub(super) fn of(repository: &GitSource, from: Option<CommitId>, to: CommitId) -> Result<Self, GitError> {
        match (repository.diff(from, to), from) {
            (Ok(changes), _) => Ok(Self::Changes(changes)),
            (Err(error @ (GitError::TreeTooLarge { .. } | GitError::FolderTooLarge { .. })), _)
            | (Err(error), None) => Err(error),
            (Err(error), Some(_)) => Ok(Self::Files(repository.files(to)?.into_iter().collect(), error)),
        }
    }
}

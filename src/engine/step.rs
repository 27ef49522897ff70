//! A plan of the tracker: small steps, which read no file yet.
//!
//! In: a source's refs and its published versions. Out: steps in the order in which they must be fed.
//!
//! **Invariant:** a plan names commits only; a head's version and its changes are determined when the step is taken. So a plan
//! for ten thousand commits is small, a stop between two steps loses nothing, and an impossible step is left out: the next one
//! starts from the last that was taken.

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
        /// The view that points at it afterwards, if any.
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
        /// The removed view, if it was one.
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

//! A tracked directory: one view, whose versions are named by the git tree hash of its files.
//!
//! In: batches from the directory's watcher. Out: what to feed, and the version that it makes.
//!
//! **Invariant:** the parent of a directory's version is the version before it, so what a batch brought was introduced
//! by that batch.

use crate::watch::directory::{Batch, DirectorySource, DirectoryWatcher, tree_hash};
use dataflows::data::{DocumentPath, FileChange, View};
use snapshots::{CommitId, SourceId, ViewId};

/// What the view of a directory is called.
pub(super) const DIRECTORY_VIEW: &str = ".";

/// A directory that is tracked.
pub(super) struct DirectoryTracker {
    pub(super) id: SourceId,
    pub(super) name: String,
    pub(super) source: DirectorySource,
    pub(super) view: ViewId,
    /// The tree that the view stands at.
    pub(super) at: Option<CommitId>,
    /// The watcher, while it is not followed by a task of its own.
    pub(super) watcher: Option<DirectoryWatcher>,
}

/// A new state of a directory.
#[derive(Debug)]
pub(super) struct DirectoryState {
    pub(super) changes: Vec<FileChange>,
    pub(super) tree: CommitId,
    pub(super) unreadable: Vec<(DocumentPath, String)>,
}

impl DirectoryState {
    /// Names the state after a batch.
    pub(super) fn after(watcher: &DirectoryWatcher, batch: Batch) -> Self {
        Self { changes: batch.changes, tree: tree_hash(watcher.files()), unreadable: batch.unreadable }
    }
}

impl DirectoryTracker {
    /// Returns the head of the graph that stands for the directory.
    pub(super) const fn graph_view(&self) -> View {
        View(self.view.get())
    }
}

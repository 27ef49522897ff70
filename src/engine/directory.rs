//! Tracked files on disk: a directory, or the uncommitted state of a repository's work tree. Each has one view.
//!
//! In: batches from the watcher. Out: the changes to feed, and the resulting version.
//!
//! **Invariant:** a version is named by the git tree hash of its files. The parent of a directory's version is the previous
//! version, that of a work tree's is HEAD's commit; a work tree without changes points at that commit itself.

use super::EngineError;
use super::board::now;
use crate::watch::directory::{DirectorySource, DirectoryWatcher, Looks, Pace, tree_hash};
use crate::watch::git::GitSource;
pub(super) use crate::watch::worktree::WORKTREE_VIEW;
use crate::watch::worktree::WorktreeWatcher;
use crate::watch::{Commit, Contents, EventState, LeftOut};
use dataflows::data::{DocumentPath, FileChange, FileState, View};
use dataflows::rules::Rules;
use snapshots::{CommitId, SourceId, ViewId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// The name of a directory's view.
pub(super) const DIRECTORY_VIEW: &str = ".";

/// Tracked files.
pub(super) struct DirectoryTracker {
    pub(super) id: SourceId,
    pub(super) name: String,
    pub(super) files: Files,
    pub(super) view: ViewId,
    /// The target of the view: a tree, or a commit.
    pub(super) at: Option<CommitId>,
    /// The watcher, until a separate task takes it.
    pub(super) watcher: Option<Watcher>,
    /// Whether the first look accepts a loss that would be held back.
    pub(super) accepts: bool,
    /// Unreadable paths, with reason and first time.
    pub(super) unreadable: BTreeMap<DocumentPath, (String, i64)>,
}

/// A found state, before it is fed.
pub(super) struct Found {
    pub(super) state: DirectoryState,
    /// The start of the look.
    pub(super) begun: Instant,
    /// Lets the looking task continue once the state is taken.
    pub(super) _permit: Option<OwnedSemaphorePermit>,
}

/// The tracked files.
pub(super) enum Files {
    /// Those below a folder.
    Directory(Box<DirectorySource>),
    /// Those of a work tree; beside it, the store that may lie inside.
    Worktree(GitSource, PathBuf),
}

/// A watcher of either kind.
pub(super) enum Watcher {
    Directory(Box<DirectoryWatcher>),
    Worktree(Box<WorktreeWatcher>),
}

/// A new state of the files.
#[derive(Debug)]
pub(super) struct DirectoryState {
    pub(super) changes: Vec<FileChange>,
    pub(super) tree: CommitId,
    pub(super) unreadable: Vec<(DocumentPath, String)>,
    /// The commit under a work tree.
    pub(super) head: Option<Commit>,
    /// Whether the files are exactly those of that commit.
    pub(super) is_clean: bool,
    /// Whether this was a full look.
    pub(super) is_reconciled: bool,
    /// State for the next look, or the next start.
    pub(super) looks: Looks,
    /// A loss that was held back, and is accepted with these changes.
    pub(super) taken_over: Option<String>,
    /// The time of the next full look, if nothing changes before.
    pub(super) next: Instant,
}

impl Watcher {
    /// Starts from the known files.
    pub(super) fn start(
        files: &Files,
        known: BTreeMap<DocumentPath, FileState>,
        pace: Pace,
        looks: Looks,
        accepts: bool,
        rules: &Arc<Rules>,
    ) -> Result<Self, EngineError> {
        Ok(match files {
            Files::Directory(source) => {
                let source = DirectorySource::clone(source).with_rules(Arc::clone(rules));
                Self::Directory(Box::new(DirectoryWatcher::start(&source, known, pace).with_looks(looks, accepts)))
            }
            Files::Worktree(git, store) => {
                let watcher = WorktreeWatcher::start(git, store, known, pace)?.with_rules(Arc::clone(rules));
                Self::Worktree(Box::new(watcher.with_looks(looks, accepts)))
            }
        })
    }

    /// Returns a reader for the files' contents.
    pub(super) fn contents(&self, files: &Files) -> Arc<dyn Contents> {
        match (self, files) {
            (Self::Worktree(watcher), _) => Arc::new(watcher.contents()),
            (Self::Directory(_), Files::Directory(source)) => Arc::new(source.contents()),
            (Self::Directory(_), Files::Worktree(git, _)) => Arc::new(git.contents()),
        }
    }

    /// Returns the name of the watched thing in `status`.
    pub(super) const fn what(&self) -> &'static str {
        match self {
            Self::Directory(_) => "files",
            Self::Worktree(_) => "worktree",
        }
    }

    /// Waits until a look is due.
    pub(super) async fn changed(&mut self) {
        match self {
            Self::Directory(watcher) => watcher.changed().await,
            Self::Worktree(watcher) => watcher.changed().await,
        }
    }

    /// Looks, and names the found state.
    pub(super) fn look(&mut self) -> Result<DirectoryState, EngineError> {
        Ok(match self {
            Self::Directory(watcher) => {
                let batch = watcher.collect()?;
                DirectoryState {
                    changes: batch.changes,
                    tree: tree_hash(watcher.files()),
                    unreadable: batch.unreadable,
                    head: None,
                    is_clean: false,
                    is_reconciled: batch.reconciled,
                    looks: watcher.looks().clone(),
                    taken_over: batch.taken_over,
                    next: watcher.next_look(),
                }
            }
            Self::Worktree(watcher) => {
                let batch = watcher.collect()?;
                DirectoryState {
                    changes: batch.changes,
                    tree: tree_hash(watcher.files()),
                    unreadable: batch.unreadable,
                    head: batch.head,
                    is_clean: batch.is_clean,
                    is_reconciled: true,
                    looks: watcher.looks().clone(),
                    taken_over: batch.taken_over,
                    next: watcher.next_look(),
                }
            }
        })
    }

    /// Returns the time until the next full look, if nothing changes before.
    pub(super) fn next_look(&self) -> Duration {
        let next = match self {
            Self::Directory(watcher) => watcher.next_look(),
            Self::Worktree(watcher) => watcher.next_look(),
        };
        next.saturating_duration_since(Instant::now())
    }

    /// Returns what the last looks left out, by reason.
    pub(super) fn left_out(&self) -> LeftOut {
        match self {
            Self::Directory(watcher) => watcher.left_out(),
            Self::Worktree(watcher) => watcher.left_out(),
        }
    }

    /// Returns how well events arrive.
    pub(super) fn state(&self) -> EventState {
        match self {
            Self::Directory(watcher) => watcher.state(),
            Self::Worktree(watcher) => watcher.state(),
        }
    }
}

impl DirectoryState {
    /// Returns the commit that names the state, its parent, and its time; `at` is the view's old target.
    pub(super) fn commit(&self, at: Option<CommitId>) -> (CommitId, Option<CommitId>, i64) {
        let now = jiff::Timestamp::now().as_second();
        match self.head {
            Some(head) if self.is_clean => (head.id, head.first_parent, head.time),
            Some(head) => (self.tree, Some(head.id), now),
            None => (self.tree, at.filter(|parent| *parent != self.tree), now),
        }
    }
}

impl DirectoryTracker {
    /// Returns the head of the graph for the files.
    pub(super) const fn graph_view(&self) -> View {
        View(self.view.get())
    }

    /// Takes the unreadable paths of a look; returns log lines for new ones and for those that are over.
    pub(super) fn note_unreadable(&mut self, unreadable: Vec<(DocumentPath, String)>) -> Option<String> {
        let mut known = std::mem::take(&mut self.unreadable);
        let was_troubled = !known.is_empty();
        let (mut first, mut new) = (None, 0_usize);
        for (path, why) in unreadable {
            let since = known.remove(&path).map(|(_, since)| since);
            if since.is_none() {
                first.get_or_insert_with(|| format!("{path}: {why}"));
                new += 1;
            }
            self.unreadable.insert(path, (why, since.unwrap_or_else(now)));
        }
        let more = if new > 1 { format!(" (and {} more)", new - 1) } else { String::new() };
        match first {
            Some(first) => {
                Some(format!("cannot read {first}{more}; what was indexed there stays, and it is tried again"))
            }
            None if was_troubled && self.unreadable.is_empty() => Some("everything can be read again".to_owned()),
            None => None,
        }
    }
}

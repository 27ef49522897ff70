//! The line of commits that a view has followed: first parents, and which of them are new.
//!
//! In: commit ids. Out: commits, oldest first.
//!
//! **Invariant:** a run of first parents is unbroken. No commit that the known head reaches counts as new, through whichever
//! parent. So a force-push, a rebase and a merge of tracked commits all give exactly the commits that were never there.
//!
//! History ends where a shallow clone ends. This module does not know which commits have snapshots.

use super::{Commit, GitError, GitSource, commit_id, oid, read_commit};
use git2::{Repository, Sort};
use rustc_hash::FxHashSet;
use snapshots::CommitId;

/// So many commits of the first-parent line are searched for the known head before reachability is computed.
const NEAR_COMMITS: usize = 256;

impl GitSource {
    /// Returns `from` and the first parents before it, oldest first.
    ///
    /// The walk ends before the first commit for which `stop` is true, after `limit` commits (`from` included), or at the end of
    /// history.
    ///
    /// # Errors
    ///
    /// If a commit is missing though the clone is not shallow, which it names.
    pub fn first_parents(
        &self,
        from: CommitId,
        stop: impl Fn(&CommitId) -> bool,
        limit: Option<usize>,
    ) -> Result<Vec<Commit>, GitError> {
        let repository = self.pool.get()?;
        let mut commits = Vec::new();
        for commit in Line::new(&repository, from).take(limit.unwrap_or(usize::MAX)) {
            let commit = commit?;
            if stop(&commit.id) {
                break;
            }
            commits.push(commit);
        }
        commits.reverse();
        Ok(commits)
    }

    /// Returns every first-parent commit of `head` that `known` does not reach, oldest first.
    ///
    /// It is empty if `head` was there before, as after a reset to an older commit.
    ///
    /// # Errors
    ///
    /// If a commit is missing, which the error names. A `known` that was pruned after a force-push is such a commit: treat the
    /// view as a new one then.
    pub fn new_commits(&self, known: CommitId, head: CommitId) -> Result<Vec<Commit>, GitError> {
        if known == head {
            return Ok(Vec::new());
        }
        let repository = self.pool.get()?;
        read_commit(&repository, known)?;
        read_commit(&repository, head)?;
        // The known head is nearly always on the line. Commits above it there are its descendants, so it cannot reach them.
        let mut commits = Vec::new();
        for commit in Line::new(&repository, head).take(NEAR_COMMITS).map_while(Result::ok) {
            if commit.id == known {
                commits.reverse();
                return Ok(commits);
            }
            commits.push(commit);
        }
        // Reachability counts every parent. Then the first-parent line is followed while it stays outside the known set. That set
        // is closed under parents, so the line never leaves it again.
        let is_new: Box<dyn Fn(&CommitId) -> bool> = match unreached(&repository, known, head) {
            Ok(unreached) => Box::new(move |id| unreached.contains(id)),
            // The walk refuses commits whose author or committer line libgit2 does not understand.
            Err(_) => {
                let reached = reached_by(&repository, known)?;
                Box::new(move |id| !reached.contains(id))
            }
        };
        commits.clear();
        for commit in Line::new(&repository, head) {
            let commit = commit?;
            if !is_new(&commit.id) {
                break;
            }
            commits.push(commit);
        }
        commits.reverse();
        Ok(commits)
    }

    /// Tells whether `ancestor` is `commit` or reached by it through any parent.
    ///
    /// # Errors
    ///
    /// If a commit is missing, which it names.
    pub fn is_ancestor(&self, ancestor: CommitId, commit: CommitId) -> Result<bool, GitError> {
        let repository = self.pool.get()?;
        read_commit(&repository, ancestor)?;
        read_commit(&repository, commit)?;
        if ancestor == commit {
            return Ok(true);
        }
        match repository.graph_descendant_of(oid(commit), oid(ancestor)) {
            Ok(descends) => Ok(descends),
            Err(_) => Ok(reached_by(&repository, commit)?.contains(&ancestor)),
        }
    }

    /// Returns the first commit of the first-parent line of `head`; nothing if history is truncated, unreadable, or longer than
    /// `limit`.
    #[must_use]
    pub fn root_of(&self, head: CommitId, limit: usize) -> Option<CommitId> {
        let repository = self.pool.get().ok()?;
        if repository.is_shallow() {
            return None;
        }
        let mut line = Line::new(&repository, head).take(limit).map_while(Result::ok);
        line.find(|commit| commit.first_parent.is_none()).map(|root| root.id)
    }

    /// Returns the last first-parent commit of `head` whose committer time is not after `time`, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// If a commit is missing, which it names.
    pub fn first_parent_at(&self, head: CommitId, time: i64) -> Result<Option<Commit>, GitError> {
        let repository = self.pool.get()?;
        Line::new(&repository, head).find(|commit| !matches!(commit, Ok(commit) if commit.time > time)).transpose()
    }
}

/// Returns the commits that `head` reaches and `known` does not.
fn unreached(repository: &Repository, known: CommitId, head: CommitId) -> Result<FxHashSet<CommitId>, git2::Error> {
    let mut walk = repository.revwalk()?;
    walk.set_sorting(Sort::NONE)?;
    walk.push(oid(head))?;
    walk.hide(oid(known))?;
    walk.map(|id| id.map(commit_id)).collect()
}

/// Returns a commit and all that it reaches through any parent; it reads every one of them, as git would.
///
/// History ends where a shallow clone ends.
fn reached_by(repository: &Repository, from: CommitId) -> Result<FxHashSet<CommitId>, GitError> {
    let mut reached = FxHashSet::from_iter([from]);
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        match read_commit(repository, id) {
            Ok(commit) => open.extend(commit.parents.into_iter().filter(|parent| reached.insert(*parent))),
            Err(GitError::MissingObject { .. }) if id != from && repository.is_shallow() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(reached)
}

/// A commit and its first parents, newest first.
pub(super) struct Line<'a> {
    repository: &'a Repository,
    next: Option<CommitId>,
    started: bool,
}

impl<'a> Line<'a> {
    pub(super) fn new(repository: &'a Repository, from: CommitId) -> Self {
        Self { repository, next: Some(from), started: false }
    }
}

impl Iterator for Line<'_> {
    type Item = Result<Commit, GitError>;

    fn next(&mut self) -> Option<Self::Item> {
        let id = self.next.take()?;
        let commit = match read_commit(self.repository, id) {
            Ok(commit) => Commit::from(commit),
            // The child names the commit before a shallow clone's boundary, which is missing.
            Err(GitError::MissingObject { .. }) if self.started && self.repository.is_shallow() => return None,
            Err(error) => return Some(Err(error)),
        };
        self.started = true;
        self.next = commit.first_parent;
        Some(Ok(commit))
    }
}

//! The line of commits that a view has walked: first parents, and which of them are new.
//!
//! In: commit ids. Out: commits, oldest first.
//!
//! **Invariant:** a run of first parents is unbroken, and no commit that the known head reaches is called new, whichever
//! parent reaches it; so a force-push, a rebase and a merge of what was tracked before all give exactly the commits
//! that were never there.
//!
//! History ends where a shallow clone ends. What has a snapshot already is not known here.

use super::{Commit, GitError, GitSource, commit_id, commit_value, find_commit, oid};
use git2::{ErrorCode, Repository, Sort};
use rustc_hash::FxHashSet;
use snapshots::CommitId;

impl GitSource {
    /// Returns `from` and the first parents before it, oldest first.
    ///
    /// The walk ends in front of the first commit that `stop` names, after `limit` commits (`from` included), or where
    /// history ends.
    ///
    /// # Errors
    ///
    /// Where a commit is missing though the clone is not shallow, which it names.
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
    /// It is empty where `head` has been there before, as after a reset to an older commit.
    ///
    /// # Errors
    ///
    /// Where a commit is missing, which it names. A `known` that was pruned after a force-push is such a commit: the
    /// view is then to be treated as one first seen.
    pub fn new_commits(&self, known: CommitId, head: CommitId) -> Result<Vec<Commit>, GitError> {
        if known == head {
            return Ok(Vec::new());
        }
        let repository = self.pool.get()?;
        find_commit(&repository, known)?;
        find_commit(&repository, head)?;
        // Reachability counts every parent; only then is the line of first parents followed, while it stays outside.
        // What `known` reaches is closed under parents, so the line never leaves it again once it has entered.
        let failed = |source| GitError::Read { what: format!("the history of {head}"), source };
        let mut walk = repository.revwalk().map_err(failed)?;
        walk.set_sorting(Sort::NONE).map_err(failed)?;
        walk.push(oid(head)).map_err(failed)?;
        walk.hide(oid(known)).map_err(failed)?;
        let unreached: FxHashSet<CommitId> =
            walk.map(|id| id.map(commit_id)).collect::<Result<_, _>>().map_err(failed)?;
        let mut commits = Vec::new();
        for commit in Line::new(&repository, head) {
            let commit = commit?;
            if !unreached.contains(&commit.id) {
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
    /// Where a commit is missing, which it names.
    pub fn is_ancestor(&self, ancestor: CommitId, commit: CommitId) -> Result<bool, GitError> {
        let repository = self.pool.get()?;
        find_commit(&repository, ancestor)?;
        find_commit(&repository, commit)?;
        if ancestor == commit {
            return Ok(true);
        }
        repository
            .graph_descendant_of(oid(commit), oid(ancestor))
            .map_err(|source| GitError::Read { what: format!("the history of {commit}"), source })
    }

    /// Returns the last first-parent commit of `head` whose committer time is not after `time`, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// Where a commit is missing, which it names.
    pub fn first_parent_at(&self, head: CommitId, time: i64) -> Result<Option<Commit>, GitError> {
        let repository = self.pool.get()?;
        Line::new(&repository, head).find(|commit| !matches!(commit, Ok(commit) if commit.time > time)).transpose()
    }
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
        let commit = match self.repository.find_commit(oid(id)) {
            Ok(commit) => commit_value(&commit),
            // The commit in front of a shallow clone's boundary is named by its child and not there.
            Err(error) if error.code() == ErrorCode::NotFound && self.started && self.repository.is_shallow() => {
                return None;
            }
            Err(error) => return Some(Err(super::object_error("commit", id, error))),
        };
        self.started = true;
        self.next = commit.first_parent;
        Some(Ok(commit))
    }
}

//! The line of commits that a view has walked: first parents, and which of them are new.
//!
//! In: commit ids. Out: commits, oldest first.
//!
//! **Invariant:** a run of first parents is unbroken, and no commit that the known head reaches is called new, whichever
//! parent reaches it; so a force-push, a rebase and a merge of what was tracked before all give exactly the commits
//! that were never there.
//!
//! History ends where a shallow clone ends. What has a snapshot already is not known here.

use super::{Commit, GitError, GitSource, commit_id, oid, read_commit};
use git2::{Repository, Sort};
use rustc_hash::FxHashSet;
use snapshots::CommitId;

/// How far along the line of first parents the known head is looked for before reachability is asked.
const NEAR_COMMITS: usize = 256;

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
        read_commit(&repository, known)?;
        read_commit(&repository, head)?;
        // Nearly always the known head is on the line itself. What is above it there descends from it, so it cannot reach it.
        let mut commits = Vec::new();
        for commit in Line::new(&repository, head).take(NEAR_COMMITS).map_while(Result::ok) {
            if commit.id == known {
                commits.reverse();
                return Ok(commits);
            }
            commits.push(commit);
        }
        // Reachability counts every parent; only then is the line of first parents followed, while it stays outside.
        // What `known` reaches is closed under parents, so the line never leaves it again once it has entered.
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
    /// Where a commit is missing, which it names.
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

    /// Returns the commit at which the first-parent line of `head` begins; nothing where history is cut off, cannot be read, or
    /// is longer than `limit`.
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
    /// Where a commit is missing, which it names.
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
            // The commit in front of a shallow clone's boundary is named by its child and not there.
            Err(GitError::MissingObject { .. }) if self.started && self.repository.is_shallow() => return None,
            Err(error) => return Some(Err(error)),
        };
        self.started = true;
        self.next = commit.first_parent;
        Some(Ok(commit))
    }
}

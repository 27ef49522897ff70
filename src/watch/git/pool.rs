//! Open handles of one repository, lent to one thread at a time.
//!
//! In: the repository's path. Out: a handle that goes back when it is dropped.
//!
//! **Invariant:** a handle serves one thread at a time (libgit2 objects are not `Sync`), and at most [`MAX_IDLE`] are
//! kept; each keeps its own pack windows and at most 16 MiB of delta bases a pack (libgit2 `pack.h`), while the object
//! cache is one for the process, holds no blobs and is bounded at 256 MB (libgit2 `cache.c`).

use super::{GitError, open};
use git2::Repository;
use rustc_hash::FxHashMap;
use snapshots::CommitId;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Handles kept for later; more threads than this open one for a moment (about a tenth of a millisecond each).
const MAX_IDLE: usize = 16;
/// Refused commits that are remembered; beyond that number all are forgotten and checked again.
const MAX_REFUSED: usize = 100_000;

/// The handles of one repository.
pub(super) struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Repository>>,
    /// Commits whose tree is larger than any real one, and why; a commit never changes.
    refused: Mutex<FxHashMap<CommitId, &'static str>>,
}

impl Pool {
    /// Makes a pool that holds its first handle already.
    pub(super) fn new(path: PathBuf, first: Repository) -> Self {
        // A later change of directory must not make a relative path name something else.
        let path = std::path::absolute(&path).unwrap_or(path);
        Self { path, idle: Mutex::new(vec![first]), refused: Mutex::default() }
    }

    /// Returns why a commit was refused, if it was.
    pub(super) fn refusal(&self, commit: CommitId) -> Option<&'static str> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).get(&commit).copied()
    }

    /// Remembers that a commit was refused.
    pub(super) fn refuse(&self, commit: CommitId, what: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= MAX_REFUSED {
            refused.clear();
        }
        refused.insert(commit, what);
    }

    /// Opens a handle that is not shared, for a caller that changes its settings.
    pub(super) fn open(&self) -> Result<Repository, GitError> {
        open(&self.path)
    }

    /// Lends a handle.
    pub(super) fn get(&self) -> Result<Lent<'_>, GitError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let repository = match idle {
            Some(repository) => repository,
            None => self.fresh()?,
        };
        Ok(Lent { pool: self, repository: Some(repository) })
    }

    /// Opens a handle that knows all current packs.
    pub(super) fn fresh(&self) -> Result<Repository, GitError> {
        open(&self.path)
    }
}

/// A handle, until it is dropped.
pub(in crate::watch) struct Lent<'a> {
    pool: &'a Pool,
    repository: Option<Repository>,
}

impl Deref for Lent<'_> {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        self.repository.as_ref().expect("the handle is taken only when this is dropped")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.extend(self.repository.take());
        }
    }
}

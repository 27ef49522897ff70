//! Git repositories as sources: their heads, their history, the files of a commit, and the changes between two.
//!
//! In: a path, bare or with a work tree. Out: [`Head`]s, [`Commit`]s, and changes as values; contents through [`GitContents`].
//!
//! **Invariant:** all data comes from the object database and the refs, never from a work tree or an index, so line endings,
//! ignore files and attributes have no effect. Nothing in the repository is ever written, not even a lock, except by
//! [`GitSource::fetch`].
//!
//! Names are bytes. A missing blob is no error here (its document gets a fault when it is read). A missing commit or tree is an
//! error that names the object. The tracker decides which commits become epochs.

mod contents;
mod expansion;
mod fetch;
mod heads;
mod history;
mod lfs;
mod pool;
mod raw;
mod reach;
mod refs;
mod resolve;
mod tree;

pub use contents::GitContents;
pub use heads::{Head, HeadState, Heads, RefPattern};
pub use reach::Reach;
pub use refs::{RefWatcher, Woken};
pub use resolve::{is_abbreviation, parse_time, split_revision};

pub use super::Commit;
use super::{left_by_editor, store_above, store_reason};
use dataflows::data::DocumentPath;
use dataflows::rules::Rules;
use git2::{Error, ErrorCode, ObjectType, Oid, Repository, RepositoryOpenFlags};
use pool::Pool;
use raw::read_commit;
use snapshots::CommitId;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

/// Why a repository did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is none at the path itself.
    #[error("no git repository at {path}; name its root, or use dir:{path} to track the files as they are")]
    NoRepository {
        /// The requested path.
        path: PathBuf,
    },
    /// Nothing stands at the path.
    #[error("there is nothing at {path:?}; name the root of a git repository, or a folder as dir:PATH")]
    Nothing {
        /// What was asked for.
        path: PathBuf,
    },
    /// The path is a file.
    #[error("{path} is a file; name the root of a git repository, or the folder that holds it as dir:PATH")]
    File {
        /// What was asked for.
        path: PathBuf,
    },
    /// The path lies inside a work tree.
    #[error("{path} is inside the repository {root}; name that, or use dir:{path} to track the files as they are")]
    InsideRepository {
        /// The requested path.
        path: PathBuf,
        /// The root of the work tree.
        root: PathBuf,
    },
    /// Another user owns the repository.
    #[error("{path} belongs to another user; allow it with: git config --global --add safe.directory '{path}'")]
    ForeignOwner {
        /// The repository.
        path: PathBuf,
    },
    /// The repository uses a feature that this build does not read.
    #[error("{path} uses {what}, which this build does not read; {next}")]
    Unsupported {
        /// The repository.
        path: PathBuf,
        /// The feature.
        what: &'static str,
        /// The advice.
        next: &'static str,
    },
    /// Any other reason why it does not open.
    #[error("cannot open the repository {path}")]
    Open {
        /// The repository.
        path: PathBuf,
        /// Git's error.
        source: Error,
    },
    /// A commit or tree is not there.
    #[error("{kind} {id} is missing from the repository; a shallow or partial clone must fetch it first")]
    MissingObject {
        /// `commit`, `tree`, …
        kind: &'static str,
        /// Its id.
        id: CommitId,
    },
    /// Something could not be read.
    #[error("cannot read {what} from the repository")]
    Read {
        /// The attempted operation.
        what: String,
        /// Git's error.
        source: Error,
    },
    /// The tree is deeper or larger than any real one.
    #[error("the tree of commit {id} {what}; it is not indexed")]
    TreeTooLarge {
        /// The commit.
        id: CommitId,
        /// Which limit it passes.
        what: &'static str,
    },
    /// A folder is larger than any real one.
    #[error("tree {id} has {bytes} bytes, more than any real folder; what holds it is not indexed")]
    FolderTooLarge {
        /// The tree.
        id: CommitId,
        /// Its size.
        bytes: usize,
    },
    /// A part of the repository that holds its refs cannot be read.
    #[error("cannot see {path}; what was indexed of the repository stays")]
    Unseen {
        /// The part.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The repository has no work tree.
    #[error("{path} is bare and has no work tree; leave --worktree out")]
    Bare {
        /// The repository.
        path: PathBuf,
    },
    /// There is nothing to fetch from.
    #[error(
        "the repository has no remote to fetch from; add one with `git remote add origin URL`, or leave --fetch out"
    )]
    NoRemote,
    /// The remote did not send its data.
    #[error("cannot fetch from {remote}; {next}")]
    Fetch {
        /// The remote.
        remote: String,
        /// The advice.
        next: String,
        /// Git's error.
        source: Error,
    },
    /// A ref pattern cannot be parsed.
    #[error("cannot read the ref pattern {pattern:?}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The error.
        source: globset::Error,
    },
    /// No commit matches a revision.
    #[error("no commit, branch or tag is called {rev:?}; `git log`, `git branch -a` and `git tag` list what there is")]
    NoRevision {
        /// The requested revision.
        rev: String,
    },
    /// Several commits match a revision.
    #[error("{rev:?} is ambiguous: it could be {}; name one of them", candidates.join(", "))]
    AmbiguousRevision {
        /// The requested revision.
        rev: String,
        /// Its possible meanings, at most ten.
        candidates: Vec<String>,
    },
    /// A revision is a range, or another set of commits.
    #[error("{rev:?} names several commits; name one")]
    SeveralCommits {
        /// The requested revision.
        rev: String,
    },
    /// The history ends before the revision.
    #[error("{rev:?} lies before the history's start: {base} has {length} first-parent commits")]
    BeforeHistory {
        /// The requested revision.
        rev: String,
        /// The start of the count.
        base: String,
        /// How many commits there are, the base included.
        length: usize,
    },
}

/// One git repository.
///
/// It is cheap to clone, and every method may be called from any thread.
#[derive(Clone)]
pub struct GitSource {
    pool: Arc<Pool>,
}

impl GitSource {
    /// Opens the repository at `path`: a bare one, a work tree's root, or a linked work tree's.
    ///
    /// # Errors
    ///
    /// If there is none, if another user owns it, or if it uses a feature that this build does not read (reftable, SHA-256); each
    /// has a message of one line.
    pub fn open(path: &Path) -> Result<Self, GitError> {
        let repository = open(path)?;
        Ok(Self { pool: Arc::new(Pool::new(path.to_owned(), repository)) })
    }

    /// Returns the commit called `id`.
    ///
    /// # Errors
    ///
    /// If the repository does not hold it, or it is no commit.
    pub fn commit(&self, id: CommitId) -> Result<Commit, GitError> {
        let repository = self.pool.get()?;
        read_commit(&repository, id).map(Commit::from)
    }

    /// Tells whether the repository holds an object of this name.
    #[must_use]
    pub fn holds(&self, id: CommitId) -> bool {
        self.pool.get().is_ok_and(|repository| repository.odb().is_ok_and(|objects| objects.exists(oid(id))))
    }

    /// Tells whether history is truncated, so that its beginning is unknown.
    ///
    /// # Errors
    ///
    /// If the repository no longer opens.
    pub fn is_shallow(&self) -> Result<bool, GitError> {
        Ok(self.pool.get()?.is_shallow())
    }

    /// Returns the folder that all work trees of the repository share, as it is called on disk.
    ///
    /// # Errors
    ///
    /// If the repository no longer opens.
    pub fn common_folder(&self) -> Result<PathBuf, GitError> {
        let folder = self.pool.get()?.commondir().to_owned();
        Ok(folder.canonicalize().unwrap_or(folder))
    }

    /// Returns the root of the work tree.
    ///
    /// # Errors
    ///
    /// If the repository is bare.
    pub fn work_tree(&self) -> Result<PathBuf, GitError> {
        let repository = self.pool.get()?;
        let bare = || GitError::Bare { path: repository.path().to_owned() };
        repository.workdir().map(Path::to_owned).ok_or_else(bare)
    }

    /// Returns the commit that HEAD leads to, unless it is unborn.
    ///
    /// # Errors
    ///
    /// If HEAD or its commit cannot be read.
    pub fn head_commit(&self) -> Result<Option<Commit>, GitError> {
        let repository = self.pool.get()?;
        let failed = |source| GitError::Read { what: "HEAD".to_owned(), source };
        match repository.head() {
            Ok(head) => match head.target() {
                Some(id) => read_commit(&repository, commit_id(id)).map(|commit| Some(commit.into())),
                None => Err(failed(Error::from_str("it names nothing"))),
            },
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns the reason why an existing path of the work tree may be no file of a commit.
    #[must_use]
    pub fn why_not(&self, path: &DocumentPath, rules: &Rules) -> Option<String> {
        let repository = self.pool.get().ok()?;
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let metadata = repository.workdir()?.join(path).symlink_metadata().ok()?;
        if let Some(store) = store_above(repository.workdir()?, path) {
            return Some(store_reason(&store));
        }
        if repository.is_path_ignored(path).unwrap_or(false) {
            return Some(format!("git ignores it; `git check-ignore -v {}` names the rule", path.display()));
        }
        if let Some(pattern) = left_by_editor(path, Some(rules)).filter(|_| !metadata.is_dir()) {
            return Some(format!(
                "it is what an editor leaves (`{pattern}`) and in no commit up to this version; commit it, or give it a rule with `exclude = false` and track with --worktree"
            ));
        }
        let what = if metadata.is_dir() { "a folder of the work tree" } else { "in the work tree" };
        Some(format!("it is {what} and in no commit up to this version; commit it, or track with --worktree"))
    }

    /// Lends a handle to the watchers beside this module.
    pub(super) fn repository(&self) -> Result<pool::Lent<'_>, GitError> {
        self.pool.get()
    }

    /// Opens a separate handle for the watchers beside this module, which may give it another index.
    pub(super) fn open_again(&self) -> Result<Repository, GitError> {
        self.pool.open()
    }

    /// Returns a reader for the contents of this repository's files.
    #[must_use]
    pub fn contents(&self) -> GitContents {
        GitContents::new(Arc::clone(&self.pool))
    }
}

/// Opens one handle, or says in one line why not.
fn open(path: &Path) -> Result<Repository, GitError> {
    allow_partial_clones();
    let no_ceiling: [&OsStr; 0] = [];
    let source = match Repository::open_ext(path, RepositoryOpenFlags::NO_SEARCH, no_ceiling) {
        Ok(repository) => return Ok(repository),
        Err(error) => error,
    };
    let path = path.to_owned();
    if source.code() == ErrorCode::Owner {
        // Git compares the setting with the full path.
        return Err(GitError::ForeignOwner { path: path.canonicalize().unwrap_or(path) });
    }
    if source.code() == ErrorCode::NotFound {
        return Err(match Repository::discover(&path).ok() {
            Some(found) => {
                let root = found.workdir().unwrap_or_else(|| found.path()).to_owned();
                GitError::InsideRepository { path, root }
            }
            None => match std::fs::metadata(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => GitError::Nothing { path },
                Ok(metadata) if metadata.is_file() => GitError::File { path },
                _ => GitError::NoRepository { path },
            },
        });
    }
    // Only the error's text says which extension caused it: its code is the general one.
    let message = source.message().to_lowercase();
    let unsupported = |what, next| GitError::Unsupported { path: path.clone(), what, next };
    Err(if message.contains("refstorage") {
        unsupported("the reftable format for refs", "convert it with: git refs migrate --ref-format=files")
    } else if message.contains("object format") || message.contains("objectformat") {
        unsupported("SHA-256 object ids", "track a SHA-1 clone of it, or use dir:")
    } else {
        GitError::Open { path, source }
    })
}

/// Makes libgit2 open partial clones: an object that such a clone lacks is simply missing, and is never fetched.
fn allow_partial_clones() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[expect(unsafe_code, reason = "libgit2 keeps the list in a static variable that nothing guards")]
        // SAFETY: every repository is opened through `open`, which waits for this one call to end; so nothing reads the
        // list while it is written, and it is written once a process.
        let allowed = unsafe { git2::opts::set_extensions(&["partialclone"]) };
        if let Err(error) = allowed {
            tracing::warn!("partial clones cannot be opened: {error}");
        }
    });
}

/// Returns an id as git2 has it.
fn oid(id: CommitId) -> Oid {
    Oid::from_bytes(id.as_bytes()).expect("twenty bytes are an object id")
}

/// Returns an id as the archive has it.
fn commit_id(oid: Oid) -> CommitId {
    CommitId::from_bytes(oid.as_bytes().try_into().expect("an object id of this build is twenty bytes"))
}

/// Turns a failed look-up into an error that names the object.
fn object_error(kind: &'static str, id: CommitId, source: Error) -> GitError {
    match source.code() {
        // libgit2 treats a pack that it cannot open as missing.
        ErrorCode::NotFound => match crate::resources::refuses_files() {
            None => GitError::MissingObject { kind, id },
            Some(refused) => GitError::Read { what: format!("{kind} {id}"), source: no_files(&refused) },
        },
        _ => GitError::Read { what: format!("{kind} {id}"), source },
    }
}

/// Returns the error that git would give for files that it could not open.
fn no_files(refused: &std::io::Error) -> Error {
    Error::new(ErrorCode::GenericError, git2::ErrorClass::Os, refused.to_string())
}

/// Returns the word for a kind of object.
fn kind_name(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::Commit => "commit",
        ObjectType::Tree => "tree",
        ObjectType::Tag => "tag",
        ObjectType::Blob => "blob",
        ObjectType::Any => "object",
    }
}

#[cfg(test)]
mod tests;

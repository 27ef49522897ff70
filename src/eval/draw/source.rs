//! The repository that questions are drawn from, and the one that is indexed for them.
//!
//! In: a path and a revision. Out: files with their texts; a bare repository that shares the source's objects and has the commit in
//! question, or one with some files replaced, as its branch `main`.
//!
//! **Invariant:** the source is read only. A replaced commit follows from the source's commit and the new texts: its names and dates are
//! the commit's.

use super::{Drawing, MAX_FILE};
use crate::watch::git::{GitError, GitSource};
use crate::watch::{Content, Contents};
use crate::workers::WorkerError;
use dataflows::data::{ContentId, DocumentPath, FileMode};
use git2::build::TreeUpdateBuilder;
use git2::{Oid, Repository, Signature, Time};
use snapshots::CommitId;
use std::path::{Path, PathBuf};

/// Why nothing can be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The source refused.
    #[error(transparent)]
    Git(#[from] GitError),
    /// No parser can be started.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// There is nothing to draw from.
    #[error("the repository {path} has no commit yet; commit something")]
    Unborn {
        /// The repository.
        path: PathBuf,
    },
    /// The copy's folder is in use.
    #[error("{path} is there already; name another folder with --out, or remove it")]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The copy cannot be written.
    #[error("cannot write the repository {path}")]
    Copy {
        /// The copy.
        path: PathBuf,
        /// What git says.
        source: git2::Error,
    },
    /// The copy cannot be tied to the source.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// The source at one commit.
pub(super) struct Source {
    pub(super) git: GitSource,
    pub(super) commit: CommitId,
    under: Vec<String>,
}

impl Source {
    pub(super) fn open(drawing: &Drawing<'_>) -> Result<Self, DrawError> {
        let git = GitSource::open(drawing.source)?;
        let unborn = || DrawError::Unborn { path: drawing.source.to_owned() };
        let commit = match drawing.at {
            Some(rev) => git.resolve(rev)?,
            None => git.head_commit()?.ok_or_else(unborn)?.id,
        };
        Ok(Self { git, commit, under: drawing.under.to_vec() })
    }

    /// Returns the regular files whose names end in one of these, sorted by path.
    pub(super) fn files(&self, extensions: &[&str]) -> Result<Vec<(DocumentPath, ContentId)>, DrawError> {
        let is_wanted = |path: &DocumentPath| {
            let extension = path.extension().and_then(|extension| std::str::from_utf8(extension).ok());
            extension.is_some_and(|extension| extensions.contains(&extension.to_ascii_lowercase().as_str()))
        };
        let files = self.git.files(self.commit)?.into_iter();
        let files = files.filter(|(path, state)| state.mode == FileMode::Regular && is_wanted(path));
        Ok(files.map(|(path, state)| (path, state.content)).collect())
    }

    /// Whether questions are drawn from a path.
    pub(super) fn draws_from(&self, path: &DocumentPath) -> bool {
        let is_below = |folder: &String| {
            let folder = folder.trim_end_matches('/').as_bytes();
            path.as_bytes().strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
        };
        self.under.is_empty() || self.under.iter().any(is_below)
    }

    /// Returns a file's text; nothing where it cannot be read, is large, or is not UTF-8.
    pub(super) fn text(&self, content: ContentId) -> Option<String> {
        match self.git.contents().read(content, MAX_FILE).ok()? {
            Content::Bytes(bytes) => String::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Opens the repository for what only libgit2 tells.
    pub(super) fn repository(&self) -> Result<Repository, DrawError> {
        let path = self.git.common_folder()?;
        Repository::open(&path).map_err(|source| GitError::Open { path, source }.into())
    }
}

/// The repository that is indexed.
pub struct Copy {
    path: PathBuf,
    repository: Repository,
    replaced: TreeUpdateBuilder,
    is_changed: bool,
}

impl Copy {
    /// Makes a bare repository that finds the source's objects where they are.
    pub(super) fn make(source: &Source, path: &Path) -> Result<Self, DrawError> {
        let failed = |source| DrawError::Copy { path: path.to_owned(), source };
        if path.exists() {
            return Err(DrawError::Exists { path: path.to_owned() });
        }
        let objects = source.git.common_folder()?.join("objects");
        Repository::init_bare(path).map_err(failed)?;
        let alternates = path.join("objects/info/alternates");
        let mut line = objects.into_os_string();
        line.push("\n");
        let write = |source| DrawError::Write { path: alternates.clone(), source };
        std::fs::write(&alternates, line.as_encoded_bytes()).map_err(write)?;
        // Opened again, so that the alternates are read.
        let repository = Repository::open_bare(path).map_err(failed)?;
        Ok(Self { path: path.to_owned(), repository, replaced: TreeUpdateBuilder::new(), is_changed: false })
    }

    fn failed(&self, source: git2::Error) -> DrawError {
        DrawError::Copy { path: self.path.clone(), source }
    }

    /// Replaces a file's text.
    pub(super) fn replace(&mut self, path: &DocumentPath, text: &str) -> Result<(), DrawError> {
        let blob = self.repository.blob(text.as_bytes()).map_err(|error| self.failed(error))?;
        self.replaced.upsert(path.as_bytes(), blob, git2::FileMode::Blob);
        self.is_changed = true;
        Ok(())
    }

    /// Lets `main` stand at the source's commit, or at one without parents that has the replaced files.
    pub(super) fn finish(&mut self, source: &Source) -> Result<(), DrawError> {
        self.point(source).map_err(|error| self.failed(error))
    }

    fn point(&mut self, source: &Source) -> Result<(), git2::Error> {
        let mut id = Oid::from_bytes(source.commit.as_bytes())?;
        if self.is_changed {
            let commit = self.repository.find_commit(id)?;
            let tree = self.replaced.create_updated(&self.repository, &commit.tree()?)?;
            let who = Signature::new("tidemill", "tidemill@localhost", &Time::new(commit.time().seconds(), 0))?;
            let message = format!("{id} without the comments that are asked about\n");
            let tree = self.repository.find_tree(tree)?;
            id = self.repository.commit(None, &who, &who, &message, &tree, &[])?;
        }
        self.repository.reference("refs/heads/main", id, true, "eval")?;
        self.repository.set_head("refs/heads/main")
    }
}

//! Directories as sources: the files below a folder, their contents, and the changes.
//!
//! In: a folder, ignore files, and the source's own globs. Out: the files as (path, content id), changes in settled batches,
//! contents by id, and the git tree hash that names a state.
//!
//! **Invariant:** a file's state is the git blob id of its bytes (in UTF-8, where a `.gitattributes` says `working-tree-encoding`), so a directory and a repository that hold the same
//! files have the same documents; and what a touched path gives is what a scan from nothing would give for it.
//!
//! Hidden files count (`.github/` holds documents too) unless the options exclude them. `.git` and stores of tidemill never
//! count. Links are never followed: a link is a file whose content is its target's name. Only ignore files below the folder apply
//! (`.gitignore`, `.ignore`, nested, also without a `.git`), not those of the machine or of parent folders. So equal trees have
//! equal versions everywhere.
//!
//! This module is for systems with inodes (Linux, macOS, BSD).

mod attributes;
mod contents;
mod doubt;
mod filter;
mod hash;
mod readings;
mod scan;
mod settle;
mod tree;
mod watcher;
mod why;

pub use contents::DirectoryContents;
pub use doubt::{Doubt, Looks, Mount};
pub use scan::Scan;
pub use tree::tree_hash;
pub(super) use watcher::now;
pub use watcher::{Batch, DirectoryWatcher, Pace};

use super::is_store;
use attributes::Attributes;
use dataflows::data::folders_up;
use dataflows::rules::Rules;
pub(super) use doubt::{Weighed, covers, weigh};
use filter::Filter;
pub(super) use filter::unreadable_rules;
pub(super) use hash::{HashError, hash_bytes, hash_file};
pub(super) use readings::{Readings, STASH_FILE_BYTES};
pub(super) use settle::Touches;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a directory did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The root cannot be listed: it is gone, no folder, or not allowed. Nothing counts as deleted then.
    #[error("cannot read the directory {path}; what was indexed of it stays")]
    Root {
        /// The root.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Without the root's ignore file no file is known to be wanted.
    #[error("cannot read the ignore file {path}; what was indexed of the directory stays")]
    IgnoreFile {
        /// The ignore file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system ran out of a resource, so unread files must not count as deleted.
    #[error("cannot go on reading at {path}; it is tried again")]
    Exhausted {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder is a store, or lies in one.
    #[error("{path} is a store of tidemill, or lies in one, and holds no documents; name the folder that holds them")]
    Store {
        /// The folder.
        path: PathBuf,
    },
    /// A glob of the source cannot be parsed.
    #[error("cannot read the glob {glob:?}")]
    Glob {
        /// The glob.
        glob: String,
        /// The error.
        source: ignore::Error,
    },
}

/// Whether names that start with a dot count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hidden {
    /// They are ordinary files.
    #[default]
    Index,
    /// They are left out, unless an ignore file re-includes them (`!.github`).
    Skip,
}

/// The filter of a directory, beside its ignore files.
#[derive(Clone, Debug, Default)]
pub struct DirectoryOptions {
    /// Patterns in the syntax of `.gitignore`; if there are any, a file must match one.
    pub include: Vec<String>,
    /// Patterns in the syntax of `.gitignore`; matching files are left out.
    pub exclude: Vec<String>,
    /// Whether names that start with a dot count.
    pub hidden: Hidden,
    /// The path of tidemill's own store. A tracker that indexed it would never come to rest.
    pub store: Option<PathBuf>,
}

/// One directory.
///
/// It is cheap to clone; clones share the cache of readings.
#[derive(Clone)]
pub struct DirectorySource {
    root: PathBuf,
    filter: Filter,
    readings: Arc<Readings>,
}

impl DirectorySource {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    ///
    /// If it is no folder that can be listed, or a glob cannot be read.
    pub fn open(path: &Path, options: &DirectoryOptions) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Root { path: path.to_owned(), source };
        // Events carry real paths, so the root is made one first.
        let root = path.canonicalize().map_err(failed)?;
        if root.ancestors().any(is_store) {
            return Err(DirectoryError::Store { path: path.to_owned() });
        }
        let filter = Filter::new(&root, options)?;
        let source = Self { root, filter, readings: Arc::new(Readings::default()) };
        source.check_root()?;
        Ok(source)
    }

    /// Goes by rules of the settings, of which one that says `exclude = false` takes in what an editor left.
    #[must_use]
    pub fn with_rules(mut self, rules: Arc<Rules>) -> Self {
        self.filter.rules = Some(rules);
        self
    }

    /// Returns the directory's real path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a reader for the contents of this directory's files.
    #[must_use]
    pub fn contents(&self) -> DirectoryContents {
        let root = self.root.clone();
        DirectoryContents::new(self.root.clone(), Arc::clone(&self.readings)).converted(move |path, bytes| {
            let mut attributes = Attributes::default();
            let folders: Vec<&[u8]> = folders_up(path.folder()).collect();
            for folder in folders.into_iter().rev() {
                attributes.enter(&root, Path::new(OsStr::from_bytes(folder))).ok()?;
            }
            attributes.encoding(Path::new(OsStr::from_bytes(path.as_bytes())))?.to_git(bytes)
        })
    }
}

#[cfg(test)]
mod tests;

//! Decides which paths of a directory belong to the source.
//!
//! In: ignore files on disk, the source's own globs. Out: yes or no for a path, the same for a scan and for an event.
//!
//! **Invariant:** a path is wanted only if every folder above it is, as in git; one function answers for scans and for
//! single paths, so they cannot disagree. What editors leave ([`left_by_editor`]) is wanted only if an ignore file takes it
//! in (`!NAME`), or a rule (`exclude = false`).
//!
//! The `ignore` crate's incremental matcher loads each folder's rules once, so every scan and every batch takes a fresh
//! [`Matcher`]. The next one sees a changed ignore file.

use super::attributes::ATTRIBUTES;
use super::{DirectoryError, DirectoryOptions, Hidden};
use crate::watch::stores::StoreLook;
use crate::watch::{Stores, left_by_editor};
use dataflows::rules::Rules;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{IncrementalIgnore, WalkBuilder};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a repository's own data, and the file of a linked work tree or submodule.
const GIT: &str = ".git";
/// The names of files that speak for what is beside and below them: what is ignored, and which encoding it has.
const RULE_FILES: [&str; 3] = [".gitignore", ".ignore", ATTRIBUTES];

/// The filter of a source, apart from the ignore files.
#[derive(Clone)]
pub(super) struct Filter {
    root: PathBuf,
    hidden: Hidden,
    include: Gitignore,
    exclude: Gitignore,
    /// The path of the tracker's own store, existing or not, relative to the root.
    store: Option<PathBuf>,
    /// Those of the settings: they may take in what an editor left.
    pub(super) rules: Option<Arc<Rules>>,
    /// The stores found so far.
    pub(super) stores: Stores,
}

impl Filter {
    pub(super) fn new(root: &Path, options: &DirectoryOptions) -> Result<Self, DirectoryError> {
        let store = options.store.as_ref().map(|store| std::path::absolute(store).unwrap_or_else(|_| store.clone()));
        // The store may not exist yet, while its parent does; links in either must not hide that it is inside.
        let store = store.map(|store| {
            let real = store.canonicalize().ok();
            let beside = || Some(store.parent()?.canonicalize().ok()?.join(store.file_name()?));
            real.or_else(beside).unwrap_or(store)
        });
        Ok(Self {
            root: root.to_owned(),
            hidden: options.hidden,
            include: globs(&options.include)?,
            exclude: globs(&options.exclude)?,
            store: store.and_then(|store| store.strip_prefix(root).map(Path::to_owned).ok()),
            rules: None,
            stores: Stores::default(),
        })
    }

    /// Tells, without a look at the disk, whether a path can never be wanted.
    pub(super) fn is_foreign(&self, path: &Path) -> bool {
        path.components().any(|part| part.as_os_str() == GIT)
            || self.store.as_ref().is_some_and(|store| path.starts_with(store))
            || self.stores.hold(path)
    }

    /// Returns a matcher for single paths, with the current ignore files.
    pub(super) fn matcher(&self) -> Matcher<'_> {
        let mut builder = WalkBuilder::new(&self.root);
        builder
            .hidden(self.hidden == Hidden::Skip)
            .ignore(true)
            .git_ignore(true)
            .require_git(false)
            .git_exclude(false)
            .git_global(false)
            .parents(false);
        let rules = builder.build_matchers().into_iter().next().expect("the builder has one root");
        Matcher { filter: self, rules, stores: self.stores.look(&self.root) }
    }
}

/// Answers for paths, with the rules of every folder it has met.
pub(super) struct Matcher<'a> {
    filter: &'a Filter,
    rules: IncrementalIgnore,
    stores: StoreLook<'a>,
}

impl Matcher<'_> {
    /// Tells whether the path, relative to the root, is wanted; of a folder, whether anything below it can be.
    pub(super) fn wants(&mut self, path: &Path, is_folder: bool) -> bool {
        self.wants_but_for_editors(path, is_folder) && (is_folder || self.editor(path).is_none())
    }

    /// Returns the pattern by which a file is left out because an editor left it, unless a rule or an ignore file takes it in.
    pub(super) fn editor(&mut self, path: &Path) -> Option<&'static str> {
        let pattern = left_by_editor(path, self.filter.rules.as_deref())?;
        (!self.rules.matched(path, false).is_whitelist()).then_some(pattern)
    }

    /// Tells as [`Self::wants`] does, of what an editor left as of any other file.
    pub(super) fn wants_but_for_editors(&mut self, path: &Path, is_folder: bool) -> bool {
        let Filter { include, exclude, .. } = self.filter;
        if self.filter.is_foreign(path) {
            return false;
        }
        !self.rules.matched(path, is_folder).is_ignore()
            && !exclude.matched_path_or_any_parents(path, is_folder).is_ignore()
            && (is_folder || include.is_empty() || include.matched_path_or_any_parents(path, false).is_ignore())
            && self.store(path, is_folder).is_none()
    }

    /// Returns the store that a path is or lies in.
    pub(super) fn store(&mut self, path: &Path, is_folder: bool) -> Option<PathBuf> {
        self.stores.at(if is_folder { path } else { path.parent()? })
    }
}

/// Returns the rule file of a folder that is there and cannot be read, and why; without it no file is known to be wanted.
pub(in crate::watch) fn unreadable_rules(folder: &Path) -> Option<(&'static str, io::Error)> {
    RULE_FILES.into_iter().find_map(|name| {
        let read_a_byte = |file: Option<File>| file.map_or(Ok(0), |mut file| file.read(&mut [0]));
        open_rules(&folder.join(name)).and_then(read_a_byte).err().map(|error| (name, error))
    })
}

/// Opens a rule file, if one is there.
pub(super) fn open_rules(path: &Path) -> io::Result<Option<File>> {
    // A pipe of that name must not block.
    match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
        // None is there, or a folder or a link to nowhere of that name, which the matcher passes over as git does.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) if [libc::ELOOP, libc::EISDIR].map(Some).contains(&error.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Tells whether a file of this name changes what becomes of others around it.
pub(super) fn is_rule_file(name: &[u8]) -> bool {
    RULE_FILES.iter().any(|known| known.as_bytes() == name)
}

fn globs(globs: &[String]) -> Result<Gitignore, DirectoryError> {
    // Paths are matched relative to the root, so the patterns' own root is the empty one.
    let mut builder = GitignoreBuilder::new("");
    let failed = |glob: &str, source| DirectoryError::Glob { glob: glob.to_owned(), source };
    for glob in globs {
        builder.add_line(None, glob).map_err(|source| failed(glob, source))?;
    }
    builder.build().map_err(|source| failed(&globs.join(" "), source))
}

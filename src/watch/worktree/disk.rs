//! Decides what `git add` would make of one path of a work tree.
//!
//! In: a path, its index entry, and the disk. Out: the state in the resulting commit, or why there is none.
//!
//! **Invariant:** a file whose `stat` equals that of its entry is not read, unless the index was written in the same tick (git's
//! "racily clean" rule, Documentation/technical/racy-git.txt). No link is followed, not even in place of a folder. A path counts
//! as absent only if the file system says so.

use super::conversion::Conversion;
use super::index::{Entry, EntryRule, Index};
use crate::watch::directory::{HashError, Readings, STASH_FILE_BYTES, hash_bytes, hash_file};
use crate::watch::{FileMode, FileState};
use dataflows::data::{ContentId, DocumentPath};
use git2::{Oid, Repository};
use gix_index::entry::Stat;
use gix_index::entry::stat::Options;
use gix_index::fs::Metadata;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The result of a look at a path.
#[derive(Debug)]
pub(super) enum Seen {
    /// A file, link or submodule.
    Is(FileState),
    /// Nothing that a commit can hold.
    Gone,
    /// A file that is being written.
    Unsettled,
    /// It cannot be read at present, and why.
    Unreadable(String),
}

/// Looks at paths of one work tree.
pub(super) struct Disk<'a> {
    root: &'a Path,
    repository: &'a Repository,
    index: &'a Index,
    readings: &'a Readings,
    conversion: Conversion<'a>,
    options: Options,
    has_links: bool,
    /// Whether a path is a folder; a path that is none has nothing below it.
    folders: FxHashMap<Vec<u8>, bool>,
}

impl<'a> Disk<'a> {
    pub(super) fn new(root: &'a Path, repository: &'a Repository, index: &'a Index, readings: &'a Readings) -> Self {
        let config = repository.config().ok();
        let is_set = |key: &str| config.as_ref().and_then(|config| config.get_bool(key).ok()).unwrap_or(true);
        let check_stat = config.as_ref().and_then(|config| config.get_string("core.checkStat").ok());
        let options = Options {
            trust_ctime: is_set("core.trustctime"),
            check_stat: check_stat.is_none_or(|value| !value.eq_ignore_ascii_case("minimal")),
            // If a file system loses the nanoseconds, a file is read once more, which does no harm.
            use_nsec: true,
            use_stdev: false,
        };
        let (conversion, has_links) = (Conversion::of(repository), is_set("core.symlinks"));
        Self { root, repository, index, readings, conversion, options, has_links, folders: FxHashMap::default() }
    }

    /// Looks at a path.
    pub(super) fn at(&mut self, path: &DocumentPath) -> Seen {
        match self.look(path) {
            Ok(Some(state)) => Seen::Is(state),
            Ok(None) | Err(HashError::Gone) => Seen::Gone,
            Err(HashError::Unsettled) => Seen::Unsettled,
            Err(error) => Seen::Unreadable(error.to_string()),
        }
    }

    fn look(&mut self, path: &DocumentPath) -> Result<Option<FileState>, HashError> {
        if !self.stands_in_folders(path.as_bytes())? {
            return Ok(None);
        }
        let relative = Path::new(OsStr::from_bytes(path.as_bytes()));
        let absolute = self.root.join(relative);
        let metadata = Metadata::from_path_no_follow(&absolute)?;
        let entry = self.index.entry(path);
        if metadata.is_dir() {
            return Ok(entry
                .filter(|entry| entry.state.mode == FileMode::Submodule)
                .map(|entry| submodule(&absolute, entry)));
        }
        // If links cannot be made, a file stands in for one.
        let is_stand_in =
            |entry: &Entry| !self.has_links && entry.state.mode == FileMode::Symlink && metadata.is_file();
        let mode = match metadata {
            _ if metadata.is_symlink() || entry.is_some_and(is_stand_in) => FileMode::Symlink,
            _ if metadata.is_file() => FileMode::Regular,
            _ => return Ok(None),
        };
        let stat = Stat::from_fs(&metadata).ok();
        let known = entry.filter(|entry| {
            entry.state.mode == mode
                && entry.rule != EntryRule::Unmerged
                && !entry.is_intended
                && stat.is_some_and(|stat| entry.stat.matches(&stat, self.options))
        });
        let is_racy = |entry: &Entry| self.index.is_racy(&entry.stat, !self.options.check_stat);
        if let Some(entry) = known.filter(|entry| !is_racy(entry)) {
            return Ok(Some(entry.state));
        }
        if metadata.is_symlink() {
            let target = std::fs::read_link(&absolute)?;
            return Ok(Some(FileState { content: hash_bytes(target.as_os_str().as_bytes()), mode }));
        }
        let steps = self.conversion.steps(relative);
        if let Some(entry) = known.filter(|_| steps.has_driver) {
            // The result of the filter program is unknown; most likely the file is unchanged.
            return Ok(Some(entry.state));
        }
        let mut hashed = hash_file(&absolute, STASH_FILE_BYTES)?;
        let stored = || entry.and_then(|entry| self.blob(entry.state.content));
        if let Some(converted) = hashed.bytes.as_ref().and_then(|bytes| steps.apply(bytes, &stored)) {
            hashed.content = hash_bytes(&converted);
            hashed.bytes = Some(converted);
        }
        let content = hashed.content;
        self.readings.remember(path, hashed);
        Ok(Some(FileState { content, mode }))
    }

    fn blob(&self, content: ContentId) -> Option<Vec<u8>> {
        let id = Oid::from_bytes(content.as_bytes()).ok()?;
        Some(self.repository.find_blob(id).ok()?.content().to_vec())
    }

    /// Tells whether every parent of a path is a folder and no link.
    fn stands_in_folders(&mut self, path: &[u8]) -> Result<bool, HashError> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        // Nearly always the previous path has already checked the parent folder.
        if let Some(end) = ends.clone().next_back()
            && let Some(&is_folder) = self.folders.get(&path[..end])
        {
            return Ok(is_folder);
        }
        let mut is_folder = true;
        for end in ends {
            let folder = &path[..end];
            is_folder = match self.folders.get(folder) {
                Some(&known) => known,
                None if !is_folder => false,
                None => match std::fs::symlink_metadata(self.root.join(OsStr::from_bytes(folder)))
                    .map_err(HashError::from)
                {
                    Ok(metadata) => metadata.is_dir(),
                    Err(HashError::Gone) => false,
                    Err(error) => return Err(error),
                },
            };
            self.folders.insert(folder.to_vec(), is_folder);
        }
        Ok(is_folder)
    }
}

/// Returns the commit of a submodule; without a checkout, that of its entry.
fn submodule(folder: &Path, entry: &Entry) -> FileState {
    let head = || {
        let repository = Repository::open(folder).ok()?;
        let id = repository.head().ok()?.target()?;
        Some(ContentId::from_bytes(id.as_bytes().try_into().ok()?))
    };
    FileState { content: head().unwrap_or(entry.state.content), mode: FileMode::Submodule }
}

//! Reads the current files below a folder, or at one path.
//!
//! In: the disk. Out: files with their content ids, and the unreadable paths.
//!
//! **Invariant:** a full scan and a look at one path use the same walk, so they agree about the same disk. A folder is announced
//! before it is listed, so a watch that starts at the announcement misses nothing.
//!
//! Absence is what the system says of a name in a folder that can be read (`ENOENT`, `ENOTDIR`). Whatever else keeps a path from
//! being seen makes it unreadable: it is reported, and what was known at and below it holds. So does a folder whose ignore or
//! attributes file cannot be read. Where the system itself ran out of something (open files, memory), the scan fails as a whole.
//! Folders whose path is longer than the system takes are among the unreadable.

use super::attributes::{ATTRIBUTES, Attributes};
use super::filter::{Matcher, unreadable_rules};
use super::hash::{HashError, Stamp, hash_bytes, hash_file};
use super::readings::STASH_FILE_BYTES;
use super::{DirectoryError, DirectorySource};
use crate::watch::{FileMode, FileState};
use dataflows::data::{ContentId, DocumentPath};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The result of a look at the disk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scan {
    /// Regular files and symbolic links.
    pub files: BTreeMap<DocumentPath, FileState>,
    /// Unreadable files and folders, with the reason. The known state at and below them stays.
    pub unreadable: Vec<(DocumentPath, String)>,
    /// Files that are larger than the largest hashed size; they are not part of the state.
    pub too_large: Vec<(DocumentPath, String)>,
    /// Files that an editor left, which are none of the state, and the pattern that says so.
    pub editors: Vec<(DocumentPath, &'static str)>,
    /// The file systems, by number, of the root and of each folder below it at which another one begins.
    pub devices: BTreeMap<DocumentPath, u64>,
    /// Files that were being written during the read; look at them again soon.
    pub unsettled: Vec<DocumentPath>,
}

/// Whether an unchanged stamp replaces reading a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Stamp,
    Nothing,
}

/// Returns a document's path on disk.
pub(super) fn absolute(root: &Path, path: &DocumentPath) -> PathBuf {
    root.join(OsStr::from_bytes(path.as_bytes()))
}

impl DirectorySource {
    /// Returns every file of the directory.
    ///
    /// Files are hashed, except those whose size, times and inode prove that they are unchanged since the last read.
    ///
    /// # Errors
    ///
    /// If the root cannot be listed, or the system ran out of a resource.
    pub fn scan(&self) -> Result<Scan, DirectoryError> {
        self.scan_all(&mut |_| {})
    }

    /// As [`Self::scan`], and calls `on_folder` with every folder right before it is listed.
    pub(super) fn scan_all(&self, on_folder: &mut dyn FnMut(&Path)) -> Result<Scan, DirectoryError> {
        let device = self.check_root()?;
        self.filter.stores.forget(Path::new(""));
        let mut walk = self.walk();
        walk.found.devices.insert(DocumentPath::new(Vec::new()), device);
        walk.folders(PathBuf::new(), device, on_folder)?;
        self.check_root()?;
        Ok(walk.found)
    }

    fn walk(&self) -> Walk<'_> {
        let (matcher, attributes) = (self.filter.matcher(), Attributes::default());
        Walk { source: self, matcher, attributes, found: Scan::default(), ruled: FxHashMap::default() }
    }

    /// Returns the file system of a folder, if the folder exists.
    pub(super) fn device(&self, folder: &DocumentPath) -> Option<u64> {
        let metadata = absolute(&self.root, folder).symlink_metadata().ok()?;
        metadata.is_dir().then(|| metadata.dev())
    }

    /// Fails if the root cannot be listed, so a missing root is never taken for an empty directory. Returns the root's file
    /// system.
    pub(super) fn check_root(&self) -> Result<u64, DirectoryError> {
        let failed = |source| DirectoryError::Root { path: self.root.clone(), source };
        let listed = std::fs::read_dir(&self.root).and_then(|_| self.root.metadata());
        listed.map(|metadata| metadata.dev()).map_err(failed)
    }

    /// Starts a run of looks at single paths that share the current ignore files.
    pub(super) fn look(&self) -> Look<'_> {
        Look(self.walk())
    }
}

/// Looks at single paths.
pub(super) struct Look<'a>(Walk<'a>);

impl Look<'_> {
    /// Returns the store that contains a path, if there is one: all known files below it are to be removed.
    pub(super) fn store_above(&mut self, path: &DocumentPath) -> Option<DocumentPath> {
        let store = self.0.matcher.store(Path::new(OsStr::from_bytes(path.as_bytes())), false)?;
        Some(DocumentPath::new(store.as_os_str().as_bytes()))
    }

    /// Returns the files at and below one path, and whether it is a folder. A file at the path itself is always read.
    pub(super) fn at(
        &mut self,
        path: &DocumentPath,
        on_folder: &mut dyn FnMut(&Path),
    ) -> Result<(Scan, bool), DirectoryError> {
        let relative = PathBuf::from(OsStr::from_bytes(path.as_bytes()));
        self.0.source.filter.stores.forget(&relative);
        for folder in relative.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            if !self.0.has_rules(folder)? {
                return Ok((std::mem::take(&mut self.0.found), false));
            }
        }
        let is_folder = match self.0.kind_at(&relative)? {
            None => false,
            Some(metadata) if metadata.is_dir() => {
                if self.0.matcher.wants(&relative, true) {
                    self.0.folders(relative, metadata.dev(), on_folder)?;
                }
                true
            }
            Some(metadata) => {
                self.0.file(&relative, &metadata, Trust::Nothing)?;
                false
            }
        };
        Ok((std::mem::take(&mut self.0.found), is_folder))
    }
}

struct Walk<'a> {
    source: &'a DirectorySource,
    matcher: Matcher<'a>,
    attributes: Attributes,
    found: Scan,
    /// Whether the rule files of a folder can be read.
    ruled: FxHashMap<PathBuf, bool>,
}

impl Walk<'_> {
    /// Returns the metadata of a path, if every parent is a real folder and no link.
    fn kind_at(&mut self, relative: &Path) -> Result<Option<Metadata>, DirectoryError> {
        let mut path = self.source.root.clone();
        let mut last = None;
        for part in relative.components() {
            if last.as_ref().is_some_and(|metadata: &Metadata| !metadata.is_dir()) {
                return Ok(None);
            }
            path.push(part);
            match path.symlink_metadata() {
                Ok(metadata) => last = Some(metadata),
                Err(error) => {
                    self.unreadable(relative, error)?;
                    return Ok(None);
                }
            }
        }
        Ok(last)
    }

    /// Tells whether the rule files of a folder can be read; where they cannot, the folder is unreadable with all below it.
    fn has_rules(&mut self, folder: &Path) -> Result<bool, DirectoryError> {
        if let Some(&is_ruled) = self.ruled.get(folder) {
            return Ok(is_ruled);
        }
        let path = self.source.root.join(folder);
        let unreadable = unreadable_rules(&path).or_else(|| {
            let error = self.attributes.enter(&self.source.root, folder).err()?;
            Some((ATTRIBUTES, error))
        });
        self.ruled.insert(folder.to_owned(), unreadable.is_none());
        match unreadable {
            None => Ok(true),
            Some((name, source)) if folder.as_os_str().is_empty() => {
                Err(DirectoryError::IgnoreFile { path: path.join(name), source })
            }
            Some((name, error)) => {
                let why = format!("its {name} cannot be read: {error}");
                self.found.unreadable.push((DocumentPath::new(folder.as_os_str().as_bytes()), why));
                Ok(false)
            }
        }
    }

    /// Walks a wanted folder and all below it.
    fn folders(&mut self, start: PathBuf, device: u64, on_folder: &mut dyn FnMut(&Path)) -> Result<(), DirectoryError> {
        let mut folders = vec![(start, device)];
        while let Some((folder, device)) = folders.pop() {
            let path = self.source.root.join(&folder);
            on_folder(&path);
            if !self.has_rules(&folder)? {
                continue;
            }
            let entries = match std::fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) => {
                    self.unreadable(&folder, error)?;
                    continue;
                }
            };
            for entry in entries {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        self.unreadable(&folder, error)?;
                        continue;
                    }
                };
                let relative = folder.join(entry.file_name());
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => {
                        if self.matcher.wants(&relative, true) {
                            if metadata.dev() != device {
                                let path = DocumentPath::new(relative.as_os_str().as_bytes());
                                self.found.devices.insert(path, metadata.dev());
                            }
                            folders.push((relative, metadata.dev()));
                        }
                    }
                    Ok(metadata) => self.file(&relative, &metadata, Trust::Stamp)?,
                    Err(error) => self.unreadable(&relative, error)?,
                }
            }
        }
        Ok(())
    }

    /// Adds one path that is no folder, if it is wanted; pipes, sockets and devices are no files.
    fn file(&mut self, relative: &Path, metadata: &Metadata, trust: Trust) -> Result<(), DirectoryError> {
        let kind = metadata.file_type();
        if !(kind.is_file() || kind.is_symlink()) || !self.matcher.wants_but_for_editors(relative, false) {
            return Ok(());
        }
        let path = DocumentPath::new(relative.as_os_str().as_bytes());
        if let Some(pattern) = self.matcher.editor(relative) {
            self.found.editors.push((path, pattern));
            return Ok(());
        }
        if kind.is_symlink() {
            match std::fs::read_link(self.source.root.join(relative)) {
                Ok(target) => self.add(path, hash_bytes(target.as_os_str().as_bytes()), FileMode::Symlink),
                Err(error) => self.unreadable(relative, error)?,
            }
            return Ok(());
        }
        let encoding = self.attributes.encoding(relative);
        let readings = &self.source.readings;
        if trust == Trust::Stamp
            && let Some(content) = readings.unchanged(&path, &Stamp::of(metadata), encoding)
        {
            self.add(path, content, FileMode::Regular);
            return Ok(());
        }
        match hash_file(&self.source.root.join(relative), STASH_FILE_BYTES) {
            Ok(hashed) => {
                let hashed = hashed.in_git(encoding);
                let content = hashed.content;
                readings.remember(&path, hashed);
                self.add(path, content, FileMode::Regular);
            }
            Err(HashError::Gone) => {}
            Err(HashError::Unsettled) => self.found.unsettled.push(path),
            Err(HashError::TooLarge(bytes)) => {
                self.found.too_large.push((path, format!("{bytes} bytes are more than any file that is hashed")));
            }
            Err(HashError::Io(error)) => self.unreadable(relative, error)?,
        }
        Ok(())
    }

    fn add(&mut self, path: DocumentPath, content: ContentId, mode: FileMode) {
        self.found.files.insert(path, FileState { content, mode });
    }

    /// Decides why a read failed: the path is gone, access is denied, or the system has a problem.
    fn unreadable(&mut self, relative: &Path, error: io::Error) -> Result<(), DirectoryError> {
        if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            return Ok(());
        }
        let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOMEM].map(Some).contains(&error.raw_os_error());
        if exhausted || relative.as_os_str().is_empty() {
            return Err(DirectoryError::Exhausted { path: self.source.root.join(relative), source: error });
        }
        self.found.unreadable.push((DocumentPath::new(relative.as_os_str().as_bytes()), error.to_string()));
        Ok(())
    }
}

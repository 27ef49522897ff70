//! Stores of tidemill inside a tracked folder: recognised by their content, and left out.
//!
//! In: folders on disk. Out: whether one is a store, and the stores found.
//!
//! **Invariant:** a folder is a store if its file `FORMAT` begins as every store's does ([`STORE_MARK`]), whatever its name or
//! owner. A tracker that indexed a store would index the output of another tracker with every epoch, and two trackers would feed
//! each other for ever. Git commits are not checked: a tree is a tree.
//!
//! A file `FORMAT` with that text in another folder hides that folder as well; `explain` says why.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The beginning of every store's file `FORMAT`.
pub const STORE_MARK: &str = "tidemill store format ";

/// Tells whether a folder is a store, of this or any other format.
#[must_use]
pub fn is_store(folder: &Path) -> bool {
    // Without `O_NONBLOCK` a pipe of that name would block for ever.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(folder.join("FORMAT"))
        .and_then(|file| Ok((file.metadata()?.is_file(), file)));
    let Ok((true, mut file)) = opened else { return false };
    let mut start = [0; STORE_MARK.len()];
    file.read_exact(&mut start).is_ok() && start == *STORE_MARK.as_bytes()
}

/// Returns the store that a path is or is in, below a root that is no store.
pub(super) fn store_above(root: &Path, relative: &Path) -> Option<PathBuf> {
    let mut folder = PathBuf::new();
    relative.components().find_map(|part| {
        folder.push(part);
        is_store(&root.join(&folder)).then(|| folder.clone())
    })
}

/// Returns the reason why a store, or a path in one, is left out.
pub(super) fn store_reason(store: &Path) -> String {
    format!("{} is a store of tidemill by its file FORMAT, and no store is indexed", store.display())
}

/// The stores below one root that the last looks found, as paths relative to it; clones share them.
#[derive(Clone, Default, Debug)]
pub(super) struct Stores(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Stores {
    /// Tells whether a path is inside a known store; the store's own folder is not.
    pub(super) fn hold(&self, path: &Path) -> bool {
        let stores = self.lock();
        !stores.is_empty() && path.ancestors().skip(1).any(|folder| stores.contains(folder))
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Forgets those at and below a path, before it is looked at again.
    pub(super) fn forget(&self, path: &Path) {
        self.lock().retain(|store| !store.starts_with(path));
    }

    /// Starts a run of looks, which checks each folder once.
    pub(super) fn look<'a>(&'a self, root: &'a Path) -> StoreLook<'a> {
        StoreLook { stores: self, root, last: None }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // The set is changed one path at a time, so a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks for stores above paths that come folder by folder.
pub(super) struct StoreLook<'a> {
    stores: &'a Stores,
    root: &'a Path,
    /// The last folder, and the store that it is or is in.
    last: Option<(PathBuf, Option<PathBuf>)>,
}

impl StoreLook<'_> {
    /// Returns the store that a folder is or lies in, if there is one, and notes it.
    pub(super) fn at(&mut self, folder: &Path) -> Option<PathBuf> {
        if folder == OsStr::new("") {
            return None;
        }
        if let Some((last, store)) = &self.last {
            if last == folder {
                return store.clone();
            }
            // The last call has checked the folders above.
            if store.is_none() && folder.parent() == Some(last.as_path()) {
                let store = is_store(&self.root.join(folder)).then(|| folder.to_owned());
                return self.note(folder, store);
            }
        }
        let store = store_above(self.root, folder);
        self.note(folder, store)
    }

    fn note(&mut self, folder: &Path, store: Option<PathBuf>) -> Option<PathBuf> {
        if let Some(store) = &store {
            self.stores.lock().insert(store.clone());
        }
        self.last = Some((folder.to_owned(), store.clone()));
        store
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_store_is_known_by_its_format_and_not_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        let make = |folder: &str, format: &str| {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("FORMAT"), format).unwrap();
        };
        make("index", "tidemill store format 3\n");
        make("later", "tidemill store format 99");
        make(".tidemill", "another program's\n");
        make("cut", "tidemill store");
        make("deep/down", "tidemill store format 2\n");
        make("linked", "");
        fs::remove_file(root.path().join("linked/FORMAT")).unwrap();
        std::os::unix::fs::symlink("../index/FORMAT", root.path().join("linked/FORMAT")).unwrap();
        let stores = Stores::default();
        let mut look = stores.look(root.path());
        let mut at = |folder: &str| look.at(Path::new(folder)).map(|store| store.display().to_string());
        for (folder, expected) in [
            ("index", Some("index")),
            ("index/memo", Some("index")),
            ("later", Some("later")),
            (".tidemill", None),
            ("cut", None),
            ("deep", None),
            ("deep/down", Some("deep/down")),
            ("deep/down/memo", Some("deep/down")),
            ("deep/other", None),
            ("linked", None),
            ("", None),
        ] {
            assert_eq!(at(folder).as_deref(), expected, "{folder}");
        }
        assert_eq!(stores.count(), 3);
        assert!(stores.hold(Path::new("index/memo/data.mdb")) && !stores.hold(Path::new("index")));
        stores.forget(Path::new("deep"));
        assert_eq!(stores.count(), 2);
    }
}

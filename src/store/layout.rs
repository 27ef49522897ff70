//! The folder layout of a store, its format, and the writer's lock.
//!
//! **Invariant:** at most one process holds the [`WriterLock`]; the operating system releases it when the process ends, however
//! it ends.

use super::StoreError;
use super::shared::make_folder;
use crate::watch::STORE_MARK;
use dataflows::data::{Hasher, ModelId};
use snapshots::lock_for_writer;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The format that this build writes and reads.
pub const STORE_FORMAT: u32 = 4;
/// The oldest format that a writer of this build brings to its own ([`upgrade`](super::upgrade)).
const OLDEST_FORMAT: u32 = 2;

/// The scope of a vector set: so far each is for all entries.
const ALL_ENTRIES: &[u8] = b"all";

/// Read by git: nothing in the folder belongs to a repository.
const GITIGNORE: &str = "*\n";
/// Read by backups and indexers (Cache Directory Tagging Specification, <https://bford.info/cachedir/>).
const CACHE_TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
    # This folder is a store of tidemill. What it holds can be made again from its sources.\n\
    # See https://bford.info/cachedir/ for what this file means.\n";

/// The folders of a store.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Describes the store at `root` without reading the disk.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Creates the store's folders if there are none, or checks that a writer can open their format.
    ///
    /// # Errors
    /// If the folder cannot be created, or has another format.
    pub fn create(&self) -> Result<(), StoreError> {
        if self.format_file().exists() {
            self.check_for_writer()?;
            if let Err(error) = self.hide() {
                tracing::debug!("{error}");
            }
            return Ok(());
        }
        fs::create_dir_all(&self.root).map_err(io("make the folder", &self.root))?;
        // First of all, so that a concurrent tracker ignores it.
        self.hide()?;
        // Including that of leases: a reader on a full disk can still create a file in it.
        let parts = [self.memo(), self.lexical(), self.vectors(), self.versions(), self.leases()];
        for folder in parts {
            make_folder(&folder).map_err(io("make the folder", &folder))?;
        }
        self.put_format()
    }

    /// Creates the files that make git, backups and indexers skip the folder; existing files stay.
    fn hide(&self) -> Result<(), StoreError> {
        for (name, text) in [(".gitignore", GITIGNORE), ("CACHEDIR.TAG", CACHE_TAG)] {
            let path = self.root.join(name);
            let made = OpenOptions::new().write(true).create_new(true).open(&path);
            match made.and_then(|mut file| file.write_all(text.as_bytes())) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(io("write", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that there is a store of this build's format.
    ///
    /// # Errors
    /// If there is none, or it has another format.
    pub fn check(&self) -> Result<(), StoreError> {
        match self.older()? {
            None => Ok(()),
            Some(_) => Err(StoreError::Older { path: self.root.clone(), found: self.format()? }),
        }
    }

    /// Returns the format that a store has, if it is an older one that a writer of this build brings to its own, or has begun
    /// to; nothing where it is this build's already.
    pub(super) fn older(&self) -> Result<Option<u32>, StoreError> {
        let found = self.format()?;
        let from = found.strip_suffix(&under_way()).unwrap_or(&found);
        match from.parse() {
            Ok(STORE_FORMAT) if from == found => Ok(None),
            Ok(older) if (OLDEST_FORMAT..STORE_FORMAT).contains(&older) => Ok(Some(older)),
            _ => Err(StoreError::Format { path: self.root.clone(), found }),
        }
    }

    /// Checks that there is a store of this build's format, or of one that a writer upgrades.
    ///
    /// # Errors
    /// If there is none, or it has another format.
    pub fn check_for_writer(&self) -> Result<(), StoreError> {
        match self.check() {
            Err(StoreError::Older { .. }) => Ok(()),
            checked => checked,
        }
    }

    /// Returns the format text of the store.
    fn format(&self) -> Result<String, StoreError> {
        let path = self.format_file();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().trim_start_matches(STORE_MARK).to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(StoreError::Missing { path: self.root.clone() })
            }
            Err(source) => Err(io("read", &path)(source)),
        }
    }

    /// Says that the store is on its way from an older format to this build's; durable when it returns.
    ///
    /// The file stays the one that the gate is shut by. It grows by a few bytes of its one block, which no disk writes in part.
    pub(super) fn begin_upgrade(&self, from: u32) -> Result<(), StoreError> {
        let path = self.format_file();
        let written = OpenOptions::new().write(true).open(&path).and_then(|mut file| {
            file.write_all(format!("{STORE_MARK}{from}{}\n", under_way()).as_bytes())?;
            file.sync_all()
        });
        written.map_err(io("write", &path))
    }

    /// Writes this build's format; durable when it returns.
    pub(super) fn put_format(&self) -> Result<(), StoreError> {
        let (format, new) = (self.format_file(), self.root.join("FORMAT.new"));
        let written = File::create(&new).and_then(|mut file| {
            writeln!(file, "{STORE_MARK}{STORE_FORMAT}")?;
            file.sync_all()
        });
        written.map_err(io("write", &new))?;
        fs::rename(&new, &format).map_err(io("write", &format))?;
        File::open(&self.root).and_then(|folder| folder.sync_all()).map_err(io("sync", &self.root))
    }

    /// Returns the format file, which readers and collectors lock.
    pub(super) fn format_file(&self) -> PathBuf {
        self.root.join("FORMAT")
    }

    /// Returns the store's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of the database.
    #[must_use]
    pub fn memo(&self) -> PathBuf {
        self.root.join("memo")
    }

    /// Returns the folder of the lexical index.
    #[must_use]
    pub fn lexical(&self) -> PathBuf {
        self.root.join("lexical")
    }

    /// Returns the folder of the vector segments.
    #[must_use]
    pub fn vectors(&self) -> PathBuf {
        self.root.join("vectors")
    }

    /// Returns the folder of a vector set: the vectors of a model for all entries.
    #[must_use]
    pub fn vector_set(&self, model: ModelId) -> PathBuf {
        self.vectors().join(vector_set(model))
    }

    /// Returns the file with a tracker's report.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("tracker.json")
    }

    /// Returns the file in which a tracker keeps the file systems of directories.
    #[must_use]
    pub fn looks(&self) -> PathBuf {
        self.root.join("looks.json")
    }

    /// Returns the folder of reader leases.
    #[must_use]
    pub fn leases(&self) -> PathBuf {
        self.root.join("leases")
    }

    /// Returns the folder of requests for garbage collection.
    #[must_use]
    pub fn requests(&self) -> PathBuf {
        self.root.join("requests")
    }

    /// Returns the folder of the version log.
    #[must_use]
    pub fn versions(&self) -> PathBuf {
        self.root.join("versions")
    }
}

/// Returns what stands behind the older format while a store is brought to this one.
fn under_way() -> String {
    format!(" to {STORE_FORMAT}")
}

/// Returns the name of a vector set: it follows from the model and from which entries the set is for.
#[must_use]
pub fn vector_set(model: ModelId) -> String {
    let [name, _] = Hasher::new("vector set").part(&model.to_bytes()).part(ALL_ENTRIES).finish();
    format!("{name:016x}")
}

/// Returns a function that wraps a system error on `path`.
pub(super) fn io(attempt: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { attempt, path, source }
}

/// Returns the process that writes to a store, if there is one: the number that it wrote into the lock, or nothing if that cannot
/// be read.
///
/// It holds the lock shared for a moment; a writer that starts right then tries again by itself.
#[must_use]
pub fn writer(layout: &Layout) -> Option<Option<u32>> {
    let file = File::open(layout.root.join("LOCK")).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = (&file).take(64).read_to_string(&mut holder);
            Some(holder.trim().parse().ok())
        }
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// The writer's lock of a store; released when dropped.
#[derive(Debug)]
pub struct WriterLock {
    // Held for its lock only.
    _file: File,
}

impl WriterLock {
    /// Takes the lock of a store, and writes this process's number into it.
    ///
    /// # Errors
    /// If another process holds it; the error names that process.
    pub fn take(layout: &Layout) -> Result<Self, StoreError> {
        let path = layout.root.join("LOCK");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io("open", &path))?;
        match lock_for_writer(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // The holder's name is optional; an unreadable one must not hide that the lock is held.
                let _ = (&file).take(64).read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => "another process".to_owned(),
                    number => format!("process {number}"),
                };
                return Err(StoreError::Locked { path: layout.root.clone(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(io("lock", &path)(source)),
        }
        file.set_len(0).map_err(io("write", &path))?;
        writeln!(file, "{}", std::process::id()).map_err(io("write", &path))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_another_format_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        assert!(matches!(layout.check(), Err(StoreError::Missing { .. })));
        layout.create().unwrap();
        layout.create().unwrap();
        fs::write(folder.path().join("FORMAT"), "tidemill store format 7\n").unwrap();
        let error = layout.create().unwrap_err().to_string();
        assert!(error.contains("format 7") && error.contains("format 4"), "{error}");
        fs::write(folder.path().join("FORMAT"), "tidemill store format 2\n").unwrap();
        layout.create().unwrap();
        let error = layout.check().unwrap_err().to_string();
        assert!(error.contains("format 2") && error.contains("tidemill track"), "{error}");
        fs::write(folder.path().join("FORMAT"), "tidemill store format 3\n").unwrap();
        layout.begin_upgrade(3).unwrap();
        layout.create().unwrap();
        let error = layout.check().unwrap_err().to_string();
        assert!(error.contains("format 3 to 4") && error.contains("tidemill track"), "{error}");
        for odd in ["4 to 4", "3 to 5", "1", "", "3 to 4 "] {
            fs::write(folder.path().join("FORMAT"), format!("tidemill store format {odd}\n")).unwrap();
            let is_older = odd == "3 to 4 ";
            assert_eq!(layout.older().ok(), is_older.then_some(Some(3)), "{odd:?}");
        }
        layout.put_format().unwrap();
        layout.check().unwrap();
    }

    #[test]
    fn a_store_hides_itself_and_one_of_an_earlier_build_does_so_when_it_is_next_written() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let (ignore, tag) = (folder.path().join(".gitignore"), folder.path().join("CACHEDIR.TAG"));
        layout.create().unwrap();
        assert_eq!(fs::read_to_string(&ignore).unwrap(), "*\n");
        assert!(fs::read_to_string(&tag).unwrap().starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
        assert!(crate::watch::is_store(folder.path()));
        fs::remove_file(&ignore).unwrap();
        fs::write(&tag, "a person's own\n").unwrap();
        layout.create().unwrap();
        assert_eq!(fs::read_to_string(&ignore).unwrap(), "*\n");
        assert_eq!(fs::read_to_string(&tag).unwrap(), "a person's own\n", "what is there stays");
    }

    #[test]
    fn a_second_writer_is_told_who_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let held = WriterLock::take(&layout).unwrap();
        let error = WriterLock::take(&layout).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        WriterLock::take(&layout).unwrap();
    }
}

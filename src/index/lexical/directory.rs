//! The folder of the index as a tantivy directory, with fewer syncs per commit.
//!
//! In: files that tantivy writes, and the segment list. Out: the same files, durable when the list that names them is.
//!
//! ```text
//!  small files ──► written ────────┐
//!  large files ──► written, synced ├──► synced, all at once ──► the list: temporary file, synced, renamed
//! ```
//!
//! **Invariant:** all files that the segment list names are durable before the list is written. The next writer removes any file
//! that no list names, whatever created it.
//!
//! The list has the permissions of the folder, so that a user who may list the folder may search.
//!
//! tantivy's own directory syncs each file by itself, one after the other. Before each it also rewrites and syncs a list of all
//! files, to know which of them it may remove. Six files cost a commit thirteen syncs. Here the folder itself is the list of
//! files: no other program puts files there.

use crate::index::background::{Unwanted, Urgency, let_others_go_first};
use crate::store::{create_file, open_file};
use std::cell::Cell;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, META_LOCK, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

/// The name of tantivy's list of files.
const FILES: &str = ".managed.json";
/// The prefix of files that are being written to replace a list.
const TEMPORARY: &str = ".tmp";
/// The prefix of the names of tantivy's merging threads.
const MERGING: &str = "merge_thread";
/// The thread that wrote a larger file syncs it at once, so that no commit waits for the output of a merge or a first load.
const LARGE_BYTES: u64 = 1 << 20;
/// Most threads that sync files: as many as a small commit writes.
const THREADS: usize = 8;

/// The folder of an index.
#[derive(Clone)]
pub(super) struct Folder {
    root: PathBuf,
    files: MmapDirectory,
    /// Files that are written to their end and not synced yet.
    written: Arc<Mutex<Vec<File>>>,
    /// Nothing more is written once it is set.
    unwanted: Unwanted,
}

impl Folder {
    /// Opens an existing folder.
    pub(super) fn open(root: &Path) -> Result<Self, OpenDirectoryError> {
        Self::open_for(root, Unwanted::default())
    }

    /// Opens an existing folder for work that may be abandoned: writes fail then.
    pub(super) fn open_for(root: &Path, unwanted: Unwanted) -> Result<Self, OpenDirectoryError> {
        Ok(Self { root: root.to_owned(), files: MmapDirectory::open(root)?, written: Arc::default(), unwanted })
    }

    /// Returns the path of the folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes all writes fail from now on.
    pub(super) fn give_up(&self) {
        self.unwanted.set();
    }

    /// Refuses a path that is no regular file: opening a pipe would wait for ever.
    fn check(&self, path: &Path) -> io::Result<()> {
        let path = self.root.join(path);
        match std::fs::metadata(&path) {
            Ok(found) if !found.is_file() => {
                Err(io::Error::other(format!("`{}` is not a file; remove it", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Syncs the written files. Concurrent callers wait for each other, and failed files are tried again.
    fn settle(&self) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let sync = |files: &[File]| files.iter().try_for_each(File::sync_data);
        let mut parts = written.chunks(written.len().div_ceil(THREADS).max(1));
        let own = parts.next().unwrap_or_default();
        let synced = std::thread::scope(|scope| {
            let others: Vec<_> =
                parts.map(|part| (part, std::thread::Builder::new().spawn_scoped(scope, move || sync(part)))).collect();
            let mut synced = sync(own);
            for (part, thread) in others {
                let panicked = || io::Error::other("a thread that makes files durable panicked");
                synced = synced.and(match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|_| Err(panicked())),
                    // The system has no thread left: this one does the work.
                    Err(_) => sync(part),
                });
            }
            synced
        });
        if synced.is_ok() {
            written.clear();
        }
        synced
    }

    /// Returns the total bytes of the files.
    pub(super) fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).filter(std::fs::Metadata::is_file).map(|file| file.len()).sum()
    }

    /// Returns an unused name.
    fn temporary(&self) -> PathBuf {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.root.join(format!("{TEMPORARY}{}-{moment:x}-{number}", std::process::id()))
    }

    /// Lists the files that tantivy may remove once no segment list names them.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.root)? {
            let entry = entry?;
            if !entry.file_type()?.is_file() {
                continue;
            }
            let name = entry.file_name();
            files.extend(name.into_string().ok().filter(|name| !name.starts_with('.') || name.starts_with(TEMPORARY)));
        }
        Ok(files)
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Folder").field(&self.root).finish()
    }
}

impl Directory for Folder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.check(path).map_err(|error| OpenReadError::wrap_io_error(error, self.root.join(path)))?;
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let_merges_wait();
        let file = OpenOptions::new().write(true).create_new(true).open(self.root.join(path));
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenWriteError::FileAlreadyExists(path.to_owned()),
            _ => OpenWriteError::wrap_io_error(error, self.root.join(path)),
        })?;
        let (written, unwanted) = (self.written.clone(), self.unwanted.clone());
        Ok(BufWriter::new(Box::new(Written { file: Some(file), bytes: 0, written, unwanted })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if path != Path::new(FILES) {
            self.check(path).map_err(|error| OpenReadError::wrap_io_error(error, self.root.join(path)))?;
            return self.files.atomic_read(path);
        }
        let listed = self.list().and_then(|files| Ok(serde_json::to_vec(&files)?));
        listed.map_err(|error| OpenReadError::wrap_io_error(error, self.root.join(path)))
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        if path == Path::new(FILES) {
            return Ok(());
        }
        check_wanted(&self.unwanted)?;
        self.settle()?;
        let (path, temporary) = (self.root.join(path), self.temporary());
        let written = create_file(&temporary).and_then(|mut file| {
            file.write_all(data)?;
            file.sync_data()
        });
        let replaced = written.and_then(|()| std::fs::rename(&temporary, &path));
        replaced.map_err(|error| {
            // The next writer removes the rest.
            let _ = std::fs::remove_file(&temporary);
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.settle()?;
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.check(&lock.filepath).map_err(LockError::wrap_io_error)?;
        let path = self.root.join(&lock.filepath);
        // A lock needs no write permission, so a reader without it locks the existing file.
        let file = match open_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match create_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open_file(&path),
                // No writer was ever here, or the file would exist: no removal has to wait.
                Err(_) if lock.filepath == META_LOCK.filepath => return Ok(DirectoryLock::from(Box::new(()))),
                created => created,
            },
            opened => opened,
        };
        let file = file.map_err(LockError::wrap_io_error)?;
        let locked = if lock.is_blocking { file.lock().map_err(TryLockError::Error) } else { file.try_lock() };
        match locked {
            Ok(()) => Ok(DirectoryLock::from(Box::new(file))),
            Err(TryLockError::WouldBlock) => Err(LockError::LockBusy),
            Err(TryLockError::Error(error)) => Err(LockError::wrap_io_error(error)),
        }
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}

/// Removes the list of files of an earlier build, best effort: this build does not read it.
pub(super) fn forget_list(root: &Path) {
    let _ = std::fs::remove_file(root.join(FILES));
}

/// Fails once the written files are unwanted.
pub(super) fn check_wanted(unwanted: &Unwanted) -> io::Result<()> {
    if unwanted.is_set() { Err(io::Error::other("this file is no longer wanted")) } else { Ok(()) }
}

thread_local! {
    static IS_LOW: Cell<bool> = const { Cell::new(false) };
}

/// Lowers the priority of the calling thread, if it merges: tantivy starts such threads, and they write their files here.
fn let_merges_wait() {
    let thread = std::thread::current();
    if thread.name().is_some_and(|name| name.starts_with(MERGING)) && !IS_LOW.replace(true) {
        let_others_go_first(Urgency::CanWait);
    }
}

/// A file that is being written.
struct Written {
    /// Until it is written to its end.
    file: Option<File>,
    bytes: u64,
    written: Arc<Mutex<Vec<File>>>,
    unwanted: Unwanted,
}

impl Written {
    fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("a file is written to behind its end"))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_wanted(&self.unwanted)?;
        let written = self.file()?.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

impl TerminatingWrite for Written {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        if self.bytes > LARGE_BYTES {
            return file.sync_data();
        }
        self.written.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::lexical::{LexicalReader, LexicalWriter};
    use snapshots::Ordinal;
    use std::collections::BTreeSet;
    use std::fs;

    fn names(root: &Path) -> BTreeSet<String> {
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_was_written_is_durable_before_a_list_is_and_large_files_are_at_once() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path()).unwrap();
        let write = |name: &str, bytes: u64| {
            let mut file = folder.open_write(Path::new(name)).unwrap();
            file.write_all(&vec![7; bytes as usize]).unwrap();
            file.terminate().unwrap();
        };
        let waiting = || folder.written.lock().unwrap().len();
        (0..20).for_each(|number| write(&format!("{number}.term"), 100));
        write("large.term", LARGE_BYTES + 1);
        assert_eq!(waiting(), 20);
        folder.atomic_write(Path::new("meta.json"), b"{}").unwrap();
        assert_eq!(waiting(), 0);
        write("more.term", 0);
        folder.clone().sync_directory().unwrap();
        assert_eq!(waiting(), 0);
        assert!(matches!(folder.open_write(Path::new("more.term")), Err(OpenWriteError::FileAlreadyExists(_))));
        assert_eq!(fs::read(root.path().join("19.term")).unwrap(), [7; 100]);
    }

    #[test]
    fn what_is_no_file_is_refused_by_name_and_nobody_waits_for_it() {
        let root = tempfile::tempdir().unwrap();
        let mut writer = LexicalWriter::open_or_create(root.path()).unwrap();
        writer.add(Ordinal::new(0), "fn spawn() {}", "spawn").unwrap();
        writer.commit(1).unwrap();
        writer.close().unwrap();
        let term = names(root.path()).into_iter().find(|name| name.ends_with(".term")).unwrap();
        for name in ["meta.json", ".tantivy-writer.lock", ".tantivy-meta.lock", &term] {
            let (path, aside) = (root.path().join(name), root.path().join("aside"));
            let was_there = fs::rename(&path, &aside).is_ok();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            let refused: [Option<anyhow::Error>; 2] = [
                LexicalWriter::open_or_create(root.path()).err().map(Into::into),
                LexicalReader::open(root.path()).err().map(Into::into),
            ];
            let told: Vec<String> = refused.into_iter().flatten().map(|error| format!("{error:#}")).collect();
            assert!(!told.is_empty(), "{name}");
            assert!(told.iter().all(|told| told.contains(&format!("{name}` is not a file; remove it"))), "{told:?}");
            fs::remove_file(&path).unwrap();
            if was_there {
                fs::rename(&aside, &path).unwrap();
            }
        }
        assert_eq!(LexicalReader::open(root.path()).unwrap().searcher().num_docs(), 1);
    }

    #[test]
    fn what_no_list_names_is_removed_by_the_next_writer_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let commit = |ordinal: u32| {
            let mut writer = LexicalWriter::open_or_create(root.path()).unwrap();
            writer.add(Ordinal::new(ordinal), "fn spawn() {}", "spawn").unwrap();
            writer.commit(ordinal + 1).unwrap();
            writer.close().unwrap();
        };
        commit(0);
        let whole = names(root.path());
        assert!(!whole.contains(FILES), "the folder is the list: {whole:?}");
        // Files that a killed writer may leave, what an earlier build wrote, and unrelated files.
        for name in ["0123456789abcdef0123456789abcdef.term", ".tmpAbCdEf", FILES, ".hidden"] {
            fs::write(root.path().join(name), "nothing that can be read").unwrap();
        }
        fs::create_dir(root.path().join("folder")).unwrap();
        commit(1);
        let left: BTreeSet<String> = names(root.path()).difference(&whole).cloned().collect();
        let own = left.iter().filter(|name| !name.starts_with('.') && *name != "folder").count();
        assert_eq!(own, 6, "the second segment: {left:?}");
        let others: Vec<&str> = left.iter().map(String::as_str).filter(|name| name.starts_with('.')).collect();
        assert_eq!(others, [".hidden"]);
        assert!(left.contains("folder"));
        assert_eq!(LexicalReader::open(root.path()).unwrap().searcher().num_docs(), 2);
    }
}

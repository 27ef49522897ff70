//! Reader leases: what living readers may still read, so that nothing of it is removed.
//!
//! In: from a reader, how much of the version log it has read. Out: for the collector, the lowest of these.
//!
//! ```text
//!  reader     lease of everything ──► reads the log ──► lease of what it has read ──► … ──► ends, however it ends
//!  collector  drops versions (log) ──► reads the leases ──► removes what neither log nor leases hold
//! ```
//!
//! **Invariant:** a reader that has read the log up to some byte, and no later drop, holds a lease that says so from before the
//! read on. So the collector either sees the lease, or the reader sees the drop. The system releases a lease when its process
//! ends; the remaining file is ignored and removed.
//!
//! One file per reader, locked by it: `leases/PROCESS-NUMBER`. It holds the position twice, because a file may be read while it
//! is written. The gate of a store is a lock on its file `FORMAT`, which every reader can open: readers hold it shared for a
//! moment while they open, and a collector that replaces a whole file holds it exclusively.
//!
//! A reader that cannot write its lease (a read-only mount, a store of another user, no inode left) holds the gate instead, until
//! it ends: a shared lock needs no write permission. A collector treats it as a lease of everything
//! (`docs/decisions/0032-readers-that-cannot-write.md`).

use super::layout::io;
use super::shared::{create_file, make_folder, open_file};
use super::{Layout, StoreError};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a file that was replaced or removed between opening and locking is opened again.
const ATTEMPTS: usize = 64;
/// Number and interval of checks whether the gate is held: most readers hold it for a moment only.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// The lease of one reader. Released when dropped, and by the system when the process ends.
#[derive(Debug)]
pub struct Lease(Held);

#[derive(Debug)]
enum Held {
    /// A file with the position.
    File(LeaseFile),
    /// The gate, held by a reader that cannot write: everything.
    Gate(#[expect(dead_code, reason = "held for its lock only")] Gate),
}

#[derive(Debug)]
struct LeaseFile {
    file: File,
    path: PathBuf,
}

/// The gate of a store: held shared by readers, or exclusively while a whole file is replaced.
#[derive(Debug)]
pub struct Gate {
    // Held for its lock only.
    _file: File,
}

impl Lease {
    /// Takes a lease of the whole store; waits while a file is replaced.
    ///
    /// # Errors
    /// If there is no store, its file `FORMAT` cannot be locked, or the process may open no more files.
    pub fn take(layout: &Layout) -> Result<Self, StoreError> {
        static SAID: Once = Once::new();
        let gate = Gate::pass(layout)?;
        match LeaseFile::make(&layout.leases()) {
            Ok(file) => Ok(Self(Held::File(file))),
            // The next file would fail to open too.
            Err(error @ StoreError::Io { .. }) if crate::resources::is_out_of_files(&error) => Err(error),
            Err(error) => {
                let why = crate::resources::chain(&error);
                SAID.call_once(|| {
                    tracing::warn!("reading without a lease, so nothing is collected until this has ended: {why}");
                });
                Ok(Self(Held::Gate(gate)))
            }
        }
    }

    /// Sets how many bytes of the log the reader has read: it reads no version dropped before that byte. On a full disk, or after
    /// an error, the lease keeps its old position, or holds everything.
    ///
    /// # Errors
    /// If the file cannot be written for another reason.
    pub fn renew(&mut self, log_bytes: u64) -> Result<(), StoreError> {
        let Held::File(LeaseFile { file, path }) = &mut self.0 else { return Ok(()) };
        let text = format!("{log_bytes:020} {log_bytes:020}\n");
        match file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(text.as_bytes())) {
            // A reader continues where a writer cannot: the old position holds more than needed.
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Ok(()),
            written => written.map_err(io("write", path)),
        }
    }
}

impl LeaseFile {
    /// Creates and locks a file that holds everything; the gate is held.
    fn make(folder: &Path) -> Result<Self, StoreError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        make_folder(folder).map_err(io("make the folder", folder))?;
        // Two processes of one number, on two machines or in two containers, never get the same name.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        for _ in 0..ATTEMPTS {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{}-{moment:x}-{number}", std::process::id()));
            let file = create_file(&path).map_err(io("make", &path))?;
            let made = Self { file, path };
            made.file.lock().map_err(io("lock", &made.path))?;
            // A collector may have removed it as an abandoned file before it was locked.
            if made.file.metadata().map_err(io("look at", &made.path))?.nlink() > 0 {
                return Ok(made);
            }
        }
        Err(io("lock", folder)(ErrorKind::WouldBlock.into()))
    }
}

impl Drop for LeaseFile {
    fn drop(&mut self) {
        // The next collector removes what remains.
        let _ = fs::remove_file(&self.path);
    }
}

impl Gate {
    /// Waits until no file is being replaced, and prevents replacement from then on.
    fn pass(layout: &Layout) -> Result<Self, StoreError> {
        let path = layout.format_file();
        for _ in 0..ATTEMPTS {
            let file = Self::open(layout)?;
            file.lock_shared().map_err(io("lock", &path))?;
            // A writer that upgrades the store replaces the file while it holds the gate.
            if file.metadata().map_err(io("look at", &path))?.nlink() > 0 {
                return Ok(Self { _file: file });
            }
        }
        Err(io("lock", &path)(ErrorKind::WouldBlock.into()))
    }

    /// Takes the gate exclusively, if no reader has it or a lease; later readers wait until it is dropped.
    ///
    /// # Errors
    /// If the folder of leases or the file `FORMAT` cannot be used.
    pub fn shut(layout: &Layout) -> Result<Option<Self>, StoreError> {
        let file = Self::open(layout)?;
        match file.try_lock() {
            Ok(()) => Ok(written(layout)?.is_empty().then_some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(io("lock", &layout.format_file())(source)),
        }
    }

    /// Returns whether a reader holds it for longer than a moment.
    fn is_held(layout: &Layout) -> Result<bool, StoreError> {
        let file = Self::open(layout)?;
        for look in 0..LOOKS {
            match file.try_lock() {
                Ok(()) => return Ok(false),
                Err(TryLockError::WouldBlock) if look + 1 < LOOKS => std::thread::sleep(BETWEEN_LOOKS),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(io("lock", &layout.format_file())(source)),
            }
        }
        Ok(true)
    }

    fn open(layout: &Layout) -> Result<File, StoreError> {
        let path = layout.format_file();
        open_file(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => StoreError::Missing { path: layout.root().to_owned() },
            _ => io("open", &path)(error),
        })
    }
}

/// Returns for every living reader how many bytes of the log it has read, 0 if unknown; removes the files of dead ones. All
/// readers that cannot write a lease count as one that has read nothing.
///
/// # Errors
/// If the folder cannot be read.
pub fn leases(layout: &Layout) -> Result<Vec<u64>, StoreError> {
    let mut held = written(layout)?;
    if Gate::is_held(layout)? {
        held.push(0);
    }
    Ok(held)
}

/// Returns the leases that living readers have written.
fn written(layout: &Layout) -> Result<Vec<u64>, StoreError> {
    let folder = layout.leases();
    let listing = match fs::read_dir(&folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        // There may be a reader that holds everything.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(vec![0]),
        Err(source) => return Err(io("list", &folder)(source)),
    };
    let mut held = Vec::new();
    for entry in listing {
        let path = entry.map_err(io("list", &folder))?.path();
        held.extend(look(&path)?);
    }
    Ok(held)
}

/// Returns the position of a lease, or removes its file if its reader is gone.
fn look(path: &Path) -> Result<Option<u64>, StoreError> {
    let mut file = match open_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // Another user's reader may be alive, so it holds everything.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let path = path.display();
            tracing::warn!("cannot read the lease {path}, so nothing is collected; remove it if no reader is running");
            return Ok(Some(0));
        }
        // Anything but a regular file is no lease.
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(None),
        Err(source) => return Err(io("open", path)(source)),
    };
    match file.try_lock() {
        Ok(()) => {
            // It is still locked here, so a reader that waits for the lock will find it removed. One that cannot be removed is
            // ignored too: a reader that locks it now reads the log after this.
            let _ = fs::remove_file(path);
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // An unreadable lease holds everything.
            let _ = Read::by_ref(&mut file).take(64).read_to_string(&mut text);
            Ok(Some(parse(&text).unwrap_or(0)))
        }
        Err(TryLockError::Error(source)) => Err(io("lock", path)(source)),
    }
}

fn parse(text: &str) -> Option<u64> {
    let (first, second) = text.trim().split_once(' ')?;
    let whole = first.len() == 20 && first == second;
    if whole { first.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_holds_everything_until_it_says_less_and_nothing_once_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        assert!(leases(&layout).unwrap().is_empty());
        let mut first = Lease::take(&layout).unwrap();
        let mut second = Lease::take(&layout).unwrap();
        assert_eq!(leases(&layout).unwrap(), [0, 0]);
        first.renew(70).unwrap();
        second.renew(1_234_567).unwrap();
        let mut held = leases(&layout).unwrap();
        held.sort_unstable();
        assert_eq!(held, [70, 1_234_567]);
        assert!(Gate::shut(&layout).unwrap().is_none());
        drop(first);
        assert_eq!(leases(&layout).unwrap(), [1_234_567]);
        // A killed process leaves the file without a lock.
        fs::write(layout.leases().join("1-2-3"), "half a li").unwrap();
        assert_eq!(leases(&layout).unwrap(), [1_234_567]);
        assert_eq!(fs::read_dir(layout.leases()).unwrap().count(), 1);
        drop(second);
        let gate = Gate::shut(&layout).unwrap();
        assert!(gate.is_some());
        let comes = std::thread::spawn(move || Lease::take(&layout).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(!comes.is_finished(), "a reader waits at the gate");
        drop(gate);
        comes.join().unwrap();
    }

    /// A store whose folder of leases is a dangling link: not even root can write a lease there.
    fn unwritable() -> (tempfile::TempDir, Layout) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        fs::remove_dir(layout.leases()).unwrap();
        std::os::unix::fs::symlink("/proc/self/nowhere", layout.leases()).unwrap();
        (folder, layout)
    }

    #[test]
    fn a_reader_that_cannot_write_holds_everything_until_it_ends() {
        let (_folder, layout) = unwritable();
        let mut first = Lease::take(&layout).unwrap();
        assert!(matches!(first.0, Held::Gate(_)));
        first.renew(70).unwrap();
        let second = Lease::take(&layout).unwrap();
        drop(first);
        assert_eq!(leases(&layout).unwrap(), [0], "the other one lives");
        assert!(Gate::shut(&layout).unwrap().is_none());
        drop(second);
        assert!(leases(&layout).unwrap().is_empty());
        assert!(Gate::shut(&layout).unwrap().is_some());
    }

    #[test]
    fn a_reader_that_waited_at_a_gate_that_was_replaced_goes_through_the_new_one() {
        let (_folder, layout) = unwritable();
        let gate = Gate::shut(&layout).unwrap().unwrap();
        let reader = layout.clone();
        let comes = std::thread::spawn(move || Lease::take(&reader).unwrap());
        let inode = fs::metadata(layout.format_file()).unwrap().ino().to_string();
        let waits = |line: &str| line.contains("-> FLOCK") && line.contains(&inode);
        while !fs::read_to_string("/proc/locks").unwrap().lines().any(waits) {
            std::thread::yield_now();
        }
        layout.put_format().unwrap();
        drop(gate);
        let lease = comes.join().unwrap();
        assert!(Gate::shut(&layout).unwrap().is_none(), "{lease:?}");
    }

    #[test]
    fn what_lies_among_leases_and_is_none_is_neither_waited_for_nor_counted() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(layout.leases().join("pipe")).status().unwrap();
        assert!(pipe.success());
        fs::create_dir(layout.leases().join("folder")).unwrap();
        std::os::unix::fs::symlink("nowhere", layout.leases().join("link")).unwrap();
        assert!(leases(&layout).unwrap().is_empty());
        assert!(Gate::shut(&layout).unwrap().is_some());
    }

    #[test]
    fn a_lease_that_is_half_written_holds_everything() {
        for text in ["", "7", "00000000000000000007", "00000000000000000007 00000000000000000008\n"] {
            assert_eq!(parse(text), None);
        }
        assert_eq!(parse("00000000000000000007 00000000000000000007\n"), Some(7));
    }
}

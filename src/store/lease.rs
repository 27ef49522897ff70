//! Leases: what readers that live may still look at, so that nothing of it is removed under them.
//!
//! In: from a reader, how much of the version log it has read. Out: to whoever collects, the least of these.
//!
//! ```text
//!  reader     lease of everything ──► reads the log ──► lease of what it has read ──► … ──► ends, however it ends
//!  collector  drops versions (log) ──► looks at the leases ──► removes what neither log nor leases hold
//! ```
//!
//! **Invariant:** whoever has read the log up to some byte and has not read of a drop behind it holds a lease that says
//! so, from before the reading on. So a collector either sees the lease, or the reader sees the drop. The system lets go
//! of a lease when its process ends; the file that is left counts for nothing and is swept.
//!
//! One file a reader, locked by it: `leases/PROCESS-NUMBER`, holding the byte twice, since a file may be read while it is
//! written. `leases/GATE` is held for a moment by readers that open, and by a collector that replaces a whole file.

use super::layout::io;
use super::{Layout, StoreError};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How often a lease that was swept between being made and being locked is made again.
const ATTEMPTS: usize = 64;

/// What one reader may look at. Given back when dropped, and by the system when the process ends.
#[derive(Debug)]
pub struct Lease {
    file: File,
    path: PathBuf,
}

/// The door of a store, held open for readers that come, or shut while a whole file is replaced.
#[derive(Debug)]
pub struct Gate {
    // Held for its lock only.
    _file: File,
}

impl Lease {
    /// Takes a lease of everything that the store holds; waits while a file is replaced.
    ///
    /// # Errors
    /// Where the folder of leases cannot be written.
    pub fn take(layout: &Layout) -> Result<Self, StoreError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = layout.leases();
        fs::create_dir_all(&folder).map_err(io("make the folder", &folder))?;
        let _gate = Gate::pass(layout)?;
        // Two processes of one number, as two machines or containers have them, never meet in a name.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        for _ in 0..ATTEMPTS {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{}-{moment:x}-{number}", std::process::id()));
            let file =
                OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(io("make", &path))?;
            file.lock().map_err(io("lock", &path))?;
            // Whoever swept may have taken it for one that was left, until it was locked.
            if file.metadata().map_err(io("look at", &path))?.nlink() > 0 {
                return Ok(Self { file, path });
            }
        }
        Err(io("lock", &folder)(std::io::ErrorKind::WouldBlock.into()))
    }

    /// Says how many bytes of the log the reader has read: it looks at nothing that was dropped before that byte. On a full disk, or where
    /// it fails, the lease holds what it held before, or everything.
    ///
    /// # Errors
    /// Where the file cannot be written for another reason.
    pub fn renew(&mut self, log_bytes: u64) -> Result<(), StoreError> {
        let text = format!("{log_bytes:020} {log_bytes:020}\n");
        match self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(text.as_bytes())) {
            // A reader goes on where a writer cannot: what stands there holds more than is needed.
            Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Ok(()),
            written => written.map_err(io("write", &self.path)),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What cannot be removed is swept by the next collector.
        let _ = fs::remove_file(&self.path);
    }
}

impl Gate {
    /// Waits until no file is being replaced, and keeps it so.
    fn pass(layout: &Layout) -> Result<Self, StoreError> {
        let (file, path) = Self::open(layout)?;
        file.lock_shared().map_err(io("lock", &path))?;
        Ok(Self { _file: file })
    }

    /// Shuts the door, if nobody is reading and nobody is about to; whoever comes waits until it is dropped.
    ///
    /// # Errors
    /// Where the folder of leases cannot be used.
    pub fn shut(layout: &Layout) -> Result<Option<Self>, StoreError> {
        let (file, path) = Self::open(layout)?;
        match file.try_lock() {
            Ok(()) => Ok(leases(layout)?.is_empty().then_some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(io("lock", &path)(source)),
        }
    }

    fn open(layout: &Layout) -> Result<(File, PathBuf), StoreError> {
        let folder = layout.leases();
        fs::create_dir_all(&folder).map_err(io("make the folder", &folder))?;
        let path = folder.join("GATE");
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(io("open", &path))?;
        Ok((file, path))
    }
}

/// Returns for every living reader how many bytes of the log it has read, 0 while that is not known; removes the files
/// that dead ones left.
///
/// # Errors
/// Where the folder cannot be read.
pub fn leases(layout: &Layout) -> Result<Vec<u64>, StoreError> {
    let folder = layout.leases();
    let listing = match fs::read_dir(&folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(io("list", &folder)(source)),
    };
    let mut held = Vec::new();
    for entry in listing {
        let path = entry.map_err(io("list", &folder))?.path();
        if path.file_name().is_some_and(|name| name != "GATE") {
            held.extend(look(&path)?);
        }
    }
    Ok(held)
}

/// Returns what a lease holds, or sweeps it where nobody has it any more.
fn look(path: &Path) -> Result<Option<u64>, StoreError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io("open", path)(source)),
    };
    match file.try_lock() {
        Ok(()) => {
            // Still locked here: a reader that waits to lock it will find it gone.
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io("remove", path)(error)),
                _ => Ok(None),
            }
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // What cannot be read holds everything.
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
        // A process that was killed leaves the file and no lock.
        fs::write(layout.leases().join("1-2-3"), "half a li").unwrap();
        assert_eq!(leases(&layout).unwrap(), [1_234_567]);
        assert_eq!(fs::read_dir(layout.leases()).unwrap().count(), 2);
        drop(second);
        let gate = Gate::shut(&layout).unwrap();
        assert!(gate.is_some());
        let comes = std::thread::spawn(move || Lease::take(&layout).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(!comes.is_finished(), "whoever comes waits at the door");
        drop(gate);
        comes.join().unwrap();
    }

    #[test]
    fn a_lease_that_is_half_written_holds_everything() {
        for text in ["", "7", "00000000000000000007", "00000000000000000007 00000000000000000008\n"] {
            assert_eq!(parse(text), None);
        }
        assert_eq!(parse("00000000000000000007 00000000000000000007\n"), Some(7));
    }
}

//! Reads a database whose lock table the reader may not write: a read-only mount, a store of another user.
//!
//! In: the database's file. Out: for a reader, a hold for each read transaction; for the writer, protection of the pages that
//! such readers see.
//!
//! ```text
//!  reader   takes a shared lock on data.mdb ──► transaction at T ──► … ──► ends it ──► releases the lock
//!  writer   begins a transaction ──► is the lock held? ──► keeps a read transaction of its own open meanwhile
//! ```
//!
//! **Invariant:** no page of such a transaction is overwritten while it lasts. LMDB's writer reuses pages that were freed before
//! the oldest reader in the table, and such a reader is in no table. It takes its lock before it reads the last committed T. A
//! writer's transaction that was already in progress reuses no page that T needs, because LMDB keeps the last two states. Each
//! later one finds the lock held, and the writer's own read transaction, at T or one later, is in the table.
//!
//! A writer that opens the database first waits for such readers, because its own read transaction may be newer than theirs;
//! their transactions last for moments. It waits ten seconds at most, so that a process with read permission cannot stop the
//! writer (`docs/decisions/0032-readers-that-cannot-write.md`).

use super::StoreError;
use super::layout::io;
use super::shared::{create_file, open_file};
use super::tables::Env;
use heed::{RoTxn, WithoutTls};
use rustix::fs::Access;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a writer waits for readers in no table before it begins.
const PATIENCE: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_millis(2);

/// The permissions of a process on the database's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rights {
    /// Write the data, and does.
    Write,
    /// Write the data, as readers of the writer's user may.
    Data,
    /// Write the lock table alone.
    Locks,
    /// Write nothing.
    Nothing,
}

impl Rights {
    /// Determines a reader's permissions on the database's files in `folder`; creates a missing lock table.
    pub(super) fn of(folder: &Path) -> Self {
        let is_writable = |name: &str| rustix::fs::access(folder.join(name), Access::WRITE_OK).is_ok();
        // Not opened: closing it would release LMDB's own locks on it. A new one has none.
        match (is_writable("lock.mdb") || create_file(&folder.join("lock.mdb")).is_ok(), is_writable("data.mdb")) {
            (true, true) => Self::Data,
            (true, false) => Self::Locks,
            (false, _) => Self::Nothing,
        }
    }
}

/// Creates the files of a new database with the permissions of their folder; LMDB would create them for one user only.
pub(super) fn make_files(folder: &Path) -> Result<(), StoreError> {
    for path in ["data.mdb", "lock.mdb"].map(|name| folder.join(name)) {
        match create_file(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(io("make", &path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// The database's file, with the locks of readers in no table.
pub(super) struct Watched {
    path: PathBuf,
    file: File,
}

impl Watched {
    pub(super) fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("data.mdb");
        let file = open_file(&path).map_err(io("open", &path))?;
        Ok(Self { path, file })
    }
}

/// The holds of this process, which is in no table.
pub(super) struct Holds {
    watched: Watched,
    number: Mutex<usize>,
}

/// A hold for the time of a read transaction.
pub(super) struct Hold<'a>(&'a Holds);

impl Holds {
    pub(super) fn new(watched: Watched) -> Self {
        Self { watched, number: Mutex::new(0) }
    }

    /// Takes a hold, under which a transaction may begin.
    pub(super) fn take(&self) -> Result<Hold<'_>, StoreError> {
        let mut number = self.number();
        if *number == 0 {
            self.watched.file.lock_shared().map_err(io("lock", &self.watched.path))?;
        }
        *number += 1;
        Ok(Hold(self))
    }

    fn number(&self) -> MutexGuard<'_, usize> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut number = self.0.number();
        *number -= 1;
        if *number == 0 {
            // The system releases it with the process in any case; until then pages are kept.
            let _ = self.0.watched.file.unlock();
        }
    }
}

/// A read transaction, and its hold if this process is in no table.
pub(super) struct Reading<'a> {
    // In drop order: the transaction ends first.
    txn: RoTxn<'a, WithoutTls>,
    _hold: Option<Hold<'a>>,
}

impl<'a> Reading<'a> {
    pub(super) const fn new(txn: RoTxn<'a, WithoutTls>, hold: Option<Hold<'a>>) -> Self {
        Self { txn, _hold: hold }
    }

    /// Ends it so that tables which it opened stay open.
    pub(super) fn commit(self) -> heed::Result<()> {
        self.txn.commit()
    }
}

impl<'a> Deref for Reading<'a> {
    type Target = RoTxn<'a, WithoutTls>;

    fn deref(&self) -> &Self::Target {
        &self.txn
    }
}

/// The writer's read transaction for readers in no table.
pub(super) struct Pin {
    watched: Watched,
    kept: Mutex<Option<RoTxn<'static, WithoutTls>>>,
}

impl Pin {
    /// Waits until no transaction in no table is in progress.
    pub(super) fn begin(watched: Watched) -> Result<Self, StoreError> {
        let until = Instant::now() + PATIENCE;
        while watched.is_held()? {
            if Instant::now() >= until {
                let path = watched.path.display();
                tracing::warn!(
                    "a process that cannot leave a lease has read {path} for ten seconds; it is not waited for"
                );
                break;
            }
            std::thread::sleep(WAIT);
        }
        Ok(Self { watched, kept: Mutex::new(None) })
    }

    /// Checks for readers in no table, after a write transaction has begun and before it takes a page.
    pub(super) fn look(&self, env: &Env) -> Result<(), StoreError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.watched.is_held()? {
            *kept = None;
        } else if kept.is_none() {
            let begun = env.clone().static_read_txn();
            *kept = Some(begun.map_err(|source| StoreError::Database { attempt: "keep what is being read", source })?);
        }
        Ok(())
    }
}

impl Watched {
    fn is_held(&self) -> Result<bool, StoreError> {
        match self.file.try_lock() {
            Ok(()) => self.file.unlock().map(|()| false).map_err(io("unlock", &self.path)),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(io("lock", &self.path)(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tables::Tables;

    /// A database, and a second name of its file in a folder without its lock table.
    fn two_names() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let [own, other] = ["own", "other"].map(|name| folder.path().join(name));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir(&other).unwrap();
        drop(Tables::open(&own, true).unwrap());
        std::fs::hard_link(own.join("data.mdb"), other.join("data.mdb")).unwrap();
        (folder, own, other)
    }

    /// Rewrites some rows, each with this text.
    fn write(tables: &Tables, text: &str) {
        let mut transaction = tables.begin().unwrap();
        for row in 0..400_u32 {
            tables.marks.put_bytes(&mut transaction.0, &row.to_be_bytes(), text.repeat(20).as_bytes()).unwrap();
        }
        transaction.commit().unwrap();
    }

    fn rows(tables: &Tables, txn: &Reading<'_>) -> Vec<Vec<u8>> {
        let row = |row: u32| tables.marks.bytes(txn, &row.to_be_bytes()).unwrap().unwrap_or_default().to_vec();
        (0..400).map(row).collect()
    }

    #[test]
    fn what_a_reader_in_no_table_sees_is_not_written_over_while_it_reads() {
        let (_folder, own, other) = two_names();
        let writer = Tables::open(&own, true).unwrap();
        (0..4).for_each(|turn| write(&writer, &format!("before {turn}")));
        let reader = Tables::open_as(&other, Rights::Nothing).unwrap();
        assert!(!other.join("lock.mdb").exists(), "the reader writes nothing");
        let reading = reader.read().unwrap();
        let second = reader.read().unwrap();
        for turn in 0..20 {
            write(&writer, &format!("after {turn}"));
        }
        drop(second);
        assert!(rows(&reader, &reading).iter().all(|row| *row == b"before 3".repeat(20)));
        drop(reading);
        let used = || std::fs::metadata(own.join("data.mdb")).unwrap().len();
        write(&writer, "again");
        let before = used();
        (0..20).for_each(|turn| write(&writer, &format!("later {turn}")));
        assert_eq!(used(), before, "pages are taken again once no reader sees them");
        let newest = reader.read().unwrap();
        assert!(rows(&reader, &newest).iter().all(|row| *row == b"later 19".repeat(20)));
    }

    #[test]
    fn a_writer_that_opens_waits_for_a_reader_in_no_table() {
        let (_folder, own, other) = two_names();
        write(&Tables::open(&own, true).unwrap(), "before");
        let reader = Tables::open_as(&other, Rights::Nothing).unwrap();
        let reading = reader.read().unwrap();
        let opened = std::thread::scope(|scope| {
            let opens = scope.spawn(|| Tables::open(&own, true).unwrap());
            // Without the wait it would mostly have ended by then; with it, never.
            std::thread::sleep(Duration::from_millis(50));
            assert!(!opens.is_finished());
            assert!(rows(&reader, &reading).iter().all(|row| *row == b"before".repeat(20)));
            drop(reading);
            opens.join().unwrap()
        });
        write(&opened, "after");
    }

    #[test]
    fn rights_are_those_of_the_files_and_a_missing_lock_table_is_made_where_it_can_be() {
        let (_folder, own, other) = two_names();
        assert_eq!(Rights::of(&own), Rights::Data);
        assert_eq!(Rights::of(&other), Rights::Data);
        assert!(other.join("lock.mdb").exists());
        std::fs::remove_file(other.join("lock.mdb")).unwrap();
        std::os::unix::fs::symlink("/proc/self/nowhere", other.join("lock.mdb")).unwrap();
        assert_eq!(Rights::of(&other), Rights::Nothing);
    }
}

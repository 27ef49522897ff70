//! The LMDB environment: open while it is used, and unmapped once its resident memory passes a limit.
//!
//! In: a store's folder. Out: the tables, for as long as a caller holds them.
//!
//! ```text
//!  tables() ──► opened, if it is not ──► held by callers that read or write ──► unmapped, once no caller holds it
//! ```
//!
//! **Invariant:** a process has one environment per folder, because LMDB's locks belong to the process. So opening a store twice
//! in one process, for example a searcher beside a tracker, shares it. No access is interrupted: the environment is closed only
//! while no caller holds it, and the next access opens it again. The rows are those of the file, so no answer changes.
//!
//! Touching a row makes 64 KiB resident, because the kernel maps the cached pages around a fault. The rows of a hit, or of a new
//! entry, are in a dozen places of a large file. A thousand questions, or a first load, would make the whole file resident for
//! nothing (`docs/decisions/0022-letting-go.md`).

use super::layout::io;
use super::seen::Seen;
use super::tables::{Opened, Tables};
use super::{StoreError, WriteTransaction};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Bytes of files that may become resident in a reader before the database is unmapped: some ten questions in a large store, and
/// more than the whole of a small one.
const RESIDENT_IN_READER: u64 = 64 << 20;
/// The same in a writer, which returns to more places: a part of what a tracker uses anyway.
const RESIDENT_IN_WRITER: u64 = 256 << 20;
/// Number and interval of checks whether all holders have finished: most read a row or two.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// The environments that are open in this process, or will be opened again.
static KNOWN: Mutex<BTreeMap<PathBuf, Weak<Slot>>> = Mutex::new(BTreeMap::new());

/// The database of a store; clones share it.
#[derive(Clone)]
pub(super) struct Mapped(Arc<Slot>);

struct Slot {
    folder: PathBuf,
    is_writer: AtomicBool,
    seen: Arc<Seen>,
    /// Whether the file ended before its last page when it was first opened.
    was_short: bool,
    open: Mutex<Option<Open>>,
    /// Whether it is to be unmapped as soon as no caller holds it.
    is_unwanted: AtomicBool,
}

struct Open {
    tables: Tables,
    /// Resident bytes of files when it was opened.
    resident: u64,
}

/// A hold on the database, which prevents unmapping.
pub struct Mapping(Tables);

impl Mapping {
    /// Begins the transaction of one publish.
    ///
    /// # Errors
    /// If the disk or the map is full.
    pub fn write(&self) -> Result<WriteTransaction<'_>, StoreError> {
        self.0.begin()
    }
}

impl Mapped {
    /// Opens the database in `folder`; a writer creates missing parts.
    pub(super) fn open(folder: &Path, is_writer: bool) -> Result<Self, StoreError> {
        let real = folder.canonicalize().map_err(io("open the database in", folder))?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = known.get(&real).and_then(Weak::upgrade) {
            let mapped = Self(slot);
            if is_writer && !mapped.0.is_writer.swap(true, Ordering::Relaxed) {
                // A reader opened it, and readers create nothing.
                mapped.let_go();
            }
            return Ok(mapped);
        }
        let seen = Arc::new(Seen::default());
        let (opened, was_short) = Opened::open(&real, is_writer, seen.clone())?;
        let open = Mutex::new(Some(Open { tables: Tables::new(opened), resident: resident() }));
        let slot = Slot {
            folder: real.clone(),
            is_writer: is_writer.into(),
            seen,
            was_short,
            open,
            is_unwanted: false.into(),
        };
        let slot = Arc::new(slot);
        known.retain(|_, slot| slot.strong_count() > 0);
        known.insert(real, Arc::downgrade(&slot));
        Ok(Self(slot))
    }

    /// Returns the tables, to be held for moments only; opens them if they were unmapped.
    pub(super) fn tables(&self) -> Result<Tables, StoreError> {
        let mut open = self.0.lock();
        if self.0.is_unwanted.load(Ordering::Relaxed) {
            drop(self.0.take(&mut open, 1));
        }
        if let Some(open) = &*open {
            return Ok(open.tables.clone());
        }
        let (opened, _) = Opened::open(&self.0.folder, self.0.is_writer(), self.0.seen.clone())?;
        Ok(open.insert(Open { tables: Tables::new(opened), resident: resident() }).tables.clone())
    }

    pub(super) fn mapping(&self) -> Result<Mapping, StoreError> {
        self.tables().map(Mapping)
    }

    pub(super) fn was_short(&self) -> bool {
        self.0.was_short
    }

    /// Unmaps the database if more file memory has become resident since it was opened than the limit: now, or at the next check
    /// that finds it unused.
    pub(super) fn let_go_of_much(&self) {
        let most = if self.0.is_writer() { RESIDENT_IN_WRITER } else { RESIDENT_IN_READER };
        let before = self.0.lock().as_ref().map(|open| open.resident);
        if before.is_some_and(|before| resident().saturating_sub(before) > most) {
            self.0.is_unwanted.store(true, Ordering::Relaxed);
            self.let_go();
        }
    }

    /// Unmaps the database, unless a caller holds it for longer than a moment; that caller continues.
    pub(super) fn let_go(&self) {
        let mut open = self.0.lock();
        drop(self.0.take(&mut open, LOOKS));
    }

    /// Rewrites the file without its free pages and replaces the old one; returns whether it could: not while a caller holds it.
    pub(super) fn compact(&self) -> Result<bool, StoreError> {
        // No code in this process opens it meanwhile.
        let _ = self.tables()?;
        let mut open = self.0.lock();
        let Some(opened) = self.0.take(&mut open, LOOKS) else { return Ok(false) };
        let folder = &self.0.folder;
        let (file, copy) = (folder.join("data.mdb"), folder.join("data.mdb.new"));
        match std::fs::remove_file(&copy) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io("remove", &copy)(error)),
            _ => {}
        }
        let written = opened.copy_to(&copy)?;
        // Readers of another user keep their access, or lack of it.
        let as_before = std::fs::metadata(&file).and_then(|file| written.set_permissions(file.permissions()));
        as_before.and_then(|()| written.sync_all()).map_err(io("sync", &copy))?;
        drop(opened);
        std::fs::rename(&copy, &file).map_err(io("replace", &file))?;
        std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("sync", folder))?;
        Ok(true)
    }

    #[cfg(test)]
    fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        // The state is consistent at any time.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_writer(&self) -> bool {
        self.is_writer.load(Ordering::Relaxed)
    }

    /// Takes the open environment out, to be closed by dropping it; nothing if it is closed, or if a caller keeps holding it.
    fn take(&self, open: &mut Option<Open>, looks: u32) -> Option<Opened> {
        // No caller can take a hold while `open` is locked, so it can only become free.
        for look in 0..looks {
            let Open { tables, resident } = open.take()?;
            match tables.into_opened() {
                Ok(opened) => {
                    self.is_unwanted.store(false, Ordering::Relaxed);
                    return Some(opened);
                }
                Err(tables) => *open = Some(Open { tables, resident }),
            }
            if look + 1 < looks {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
        None
    }
}

/// Returns the resident bytes of files in this process; 0 if the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use crate::store::{Database, Layout, Receipt};
    use snapshots::Epoch;

    fn receipt(epoch: u64) -> Receipt {
        Receipt { added: epoch, ..Receipt::default() }
    }

    /// Creates a database with some receipts.
    fn database() -> (tempfile::TempDir, Layout, Database) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let database = Database::open_writer(&layout).unwrap();
        let mapping = database.mapping().unwrap();
        let mut transaction = mapping.write().unwrap();
        for epoch in 0..200 {
            database.catalogue().put_receipt(&mut transaction, Epoch::new(epoch), &receipt(epoch)).unwrap();
        }
        transaction.commit().unwrap();
        drop(mapping);
        (folder, layout, database)
    }

    #[test]
    fn what_is_held_is_not_closed_and_what_was_let_go_of_is_read_as_before() {
        let (_folder, layout, database) = database();
        let (mapped, catalogue) = (&database.mapped, database.catalogue());
        let held = mapped.tables().unwrap();
        mapped.let_go();
        assert!(mapped.is_open(), "a caller holds it");
        assert!(!database.compact(&crate::store::Gate::shut(&layout).unwrap().unwrap()).unwrap());
        drop(held);
        mapped.let_go_of_much();
        assert!(mapped.is_open(), "hardly anything is resident");
        mapped.let_go();
        assert!(!mapped.is_open());
        assert_eq!(catalogue.receipt(Epoch::new(8)).unwrap(), Some(receipt(8)));
        mapped.let_go();
        std::fs::remove_dir_all(layout.memo()).unwrap();
        assert!(catalogue.receipt(Epoch::new(8)).is_err(), "a database that is gone is an error, and no panic");
    }

    #[test]
    fn what_was_to_be_let_go_of_while_it_was_held_is_let_go_of_with_a_later_look() {
        let (_folder, _layout, database) = database();
        let mapped = &database.mapped;
        let held = mapped.tables().unwrap();
        mapped.0.is_unwanted.store(true, super::Ordering::Relaxed);
        let _ = mapped.tables().unwrap();
        assert!(mapped.0.is_unwanted.load(super::Ordering::Relaxed), "a caller holds it");
        drop(held);
        let _ = mapped.tables().unwrap();
        assert!(!mapped.0.is_unwanted.load(super::Ordering::Relaxed), "it was closed, and opened again");
        assert!(mapped.is_open());
    }

    #[test]
    fn it_is_let_go_of_and_written_anew_under_those_who_read_and_write() {
        let (_folder, layout, database) = database();
        let catalogue = database.catalogue();
        let gate = crate::store::Gate::shut(&layout).unwrap().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (database, catalogue, gate) = (&database, &catalogue, &gate);
                scope.spawn(move || {
                    for epoch in 0..200 {
                        assert_eq!(catalogue.receipt(Epoch::new(epoch)).unwrap(), Some(receipt(epoch)));
                        if epoch % 3 == thread {
                            database.mapped.let_go();
                        }
                        if epoch % 50 == thread {
                            database.compact(gate).unwrap();
                        }
                        if epoch % 10 == thread {
                            let mapping = database.mapping().unwrap();
                            let mut transaction = mapping.write().unwrap();
                            let (number, receipt) = (Epoch::new(200 + epoch), receipt(200 + epoch));
                            catalogue.put_receipt(&mut transaction, number, &receipt).unwrap();
                            transaction.commit().unwrap();
                        }
                    }
                });
            }
        });
        let written = (0..200).filter(|epoch| epoch % 10 < 3).map(|epoch| 200 + epoch);
        for epoch in (0..200).chain(written) {
            assert_eq!(catalogue.receipt(Epoch::new(epoch)).unwrap(), Some(receipt(epoch)));
        }
    }

    #[test]
    fn a_writer_makes_what_the_reader_that_opened_it_here_did_not() {
        let (_folder, layout, first) = database();
        drop(first);
        let reader = Database::open_reader(&layout).unwrap();
        assert!(!reader.mapped.0.is_writer());
        let writer = Database::open_writer(&layout).unwrap();
        assert!(writer.mapped.0.is_writer());
        assert_eq!(reader.catalogue().receipt(Epoch::new(8)).unwrap(), Some(receipt(8)));
    }
}

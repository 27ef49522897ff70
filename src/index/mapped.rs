//! The database behind a reader: mapped, and let go of once much of its file has become resident.
//!
//! In: a store's folder. Out: the handles of the database, for as long as somebody holds them.
//!
//! **Invariant:** nobody waits for it to be let go of, and nothing is cut off: it is closed where nobody holds a handle, and
//! opened again by whoever asks next. The rows are those of the file, so no answer changes; and the reader's lease lasts, so
//! the file is not replaced meanwhile.
//!
//! To touch a row makes 64 KiB resident, since the system maps what is around a page that it has; the rows of a hit lie in a dozen
//! places of a large file. A thousand questions would make all of it resident, for nothing (`docs/decisions/0021-columns.md`).

use crate::store::{Catalogue, Database, Layout, StoreError, StoreMemo};
use dataflows::data::Fingerprint;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So much of files may become resident before the database is let go of: some ten questions' worth in a large store, and more
/// than all of a small one.
const RESIDENT_BYTES: u64 = 64 << 20;

/// A part of the database, which is not let go of while this lasts.
pub struct Held<T: 'static> {
    open: Arc<Open>,
    part: fn(&Open) -> &T,
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        (self.part)(&self.open)
    }
}

/// The handles of an open database.
struct Open {
    database: Database,
    catalogue: Catalogue,
    memo: StoreMemo,
    /// What was resident of files when it was opened.
    resident: u64,
}

/// The database of a store, for reading.
pub(super) struct Mapped {
    layout: Layout,
    model: Fingerprint,
    open: Mutex<Option<Arc<Open>>>,
}

impl Mapped {
    /// Opens the database of a store for one model's vectors.
    pub(super) fn open(layout: &Layout, model: Fingerprint) -> Result<Self, StoreError> {
        let mapped = Self { layout: layout.clone(), model, open: Mutex::default() };
        mapped.get()?;
        Ok(mapped)
    }

    pub(super) fn database(&self) -> Result<Held<Database>, StoreError> {
        Ok(Held { open: self.get()?, part: |open| &open.database })
    }

    pub(super) fn catalogue(&self) -> Result<Held<Catalogue>, StoreError> {
        Ok(Held { open: self.get()?, part: |open| &open.catalogue })
    }

    pub(super) fn memo(&self) -> Result<Held<StoreMemo>, StoreError> {
        Ok(Held { open: self.get()?, part: |open| &open.memo })
    }

    /// Lets go of the database where more of files has become resident since it was opened than is worth keeping, unless
    /// somebody holds it.
    pub(super) fn let_go_of_much(&self) {
        let before = self.locked().as_ref().map(|open| open.resident);
        if before.is_some_and(|before| resident().saturating_sub(before) > RESIDENT_BYTES) {
            self.let_go();
        }
    }

    /// Lets go of the database, unless somebody holds it: whoever does goes on.
    pub(super) fn let_go(&self) {
        let mut open = self.locked();
        *open = open.take().and_then(|open| Arc::try_unwrap(open).err());
    }

    fn get(&self) -> Result<Arc<Open>, StoreError> {
        let mut open = self.locked();
        if let Some(open) = &*open {
            return Ok(open.clone());
        }
        let database = Database::open_reader(&self.layout)?;
        let (catalogue, memo) = (database.catalogue(), database.memo(self.model));
        Ok(open.insert(Arc::new(Open { database, catalogue, memo, resident: resident() })).clone())
    }

    fn locked(&self) -> MutexGuard<'_, Option<Arc<Open>>> {
        // Whatever is in there is whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the bytes of files that are resident in this process; none where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Receipt;
    use snapshots::Epoch;

    fn is_open(mapped: &Mapped) -> bool {
        mapped.locked().is_some()
    }

    #[test]
    fn what_is_held_is_not_closed_and_what_was_let_go_of_is_read_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let receipt = |epoch: u64| Receipt { added: epoch, ..Receipt::default() };
        {
            let database = Database::open_writer(&layout).unwrap();
            let mut transaction = database.write().unwrap();
            for epoch in 0..200 {
                database.catalogue().put_receipt(&mut transaction, Epoch::new(epoch), &receipt(epoch)).unwrap();
            }
            transaction.commit().unwrap();
        }
        let mapped = Mapped::open(&layout, Fingerprint::default()).unwrap();
        let held = mapped.catalogue().unwrap();
        mapped.let_go();
        assert!(is_open(&mapped), "somebody holds it");
        assert_eq!(held.receipt(Epoch::new(7)).unwrap(), Some(receipt(7)));
        drop(held);
        mapped.let_go_of_much();
        assert!(is_open(&mapped), "hardly anything is resident");
        mapped.let_go();
        assert!(!is_open(&mapped));
        assert_eq!(mapped.catalogue().unwrap().receipt(Epoch::new(8)).unwrap(), Some(receipt(8)));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let mapped = &mapped;
                scope.spawn(move || {
                    for epoch in 0..200 {
                        let found = mapped.catalogue().unwrap().receipt(Epoch::new(epoch)).unwrap();
                        assert_eq!(found, Some(receipt(epoch)));
                        if epoch % 3 == thread {
                            mapped.let_go();
                        }
                    }
                });
            }
        });
        mapped.let_go();
        std::fs::remove_dir_all(layout.memo()).unwrap();
        assert!(mapped.catalogue().is_err(), "a database that is gone is an error, and no panic");
    }
}

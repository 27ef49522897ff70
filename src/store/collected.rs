//! The last complete garbage collection, with its result.
//!
//! In: the result of a collection. Out: the same, for the next tracker and for `status`. **Invariant:** it is written after a
//! complete collection, so an interrupted one is due again.

use super::{Database, StoreError};
use serde::{Deserialize, Serialize};

/// The key of the row.
const MARK: &[u8] = b"collected";

/// The last complete collection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LastCollection {
    /// When it ended, in seconds since 1970.
    pub time: i64,
    /// Snapshots that it dropped.
    pub dropped: u64,
    /// Entries that it removed.
    pub entries: u64,
    /// Bytes that it freed, for the system or for reuse.
    pub bytes: u64,
}

impl Database {
    /// Returns the result of the last collection, if there was one.
    ///
    /// # Errors
    /// If the database fails.
    pub fn last_collection(&self) -> Result<Option<LastCollection>, StoreError> {
        let tables = self.mapped.tables()?;
        tables.marks.get(&*tables.read()?, MARK)
    }

    /// Writes the result of a collection.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn put_last_collection(&self, last: LastCollection) -> Result<(), StoreError> {
        let mapping = self.mapping()?;
        let mut transaction = mapping.write()?;
        transaction.1.marks.put(&mut transaction.0, MARK, &last)?;
        transaction.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Layout;

    #[test]
    fn the_last_collection_is_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let last = LastCollection { time: 1_700_000_000, dropped: 7, entries: 8, bytes: 9 };
        {
            let database = Database::open_writer(&layout).unwrap();
            assert_eq!(database.last_collection().unwrap(), None);
            database.put_last_collection(last).unwrap();
        }
        assert_eq!(Database::open_reader(&layout).unwrap().last_collection().unwrap(), Some(last));
    }
}

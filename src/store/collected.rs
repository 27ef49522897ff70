//! When a store was last collected, and what that gave back.
//!
//! In: what a collection came to. Out: the same, to the next tracker and to `status`. **Invariant:** it is written behind a
//! collection that was whole, so one that broke off is due again.

use super::{Database, StoreError};
use serde::{Deserialize, Serialize};

/// Names the row.
const MARK: &[u8] = b"collected";

/// The last collection that was whole.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LastCollection {
    /// When it ended, in seconds since 1970.
    pub time: i64,
    /// Snapshots that it dropped.
    pub dropped: u64,
    /// Entries that it removed.
    pub entries: u64,
    /// Bytes that it gave back, to the system or for what comes.
    pub bytes: u64,
}

impl Database {
    /// Returns what the last collection came to, if there was one.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn last_collection(&self) -> Result<Option<LastCollection>, StoreError> {
        let tables = self.mapped.tables()?;
        tables.marks.get(&*tables.read()?, MARK)
    }

    /// Notes what a collection came to.
    ///
    /// # Errors
    /// Where the disk is full.
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

//! Paths by number, in memory and contiguous.
//!
//! In: the table of paths, each row read once. Out: the bytes of a number's path.
//!
//! **Invariant:** a number means one path for ever, so cached paths stay valid.

use crate::store::StoreError;
use crate::store::tables::Opened;
use heed::RoTxn;

/// The paths up to some number.
#[derive(Default)]
pub(super) struct Paths {
    bytes: Vec<u8>,
    /// The end of each of them.
    ends: Vec<usize>,
}

impl Paths {
    /// Returns the path of a number, if it was read.
    pub(super) fn get(&self, number: u32) -> Option<&[u8]> {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..*self.ends.get(at)?)
    }

    /// Reads the rows after the known ones, up to the first missing number.
    pub(super) fn read_on(&mut self, tables: &Opened, txn: &RoTxn<'_>) -> Result<(), StoreError> {
        let next = self.ends.len() as u32;
        tables.paths.values.each_from(txn, &next.to_be_bytes(), |key, path| {
            let is_next = key == (self.ends.len() as u32).to_be_bytes();
            if is_next {
                self.bytes.extend_from_slice(path);
                self.ends.push(self.bytes.len());
            }
            Ok(is_next)
        })
    }
}

//! Numbers for values that many rows refer to, so that each reference takes a byte or two.
//!
//! In: values (heads, places, paths), inside a write transaction. Out: a number for each, and back.
//!
//! ```text
//!  number ─► value          hash of the value ─► number    (probed until the value fits)
//! ```
//!
//! Texts and vectors have numbers as well, each in their own way ([`texts`](super::texts), [`vectors`](super::vectors)).
//!
//! **Invariant:** within a store a value has one number and a number one value, for ever. The transaction that stores the value
//! assigns the number, as one more than the largest stored one. A lost transaction loses its numbers, and no written row refers
//! to them. The last row of a numbered table is never removed, so no number is reused. Numbers are internal to a store: no
//! identity, digest, copy or dump holds one.
//!
//! Numbers are ascending keys, so LMDB fills the pages of these tables; hash keys leave a third empty.

use super::StoreError;
use super::tables::Table;
use dataflows::data::Hasher;
use heed::{RoTxn, RwTxn};

/// Values by number, and numbers by value.
#[derive(Clone, Copy)]
pub(super) struct Numbering {
    /// number → value.
    pub(super) values: Table,
    /// hash of a value → number.
    pub(super) names: Table,
}

impl Numbering {
    /// Returns the value of a number.
    pub(super) fn value<'t>(&self, txn: &'t RoTxn<'_>, number: u32) -> Result<&'t [u8], StoreError> {
        self.values.bytes(txn, &number.to_be_bytes())?.ok_or_else(|| self.values.lost(number))
    }

    /// Returns the number of a value, if it has one.
    pub(super) fn find(&self, txn: &RoTxn<'_>, value: &[u8]) -> Result<Option<u32>, StoreError> {
        self.probe(txn, value).map(|found| found.ok())
    }

    /// Returns the number of a value, and assigns one if it has none.
    pub(super) fn number(&self, txn: &mut RwTxn<'_>, value: &[u8]) -> Result<u32, StoreError> {
        let name = match self.probe(txn, value)? {
            Ok(number) => return Ok(number),
            Err(name) => name,
        };
        let number = next(&self.values, txn)?;
        self.values.put_bytes(txn, &number.to_be_bytes(), value)?;
        self.names.put(txn, &name, &number)?;
        Ok(number)
    }

    /// Returns the number of a value, or its first free name.
    fn probe(&self, txn: &RoTxn<'_>, value: &[u8]) -> Result<Result<u32, [u8; 8]>, StoreError> {
        for attempt in 0_u32.. {
            let name = name(value, attempt);
            let Some(number) = self.names.get::<u32>(txn, &name)? else { return Ok(Err(name)) };
            // Half a hash may collide, so the value itself is compared.
            if self.values.bytes(txn, &number.to_be_bytes())? == Some(value) {
                return Ok(Ok(number));
            }
        }
        Err(self.names.full())
    }

    /// Returns how many values do not lead to their number.
    pub(super) fn count_lost(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        let mut lost = 0;
        self.values.each(txn, |key, value| {
            lost += u64::from(self.find(txn, value)? != number_of(key));
            Ok(true)
        })?;
        Ok(lost)
    }
}

/// Returns the look-up key of a value: eight bytes of its hash, different for each attempt.
fn name(value: &[u8], attempt: u32) -> [u8; 8] {
    let [word, _] = Hasher::new("number").part(value).part(&attempt.to_le_bytes()).finish();
    word.to_le_bytes()
}

/// Returns one more than the largest number of a table.
pub(super) fn next(table: &Table, txn: &RoTxn<'_>) -> Result<u32, StoreError> {
    let Some((key, _)) = table.last(txn)? else { return Ok(0) };
    number_of(key).and_then(|last| last.checked_add(1)).ok_or_else(|| table.full())
}

/// Returns the number of a key.
pub(super) fn number_of(key: &[u8]) -> Option<u32> {
    key.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::cases;
    use crate::store::tables::Tables;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Forces values onto one name, as if half their hashes were equal.
    fn collide(numbering: &Numbering, txn: &mut RwTxn<'_>, taken: u32, value: &[u8]) {
        numbering.names.put(txn, &name(value, 0), &taken).unwrap();
    }

    proptest! {
        #![proptest_config(cases(24))]
        #[test]
        fn a_number_means_one_value_for_ever_whatever_is_lost_and_opened_again(
            transactions in prop::collection::vec((prop::collection::vec(0u8..30, 0..12), any::<bool>()), 1..12),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut known: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
            for (values, is_lost) in transactions {
                let tables = Tables::open(folder.path(), true).unwrap();
                let mut txn = tables.write().unwrap();
                let mut numbers = known.clone();
                for value in values {
                    let value = vec![value; 1 + usize::from(value) * 40];
                    let number = tables.paths.number(&mut txn, &value).unwrap();
                    prop_assert_eq!(*numbers.entry(value).or_insert(number), number);
                }
                if is_lost {
                    txn.abort();
                } else {
                    txn.commit().unwrap();
                    known = numbers;
                }
                let txn = tables.read().unwrap();
                let distinct: std::collections::BTreeSet<u32> = known.values().copied().collect();
                prop_assert_eq!(distinct.len(), known.len(), "two values have one number");
                for (value, number) in &known {
                    prop_assert_eq!(tables.paths.value(&txn, *number).unwrap(), &value[..]);
                    prop_assert_eq!(tables.paths.find(&txn, value).unwrap(), Some(*number));
                }
                prop_assert_eq!(tables.paths.count_lost(&txn).unwrap(), 0);
            }
        }
    }

    #[test]
    fn values_that_share_half_a_hash_keep_apart() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let mut txn = tables.write().unwrap();
        let first = tables.heads.number(&mut txn, b"first").unwrap();
        collide(&tables.heads, &mut txn, first, b"second");
        assert_eq!(tables.heads.find(&txn, b"second").unwrap(), None);
        let second = tables.heads.number(&mut txn, b"second").unwrap();
        assert_ne!(first, second);
        for (value, number) in [(&b"first"[..], first), (b"second", second)] {
            assert_eq!(tables.heads.find(&txn, value).unwrap(), Some(number));
            assert_eq!(tables.heads.number(&mut txn, value).unwrap(), number);
        }
    }

    #[test]
    fn what_does_not_lead_back_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let mut txn = tables.write().unwrap();
        for value in [&b"one"[..], b"two"] {
            tables.places.number(&mut txn, value).unwrap();
        }
        assert_eq!(tables.places.count_lost(&txn).unwrap(), 0);
        tables.places.values.put_bytes(&mut txn, &1_u32.to_be_bytes(), b"tw0").unwrap();
        assert_eq!(tables.places.count_lost(&txn).unwrap(), 1);
    }
}

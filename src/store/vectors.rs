//! Vectors as results: stored in the order of insertion, found by model, card and text.
//!
//! In: components, or that a text has no vector, inside a write transaction. Out: the same, for a model, card and text.
//!
//! ```text
//!  number ─► model, card, text, components      hash of model, card and text ─► number
//! ```
//!
//! **Invariant:** a look-up never returns another vector: the row itself says whose vector it is. Nothing else refers to these
//! numbers, so one may be reused after its row was removed.

use super::StoreError;
use super::identities::{Id, Identities};
use super::numbering::{next, number_of};
use super::tables::Table;
use dataflows::data::{EmbedId, Fingerprint, Hasher, ModelId};
use heed::{RoTxn, RwTxn};

/// Bytes of a row before the components.
pub(super) const KEY_BYTES: usize = 48;

/// The key of a vector, with which its row begins: model, card and text.
pub(super) type VectorKey = [u8; KEY_BYTES];

/// Returns the key of a model's vector of a card and a text.
pub(super) fn vector_key(model: ModelId, id: EmbedId) -> VectorKey {
    let mut key = [0; KEY_BYTES];
    key[..16].copy_from_slice(&model.to_bytes());
    key[16..32].copy_from_slice(&id.card.to_bytes());
    key[32..].copy_from_slice(&id.text.to_bytes());
    key
}

/// The tables of vectors.
#[derive(Clone, Copy)]
pub(super) struct Vectors {
    /// number → model, card, text and components, none for a text without a vector.
    pub(super) rows: Table,
    /// hash of model, card and text → number.
    pub(super) numbers: Identities,
}

impl Vectors {
    /// Returns whether there is a row.
    pub(super) fn has(&self, txn: &RoTxn<'_>, key: &VectorKey) -> Result<bool, StoreError> {
        self.numbers.get(txn, id(key)).map(|number| number.is_some())
    }

    /// Returns the bytes of the components, if there is a row.
    pub(super) fn components<'t>(&self, txn: &'t RoTxn<'_>, key: &VectorKey) -> Result<Option<&'t [u8]>, StoreError> {
        let Some(number) = self.numbers.get(txn, id(key))? else { return Ok(None) };
        let row = self.rows.bytes(txn, &number.to_be_bytes())?;
        row.and_then(|row| row.strip_prefix(key)).map(Some).ok_or_else(|| self.rows.lost(number))
    }

    /// Removes the stored vectors: two threads may have made one, and a flush may have written it in between.
    pub(super) fn unknown<T>(
        &self,
        txn: &RoTxn<'_>,
        vectors: impl Iterator<Item = (VectorKey, T)>,
    ) -> Result<Vec<(VectorKey, T)>, StoreError> {
        let mut unknown = Vec::new();
        for (key, vector) in vectors {
            if !self.has(txn, &key)? {
                unknown.push((key, vector));
            }
        }
        Ok(unknown)
    }

    /// Assigns the next numbers to new vectors, in this order, and returns the first; [`Self::put`] stores them, in the same
    /// transaction.
    pub(super) fn name<'a>(
        &self,
        txn: &mut RwTxn<'_>,
        new: impl Iterator<Item = &'a VectorKey>,
    ) -> Result<u32, StoreError> {
        let first = next(&self.rows, txn)?;
        self.numbers.put_all(txn, (first..).zip(new).map(|(number, key)| (id(key), number)).collect())?;
        Ok(first)
    }

    /// Writes vectors that just got numbers, from this number on: each with its key and the bytes of its components.
    pub(super) fn put<'a>(
        &self,
        txn: &mut RwTxn<'_>,
        first: u32,
        new: impl Iterator<Item = (&'a VectorKey, Vec<u8>)>,
    ) -> Result<(), StoreError> {
        for (number, (key, components)) in (first..).zip(new) {
            self.rows.put_bytes(txn, &number.to_be_bytes(), &[&key[..], &components].concat())?;
        }
        Ok(())
    }

    /// Calls `look` with the number and the key of each row, in the order of numbers.
    pub(super) fn each(
        &self,
        txn: &RoTxn<'_>,
        mut look: impl FnMut(u32, &VectorKey) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.rows.each(txn, |number, row| {
            let (Some(number), Some(key)) = (number_of(number), row.first_chunk()) else {
                return Err(self.rows.lost("that can be read"));
            };
            look(number, key)?;
            Ok(true)
        })
    }

    /// Removes the row that has this number.
    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, key: &VectorKey, number: u32) -> Result<(), StoreError> {
        self.rows.remove(txn, &number.to_be_bytes())?;
        self.numbers.remove(txn, id(key))
    }

    /// Returns how many rows are not found by their key, and how many numbers have no row.
    pub(super) fn count_lost(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        let (mut lost, mut found, mut known) = (0, 0, 0_u64);
        self.each(txn, |number, key| {
            let leads_here = self.numbers.get(txn, id(key))? == Some(number);
            found += u64::from(leads_here);
            lost += u64::from(!leads_here);
            Ok(())
        })?;
        self.numbers.each(txn, |_, _| {
            known += 1;
            Ok(())
        })?;
        Ok(lost + known.abs_diff(found))
    }
}

fn id(key: &VectorKey) -> Id {
    Fingerprint::from_words(Hasher::new("vector").part(key).finish()).to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::cases;
    use crate::store::tables::Tables;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn row(n: u16) -> Vec<u8> {
        let mut row = vec![0; KEY_BYTES];
        row[..2].copy_from_slice(&n.to_le_bytes());
        row.extend(vec![n as u8; usize::from(n % 4) * 64]);
        row
    }

    fn key(row: &[u8]) -> VectorKey {
        *row.first_chunk().unwrap()
    }

    fn put(vectors: &Vectors, txn: &mut RwTxn<'_>, rows: impl Iterator<Item = Vec<u8>>) {
        let new: Vec<_> = rows.map(|row| (key(&row), row[KEY_BYTES..].to_vec())).collect();
        let first = vectors.name(txn, new.iter().map(|(key, _)| key)).unwrap();
        vectors.put(txn, first, new.iter().map(|(key, components)| (key, components.clone()))).unwrap();
    }

    proptest! {
        #![proptest_config(cases(24))]
        #[test]
        fn vectors_are_found_as_in_a_map_whatever_is_removed_and_lost(
            steps in prop::collection::vec((prop::collection::btree_set(0u16..300, 0..60), any::<bool>(), prop::bool::weighted(0.2)), 1..10),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut stored: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
            for (numbers, is_removed, is_lost) in steps {
                let tables = Tables::open(folder.path(), true).unwrap();
                let vectors = tables.vectors;
                let mut txn = tables.write().unwrap();
                let before = stored.clone();
                if is_removed {
                    let mut found = BTreeMap::new();
                    vectors.each(&txn, |number, key| {
                        found.insert(*key, number);
                        Ok(())
                    }).unwrap();
                    for n in numbers {
                        if let Some(row) = stored.remove(&n) {
                            vectors.remove(&mut txn, &key(&row), found[&key(&row)]).unwrap();
                        }
                    }
                } else {
                    let new: Vec<u16> = numbers.into_iter().filter(|n| !stored.contains_key(n)).collect();
                    put(&vectors, &mut txn, new.iter().map(|n| row(*n)));
                    stored.extend(new.into_iter().map(|n| (n, row(n))));
                }
                if is_lost {
                    txn.abort();
                    stored = before;
                } else {
                    txn.commit().unwrap();
                }
                let txn = tables.read().unwrap();
                for n in 0..300 {
                    let row = row(n);
                    let expected = stored.get(&n).map(|row| &row[KEY_BYTES..]);
                    prop_assert_eq!(vectors.components(&txn, &key(&row)).unwrap(), expected);
                    prop_assert_eq!(vectors.has(&txn, &key(&row)).unwrap(), expected.is_some());
                }
                prop_assert_eq!(vectors.count_lost(&txn).unwrap(), 0);
            }
        }
    }

    #[test]
    fn what_does_not_lead_back_is_counted_and_never_told() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let vectors = tables.vectors;
        let mut txn = tables.write().unwrap();
        put(&vectors, &mut txn, (0..3).map(row));
        assert_eq!(vectors.count_lost(&txn).unwrap(), 0);
        // The row of another vector is in this one's place.
        vectors.rows.put_bytes(&mut txn, &1_u32.to_be_bytes(), &row(7)).unwrap();
        assert!(vectors.components(&txn, &key(&row(1))).is_err());
        assert_eq!(vectors.count_lost(&txn).unwrap(), 2, "a row without a number, and a number without its row");
        vectors.rows.put_bytes(&mut txn, &1_u32.to_be_bytes(), &[1; KEY_BYTES - 1]).unwrap();
        assert!(vectors.count_lost(&txn).is_err());
    }
}

//! Which ordinal an entry has: a hundred look-ups in one row instead of a row each.
//!
//! In: identities, which are hashes, and ordinals. Out: the ordinal of an identity, exactly.
//!
//! ```text
//!  identity a3 f7 1c …  ─► row `3 a3 f0`: (f7 1c …, ordinal) (f2 40 …, ordinal) …
//!                          when a hundred are in it, its place is taken by a mark, and they move to
//!                          rows `4 a3 f0` … `4 a3 ff`, one for each next half byte
//! ```
//!
//! **Invariant:** an identity is in one row at the most: that of the shortest of its prefixes, from three half bytes on,
//! whose row holds no mark. The whole identity is compared, so no two are ever mixed up.
//!
//! A row of its own costs ten bytes of the database, and a third of each page stays empty where keys are hashes: 43 bytes
//! for an ordinal. Here it is 27.

use super::tables::Table;
use super::{CodecError, StoreError};
use dataflows::data::EntryId;
use heed::{RoTxn, RwTxn};
use snapshots::Ordinal;

/// Half bytes of the shortest prefix.
const SHORTEST: usize = 3;
/// Half bytes of an identity.
const LONGEST: usize = 32;
/// Identities in one row at the most: two such rows fill a page.
const MOST: usize = 100;
/// All but the first byte of the identity, which the prefix says, and four of the ordinal.
const RECORD: usize = 19;
const REST: usize = 15;
/// Stands in place of a row whose identities have moved on.
const DEEPER: &[u8] = &[0xff];

/// Identities of entries and their ordinals.
#[derive(Clone, Copy)]
pub(super) struct Identities {
    /// prefix → identities and ordinals.
    pub(super) rows: Table,
}

/// A prefix as a key: how long it is, and its half bytes.
struct Prefix {
    key: [u8; 1 + LONGEST / 2],
    half_bytes: usize,
}

impl Prefix {
    fn new(id: &[u8; 16], half_bytes: usize) -> Self {
        let mut key = [0; 1 + LONGEST / 2];
        key[0] = half_bytes as u8;
        key[1..].copy_from_slice(id);
        if half_bytes % 2 == 1 {
            key[1 + half_bytes / 2] &= 0xf0;
        }
        Self { key, half_bytes }
    }

    fn bytes(&self) -> &[u8] {
        &self.key[..1 + self.half_bytes.div_ceil(2)]
    }
}

impl Identities {
    /// Returns the ordinal of an identity.
    pub(super) fn get(&self, txn: &RoTxn<'_>, id: EntryId) -> Result<Option<Ordinal>, StoreError> {
        let id = id.to_bytes();
        let (_, row) = self.row(txn, &id)?;
        let found = row.chunks_exact(RECORD).find(|record| record[..REST] == id[1..]);
        Ok(found.and_then(|record| record[REST..].try_into().ok()).map(|bytes| Ordinal::new(u32::from_le_bytes(bytes))))
    }

    /// Writes the ordinal of an identity that has none.
    pub(super) fn put(&self, txn: &mut RwTxn<'_>, id: EntryId, ordinal: Ordinal) -> Result<(), StoreError> {
        let id = id.to_bytes();
        let (mut prefix, row) = self.row(txn, &id)?;
        let mut row = row.to_vec();
        while row.len() >= MOST * RECORD && prefix.half_bytes < LONGEST {
            row = self.split(txn, &prefix, &row, &id)?;
            prefix = Prefix::new(&id, prefix.half_bytes + 1);
        }
        row.extend(&id[1..]);
        row.extend(ordinal.get().to_le_bytes());
        self.rows.put_bytes(txn, prefix.bytes(), &row)
    }

    /// Removes an identity, if it is there.
    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, id: EntryId) -> Result<(), StoreError> {
        let id = id.to_bytes();
        let (prefix, row) = self.row(txn, &id)?;
        let kept: Vec<u8> =
            row.chunks_exact(RECORD).filter(|record| record[..REST] != id[1..]).flatten().copied().collect();
        if kept.len() < row.len() { self.rows.put_bytes(txn, prefix.bytes(), &kept) } else { Ok(()) }
    }

    /// Returns the row that an identity belongs to, as it is.
    fn row<'t>(&self, txn: &'t RoTxn<'_>, id: &[u8; 16]) -> Result<(Prefix, &'t [u8]), StoreError> {
        for half_bytes in SHORTEST..=LONGEST {
            let prefix = Prefix::new(id, half_bytes);
            match self.rows.bytes(txn, prefix.bytes())? {
                Some(DEEPER) => {}
                Some(row) if row.len() % RECORD != 0 => return Err(self.damaged()),
                row => return Ok((prefix, row.unwrap_or_default())),
            }
        }
        Err(self.damaged())
    }

    /// Moves a row's identities on by their next half byte; returns those that share it with `id`, which are not written.
    fn split(&self, txn: &mut RwTxn<'_>, prefix: &Prefix, row: &[u8], id: &[u8; 16]) -> Result<Vec<u8>, StoreError> {
        let mut children: [Vec<u8>; 16] = Default::default();
        let next = |id: &[u8]| {
            let byte = id[prefix.half_bytes / 2];
            usize::from(if prefix.half_bytes.is_multiple_of(2) { byte >> 4 } else { byte & 0xf })
        };
        let mut whole = *id;
        for record in row.chunks_exact(RECORD) {
            whole[1..].copy_from_slice(&record[..REST]);
            children[next(&whole)].extend(record);
        }
        let own = std::mem::take(&mut children[next(id)]);
        for child in children.iter().filter(|child| !child.is_empty()) {
            whole[1..].copy_from_slice(&child[..REST]);
            self.rows.put_bytes(txn, Prefix::new(&whole, prefix.half_bytes + 1).bytes(), child)?;
        }
        self.rows.put_bytes(txn, prefix.bytes(), DEEPER)?;
        Ok(own)
    }

    fn damaged(&self) -> StoreError {
        self.rows.damaged(CodecError::not("identities"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::cases;
    use crate::store::tables::Tables;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    /// Identities that share long prefixes, as those of a million entries do, or of somebody who tries.
    fn id() -> impl Strategy<Value = [u8; 16]> {
        (prop::collection::vec(prop_oneof![3 => Just(0xa3u8), 1 => any::<u8>()], 16), any::<u8>(), 0usize..16).prop_map(
            |(bytes, other, at)| {
                let mut id: [u8; 16] = bytes.try_into().expect("there are sixteen");
                id[at] = other;
                id
            },
        )
    }

    proptest! {
        #![proptest_config(cases(16))]
        #[test]
        fn identities_are_found_as_in_a_map(
            steps in prop::collection::vec((id(), any::<u32>(), prop::bool::weighted(0.2)), 1..900),
            others in prop::collection::vec(id(), 20),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let tables = Tables::open(folder.path(), true).unwrap();
            let mut txn = tables.write().unwrap();
            let mut known = BTreeMap::new();
            for (bytes, ordinal, is_removed) in steps {
                let id = EntryId::from_bytes(bytes);
                prop_assert_eq!(tables.entry_ids.get(&txn, id).unwrap(), known.get(&bytes).copied());
                if is_removed {
                    tables.entry_ids.remove(&mut txn, id).unwrap();
                    known.remove(&bytes);
                } else if let Entry::Vacant(new) = known.entry(bytes) {
                    tables.entry_ids.put(&mut txn, id, Ordinal::new(ordinal)).unwrap();
                    new.insert(Ordinal::new(ordinal));
                }
            }
            txn.commit().unwrap();
            let txn = tables.read().unwrap();
            for bytes in known.keys().copied().chain(others) {
                prop_assert_eq!(tables.entry_ids.get(&txn, EntryId::from_bytes(bytes)).unwrap(), known.get(&bytes).copied());
            }
        }
    }

    #[test]
    fn a_row_of_other_bytes_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let mut txn = tables.write().unwrap();
        let id = [7; 16];
        tables.entry_ids.rows.put_bytes(&mut txn, Prefix::new(&id, SHORTEST).bytes(), &[1; RECORD + 1]).unwrap();
        assert!(tables.entry_ids.get(&txn, EntryId::from_bytes(id)).is_err());
        for half_bytes in SHORTEST..=LONGEST {
            tables.entry_ids.rows.put_bytes(&mut txn, Prefix::new(&id, half_bytes).bytes(), DEEPER).unwrap();
        }
        assert!(tables.entry_ids.get(&txn, EntryId::from_bytes(id)).is_err(), "marks without an end");
    }
}

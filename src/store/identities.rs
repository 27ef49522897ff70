//! Maps identities to numbers: a hundred look-ups in one row instead of a row each.
//!
//! In: identities, which are hashes, and numbers: ordinals of entries, numbers of texts and vectors. Out: the number of an
//! identity, exactly.
//!
//! ```text
//!  identity a3 f7 1c …  ─► row `3 a3 f0`: (f7 1c …, number) (f2 40 …, number) …
//!                          when it holds a hundred, a mark replaces it, and they move to
//!                          rows `4 a3 f0` … `4 a3 ff`, one for each next half byte
//! ```
//!
//! **Invariant:** an identity is in at most one row: that of the shortest of its prefixes, from three half bytes on, whose row
//! holds no mark. The whole identity is compared, so no two are ever confused.
//!
//! A separate row costs ten bytes of overhead, and hash keys leave a third of each page empty: 43 bytes per number. Here it is
//! 27, so many new identities write two thirds as many pages.

use super::tables::Table;
use super::{CodecError, StoreError};
use heed::{RoTxn, RwTxn};

/// The bytes of an identity.
pub(super) type Id = [u8; 16];

/// Half bytes of the shortest prefix.
const SHORTEST: usize = 3;
/// Half bytes of an identity.
const LONGEST: usize = 32;
/// Most identities in one row: two such rows fill a page.
const MOST: usize = 100;
/// All but the first byte of the identity, which the prefix has, and four of the number.
const RECORD: usize = 19;
const REST: usize = 15;
/// Replaces a row whose identities have moved.
const DEEPER: &[u8] = &[0xff];

/// Identities and their numbers.
#[derive(Clone, Copy)]
pub(super) struct Identities {
    /// prefix → identities and numbers.
    pub(super) rows: Table,
}

/// A prefix as a key: its length, and its half bytes.
struct Prefix {
    key: [u8; 1 + LONGEST / 2],
    half_bytes: usize,
}

impl Prefix {
    fn new(id: &Id, half_bytes: usize) -> Self {
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

    /// Whether an identity begins with it.
    fn leads_to(&self, id: &Id) -> bool {
        Self::new(id, self.half_bytes).bytes() == self.bytes()
    }
}

impl Identities {
    /// Returns the number of an identity.
    pub(super) fn get(&self, txn: &RoTxn<'_>, id: Id) -> Result<Option<u32>, StoreError> {
        let (_, row) = self.row(txn, &id)?;
        let found = row.chunks_exact(RECORD).find(|record| record[..REST] == id[1..]);
        Ok(found.and_then(|record| record[REST..].try_into().ok()).map(u32::from_le_bytes))
    }

    /// Writes the numbers of new identities, each given once.
    pub(super) fn put_all(&self, txn: &mut RwTxn<'_>, mut new: Vec<(Id, u32)>) -> Result<(), StoreError> {
        // Those of one row are adjacent then, and are written together.
        new.sort_unstable();
        let mut rest = new.as_slice();
        while let Some((id, _)) = rest.first() {
            let (prefix, row) = self.row(txn, id)?;
            let of_row = rest.iter().take_while(|(id, _)| prefix.leads_to(id)).count();
            let (together, others) = if row.len() + of_row * RECORD <= MOST * RECORD {
                let mut row = row.to_vec();
                rest[..of_row].iter().for_each(|new| push(&mut row, *new));
                self.rows.put_bytes(txn, prefix.bytes(), &row)?;
                rest.split_at(of_row)
            } else {
                self.put(txn, rest[0])?;
                rest.split_at(1)
            };
            debug_assert!(!together.is_empty());
            rest = others;
        }
        Ok(())
    }

    /// Writes the number of a new identity.
    fn put(&self, txn: &mut RwTxn<'_>, new: (Id, u32)) -> Result<(), StoreError> {
        let id = &new.0;
        let (mut prefix, row) = self.row(txn, id)?;
        let mut row = row.to_vec();
        while row.len() >= MOST * RECORD && prefix.half_bytes < LONGEST {
            row = self.split(txn, &prefix, &row, id)?;
            prefix = Prefix::new(id, prefix.half_bytes + 1);
        }
        push(&mut row, new);
        self.rows.put_bytes(txn, prefix.bytes(), &row)
    }

    /// Removes an identity, if it is there.
    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, id: Id) -> Result<(), StoreError> {
        let (prefix, row) = self.row(txn, &id)?;
        let kept: Vec<u8> =
            row.chunks_exact(RECORD).filter(|record| record[..REST] != id[1..]).flatten().copied().collect();
        if kept.len() < row.len() { self.rows.put_bytes(txn, prefix.bytes(), &kept) } else { Ok(()) }
    }

    /// Calls `look` with every identity and its number.
    pub(super) fn each(
        &self,
        txn: &RoTxn<'_>,
        mut look: impl FnMut(Id, u32) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.rows.each(txn, |key, row| {
            if row == DEEPER {
                return Ok(true);
            }
            let (Some(first), true) = (key.get(1), row.len() % RECORD == 0) else { return Err(self.damaged()) };
            for record in row.chunks_exact(RECORD) {
                let (mut id, mut number) = ([*first; 16], [0; 4]);
                id[1..].copy_from_slice(&record[..REST]);
                number.copy_from_slice(&record[REST..]);
                look(id, u32::from_le_bytes(number))?;
            }
            Ok(true)
        })
    }

    /// Returns the row of an identity, as stored.
    fn row<'t>(&self, txn: &'t RoTxn<'_>, id: &Id) -> Result<(Prefix, &'t [u8]), StoreError> {
        self.row_from(txn, id, likely(self.rows.len(txn)?))
    }

    /// Returns the row of an identity, searched from prefixes of so many half bytes on: a row without a mark is the right one,
    /// because all shorter prefixes have marks then. If there is none, it may be that of a shorter prefix.
    fn row_from<'t>(&self, txn: &'t RoTxn<'_>, id: &Id, first: usize) -> Result<(Prefix, &'t [u8]), StoreError> {
        for half_bytes in first..=LONGEST {
            let prefix = Prefix::new(id, half_bytes);
            match self.rows.bytes(txn, prefix.bytes())? {
                Some(DEEPER) => {}
                Some(row) if row.len() % RECORD != 0 => return Err(self.damaged()),
                None if first > SHORTEST => return self.row_from(txn, id, SHORTEST),
                row => return Ok((prefix, row.unwrap_or_default())),
            }
        }
        Err(self.damaged())
    }

    /// Moves a row's identities to the next half byte; returns those that share it with `id`, which are not written.
    fn split(&self, txn: &mut RwTxn<'_>, prefix: &Prefix, row: &[u8], id: &Id) -> Result<Vec<u8>, StoreError> {
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

/// Returns how many half bytes the prefixes of most identities have in a table of so many rows, if identities are as evenly
/// spread as hashes: all shorter ones have marks.
fn likely(rows: u64) -> usize {
    let (mut half_bytes, mut shorter) = (SHORTEST, 16_u64.pow(SHORTEST as u32));
    while rows > 2 * shorter && half_bytes < LONGEST / 4 {
        half_bytes += 1;
        shorter += 16_u64.pow(half_bytes as u32);
    }
    half_bytes
}

/// Adds a record to a row.
fn push(row: &mut Vec<u8>, (id, number): (Id, u32)) {
    row.extend(&id[1..]);
    row.extend(number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::cases;
    use crate::store::tables::Tables;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Identities that share long prefixes, as among a million entries or in an attack.
    fn id() -> impl Strategy<Value = Id> {
        (prop::collection::vec(prop_oneof![3 => Just(0xa3u8), 1 => any::<u8>()], 16), any::<u8>(), 0usize..16).prop_map(
            |(bytes, other, at)| {
                let mut id: Id = bytes.try_into().expect("there are sixteen");
                id[at] = other;
                id
            },
        )
    }

    /// Many that are written at once, or some that are removed.
    fn step() -> impl Strategy<Value = (Vec<(Id, u32)>, bool)> {
        prop_oneof![
            4 => (prop::collection::vec((id(), any::<u32>()), 1..300), Just(false)),
            1 => (prop::collection::vec((id(), any::<u32>()), 1..4), Just(false)),
            1 => (prop::collection::vec((id(), any::<u32>()), 1..20), Just(true)),
        ]
    }

    proptest! {
        #![proptest_config(cases(16))]
        #[test]
        fn identities_are_found_as_in_a_map(
            steps in prop::collection::vec(step(), 1..12),
            others in prop::collection::vec(id(), 20),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let tables = Tables::open(folder.path(), true).unwrap();
            let ids = tables.entry_ids;
            let mut txn = tables.write().unwrap();
            let mut known: BTreeMap<Id, u32> = BTreeMap::new();
            for (step, is_removed) in steps {
                if is_removed {
                    // Some that are there, some that are not.
                    let known_ids = known.keys().copied().step_by(7).take(step.len()).collect::<Vec<_>>();
                    for id in step.into_iter().map(|(id, _)| id).chain(known_ids) {
                        ids.remove(&mut txn, id).unwrap();
                        known.remove(&id);
                    }
                } else {
                    let new: BTreeMap<Id, u32> = step.into_iter().filter(|(id, _)| !known.contains_key(id)).collect();
                    ids.put_all(&mut txn, new.iter().rev().map(|(id, number)| (*id, *number)).collect()).unwrap();
                    known.extend(new);
                }
            }
            txn.commit().unwrap();
            let txn = tables.read().unwrap();
            for id in known.keys().copied().chain(others) {
                prop_assert_eq!(ids.get(&txn, id).unwrap(), known.get(&id).copied());
                let found = |first| ids.row_from(&txn, &id, first).map(|(prefix, row)| (prefix.key, row)).unwrap();
                for first in SHORTEST..12 {
                    prop_assert_eq!(found(first), found(SHORTEST), "wherever the look begins");
                }
            }
            let mut all = BTreeMap::new();
            ids.each(&txn, |id, number| {
                assert_eq!(all.insert(id, number), None, "an identity is in one row");
                Ok(())
            })
            .unwrap();
            prop_assert_eq!(all, known);
        }
    }

    #[test]
    fn the_likely_prefix_is_that_of_most_identities() {
        // A hundred thousand, half a million, two and forty million evenly spread identities, of which a row holds a hundred.
        assert_eq!([4096, 4096 + 65_000, 4096 + 65_536, 4096 + 65_536 + 1_000_000].map(likely), [3, 4, 4, 5]);
    }

    #[test]
    fn a_row_of_other_bytes_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let ids = tables.entry_ids;
        let mut txn = tables.write().unwrap();
        let id = [7; 16];
        ids.rows.put_bytes(&mut txn, Prefix::new(&id, SHORTEST).bytes(), &[1; RECORD + 1]).unwrap();
        assert!(ids.get(&txn, id).is_err());
        assert!(ids.each(&txn, |_, _| Ok(())).is_err());
        for half_bytes in SHORTEST..=LONGEST {
            ids.rows.put_bytes(&mut txn, Prefix::new(&id, half_bytes).bytes(), DEEPER).unwrap();
        }
        assert!(ids.get(&txn, id).is_err(), "marks without an end");
    }
}

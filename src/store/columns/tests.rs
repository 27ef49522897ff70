//! Blocks against their rows, after any writes and losses.

use super::blocks::{count_odd, each, fill, put};
use crate::store::packing::{BLOCK, Numbers, PackedEntry, cases, pack_block, pack_entry};
use crate::store::tables::Tables;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tempfile::TempDir;

fn tables() -> (TempDir, Tables) {
    let folder = tempfile::tempdir().unwrap();
    let tables = Tables::open(folder.path(), true).unwrap();
    (folder, tables)
}

/// Writes rows of entries, and optionally their columns.
fn write(tables: &Tables, entries: &BTreeMap<u32, Numbers>, with_columns: bool) {
    let mut txn = tables.write().unwrap();
    for (ordinal, [path, head, place]) in entries {
        let row =
            PackedEntry { path: *path, head: *head, place: *place, text: 1, occurrence: 0, tokens: [1, 1].into() };
        tables.entries.put_bytes(&mut txn, &ordinal.to_be_bytes(), &pack_entry(&row)).unwrap();
    }
    if with_columns {
        // In any order.
        put(tables, &mut txn, entries.iter().rev().map(|(ordinal, numbers)| (*ordinal, *numbers)).collect()).unwrap();
    }
    txn.commit().unwrap();
}

fn read(tables: &Tables, from: u32, to: u32) -> BTreeMap<u32, Numbers> {
    let mut found = BTreeMap::new();
    each(tables, &tables.read().unwrap(), from..=to, |ordinal, numbers| {
        found.insert(ordinal, numbers);
    })
    .unwrap();
    found
}

proptest! {
    #![proptest_config(cases(48))]
    #[test]
    fn columns_say_what_rows_say_whoever_wrote_them_and_whatever_was_lost(
        batches in prop::collection::vec(
            (prop::collection::btree_map(0u32..5000, prop::array::uniform3(0u32..9), 0..60), any::<bool>()),
            1..5,
        ),
        lost in prop::collection::vec(0u32..5, 0..3),
        from in 0u32..5000,
        length in 0u32..5000,
    ) {
        let (_folder, tables) = tables();
        let mut entries: BTreeMap<u32, Numbers> = BTreeMap::new();
        // A build without columns writes first, if ever; the next writer fills them in.
        let first = batches.iter().position(|(_, knows)| *knows).unwrap_or(batches.len());
        for (at, (batch, _)) in batches.into_iter().enumerate() {
            let fresh: BTreeMap<u32, Numbers> = batch.into_iter().filter(|(ordinal, _)| !entries.contains_key(ordinal)).collect();
            if at == first {
                fill(&tables).unwrap();
            }
            write(&tables, &fresh, at >= first);
            entries.extend(fresh);
            prop_assert_eq!(count_odd(&tables, &tables.read().unwrap()).unwrap(), 0);
        }
        let columns = tables.columns.unwrap();
        let mut txn = tables.write().unwrap();
        for block in lost {
            match block % 2 {
                0 => columns.remove(&mut txn, &block.to_be_bytes()).unwrap(),
                _ => columns.put_bytes(&mut txn, &block.to_be_bytes(), &[0xff; 3]).unwrap(),
            }
        }
        txn.commit().unwrap();
        let to = from + length;
        let expected: BTreeMap<u32, Numbers> = entries.range(from..=to).map(|(ordinal, numbers)| (*ordinal, *numbers)).collect();
        prop_assert_eq!(read(&tables, from, to), expected);
    }
}

#[test]
fn filling_happens_once_and_leaves_no_block_out() {
    let (_folder, tables) = tables();
    let last = 3 * BLOCK as u32 + 7;
    let entries: BTreeMap<u32, Numbers> = [(0, [1, 2, 3]), (5, [1, 3, 3]), (last, [2, 2, 2])].into();
    write(&tables, &entries, false);
    let columns = tables.columns.unwrap();
    let len = || columns.len(&tables.read().unwrap()).unwrap();
    assert_eq!(len(), 0);
    fill(&tables).unwrap();
    assert_eq!((len(), read(&tables, 0, u32::MAX - 1)), (4, entries.clone()));
    let mut txn = tables.write().unwrap();
    columns.remove(&mut txn, &2_u32.to_be_bytes()).unwrap();
    txn.commit().unwrap();
    fill(&tables).unwrap();
    assert_eq!(len(), 3, "every writer of entries updates a table that has rows");
}

#[test]
fn numbers_that_differ_from_a_row_are_counted() {
    let (_folder, tables) = tables();
    let entries: BTreeMap<u32, Numbers> = (0..40).map(|ordinal| (ordinal, [ordinal, 1, 2])).collect();
    write(&tables, &entries, true);
    let columns = tables.columns.unwrap();
    let count = || count_odd(&tables, &tables.read().unwrap()).unwrap();
    assert_eq!(count(), 0);
    let mut slots: Vec<Option<Numbers>> = entries.values().copied().map(Some).collect();
    let odd = |slots: &[Option<Numbers>]| {
        let mut txn = tables.write().unwrap();
        columns.put_bytes(&mut txn, &0_u32.to_be_bytes(), &pack_block(slots)).unwrap();
        txn.commit().unwrap();
        count()
    };
    slots[7] = Some([0, 1, 2]);
    assert_eq!(odd(&slots), 1);
    slots[8] = None;
    assert_eq!(odd(&slots), 2);
    slots.truncate(20);
    assert_eq!(odd(&slots), 22);
    slots.resize(60, Some([1, 1, 1]));
    assert_eq!(odd(&slots[..]), 22, "removed rows leave slots, which are never read");
}

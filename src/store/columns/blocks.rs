//! The columns of entries in the database: path, head and place of many ordinals in one row.
//!
//! In: the numbers of entries, in the transaction that writes their rows. Out: the numbers of all ordinals, from a thousandth of
//! the pages of their rows.
//!
//! **Invariant:** a slot equals the entry's row, for every entry with a row: one transaction writes both, and rows never change.
//! The slot of a removed row may stay, because no version has its ordinal and no code reads it. A missing or damaged block is
//! read from the rows. The first writer that finds the table empty fills it. Until then, and in builds that do not know it,
//! nothing depends on it.
//!
//! A filter needs the numbers of all live entries. Their rows are in pages between those of other tables, and touching all of
//! them makes most of the file resident (`docs/decisions/0021-columns.md`).

use crate::store::packing::{BLOCK, Numbers, pack_block, unpack_block, unpack_entry};
use crate::store::tables::{Opened, Tables};
use crate::store::{CodecError, StoreError};
use heed::{RoTxn, RwTxn};
use std::ops::RangeInclusive;

/// Writes the numbers of entries whose rows the same transaction writes.
pub(in crate::store) fn put(
    tables: &Opened,
    txn: &mut RwTxn<'_>,
    mut entries: Vec<(u32, Numbers)>,
) -> Result<(), StoreError> {
    // A reader of this process found a database without the table; the next writer fills it.
    let Some(columns) = tables.columns else { return Ok(()) };
    entries.sort_unstable_by_key(|(ordinal, _)| *ordinal);
    for entries in entries.chunk_by(|(left, _), (right, _)| block_of(*left) == block_of(*right)) {
        let block = block_of(entries[0].0);
        let mut slots = slots(tables, txn, block)?;
        for &(ordinal, numbers) in entries {
            let at = ordinal as usize % BLOCK;
            if slots.len() <= at {
                slots.resize(at + 1, None);
            }
            slots[at] = Some(numbers);
        }
        columns.put_bytes(txn, &block.to_be_bytes(), &pack_block(&slots))?;
    }
    Ok(())
}

/// Calls `with` with the numbers of every entry from one ordinal to another, and possibly with those of removed rows.
pub(super) fn each(
    tables: &Opened,
    txn: &RoTxn<'_>,
    range: RangeInclusive<u32>,
    mut with: impl FnMut(u32, Numbers),
) -> Result<(), StoreError> {
    for block in block_of(*range.start())..=block_of(*range.end()) {
        let numbered =
            (first_of(block)..=u32::MAX).zip(slots(tables, txn, block)?).filter(|(ordinal, _)| range.contains(ordinal));
        numbered.for_each(|(ordinal, numbers)| numbers.into_iter().for_each(|numbers| with(ordinal, numbers)));
    }
    Ok(())
}

/// Fills the table from the rows of entries, if it is empty.
pub(in crate::store) fn fill(tables: &Tables) -> Result<(), StoreError> {
    let Some(columns) = tables.columns else { return Ok(()) };
    let txn = tables.read()?;
    let last = tables.entries.last(&txn)?.and_then(|(key, _)| key.try_into().ok()).map(u32::from_be_bytes);
    let (Some(last), true) = (last, columns.len(&txn)? == 0) else { return Ok(()) };
    drop(txn);
    // In one transaction, so that it is filled or empty: two or three megabytes a million entries.
    let mut transaction = tables.begin()?;
    let txn = &mut transaction.0;
    for block in 0..=block_of(last) {
        let slots = from_rows(tables, txn, block)?;
        columns.put_bytes(txn, &block.to_be_bytes(), &pack_block(&slots))?;
    }
    transaction.commit()
}

/// Returns how many entries have other numbers here than in their rows.
pub(in crate::store) fn count_odd(tables: &Opened, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
    let Some(columns) = tables.columns else { return Ok(0) };
    let mut odd = 0;
    columns.each(txn, |key, packed| {
        let Some(block) =
            <[u8; 4]>::try_from(key).ok().map(u32::from_be_bytes).filter(|block| *block <= block_of(u32::MAX))
        else {
            odd += 1;
            return Ok(true);
        };
        let slots = unpack_block(packed).unwrap_or_default();
        let rows = from_rows(tables, txn, block)?;
        let differs = |(at, numbers): &(usize, &Option<Numbers>)| {
            numbers.is_some() && slots.get(*at).is_none_or(|slot| slot != *numbers)
        };
        odd += rows.iter().enumerate().filter(differs).count() as u64;
        Ok(true)
    })?;
    Ok(odd)
}

const fn block_of(ordinal: u32) -> u32 {
    ordinal / BLOCK as u32
}

const fn first_of(block: u32) -> u32 {
    block * BLOCK as u32
}

/// Returns the slots of a block: from its row, or from the rows of its entries if it is missing or damaged.
fn slots(tables: &Opened, txn: &RoTxn<'_>, block: u32) -> Result<Vec<Option<Numbers>>, StoreError> {
    let packed = tables.columns.map(|columns| columns.bytes(txn, &block.to_be_bytes())).transpose()?.flatten();
    packed.and_then(unpack_block).map_or_else(|| from_rows(tables, txn, block), Ok)
}

/// Returns the slots of a block from the rows of its entries.
fn from_rows(tables: &Opened, txn: &RoTxn<'_>, block: u32) -> Result<Vec<Option<Numbers>>, StoreError> {
    let first = first_of(block);
    let mut slots = Vec::new();
    tables.entries.each_from(txn, &first.to_be_bytes(), |key, row| {
        let ordinal = <[u8; 4]>::try_from(key).ok().map(u32::from_be_bytes);
        let Some(at) = ordinal.map(|ordinal| (ordinal - first) as usize).filter(|at| *at < BLOCK) else {
            return Ok(false);
        };
        let row = unpack_entry(row).ok_or_else(|| tables.entries.damaged(CodecError::not("an entry")))?;
        slots.resize(at, None);
        slots.push(Some([row.path, row.head, row.place]));
        Ok(true)
    })?;
    Ok(slots)
}

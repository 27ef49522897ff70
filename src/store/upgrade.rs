//! From the store format before this one: texts and vectors get rows in the order in which they come.
//!
//! In: a database of format 2, whose texts and vectors are keyed by hashes. Out: the same in the tables of format 3.
//!
//! ```text
//!  shut the gate ──► copy, some thousand rows a transaction ──► FORMAT says 3 ──► clear the old tables
//! ```
//!
//! **Invariant:** until FORMAT says 3 the old tables are whole, and a copy that breaks off is gone on with: what is there
//! already is not copied again. From then on nothing looks at the old tables, and whoever writes next clears what is left of
//! them. Texts keep their numbers, which rows name.

use super::identities::Id;
use super::layout::OLDER_FORMAT;
use super::tables::{Rows, Tables};
use super::texts::HASH_BYTES;
use super::vectors::VectorKey;
use super::{Gate, Layout, StoreError, WriteTransaction};
use std::ops::Bound;

/// Rows that one transaction copies or removes at the most.
const TRANSACTION_ROWS: usize = 8192;
/// The tables of format 2 that are no more: hash of a text → its number and its bytes; model, card, text → components.
const OLD_TABLES: [&str; 2] = ["texts", "vectors"];

/// Brings a database to this build's format, if it is of the one before. The writer's lock is held.
pub(super) fn upgrade(layout: &Layout, tables: &Tables) -> Result<(), StoreError> {
    let old = |name| tables.other(name);
    match layout.check() {
        Err(StoreError::Older { .. }) => {
            // A reader of a build before this would miss what it looks for.
            let Some(_gate) = Gate::shut(layout)? else {
                return Err(StoreError::InUse { path: layout.root().to_owned() });
            };
            let path = layout.root().display();
            tracing::info!(
                "bringing the store at {path} from format {OLDER_FORMAT} to the next: some minutes, where it is large"
            );
            if let Some(texts) = old(OLD_TABLES[0])? {
                copy_texts(tables, texts)?;
            }
            if let Some(vectors) = old(OLD_TABLES[1])? {
                copy_vectors(tables, vectors)?;
            }
            layout.put_format()?;
        }
        checked => checked?,
    }
    for name in OLD_TABLES {
        if let Some(table) = old(name)? {
            clear(tables, table)?;
        }
    }
    Ok(())
}

fn failed(source: heed::Error) -> StoreError {
    StoreError::Database { attempt: "bring it to this format", source }
}

/// Copies texts in the order of their numbers, which the runs of hashes tell.
fn copy_texts(tables: &Tables, old: Rows) -> Result<(), StoreError> {
    let texts = &tables.texts;
    let mut next = 0_u32;
    loop {
        let mut transaction = WriteTransaction(tables.write()?, tables.clone());
        let txn = &mut transaction.0;
        let mut hashes: Vec<(u32, Id)> = Vec::new();
        texts.hashes.each_from(txn, &next.to_be_bytes(), |key, run| {
            let first = super::numbering::number_of(key).ok_or_else(|| texts.hashes.lost("that can be read"))?;
            hashes.extend((first..).zip(run.as_chunks::<HASH_BYTES>().0.iter().copied()));
            Ok(hashes.len() < TRANSACTION_ROWS)
        })?;
        let Some((last, _)) = hashes.last() else { return Ok(()) };
        let Some(behind) = last.checked_add(1) else { return Err(texts.rows.full()) };
        next = behind;
        let mut numbers = Vec::new();
        for (number, hash) in hashes {
            let Some(packed) = old.get(txn, &hash).map_err(failed)? else { continue };
            // What was removed and came back is stored under its last number.
            let (own, packed) = packed.split_first_chunk().ok_or_else(|| texts.rows.lost(number))?;
            if u32::from_le_bytes(*own) == number && texts.numbers.get(txn, hash)?.is_none() {
                let packed = packed.to_vec();
                texts.rows.put_bytes(txn, &number.to_be_bytes(), &packed)?;
                numbers.push((hash, number));
            }
        }
        texts.numbers.put_all(txn, numbers)?;
        transaction.commit()?;
    }
}

/// Copies vectors in the order of their keys.
fn copy_vectors(tables: &Tables, old: Rows) -> Result<(), StoreError> {
    let vectors = &tables.vectors;
    let mut last: Option<Vec<u8>> = None;
    loop {
        let mut transaction = WriteTransaction(tables.write()?, tables.clone());
        let txn = &mut transaction.0;
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rows: Vec<Vec<u8>> = Vec::new();
        let mut read = 0;
        for row in old.range(txn, &(from, Bound::Unbounded)).map_err(failed)?.take(TRANSACTION_ROWS) {
            let (key, components) = row.map_err(failed)?;
            read += 1;
            last = Some(key.to_vec());
            let known = VectorKey::try_from(key).map_err(|_| vectors.rows.lost("that can be read"))?;
            if !vectors.has(txn, &known)? {
                rows.push([key, components].concat());
            }
        }
        if read == 0 {
            return Ok(());
        }
        vectors.put(txn, rows.into_iter())?;
        transaction.commit()?;
    }
}

/// Removes the rows of a table: of a large one in several transactions, for each holds what it changed in memory.
fn clear(tables: &Tables, table: Rows) -> Result<(), StoreError> {
    loop {
        let mut transaction = WriteTransaction(tables.write()?, tables.clone());
        let txn = &mut transaction.0;
        let end = table.iter(txn).map_err(failed)?.nth(TRANSACTION_ROWS).transpose().map_err(failed)?;
        let Some(end) = end.map(|(key, _)| key.to_vec()) else {
            if table.is_empty(txn).map_err(failed)? {
                return Ok(());
            }
            table.clear(txn).map_err(failed)?;
            return transaction.commit();
        };
        table.delete_range(txn, &(Bound::Unbounded, Bound::Excluded(end.as_slice()))).map_err(failed)?;
        transaction.commit()?;
    }
}

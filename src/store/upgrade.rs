//! Upgrades the previous store format: texts and vectors get rows in the order of insertion.
//!
//! In: a database of format 2, whose texts and vectors have hash keys. Out: the same in the tables of format 3.
//!
//! ```text
//!  take the gate ──► copy, some thousand rows a transaction ──► FORMAT says 3 ──► clear the old tables ──► (the file, rewritten)
//! ```
//!
//! **Invariant:** until FORMAT says 3 the old tables are complete, and an interrupted copy is continued: copied rows are not
//! copied again. From then on no code reads the old tables, and the next writer clears the rest of them. Texts keep their
//! numbers, to which rows refer.

use super::identities::Id;
use super::layout::OLDER_FORMAT;
use super::tables::{Rows, Tables};
use super::texts::HASH_BYTES;
use super::vectors::VectorKey;
use super::{Gate, Layout, StoreError};
use std::ops::Bound;

/// Most rows that one transaction copies or removes.
const TRANSACTION_ROWS: usize = if cfg!(test) { 7 } else { 8192 };
/// The tables that only format 2 has: hash of a text → its number and its bytes; model, card, text → components.
const OLD_TABLES: [&str; 2] = ["texts", "vectors"];

/// Upgrades a database of the previous format, and returns the gate then, still exclusive. The caller holds the writer's lock.
pub(super) fn upgrade(layout: &Layout, tables: &Tables) -> Result<Option<Gate>, StoreError> {
    let old = |name| tables.other(name);
    let mut shut = None;
    match layout.check() {
        Err(StoreError::Older { .. }) => {
            // A reader of an earlier build would miss rows.
            let Some(gate) = Gate::shut(layout)? else {
                return Err(StoreError::InUse { path: layout.root().to_owned() });
            };
            shut = Some(gate);
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
    Ok(shut)
}

fn failed(source: heed::Error) -> StoreError {
    StoreError::Database { attempt: "bring it to this format", source }
}

/// Copies texts in the order of their numbers, from the runs of hashes.
fn copy_texts(tables: &Tables, old: Rows) -> Result<(), StoreError> {
    let texts = &tables.texts;
    let mut next = 0_u32;
    loop {
        let mut transaction = tables.begin()?;
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
            // A text that was removed and came back is stored under its last number.
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
        let mut transaction = tables.begin()?;
        let txn = &mut transaction.0;
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rows: Vec<(VectorKey, Vec<u8>)> = Vec::new();
        let mut read = 0;
        for row in old.range(txn, &(from, Bound::Unbounded)).map_err(failed)?.take(TRANSACTION_ROWS) {
            let (key, components) = row.map_err(failed)?;
            read += 1;
            last = Some(key.to_vec());
            let known = VectorKey::try_from(key).map_err(|_| vectors.rows.lost("that can be read"))?;
            if !vectors.has(txn, &known)? {
                rows.push((known, components.to_vec()));
            }
        }
        if read == 0 {
            return Ok(());
        }
        let first = vectors.name(txn, rows.iter().map(|(key, _)| key))?;
        vectors.put(txn, first, rows.iter().map(|(key, components)| (key, components.clone())))?;
        transaction.commit()?;
    }
}

/// Removes the rows of a table: of a large one in several transactions, because each holds its changes in memory.
fn clear(tables: &Tables, table: Rows) -> Result<(), StoreError> {
    loop {
        let mut transaction = tables.begin()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::{cases, pack_text};
    use crate::store::vectors::KEY_BYTES;
    use dataflows::data::TextHash;
    use proptest::prelude::*;
    use std::fs;

    fn text(n: u32) -> String {
        format!("text {n} {}", "lorem ".repeat(n as usize))
    }

    fn hash(n: u32) -> TextHash {
        TextHash::of(&text(n))
    }

    fn vector(n: u8) -> (VectorKey, Vec<u8>) {
        ([n; KEY_BYTES], vec![n; usize::from(n % 3) * 8])
    }

    /// Fills a database of format 2: texts under numbers, some of which belong to removed texts or to texts with a newer number.
    fn fill(layout: &Layout, tables: &Tables, numbers: &[u32], vectors: u8) {
        let [texts, rows] = OLD_TABLES.map(|name| tables.make_other(name));
        let mut txn = tables.write().unwrap();
        let hashes = &tables.texts.hashes;
        let mut first = 0_u32;
        for run in numbers.chunks(5) {
            let bytes: Vec<u8> = run.iter().flat_map(|n| hash(*n).to_bytes()).collect();
            hashes.put_bytes(&mut txn, &first.to_be_bytes(), &bytes).unwrap();
            first += run.len() as u32;
        }
        for (number, n) in (0_u32..).zip(numbers).filter(|(_, n)| *n % 5 != 0) {
            let row = [&number.to_le_bytes()[..], &pack_text(&text(*n))].concat();
            texts.put(&mut txn, &hash(*n).to_bytes(), &row).unwrap();
        }
        for (key, components) in (0..vectors).map(vector) {
            rows.put(&mut txn, &key, &components).unwrap();
        }
        txn.commit().unwrap();
        fs::write(layout.root().join("FORMAT"), format!("tidemill store format {OLDER_FORMAT}\n")).unwrap();
    }

    proptest! {
        #![proptest_config(cases(16))]
        #[test]
        fn what_format_2_held_is_held_and_how_often_it_is_begun_does_not_matter(
            numbers in prop::collection::vec(0u32..40, 0..60),
            vectors in 0u8..40,
            begun in 1usize..3,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let layout = Layout::new(folder.path());
            layout.create().unwrap();
            let tables = Tables::open(&layout.memo(), true).unwrap();
            for _ in 0..begun {
                // As after an interruption before the new FORMAT.
                fill(&layout, &tables, &numbers, vectors);
                upgrade(&layout, &tables).unwrap();
                layout.check().unwrap();
            }
            let txn = tables.read().unwrap();
            let mut stored = 0;
            for n in 0..40 {
                let number = numbers.iter().rposition(|known| *known == n && n % 5 != 0).map(|number| number as u32);
                prop_assert_eq!(tables.texts.number(&txn, hash(n)).unwrap(), number);
                prop_assert_eq!(tables.texts.text(&txn, hash(n)).unwrap(), number.map(|_| text(n)));
                stored += u64::from(number.is_some());
            }
            prop_assert_eq!(tables.texts.rows.len(&txn).unwrap(), stored);
            prop_assert_eq!(tables.texts.count_lost(&txn).unwrap(), 0);
            for (key, components) in (0..vectors).map(vector) {
                prop_assert_eq!(tables.vectors.components(&txn, &key).unwrap(), Some(components.as_slice()));
            }
            prop_assert_eq!(tables.vectors.rows.len(&txn).unwrap(), u64::from(vectors));
            prop_assert_eq!(tables.vectors.count_lost(&txn).unwrap(), 0);
            drop(txn);
            for name in OLD_TABLES {
                let old = tables.make_other(name);
                prop_assert!(old.is_empty(&tables.read().unwrap()).unwrap());
            }
        }
    }
}

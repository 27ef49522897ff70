//! From the store format before this one: texts and vectors get rows in the order in which they come.
//!
//! In: a database of format 2, whose texts and vectors are keyed by hashes. Out: the same in the tables of format 3.
//!
//! ```text
//!  shut the gate ──► copy, some thousand rows a transaction ──► FORMAT says 3 ──► clear the old tables ──► (the file, anew)
//! ```
//!
//! **Invariant:** until FORMAT says 3 the old tables are whole, and a copy that breaks off is gone on with: what is there
//! already is not copied again. From then on nothing looks at the old tables, and whoever writes next clears what is left of
//! them. Texts keep their numbers, which rows name.

use super::identities::Id;
use super::layout::OLDER_FORMAT;
use super::numbering::number_of;
use super::tables::{Rows, Tables};
use super::texts::HASH_BYTES;
use super::{Gate, Layout, StoreError};
use inputs::OldVectors;
use std::ops::Bound;

mod inputs;

/// Rows that one transaction copies or removes at the most.
const TRANSACTION_ROWS: usize = if cfg!(test) { 7 } else { 8192 };
/// The table of format 2 that is no more: hash of a text → its number and its bytes.
const TEXTS: &str = "texts";
/// The mark of the step that says where vectors are: the ordinal where it goes on.
const INPUTS_MARK: &[u8] = b"upgrade inputs";

/// Brings a database to this build's format, if it is of the one before, and returns the gate then, still shut. The writer's
/// lock is held.
pub(super) fn upgrade(layout: &Layout, tables: &Tables) -> Result<Option<Gate>, StoreError> {
    let old = |name| tables.other(name);
    let mut shut = None;
    match layout.check() {
        Err(StoreError::Older { .. }) => {
            // A reader of a build before this would miss what it looks for.
            let Some(gate) = Gate::shut(layout)? else {
                return Err(StoreError::InUse { path: layout.root().to_owned() });
            };
            shut = Some(gate);
            let path = layout.root().display();
            tracing::info!(
                "bringing the store at {path} from format {OLDER_FORMAT} to the next: some minutes, where it is large"
            );
            if let Some(texts) = old(TEXTS)? {
                copy_texts(tables, texts)?;
            }
            layout.put_format()?;
        }
        checked => checked?,
    }
    place_vectors(tables)?;
    for name in [TEXTS].into_iter().chain(inputs::TABLES) {
        if let Some(table) = old(name)? {
            clear(tables, table)?;
        }
    }
    Ok(shut)
}

fn failed(source: heed::Error) -> StoreError {
    StoreError::Database { attempt: "bring it to this format", source }
}

/// Copies texts in the order of their numbers, which the runs of hashes tell.
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

/// Writes where the vectors of all entries are, a portion a transaction.
fn place_vectors(tables: &Tables) -> Result<(), StoreError> {
    let Some(old) = OldVectors::open(tables)? else { return Ok(()) };
    loop {
        let mut transaction = tables.begin()?;
        let txn = &mut transaction.0;
        let from = tables.marks.bytes(txn, INPUTS_MARK)?.and_then(number_of).unwrap_or(0);
        let Some(next) = inputs::portion(&old, tables, txn, from)? else { return Ok(()) };
        tables.marks.put_bytes(txn, INPUTS_MARK, &next.to_be_bytes())?;
        transaction.commit()?;
    }
}

/// Removes the rows of a table: of a large one in several transactions, for each holds what it changed in memory.
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
    use dataflows::data::TextHash;
    use proptest::prelude::*;
    use std::fs;

    fn text(n: u32) -> String {
        format!("text {n} {}", "lorem ".repeat(n as usize))
    }

    fn hash(n: u32) -> TextHash {
        TextHash::of(&text(n))
    }

    /// Fills a database as format 2 had it: texts under numbers of which some lead to what was removed or has another one now.
    fn fill(layout: &Layout, tables: &Tables, numbers: &[u32]) {
        let texts = tables.make_other(TEXTS);
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
        txn.commit().unwrap();
        fs::write(layout.root().join("FORMAT"), format!("tidemill store format {OLDER_FORMAT}\n")).unwrap();
    }

    proptest! {
        #![proptest_config(cases(16))]
        #[test]
        fn what_format_2_held_is_held_and_how_often_it_is_begun_does_not_matter(
            numbers in prop::collection::vec(0u32..40, 0..60),
            begun in 1usize..3,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let layout = Layout::new(folder.path());
            layout.create().unwrap();
            let tables = Tables::open(&layout.memo(), true).unwrap();
            for _ in 0..begun {
                // As one leaves it that broke off in front of the new FORMAT.
                fill(&layout, &tables, &numbers);
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
            drop(txn);
            let old = tables.make_other(TEXTS);
            prop_assert!(old.is_empty(&tables.read().unwrap()).unwrap());
        }
    }
}

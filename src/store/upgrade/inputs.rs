//! From format 3 to 4: each input of a model leads to an entry that has its vector, and vectors have one place.
//!
//! In: a database that holds every vector under model, card and text, beside the vector files. Out: the ordinals of entries in
//! its place, and which entries can have no vector.
//!
//! **Invariant:** nothing is embedded, and no vector is copied: the files hold the vectors of all entries, and a start gives those
//! that they lost again, as it always does. A portion that is done twice writes the same.

use super::super::identities::Identities;
use super::super::numbering::number_of;
use super::super::packing::had_vector;
use super::super::rows::RowReader;
use super::super::tables::{Rows, Table, Tables};
use super::super::vectors::{NO_VECTOR, vector_id};
use super::super::{StoreError, coverage};
use super::{Old, TRANSACTION_ROWS, failed};
use dataflows::data::{Entry, Hasher, ModelId};
use heed::{RoTxn, RwTxn};
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

/// The table of format 2: model, card, text → components.
pub(super) const BY_KEY: &str = "vectors";
/// A table of format 3: number → model, card, text and components.
pub(super) const ROWS: &str = "vector_rows";
/// A table of format 3: hash of model, card and text → number.
pub(super) const NUMBERS: &str = "vector_numbers";
/// Bytes of model, card and text.
const KEY_BYTES: usize = 48;

/// The tables of vectors of older formats.
struct OldVectors {
    by_key: Option<Rows>,
    rows: Option<Rows>,
    numbers: Option<Identities>,
}

impl OldVectors {
    fn open(tables: &Tables, txn: &RwTxn<'_>) -> Result<Self, StoreError> {
        let numbers = tables.other_in(txn, NUMBERS)?.map(|rows| Identities { rows: Table::old(NUMBERS, rows) });
        Ok(Self { by_key: tables.other_in(txn, BY_KEY)?, rows: tables.other_in(txn, ROWS)?, numbers })
    }

    /// Returns the models that gave vectors.
    fn models(&self, txn: &RoTxn<'_>) -> Result<Vec<ModelId>, StoreError> {
        let mut models = Vec::new();
        for table in [self.by_key, self.rows].into_iter().flatten() {
            let mut last = None;
            for row in table.iter(txn).map_err(failed)? {
                let (key, row) = row.map_err(failed)?;
                let named = if key.len() == KEY_BYTES { key } else { row };
                let model = named.first_chunk::<16>().copied();
                if model != last {
                    last = model;
                    models.extend(model.map(ModelId::from_bytes));
                }
            }
        }
        models.sort_unstable();
        models.dedup();
        Ok(models)
    }

    /// Returns whether a model gave an entry a vector; nothing where it was not asked, or failed.
    fn has(&self, txn: &RoTxn<'_>, model: ModelId, entry: &Entry) -> Result<Option<bool>, StoreError> {
        let mut key = [0; KEY_BYTES];
        key[..16].copy_from_slice(&model.to_bytes());
        key[16..32].copy_from_slice(&entry.card.to_bytes());
        key[32..].copy_from_slice(&entry.text.to_bytes());
        if let Some(table) = self.by_key
            && let Some(components) = table.get(txn, &key).map_err(failed)?
        {
            return Ok(Some(!components.is_empty()));
        }
        let (Some(rows), Some(numbers)) = (self.rows, self.numbers) else { return Ok(None) };
        let id = ModelId::from_words(Hasher::new("vector").part(&key).finish()).to_bytes();
        let Some(number) = numbers.get(txn, id)? else { return Ok(None) };
        let row = rows.get(txn, &number.to_be_bytes()).map_err(failed)?;
        Ok(row.map(|row| row.len() > KEY_BYTES))
    }
}

/// Writes where the vectors of some entries are. It stops in front of an ordinal.
pub(super) fn portion(old: &Old<'_>, txn: &mut RwTxn<'_>, from: Option<&[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
    let (tables, vectors) = (old.tables, OldVectors::open(old.tables, txn)?);
    let models = match old.models.get() {
        Some(models) => models,
        None => {
            let models = vectors.models(txn)?;
            old.models.get_or_init(|| models)
        }
    };
    let from = from.and_then(number_of).unwrap_or(0);
    let mut rows: Vec<(u32, Vec<u8>)> = Vec::new();
    tables.entries.each_from(txn, &from.to_be_bytes(), |key, row| {
        rows.extend(number_of(key).map(|ordinal| (ordinal, row.to_vec())));
        Ok(rows.len() < TRANSACTION_ROWS)
    })?;
    let Some((last, _)) = rows.last() else { return Ok(None) };
    let next = last.checked_add(1);
    let (mut placed, mut without) = (FxHashMap::default(), vec![RoaringBitmap::new(); models.len()]);
    let mut reader = RowReader::new(tables, txn);
    for (ordinal, row) in &rows {
        let (record, card) = reader.entry(row)?;
        let input = card.embed_input(record.entry.text);
        for (model, without) in models.iter().zip(&mut without) {
            let number = match vectors.has(txn, *model, &record.entry)? {
                Some(true) if had_vector(row) => *ordinal,
                Some(false) => {
                    without.insert(*ordinal);
                    NO_VECTOR
                }
                // It failed, or was never asked: it is owed one.
                Some(true) | None => continue,
            };
            let id = vector_id(*model, input);
            if tables.vectors.get(txn, id)?.is_none() {
                placed.entry(id).or_insert(number);
            }
        }
    }
    let mut placed: Vec<_> = placed.into_iter().collect();
    placed.sort_unstable();
    tables.vectors.set(txn, placed)?;
    for (model, without) in models.iter().zip(without) {
        tables.vectors.note(txn, *model)?;
        coverage::put_without(&tables.vectors.coverage, txn, model.to_bytes(), without)?;
    }
    Ok(next.map(|next| next.to_be_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::cases;
    use crate::store::{Database, EntryRecord, Kept, Layout};
    use dataflows::data::{Card, ChunkKind, TextHash};
    use proptest::prelude::*;
    use snapshots::Ordinal;

    fn card(n: u8) -> Card {
        Card {
            kind: ChunkKind::Code,
            language: "rust".to_owned(),
            symbol: format!("item_{n}"),
            name: format!("fn item_{}()", n / 2),
            folder: "src".to_owned(),
            module: "mill".to_owned(),
            labels: Vec::new(),
        }
    }

    fn entry(n: u8) -> Entry {
        let text = TextHash::of(&(n % 3).to_string());
        Entry { path: format!("src/{n}.rs").as_str().into(), card: card(n).hash(), text, occurrence: u32::from(n % 2) }
    }

    /// What an entry of format 3 had: a vector, none since there can be none, or none since the model failed.
    fn had(n: u8) -> Option<bool> {
        // Entries that share an input share this.
        match (n / 2 % 4, n % 3) {
            (0, 0) => Some(false),
            (1, 1) => None,
            _ => Some(true),
        }
    }

    proptest! {
        #![proptest_config(cases(8))]
        #[test]
        fn every_input_leads_to_an_entry_that_had_its_vector(entries in 1u8..60, is_format_2: bool, done_again in 0usize..3) {
            let folder = tempfile::tempdir().unwrap();
            let layout = Layout::new(folder.path());
            layout.create().unwrap();
            let database = Database::open_writer(&layout).unwrap();
            let model = ModelId::from_words([7, 7]);
            let (memo, catalogue) = (database.memo(model), database.catalogue());
            (0..3).map(|n: u8| n.to_string()).for_each(|text| memo.put_text(TextHash::of(&text), &text));
            memo.save();
            let tables = catalogue.tables().unwrap();
            let [by_key, rows, numbers] = [BY_KEY, ROWS, NUMBERS].map(|name| tables.make_other(name));
            let mut to = tables.begin().unwrap();
            let records: Vec<_> = (0..entries).map(|n| (EntryRecord { entry: entry(n), tokens: [1, 1].into() }, card(n))).collect();
            let ordinals = (0..).map(Ordinal::new);
            catalogue.put_entries(&mut to, ordinals.zip(&records).map(|(at, (record, card))| (at, record, card))).unwrap();
            let txn = &mut to.0;
            for n in (0..entries).filter(|n| had(*n).is_some()) {
                let has = had(n) == Some(true);
                let key = [&model.to_bytes()[..], &entry(n).card.to_bytes(), &entry(n).text.to_bytes()].concat();
                let components = vec![1; if has { 8 } else { 0 }];
                if is_format_2 {
                    by_key.put(txn, &key, &components).unwrap();
                } else {
                    let id = ModelId::from_words(Hasher::new("vector").part(&key).finish()).to_bytes();
                    rows.put(txn, &u32::from(n).to_be_bytes(), &[&key[..], &components].concat()).unwrap();
                    let numbers = Identities { rows: Table::old(NUMBERS, numbers) };
                    if numbers.get(txn, id).unwrap().is_none() {
                        numbers.put_all(txn, vec![(id, u32::from(n))]).unwrap();
                    }
                }
                let ordinal = u32::from(n).to_be_bytes();
                let mut row = tables.entries.bytes(txn, &ordinal).unwrap().unwrap().to_vec();
                *row.last_mut().unwrap() |= u8::from(has);
                tables.entries.put_bytes(txn, &ordinal, &row).unwrap();
            }
            to.commit().unwrap();

            for _ in 0..=done_again {
                let old = Old {
                    layout: &layout,
                    tables: &tables,
                    texts_of_chunks: std::cell::OnceCell::new(),
                    models: std::cell::OnceCell::new(),
                };
                let mut from = None;
                loop {
                    let mut to = tables.begin().unwrap();
                    from = portion(&old, &mut to.0, from.as_deref()).unwrap();
                    to.commit().unwrap();
                    if from.is_none() {
                        break;
                    }
                }
            }
            let input = |n: u8| card(n).embed_input(entry(n).text);
            for n in 0..entries {
                let first = (0..entries).find(|other| input(*other) == input(n)).unwrap();
                let expected = match had(n) {
                    Some(true) => Some(Kept::At(Ordinal::new(u32::from(first)))),
                    Some(false) => Some(Kept::NoVector),
                    None => None,
                };
                prop_assert_eq!(memo.kept(input(n)).unwrap(), expected, "{}", n);
            }
            let without: RoaringBitmap = (0..entries).filter(|n| had(*n) == Some(false)).map(u32::from).collect();
            prop_assert_eq!(database.coverage(model).without().unwrap(), without);
            let kept: Vec<_> = (0..entries).map(|n| catalogue.entry(Ordinal::new(u32::from(n))).unwrap().entry).collect();
            prop_assert_eq!(kept, (0..entries).map(entry).collect::<Vec<_>>());
        }
    }
}

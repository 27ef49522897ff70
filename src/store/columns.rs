//! Which path, head and place each entry has, by their numbers and in memory: what a filter looks at.
//!
//! In: the rows of entries, each read once. Out: which of a version's entries have a path, a head and a place that pass.
//!
//! **Invariant:** an ordinal's row never changes, so what was read stays true. Each path, head and place is judged once a
//! filter, however many entries share it (`docs/benchmarks.md`, a million entries).
//!
//! Twelve bytes an ordinal.

use super::packing::{Place, unpack_entry};
use super::tables::Opened;
use super::{Catalogue, CodecError, StoreError, codec};
use dataflows::data::{Card, DocumentPath};
use heed::{RoTxn, WithoutTls};
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

/// An ordinal without a row.
const NONE: [u32; 3] = [u32::MAX; 3];

/// Says what passes. Whatever it does not look at passes.
pub trait Judge {
    /// Whether paths, heads and places are looked at.
    fn looks_at(&self) -> [bool; 3];
    /// Whether a path passes.
    fn path(&self, path: &DocumentPath) -> bool;
    /// Whether kind, language, symbol and name of a card pass, which stands nowhere.
    fn head(&self, card: &Card) -> bool;
    /// Whether a module and labels pass.
    fn place(&self, module: &str, labels: &[(String, String)]) -> bool;
}

/// The numbers of path, head and place of each entry, by ordinal.
#[derive(Default)]
pub struct Columns(Vec<[u32; 3]>);

impl Columns {
    /// Returns those of `entries` that pass.
    ///
    /// # Errors
    /// Where the database fails, or a number leads nowhere.
    pub fn passing(
        &mut self,
        catalogue: &Catalogue,
        entries: &RoaringBitmap,
        judge: &dyn Judge,
    ) -> Result<RoaringBitmap, StoreError> {
        let tables = catalogue.tables();
        let txn = tables.read()?;
        self.read_on(tables, &txn, entries.max().map_or(0, |last| last as usize + 1))?;
        let looks_at = judge.looks_at();
        let mut verdicts: [FxHashMap<u32, bool>; 3] = Default::default();
        let mut passes = |numbers: [u32; 3]| -> Result<bool, StoreError> {
            for (part, number) in numbers.into_iter().enumerate().filter(|(part, _)| looks_at[*part]) {
                let passes = match verdicts[part].get(&number) {
                    Some(passes) => *passes,
                    None => *verdicts[part].entry(number).or_insert(verdict(tables, &txn, part, number, judge)?),
                };
                if !passes {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let mut passing = RoaringBitmap::new();
        // Neighbours mostly share what is looked at, and pass or not together.
        let mut last = (NONE, false);
        let mut run = 0..0;
        for ordinal in entries {
            let numbers = self.0[ordinal as usize];
            if numbers == NONE {
                return Err(tables.entries.lost(ordinal));
            }
            if (0..3).any(|part| looks_at[part] && numbers[part] != last.0[part]) || last.0 == NONE {
                last = (numbers, passes(numbers)?);
            }
            if !last.1 {
                continue;
            }
            if run.end == ordinal {
                run.end += 1;
            } else {
                passing.insert_range(run);
                run = ordinal..ordinal.saturating_add(1);
            }
        }
        passing.insert_range(run);
        Ok(passing)
    }

    /// Reads the rows of all ordinals below `end` that were not read yet.
    fn read_on(&mut self, tables: &Opened, txn: &RoTxn<'_, WithoutTls>, end: usize) -> Result<(), StoreError> {
        let start = self.0.len();
        if end <= start {
            return Ok(());
        }
        self.0.resize(end, NONE);
        tables.entries.each_from(txn, &(start as u32).to_be_bytes(), |key, row| {
            let place = <[u8; 4]>::try_from(key).ok().map(|key| u32::from_be_bytes(key) as usize);
            let Some(numbers) = place.and_then(|place| self.0.get_mut(place)) else { return Ok(false) };
            let row = unpack_entry(row).ok_or_else(|| tables.entries.damaged(CodecError::not("an entry")))?;
            *numbers = [row.path, row.head, row.place];
            Ok(true)
        })
    }
}

/// Judges a path (part 0), a head (1) or a place (2).
fn verdict(
    tables: &Opened,
    txn: &RoTxn<'_, WithoutTls>,
    part: usize,
    number: u32,
    judge: &dyn Judge,
) -> Result<bool, StoreError> {
    Ok(match part {
        0 => judge.path(&DocumentPath::new(tables.paths.value(txn, number)?)),
        1 => {
            let nowhere = Place { folder: String::new(), module: String::new(), labels: Vec::new() };
            judge.head(&tables.head(txn, number)?.card(nowhere))
        }
        _ => {
            let places = &tables.places;
            let place: Place =
                codec::decode(places.value(txn, number)?).map_err(|source| places.values.damaged(source))?;
            judge.place(&place.module, &place.labels)
        }
    })
}

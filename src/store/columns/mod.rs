//! Path, head and place of each entry, by number and in memory: the input of filters and of the order of ties.
//!
//! In: the columns of entries in the database, each block read once; and paths, each read once. Out: which of a version's entries
//! have a path, a head and a place that pass; which of two entries comes first.
//!
//! **Invariant:** an ordinal's row never changes, and neither does the value of a number, so cached data and cached verdicts of
//! filters stay valid. A filter judges each path, head and place once, however many entries share it; a recent filter is not
//! judged again.
//!
//! It takes twelve bytes an ordinal, the paths, and a byte for each number that a recent filter judged. Two fused lists have
//! hundreds of ties; in the database each would touch four places of a large file.

pub(super) mod blocks;
mod paths;

use super::packing::Place;
use super::tables::Opened;
use super::{Catalogue, StoreError, codec};
use dataflows::data::{Card, DocumentPath};
use heed::{RoTxn, WithoutTls};
use paths::Paths;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

/// The number of an ordinal without a row; no table assigns it before memory is exhausted.
const NONE: u32 = u32::MAX;
/// So many filters are cached: some hundred kilobytes each at a million entries.
const REMEMBERED: usize = 8;

/// A filter. Parts that it does not look at pass.
pub trait Judge {
    /// The cache key is the name: equal names must mean equal filters.
    fn name(&self) -> &str;
    /// Whether it judges paths, heads and places.
    fn looks_at(&self) -> [bool; 3];
    /// Whether a path passes; it has replacement characters.
    fn path(&self, path: &str) -> bool;
    /// Whether kind, language, symbol and name of a card without location pass.
    fn head(&self, card: &Card) -> bool;
    /// Whether a module and labels pass.
    fn place(&self, module: &str, labels: &[(String, String)]) -> bool;
}

/// The columns of entries, and the verdicts of recent filters.
#[derive(Default)]
pub struct Columns {
    known: RwLock<Known>,
    /// In order of use, the latest last.
    remembered: Mutex<Vec<(String, [Verdicts; 3])>>,
}

/// The numbers of path, head and place of each entry up to some ordinal, and all of their paths.
#[derive(Default)]
struct Known {
    numbers: [Vec<u32>; 3],
    paths: Paths,
}

/// The verdicts of a filter on numbers.
#[derive(Default)]
struct Verdicts(Vec<Verdict>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Unknown,
    Passes,
    Fails,
}

impl Verdicts {
    fn get(&self, number: u32) -> Verdict {
        self.0.get(number as usize).copied().unwrap_or(Verdict::Unknown)
    }

    fn set(&mut self, number: u32, verdict: Verdict) {
        let at = number as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, Verdict::Unknown);
        }
        self.0[at] = verdict;
    }
}

impl Columns {
    /// Returns those of `entries` that pass.
    ///
    /// # Errors
    /// If the database fails, or a number has no row.
    pub fn passing(
        &self,
        catalogue: &Catalogue,
        entries: &RoaringBitmap,
        judge: &dyn Judge,
    ) -> Result<RoaringBitmap, StoreError> {
        let Some(last) = entries.max() else { return Ok(RoaringBitmap::new()) };
        let known = self.known(catalogue, last)?;
        let tables = catalogue.tables()?;
        let txn = tables.read()?;
        let (name, mut verdicts) = self.recall(judge.name());
        let mut passing = Cow::Borrowed(entries);
        let parts = judge.looks_at().into_iter().zip(&known.numbers).zip(&mut verdicts).enumerate();
        for (part, ((looks_at, numbers), verdicts)) in parts {
            if !looks_at {
                continue;
            }
            for number in unjudged(&passing, numbers, verdicts).map_err(|ordinal| tables.entries.lost(ordinal))? {
                let passes = match part {
                    0 => judge.path(&String::from_utf8_lossy(known.path(&tables, number)?)),
                    1 => passes_by_head(&tables, &txn, number, judge)?,
                    _ => passes_by_place(&tables, &txn, number, judge)?,
                };
                verdicts.set(number, if passes { Verdict::Passes } else { Verdict::Fails });
            }
            passing = Cow::Owned(let_through(&passing, numbers, verdicts));
        }
        self.remember(name, verdicts);
        Ok(passing.into_owned())
    }

    /// Returns which of two entries comes first by (path, identity); the database is read within a path only.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn compare(&self, catalogue: &Catalogue, left: Ordinal, right: Ordinal) -> Result<Ordering, StoreError> {
        let known = self.known(catalogue, left.max(right).get())?;
        let [left_path, right_path] = [known.path_number(catalogue, left)?, known.path_number(catalogue, right)?];
        if left_path == right_path {
            return catalogue.compare(left, right);
        }
        let tables = catalogue.tables()?;
        Ok(known.path(&tables, left_path)?.cmp(known.path(&tables, right_path)?))
    }

    /// Calls `look` with each distinct path of `entries`, in no order.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn each_path(
        &self,
        catalogue: &Catalogue,
        entries: &RoaringBitmap,
        mut look: impl FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let Some(last) = entries.max() else { return Ok(()) };
        let known = self.known(catalogue, last)?;
        let tables = catalogue.tables()?;
        let numbers = unjudged(entries, &known.numbers[0], &Verdicts::default());
        for number in numbers.map_err(|ordinal| tables.entries.lost(ordinal))? {
            look(known.path(&tables, number)?);
        }
        Ok(())
    }

    /// Returns the distinct paths of entries, sorted by bytes.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn paths(&self, catalogue: &Catalogue, entries: &[Ordinal]) -> Result<Vec<DocumentPath>, StoreError> {
        let Some(last) = entries.iter().max() else { return Ok(Vec::new()) };
        let known = self.known(catalogue, last.get())?;
        let tables = catalogue.tables()?;
        let path = |&entry: &Ordinal| known.path(&tables, known.path_number(catalogue, entry)?);
        let mut paths = entries.iter().map(path).collect::<Result<Vec<&[u8]>, StoreError>>()?;
        paths.sort_unstable();
        paths.dedup();
        Ok(paths.into_iter().map(DocumentPath::new).collect())
    }

    /// Returns the number of an entry's path.
    ///
    /// # Errors
    /// If the database fails or lacks the row.
    pub fn path_number(&self, catalogue: &Catalogue, entry: Ordinal) -> Result<u32, StoreError> {
        self.known(catalogue, entry.get())?.path_number(catalogue, entry)
    }

    /// Returns the columns, read up to `last` at least.
    fn known(&self, catalogue: &Catalogue, last: u32) -> Result<RwLockReadGuard<'_, Known>, StoreError> {
        // A panic during the read leaves columns that are shorter than stated.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.reaches(last) {
            return Ok(known);
        }
        drop(known);
        let tables = catalogue.tables()?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).read_on(&tables, &*tables.read()?, last)?;
        Ok(self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the cached verdicts of a filter.
    fn recall(&self, name: &str) -> (String, [Verdicts; 3]) {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        match remembered.iter().position(|(known, _)| known == name) {
            Some(known) => remembered.remove(known),
            None => (name.to_owned(), Default::default()),
        }
    }

    fn remember(&self, name: String, verdicts: [Verdicts; 3]) {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() == REMEMBERED {
            remembered.remove(0);
        }
        remembered.push((name, verdicts));
    }
}

impl Known {
    fn reaches(&self, last: u32) -> bool {
        // The last of them is read last.
        self.numbers[2].len() > last as usize
    }

    fn path_number(&self, catalogue: &Catalogue, entry: Ordinal) -> Result<u32, StoreError> {
        let number = self.numbers[0].get(entry.get() as usize).filter(|number| **number != NONE);
        number.copied().map_or_else(|| Err(catalogue.tables()?.entries.lost(entry.get())), Ok)
    }

    fn path(&self, tables: &Opened, number: u32) -> Result<&[u8], StoreError> {
        self.paths.get(number).ok_or_else(|| tables.paths.values.lost(number))
    }

    /// Reads the numbers of all unread ordinals up to `last`, and the paths.
    fn read_on(&mut self, tables: &Opened, txn: &RoTxn<'_>, last: u32) -> Result<(), StoreError> {
        if self.reaches(last) {
            return Ok(());
        }
        self.paths.read_on(tables, txn)?;
        let (start, end) = (self.numbers[2].len(), last as usize + 1);
        let mut read: [Vec<u32>; 3] = std::array::from_fn(|_| vec![NONE; end - start]);
        blocks::each(tables, txn, start as u32..=last, |ordinal, found| {
            for (numbers, number) in read.iter_mut().zip(found) {
                numbers[ordinal as usize - start] = number;
            }
        })?;
        for (numbers, read) in self.numbers.iter_mut().zip(read) {
            numbers.truncate(start);
            // A little room for the next commits, instead of doubling.
            numbers.reserve_exact(read.len().max(start / 32));
            numbers.extend(read);
        }
        Ok(())
    }
}

/// Returns the unjudged numbers of `entries`, ascending, or an ordinal that has none.
fn unjudged(entries: &RoaringBitmap, numbers: &[u32], verdicts: &Verdicts) -> Result<Vec<u32>, u32> {
    let mut unjudged = Vec::new();
    let mut last = NONE;
    let mut ranges = entries.iter();
    while let Some(range) = ranges.next_range() {
        let first = *range.start();
        for (ordinal, &number) in (first..).zip(&numbers[first as usize..=*range.end() as usize]) {
            // Neighbours mostly share it.
            if number != last {
                if number == NONE {
                    return Err(ordinal);
                }
                if verdicts.get(number) == Verdict::Unknown {
                    unjudged.push(number);
                }
                last = number;
            } else if number == NONE {
                return Err(ordinal);
            }
        }
    }
    unjudged.sort_unstable();
    unjudged.dedup();
    Ok(unjudged)
}

/// Returns those of `entries` whose numbers pass.
fn let_through(entries: &RoaringBitmap, numbers: &[u32], verdicts: &Verdicts) -> RoaringBitmap {
    let mut passing = RoaringBitmap::new();
    let mut ranges = entries.iter();
    while let Some(range) = ranges.next_range() {
        let (mut at, end) = (*range.start(), *range.end());
        let own = &numbers[at as usize..=end as usize];
        for run in own.chunk_by(|left, right| left == right) {
            if verdicts.get(run[0]) == Verdict::Passes {
                passing.insert_range(at..=at + (run.len() - 1) as u32);
            }
            at = at.saturating_add(run.len() as u32);
        }
    }
    passing
}

fn passes_by_head(
    tables: &Opened,
    txn: &RoTxn<'_, WithoutTls>,
    number: u32,
    judge: &dyn Judge,
) -> Result<bool, StoreError> {
    let nowhere = Place { folder: String::new(), module: String::new(), labels: Vec::new() };
    Ok(judge.head(&tables.head(txn, number)?.card(nowhere)))
}

fn passes_by_place(
    tables: &Opened,
    txn: &RoTxn<'_, WithoutTls>,
    number: u32,
    judge: &dyn Judge,
) -> Result<bool, StoreError> {
    let places = &tables.places;
    let place: Place = codec::decode(places.value(txn, number)?).map_err(|source| places.values.damaged(source))?;
    Ok(judge.place(&place.module, &place.labels))
}

#[cfg(test)]
mod tests;

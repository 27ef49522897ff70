//! Texts: stored in the order of insertion, found by their hashes.
//!
//! In: texts of chunks, cleaned texts, and the hashes of both, inside a write transaction. Out: a number for each, and from
//! number or hash back to the text.
//!
//! ```text
//!  number ─► text of a chunk           number ─► hash, in runs of neighbours      hash ─► number
//!  number ─► cleaned text: composed of texts of chunks, or by itself
//! ```
//!
//! **Invariant:** a text has one number for ever, one more than the largest that was ever given out: the runs of hashes
//! stay when a text is removed, and one that comes back gets a new number. Until then its hash leads to its number, and
//! the number to its hash and to the text: in the table of chunks, or in that of cleaned texts, or in both. What a
//! composition names is in the table of chunks.
//!
//! With hash keys each new text would be written into a page of its own, between other texts. With numbers, texts that are
//! inserted together are stored together (`docs/decisions/0019-rows-in-the-order-in-which-they-come.md`).

use super::StoreError;
use super::dictionaries::{Dictionaries, LEAST_TEXTS};
use super::identities::Identities;
use super::numbering::number_of;
use super::packing::{
    Packer, Piece, TextPlace, compose, for_each_piece, is_composition, is_worth_it, names_in, pack_text, unpack_bytes,
    unpack_text,
};
use super::tables::{RowsFrom, Table};
use dataflows::data::TextHash;
use heed::{RoTxn, RwTxn};
use std::sync::Arc;

/// Hashes in one row of a run: ten such rows fill a page, and a shorter row leaves little of it empty.
const RUN: usize = 24;
/// The bytes of one hash in a run.
pub(super) const HASH_BYTES: usize = 16;

/// The tables of texts.
#[derive(Clone)]
pub(super) struct Texts {
    /// number → text of a chunk, packed where that makes it smaller.
    pub(super) rows: Table,
    /// number → cleaned text, composed or packed by itself.
    pub(super) cleaned: Table,
    /// number → the hashes of the texts from this number on.
    pub(super) hashes: Table,
    /// hash → number.
    pub(super) numbers: Identities,
    /// What texts are packed with.
    pub(super) dictionaries: Dictionaries,
}

impl Texts {
    /// Returns the number of a text, if it is stored.
    pub(super) fn number(&self, txn: &RoTxn<'_>, hash: TextHash) -> Result<Option<u32>, StoreError> {
        self.numbers.get(txn, hash.to_bytes())
    }

    /// Returns a text, if it is stored.
    pub(super) fn text(&self, txn: &RoTxn<'_>, hash: TextHash) -> Result<Option<String>, StoreError> {
        let Some(number) = self.number(txn, hash)? else { return Ok(None) };
        self.numbered(txn, number)?.map(Some).ok_or_else(|| self.rows.lost(hash))
    }

    /// Returns the text of a number, or nothing where no row of that number can be read.
    pub(super) fn numbered(&self, txn: &RoTxn<'_>, number: u32) -> Result<Option<String>, StoreError> {
        let key = number.to_be_bytes();
        if let Some(packed) = self.rows.bytes(txn, &key)? {
            return Ok(self.unpack(txn, packed));
        }
        match self.cleaned.bytes(txn, &key)? {
            Some(packed) if is_composition(packed) => self.put_together(txn, packed),
            Some(packed) => Ok(self.unpack(txn, packed)),
            None => Ok(None),
        }
    }

    fn unpack(&self, txn: &RoTxn<'_>, packed: &[u8]) -> Option<String> {
        unpack_text(packed, |number| self.dictionaries.unpacker(txn, number))
    }

    /// Returns a composed text.
    fn put_together(&self, txn: &RoTxn<'_>, composition: &[u8]) -> Result<Option<String>, StoreError> {
        let mut pieces = Vec::new();
        let literals = for_each_piece(composition, |piece| {
            pieces.push(piece);
            Some(())
        });
        let literals = match literals {
            Some([]) => Some(String::new()),
            Some(packed) => self.unpack(txn, packed),
            None => None,
        };
        let Some(literals) = literals else { return Ok(None) };
        let (mut rest, mut text, mut one) = (literals.as_str(), Vec::new(), Vec::new());
        let mut reader = InOrder { table: self.rows, rows: None };
        let mut last = None;
        let mut dictionary = |number| {
            if last.as_ref().is_none_or(|(known, _)| *known != number) {
                last = self.dictionaries.unpacker(txn, number).map(|unpacker| (number, unpacker));
            }
            last.as_ref().map(|(_, unpacker)| unpacker.clone())
        };
        for piece in pieces {
            match piece {
                Piece::Lines(lines) => text.extend(std::iter::repeat_n(b'\n', lines)),
                Piece::Literal(length) => match rest.split_at_checked(length) {
                    Some((literal, behind)) => {
                        text.extend_from_slice(literal.as_bytes());
                        rest = behind;
                    }
                    None => return Ok(None),
                },
                Piece::Text(number) => {
                    let packed = reader.bytes(txn, number)?;
                    if packed.and_then(|packed| unpack_bytes(packed, &mut dictionary, &mut one)).is_none() {
                        return Ok(None);
                    }
                    text.extend_from_slice(&one);
                }
            }
        }
        Ok(String::from_utf8(text).ok())
    }

    /// Returns whether a text is stored as that of a chunk.
    pub(super) fn is_of_chunk(&self, txn: &RoTxn<'_>, hash: TextHash) -> Result<bool, StoreError> {
        let Some(number) = self.number(txn, hash)? else { return Ok(false) };
        Ok(self.rows.bytes(txn, &number.to_be_bytes())?.is_some())
    }

    /// Returns whether a text is stored by itself, as a cleaned text only: it takes less room once it is composed.
    pub(super) fn can_be_composed(&self, txn: &RoTxn<'_>, hash: TextHash) -> Result<bool, StoreError> {
        let Some(number) = self.number(txn, hash)? else { return Ok(false) };
        let key = number.to_be_bytes();
        Ok(self.rows.bytes(txn, &key)?.is_none()
            && self.cleaned.bytes(txn, &key)?.is_some_and(|packed| !is_composition(packed)))
    }

    /// Returns the number of the next new text.
    pub(super) fn next(&self, txn: &RoTxn<'_>) -> Result<u32, StoreError> {
        let Some((key, hashes)) = self.hashes.last(txn)? else { return Ok(0) };
        let count = u32::try_from(hashes.len() / HASH_BYTES).ok();
        number_of(key).zip(count).and_then(|(first, count)| first.checked_add(count)).ok_or_else(|| self.rows.full())
    }

    /// Assigns the next numbers to new texts, in this order; [`Self::put`] stores them, in the same transaction.
    pub(super) fn name(&self, txn: &mut RwTxn<'_>, new: &[TextHash]) -> Result<(), StoreError> {
        let first = self.next(txn)?;
        let numbers = (first..).zip(new).map(|(number, hash)| (hash.to_bytes(), number)).collect();
        for (number, run) in (first..).step_by(RUN).zip(new.chunks(RUN)) {
            let bytes: Vec<u8> = run.iter().flat_map(|hash| hash.to_bytes()).collect();
            self.hashes.put_bytes(txn, &number.to_be_bytes(), &bytes)?;
        }
        self.numbers.put_all(txn, numbers)
    }

    /// Returns what texts are packed with from here on: makes the store's dictionary once it has texts of chunks enough, these
    /// new ones among them.
    pub(super) fn packer(&self, txn: &mut RwTxn<'_>, new: &[&str]) -> Result<Option<Arc<Packer>>, StoreError> {
        let count = self.rows.len(txn)? + new.len() as u64;
        if count >= u64::from(LEAST_TEXTS) && self.dictionaries.rows.last(txn)?.is_none() {
            let mut stored = Vec::new();
            self.rows.each(txn, |_, packed| {
                stored.extend(self.unpack(txn, packed));
                Ok(stored.len() < LEAST_TEXTS as usize)
            })?;
            let texts = stored.iter().map(String::as_str).chain(new.iter().copied());
            self.dictionaries.make(txn, texts)?;
        }
        self.dictionaries.packer(txn)
    }

    /// Writes the text of a chunk under its number.
    pub(super) fn put(
        &self,
        txn: &mut RwTxn<'_>,
        number: u32,
        text: &str,
        packer: Option<&Packer>,
    ) -> Result<(), StoreError> {
        self.rows.put_bytes(txn, &number.to_be_bytes(), &pack_text(text, packer))
    }

    /// Writes a cleaned text under its number: composed of the texts of chunks that stand in it, if that is worth it.
    pub(super) fn put_cleaned(
        &self,
        txn: &mut RwTxn<'_>,
        number: u32,
        text: &str,
        places: &[TextPlace<u32>],
        packer: Option<&Packer>,
    ) -> Result<(), StoreError> {
        let packed = if is_worth_it(text, places) {
            compose(text, places, |literals| pack_text(literals, packer))
        } else {
            pack_text(text, packer)
        };
        self.cleaned.put_bytes(txn, &number.to_be_bytes(), &packed)
    }

    /// Returns the numbers of the texts that a cleaned text is composed of.
    pub(super) fn names_in(&self, txn: &RoTxn<'_>, number: u32) -> Result<Vec<u32>, StoreError> {
        let Some(packed) = self.cleaned.bytes(txn, &number.to_be_bytes())? else { return Ok(Vec::new()) };
        names_in(packed).ok_or_else(|| self.cleaned.lost(number))
    }

    /// Removes a text that is stored under this number.
    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, hash: TextHash, number: u32) -> Result<(), StoreError> {
        self.rows.remove(txn, &number.to_be_bytes())?;
        self.cleaned.remove(txn, &number.to_be_bytes())?;
        self.numbers.remove(txn, hash.to_bytes())
    }

    /// Returns how many texts, numbers and hashes do not lead to each other, and how many compositions name a text that is
    /// not there.
    ///
    /// A text that was collected and came back has a new number; the old one still leads to its hash, and nothing refers to it.
    pub(super) fn count_lost(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        let (mut lost, mut found) = (0, 0);
        let mut reader = TextHashes::new(self.hashes);
        let has = |table: Table, number: u32| table.bytes(txn, &number.to_be_bytes()).map(|row| row.is_some());
        self.numbers.each(txn, |id, number| {
            let leads_back = reader.find(txn, number)?.is_some_and(|hash| hash.to_bytes() == id);
            let rows = u64::from(has(self.rows, number)?) + u64::from(has(self.cleaned, number)?);
            lost += u64::from(!leads_back || rows == 0);
            found += if leads_back { rows } else { 0 };
            Ok(())
        })?;
        self.cleaned.each(txn, |_, packed| {
            let names = names_in(packed);
            let is_whole = |names: Vec<u32>| {
                names
                    .into_iter()
                    .try_fold(true, |is_whole, name| Ok::<_, StoreError>(is_whole && has(self.rows, name)?))
            };
            lost += u64::from(!names.map(is_whole).transpose()?.unwrap_or_default());
            Ok(true)
        })?;
        Ok(lost + (self.rows.len(txn)? + self.cleaned.len(txn)?).abs_diff(found))
    }
}

/// Reads rows by numbers that mostly follow each other: these cost a step and no look-up.
struct InOrder<'t> {
    table: Table,
    /// The rows from behind the one that was read last.
    rows: Option<RowsFrom<'t>>,
}

impl<'t> InOrder<'t> {
    fn bytes(&mut self, txn: &'t RoTxn<'_>, number: u32) -> Result<Option<&'t [u8]>, StoreError> {
        let key = number.to_be_bytes();
        if let Some(rows) = &mut self.rows
            && let Some((found, packed)) = rows.next()?
            && found == key
        {
            return Ok(Some(packed));
        }
        let mut rows = self.table.rows_from(txn, &key)?;
        let row = rows.next()?;
        self.rows = Some(rows);
        Ok(row.filter(|(found, _)| *found == key).map(|(_, packed)| packed))
    }
}

/// Reads the hashes of texts by their numbers; neighbours cost one read.
pub(super) struct TextHashes<'t> {
    table: Table,
    /// The last run: its first number and its hashes.
    run: Option<(u32, &'t [u8])>,
}

impl<'t> TextHashes<'t> {
    pub(super) const fn new(table: Table) -> Self {
        Self { table, run: None }
    }

    /// Returns the hash of a number.
    pub(super) fn get(&mut self, txn: &'t RoTxn<'_>, number: u32) -> Result<TextHash, StoreError> {
        self.find(txn, number)?.ok_or_else(|| self.table.lost(number))
    }

    fn find(&mut self, txn: &'t RoTxn<'_>, number: u32) -> Result<Option<TextHash>, StoreError> {
        if let Some(hash) = self.run.and_then(|run| in_run(run, number)) {
            return Ok(Some(hash));
        }
        let run = self.table.at_or_before(txn, &number.to_be_bytes())?;
        self.run = run.and_then(|(key, hashes)| Some((number_of(key)?, hashes)));
        Ok(self.run.and_then(|run| in_run(run, number)))
    }
}

fn in_run((first, hashes): (u32, &[u8]), number: u32) -> Option<TextHash> {
    let at = number.checked_sub(first)? as usize;
    let hash = hashes.get(at.checked_mul(HASH_BYTES)?..)?.first_chunk::<HASH_BYTES>()?;
    Some(TextHash::from_bytes(*hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::cases;
    use crate::store::tables::Tables;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    /// Texts of many sizes, few of them distinct.
    fn text(n: u16) -> String {
        format!("text {n} {}", "lorem ".repeat(usize::from(n) % 300))
    }

    fn put(texts: &Texts, txn: &mut RwTxn<'_>, new: &[&str]) {
        let first = texts.next(txn).unwrap();
        texts.name(txn, &new.iter().map(|text| TextHash::of(text)).collect::<Vec<_>>()).unwrap();
        for (number, text) in (first..).zip(new) {
            texts.put(txn, number, text, None).unwrap();
        }
    }

    /// One transaction.
    #[derive(Clone, Debug)]
    enum Step {
        Put(Vec<u16>),
        Remove(Vec<u16>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let texts = |most| prop::collection::vec(0u16..400, 0..most);
        prop_oneof![3 => texts(80).prop_map(Step::Put), 1 => texts(40).prop_map(Step::Remove)]
    }

    proptest! {
        #![proptest_config(cases(24))]
        #[test]
        fn texts_come_back_under_numbers_that_never_mean_another(
            steps in prop::collection::vec((step(), prop::bool::weighted(0.2)), 1..12),
        ) {
            let folder = tempfile::tempdir().unwrap();
            // The stored texts by number, and all hashes in the order of numbers.
            let (mut stored, mut given): (BTreeMap<u16, u32>, Vec<TextHash>) = Default::default();
            for (step, is_lost) in steps {
                let tables = Tables::open(folder.path(), true).unwrap();
                let texts = tables.texts.clone();
                let mut txn = tables.write().unwrap();
                let (before, given_before) = (stored.clone(), given.clone());
                match step {
                    Step::Put(numbers) => {
                        let mut new = Vec::new();
                        for n in numbers {
                            if let Entry::Vacant(unknown) = stored.entry(n) {
                                unknown.insert(given.len() as u32);
                                given.push(TextHash::of(&text(n)));
                                new.push(text(n));
                            }
                        }
                        put(&texts, &mut txn, &new.iter().map(String::as_str).collect::<Vec<_>>());
                    }
                    Step::Remove(numbers) => {
                        for n in numbers {
                            if let Some(number) = stored.remove(&n) {
                                texts.remove(&mut txn, TextHash::of(&text(n)), number).unwrap();
                            }
                        }
                    }
                }
                if is_lost {
                    txn.abort();
                    (stored, given) = (before, given_before);
                } else {
                    txn.commit().unwrap();
                }
                let txn = tables.read().unwrap();
                prop_assert_eq!(texts.next(&txn).unwrap() as usize, given.len());
                for n in 0..400 {
                    let hash = TextHash::of(&text(n));
                    prop_assert_eq!(texts.number(&txn, hash).unwrap(), stored.get(&n).copied());
                    prop_assert_eq!(texts.text(&txn, hash).unwrap(), stored.get(&n).map(|_| text(n)));
                }
                let mut reader = TextHashes::new(texts.hashes);
                for (number, hash) in (0u32..).zip(&given) {
                    prop_assert_eq!(reader.get(&txn, number).unwrap(), *hash);
                }
                prop_assert!(reader.get(&txn, given.len() as u32).is_err());
                prop_assert_eq!(texts.count_lost(&txn).unwrap(), 0);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_whole_hash_count_for_none() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let mut txn = tables.write().unwrap();
        tables.texts.hashes.put_bytes(&mut txn, &1000_u32.to_be_bytes(), &[1; 15]).unwrap();
        assert!(TextHashes::new(tables.texts.hashes).get(&txn, 1000).is_err());
        assert!(TextHashes::new(tables.texts.hashes).get(&txn, u32::MAX).is_err());
    }

    #[test]
    fn what_does_not_lead_back_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let texts = tables.texts.clone();
        let mut txn = tables.write().unwrap();
        let hashes = ["one", "two", "three"].map(TextHash::of);
        put(&texts, &mut txn, &["one", "two", "three"]);
        let count = |txn: &RwTxn<'_>| texts.count_lost(txn).unwrap();
        assert_eq!(count(&txn), 0);
        // A hash without a text, a text without a hash, and a hash of another text.
        texts.rows.remove(&mut txn, &0_u32.to_be_bytes()).unwrap();
        assert_eq!(count(&txn), 1);
        texts.rows.put_bytes(&mut txn, &9_u32.to_be_bytes(), &pack_text("nine", None)).unwrap();
        assert_eq!(count(&txn), 2);
        texts.numbers.remove(&mut txn, hashes[1].to_bytes()).unwrap();
        assert!(count(&txn) > 1);
    }
}

//! Texts: stored in the order of insertion, found by their hashes.
//!
//! In: texts and their hashes, inside a write transaction. Out: a number for each, and from number or hash back to the text.
//!
//! ```text
//!  number ─► text      number ─► hash, in runs of neighbours      hash ─► number
//! ```
//!
//! **Invariant:** a text has one number for ever, one more than the largest ever assigned: the runs of hashes stay when a text is
//! removed, and a text that comes back gets a new number. While it is stored, its hash leads to its number, and the number to its
//! text and its hash.
//!
//! With hash keys each new text would be written into a page of its own, between other texts. With numbers, texts that are
//! inserted together are stored together (`docs/decisions/0019-rows-in-the-order-in-which-they-come.md`).

use super::StoreError;
use super::identities::Identities;
use super::numbering::number_of;
use super::packing::{pack_text, unpack_text};
use super::tables::Table;
use dataflows::data::TextHash;
use heed::{RoTxn, RwTxn};

/// Hashes in one row of a run: ten such rows fill a page, and a shorter row leaves little of it empty.
const RUN: usize = 24;
/// The bytes of one hash in a run.
pub(super) const HASH_BYTES: usize = 16;

/// The tables of texts.
#[derive(Clone, Copy)]
pub(super) struct Texts {
    /// number → text, compressed if that is smaller.
    pub(super) rows: Table,
    /// number → the hashes of the texts from this number on.
    pub(super) hashes: Table,
    /// hash → number.
    pub(super) numbers: Identities,
}

impl Texts {
    /// Returns the number of a text, if it is stored.
    pub(super) fn number(&self, txn: &RoTxn<'_>, hash: TextHash) -> Result<Option<u32>, StoreError> {
        self.numbers.get(txn, hash.to_bytes())
    }

    /// Returns a text, if it is stored.
    pub(super) fn text(&self, txn: &RoTxn<'_>, hash: TextHash) -> Result<Option<String>, StoreError> {
        let Some(number) = self.number(txn, hash)? else { return Ok(None) };
        let packed = self.rows.bytes(txn, &number.to_be_bytes())?.ok_or_else(|| self.rows.lost(number))?;
        unpack_text(packed).map(Some).ok_or_else(|| self.rows.lost(hash))
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

    /// Writes texts that just got numbers, from this number on.
    pub(super) fn put<'a>(
        &self,
        txn: &mut RwTxn<'_>,
        first: u32,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<(), StoreError> {
        for (number, text) in (first..).zip(texts) {
            self.rows.put_bytes(txn, &number.to_be_bytes(), &pack_text(text))?;
        }
        Ok(())
    }

    /// Removes a text that is stored under this number.
    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, hash: TextHash, number: u32) -> Result<(), StoreError> {
        self.rows.remove(txn, &number.to_be_bytes())?;
        self.numbers.remove(txn, hash.to_bytes())
    }

    /// Returns the number of inconsistencies among texts, numbers and hashes.
    ///
    /// A text that was collected and came back has a new number; the old one still leads to its hash, and nothing refers to it.
    pub(super) fn count_lost(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        let (mut found, mut known) = (0, 0);
        let mut reader = TextHashes::new(self.hashes);
        self.numbers.each(txn, |id, number| {
            known += 1;
            let leads_back = reader.find(txn, number)?.is_some_and(|hash| hash.to_bytes() == id);
            found += u64::from(leads_back && self.rows.bytes(txn, &number.to_be_bytes())?.is_some());
            Ok(())
        })?;
        Ok(known - found + self.rows.len(txn)?.abs_diff(found))
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
        texts.put(txn, first, new.iter().copied()).unwrap();
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
                let texts = tables.texts;
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
        let texts = tables.texts;
        let mut txn = tables.write().unwrap();
        let hashes = ["one", "two", "three"].map(TextHash::of);
        put(&texts, &mut txn, &["one", "two", "three"]);
        let count = |txn: &RwTxn<'_>| texts.count_lost(txn).unwrap();
        assert_eq!(count(&txn), 0);
        // A hash without a text, a text without a hash, and a hash of another text.
        texts.rows.remove(&mut txn, &0_u32.to_be_bytes()).unwrap();
        assert_eq!(count(&txn), 1);
        texts.rows.put_bytes(&mut txn, &9_u32.to_be_bytes(), &pack_text("nine")).unwrap();
        assert_eq!(count(&txn), 2);
        texts.numbers.remove(&mut txn, hashes[1].to_bytes()).unwrap();
        assert!(count(&txn) > 1);
    }
}

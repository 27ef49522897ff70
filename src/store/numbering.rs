//! Numbers for what many rows name, so that each of them says it in a byte or two.
//!
//! In: values (heads, places, paths) and the hashes of texts, inside a write transaction. Out: a number for each, and back.
//!
//! ```text
//!  heads, places, paths     number ─► value          hash of the value ─► number    (probed until the value fits)
//!  texts                    number ─► hash, in runs of neighbours          hash ─► number, in front of the text
//! ```
//!
//! **Invariant:** within a store a value has one number and a number one value, for ever. A number is given out in the
//! transaction that stores it, as one more than the largest that is stored: a transaction that is lost takes its numbers
//! with it, and nothing that was written names them. The last row of a numbered table is never removed, so no number
//! comes again. Nothing outside a store knows numbers: no identity, digest, copy or dump holds one.
//!
//! Numbers are keys in ascending order, so LMDB fills the pages of these tables; keys that are hashes leave a third empty.

use super::StoreError;
use super::packing::text_number;
use super::tables::Table;
use dataflows::data::{Hasher, TextHash};
use heed::{RoTxn, RwTxn};

/// Hashes in one row of `text_hashes`: ten such rows fill a page, and a shorter one leaves little of it empty.
const RUN: usize = 24;
const HASH_BYTES: usize = 16;

/// Values by number, and numbers by value.
#[derive(Clone, Copy)]
pub(super) struct Numbering {
    /// number → value.
    pub(super) values: Table,
    /// hash of a value → number.
    pub(super) names: Table,
}

impl Numbering {
    /// Returns the value of a number.
    pub(super) fn value<'t>(&self, txn: &'t RoTxn<'_>, number: u32) -> Result<&'t [u8], StoreError> {
        self.values.bytes(txn, &number.to_be_bytes())?.ok_or_else(|| self.values.lost(number))
    }

    /// Returns the number of a value, if it has one.
    pub(super) fn find(&self, txn: &RoTxn<'_>, value: &[u8]) -> Result<Option<u32>, StoreError> {
        self.probe(txn, value).map(|found| found.ok())
    }

    /// Returns the number of a value, giving it one if it has none.
    pub(super) fn number(&self, txn: &mut RwTxn<'_>, value: &[u8]) -> Result<u32, StoreError> {
        let name = match self.probe(txn, value)? {
            Ok(number) => return Ok(number),
            Err(name) => name,
        };
        let number = next(&self.values, txn)?;
        self.values.put_bytes(txn, &number.to_be_bytes(), value)?;
        self.names.put(txn, &name, &number)?;
        Ok(number)
    }

    /// Returns the number of a value, or the first name that is free for it.
    fn probe(&self, txn: &RoTxn<'_>, value: &[u8]) -> Result<Result<u32, [u8; 8]>, StoreError> {
        for attempt in 0_u32.. {
            let name = name(value, attempt);
            let Some(number) = self.names.get::<u32>(txn, &name)? else { return Ok(Err(name)) };
            // Half a hash may belong to another value: the value itself decides.
            if self.values.bytes(txn, &number.to_be_bytes())? == Some(value) {
                return Ok(Ok(number));
            }
        }
        Err(self.names.full())
    }

    /// Returns how many values do not lead to their number.
    pub(super) fn count_lost(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        let mut lost = 0;
        self.values.each(txn, |key, value| {
            lost += u64::from(self.find(txn, value)? != number_of(key));
            Ok(true)
        })?;
        Ok(lost)
    }
}

/// Returns what a value is looked up by: eight bytes of its hash, others for each attempt.
fn name(value: &[u8], attempt: u32) -> [u8; 8] {
    let [word, _] = Hasher::new("number").part(value).part(&attempt.to_le_bytes()).finish();
    word.to_le_bytes()
}

/// Returns one more than the largest number of a table.
fn next(table: &Table, txn: &RoTxn<'_>) -> Result<u32, StoreError> {
    let Some((key, _)) = table.last(txn)? else { return Ok(0) };
    number_of(key).and_then(|last| last.checked_add(1)).ok_or_else(|| table.full())
}

fn number_of(key: &[u8]) -> Option<u32> {
    key.try_into().ok().map(u32::from_be_bytes)
}

/// Reads the hashes of texts by their numbers; neighbours cost one look at the database.
pub(super) struct TextHashes<'t> {
    table: Table,
    /// The run that was read last: its first number and its hashes.
    run: Option<(u32, &'t [u8])>,
}

impl<'t> TextHashes<'t> {
    pub(super) const fn new(table: Table) -> Self {
        Self { table, run: None }
    }

    /// Returns the hash of a number.
    pub(super) fn get(&mut self, txn: &'t RoTxn<'_>, number: u32) -> Result<TextHash, StoreError> {
        if let Some(hash) = self.run.and_then(|run| in_run(run, number)) {
            return Ok(hash);
        }
        let run = self.table.at_or_before(txn, &number.to_be_bytes())?;
        self.run = run.and_then(|(key, hashes)| Some((number_of(key)?, hashes)));
        self.run.and_then(|run| in_run(run, number)).ok_or_else(|| self.table.lost(number))
    }
}

fn in_run((first, hashes): (u32, &[u8]), number: u32) -> Option<TextHash> {
    let at = number.checked_sub(first)? as usize;
    let hash = hashes.get(at.checked_mul(HASH_BYTES)?..)?.first_chunk::<HASH_BYTES>()?;
    Some(TextHash::from_bytes(*hash))
}

/// Returns the number that the next new text gets.
pub(super) fn next_text(table: &Table, txn: &RoTxn<'_>) -> Result<u32, StoreError> {
    let Some((key, hashes)) = table.last(txn)? else { return Ok(0) };
    let count = u32::try_from(hashes.len() / HASH_BYTES).ok();
    number_of(key).zip(count).and_then(|(first, count)| first.checked_add(count)).ok_or_else(|| table.full())
}

/// Writes the hashes of new texts, whose numbers begin with `first`.
pub(super) fn put_texts(table: &Table, txn: &mut RwTxn<'_>, first: u32, hashes: &[TextHash]) -> Result<(), StoreError> {
    let mut number = first;
    for run in hashes.chunks(RUN) {
        let bytes: Vec<u8> = run.iter().flat_map(|hash| hash.to_bytes()).collect();
        table.put_bytes(txn, &number.to_be_bytes(), &bytes)?;
        number =
            u32::try_from(run.len()).ok().and_then(|count| number.checked_add(count)).ok_or_else(|| table.full())?;
    }
    Ok(())
}

/// Returns how many texts are not led to by the number that they say they have.
///
/// A text that was collected and came back has a new number; the old one still leads to its hash and is named by nobody.
pub(super) fn count_lost_texts(hashes: &Table, texts: &Table, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
    let mut found = 0;
    hashes.each(txn, |key, run| {
        for (hash, number) in run.chunks_exact(HASH_BYTES).zip(number_of(key).into_iter().flat_map(|first| first..)) {
            let text = texts.bytes(txn, hash)?;
            found += u64::from(text.and_then(text_number) == Some(number));
        }
        Ok(true)
    })?;
    Ok(texts.len(txn)?.abs_diff(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::packing::{cases, pack_text};
    use crate::store::tables::Tables;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Forces values onto one name, as if half their hashes were equal.
    fn collide(numbering: &Numbering, txn: &mut RwTxn<'_>, taken: u32, value: &[u8]) {
        numbering.names.put(txn, &name(value, 0), &taken).unwrap();
    }

    proptest! {
        #![proptest_config(cases(24))]
        #[test]
        fn a_number_means_one_value_for_ever_whatever_is_lost_and_opened_again(
            transactions in prop::collection::vec((prop::collection::vec(0u8..30, 0..12), any::<bool>(), any::<bool>()), 1..12),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut known: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
            let mut texts: Vec<TextHash> = Vec::new();
            for (values, is_lost, again) in transactions {
                let tables = Tables::open(folder.path(), true).unwrap();
                let mut txn = tables.write().unwrap();
                let (mut numbers, mut hashes) = (known.clone(), texts.clone());
                for value in values {
                    let value = vec![value; 1 + usize::from(value) * 40];
                    let number = tables.paths.number(&mut txn, &value).unwrap();
                    prop_assert_eq!(*numbers.entry(value.clone()).or_insert(number), number);
                    let hash = TextHash::of(&format!("{value:?} {again}"));
                    if tables.texts.bytes(&txn, &hash.to_bytes()).unwrap().is_none() {
                        let first = next_text(&tables.text_hashes, &txn).unwrap();
                        prop_assert_eq!(first as usize, hashes.len());
                        put_texts(&tables.text_hashes, &mut txn, first, &[hash]).unwrap();
                        tables.texts.put_bytes(&mut txn, &hash.to_bytes(), &pack_text(first, "text")).unwrap();
                        hashes.push(hash);
                    }
                }
                if is_lost {
                    txn.abort();
                } else {
                    txn.commit().unwrap();
                    (known, texts) = (numbers, hashes);
                }
                let txn = tables.read().unwrap();
                let distinct: std::collections::BTreeSet<u32> = known.values().copied().collect();
                prop_assert_eq!(distinct.len(), known.len(), "two values have one number");
                for (value, number) in &known {
                    prop_assert_eq!(tables.paths.value(&txn, *number).unwrap(), &value[..]);
                    prop_assert_eq!(tables.paths.find(&txn, value).unwrap(), Some(*number));
                }
                let mut reader = TextHashes::new(tables.text_hashes);
                for (number, hash) in (0u32..).zip(&texts) {
                    prop_assert_eq!(reader.get(&txn, number).unwrap(), *hash);
                }
                prop_assert!(reader.get(&txn, texts.len() as u32).is_err());
                prop_assert_eq!(tables.paths.count_lost(&txn).unwrap(), 0);
                prop_assert_eq!(count_lost_texts(&tables.text_hashes, &tables.texts, &txn).unwrap(), 0);
            }
        }
    }

    #[test]
    fn values_that_share_half_a_hash_keep_apart() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let mut txn = tables.write().unwrap();
        let first = tables.heads.number(&mut txn, b"first").unwrap();
        collide(&tables.heads, &mut txn, first, b"second");
        assert_eq!(tables.heads.find(&txn, b"second").unwrap(), None);
        let second = tables.heads.number(&mut txn, b"second").unwrap();
        assert_ne!(first, second);
        for (value, number) in [(&b"first"[..], first), (b"second", second)] {
            assert_eq!(tables.heads.find(&txn, value).unwrap(), Some(number));
            assert_eq!(tables.heads.number(&mut txn, value).unwrap(), number);
        }
    }

    #[test]
    fn runs_are_cut_and_read_across_their_borders() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let hashes: Vec<TextHash> = (0..RUN * 2 + 7).map(|n| TextHash::of(&n.to_string())).collect();
        let mut txn = tables.write().unwrap();
        put_texts(&tables.text_hashes, &mut txn, 0, &hashes).unwrap();
        assert_eq!(next_text(&tables.text_hashes, &txn).unwrap() as usize, hashes.len());
        let mut reader = TextHashes::new(tables.text_hashes);
        for at in [0, RUN - 1, RUN, 2 * RUN, 2 * RUN + 6, 3] {
            assert_eq!(reader.get(&txn, at as u32).unwrap(), hashes[at]);
        }
        // Bytes that are no whole hash count for none.
        tables.text_hashes.put_bytes(&mut txn, &1000_u32.to_be_bytes(), &[1; 15]).unwrap();
        assert!(TextHashes::new(tables.text_hashes).get(&txn, 1000).is_err());
        assert!(TextHashes::new(tables.text_hashes).get(&txn, u32::MAX).is_err());
    }

    #[test]
    fn what_does_not_lead_back_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::open(folder.path(), true).unwrap();
        let mut txn = tables.write().unwrap();
        for value in [&b"one"[..], b"two"] {
            tables.places.number(&mut txn, value).unwrap();
        }
        assert_eq!(tables.places.count_lost(&txn).unwrap(), 0);
        tables.places.values.put_bytes(&mut txn, &1_u32.to_be_bytes(), b"tw0").unwrap();
        assert_eq!(tables.places.count_lost(&txn).unwrap(), 1);
        let (one, two) = (TextHash::of("one"), TextHash::of("two"));
        put_texts(&tables.text_hashes, &mut txn, 0, &[one, two]).unwrap();
        for (number, hash) in [(0, one), (1, two)] {
            tables.texts.put_bytes(&mut txn, &hash.to_bytes(), &pack_text(number, "")).unwrap();
        }
        let count = |txn: &RwTxn<'_>| count_lost_texts(&tables.text_hashes, &tables.texts, txn).unwrap();
        assert_eq!(count(&txn), 0);
        tables.texts.put_bytes(&mut txn, &one.to_bytes(), &pack_text(1, "")).unwrap();
        assert_eq!(count(&txn), 1);
        tables.texts.put_bytes(&mut txn, &TextHash::of("three").to_bytes(), &pack_text(2, "")).unwrap();
        assert_eq!(count(&txn), 2);
    }
}

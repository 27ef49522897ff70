//! From format 2 to 3: texts and vectors get rows in the order in which they come.
//!
//! In: a database of format 2, whose texts and vectors are keyed by hashes. Out: the same in the tables of format 3.
//!
//! **Invariant:** what is there already is not copied again: an earlier build, which left no marks, may have broken off.
//! Texts keep their numbers, which rows name.

use super::super::identities::Id;
use super::super::numbering::number_of;
use super::super::texts::HASH_BYTES;
use super::super::vectors::VectorKey;
use super::{Old, StoreError, TRANSACTION_ROWS, failed};
use heed::RwTxn;
use std::ops::Bound;

/// The table of format 2 with texts: hash of a text → its number and its bytes.
pub(super) const TEXTS: &str = "texts";
/// The table of format 2 with vectors: model, card, text → components.
pub(super) const VECTORS: &str = "vectors";

/// Copies texts in the order of their numbers, which the runs of hashes tell. It stops in front of a number.
pub(super) fn texts(old: &Old<'_>, txn: &mut RwTxn<'_>, from: Option<&[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(rows) = old.tables.other_in(txn, TEXTS)? else { return Ok(None) };
    let texts = &old.tables.texts;
    let next = from.and_then(number_of).unwrap_or(0);
    let mut hashes: Vec<(u32, Id)> = Vec::new();
    texts.hashes.each_from(txn, &next.to_be_bytes(), |key, run| {
        let first = number_of(key).ok_or_else(|| texts.hashes.lost("that can be read"))?;
        hashes.extend((first..).zip(run.as_chunks::<HASH_BYTES>().0.iter().copied()));
        Ok(hashes.len() < TRANSACTION_ROWS)
    })?;
    let Some((last, _)) = hashes.last() else { return Ok(None) };
    let behind = last.checked_add(1).ok_or_else(|| texts.rows.full())?;
    let mut numbers = Vec::new();
    for (number, hash) in hashes {
        let Some(packed) = rows.get(txn, &hash).map_err(failed)? else { continue };
        // What was removed and came back is stored under its last number.
        let (own, packed) = packed.split_first_chunk().ok_or_else(|| texts.rows.lost(number))?;
        if u32::from_le_bytes(*own) == number && texts.numbers.get(txn, hash)?.is_none() {
            let packed = packed.to_vec();
            texts.rows.put_bytes(txn, &number.to_be_bytes(), &packed)?;
            numbers.push((hash, number));
        }
    }
    texts.numbers.put_all(txn, numbers)?;
    Ok(Some(behind.to_be_bytes().to_vec()))
}

/// Copies vectors in the order of their keys. It stops behind a key.
pub(super) fn vectors(
    old: &Old<'_>,
    txn: &mut RwTxn<'_>,
    behind: Option<&[u8]>,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(rows) = old.tables.other_in(txn, VECTORS)? else { return Ok(None) };
    let vectors = &old.tables.vectors;
    let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
    let mut last = None;
    let mut new: Vec<(VectorKey, Vec<u8>)> = Vec::new();
    for row in rows.range(txn, &(from, Bound::Unbounded)).map_err(failed)?.take(TRANSACTION_ROWS) {
        let (key, components) = row.map_err(failed)?;
        last = Some(key.to_vec());
        let known = VectorKey::try_from(key).map_err(|_| vectors.rows.lost("that can be read"))?;
        if !vectors.has(txn, &known)? {
            new.push((known, components.to_vec()));
        }
    }
    if !new.is_empty() {
        let first = vectors.name(txn, new.iter().map(|(key, _)| key))?;
        vectors.put(txn, first, new.iter().map(|(key, components)| (key, components.clone())))?;
    }
    Ok(last)
}

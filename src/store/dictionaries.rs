//! Dictionaries: what many texts of a store have in common, so that small ones become smaller.
//!
//! In: the first texts of a store. Out: a dictionary, made once, kept under a number, prepared for packing and unpacking.
//!
//! ```text
//!  the first thousand texts ──► train ──► table `dictionaries`: number ─► dictionary ──► every text that comes is packed with the last one
//! ```
//!
//! **Invariant:** a dictionary is never changed or removed: packed texts name theirs for ever. What is prepared for readers
//! comes from committed rows, since only a packed text that was read asks for it; what a writer prepared is used only where
//! its bytes are those of the row, so a dictionary that a lost transaction took with it packs nothing.
//!
//! A store with fewer texts gets along without, and so does one whose texts have nothing in common: its row is empty
//! (`docs/decisions/0041-what-a-format-leaves-room-for.md`).

use super::StoreError;
use super::numbering::number_of;
use super::packing::{Packer, Unpacker};
use super::tables::Table;
use heed::{RoTxn, RwTxn};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A store that has so many texts gets a dictionary.
pub(super) const LEAST_TEXTS: u32 = if cfg!(test) { 32 } else { 1024 };
/// Bytes of texts that it is made of, at the most: they bound the time, and how much the transaction that makes it takes.
const SAMPLE_BYTES: usize = 1 << 20;
/// Bytes of one text that count.
const TEXT_BYTES: usize = 4096;
/// Bytes of a dictionary at the most.
const DICTIONARY_BYTES: usize = 64 << 10;
/// Where a dictionary's own id stands (RFC 8878, section 5).
const ID: std::ops::Range<usize> = 4..8;

/// The dictionaries of a store, and those that this process has prepared.
#[derive(Clone)]
pub(super) struct Dictionaries {
    /// number → dictionary, or nothing where none could be made.
    pub(super) rows: Table,
    prepared: Arc<Prepared>,
}

#[derive(Default)]
struct Prepared {
    unpackers: Mutex<BTreeMap<u32, Arc<Unpacker>>>,
    /// The last one that packed, behind its bytes.
    packer: Mutex<Option<(Vec<u8>, Arc<Packer>)>>,
}

impl Dictionaries {
    pub(super) fn new(rows: Table) -> Self {
        Self { rows, prepared: Arc::default() }
    }

    /// Returns the dictionary that a packed text names, or nothing where there is none of that number.
    pub(super) fn unpacker(&self, txn: &RoTxn<'_>, number: u32) -> Option<Arc<Unpacker>> {
        let mut unpackers = lock(&self.prepared.unpackers);
        if let Some(known) = unpackers.get(&number) {
            return Some(known.clone());
        }
        let dictionary = self.rows.bytes(txn, &number.to_be_bytes()).ok()??;
        let unpacker = Arc::new(Unpacker::new(dictionary)?);
        unpackers.insert(number, unpacker.clone());
        Some(unpacker)
    }

    /// Returns what texts are packed with from now on, if there is a dictionary.
    pub(super) fn packer(&self, txn: &RoTxn<'_>) -> Result<Option<Arc<Packer>>, StoreError> {
        let Some((key, dictionary)) = self.rows.last(txn)? else { return Ok(None) };
        if dictionary.is_empty() {
            return Ok(None);
        }
        let number = number_of(key).ok_or_else(|| self.rows.lost("that can be read"))?;
        let mut packer = lock(&self.prepared.packer);
        if let Some((bytes, known)) = &*packer
            && bytes == dictionary
        {
            return Ok(Some(known.clone()));
        }
        let new = Arc::new(Packer::new(number, dictionary).ok_or_else(|| self.rows.lost(number))?);
        *packer = Some((dictionary.to_vec(), new.clone()));
        Ok(Some(new))
    }

    /// Makes the store's dictionary of its first texts.
    pub(super) fn make<'a>(&self, txn: &mut RwTxn<'_>, texts: impl Iterator<Item = &'a str>) -> Result<(), StoreError> {
        let dictionary = train(texts).unwrap_or_default();
        self.rows.put_bytes(txn, &0_u32.to_be_bytes(), &dictionary)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is put in whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a dictionary: the same of the same texts. Nothing where they have too little in common.
pub(super) fn train<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Vec<u8>> {
    let (mut samples, mut sizes) = (Vec::with_capacity(SAMPLE_BYTES), Vec::new());
    for text in texts.filter(|text| !text.is_empty()) {
        let bytes = &text.as_bytes()[..text.len().min(TEXT_BYTES)];
        if samples.len() + bytes.len() > SAMPLE_BYTES {
            break;
        }
        samples.extend_from_slice(bytes);
        sizes.push(bytes.len());
    }
    let mut dictionary = zstd::dict::from_continuous(&samples, &sizes, DICTIONARY_BYTES).ok()?;
    // Frames would name it by an id of its own, in four bytes each; the store's number is in front of them anyway.
    dictionary.get_mut(ID)?.fill(0);
    Some(dictionary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_give_an_equal_dictionary_and_too_few_give_none() {
        let texts: Vec<String> = (0..1000).map(|n| format!("fn item_{n}(commands: &mut Commands) {{}}")).collect();
        let made = || train(texts.iter().map(String::as_str));
        assert!(made().is_some_and(|dictionary| dictionary.len() <= DICTIONARY_BYTES));
        assert_eq!(made(), made());
        assert_eq!(train(["one", "two"].into_iter()), None);
        assert_eq!(train(std::iter::empty()), None);
    }
}

//! From format 3 to 4: cleaned texts are composed of the texts of their chunks, and texts are packed with a dictionary.
//!
//! In: a database that holds each text by itself, cleaned texts beside those of chunks. Out: the texts of chunks, and cleaned
//! texts in a table of their own, composed where it is known of which chunks.
//!
//! ```text
//!  dictionary ──► each chunk list: the text that it was cut from ──► each text: packed again, in the table where it belongs
//! ```
//!
//! **Invariant:** every text is there at any time, and is what it was. Nothing is cut: a list says which texts follow each
//! other on which lines, so what lies between is line ends, unless it holds spaces or something was left out. A guess is
//! right if its hash leads to a text that is stored; a text that is not guessed is stored by itself.

use super::super::numbering::number_of;
use super::super::packing::{NumberedChunk, NumberedList, TextPlace, unpack_entry, unpack_list};
use super::super::tables::Tables;
use super::super::texts::Texts;
use super::{Old, StoreError, TRANSACTION_ROWS};
use dataflows::data::TextHash;
use heed::{RoTxn, RwTxn};
use roaring::RoaringBitmap;

/// Lists that one transaction looks at, and texts that it packs again: they are larger than other rows.
const PORTION: usize = TRANSACTION_ROWS.div_ceil(8);
/// Stands in front of every key; LMDB looks for no empty one.
const FIRST: &[u8] = &[0];
/// Line ends between two chunks that are guessed at the most.
const MOST_LINES: u32 = 1000;

/// Makes the dictionary of a store that has texts enough.
pub(super) fn dictionary(
    old: &Old<'_>,
    txn: &mut RwTxn<'_>,
    _from: Option<&[u8]>,
) -> Result<Option<Vec<u8>>, StoreError> {
    old.tables.texts.packer(txn, &[])?;
    Ok(None)
}

/// Composes cleaned texts, list by list. It stops behind the name of a list.
pub(super) fn compositions(
    old: &Old<'_>,
    txn: &mut RwTxn<'_>,
    behind: Option<&[u8]>,
) -> Result<Option<Vec<u8>>, StoreError> {
    let (tables, texts) = (old.tables, &old.tables.texts);
    let mut lists = Vec::new();
    tables.chunks.each_from(txn, behind.unwrap_or(FIRST), |key, packed| {
        if Some(key) != behind {
            lists.push((key.to_vec(), unpack_list(packed)));
        }
        Ok(lists.len() < PORTION)
    })?;
    let Some((last, _)) = lists.last() else { return Ok(None) };
    let last = last.clone();
    let packer = texts.dictionaries.packer(txn)?;
    for (_, list) in lists {
        let Some(NumberedList::Chunks(chunks, _)) = list else { continue };
        let Some((number, text, places)) = cut_from(texts, txn, &chunks)? else { continue };
        if !old.texts_of_chunks()?.contains(number) {
            texts.put_cleaned(txn, number, &text, &places, packer.as_deref())?;
        }
    }
    Ok(Some(last))
}

/// The number of a cleaned text, the text, and where its chunks stand in it.
type Whole = (u32, String, Vec<TextPlace<u32>>);

/// Returns the text that a list was cut from, where its chunks stand in it, and its number, if it can be guessed.
fn cut_from(texts: &Texts, txn: &RoTxn<'_>, chunks: &[NumberedChunk]) -> Result<Option<Whole>, StoreError> {
    let (mut text, mut places) = (String::new(), Vec::new());
    let mut line = 1;
    for NumberedChunk { text: number, lines, .. } in chunks {
        let gap = lines.first.checked_sub(line).filter(|gap| *gap <= MOST_LINES);
        let (Some(gap), Some(chunk)) = (gap, texts.numbered(txn, *number)?) else { return Ok(None) };
        // Two chunks of one line may have spaces between them.
        if gap == 0 && !places.is_empty() {
            return Ok(None);
        }
        text.extend(std::iter::repeat_n('\n', gap as usize));
        let start = text.len();
        text.push_str(&chunk);
        places.push(TextPlace { range: start..text.len(), text: *number });
        line = lines.last;
    }
    for tail in ["\n", ""] {
        text.push_str(tail);
        if let Some(number) = texts.number(txn, TextHash::of(&text))? {
            return Ok(Some((number, text, places)));
        }
        text.truncate(text.len() - tail.len());
    }
    Ok(None)
}

/// Packs texts again, those of chunks where they are, others as cleaned texts. It stops behind a number.
pub(super) fn rows(old: &Old<'_>, txn: &mut RwTxn<'_>, behind: Option<&[u8]>) -> Result<Option<Vec<u8>>, StoreError> {
    let texts = &old.tables.texts;
    let mut keys = Vec::new();
    texts.rows.each_from(txn, behind.unwrap_or(FIRST), |key, _| {
        if Some(key) != behind {
            keys.push(key.to_vec());
        }
        Ok(keys.len() < PORTION)
    })?;
    let packer = texts.dictionaries.packer(txn)?;
    for key in &keys {
        let number = number_of(key).ok_or_else(|| texts.rows.lost("that can be read"))?;
        // What cannot be read stays as it is, for `verify` to name.
        let Some(text) = texts.numbered(txn, number)? else { continue };
        if old.texts_of_chunks()?.contains(number) {
            texts.put(txn, number, &text, packer.as_deref())?;
        } else {
            if texts.cleaned.bytes(txn, key)?.is_none() {
                texts.put_cleaned(txn, number, &text, &[], packer.as_deref())?;
            }
            texts.rows.remove(txn, key)?;
        }
    }
    Ok(keys.pop())
}

/// Returns the numbers of the texts that chunk lists and entries name. A row that cannot be read names none.
pub(super) fn texts_of_chunks(tables: &Tables) -> Result<RoaringBitmap, StoreError> {
    let (mut named, txn) = (RoaringBitmap::new(), tables.read()?);
    tables.chunks.each(&txn, |_, packed| {
        if let Some(NumberedList::Chunks(chunks, _)) = unpack_list(packed) {
            named.extend(chunks.iter().map(|chunk| chunk.text));
        }
        Ok(true)
    })?;
    tables.entries.each(&txn, |_, packed| {
        named.extend(unpack_entry(packed).map(|entry| entry.text));
        Ok(true)
    })?;
    Ok(named)
}

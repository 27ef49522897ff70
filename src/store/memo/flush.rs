//! Writes a generation of results as rows, inside a transaction.
//!
//! In: results by identity. Out: rows, which refer to texts and heads by number.
//!
//! **Invariant:** the same transaction or an earlier one stores everything that a row refers to. A list, or a cleaned text, whose
//! text was not announced stops the flush.

use super::super::StoreError;
use super::super::identities::Id;
use super::super::packing::{Head, NumberedChunk, NumberedList, PackedCleaned, TextPlace, pack_head, pack_list};
use super::super::seen::head_key;
use super::super::tables::Tables;
use super::super::vectors::{NO_VECTOR, vector_id};
use super::{Generation, Shared, Whole};
use dataflows::data::{ChunkingId, Cleaned, DocumentId, EmbedInput, TextHash};
use dataflows::memo::{Chunked, Embedded};
use rustc_hash::FxHashMap;
use snapshots::Ordinal;
use std::collections::hash_map::Entry as MapEntry;
use std::sync::Arc;

/// Inputs without a vector, and components of vectors that no entry has.
type Unplaced = (Vec<(Id, u32)>, Vec<(Id, Vec<u8>)>);
/// The numbers of texts, and what is to be stored under some of them, in order.
struct Named<'g> {
    numbers: FxHashMap<TextHash, u32>,
    /// Texts of chunks.
    chunks: Vec<(u32, &'g str)>,
    /// Cleaned texts.
    wholes: Vec<(u32, &'g Whole)>,
}

impl Shared {
    /// Writes a generation, each table in key order, which saves the database half of its page splits.
    ///
    /// Tables with hash keys go first: they reuse the pages that they freed in earlier transactions, so the pages that look-ups
    /// touch stay together, and texts and vectors come after them.
    pub(super) fn write_out(
        &self,
        tables: &Tables,
        generation: &Generation,
        placed: &FxHashMap<EmbedInput, Ordinal>,
        txn: &mut heed::RwTxn<'_>,
    ) -> Result<(), StoreError> {
        tables.seen.begin();
        let lists = sorted(&generation.chunks, ChunkingId::to_bytes);
        let Named { numbers: texts, chunks: chunk_texts, wholes } = name_texts(tables, &lists, generation, txn)?;
        let (without, parked) = self.unplaced(tables, generation, placed, txn)?;
        if !(placed.is_empty() && without.is_empty() && parked.is_empty()) {
            let placed = placed.iter().map(|(input, at)| (vector_id(self.model, *input), at.get()));
            tables.vectors.note(txn, self.model)?;
            tables.vectors.set(txn, placed.chain(without))?;
        }
        for (id, cleaned) in sorted(&generation.cleaned, DocumentId::to_bytes) {
            let packed = match cleaned {
                Cleaned::Text { text, bytes } => {
                    PackedCleaned::Text { text: number_of(tables, &texts, *text, txn)?, bytes: *bytes }
                }
                Cleaned::Converted { text, bytes, from } => {
                    let text = number_of(tables, &texts, *text, txn)?;
                    PackedCleaned::Converted { text, bytes: *bytes, from: from.clone() }
                }
                Cleaned::Skipped(reason) => PackedCleaned::Skipped(*reason),
                Cleaned::Fault(error) => PackedCleaned::Fault(error.clone()),
            };
            tables.cleaned.put(txn, &id.to_bytes(), &packed)?;
        }
        let mut heads: FxHashMap<Head, u32> = FxHashMap::default();
        for (id, chunked) in lists {
            let list = match &**chunked {
                Chunked::Fault(error) => NumberedList::Fault(error.clone()),
                Chunked::Chunks(chunks) | Chunked::WithoutSyntax(chunks, _) => {
                    let mut numbered = Vec::with_capacity(chunks.len());
                    for chunk in chunks {
                        let head = match heads.entry(Head::from(chunk)) {
                            MapEntry::Occupied(known) => *known.get(),
                            MapEntry::Vacant(new) => {
                                let encoded = pack_head(new.key());
                                let seen = tables.seen.head(head_key(&encoded));
                                *new.insert(seen.map_or_else(|| tables.heads.number(txn, &encoded), Ok)?)
                            }
                        };
                        let text = *texts.get(&chunk.text).ok_or_else(|| tables.texts.rows.lost(chunk.text))?;
                        numbered.push(NumberedChunk { head, text, lines: chunk.lines });
                    }
                    NumberedList::Chunks(numbered, chunked.no_syntax())
                }
            };
            tables.chunks.put_bytes(txn, &id.to_bytes(), &pack_list(&list))?;
        }
        write_texts(tables, &texts, &chunk_texts, &wholes, txn)?;
        tables.vectors.park(txn, parked)
    }

    /// Returns the inputs of a generation that have no vector, and the components of vectors that no entry has; without what
    /// is stored: two threads may have made one, and a flush have written it in between.
    fn unplaced(
        &self,
        tables: &Tables,
        generation: &Generation,
        placed: &FxHashMap<EmbedInput, Ordinal>,
        txn: &heed::RwTxn<'_>,
    ) -> Result<Unplaced, StoreError> {
        let (mut without, mut parked) = (Vec::new(), Vec::new());
        for (input, embedded) in &generation.embedded {
            let id = vector_id(self.model, *input);
            if placed.contains_key(input) || tables.vectors.get(txn, id)?.is_some() {
                continue;
            }
            match embedded {
                Embedded::NoVector => without.push((id, NO_VECTOR)),
                Embedded::Vector(vector) => {
                    let bytes = vector.components().iter().flat_map(|component| component.to_le_bytes());
                    parked.push((id, bytes.collect()));
                }
                // It is tried again, and not stored.
                Embedded::Fault(_) => {}
            }
        }
        Ok((without, parked))
    }
}

/// Returns the number of a text of this generation, or of a stored one.
fn number_of(
    tables: &Tables,
    named: &FxHashMap<TextHash, u32>,
    text: TextHash,
    txn: &mut heed::RwTxn<'_>,
) -> Result<u32, StoreError> {
    let known = named.get(&text).copied();
    let number = known.map_or_else(|| tables.texts.number(txn, text), |number| Ok(Some(number)))?;
    number.ok_or_else(|| tables.texts.rows.lost(text))
}

/// Writes texts of chunks, then cleaned texts, which are composed of them.
fn write_texts(
    tables: &Tables,
    numbers: &FxHashMap<TextHash, u32>,
    chunks: &[(u32, &str)],
    wholes: &[(u32, &Whole)],
    txn: &mut heed::RwTxn<'_>,
) -> Result<(), StoreError> {
    if chunks.is_empty() && wholes.is_empty() {
        return Ok(());
    }
    let texts = &tables.texts;
    let new: Vec<&str> = chunks.iter().map(|(_, text)| *text).collect();
    let packer = texts.packer(txn, &new)?;
    for (number, text) in chunks {
        texts.put(txn, *number, text, packer.as_deref())?;
    }
    for (number, Whole { text, places }) in wholes {
        let mut numbered = Vec::with_capacity(places.len());
        for TextPlace { range, text } in places {
            numbered.push(TextPlace { range: range.clone(), text: number_of(tables, numbers, *text, txn)? });
        }
        texts.put_cleaned(txn, *number, text, &numbered, packer.as_deref())?;
    }
    Ok(())
}

/// Assigns numbers to new texts, and returns the number of every text in the lists or this generation.
///
/// New texts get their numbers in the order of the lists, so that a list of new texts is a run.
fn name_texts<'g>(
    tables: &Tables,
    lists: &[(&ChunkingId, &Arc<Chunked>)],
    generation: &'g Generation,
    txn: &mut heed::RwTxn<'_>,
) -> Result<Named<'g>, StoreError> {
    let texts = &tables.texts;
    let first = texts.next(txn)?;
    let mut named = Named { numbers: FxHashMap::default(), chunks: Vec::new(), wholes: Vec::new() };
    let mut hashes = Vec::new();
    let mut next = |hash| {
        let count = u32::try_from(hashes.len()).ok();
        hashes.push(hash);
        count.and_then(|count| first.checked_add(count)).ok_or_else(|| texts.rows.full())
    };
    let in_lists = lists.iter().flat_map(|(_, chunked)| chunked.chunks().unwrap_or_default());
    for hash in in_lists.map(|chunk| chunk.text).chain(generation.texts.keys().copied()) {
        let MapEntry::Vacant(unknown) = named.numbers.entry(hash) else { continue };
        // Only texts of chunks are seen.
        if let Some(number) = tables.seen.text(hash) {
            unknown.insert(number);
            continue;
        }
        let stored = texts.number(txn, hash)?;
        let number = match (stored, generation.texts.get(&hash)) {
            (Some(number), None) => number,
            (stored, Some(text)) => {
                // What has a number already is stored as a cleaned text.
                let number = stored.map_or_else(|| next(hash), Ok)?;
                named.chunks.push((number, &**text));
                number
            }
            (None, None) => return Err(texts.rows.lost(hash)),
        };
        unknown.insert(number);
    }
    for (hash, whole) in &generation.wholes {
        // What is that of a chunk as well is stored as that.
        let MapEntry::Vacant(unknown) = named.numbers.entry(*hash) else { continue };
        let number = texts.number(txn, *hash)?.map_or_else(|| next(*hash), Ok)?;
        unknown.insert(number);
        named.wholes.push((number, whole));
    }
    named.chunks.sort_unstable_by_key(|(number, _)| *number);
    named.wholes.sort_unstable_by_key(|(number, _)| *number);
    texts.name(txn, &hashes)?;
    Ok(named)
}

/// Returns the rows of a map in the database's key order.
fn sorted<K: Copy, V>(map: &FxHashMap<K, V>, bytes: impl Fn(K) -> [u8; 16]) -> Vec<(&K, &V)> {
    let mut rows: Vec<_> = map.iter().collect();
    rows.sort_unstable_by_key(|(key, _)| bytes(**key));
    rows
}

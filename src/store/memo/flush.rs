//! From a generation of results to rows, inside the transaction that stores it.
//!
//! In: results by identity. Out: rows, which name texts and heads by number.
//!
//! **Invariant:** what a row names is stored by the same transaction or was before: a list, or a cleaned text, whose text
//! nobody told stops the flush.

use super::super::packing::{Head, NumberedChunk, NumberedList, PackedCleaned, TextPlace, pack_list};
use super::super::seen::head_key;
use super::super::tables::Tables;
use super::super::vectors::{VectorKey, vector_key};
use super::super::{StoreError, codec};
use super::{Generation, Shared, Whole};
use dataflows::data::{ChunkingId, Cleaned, DocumentId, EmbedId, TextHash};
use dataflows::memo::{Chunked, Embedded};
use half::f16;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::sync::Arc;

/// The numbers of texts, and what is to be stored under some of them, in order.
struct Named<'g> {
    numbers: FxHashMap<TextHash, u32>,
    /// Texts of chunks.
    chunks: Vec<(u32, &'g str)>,
    /// Cleaned texts.
    wholes: Vec<(u32, &'g Whole)>,
}

impl Shared {
    /// Writes a generation, each table in the order of its keys, which spares the database half of its page splits.
    ///
    /// What is looked up by hashes goes first: it takes the pages that it left in the transactions before, so the pages that any look-up may touch
    /// stay together, and texts and vectors lie behind them.
    pub(super) fn write_out(
        &self,
        tables: &Tables,
        generation: &Generation,
        txn: &mut heed::RwTxn<'_>,
    ) -> Result<(), StoreError> {
        tables.seen.begin();
        let lists = sorted(&generation.chunks, ChunkingId::to_bytes);
        let Named { numbers: texts, chunks: chunk_texts, wholes } = name_texts(tables, &lists, generation, txn)?;
        let vectors = tables.vectors.unknown(txn, generation.embedded.iter().filter_map(|row| self.vector(row)))?;
        let first_vector = tables.vectors.name(txn, vectors.iter().map(|(key, _)| key))?;
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
                                let encoded = codec::encode(new.key());
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
        let bytes = |components: &[f16]| components.iter().flat_map(|component| component.to_le_bytes()).collect();
        tables.vectors.put(txn, first_vector, vectors.iter().map(|(key, components)| (key, bytes(components))))
    }

    /// Returns what a vector is known by, and its components; nothing for a fault, which is not stored.
    fn vector<'g>(&self, (id, embedded): (&EmbedId, &'g Embedded)) -> Option<(VectorKey, &'g [f16])> {
        let components = match embedded {
            Embedded::Vector(vector) => vector.components(),
            Embedded::NoVector => &[],
            Embedded::Fault(_) => return None,
        };
        Some((vector_key(self.model, *id), components))
    }
}

/// Returns the number of a text that this generation names, or that is stored.
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

/// Gives numbers to the texts that are new, and returns the number of every text that the lists or this generation name.
///
/// New texts get their numbers in the order in which the lists name them, so that a list of new texts is a run.
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

/// Returns the rows of a map in the order of their keys as the database has them.
fn sorted<K: Copy, V>(map: &FxHashMap<K, V>, bytes: impl Fn(K) -> [u8; 16]) -> Vec<(&K, &V)> {
    let mut rows: Vec<_> = map.iter().collect();
    rows.sort_unstable_by_key(|(key, _)| bytes(**key));
    rows
}

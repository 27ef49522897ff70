//! From a generation of results to rows, inside the transaction that stores it.
//!
//! In: results by identity. Out: rows, which name texts and heads by number.
//!
//! **Invariant:** what a row names is stored by the same transaction or was before: a list, or a cleaned text, whose text
//! nobody told stops the flush.

use super::super::numbering::{next_text, put_texts};
use super::super::packing::{Head, NumberedChunk, NumberedList, PackedCleaned, pack_list, pack_text};
use super::super::seen::head_key;
use super::super::{StoreError, codec};
use super::{Generation, Shared, vector_key};
use dataflows::data::{ChunkingId, Cleaned, TextHash};
use dataflows::memo::{Chunked, Embedded};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::sync::Arc;

impl Shared {
    /// Writes a generation, each table in the order of its keys, which spares the database half of its page splits.
    pub(super) fn write_out(&self, generation: &Generation, txn: &mut heed::RwTxn<'_>) -> Result<(), StoreError> {
        let tables = &self.tables;
        tables.seen.begin();
        let lists = sorted(&generation.chunks);
        let texts = self.write_texts(&lists, &generation.texts, txn)?;
        for (id, cleaned) in sorted(&generation.cleaned) {
            let packed = match cleaned {
                Cleaned::Text { text, bytes } => {
                    let known = texts.get(text).copied();
                    let number = known.map_or_else(|| tables.text_number(txn, *text), |number| Ok(Some(number)))?;
                    PackedCleaned::Text { text: number.ok_or_else(|| tables.texts.lost(text))?, bytes: *bytes }
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
                Chunked::Chunks(chunks) => {
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
                        let text = *texts.get(&chunk.text).ok_or_else(|| tables.texts.lost(chunk.text))?;
                        numbered.push(NumberedChunk { head, text, lines: chunk.lines });
                    }
                    NumberedList::Chunks(numbered)
                }
            };
            tables.chunks.put_bytes(txn, &id.to_bytes(), &pack_list(&list))?;
        }
        for (id, embedded) in sorted(&generation.embedded) {
            let components = match embedded {
                Embedded::Vector(vector) => vector.components(),
                Embedded::NoVector => &[],
                Embedded::Fault(_) => continue,
            };
            let bytes: Vec<u8> = components.iter().flat_map(|component| component.to_le_bytes()).collect();
            tables.vectors.put_bytes(txn, &vector_key(self.model, *id), &bytes)?;
        }
        Ok(())
    }

    /// Writes the texts that are new, and returns the number of every text that the lists or this generation name.
    ///
    /// New texts get their numbers in the order in which the lists name them, so that a list of new texts is a run.
    fn write_texts(
        &self,
        lists: &[(&ChunkingId, &Arc<Chunked>)],
        texts: &FxHashMap<TextHash, Arc<str>>,
        txn: &mut heed::RwTxn<'_>,
    ) -> Result<FxHashMap<TextHash, u32>, StoreError> {
        let tables = &self.tables;
        let first = next_text(&tables.text_hashes, txn)?;
        let mut numbers: FxHashMap<TextHash, u32> = FxHashMap::default();
        let mut new = Vec::new();
        let in_lists = lists.iter().flat_map(|(_, chunked)| match &***chunked {
            Chunked::Chunks(chunks) => chunks.as_slice(),
            Chunked::Fault(_) => &[],
        });
        let others = sorted(texts);
        for hash in in_lists.map(|chunk| chunk.text).chain(others.iter().map(|(hash, _)| **hash)) {
            let MapEntry::Vacant(unknown) = numbers.entry(hash) else { continue };
            let seen = tables.seen.text(hash);
            if let Some(number) = seen.map_or_else(|| tables.text_number(txn, hash), |number| Ok(Some(number)))? {
                unknown.insert(number);
            } else if texts.contains_key(&hash) {
                let count = u32::try_from(new.len()).ok();
                let number =
                    count.and_then(|count| first.checked_add(count)).ok_or_else(|| tables.text_hashes.full())?;
                unknown.insert(number);
                new.push(hash);
            } else {
                return Err(tables.texts.lost(hash));
            }
        }
        for (hash, text) in others {
            match numbers.get(hash) {
                Some(number) if *number >= first => {
                    tables.texts.put_bytes(txn, &hash.to_bytes(), &pack_text(*number, text))?;
                }
                _ => {}
            }
        }
        put_texts(&tables.text_hashes, txn, first, &new)?;
        Ok(numbers)
    }
}

fn sorted<K: Ord, V>(map: &FxHashMap<K, V>) -> Vec<(&K, &V)> {
    let mut rows: Vec<_> = map.iter().collect();
    rows.sort_unstable_by(|left, right| left.0.cmp(right.0));
    rows
}

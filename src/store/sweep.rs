//! The sweep: finds results that no kept row needs, and removes them from the database in portions.
//!
//! In: the needs of kept entries and documents. Out: a list of superfluous rows, which gets shorter.
//!
//! ```text
//!  kept documents ──► cleaned ──► texts ◄── chunk lists ◄── kept documents
//!                        └──► texts that cleaned texts are composed of
//!  kept entries ────► texts, inputs of the model         heads ◄── chunk lists, rows of entries
//! ```
//!
//! **Invariant:** a row that a kept version needs is never removed, wherever the sweep stops: rows are removed before the rows
//! that they refer to, and everything that a remaining row refers to is needed. A removed result can be computed again from its
//! input. Numbers of removed texts and heads stay used ([`numbering`](super::numbering), [`texts`](super::texts)); paths and
//! places stay.
//!
//! Finding writes nothing and may run beside any other work. If results were added or looked up since, the collector first keeps
//! what they need ([`Superfluous::keep`]), with everything that it refers to. While rows are removed, no code may look up a row
//! and rely on it: a row that is found in the database is not written again.

use super::StoreError;
use super::packing::{NumberedList, PackedCleaned, unpack_entry, unpack_list};
use super::tables::{Table, Tables};
use super::texts::TextHashes;
use super::vectors::{NO_VECTOR, vector_id};
use super::{CodecError, decode};
use dataflows::data::{ChunkingId, DocumentId, EmbedInput, Entry, ModelId, TextHash};
use heed::RoTxn;
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use snapshots::Ordinal;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Rows that are removed between two checks of the time.
const ROWS_BETWEEN_LOOKS: usize = 16;

type Key = [u8; 16];

/// The keys of all needed rows.
#[derive(Clone, Default)]
pub struct Needed {
    cleaned: Option<Vec<Key>>,
    chunks: Vec<Key>,
    texts: Vec<Key>,
    /// The rows of entries, which refer to their heads.
    rows: RoaringBitmap,
    /// What the model was asked for entries, each with the ordinal of one.
    inputs: Vec<(EmbedInput, u32)>,
}

/// Numbers of removed rows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Swept {
    /// Cleaning results.
    pub cleaned: u64,
    /// Chunk lists.
    pub chunks: u64,
    /// Texts.
    pub texts: u64,
    /// Heads.
    pub heads: u64,
    /// Where vectors are, and vectors that no entry has, of all models.
    pub vectors: u64,
}

impl Needed {
    /// Needs what an entry names, its text, and the vectors of its input.
    pub fn entry(&mut self, ordinal: Ordinal, entry: &Entry, input: EmbedInput) {
        self.texts.push(entry.text.to_bytes());
        self.inputs.push((input, ordinal.get()));
    }

    /// Returns what the needed inputs are stored under, each with the ordinal of an entry, ascending.
    fn vectors(&self, models: &[ModelId]) -> Vec<(Key, u32)> {
        let of_model =
            |&model: &ModelId| self.inputs.iter().map(move |(input, ordinal)| (vector_id(model, *input), *ordinal));
        sorted(models.iter().flat_map(of_model).collect())
    }

    /// Adds what the rows of these entries refer to by number.
    pub fn rows(&mut self, entries: &RoaringBitmap) {
        self.rows |= entries;
    }

    /// Needs a chunk list.
    pub fn chunks(&mut self, chunking: ChunkingId) {
        self.chunks.push(chunking.to_bytes());
    }

    /// Adds the only needed cleaning results; without this, all of them stay.
    pub fn cleaned(&mut self, ids: impl Iterator<Item = DocumentId>) {
        self.cleaned.get_or_insert_default().extend(ids.map(DocumentId::to_bytes));
    }
}

/// The size of one removal: the pages of a transaction stay in memory until its end, and waiting callers wait for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Portion {
    /// Most rows.
    pub rows: usize,
    /// After this time no more rows; the end of the transaction takes some more.
    pub time: Duration,
}

impl Portion {
    /// If no caller waits: transactions as large as memory should bear.
    pub const LARGE: Self = Self { rows: 4096, time: Duration::MAX };
    /// Beside a thread that may want to publish.
    pub const SMALL: Self = Self { rows: 256, time: Duration::from_millis(4) };

    /// Returns the time after which no more rows are taken.
    pub(crate) fn ends(self) -> Option<Instant> {
        Instant::now().checked_add(self.time)
    }
}

/// Rows that nothing needed at the time of the survey, in the order of removal.
#[derive(Default)]
pub struct Superfluous {
    cleaned: Rows<Key, Key>,
    chunks: Rows<Key, Key>,
    /// In the order of their numbers, in which they lie; those that are stored as cleaned texts go first, since they may name
    /// others.
    texts: Rows<(bool, u32, Key), Key>,
    heads: Rows<u32, u32>,
    vectors: Moves,
    parked: Rows<Key, Key>,
}

/// Inputs whose vector an entry has that goes: of each the entry that has it then, or nothing where the input goes as well.
#[derive(Default)]
struct Moves {
    inputs: Vec<(Key, Option<u32>)>,
    /// What is needed again, with an entry that has it.
    kept: FxHashMap<Key, u32>,
}

/// Rows of one table.
struct Rows<K, N> {
    keys: Vec<K>,
    /// Rows that are needed again.
    kept: FxHashSet<N>,
}

impl<K, N> Default for Rows<K, N> {
    fn default() -> Self {
        Self { keys: Vec::new(), kept: FxHashSet::default() }
    }
}

impl<K, N: Eq + Hash> Rows<K, N> {
    /// Returns the next row to remove; `name` gives its key among the needed rows.
    fn next(&mut self, name: impl Fn(&K) -> N) -> Option<K> {
        loop {
            let key = self.keys.pop()?;
            if !self.kept.contains(&name(&key)) {
                return Some(key);
            }
        }
    }

    fn keep(&mut self, needed: impl IntoIterator<Item = N>) {
        if !self.keys.is_empty() {
            self.kept.extend(needed);
        }
    }
}

impl Superfluous {
    /// Returns how many rows of each kind there are.
    #[must_use]
    pub fn count(&self) -> Swept {
        Swept {
            cleaned: self.cleaned.keys.len() as u64,
            chunks: self.chunks.keys.len() as u64,
            texts: self.texts.keys.len() as u64,
            heads: self.heads.keys.len() as u64,
            vectors: (self.vectors.inputs.iter().filter(|(_, to)| to.is_none()).count() + self.parked.keys.len())
                as u64,
        }
    }

    /// Returns whether nothing is left to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == Swept::default() && self.vectors.inputs.is_empty()
    }

    /// Finds superfluous rows; returns nothing if `go_on`, which is called for each row, returns false.
    pub(super) fn find(
        tables: &Tables,
        needed: &Needed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>, StoreError> {
        let mut found = Self::default();
        let (mut heads, mut numbers, mut texts) = (Vec::new(), Vec::new(), needed.texts.clone());
        let mut cleaned_texts = Vec::new();
        if let Some(cleaned) = &needed.cleaned {
            found.cleaned.keys = superfluous(tables, &tables.cleaned, cleaned.clone(), |bytes| {
                cleaned_texts.extend(text_of(tables, bytes)?);
                Ok(go_on())
            })?;
        } else {
            tables.cleaned.each(&*tables.read()?, |_, bytes| {
                cleaned_texts.extend(text_of(tables, bytes)?);
                Ok(go_on())
            })?;
        }
        found.chunks.keys = superfluous(tables, &tables.chunks, needed.chunks.clone(), |bytes| {
            names_of(tables, bytes, &mut heads, &mut numbers)?;
            Ok(go_on())
        })?;
        {
            let txn = tables.read()?;
            heads_of(tables, &txn, &needed.rows, &mut heads)?;
            // The last one always stays, so that its number is not assigned again.
            heads.extend(
                tables.heads.values.last(&txn)?.and_then(|(key, _)| key.try_into().ok()).map(u32::from_be_bytes),
            );
            numbers.extend(with_names(tables, &txn, cleaned_texts)?);
            texts.extend(hashes_of(tables, &txn, numbers)?);
        }
        let texts = sorted(texts);
        {
            let txn = tables.read()?;
            tables.texts.numbers.each(&txn, |hash, number| {
                if texts.binary_search(&hash).is_err() {
                    let is_cleaned = tables.texts.cleaned.bytes(&txn, &number.to_be_bytes())?.is_some();
                    found.texts.keys.push((is_cleaned, number, hash));
                }
                Ok(())
            })?;
        }
        found.texts.keys.sort_unstable();
        let heads = heads.into_iter().map(u32::to_be_bytes).collect();
        let heads = superfluous(tables, &tables.heads.values, heads, |_| Ok(go_on()))?;
        found.heads.keys = heads.into_iter().map(u32::from_be_bytes).collect();
        let txn = tables.read()?;
        let vectors = needed.vectors(&tables.vectors.models(&txn)?);
        let find =
            |id: &Key| vectors.get(vectors.partition_point(|(known, _)| known < id)).filter(|(known, _)| known == id);
        tables.vectors.inputs.each(&txn, |id, ordinal| {
            match find(&id) {
                None => found.vectors.inputs.push((id, None)),
                Some((_, other)) if ordinal != NO_VECTOR && !needed.rows.contains(ordinal) => {
                    found.vectors.inputs.push((id, Some(*other)));
                }
                Some(_) => {}
            }
            Ok(())
        })?;
        tables.vectors.parked.each(&txn, |id, _| {
            found.parked.keys.extend(Key::try_from(id).ok().filter(|id| find(id).is_none()));
            Ok(go_on())
        })?;
        Ok(go_on().then_some(found))
    }

    /// Keeps rows that became needed, and what they refer to.
    ///
    /// All rows added since must be among them: a new row may refer to older ones that were superfluous before.
    pub(super) fn keep(&mut self, tables: &Tables, needed: &Needed) -> Result<(), StoreError> {
        let (mut heads, mut cleaned_texts) = (Vec::new(), Vec::new());
        let txn = tables.read()?;
        for key in needed.cleaned.iter().flatten() {
            if let Some(bytes) = tables.cleaned.bytes(&txn, key)? {
                cleaned_texts.extend(text_of(tables, bytes)?);
            }
        }
        let mut numbers = with_names(tables, &txn, cleaned_texts)?;
        for key in &needed.chunks {
            if let Some(bytes) = tables.chunks.bytes(&txn, key)? {
                names_of(tables, bytes, &mut heads, &mut numbers)?;
            }
        }
        heads_of(tables, &txn, &needed.rows, &mut heads)?;
        self.cleaned.keep(needed.cleaned.iter().flatten().copied());
        self.chunks.keep(needed.chunks.iter().copied());
        self.texts.keep(needed.texts.iter().copied().chain(hashes_of(tables, &txn, numbers)?));
        self.heads.keep(heads);
        let vectors = needed.vectors(&tables.vectors.models(&txn)?);
        self.parked.keep(vectors.iter().map(|(id, _)| *id));
        if !self.vectors.inputs.is_empty() {
            self.vectors.kept.extend(vectors);
        }
        Ok(())
    }

    /// Removes some rows, in one transaction; returns how many of each kind.
    pub(super) fn remove(
        &mut self,
        tables: &Tables,
        portion: Portion,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Swept, StoreError> {
        let (ends, mut swept) = (portion.ends(), Swept::default());
        let mut transaction = tables.begin()?;
        let txn = &mut transaction.0;
        for removed in 0..portion.rows {
            let is_over = || ends.is_some_and(|ends| Instant::now() >= ends);
            if removed > 0 && removed.is_multiple_of(ROWS_BETWEEN_LOOKS) && (is_over() || !go_on()) {
                break;
            }
            // Rows are removed before the rows that they refer to, to the last one.
            if let Some(key) = self.cleaned.next(|key| *key) {
                tables.cleaned.remove(txn, &key)?;
                swept.cleaned += 1;
            } else if let Some(key) = self.chunks.next(|key| *key) {
                tables.chunks.remove(txn, &key)?;
                swept.chunks += 1;
            } else if let Some((_, number, hash)) = self.texts.next(|(_, _, hash)| *hash) {
                tables.texts.remove(txn, TextHash::from_bytes(hash), number)?;
                swept.texts += 1;
            } else if let Some(key) = self.heads.next(|key| *key) {
                tables.heads.values.remove(txn, &key.to_be_bytes())?;
                swept.heads += 1;
            } else if let Some((id, to)) = self.vectors.inputs.pop() {
                match self.vectors.kept.get(&id).copied().or(to) {
                    // One of those that stay has the same vector.
                    Some(ordinal) if tables.vectors.inputs.get(txn, id)? != Some(NO_VECTOR) => {
                        tables.vectors.set(txn, [(id, ordinal)])?;
                    }
                    Some(_) => {}
                    None => {
                        tables.vectors.remove(txn, id)?;
                        swept.vectors += 1;
                    }
                }
            } else if let Some(id) = self.parked.next(|id| *id) {
                tables.vectors.parked.remove(txn, &id)?;
                swept.vectors += 1;
            } else {
                break;
            }
        }
        tables.seen.forget();
        transaction.commit()?;
        // Rows read meanwhile may be removed now.
        tables.seen.forget();
        Ok(swept)
    }
}

impl Swept {
    /// Adds the counts of another transaction.
    pub fn add(&mut self, other: Self) {
        self.cleaned += other.cleaned;
        self.chunks += other.chunks;
        self.texts += other.texts;
        self.heads += other.heads;
        self.vectors += other.vectors;
    }
}

/// Returns the superfluous keys of a table, and calls `look` with every other row until that stops.
fn superfluous<const N: usize>(
    tables: &Tables,
    table: &Table,
    needed: Vec<[u8; N]>,
    mut look: impl FnMut(&[u8]) -> Result<bool, StoreError>,
) -> Result<Vec<[u8; N]>, StoreError> {
    let needed = sorted(needed);
    let mut superfluous = Vec::new();
    table.each(&*tables.read()?, |key, bytes| {
        if needed.binary_search_by(|known| known[..].cmp(key)).is_ok() {
            return look(bytes);
        }
        superfluous.extend(<[u8; N]>::try_from(key));
        Ok(true)
    })?;
    Ok(superfluous)
}

/// Returns the number of the text that a row of `cleaned` names, if it names one.
fn text_of(tables: &Tables, bytes: &[u8]) -> Result<Option<u32>, StoreError> {
    let cleaned = decode::<PackedCleaned>(bytes).map_err(|source| tables.cleaned.damaged(source))?;
    Ok(match cleaned {
        PackedCleaned::Text { text, .. } | PackedCleaned::Converted { text, .. } => Some(text),
        PackedCleaned::Skipped(_) | PackedCleaned::Fault(_) => None,
    })
}

/// Adds the numbers of a chunk list's heads and texts.
fn names_of(tables: &Tables, bytes: &[u8], heads: &mut Vec<u32>, texts: &mut Vec<u32>) -> Result<(), StoreError> {
    let list = unpack_list(bytes).ok_or_else(|| tables.chunks.damaged(CodecError::not("a chunk list")))?;
    if let NumberedList::Chunks(chunks, _) = list {
        heads.extend(chunks.iter().map(|chunk| chunk.head));
        texts.extend(chunks.iter().map(|chunk| chunk.text));
    }
    Ok(())
}

/// Adds the numbers of the heads in the rows of entries.
fn heads_of(tables: &Tables, txn: &RoTxn<'_>, rows: &RoaringBitmap, heads: &mut Vec<u32>) -> Result<(), StoreError> {
    for ordinal in rows {
        let Some(row) = tables.entries.bytes(txn, &ordinal.to_be_bytes())? else { continue };
        heads.push(unpack_entry(row).ok_or_else(|| tables.entries.damaged(CodecError::not("an entry")))?.head);
    }
    Ok(())
}

/// Returns the numbers of cleaned texts, and of those that they are composed of.
fn with_names(tables: &Tables, txn: &RoTxn<'_>, cleaned: Vec<u32>) -> Result<Vec<u32>, StoreError> {
    let mut numbers = sorted(cleaned);
    for at in 0..numbers.len() {
        numbers.extend(tables.texts.names_in(txn, numbers[at])?);
    }
    Ok(numbers)
}

/// Returns the hashes of texts by their numbers.
fn hashes_of(tables: &Tables, txn: &RoTxn<'_>, numbers: Vec<u32>) -> Result<Vec<Key>, StoreError> {
    let mut hashes = TextHashes::new(tables.texts.hashes);
    sorted(numbers).into_iter().map(|number| Ok(hashes.get(txn, number)?.to_bytes())).collect()
}

fn sorted<K: Ord>(mut keys: Vec<K>) -> Vec<K> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

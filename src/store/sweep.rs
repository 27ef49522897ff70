//! The sweep: results that nothing kept needs are found, and removed from the database bit by bit.
//!
//! In: what kept entries and documents need. Out: a list of what goes, which gets shorter.
//!
//! ```text
//!  kept documents ──► cleaned ──► texts ◄── chunk lists ◄── kept documents
//!                        └──► texts that cleaned texts are composed of
//!  kept entries ────► texts, vectors                     heads ◄── chunk lists, rows of entries
//! ```
//!
//! **Invariant:** a row that a kept version leads to is never removed, whenever the sweep breaks off: rows that name others
//! go in front of these, and what a row that stays names is needed. A result that is gone is made again from its input.
//! Of texts and heads that go the number stays used ([`numbering`](super::numbering), [`texts`](super::texts)); paths and
//! places stay.
//!
//! Finding writes nothing and may take place beside anybody. Where results were put in since, or looked up, whoever removes
//! says first what they need ([`Superfluous::keep`]): it stays, with what it names. While rows are removed nobody may look one
//! up to rest on it: one that is found in the database is not put in again.

use super::StoreError;
use super::packing::{NumberedList, PackedCleaned, unpack_entry, unpack_list};
use super::tables::{Table, Tables};
use super::texts::TextHashes;
use super::vectors::VectorKey;
use super::{CodecError, decode};
use dataflows::data::{ChunkingId, DocumentId, Entry, TextHash};
use heed::RoTxn;
use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// So many rows are removed between two looks at the time.
const ROWS_BETWEEN_LOOKS: usize = 16;

type Key = [u8; 16];

/// The keys of everything that is needed.
#[derive(Clone, Default)]
pub struct Needed {
    cleaned: Option<Vec<Key>>,
    chunks: Vec<Key>,
    texts: Vec<Key>,
    /// The rows of entries, which name their heads.
    rows: RoaringBitmap,
    /// Card and text.
    vectors: Vec<[u8; 32]>,
}

/// How many rows were removed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Swept {
    /// What cleaning made of contents.
    pub cleaned: u64,
    /// Chunk lists.
    pub chunks: u64,
    /// Texts.
    pub texts: u64,
    /// What chunks and cards are called.
    pub heads: u64,
    /// Vectors, of all models.
    pub vectors: u64,
}

impl Needed {
    /// Needs what an entry names: its text, and the vectors of card and text together.
    pub fn entry(&mut self, entry: &Entry) {
        let (card, text) = (entry.card.to_bytes(), entry.text.to_bytes());
        self.texts.push(text);
        let mut both = [0; 32];
        both[..16].copy_from_slice(&card);
        both[16..].copy_from_slice(&text);
        self.vectors.push(both);
    }

    /// Needs what the rows of these entries name by number.
    pub fn rows(&mut self, entries: &RoaringBitmap) {
        self.rows |= entries;
    }

    /// Needs a chunk list.
    pub fn chunks(&mut self, chunking: ChunkingId) {
        self.chunks.push(chunking.to_bytes());
    }

    /// Needs of what cleaning made these alone; without this, all of it stays.
    pub fn cleaned(&mut self, ids: impl Iterator<Item = DocumentId>) {
        self.cleaned.get_or_insert_default().extend(ids.map(DocumentId::to_bytes));
    }
}

/// How much is removed at once: the pages of a transaction stay in memory until its end, and whoever waits waits for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Portion {
    /// So many rows at the most.
    pub rows: usize,
    /// Where this much time is over, no more rows; the end of the transaction takes some more.
    pub time: Duration,
}

impl Portion {
    /// Where nobody waits: transactions that are as large as memory should bear.
    pub const LARGE: Self = Self { rows: 4096, time: Duration::MAX };
    /// Beside somebody who may want to publish.
    pub const SMALL: Self = Self { rows: 256, time: Duration::from_millis(4) };

    /// Returns when no more rows are to be taken.
    pub(crate) fn ends(self) -> Option<Instant> {
        Instant::now().checked_add(self.time)
    }
}

/// Rows that nothing needed when they were looked for, in the order in which they go.
#[derive(Default)]
pub struct Superfluous {
    cleaned: Rows<Key, Key>,
    chunks: Rows<Key, Key>,
    /// In the order of their numbers, in which they lie; those that are stored as cleaned texts go first, since they may name
    /// others.
    texts: Rows<(bool, u32, Key), Key>,
    heads: Rows<u32, u32>,
    vectors: Rows<(u32, VectorKey), [u8; 32]>,
}

/// Rows of one table.
struct Rows<K, N> {
    keys: Vec<K>,
    /// What is needed again.
    kept: FxHashSet<N>,
}

impl<K, N> Default for Rows<K, N> {
    fn default() -> Self {
        Self { keys: Vec::new(), kept: FxHashSet::default() }
    }
}

impl<K, N: Eq + Hash> Rows<K, N> {
    /// Returns the next row that goes; `name` says what of it is asked for where it is needed.
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
            vectors: self.vectors.keys.len() as u64,
        }
    }

    /// Returns whether nothing is left to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == Swept::default()
    }

    /// Looks for what nothing needs; finds nothing where `go_on`, which is asked for each row, says no.
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
            // The last one stays whether it is needed or not, so that its number is not given out again.
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
        let vectors = sorted(needed.vectors.clone());
        tables.vectors.each(&*tables.read()?, |number, key| {
            // Whichever model gave it.
            if vectors.binary_search(&card_and_text(key)).is_err() {
                found.vectors.keys.push((number, *key));
            }
            Ok(())
        })?;
        Ok(go_on().then_some(found))
    }

    /// Keeps what is needed since, and what it names.
    ///
    /// What was put in since must be among it: a row that is new may name others that were found superfluous before.
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
        self.vectors.keep(needed.vectors.iter().copied());
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
            // What names others goes before them, to the last row.
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
            } else if let Some((number, key)) = self.vectors.next(|(_, key)| card_and_text(key)) {
                tables.vectors.remove(txn, &key, number)?;
                swept.vectors += 1;
            } else {
                break;
            }
        }
        tables.seen.forget();
        transaction.commit()?;
        // What was read meanwhile may be of the rows that are gone now.
        tables.seen.forget();
        Ok(swept)
    }
}

impl Swept {
    /// Adds what another transaction removed.
    pub fn add(&mut self, other: Self) {
        self.cleaned += other.cleaned;
        self.chunks += other.chunks;
        self.texts += other.texts;
        self.heads += other.heads;
        self.vectors += other.vectors;
    }
}

/// Returns the keys of a table that are not needed, and looks at every other row until that says that it is enough.
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

/// Returns what a vector was made of, whichever model made it.
fn card_and_text(key: &VectorKey) -> [u8; 32] {
    let mut both = [0; 32];
    both.copy_from_slice(&key[16..]);
    both
}

/// Returns the number of the text that a row of `cleaned` names, if it names one.
fn text_of(tables: &Tables, bytes: &[u8]) -> Result<Option<u32>, StoreError> {
    let cleaned = decode::<PackedCleaned>(bytes).map_err(|source| tables.cleaned.damaged(source))?;
    Ok(match cleaned {
        PackedCleaned::Text { text, .. } | PackedCleaned::Converted { text, .. } => Some(text),
        PackedCleaned::Skipped(_) | PackedCleaned::Fault(_) => None,
    })
}

/// Adds the numbers of the heads and texts that a chunk list names.
fn names_of(tables: &Tables, bytes: &[u8], heads: &mut Vec<u32>, texts: &mut Vec<u32>) -> Result<(), StoreError> {
    let list = unpack_list(bytes).ok_or_else(|| tables.chunks.damaged(CodecError::not("a chunk list")))?;
    if let NumberedList::Chunks(chunks, _) = list {
        heads.extend(chunks.iter().map(|chunk| chunk.head));
        texts.extend(chunks.iter().map(|chunk| chunk.text));
    }
    Ok(())
}

/// Adds the numbers of the heads that the rows of entries name.
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

//! The sweep: results that nothing kept needs are removed from the database.
//!
//! In: what kept entries and documents need. Out: how many rows went.
//!
//! ```text
//!  kept documents ──► cleaned ──► texts ◄── chunk lists ◄── kept documents
//!  kept entries ────► texts, vectors                     heads ◄── chunk lists, rows of entries
//! ```
//!
//! **Invariant:** a row that a kept version leads to is never removed, whenever the sweep breaks off: rows that name others
//! go in front of these, and what a row that stays names is needed. A result that is gone is made again from its input.
//! Of texts and heads that go the number stays used ([`numbering`](super::numbering), [`texts`](super::texts)); paths and
//! places stay.
//!
//! Nobody else may put results in meanwhile: one that is found in the database is not put in again. So it runs where no
//! graph does.

use super::StoreError;
use super::packing::{NumberedList, PackedCleaned, unpack_entry, unpack_list};
use super::tables::{Table, Tables};
use super::texts::TextHashes;
use super::{CodecError, WriteTransaction, decode};
use dataflows::data::{ChunkingId, DocumentId, Entry, TextHash};
use heed::RwTxn;
use roaring::RoaringBitmap;

/// Rows that one transaction removes at the most; its pages stay in memory until then.
const TRANSACTION_ROWS: usize = 4096;

type Key = [u8; 16];

/// The keys of everything that is needed.
#[derive(Default)]
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
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
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

/// Removes what nothing needs; `go_on` is asked between transactions. Without it, what would go is only counted.
pub(super) fn sweep<'a>(
    tables: &'a Tables,
    needed: &Needed,
    go_on: Option<&'a mut dyn FnMut() -> bool>,
) -> Result<Swept, StoreError> {
    let mut sweep = Sweep { tables, go_on };
    let mut swept = Swept::default();
    let mut texts = needed.texts.clone();
    let (mut heads, mut numbers) = (Vec::new(), Vec::new());
    swept.cleaned = sweep.table(&tables.cleaned, needed.cleaned.clone(), |bytes| {
        let cleaned = decode::<PackedCleaned>(bytes).map_err(|source| tables.cleaned.damaged(source))?;
        if let PackedCleaned::Text { text, .. } = cleaned {
            numbers.push(text);
        }
        Ok(())
    })?;
    swept.chunks = sweep.table(&tables.chunks, Some(needed.chunks.clone()), |bytes| {
        let list = unpack_list(bytes).ok_or_else(|| tables.chunks.damaged(CodecError::not("a chunk list")))?;
        if let NumberedList::Chunks(chunks) = list {
            heads.extend(chunks.iter().map(|chunk| chunk.head));
            numbers.extend(chunks.iter().map(|chunk| chunk.text));
        }
        Ok(())
    })?;
    {
        let txn = tables.read()?;
        for ordinal in &needed.rows {
            let Some(row) = tables.entries.bytes(&txn, &ordinal.to_be_bytes())? else { continue };
            let entry = unpack_entry(row).ok_or_else(|| tables.entries.damaged(CodecError::not("an entry")))?;
            heads.push(entry.head);
        }
        // The last one stays whether it is needed or not, so that its number is not given out again.
        heads.extend(tables.heads.values.last(&txn)?.and_then(|(key, _)| key.try_into().ok()).map(u32::from_be_bytes));
        let mut hashes = TextHashes::new(tables.texts.hashes);
        for number in sorted(numbers) {
            texts.push(hashes.get(&txn, number)?.to_bytes());
        }
    }
    swept.texts = sweep.texts(texts)?;
    swept.heads =
        sweep.table(&tables.heads.values, Some(heads.into_iter().map(u32::to_be_bytes).collect()), |_| Ok(()))?;
    swept.vectors = sweep.vectors(needed.vectors.clone())?;
    Ok(swept)
}

struct Sweep<'a> {
    tables: &'a Tables,
    go_on: Option<&'a mut dyn FnMut() -> bool>,
}

impl Sweep<'_> {
    /// Removes the rows whose keys are not needed, and looks at every other one.
    fn table<const N: usize>(
        &mut self,
        table: &Table,
        needed: Option<Vec<[u8; N]>>,
        mut look: impl FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let needed = needed.map(sorted);
        let mut superfluous = Vec::new();
        table.each(&*self.tables.read()?, |key, bytes| {
            let stays =
                needed.as_ref().is_none_or(|needed| needed.binary_search_by(|known| known[..].cmp(key)).is_ok());
            if stays {
                look(bytes)?;
            } else {
                superfluous.push(key.to_vec());
            }
            Ok(true)
        })?;
        self.remove(&superfluous, |txn, key| table.remove(txn, key))
    }

    /// Removes the texts whose hashes are not needed.
    fn texts(&mut self, needed: Vec<Key>) -> Result<u64, StoreError> {
        let (texts, needed) = (self.tables.texts, sorted(needed));
        let mut superfluous = Vec::new();
        texts.numbers.each(&*self.tables.read()?, |hash, number| {
            if needed.binary_search(&hash).is_err() {
                superfluous.push((number, TextHash::from_bytes(hash)));
            }
            Ok(())
        })?;
        // Texts lie in the order of their numbers.
        superfluous.sort_unstable();
        self.remove(&superfluous, |txn, (number, hash)| texts.remove(txn, *hash, *number))
    }

    /// Removes the vectors of cards and texts that are not needed together, whichever model gave them.
    fn vectors(&mut self, needed: Vec<[u8; 32]>) -> Result<u64, StoreError> {
        let (vectors, needed) = (self.tables.vectors, sorted(needed));
        let mut superfluous = Vec::new();
        vectors.each(&*self.tables.read()?, |number, key| {
            if needed.binary_search_by(|known| known[..].cmp(&key[16..])).is_err() {
                superfluous.push((number, *key));
            }
            Ok(())
        })?;
        self.remove(&superfluous, |txn, (number, key)| vectors.remove(txn, key, *number))
    }

    /// Removes rows in transactions of their own, and returns how many.
    fn remove<K>(
        &mut self,
        superfluous: &[K],
        remove: impl Fn(&mut RwTxn<'_>, &K) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let Some(go_on) = &mut self.go_on else { return Ok(superfluous.len() as u64) };
        let mut removed = 0;
        for some in superfluous.chunks(TRANSACTION_ROWS) {
            if !go_on() {
                break;
            }
            let mut transaction = self.tables.write()?;
            for one in some {
                remove(&mut transaction, one)?;
            }
            self.tables.seen.forget();
            WriteTransaction(transaction, self.tables.clone()).commit()?;
            // What was read meanwhile may be of the rows that are gone now.
            self.tables.seen.forget();
            removed += some.len() as u64;
        }
        Ok(removed)
    }
}

fn sorted<K: Ord>(mut keys: Vec<K>) -> Vec<K> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

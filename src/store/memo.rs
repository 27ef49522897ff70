//! Results by the identity of their input, on disk: the memo of the dataflow's stages.
//!
//! In: results of the stages. Out: the same results, from memory until they are flushed, from the database afterwards.
//!
//! ```text
//!  put ──► pending (memory) ──flush──► flushing (memory, being written) ──commit──► database
//!  get ──► pending, then flushing, then database, then the transient results
//! ```
//!
//! **Invariant:** the first answer stays: a known key never gets another value. A result is visible as soon as it is put, and
//! durable with the publish that first needs it: [`StoreMemo::flush`] runs inside that publish's transaction.
//!
//! A vector that the model made is pending, or parked in the database, until an entry that has it is published; from then on
//! the vector files hold it, and the memo says which entry has it ([`Kept`]). The index reads it there.
//!
//! The memo trait has no errors, because a stage could not handle them; the first failure is kept and stops the next publish
//! ([`StoreMemo::check`]).

mod flush;

use super::mapped::Mapped;
use super::packing::{
    Head, NumberedChunk, NumberedList, PackedCleaned, TextPlace, no_syntax_of, places, unpack_head, unpack_list,
};
use super::seen::head_key;
use super::tables::{Opened, Tables};
use super::texts::TextHashes;
use super::vectors::{NO_VECTOR, Stored, vector_id};
use super::{CodecError, StoreError, WriteTransaction};
use dataflows::data::{Chunk, ChunkingId, Cleaned, DocumentId, EmbedInput, ModelId, NoSyntax, TextHash};
use dataflows::embed::Vector;
use dataflows::memo::{Chunked, Embedded, Keep, Memo};
use half::f16;
use rustc_hash::FxHashMap;
use snapshots::Ordinal;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// With more pending bytes a put writes them out at once, outside any publish: a part of the database's file, between these
/// bounds. This bounds memory in a first load twice: the waiting results, and the pages of the transaction that writes them,
/// which LMDB keeps for the next one. In a large store new hashes go to more pages, so more of them are written together.
const PENDING_BYTES: [usize; 2] = [8 << 20, 64 << 20];
/// Pending bytes are this part of the database's file.
const PENDING_PART: u64 = 32;

/// What a vector that waits takes in memory, in bytes.
const EMBEDDED_BYTES: usize = 640;

/// Returns how many bytes may be pending where the database's file has so many.
fn pending_bytes(file: u64) -> usize {
    let [least, most] = PENDING_BYTES;
    usize::try_from(file / PENDING_PART).unwrap_or(most).clamp(least, most)
}

/// Results of all stages, and the vectors of one model.
#[derive(Clone)]
pub struct StoreMemo(Arc<Shared>);

struct Shared {
    mapped: Mapped,
    model: ModelId,
    results: RwLock<Results>,
    /// The limit of pending bytes; see [`pending_bytes`].
    bearable: AtomicUsize,
    failure: Mutex<Option<StoreError>>,
}

/// Results that are not yet, or never, in the database.
#[derive(Default)]
struct Results {
    pending: Generation,
    /// Shared with the flush that is writing it.
    flushing: Option<Arc<Generation>>,
    /// The number of flushes: identifies the current one.
    flushes: u64,
    while_running: Generation,
}

/// What is known of an input of the embed stage.
#[derive(Clone, PartialEq, Debug)]
pub enum Kept {
    /// Its vector, which no published entry has.
    Vector(Vector),
    /// An entry with this ordinal got its vector; the vector files hold it, unless they lost it.
    At(Ordinal),
    /// The model knows no token of it.
    NoVector,
    /// The model failed; the sentence says what and why.
    Fault(String),
}

/// Identifies the results of one flush, which are dropped once its transaction is committed.
#[must_use = "what was flushed stays in memory until it is forgotten"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flush(u64);

#[derive(Default)]
struct Generation {
    cleaned: FxHashMap<DocumentId, Cleaned>,
    /// Texts of chunks.
    texts: FxHashMap<TextHash, Arc<str>>,
    wholes: FxHashMap<TextHash, Whole>,
    chunks: FxHashMap<ChunkingId, Arc<Chunked>>,
    embedded: FxHashMap<EmbedInput, Embedded>,
    /// An estimate of what the maps hold, in bytes.
    bytes: usize,
}

/// A cleaned text, and where the texts of its chunks stand in it; they stand nowhere until it is cut.
struct Whole {
    text: Arc<str>,
    places: Vec<TextPlace<TextHash>>,
}

impl Results {
    /// Looks a key up in every generation.
    fn find<'a, K: Eq + Hash + 'a, V>(
        &'a self,
        map: impl Fn(&'a Generation) -> &'a FxHashMap<K, V>,
        key: &K,
    ) -> Option<&'a V> {
        let flushing = self.flushing.as_deref().and_then(|generation| map(generation).get(key));
        map(&self.pending).get(key).or(flushing).or_else(|| map(&self.while_running).get(key))
    }

    fn keep(&mut self, keep: Keep) -> &mut Generation {
        match keep {
            Keep::Durable => &mut self.pending,
            Keep::WhileRunning => &mut self.while_running,
        }
    }
}

impl StoreMemo {
    pub(super) fn new(mapped: Mapped, model: ModelId) -> Self {
        let file = mapped.tables().and_then(|tables| tables.disk_bytes()).unwrap_or_default();
        let bearable = AtomicUsize::new(pending_bytes(file));
        Self(Arc::new(Shared { mapped, model, results: RwLock::default(), bearable, failure: Mutex::default() }))
    }

    /// Returns the first failure since the last check, if there was one.
    ///
    /// # Errors
    /// That failure.
    pub fn check(&self) -> Result<(), StoreError> {
        self.failure().take().map_or(Ok(()), Err)
    }

    /// Returns the stored chunks of a list with one text, in order.
    ///
    /// # Errors
    /// If the database fails.
    pub fn chunks_with_text(&self, id: ChunkingId, text: TextHash) -> Result<Vec<Chunk>, StoreError> {
        Ok(match self.0.stored_chunks(id, Some(text))? {
            Some(Chunked::Chunks(chunks) | Chunked::WithoutSyntax(chunks, _)) => chunks,
            Some(Chunked::Fault(_)) | None => Vec::new(),
        })
    }

    /// Returns why the chunks of a stored list were cut without their syntax, where they were.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn no_syntax(&self, id: ChunkingId) -> Result<Option<NoSyntax>, StoreError> {
        let tables = self.0.mapped.tables()?;
        let txn = tables.read()?;
        Ok(tables.chunks.bytes(&txn, &id.to_bytes())?.and_then(no_syntax_of))
    }

    /// Writes what is pending into a publish's transaction, and where the vectors of `placed` are now, each with an entry whose
    /// row the vector files have. The results stay in memory until [`Self::flushed`].
    ///
    /// Vectors that no entry has stay pending: a later epoch places most of them.
    ///
    /// # Errors
    /// Where the disk or the map is full.
    pub fn flush(
        &self,
        transaction: &mut WriteTransaction<'_>,
        placed: &FxHashMap<EmbedInput, Ordinal>,
    ) -> Result<Flush, StoreError> {
        self.flush_as(transaction, placed, false)
    }

    /// As [`Self::flush`]; vectors that no entry has are parked in the database, or stay pending.
    fn flush_as(
        &self,
        transaction: &mut WriteTransaction<'_>,
        placed: &FxHashMap<EmbedInput, Ordinal>,
        parks: bool,
    ) -> Result<Flush, StoreError> {
        let (generation, flush) = {
            let mut results = self.write();
            // Results of an earlier, failed flush are written again with the rest.
            let mut pending = std::mem::take(&mut results.pending);
            if let Some(earlier) = results.flushing.take().and_then(Arc::into_inner) {
                pending.absorb(earlier);
            }
            if !parks {
                results.pending = pending.take_unplaced(placed);
            }
            let pending = Arc::new(pending);
            results.flushing = Some(pending.clone());
            results.flushes += 1;
            (pending, Flush(results.flushes))
        };
        self.0.write_out(&transaction.1, &generation, placed, &mut transaction.0)?;
        Ok(flush)
    }

    /// Writes where vectors are that were made again, or that inputs have none; returns nothing else of them.
    ///
    /// # Errors
    /// Where the disk is full.
    pub fn place(
        &self,
        to: &mut WriteTransaction<'_>,
        rows: impl IntoIterator<Item = (EmbedInput, Option<Ordinal>)>,
    ) -> Result<(), StoreError> {
        let (tables, model) = (to.1.clone(), self.0.model);
        tables.vectors.note(&mut to.0, model)?;
        let row =
            |(input, at): (EmbedInput, Option<Ordinal>)| (vector_id(model, input), at.map_or(NO_VECTOR, Ordinal::get));
        tables.vectors.set(&mut to.0, rows.into_iter().map(row))
    }

    /// Forgets that the model failed on these inputs, since it has answered by now.
    pub fn forget_faults(&self, inputs: impl IntoIterator<Item = EmbedInput>) {
        let mut results = self.write();
        for input in inputs {
            results.while_running.embedded.remove(&input);
        }
    }

    /// Returns what is known of an input.
    ///
    /// # Errors
    /// Where the database fails, or a vector is damaged.
    pub fn kept(&self, input: EmbedInput) -> Result<Option<Kept>, StoreError> {
        let kept = |embedded: &Embedded| match embedded {
            Embedded::Vector(vector) => Kept::Vector(vector.clone()),
            Embedded::NoVector => Kept::NoVector,
            Embedded::Fault(error) => Kept::Fault(error.clone()),
        };
        let found = self.read().find(|generation| &generation.embedded, &input).map(kept);
        if found.as_ref().is_some_and(|found| !matches!(found, Kept::Fault(_))) {
            return Ok(found);
        }
        let tables = self.0.mapped.tables()?;
        let txn = tables.read()?;
        let stored = tables.vectors.get(&txn, vector_id(self.0.model, input))?;
        let stored = stored.map(|stored| match stored {
            Stored::At(ordinal) => Ok(Kept::At(Ordinal::new(ordinal))),
            Stored::NoVector => Ok(Kept::NoVector),
            Stored::Parked(bytes) => {
                vector_from(bytes).map(Kept::Vector).ok_or_else(|| tables.vectors.parked.lost(input))
            }
        });
        Ok(stored.transpose()?.or(found))
    }

    /// Forgets what a flush wrote: its transaction is committed.
    ///
    /// The next flush may have begun meanwhile, because the transaction is free as soon as it is committed. It took over these
    /// results, and drops them in its turn.
    pub fn flushed(&self, flush: Flush) {
        let mut results = self.write();
        if results.flushes == flush.0 {
            results.flushing = None;
        }
    }

    /// Drops the cleaning results of these documents if they are transient.
    ///
    /// No running code may still hold such a result, because its retraction would find another one.
    pub fn forget_transient(&self, ids: impl IntoIterator<Item = DocumentId>) {
        let mut results = self.write();
        for id in ids {
            results.while_running.cleaned.remove(&id);
        }
    }

    /// Writes pending results out, outside any publish; a failure is kept.
    pub fn save(&self) {
        self.write_pending(|| self.read().pending.bytes == 0);
    }

    /// Writes pending results out if they exceed the limit, outside any publish.
    fn relieve(&self) {
        self.write_pending(|| self.read().pending.bytes < self.0.bearable.load(Ordering::Relaxed));
    }

    /// Writes pending results out unless they are within the limit.
    fn write_pending(&self, is_bearable: impl Fn() -> bool) {
        if is_bearable() {
            return;
        }
        let flushed = (|| {
            let tables = self.0.mapped.tables()?;
            let mut transaction = tables.begin()?;
            // Another thread may have done it while this one waited for the transaction.
            if is_bearable() {
                return Ok(());
            }
            let flush = self.flush_as(&mut transaction, &FxHashMap::default(), true)?;
            transaction.commit()?;
            self.flushed(flush);
            self.0.bearable.store(pending_bytes(tables.disk_bytes()?), Ordering::Relaxed);
            drop(tables);
            self.0.mapped.let_go_of_much();
            Ok(())
        })();
        if let Err(error) = flushed {
            self.fail(error);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Results> {
        self.0.results.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Results> {
        self.0.results.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> MutexGuard<'_, Option<StoreError>> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: StoreError) {
        tracing::error!("{error}");
        self.failure().get_or_insert(error);
    }

    /// Returns the database's answer, or nothing if it fails; the failure is kept.
    fn or_fail<T>(&self, found: Result<Option<T>, StoreError>) -> Option<T> {
        found.unwrap_or_else(|error| {
            self.fail(error);
            None
        })
    }

    fn knows_text(&self, hash: TextHash) -> bool {
        let is_stored = |tables: Tables| match tables.seen.text(hash) {
            None => tables.texts.number(&*tables.read()?, hash),
            seen => Ok(seen),
        };
        self.is_pending(hash) || self.or_fail(self.0.mapped.tables().and_then(is_stored)).is_some()
    }

    fn is_pending(&self, hash: TextHash) -> bool {
        let results = self.read();
        results.find(|generation| &generation.texts, &hash).is_some()
            || results.find(|generation| &generation.wholes, &hash).is_some()
    }

    /// Returns whether a text is known as that of a chunk; a cleaned text may be composed of others.
    fn knows_chunk_text(&self, hash: TextHash) -> bool {
        let is_stored = |tables: Tables| match tables.seen.text(hash) {
            None => Ok(tables.texts.is_of_chunk(&*tables.read()?, hash)?.then_some(())),
            Some(_) => Ok(Some(())),
        };
        self.read().find(|generation| &generation.texts, &hash).is_some()
            || self.or_fail(self.0.mapped.tables().and_then(is_stored)).is_some()
    }

    /// Stores a text under its own hash.
    pub(crate) fn put_text(&self, hash: TextHash, text: &str) {
        self.put_texts(std::iter::once((hash, Arc::from(text))), Keep::Durable);
        self.relieve();
    }

    /// Adds a cleaned text, if it is not known yet.
    fn put_whole(&self, hash: TextHash, text: &str, keep: Keep) {
        if !self.knows_text(hash) {
            let mut results = self.write();
            let generation = results.keep(keep);
            generation.bytes += text.len() + 96;
            generation.wholes.entry(hash).or_insert_with(|| Whole { text: text.into(), places: Vec::new() });
        }
    }

    /// Takes note of where the texts of its chunks stand in a cleaned text, unless that is known, or the text is not stored.
    fn put_places(&self, hash: TextHash, text: &str, places: Vec<TextPlace<TextHash>>) {
        let is_to_be_written_again = {
            let mut results = self.write();
            if let Some(whole) = results.pending.wholes.get_mut(&hash) {
                if whole.places.is_empty() {
                    whole.places = places;
                }
                return;
            }
            results.flushing.as_ref().and_then(|flushing| flushing.wholes.get(&hash)).map(|it| it.places.is_empty())
        };
        let can_be_composed = |tables: Tables| tables.texts.can_be_composed(&*tables.read()?, hash).map(Some);
        let stored = || self.or_fail(self.0.mapped.tables().and_then(can_be_composed));
        if is_to_be_written_again.or_else(stored) == Some(true) {
            let mut results = self.write();
            results.pending.bytes += text.len() + 96;
            results.pending.wholes.insert(hash, Whole { text: text.into(), places });
        }
    }

    /// Adds texts of chunks that are not known yet.
    fn put_texts(&self, texts: impl Iterator<Item = (TextHash, Arc<str>)>, keep: Keep) {
        let new: Vec<_> = texts.filter(|(hash, _)| !self.knows_chunk_text(*hash)).collect();
        let mut results = self.write();
        let generation = results.keep(keep);
        for (hash, text) in new {
            generation.bytes += text.len() + 64;
            generation.texts.insert(hash, text);
        }
    }
}

impl Memo for StoreMemo {
    fn lost(&self, what: String) {
        self.fail(StoreError::Lost { table: "memo", key: what });
    }

    fn cleaned(&self, id: DocumentId) -> Option<Cleaned> {
        let found = self.read().find(|generation| &generation.cleaned, &id).cloned();
        found.or_else(|| self.or_fail(self.0.stored_cleaned(id)))
    }

    fn put_cleaned(&self, id: DocumentId, cleaned: &Cleaned, text: Option<&str>, keep: Keep) {
        if let (Some(hash), Some(text)) = (cleaned.text(), text) {
            self.put_whole(hash, text, keep);
        }
        if self.cleaned(id).is_none() {
            let mut results = self.write();
            let generation = results.keep(keep);
            generation.bytes += 96;
            generation.cleaned.insert(id, cleaned.clone());
        }
        self.relieve();
    }

    fn text(&self, hash: TextHash) -> Option<String> {
        {
            let results = self.read();
            let whole = || results.find(|generation| &generation.wholes, &hash).map(|whole| &whole.text);
            if let Some(text) = results.find(|generation| &generation.texts, &hash).or_else(whole) {
                return Some(text.as_ref().to_owned());
            }
        }
        let stored = |tables: Tables| tables.texts.text(&*tables.read()?, hash);
        self.or_fail(self.0.mapped.tables().and_then(stored))
    }

    fn chunks(&self, id: ChunkingId) -> Option<Arc<Chunked>> {
        let found = self.read().find(|generation| &generation.chunks, &id).cloned();
        found.or_else(|| self.or_fail(self.0.stored_chunks(id, None)).map(Arc::new))
    }

    fn put_chunks(
        &self,
        id: ChunkingId,
        of: Option<(TextHash, &str)>,
        chunked: Chunked,
        texts: Vec<(TextHash, String)>,
        keep: Keep,
    ) {
        let of = of.zip(chunked.chunks()).filter(|(_, chunks)| keep == Keep::Durable && chunks.len() == texts.len());
        let placed = of.map(|((hash, text), chunks)| {
            let told = chunks.iter().zip(&texts);
            (hash, text, places(text, told.map(|(chunk, (hash, text))| (*hash, text.as_str(), chunk.lines.first))))
        });
        self.put_texts(texts.into_iter().map(|(hash, text)| (hash, Arc::from(text))), keep);
        // Behind the texts that stand there.
        if let Some((hash, text, places)) = placed.filter(|(_, _, places)| !places.is_empty()) {
            self.put_places(hash, text, places);
        }
        if self.chunks(id).is_none() {
            let mut results = self.write();
            let generation = results.keep(keep);
            if let Some(chunks) = chunked.chunks() {
                generation.bytes += chunks.len() * 160;
            }
            generation.chunks.insert(id, Arc::new(chunked));
        }
        self.relieve();
    }

    fn has_embedded(&self, input: EmbedInput) -> bool {
        let id = vector_id(self.0.model, input);
        let is_stored = |tables: Tables| Ok(tables.vectors.get(&*tables.read()?, id)?.map(|_| ()));
        self.read().find(|generation| &generation.embedded, &input).is_some()
            || self.or_fail(self.0.mapped.tables().and_then(is_stored)).is_some()
    }

    fn put_embedded(&self, rows: Vec<(EmbedInput, Embedded)>, keep: Keep) {
        let new: Vec<_> = rows.into_iter().filter(|(input, _)| !self.has_embedded(*input)).collect();
        {
            let mut results = self.write();
            let generation = results.keep(keep);
            for (input, embedded) in new {
                generation.bytes += EMBEDDED_BYTES;
                generation.embedded.insert(input, embedded);
            }
        }
        self.relieve();
    }
}

impl Generation {
    /// Takes the vectors out that no entry has.
    fn take_unplaced(&mut self, placed: &FxHashMap<EmbedInput, Ordinal>) -> Self {
        let is_unplaced = |(input, embedded): &(EmbedInput, Embedded)| {
            matches!(embedded, Embedded::Vector(_)) && !placed.contains_key(input)
        };
        let (unplaced, rest): (FxHashMap<_, _>, FxHashMap<_, _>) =
            std::mem::take(&mut self.embedded).into_iter().partition(is_unplaced);
        let bytes = unplaced.len() * EMBEDDED_BYTES;
        self.embedded = rest;
        self.bytes = self.bytes.saturating_sub(bytes);
        Self { embedded: unplaced, bytes, ..Self::default() }
    }

    fn absorb(&mut self, other: Self) {
        self.cleaned.extend(other.cleaned);
        self.texts.extend(other.texts);
        for (hash, whole) in other.wholes {
            self.wholes.entry(hash).or_insert(whole);
        }
        self.chunks.extend(other.chunks);
        self.embedded.extend(other.embedded);
        self.bytes += other.bytes;
    }
}

impl Shared {
    fn stored_cleaned(&self, id: DocumentId) -> Result<Option<Cleaned>, StoreError> {
        let tables = self.mapped.tables()?;
        let txn = tables.read()?;
        let Some(packed) = tables.cleaned.get(&txn, &id.to_bytes())? else { return Ok(None) };
        Ok(Some(match packed {
            PackedCleaned::Text { text, bytes } => {
                Cleaned::Text { text: TextHashes::new(tables.texts.hashes).get(&txn, text)?, bytes }
            }
            PackedCleaned::Converted { text, bytes, from } => {
                Cleaned::Converted { text: TextHashes::new(tables.texts.hashes).get(&txn, text)?, bytes, from }
            }
            PackedCleaned::Skipped(reason) => Cleaned::Skipped(reason),
            PackedCleaned::Fault(error) => Cleaned::Fault(error),
        }))
    }

    /// Returns a stored list, or only its chunks with one text.
    fn stored_chunks(&self, id: ChunkingId, text: Option<TextHash>) -> Result<Option<Chunked>, StoreError> {
        let tables = self.mapped.tables()?;
        let forgotten = tables.seen.forgotten();
        let txn = tables.read()?;
        let Some(packed) = tables.chunks.bytes(&txn, &id.to_bytes())? else { return Ok(None) };
        let list = unpack_list(packed).ok_or_else(|| tables.chunks.damaged(CodecError::not("a chunk list")))?;
        let (chunks, no_syntax) = match list {
            NumberedList::Chunks(chunks, no_syntax) => (chunks, no_syntax),
            NumberedList::Fault(error) => return Ok(Some(Chunked::Fault(error))),
        };
        let only = match text {
            Some(text) => match tables.texts.number(&txn, text)? {
                Some(number) => Some(number),
                None => return Ok(Some(Chunked::new(Vec::new(), no_syntax))),
            },
            None => None,
        };
        let mut hashes = TextHashes::new(tables.texts.hashes);
        let wanted = chunks.into_iter().filter(|chunk| only.is_none_or(|number| chunk.text == number));
        let (mut seen, is_wanted) = (Vec::new(), only.is_none() && forgotten.is_some());
        let chunks = wanted.map(|NumberedChunk { head, text, lines }| {
            let (hash, encoded) = (hashes.get(&txn, text)?, tables.heads.value(&txn, head)?);
            if is_wanted {
                seen.push(((hash, text), (head_key(encoded), head)));
            }
            Ok(tables.decode_head(encoded)?.chunk(hash, lines))
        });
        let chunks = chunks.collect::<Result<_, StoreError>>()?;
        if let Some(forgotten) = forgotten {
            tables.seen.note(forgotten, seen);
        }
        Ok(Some(Chunked::new(chunks, no_syntax)))
    }
}

impl Opened {
    /// Returns the head of a number.
    pub(super) fn head(&self, txn: &heed::RoTxn<'_>, number: u32) -> Result<Head, StoreError> {
        self.decode_head(self.heads.value(txn, number)?)
    }

    fn decode_head(&self, encoded: &[u8]) -> Result<Head, StoreError> {
        unpack_head(encoded).map_err(|source| self.heads.values.damaged(source))
    }
}

/// Returns the vector of stored components.
fn vector_from(bytes: &[u8]) -> Option<Vector> {
    let components: Vec<f16> = bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect();
    Vector::from_components(components).ok()
}

#[cfg(test)]
mod tests;

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
//! Cards are no results: they follow from chunk lists and places, and the graph passes them again whenever it places a document.
//! They are in memory while an epoch that may need them is in progress ([`StoreMemo::turn_cards`]).
//!
//! The memo trait has no errors, because a stage could not handle them; the first failure is kept and stops the next publish
//! ([`StoreMemo::check`]).

mod flush;

use super::mapped::Mapped;
use super::packing::{Head, NumberedChunk, NumberedList, PackedCleaned, TextPlace, no_syntax_of, places, unpack_list};
use super::seen::head_key;
use super::tables::{Opened, Tables};
use super::texts::TextHashes;
use super::vectors::vector_key;
use super::{CodecError, StoreError, WriteTransaction, codec};
use dataflows::data::{Card, CardHash, Chunk, ChunkingId, Cleaned, DocumentId, EmbedId, ModelId, NoSyntax, TextHash};
use dataflows::embed::Vector;
use dataflows::memo::{Chunked, Embedded, Keep, Memo};
use half::f16;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// With more pending bytes a put writes them out at once, outside any publish: a part of the database's file, between these
/// bounds. This bounds memory in a first load twice: the waiting results, and the pages of the transaction that writes them,
/// which LMDB keeps for the next one. In a large store new hashes go to more pages, so more of them are written together.
const PENDING_BYTES: [usize; 2] = [8 << 20, 64 << 20];
/// Pending bytes are this part of the database's file.
const PENDING_PART: u64 = 32;

/// Returns the limit of pending bytes for a database file of so many bytes.
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
    /// The cards since the last turn, encoded; and those between the turn before and that.
    cards: [FxHashMap<CardHash, Box<[u8]>>; 2],
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
    embedded: FxHashMap<EmbedId, Embedded>,
    /// An estimate of the maps' size, in bytes.
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

    /// Writes everything pending into a publish's transaction. The results stay in memory until [`Self::flushed`].
    ///
    /// # Errors
    /// If the disk or the map is full.
    pub fn flush(&self, transaction: &mut WriteTransaction<'_>) -> Result<Flush, StoreError> {
        let (generation, flush) = {
            let mut results = self.write();
            // Results of an earlier, failed flush are written again with the rest.
            let mut pending = std::mem::take(&mut results.pending);
            if let Some(earlier) = results.flushing.take().and_then(Arc::into_inner) {
                pending.absorb(earlier);
            }
            let pending = Arc::new(pending);
            results.flushing = Some(pending.clone());
            results.flushes += 1;
            (pending, Flush(results.flushes))
        };
        self.0.write_out(&transaction.1, &generation, &mut transaction.0)?;
        Ok(flush)
    }

    /// Drops the results of a flush: its transaction is committed.
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

    /// Drops every card.
    ///
    /// No work may be in progress: an epoch's new entries are embedded and indexed with the cards from their placement.
    pub fn forget_cards(&self) {
        self.write().cards = Default::default();
    }

    /// Drops the cards that no document was placed with since the last turn.
    ///
    /// No work that was fed before that turn may be in progress. A card stays until the turn after the next.
    pub fn turn_cards(&self) {
        let mut results = self.write();
        let [newest, _] = std::mem::take(&mut results.cards);
        results.cards = [FxHashMap::default(), newest];
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
            let flush = self.flush(&mut transaction)?;
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

    fn card(&self, hash: CardHash) -> Option<Card> {
        let encoded = {
            let results = self.read();
            results.cards.iter().find_map(|cards| cards.get(&hash)).cloned()?
        };
        self.or_fail(codec::decode(&encoded).map(Some).map_err(|source| StoreError::Damaged { table: "cards", source }))
    }

    fn put_card(&self, hash: CardHash, card: &Card) {
        if !self.read().cards[0].contains_key(&hash) {
            let mut results = self.write();
            // Moved forward if it was passed before, so that a turn does not drop it while it is needed.
            let encoded = results.cards[1].remove(&hash).unwrap_or_else(|| codec::encode(card).into());
            results.cards[0].insert(hash, encoded);
        }
    }

    fn has_embedded(&self, id: EmbedId) -> bool {
        let key = vector_key(self.0.model, id);
        let is_stored = |tables: Tables| Ok(tables.vectors.has(&*tables.read()?, &key)?.then_some(()));
        self.read().find(|generation| &generation.embedded, &id).is_some()
            || self.or_fail(self.0.mapped.tables().and_then(is_stored)).is_some()
    }

    fn embedded(&self, id: EmbedId) -> Option<Embedded> {
        if let Some(found) = self.read().find(|generation| &generation.embedded, &id) {
            return Some(found.clone());
        }
        let stored = |tables: Tables| {
            let txn = tables.read()?;
            let bytes = tables.vectors.components(&txn, &vector_key(self.0.model, id))?;
            bytes.map(|bytes| embedded_from(bytes).ok_or_else(|| tables.vectors.rows.lost(id.text))).transpose()
        };
        self.or_fail(self.0.mapped.tables().and_then(stored))
    }

    fn put_embedded(&self, rows: Vec<(EmbedId, Embedded)>, keep: Keep) {
        let new: Vec<_> = rows.into_iter().filter(|(id, _)| !self.has_embedded(*id)).collect();
        {
            let mut results = self.write();
            let generation = results.keep(keep);
            for (id, embedded) in new {
                generation.bytes += 640;
                generation.embedded.insert(id, embedded);
            }
        }
        self.relieve();
    }
}

impl Generation {
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
        codec::decode(encoded).map_err(|source| self.heads.values.damaged(source))
    }
}

/// Returns the vector of stored components; none of them for a text without a vector.
fn embedded_from(bytes: &[u8]) -> Option<Embedded> {
    if bytes.is_empty() {
        return Some(Embedded::NoVector);
    }
    let components: Vec<f16> = bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect();
    Vector::from_components(components).ok().map(Embedded::Vector)
}

#[cfg(test)]
mod tests;

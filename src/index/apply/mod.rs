//! Publishes an epoch's changes as a version: both indexes, the catalogue and the log, in one step.
//!
//! In: the graph's output for some epochs, each with its commit. Out: the versions, published.
//!
//! ```text
//!  entries ±1 ──► ordinals (known, or new) ──► vectors: append, sync
//!                                         ──► tantivy: add, commit
//!                                         ──► presence: named entries are in both indexes, or are rebuilt
//!                                         ──► database: memo, catalogue, receipts, commit
//!                                         ──► log: one group, sync       ◄── the commit point of everything
//! ```
//!
//! **Invariant:** the version log is written last. After a crash no version reaches the data of the steps before it; the repeated
//! publish finds its rows by identity, and no ordinal is assigned to another entry. Several waiting epochs share one pass through
//! the steps, and each still gets a version. A large step comes in parts, which are written as they come and published by the
//! last of them (`part`).
//!
//! A version's delta is recorded against its parent's version if there is one, whatever its view pointed at before. So a commit's
//! delta is the same on every machine.

mod error;
mod heal;
mod owed;
mod part;
mod plan;
mod presence;
mod reindex;
mod target;

pub use error::ApplyError;
pub use heal::{check_log, heal};
pub use target::{CommitTarget, Published, Purpose, Target};

use super::background::{Tended, Urgency};
use super::lexical::{LexicalWriter, searched_name};
use super::vector::VectorWriter;
use crate::store::{Catalogue, Coverage, Database, EntryRecord, Flush, Kept, Mapping, StoreMemo, WriteTransaction};
use dataflows::data::{Card, CardedEntry, Document, EmbedInput, EntryId, Fingerprint, ModelId, View};
use dataflows::embed::{Embedder, Vector};
use dataflows::memo::Memo;
use dataflows::run::EpochDone;
use owed::{Mended, Mender};
use part::Parts;
use plan::Draft;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use snapshots::{Archive, Bitmaps, Ordinal, OrdinalCounter, SourceId, Tokens, VersionId, ViewId};
use std::sync::Arc;
use std::time::Instant;

/// Most entries of one catalogue transaction.
const TRANSACTION_ROWS: usize = 8192;
/// Entries that another attempt of the model is about at the most: some milliseconds of a fast one.
const MENDED_AT_ONCE: usize = 256;

/// All parts that a publish writes to; one per store.
pub struct IndexWriter {
    database: Database,
    catalogue: Catalogue,
    memo: StoreMemo,
    archive: Archive,
    lexical: LexicalWriter,
    vectors: VectorWriter,
    next_entry: OrdinalCounter,
    next_document: OrdinalCounter,
    heads: FxHashMap<View, Head>,
    /// The entries alive in some head, until the next publish.
    hot: Option<RoaringBitmap>,
    mender: Mender,
    /// Entries that can have no vector.
    without_vector: RoaringBitmap,
    /// Entries that are owed a vector.
    owed: RoaringBitmap,
    /// Where the next attempt begins among them.
    next_owed: u32,
    /// Of heads whose step is under way: what its parts so far have brought.
    parts: FxHashMap<View, Parts>,
    /// The time when the last epoch left the graph.
    graph_free: Option<Instant>,
    sources: FxHashMap<SourceId, String>,
    views: FxHashMap<ViewId, String>,
    fingerprint: Fingerprint,
    model: ModelId,
}

/// The open parts of a writer between publishes.
pub(super) struct Beside<'a> {
    /// The live entries and documents of all heads of the graph.
    pub(super) graph: Bitmaps,
    /// The versions of the graph's heads.
    pub(super) versions: Vec<VersionId>,
    pub(super) database: &'a Database,
    pub(super) archive: &'a mut Archive,
    pub(super) lexical: &'a mut LexicalWriter,
    pub(super) vectors: &'a mut VectorWriter,
}

/// What came of a part of an attempt to get vectors that entries are owed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tried {
    /// Entries for which the model answered.
    pub given: u64,
    /// Whether the attempt is over: every entry had its turn, or the model refused all of some texts.
    pub is_last: bool,
}

/// What the graph holds for one head, as bitmaps.
#[derive(Clone, Default)]
struct Head {
    version: Option<VersionId>,
    alive: Bitmaps,
}

/// The additions of a batch to the store.
#[derive(Default)]
struct Batch {
    ordinals: FxHashMap<EntryId, Ordinal>,
    entries: Vec<(Ordinal, EntryRecord, Arc<Card>)>,
    documents: FxHashMap<Document, Ordinal>,
    rows: FxHashMap<Ordinal, Document>,
    vectors: Vec<(Ordinal, Vector)>,
    /// Where the vectors are from now on that no entry had before.
    placed: FxHashMap<EmbedInput, Ordinal>,
    /// New entries that can have no vector.
    without_vector: RoaringBitmap,
    /// New entries whose vector could not be had, and why.
    owed: Vec<(Ordinal, String)>,
    /// Texts that were given to the model though it had answered before.
    retried: u64,
    /// Identity and tokens of every entry that the batch touched.
    touched: FxHashMap<Ordinal, (EntryId, Tokens<u32>)>,
}

impl IndexWriter {
    /// Takes the open parts of a store, including the orphans of an unfinished publish.
    ///
    /// # Errors
    /// If the database fails.
    pub fn new(
        database: Database,
        memo: StoreMemo,
        archive: Archive,
        lexical: LexicalWriter,
        vectors: VectorWriter,
        fingerprint: Fingerprint,
        embedder: Arc<dyn Embedder>,
    ) -> Result<Self, ApplyError> {
        let (catalogue, model) = (database.catalogue(), embedder.fingerprint());
        let mender =
            Mender { catalogue: catalogue.clone(), coverage: database.coverage(model), memo: memo.clone(), embedder };
        let (entries, documents) = (archive.used_entries(), archive.used_documents());
        // Both indexes may hold orphans as well: their ordinals are skipped and never assigned again.
        let next_entry = entries.max(catalogue.next_entry()?).max(lexical.next_ordinal()).max(vectors.next_ordinal());
        let next_document = documents.max(catalogue.next_document()?);
        Ok(Self {
            database,
            catalogue,
            memo,
            archive,
            lexical,
            vectors,
            next_entry: OrdinalCounter::resume(next_entry),
            next_document: OrdinalCounter::resume(next_document),
            heads: FxHashMap::default(),
            hot: None,
            without_vector: mender.coverage.without()?,
            owed: mender.coverage.owed()?.into_keys().collect(),
            next_owed: 0,
            mender,
            parts: FxHashMap::default(),
            graph_free: None,
            sources: FxHashMap::default(),
            views: FxHashMap::default(),
            fingerprint,
            model,
        })
    }

    /// Returns the archive that is written to.
    #[must_use]
    pub const fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Takes one short step of maintenance: live entries are separated from historical ones, and many vectors are put into IVF
    /// lists. No answer of any version changes. Long work is left to threads of that urgency, and a step ends early if `go_on`
    /// returns false.
    ///
    /// # Errors
    /// If the lexical index fails. If its commit fails, nothing more can be published, and the next start continues from the
    /// durable state.
    pub fn tend(&mut self, urgency: Urgency, go_on: &dyn Fn() -> bool) -> Result<Tended, ApplyError> {
        // Before heads are restored, and while a step is written in parts, their entries would look dead.
        if self.heads.is_empty() || !self.parts.is_empty() {
            return Ok(Tended::Idle);
        }
        let heads = &self.heads;
        let join = || heads.values().fold(RoaringBitmap::new(), |hot, head| hot | &head.alive.entries);
        let hot = self.hot.get_or_insert_with(join);
        let vectors = self.vectors.tend(hot, urgency)?;
        if !go_on() {
            return Ok(Tended::Busy);
        }
        self.lexical.let_large_merges_wait(false);
        Ok(vectors.and(self.lexical.tend(hot, urgency, go_on)?.tended))
    }

    /// Unmaps the database if much of its file is resident, unless it is in use.
    pub fn let_go_of_much(&self) {
        self.database.let_go_of_much();
    }

    /// Returns the open parts, for garbage collection between two publishes; nothing while a step is written in parts, which no
    /// version names yet.
    pub(super) fn beside(&mut self) -> Option<Beside<'_>> {
        Some(Beside {
            graph: self.in_graph()?,
            versions: self.heads.values().filter_map(|head| head.version).collect(),
            database: &self.database,
            archive: &mut self.archive,
            lexical: &mut self.lexical,
            vectors: &mut self.vectors,
        })
    }

    /// Returns the graph's state of all heads; nothing while a step is written in parts.
    #[must_use]
    pub fn in_graph(&self) -> Option<Bitmaps> {
        if !self.parts.is_empty() {
            return None;
        }
        let mut graph = Bitmaps::default();
        for head in self.heads.values() {
            graph.entries |= &head.alive.entries;
            graph.documents |= &head.alive.documents;
        }
        Some(graph)
    }

    /// Returns the graph's documents of a head, including those of the parts of a step so far.
    #[must_use]
    pub fn documents_of(&self, head: View) -> Option<&RoaringBitmap> {
        self.heads.get(&head).map(|head| &head.alive.documents)
    }

    /// Finishes the background work and closes the store's parts.
    ///
    /// # Errors
    /// If a merge fails; published versions stay.
    pub fn close(mut self) -> Result<(), ApplyError> {
        self.vectors.give_up_upkeep();
        Ok(self.lexical.close()?)
    }

    /// Publishes the epochs of a batch, all or none of them. Exceptions are parts of steps, and the epochs before one: they are
    /// written one by one.
    ///
    /// # Errors
    /// If a write fails. Then nothing of the batch is visible, and the next start repairs the store.
    pub fn publish(&mut self, epochs: Vec<(Target, EpochDone)>) -> Result<Vec<Published>, ApplyError> {
        self.lexical.let_large_merges_wait(true);
        self.hot = None;
        let (mut published, mut group) = (Vec::new(), Vec::with_capacity(epochs.len()));
        for (target, done) in epochs {
            if matches!(target.purpose, Purpose::Part) {
                published.extend(self.publish_group(std::mem::take(&mut group))?);
                self.write_part(target.graph_view, &done)?;
            } else {
                group.push((target, done));
            }
        }
        published.extend(self.publish_group(group)?);
        Ok(published)
    }

    /// Publishes epochs that are not parts: one pass, one group of the log.
    fn publish_group(&mut self, epochs: Vec<(Target, EpochDone)>) -> Result<Vec<Published>, ApplyError> {
        if epochs.is_empty() {
            return Ok(Vec::new());
        }
        let started = Instant::now();
        self.memo.check()?;
        let mut batch = Batch::default();
        let mut heads = Vec::with_capacity(epochs.len());
        let mut latest: FxHashMap<View, Bitmaps> = FxHashMap::default();
        for (target, done) in &epochs {
            let known = latest.remove(&target.graph_view);
            let before = known.or_else(|| self.heads.get(&target.graph_view).map(|head| head.alive.clone()));
            let alive = self.move_on(before.unwrap_or_default(), done, &mut batch)?;
            latest.insert(target.graph_view, alive.clone());
            heads.push(alive);
        }
        self.write_indexes(&mut batch)?;
        let mapping = self.database.mapping()?;
        let (mut transaction, flush) = self.write_catalogue(&mapping, &batch)?;
        self.database.put_log_bytes(&mut transaction, self.archive.log_bytes())?;
        let plan = self.plan(&epochs, heads, &batch, started)?;
        let mut mended = self.answer_for(&plan.records, &mut transaction)?;
        self.graph_free = epochs.last().map(|(_, done)| done.finished);
        for published in &plan.published {
            self.catalogue.put_receipt(&mut transaction, published.epoch, &published.receipt)?;
        }
        transaction.commit()?;
        self.memo.flushed(flush);
        self.mender.committed(&mut mended);
        self.archive.append(&plan.records)?;
        for (target, _) in &epochs {
            self.parts.remove(&target.graph_view);
        }
        self.heads.extend(plan.heads);
        for head in plan.gone {
            self.heads.remove(&head);
        }
        let mut published = Vec::with_capacity(plan.published.len());
        for draft in plan.published {
            let version = self
                .archive
                .version(draft.version)
                .cloned()
                .ok_or(ApplyError::Unexpected("a version that was just appended is not in the archive"))?;
            // A missing checkpoint only costs time at the next search of an old version.
            if let Err(error) = self.archive.maybe_checkpoint(draft.version) {
                tracing::warn!("cannot write a checkpoint: {error}");
            }
            let Draft { epoch, view, receipt, waited, repaired, .. } = draft;
            let (source, view) = self.names(version.source, view)?;
            published.push(Published { epoch, source, view, version, receipt, waited, repaired });
        }
        Ok(published)
    }

    /// Returns the names of a source and a view.
    fn names(&mut self, source: SourceId, view: Option<ViewId>) -> Result<(String, Option<String>), ApplyError> {
        if !self.sources.contains_key(&source) || view.is_some_and(|view| !self.views.contains_key(&view)) {
            self.sources = self.catalogue.sources()?.into_iter().map(|(id, source)| (id, source.name)).collect();
            self.views = self.catalogue.views()?.into_iter().map(|(id, view)| (id, view.name)).collect();
        }
        let source = self.sources.get(&source).cloned().unwrap_or_default();
        Ok((source, view.and_then(|view| self.views.get(&view).cloned())))
    }

    /// Returns the live ordinals after an epoch, and resolves its changes to ordinals.
    fn move_on(&mut self, mut alive: Bitmaps, done: &EpochDone, batch: &mut Batch) -> Result<Bitmaps, ApplyError> {
        let ids: Vec<EntryId> = done.entries.iter().map(|(_, carded, _)| carded.entry.id()).collect();
        let known = self.catalogue.entry_ordinals(ids.iter().copied())?;
        for ((id, (_, carded, change)), known) in ids.into_iter().zip(&done.entries).zip(known) {
            let ordinal = match known.or_else(|| batch.ordinals.get(&id).copied()) {
                Some(ordinal) => ordinal,
                None => self.new_entry(id, carded, batch)?,
            };
            let moved = match change {
                1 => alive.entries.insert(ordinal.get()),
                -1 => alive.entries.remove(ordinal.get()),
                _ => false,
            };
            if !moved {
                return Err(ApplyError::Inexact { what: "entry", path: carded.entry.path.clone(), change: *change });
            }
        }
        for (_, document, change) in &done.documents {
            let ordinal = match self.catalogue.document_ordinal(document)? {
                Some(ordinal) => ordinal,
                None => match batch.documents.get(document) {
                    Some(ordinal) => *ordinal,
                    None => {
                        let ordinal = self.next_document.next()?;
                        batch.documents.insert(document.clone(), ordinal);
                        batch.rows.insert(ordinal, document.clone());
                        ordinal
                    }
                },
            };
            let moved = match change {
                1 => alive.documents.insert(ordinal.get()),
                -1 => alive.documents.remove(ordinal.get()),
                _ => false,
            };
            if !moved {
                return Err(ApplyError::Inexact { what: "document", path: document.path.clone(), change: *change });
            }
        }
        Ok(alive)
    }

    fn new_entry(&mut self, id: EntryId, carded: &CardedEntry, batch: &mut Batch) -> Result<Ordinal, ApplyError> {
        let CardedEntry { entry, card } = carded;
        let ordinal = self.next_entry.next()?;
        batch.ordinals.insert(id, ordinal);
        let input = card.embed_input(entry.text);
        let of_batch = batch.placed.get(&input).and_then(|first| {
            // Rows of a batch stand in the order of their ordinals.
            let at = batch.vectors.binary_search_by_key(first, |(ordinal, _)| *ordinal).ok()?;
            batch.vectors.get(at).map(|(_, vector)| vector.clone())
        });
        let kept = match of_batch {
            Some(vector) => Some(Ok(vector)),
            None => match self.memo.kept(input)? {
                Some(Kept::Vector(vector)) => {
                    batch.placed.insert(input, ordinal);
                    Some(Ok(vector))
                }
                Some(Kept::At(other)) => match owed::held(&self.vectors, other)? {
                    Some(vector) => Some(Ok(vector)),
                    // It was lost with a file, and no version reaches the entry that had it.
                    None => {
                        batch.retried += 1;
                        let answer = self.mender.ask(card, entry.text)?;
                        if let Ok(Some(_)) = answer {
                            batch.placed.insert(input, ordinal);
                        }
                        answer.transpose()
                    }
                },
                Some(Kept::NoVector) => None,
                Some(Kept::Fault(error)) => Some(Err(error)),
                None => return Err(ApplyError::Unexpected("an entry came out of the graph before its vector")),
            },
        };
        match kept {
            Some(Ok(vector)) => batch.vectors.push((ordinal, vector)),
            Some(Err(reason)) => batch.owed.push((ordinal, reason)),
            None => {
                batch.without_vector.insert(ordinal.get());
            }
        }
        let record = EntryRecord { entry: entry.clone(), tokens: Tokens::default() };
        batch.entries.push((ordinal, record, card.clone()));
        Ok(ordinal)
    }

    /// Writes new entries to both indexes, durably, and gets their token counts.
    fn write_indexes(&mut self, batch: &mut Batch) -> Result<(), ApplyError> {
        if batch.entries.is_empty() {
            return Ok(());
        }
        if !batch.vectors.is_empty() {
            self.vectors.append(&batch.vectors)?;
        }
        for (ordinal, record, card) in &mut batch.entries {
            let entry = &record.entry;
            let Some(text) = self.memo.text(entry.text) else {
                return Err(ApplyError::Unexpected("an entry's text is missing from the store"));
            };
            record.tokens = self.lexical.add(*ordinal, &text, &searched_name(card))?.into();
            batch.touched.insert(*ordinal, (entry.id(), record.tokens));
        }
        Ok(self.lexical.commit(self.next_entry.used())?)
    }

    /// Writes results and the catalogue's rows, which refer to results by number; returns the transaction with the last of them.
    ///
    /// A first load uses several transactions, whose pages would stay in memory otherwise: without a version in the log their
    /// rows are ordinary orphans.
    fn write_catalogue<'m>(
        &mut self,
        mapping: &'m Mapping,
        batch: &Batch,
    ) -> Result<(WriteTransaction<'m>, Flush), ApplyError> {
        let mut transaction = mapping.write()?;
        let flush = self.memo.flush(&mut transaction, &batch.placed)?;
        self.write_coverage(&mut transaction, batch)?;
        for (index, part) in batch.entries.chunks(TRANSACTION_ROWS).enumerate() {
            if index > 0 {
                transaction.commit()?;
                transaction = mapping.write()?;
            }
            let rows = part.iter().map(|(ordinal, record, card)| (*ordinal, record, &**card));
            self.catalogue.put_entries(&mut transaction, rows)?;
        }
        // In key order, so that the database fills its pages.
        let mut rows: Vec<_> = batch.rows.iter().map(|(ordinal, row)| (*ordinal, row)).collect();
        rows.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        self.catalogue.put_documents(&mut transaction, rows.into_iter())?;
        Ok((transaction, flush))
    }

    /// Writes which new entries can have no vector, and which are owed one.
    fn write_coverage(&mut self, to: &mut WriteTransaction<'_>, batch: &Batch) -> Result<(), ApplyError> {
        let coverage: &Coverage = &self.mender.coverage;
        if batch.retried > 0 {
            self.catalogue.add_retried(to, batch.retried)?;
        }
        if !batch.without_vector.is_empty() {
            coverage.put_without(to, &batch.without_vector)?;
            self.without_vector |= &batch.without_vector;
        }
        if let Some((_, reason)) = batch.owed.first() {
            coverage.put_owed(to, batch.owed.iter().map(|(ordinal, reason)| (*ordinal, reason.as_str())))?;
            self.owed.extend(batch.owed.iter().map(|(ordinal, _)| ordinal.get()));
            tracing::warn!("{} entries have no vector yet, which is tried again: {reason}", batch.owed.len());
        }
        Ok(())
    }

    /// Returns how many entries are owed a vector.
    #[must_use]
    pub fn owed(&self) -> u64 {
        self.owed.len()
    }

    /// Asks the model once more for some of the vectors that entries are owed. Nothing is published, and answers have the
    /// vectors from now on.
    ///
    /// # Errors
    /// Where something cannot be read or written.
    pub fn mend_owed(&mut self) -> Result<Tried, ApplyError> {
        let behind = |first: u32| self.owed.range(first..).take(MENDED_AT_ONCE).collect::<RoaringBitmap>();
        let some = Some(behind(self.next_owed)).filter(|some| !some.is_empty()).unwrap_or_else(|| behind(0));
        let mapping = self.database.mapping()?;
        let mut transaction = mapping.write()?;
        let mut mended = self.mender.mend(&some, &mut self.vectors, &mut transaction, true)?;
        transaction.commit()?;
        self.mender.committed(&mut mended);
        self.next_owed = some.max().map_or(0, |last| last.saturating_add(1));
        self.note(&mended);
        let given = (&mended.given | &mended.without).len();
        if given > 0 {
            tracing::info!("the model answered for {given} entries that were owed a vector");
        }
        let is_last = mended.is_refused || self.owed.range(self.next_owed..).next().is_none();
        Ok(Tried { given, is_last })
    }

    /// Takes over what became of entries that lacked their vectors.
    fn note(&mut self, mended: &Mended) {
        self.without_vector |= &mended.without;
        self.owed |= &mended.owed;
        self.owed -= &mended.given | &mended.without | &mended.gone;
    }
}

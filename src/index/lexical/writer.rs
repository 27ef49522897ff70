//! Appends entries to the lexical index, and makes them durable.
//!
//! In: an ordinal with its text and name, in any order of ordinals. Out: exact token counts; documents on disk.
//!
//! **Invariant:** uncommitted documents do not exist: they vanish with the writer, so a crash needs no rollback and the same
//! ordinals may be added again. Each commit contains the next free ordinal, and the fingerprint of the analyzer that made all of
//! its tokens.
//!
//! Token counts are taken here, once and for ever: after a merge that drops documents tantivy only estimates them, from quantised
//! lengths. The version decides which entries live; garbage collection deletes documents that no kept version reaches.

use super::directory::{self, Folder};
use super::error::LexicalError;
use super::merging::{ByShare, CLOSING, STEADY};
use super::removal;
use super::schema::{self, Fields, TEXT_FIELDS};
use super::temperature::{self, ByTemperature, Temperature};
use super::upkeep::{self, Upkeep};
use super::{analyzer, check};
use crate::index::background::{Background, Urgency};
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use snapshots::Ordinal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};
use tantivy::index::IndexMeta;
use tantivy::indexer::{IndexWriterOptions, NoMergePolicy};
use tantivy::{Index, IndexWriter, TantivyDocument, TantivyError};

/// The name of tantivy's segment list.
const META: &str = "meta.json";
/// A writer that saw so many commits merges their small segments when it is closed.
const COMMITS_TO_TIDY: u32 = 8;
/// How long a closing writer waits for merges, because a user waits for the tracker to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// The mode of the writer: for single commits, or for a first load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterOptions {
    /// Indexing threads; each makes its own segments. From 1 to 8.
    pub threads: usize,
    /// Memory of each thread for documents that are not on disk yet, in bytes. At least 15,000,000.
    pub thread_memory_bytes: usize,
}

impl WriterOptions {
    /// Returns the options for single commits: one thread, and as little memory as tantivy allows, because each commit sets up
    /// the memory again.
    #[must_use]
    pub const fn steady() -> Self {
        Self { threads: 1, thread_memory_bytes: 15_000_000 }
    }

    /// Returns the options for a first load: two threads beside the one that adds and analyses, which saved a quarter of one
    /// thread's time on idle processors and cost nothing on busy ones; and memory for some 30,000 entries each, so that large
    /// segments are written directly instead of merged from small ones.
    #[must_use]
    pub const fn bulk() -> Self {
        Self { threads: 2, thread_memory_bytes: 50_000_000 }
    }
}

/// A commit's payload, about all documents so far.
#[derive(Serialize, Deserialize)]
struct Payload {
    next_ordinal: u32,
    analyzer: String,
}

/// The one writer of a lexical index.
pub struct LexicalWriter {
    pub(super) writer: IndexWriter,
    fields: Fields,
    next_ordinal: u32,
    /// The entries with a document in the last commit.
    pub(super) held: RoaringBitmap,
    /// The entries added since.
    added: RoaringBitmap,
    /// Commits since it was opened.
    commits: u32,
    pub(super) temperature: Temperature,
    /// Whether the remains of killed writers are removed.
    is_swept: bool,
    pub(super) upkeep: Upkeep,
    pub(super) folder: Folder,
}

impl LexicalWriter {
    /// Opens the index in `dir` for single commits, and creates it if there is none.
    ///
    /// # Errors
    /// [`LexicalError::Open`] if it cannot be read or another writer holds it; [`LexicalError::Schema`],
    /// [`LexicalError::Analyzer`] or [`LexicalError::Payload`] if it was made differently.
    pub fn open_or_create(dir: &Path) -> Result<Self, LexicalError> {
        Self::open_with(dir, WriterOptions::steady())
    }

    /// Opens the index in `dir` as [`Self::open_or_create`] does, with options.
    ///
    /// # Errors
    /// As [`Self::open_or_create`]; also [`LexicalError::Open`] if the options are out of bounds.
    pub fn open_with(dir: &Path, options: WriterOptions) -> Result<Self, LexicalError> {
        let failed = |source: TantivyError| LexicalError::Open { path: dir.to_owned(), source: source.into() };
        fs::create_dir_all(dir).map_err(|source| failed(source.into()))?;
        let folder = Folder::open(dir).map_err(|source| failed(source.into()))?;
        let (index, fields) = if Index::exists(&folder).map_err(|source| failed(source.into()))? {
            open_in(folder.clone())?
        } else {
            let (schema, fields) = schema::schema();
            let index = Index::open_or_create(folder.clone(), schema).map_err(failed)?;
            index.tokenizers().register(schema::TOKENIZER, schema::tokenizer());
            (index, fields)
        };
        directory::forget_list(dir);
        let next_ordinal = next_ordinal(dir, &index.load_metas().map_err(failed)?)?;

        // Two merging threads, so that small merges do not wait for a large one; they have low priority.
        let options = IndexWriterOptions::builder()
            .num_worker_threads(options.threads)
            .memory_budget_per_thread(options.thread_memory_bytes)
            .num_merge_threads(2)
            .build();
        let writer = index.writer_with_options(options).map_err(failed)?;
        upkeep::remove_copies(dir);
        let temperature = Temperature::default();
        let (held, added) = (held(&index)?, RoaringBitmap::new());
        let (commits, is_swept, upkeep) = (0, false, Upkeep::default());
        let mut writer =
            Self { writer, fields, next_ordinal, held, added, commits, temperature, is_swept, upkeep, folder };
        writer.hold_merges(false);
        Ok(writer)
    }

    /// Returns the next ordinal of the last commit, or 0 if there was none.
    #[must_use]
    pub const fn next_ordinal(&self) -> u32 {
        self.next_ordinal
    }

    /// Adds one entry and returns the tokens of its text and of its name. It is found after the next commit.
    ///
    /// Waits while 10,000 entries are queued (backpressure). An ordinal must be added once.
    ///
    /// # Errors
    /// [`LexicalError::Add`] if indexing has failed, for this entry or an earlier one: open the writer again.
    pub fn add(&mut self, ordinal: Ordinal, text: &str, name: &str) -> Result<[u32; TEXT_FIELDS], LexicalError> {
        let mut document = TantivyDocument::new();
        document.add_u64(self.fields.ordinal, u64::from(ordinal.get()));
        let mut tokens = [0; TEXT_FIELDS];
        for ((field, text), tokens) in self.fields.texts.into_iter().zip([text, name]).zip(&mut tokens) {
            let (packed, count) = schema::pack(text);
            if count > 0 {
                document.add_text(field, packed);
            }
            *tokens = count;
        }
        self.writer.add_document(document).map_err(|source| LexicalError::Add { ordinal, source: source.into() })?;
        self.added.insert(ordinal.get());
        Ok(tokens)
    }

    /// Makes added entries durable, and records the next free ordinal.
    ///
    /// # Errors
    /// [`LexicalError::Commit`]: entries added since the last commit are lost; open the writer again.
    pub fn commit(&mut self, next_ordinal: u32) -> Result<(), LexicalError> {
        let failed = |source: TantivyError| LexicalError::Commit(source.into());
        let payload = Payload { next_ordinal, analyzer: analyzer::fingerprint().to_string() };
        let payload = serde_json::to_string(&payload).map_err(|source| failed(std::io::Error::from(source).into()))?;
        let mut commit = self.writer.prepare_commit().map_err(failed)?;
        commit.set_payload(&payload);
        commit.commit().map_err(failed)?;
        self.next_ordinal = next_ordinal;
        self.held |= std::mem::take(&mut self.added);
        self.commits = self.commits.saturating_add(1);
        Ok(())
    }

    /// Merges all committed segments into one and waits for it.
    ///
    /// # Errors
    /// [`LexicalError::Merge`] if that fails; the segments do not change.
    pub fn merge_all(&mut self) -> Result<(), LexicalError> {
        let failed = |source: TantivyError| LexicalError::Merge(source.into());
        let segments = self.writer.index().searchable_segment_ids().map_err(failed)?;
        if segments.len() > 1 {
            self.writer.merge(&segments).wait().map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the entries with a document in the last commit.
    #[must_use]
    pub const fn held(&self) -> &RoaringBitmap {
        &self.held
    }

    /// Returns the folder of the index.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.root()
    }

    /// Returns a file of the last commit that is missing, if there is one.
    ///
    /// Reads the segment list and the names in the folder.
    ///
    /// # Errors
    /// [`LexicalError::Load`] if one of them exists and cannot be read.
    pub fn lost_file(&self) -> Result<Option<PathBuf>, LexicalError> {
        let mut suspect = None;
        loop {
            // While a segment is referenced here, no finished merge removes its files.
            let segments = self.segments();
            let names = match self.folder.list() {
                Ok(names) => FxHashSet::from_iter(names),
                Err(error) if error.kind() == io::ErrorKind::NotFound => FxHashSet::default(),
                Err(error) => return Err(LexicalError::Load(error.into())),
            };
            let list = PathBuf::from(META);
            if !names.contains(META) {
                return Ok(Some(list));
            }
            let mut files = segments?.into_iter().flat_map(|segment| check::files_of(&segment));
            let lost = files.find(|file| !names.contains(&*file.to_string_lossy()));
            // A merge may have replaced the list between its reading and the moment when its segments were referenced here.
            if lost.is_none() || lost == suspect {
                return Ok(lost);
            }
            suspect = lost;
        }
    }

    /// Abandons the index: nothing more is written to its folder when this returns.
    pub fn give_up(self) {
        let Self { writer, folder, upkeep, .. } = self;
        folder.give_up();
        drop(upkeep);
        // Merges fail at their next write. The error is ignored, because their result is not wanted.
        let _ = writer.wait_merging_threads();
    }

    /// Deletes the documents of these entries, durably; [`Self::compact`] reclaims the space. The next free ordinal stays.
    ///
    /// Reads the ordinal of every document, once for all of them: ordinals have no postings, which would cost more space than
    /// they save time here.
    ///
    /// # Errors
    /// [`LexicalError::Commit`]: nothing was deleted; open the writer again.
    pub fn remove(&mut self, entries: &RoaringBitmap) -> Result<(), LexicalError> {
        let failed = |source: TantivyError| LexicalError::Commit(source.into());
        self.sweep()?;
        self.writer
            .delete_query(Box::new(removal::documents_of(entries.clone(), FxHashMap::default())))
            .map_err(failed)?;
        self.temperature.left(entries, None);
        self.commit(self.next_ordinal)?;
        self.held -= entries;
        Ok(())
    }

    /// A deletion that was killed before its commit left a file that is named by the number of operations so far. The first
    /// deletion of this writer may have the same number, and would not overwrite the file.
    pub(super) fn sweep(&mut self) -> Result<(), LexicalError> {
        if !self.is_swept {
            let swept = self.writer.garbage_collect_files().wait();
            swept.map_err(|source| LexicalError::Commit(source.into()))?;
            self.is_swept = true;
        }
        Ok(())
    }

    /// Prevents merges from starting, so that [`Self::compact`] finds the segments that it looked up; or allows them again.
    pub fn hold_merges(&mut self, hold: bool) {
        if hold {
            return self.writer.set_merge_policy(Box::new(NoMergePolicy));
        }
        self.merge_by(STEADY);
    }

    /// Makes large merges wait during commits, or allows them at the next call of [`Self::tend`].
    pub fn let_large_merges_wait(&self, wait: bool) {
        self.temperature.let_large_merges_wait(wait);
    }

    fn merge_by(&self, sizes: ByShare) {
        let (index, temperature) = (self.writer.index().clone(), self.temperature.clone());
        self.writer.set_merge_policy(Box::new(ByTemperature { sizes, index, temperature }));
    }

    /// Waits for running merges, if they end soon, and closes the index. An abandoned merge loses nothing else.
    ///
    /// After many commits their small segments are merged as well; after one, as in a first load, they are not.
    ///
    /// # Errors
    /// [`LexicalError::Merge`] if one of them fails.
    pub fn close(mut self) -> Result<(), LexicalError> {
        self.upkeep = Upkeep::default();
        self.let_large_merges_wait(false);
        if self.commits >= COMMITS_TO_TIDY {
            self.merge_by(CLOSING);
            // tantivy asks the policy when a commit or a merge ends.
            self.commit(self.next_ordinal)?;
        }
        let (writer, folder) = (self.writer, self.folder);
        let waiting = Background::begin("tidemill-closing", Urgency::Awaited, move |_| writer.wait_merging_threads());
        let waiting = waiting.map_err(|source| LexicalError::Merge(source.into()))?;
        if !waiting.is_finished_within(PATIENCE) {
            folder.give_up();
            // They fail at their next write. If they do not get there, they and their output are abandoned.
            drop(waiting);
            return Ok(());
        }
        let panicked = || TantivyError::SystemError("the thread that waits for merges panicked".to_owned());
        let waited = waiting.end().unwrap_or_else(|| Err(panicked()));
        waited.map_err(|source| LexicalError::Merge(source.into()))
    }
}

/// Reads the entries with a document in the last commit.
fn held(index: &Index) -> Result<RoaringBitmap, LexicalError> {
    let segments = index.searchable_segment_metas().map_err(|source| LexicalError::Load(source.into()))?;
    let held = temperature::read(index, &segments)?.into_iter();
    Ok(held.fold(RoaringBitmap::new(), |all, (_, held)| all | held))
}

/// Opens the index in `dir` and checks that it has the fields and the analyzer of this build.
pub(super) fn open(dir: &Path) -> Result<(Index, Fields), LexicalError> {
    let failed = |source: TantivyError| LexicalError::Open { path: dir.to_owned(), source: source.into() };
    open_in(Folder::open(dir).map_err(|source| failed(source.into()))?)
}

fn open_in(folder: Folder) -> Result<(Index, Fields), LexicalError> {
    let dir = &folder.root().to_owned();
    let failed = |source: TantivyError| LexicalError::Open { path: dir.to_owned(), source: source.into() };
    let index = Index::open(folder).map_err(failed)?;
    let (schema, fields) = schema::schema();
    if index.schema() != schema {
        return Err(LexicalError::Schema { path: dir.to_owned() });
    }
    next_ordinal(dir, &index.load_metas().map_err(failed)?)?;
    index.tokenizers().register(schema::TOKENIZER, schema::tokenizer());
    Ok((index, fields))
}

/// Returns the next ordinal of the last commit, after a check that its analyzer is that of this build.
fn next_ordinal(dir: &Path, metas: &IndexMeta) -> Result<u32, LexicalError> {
    let Some(payload) = &metas.payload else {
        // A new index, or one without any commit.
        return if metas.segments.is_empty() { Ok(0) } else { Err(LexicalError::Payload { path: dir.to_owned() }) };
    };
    let payload: Payload = serde_json::from_str(payload).map_err(|_| LexicalError::Payload { path: dir.to_owned() })?;
    let built = analyzer::fingerprint();
    if payload.analyzer != built.to_string() {
        return Err(LexicalError::Analyzer { path: dir.to_owned(), found: payload.analyzer, built });
    }
    Ok(payload.next_ordinal)
}

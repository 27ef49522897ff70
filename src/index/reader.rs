//! A store open for reading: any version of it, in this process or beside a tracker in another.
//!
//! In: a store's folder. Out: views of versions that can be searched, and the data of their ordinals.
//!
//! **Invariant:** the log is read before the indexes. An index holds all data of a version before the version is logged, so both
//! indexes have all of any version in the log: no reader sees half of an epoch. The reader takes its lease before it reads the
//! log and renews it after, so no entry that it may search is collected.

use super::lexical::{LexicalError, LexicalReader, LexicalView, LiveStatistics, OrdinalMaps};
use super::order::TieOrder;
use super::vector::{Shape, VectorError, VectorReader, VectorSet};
use crate::store::{Catalogue, Columns, Coverage, Database, Judge, Layout, Lease, StoreError, StoreMemo};
use dataflows::data::{DocumentPath, ModelId};
use half::f16;
use roaring::RoaringBitmap;
use snapshots::{Archive, ArchiveError, Ordinal, Tokens, VersionId};
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many views are cached: the heads of a few sources, and the commits of the last requests.
const KEPT_VIEWS: usize = 8;
/// Why an entry lacks a vector that the model never refused.
const LOST: &str = "its vector was lost with a file; `tidemill track` on this store makes it again";

/// Reason why a store cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The version log failed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The lexical index failed.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The vector index failed.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// Nothing has been published yet.
    #[error("the store has no version yet; `tidemill track PATH` makes the first")]
    Empty,
}

/// A store open for reading.
pub struct IndexReader {
    layout: Layout,
    shape: Shape,
    database: Database,
    catalogue: Catalogue,
    memo: StoreMemo,
    coverage: Coverage,
    parts: Mutex<Parts>,
    columns: Columns,
}

struct Parts {
    lease: Lease,
    archive: Archive,
    lexical: LexicalReader,
    /// Once a question by vectors was asked.
    vectors: Option<VectorReader>,
    maps: OrdinalMaps,
    /// In order of use, the latest last.
    views: Vec<Arc<IndexView>>,
}

/// What the model made of an entry, as far as a reader knows.
#[derive(Clone, PartialEq, Debug)]
pub enum Given {
    /// A vector, by its components.
    Vector(Vec<f16>),
    /// The model knows no token of the entry: it can have none.
    NoVector,
    /// It should have one and has none yet, for this reason.
    Owed(String),
}

/// One version, or the union of one version a source, ready to be searched. It never changes.
pub struct IndexView {
    /// The versions, in the order of their sources.
    pub versions: Vec<VersionId>,
    /// Every live entry.
    pub entries: RoaringBitmap,
    /// The words of the live entries.
    pub lexical: LexicalView,
    /// The vectors, of live entries and of dead ones, after the first request for them.
    vectors: OnceLock<VectorSet>,
    /// How many live entries are owed a vector, after the first request.
    owed: OnceLock<u64>,
}

impl IndexReader {
    /// Opens the store of a layout for the vectors of one model.
    ///
    /// # Errors
    /// If there is no store, or a part of it is damaged, of another format, or of another model.
    pub fn open(layout: &Layout, model: ModelId, dimensions: u32) -> Result<Self, ReaderError> {
        layout.check()?;
        let mut lease = Lease::take(layout)?;
        // A store without a published version may lack any of its parts.
        let archive = Archive::open_reader(&layout.versions()).map_err(|error| match error {
            _ if !layout.versions().join("versions.log").exists() => ReaderError::Empty,
            error => error.into(),
        })?;
        if archive.versions().is_empty() {
            return Err(ReaderError::Empty);
        }
        let database = Database::open_reader(layout)?;
        let lexical = LexicalReader::open(&layout.lexical())?;
        lease.renew(archive.log_bytes())?;
        let parts = Parts { lease, archive, lexical, vectors: None, maps: OrdinalMaps::new(), views: Vec::new() };
        Ok(Self {
            layout: layout.clone(),
            shape: Shape { dimensions, model },
            catalogue: database.catalogue(),
            memo: database.memo(model),
            coverage: database.coverage(model),
            database,
            parts: Mutex::new(parts),
            columns: Columns::default(),
        })
    }

    /// Reads the store on from the last position; returns whether anything was published or dropped since.
    ///
    /// No search may run meanwhile: entries of a running search might be collected once the lease is renewed.
    ///
    /// # Errors
    /// If a part cannot be read; the known state stays.
    pub fn refresh(&mut self) -> Result<bool, ReaderError> {
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        let moved = parts.archive.refresh()?;
        if moved {
            parts.lexical.reload()?;
            if let Some(vectors) = &mut parts.vectors {
                vectors.refresh()?;
            }
            let Parts { archive, views, .. } = &mut *parts;
            views.retain(|view| view.versions.iter().all(|version| !archive.is_dropped(*version)));
            parts.lease.renew(parts.archive.log_bytes())?;
        } else if parts.views.iter().any(|view| view.owed.get().is_some_and(|owed| *owed > 0)) {
            // An owed vector comes without a new version.
            let Parts { vectors, views, .. } = &mut *parts;
            if let Some(vectors) = vectors
                && vectors.refresh()?
            {
                views.clear();
            }
        }
        Ok(moved)
    }

    /// Returns the view of one version, or of one version per source together.
    ///
    /// It costs nothing for the last requested views.
    ///
    /// # Errors
    /// If a version is not in the log, or an index lacks a part of it.
    pub fn view(&self, versions: &[VersionId]) -> Result<Arc<IndexView>, ReaderError> {
        let mut parts = self.parts();
        if let Some(at) = parts.views.iter().position(|view| view.versions == versions) {
            let view = parts.views.remove(at);
            parts.views.push(view.clone());
            return Ok(view);
        }
        let (entries, statistics) = self.union(&parts.archive, versions)?;
        let searcher = parts.lexical.searcher();
        let lexical = match parts.views.last() {
            Some(near) => {
                let (inserted, retracted) = (&entries - &near.entries, &near.entries - &entries);
                near.lexical.advance(searcher, &entries, &inserted, &retracted, statistics)?
            }
            None => LexicalView::new(searcher, &parts.maps, &entries, statistics)?,
        };
        let view = Arc::new(IndexView {
            versions: versions.to_vec(),
            vectors: OnceLock::new(),
            owed: OnceLock::new(),
            entries,
            lexical,
        });
        if parts.views.len() == KEPT_VIEWS {
            parts.views.remove(0);
        }
        parts.views.push(view.clone());
        Ok(view)
    }

    /// Returns the entries of all versions together, and their statistics: an entry of several versions counts once.
    fn union(&self, archive: &Archive, versions: &[VersionId]) -> Result<(RoaringBitmap, LiveStatistics), ReaderError> {
        let mut entries = RoaringBitmap::new();
        let mut tokens = Tokens::default();
        for &version in versions {
            let alive = archive.bitmaps(version)?;
            let known = archive.version(version).ok_or(ReaderError::Empty)?;
            tokens.add(known.statistics.live_tokens);
            let shared = &entries & &alive.entries;
            for record in self.catalogue.entries(shared.iter().map(Ordinal::new))? {
                tokens.remove(record.tokens);
            }
            entries |= &alive.entries;
        }
        let statistics = LiveStatistics { entries: entries.len(), tokens: tokens.first() };
        Ok((entries, statistics))
    }

    /// Returns the vectors of a view's entries, and of others. Opens their files the first time: a question by words needs none of them.
    ///
    /// # Errors
    /// If a file is damaged, of another format, or of another model.
    pub fn vectors(&self, view: &IndexView) -> Result<VectorSet, ReaderError> {
        if let Some(set) = view.vectors.get() {
            return Ok(set.clone());
        }
        // Opened after the log, it holds what the versions need, and perhaps more.
        let set = self.newest_vectors()?;
        Ok(view.vectors.get_or_init(|| set).clone())
    }

    /// Returns the vectors as last read; opens their files the first time.
    fn newest_vectors(&self) -> Result<VectorSet, ReaderError> {
        let mut parts = self.parts();
        let vectors = match &mut parts.vectors {
            Some(vectors) => vectors,
            none => none.insert(VectorReader::open(&self.layout.vectors(), self.shape)?),
        };
        Ok(vectors.set())
    }

    /// Returns how many live entries of a view are owed a vector, because the model failed or a file was lost: the nearest
    /// entries to a question may be among them.
    ///
    /// Costs a look at the bitmap of the entries that can have none, the first time and where some have none.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn owed_vectors(&self, view: &IndexView) -> Result<u64, ReaderError> {
        if let Some(owed) = view.owed.get() {
            return Ok(*owed);
        }
        let without = &view.entries - self.vectors(view)?.has();
        let owed = match without.is_empty() {
            true => 0,
            false => (without - self.coverage.without()?).len(),
        };
        if owed > 0 {
            tracing::warn!(
                "{owed} entries have no vector yet, so the nearest may be missing; `tidemill track` on this store tries again, and `tidemill status` says why"
            );
        }
        Ok(*view.owed.get_or_init(|| owed))
    }

    /// Returns the entries of a view that are owed a vector.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn owed_entries(&self, entries: &RoaringBitmap) -> Result<Vec<(Ordinal, String)>, ReaderError> {
        let owed = entries - self.newest_vectors()?.has() - self.coverage.without()?;
        if owed.is_empty() {
            return Ok(Vec::new());
        }
        let mut reasons = self.coverage.owed()?;
        let mut reason = |ordinal| reasons.remove(&ordinal).unwrap_or_else(|| LOST.to_owned());
        Ok(owed
            .iter()
            .map(|ordinal| (Ordinal::new(ordinal), ordinal))
            .map(|(at, ordinal)| (at, reason(ordinal)))
            .collect())
    }

    /// Returns what the model made of an entry.
    ///
    /// # Errors
    /// Where the database fails, or the vectors cannot be read.
    pub fn vector_of(&self, entry: Ordinal) -> Result<Given, ReaderError> {
        if let Some(components) = self.newest_vectors()?.vector_of(entry)? {
            return Ok(Given::Vector(components));
        }
        if self.coverage.without()?.contains(entry.get()) {
            return Ok(Given::NoVector);
        }
        Ok(Given::Owed(self.coverage.owed()?.remove(&entry.get()).unwrap_or_else(|| LOST.to_owned())))
    }

    /// Returns those of `entries` that pass a filter.
    ///
    /// The cost is some milliseconds a million entries; the first call also reads their columns.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn passing(&self, entries: &RoaringBitmap, judge: &dyn Judge) -> Result<RoaringBitmap, ReaderError> {
        Ok(self.columns.passing(&self.catalogue, entries, judge)?)
    }

    /// Calls `look` with each distinct path of `entries`, in no order.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn each_path(&self, entries: &RoaringBitmap, look: impl FnMut(&[u8])) -> Result<(), ReaderError> {
        Ok(self.columns.each_path(&self.catalogue, entries, look)?)
    }

    /// Returns the distinct paths of entries, sorted by bytes.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn paths(&self, entries: &[Ordinal]) -> Result<Vec<DocumentPath>, ReaderError> {
        Ok(self.columns.paths(&self.catalogue, entries)?)
    }

    /// Returns the number of an entry's path: entries have the same one if and only if they have the same path.
    ///
    /// # Errors
    /// If the database fails or lacks the row.
    pub fn path_number(&self, entry: Ordinal) -> Result<u32, ReaderError> {
        Ok(self.columns.path_number(&self.catalogue, entry)?)
    }

    /// Unmaps the database if much of its file is resident, unless it is in use.
    pub fn let_go_of_much(&self) {
        self.database.let_go_of_much();
    }

    /// Unmaps the database, unless it is in use; the next access maps it again.
    pub fn let_go(&self) {
        self.database.let_go();
    }

    /// Calls `look` with the version log as last read.
    pub fn with_archive<T>(&self, look: impl FnOnce(&Archive) -> T) -> T {
        look(&self.parts().archive)
    }

    /// Returns the catalogue.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns texts, cards and chunk lists.
    #[must_use]
    pub const fn memo(&self) -> &StoreMemo {
        &self.memo
    }

    /// Returns the database.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the location of the store.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // The state is consistent after every step, so a panic elsewhere does not spoil it.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ties are ordered by path, then by the entry's identity; used for equal scores only.
impl TieOrder for IndexReader {
    fn compare(&self, left: Ordinal, right: Ordinal) -> Ordering {
        // A store that lost a row has a larger problem, which reading the hit will report.
        let compared = self.columns.compare(&self.catalogue, left, right);
        compared.unwrap_or_else(|_| left.cmp(&right))
    }
}

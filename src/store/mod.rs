//! The data on disk beside the indexes: results by identity, and the catalogue of ordinals.
//!
//! In: values of `dataflows`, by their hashes. Out: the same values, for this process and any other with the store open. One LMDB
//! environment holds everything, so that results, catalogue and receipts of one publish are one transaction.
//!
//! ```text
//!  .tidemill/
//!    FORMAT      the format, in one line            LOCK      held by the writer
//!    .gitignore, CACHEDIR.TAG                       hide it from git, backups and indexers
//!    memo/       LMDB: results and catalogue        lexical/  tantivy
//!    vectors/    vector segments                    versions/ the log (commit point) and checkpoints
//!    leases/     reader leases
//!    requests/   requests to a tracker for garbage collection
//!    tracker.json  the report of the running tracker, or of the last one
//! ```
//!
//! **Invariant:** readers see an ordinal only through a version, and a version is logged only after the transaction that wrote
//! its ordinals. Rows beyond the log's last ordinal are orphans, which the repeated publish finds by identity.
//!
//! LMDB through `heed`, because other processes read while the tracker writes (`docs/decisions/0004-lmdb.md`).

mod catalogue;
mod codec;
mod collected;
mod columns;
mod coverage;
mod dictionaries;
mod identities;
mod identity;
mod layout;
mod lease;
mod looks;
mod mapped;
mod memo;
mod note;
mod numbering;
mod packing;
mod records;
mod requests;
mod rows;
mod seen;
mod shared;
mod state;
mod sweep;
mod tables;
mod texts;
mod unlocked;
mod upgrade;
mod vectors;

pub use catalogue::Catalogue;
pub use codec::CodecError;
pub(crate) use codec::{decode, encode};
pub use collected::LastCollection;
pub use columns::{Columns, Judge};
pub use coverage::Coverage;
pub use identity::SourceRoots;
pub use layout::{Layout, STORE_FORMAT, WriterLock, vector_set, writer};
pub use lease::{Gate, Lease, leases};
pub use looks::LookBook;
pub use mapped::Mapping;
pub use memo::{Flush, Kept, StoreMemo};
pub use records::{EntryRecord, Receipt, SourceKind, SourceRecord, ViewRecord};
pub use requests::{Asked, CollectionRequest, answer, requests};
pub(crate) use shared::{create_file, open_file};
pub use state::{FetchState, LeftOutState, SourceState, TrackerState, TroubleState, UnreadableState, WatchState};
pub use sweep::{Needed, Portion, Superfluous, Swept};
pub use vectors::vector_id;

use mapped::Mapped;
use snapshots::Ordinal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tables::Tables;

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or folder could not be used.
    #[error("cannot {attempt} {}", path.display())]
    Io {
        /// The attempted operation, as a verb phrase.
        attempt: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no store.
    #[error("there is no store at {}; `tidemill track PATH` makes one", path.display())]
    Missing {
        /// Its path.
        path: PathBuf,
    },
    /// The store has another format.
    #[error("cannot open the store at {}: it is format {found}, this build reads format {STORE_FORMAT}; use the release that wrote it, or track again into a new folder", path.display())]
    Format {
        /// Its path.
        path: PathBuf,
        /// Its stated format.
        found: String,
    },
    /// The store has a format that a writer upgrades to this build's.
    #[error("cannot read the store at {}: it is format {found}, this build reads format {STORE_FORMAT}; start `tidemill track` on it once, which brings it there", path.display())]
    Older {
        /// Its path.
        path: PathBuf,
        /// What it says of itself.
        found: String,
    },
    /// A store of an older format cannot be upgraded while a process reads it.
    #[error("cannot bring the store at {} to format {STORE_FORMAT} while another process reads it; try again when that has ended", path.display())]
    InUse {
        /// Its path.
        path: PathBuf,
    },
    /// A store of another analyzer cannot be indexed again while a process reads it.
    #[error("cannot index the texts of the store at {} again for this release while another process reads it; try again when that has ended", path.display())]
    Reading {
        /// Its path.
        path: PathBuf,
    },
    /// Another process writes to it.
    #[error("cannot write to the store at {}: {holder} holds its lock; stop that tracker, or use another --data folder", path.display())]
    Locked {
        /// Its path.
        path: PathBuf,
        /// The holder of the lock.
        holder: String,
    },
    /// The database failed.
    #[error("the database of the store failed while trying to {attempt}{}", next_step(source))]
    Database {
        /// The attempted operation, as a verb phrase.
        attempt: &'static str,
        /// LMDB's error.
        source: heed::Error,
    },
    /// The database's file is missing, or shorter than what was written to it.
    #[error("the database in {} is gone or was cut short; restore it from a backup, or track again into a new folder (a tracker that was killed while it published may leave it so for a moment: then starting it again mends it)", path.display())]
    Cut {
        /// Its folder.
        path: PathBuf,
    },
    /// A value does not decode.
    #[error("a value in the store's table `{table}` is damaged; run `tidemill snapshots verify`")]
    Damaged {
        /// Which table.
        table: &'static str,
        /// The codec's error.
        source: CodecError,
    },
    /// All numbers of a table are used.
    #[error("the store's table `{table}` has no number left; track again into a new folder")]
    Full {
        /// Which table.
        table: &'static str,
    },
    /// A required row is missing.
    #[error("the store's table `{table}` has no row {key}; run `tidemill snapshots verify`")]
    Lost {
        /// Which table.
        table: &'static str,
        /// The row's key, for people.
        key: String,
    },
}

/// Returns the advice for a damaged database; other failures need none.
fn next_step(failure: &heed::Error) -> &'static str {
    use heed::MdbError::{Corrupted, Invalid, PageNotFound, VersionMismatch};
    match failure {
        heed::Error::Mdb(Corrupted | Invalid | PageNotFound | VersionMismatch) => {
            "; it is damaged: restore it from a backup, or track again into a new folder"
        }
        _ => "",
    }
}

/// The key of the row with the log's length.
const LOG_MARK: &[u8] = b"log";

/// The open database: cheap to clone, the same for readers and the writer of one process.
#[derive(Clone)]
pub struct Database {
    mapped: Mapped,
}

impl Database {
    /// Opens the database of a store for the process with the writer's lock, creates it if needed, and upgrades one of the
    /// previous format.
    ///
    /// # Errors
    /// If the folder cannot be used, the database is damaged, or it is of an older format and a process reads it.
    pub fn open_writer(layout: &Layout) -> Result<Self, StoreError> {
        let database = Self { mapped: Mapped::open(&layout.memo(), true)? };
        let gate = {
            let tables = database.mapped.tables()?;
            let gate = upgrade::upgrade(layout, &tables)?;
            columns::blocks::fill(&tables)?;
            gate
        };
        if let Some(gate) = gate {
            // Every commit would go through the list of the pages that were given back.
            if let Err(error) = database.compact(&gate) {
                tracing::warn!("the database keeps its free pages until `tidemill snapshots gc`: {error}");
            }
            upgrade::finish(layout, gate)?;
        }
        Ok(database)
    }

    /// Opens the database of a store for reading, also while another process writes.
    ///
    /// # Errors
    /// If there is none or it cannot be read.
    pub fn open_reader(layout: &Layout) -> Result<Self, StoreError> {
        // LMDB would create a new one.
        if std::fs::metadata(layout.memo().join("data.mdb")).map_or(0, |file| file.len()) == 0 {
            return Err(StoreError::Cut { path: layout.memo() });
        }
        Ok(Self { mapped: Mapped::open(&layout.memo(), false)? })
    }

    /// Returns the catalogue of ordinals, sources and views.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        Catalogue::new(self.mapped.clone())
    }

    /// Returns the memo of results for one model's vectors.
    #[must_use]
    pub fn memo(&self, model: dataflows::data::ModelId) -> StoreMemo {
        StoreMemo::new(self.mapped.clone(), model)
    }

    /// Returns which entries one model covers.
    #[must_use]
    pub fn coverage(&self, model: dataflows::data::ModelId) -> Coverage {
        Coverage::new(self.mapped.clone(), model)
    }

    /// Returns where the vectors of a model are: what each input is stored under, and the ordinal of the entry that has its
    /// vector, in the order of the former.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn placed_vectors(&self) -> Result<Vec<([u8; 16], Ordinal)>, StoreError> {
        let tables = self.mapped.tables()?;
        let mut placed = Vec::new();
        tables.vectors.inputs.each(&*tables.read()?, |id, number| {
            if number != vectors::NO_VECTOR {
                placed.push((id, Ordinal::new(number)));
            }
            Ok(())
        })?;
        placed.sort_unstable();
        Ok(placed)
    }

    /// Takes hold of the database, to write to it.
    ///
    /// # Errors
    /// If it was unmapped and cannot be opened again.
    pub fn mapping(&self) -> Result<Mapping, StoreError> {
        self.mapped.mapping()
    }

    /// Unmaps the database if much of its file is resident, unless it is in use.
    pub fn let_go_of_much(&self) {
        self.mapped.let_go_of_much();
    }

    /// Unmaps the database, unless it is in use; the next access maps it again.
    pub fn let_go(&self) {
        self.mapped.let_go();
    }

    /// Returns the results that nothing needs, or nothing if `go_on` returns false; writes nothing.
    ///
    /// # Errors
    /// If the database fails.
    pub fn superfluous(
        &self,
        needed: &Needed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Superfluous>, StoreError> {
        Superfluous::find(&self.mapped.tables()?, needed, go_on)
    }

    /// Takes results that became needed off a list of superfluous ones; see [`Needed`].
    ///
    /// # Errors
    /// If the database fails.
    pub fn keep(&self, superfluous: &mut Superfluous, needed: &Needed) -> Result<(), StoreError> {
        superfluous.keep(&self.mapped.tables()?, needed)
    }

    /// Removes some of the superfluous results, durably, and takes them off the list; `go_on` is called regularly.
    ///
    /// # Errors
    /// If the database fails; then nothing is removed, and the list must not be used again.
    pub fn remove(
        &self,
        superfluous: &mut Superfluous,
        portion: Portion,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Swept, StoreError> {
        superfluous.remove(&self.mapped.tables()?, portion, go_on)
    }

    /// Rewrites the file without its free pages and replaces the old one; returns whether it could: not while a caller holds the
    /// database. Until the rename the old file is valid, afterwards the new one.
    ///
    /// Only with the exclusive [`Gate`]: a reader with the old file open would not see later writes.
    ///
    /// # Errors
    /// If the disk is full; the old file stays.
    pub fn compact(&self, _gate: &Gate) -> Result<bool, StoreError> {
        self.mapped.compact()
    }

    /// Returns whether the database's file was shorter than its pages when it was opened: it may have been truncated.
    #[must_use]
    pub fn was_short(&self) -> bool {
        self.mapped.was_short()
    }

    /// Returns the length of the version log before the last publish that reached the database.
    ///
    /// # Errors
    /// If the database fails.
    pub fn log_bytes(&self) -> Result<Option<u64>, StoreError> {
        let tables = self.mapped.tables()?;
        tables.marks.get(&*tables.read()?, LOG_MARK)
    }

    /// Writes the length of the version log before a publish. If the log is shorter later, versions are lost.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn put_log_bytes(&self, to: &mut WriteTransaction<'_>, bytes: u64) -> Result<(), StoreError> {
        to.1.marks.put(&mut to.0, LOG_MARK, &bytes)
    }

    /// Returns the inconsistencies among the numbers of texts, heads, places, paths and vectors: how many of each do not lead
    /// back to their number.
    ///
    /// # Errors
    /// If the database fails.
    pub fn lost_numbers(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let tables = self.mapped.tables()?;
        let txn = tables.read()?;
        let lost = [
            ("texts", tables.texts.count_lost(&txn)?),
            ("heads", tables.heads.count_lost(&txn)?),
            ("places", tables.places.count_lost(&txn)?),
            ("paths", tables.paths.count_lost(&txn)?),
            ("vectors", tables.vectors.count_lost(&txn)?),
        ];
        Ok(lost.into_iter().filter(|(_, lost)| *lost > 0).collect())
    }

    /// Returns how many entries have another path, head or place in the columns than in their rows.
    ///
    /// # Errors
    /// If the database fails.
    pub fn odd_columns(&self) -> Result<u64, StoreError> {
        let tables = self.mapped.tables()?;
        columns::blocks::count_odd(&tables, &*tables.read()?)
    }

    /// Returns the bytes of each table's pages.
    ///
    /// # Errors
    /// If the database fails.
    pub fn table_bytes(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        self.mapped.tables()?.table_bytes()
    }

    /// Returns the bytes of the database's file that hold data.
    ///
    /// # Errors
    /// If the file's size cannot be read.
    pub fn disk_bytes(&self) -> Result<u64, StoreError> {
        self.mapped.tables()?.disk_bytes()
    }

    /// Returns the bytes of each part of the store on disk.
    ///
    /// # Errors
    /// If the file's size cannot be read; a folder that cannot be listed counts as empty.
    pub fn bytes_by_part(&self, layout: &Layout) -> Result<BTreeMap<&'static str, u64>, StoreError> {
        Ok(BTreeMap::from([
            ("database", self.disk_bytes()?),
            ("lexical", folder_bytes(&layout.lexical())),
            ("vectors", folder_bytes(&layout.vectors())),
            ("versions", folder_bytes(&layout.versions())),
        ]))
    }
}

/// Returns the bytes of the files below a folder.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// The writes of one publish to the database: all of them, or none.
pub struct WriteTransaction<'a>(heed::RwTxn<'a>, Tables);

impl WriteTransaction<'_> {
    /// Makes everything that was written durable and visible.
    ///
    /// # Errors
    /// If the disk is full; nothing is written then.
    pub fn commit(self) -> Result<(), StoreError> {
        let failed = |source| match source {
            heed::Error::Io(error) => heed::Error::Io(crate::resources::or_disk_full(error, self.1.folder())),
            source => source,
        };
        let committed = self.0.commit().map_err(failed);
        committed.map_err(|source| StoreError::Database { attempt: "commit a transaction", source })?;
        self.1.lengthen()
    }
}

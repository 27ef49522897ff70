//! Checks whether a store is consistent: log, catalogue, results, lexical index and vectors, each compared with the rest.
//!
//! In: a store's folder, beside any tracker. Out: what was checked, and every finding.
//!
//! ```text
//!  log ──────► ordinals that versions reach ──┬─► catalogue: a row each, and back by identity
//!   │                                         ├─► results: text, card, chunk list, tokens, recomputed
//!   └─► digests, counts, checkpoints          ├─► lexical index: one document each, as long as the entry
//!       from the rows                         └─► vectors: one each unless it can have none, and where the memo says
//! ```
//!
//! **Invariant:** without a finding, both indexes hold all entries of every version's digest. The log is read first, so later
//! publishes cause no finding. Nothing is written.
//!
//! Ordinals that only dropped versions reach await their collection; those that no version ever reached are left by
//! publishes that did not finish. Both are counted, and are no finding; nor is one that an index lacks, since a publish that
//! takes it back makes it whole first, as long as its text is among the results. An entry that the model refused is owed
//! its vector: a fault that `status` shows, and no finding.
//! Damage of many rows is one finding with their number and the first of them.

mod rows;
mod vectors;

use super::ReaderError;
use super::lexical;
use super::vector::Shape;
use crate::store::{Database, Layout, Lease, StoreMemo};
use dataflows::data::{DocumentPath, ModelId};
use dataflows::memo::Memo;
use roaring::RoaringBitmap;
use rows::Rows;
use snapshots::{Archive, ArchiveError, Bitmaps, Damage, Ordinal, VersionId};
use std::path::PathBuf;
use std::time::Duration;

/// How often the log is read again while a publish may be in progress.
const PATIENCE: u32 = 20;
const WAIT: Duration = Duration::from_millis(50);

/// How many paths a finding names.
const EXAMPLES: usize = 3;

const REBUILD: &str = "start `tidemill track` on this store: it makes the index again from the stored texts";
const CUT: &str = "start `tidemill track` on this store: it cuts them off and publishes again what they held";
const COLLECT: &str = "run `tidemill snapshots gc`, which removes them";
const AGAIN: &str = "track the sources again into a new folder, or restore a backup";

/// An inconsistency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The part: `log`, `checkpoints`, `catalogue`, `results`, `lexical` or `vectors`.
    pub part: &'static str,
    /// The problem, in one line.
    pub problem: String,
    /// The damaged file.
    pub file: Option<PathBuf>,
    /// The version where it begins.
    pub version: Option<VersionId>,
    /// How many entries or document rows are affected.
    pub count: u64,
    /// The first of their paths.
    pub paths: Vec<DocumentPath>,
    /// The advice.
    pub next: &'static str,
}

impl Finding {
    fn new(part: &'static str, problem: impl Into<String>, next: &'static str) -> Self {
        Self { part, problem: problem.into(), file: None, version: None, count: 1, paths: Vec::new(), next }
    }
}

/// The result of a check.
#[derive(Clone, Default, Debug)]
pub struct Audit {
    /// Versions whose digest and counts were computed again.
    pub versions: u64,
    /// Entries that some version reaches.
    pub entries: u64,
    /// Rows of documents that some version reaches.
    pub documents: u64,
    /// Vectors of entries that some version reaches.
    pub vectors: u64,
    /// Files whose checksums were computed again: the log, and those of both indexes.
    pub files: u64,
    /// Entries in an index that no version ever reached: orphans of unfinished publishes.
    pub orphans: u64,
    /// Entries in the catalogue or an index that only dropped versions reach: garbage, which `snapshots gc` removes.
    pub garbage: u64,
    /// Entries in the catalogue that no kept version reaches and that an index lacks because a file was lost: a publish that
    /// names one rebuilds it first.
    pub incomplete: u64,
    /// Entries that some version reaches and that the model refused: they are owed their vectors.
    pub owed: u64,
    /// What does not fit, in the order of the flow.
    pub findings: Vec<Finding>,
}

/// Checks the store of a layout, for the vectors of one model.
///
/// Reads all of it; takes seconds for a million entries.
///
/// # Errors
/// If there is no store, or it is of another format, or nothing has been published.
pub fn audit(layout: &Layout, model: ModelId, dimensions: u32) -> Result<Audit, ReaderError> {
    layout.check()?;
    // Held to the end, so that nothing is collected during the check.
    let _lease = Lease::take(layout)?;
    let mut audit = Audit::default();
    let log = layout.versions().join("versions.log");
    // Opened before the log is read, so its statements about the log are older.
    let database = Database::open_reader(layout);
    // An unreadable database has its own findings.
    let published = database.as_ref().ok().and_then(|database| database.log_bytes().ok().flatten());
    let refuse = |mut audit: Audit, file: PathBuf, part, problem: String| {
        audit.findings.push(Finding { file: Some(file), ..Finding::new(part, problem, AGAIN) });
        Ok(audit)
    };
    let Some(archive) = open_log(layout, database.as_ref().ok())? else {
        let problem = "versions that were published are gone from the log, or none was published yet";
        return refuse(audit, log, "log", problem.to_owned());
    };
    let read = |archive: Archive| {
        let (reached, ever) = (archive.reached()?, archive.reached_by(|_| true)?);
        Ok((archive, reached, ever.entries))
    };
    let (archive, reached, ever) = match archive.and_then(read) {
        Ok(read) => read,
        Err(error) => return refuse(audit, log, "log", chain(&error)),
    };
    if published.is_some_and(|published| archive.log_bytes() < published) {
        return refuse(audit, log, "log", "it is shorter than what was published".to_owned());
    }
    let database = match database {
        Ok(database) => database,
        Err(error) => return refuse(audit, layout.memo(), "catalogue", chain(&error)),
    };
    audit.versions = archive.kept().count() as u64;
    audit.entries = reached.entries.len();
    audit.documents = reached.documents.len();
    audit.files = 1;
    if archive.tail_bytes() > 0 {
        let problem = format!("its last {} bytes are no whole group: a torn write, or damage", archive.tail_bytes());
        audit.findings.push(Finding { file: Some(log), ..Finding::new("log", problem, CUT) });
    }
    let rows = Rows::check(&database, model, &archive, &reached, &mut audit.findings);
    audit.log(&archive, &rows);
    let mut stored = database.catalogue().ordinals().map(|rows| rows.entries).unwrap_or_default();
    let words = audit.lexical(layout, &reached, &rows);
    let vectors = audit.vectors(layout, Shape { dimensions, model }, &reached, &rows, &database);
    let settled = &vectors | audit.without_vector(&database, model);
    audit.unreached(&(&stored - &reached.entries), &words, &settled, &rows, &database.memo(model));
    stored &= &ever;
    stored |= words | vectors;
    let superfluous = stored - &reached.entries;
    audit.garbage = (&superfluous & &ever).len();
    audit.orphans = (superfluous - ever).len();
    audit.findings.sort_by_key(|finding| PARTS.iter().position(|part| *part == finding.part));
    Ok(audit)
}

/// Opens the log, once it ends in a whole group and names a version; nothing if it names none although the database says that it
/// should. A log that stays torn is opened as it is.
///
/// # Errors
/// [`ReaderError::Empty`] where nothing has been published.
fn open_log(
    layout: &Layout,
    database: Option<&Database>,
) -> Result<Option<Result<Archive, ArchiveError>>, ReaderError> {
    for look in 1..=PATIENCE {
        let archive = Archive::open_reader(&layout.versions());
        // A group that is being written looks torn for a moment; a really torn one stays torn.
        let is_torn = archive.as_ref().is_ok_and(|archive| archive.tail_bytes() > 0);
        if is_torn && look < PATIENCE {
            std::thread::sleep(WAIT);
            continue;
        }
        let is_empty = match &archive {
            Ok(archive) => archive.versions().is_empty() && !is_torn,
            Err(_) => !layout.versions().join("versions.log").exists(),
        };
        if !is_empty {
            return Ok(Some(archive));
        }
        // The last rows of the first publish, and its mark, exist a moment before its versions.
        if !database.is_some_and(|database| database.log_bytes().is_ok_and(|mark| mark.is_some())) {
            return Err(ReaderError::Empty);
        }
        std::thread::sleep(WAIT);
    }
    Ok(None)
}

/// Checks only the rows of the catalogue and their results, in an open database.
///
/// # Errors
/// If the log is inconsistent.
pub fn audit_rows(database: &Database, model: ModelId, archive: &Archive) -> Result<Vec<Finding>, ReaderError> {
    let mut findings = Vec::new();
    Rows::check(database, model, archive, &archive.reached()?, &mut findings);
    Ok(findings)
}

/// The parts in the order of the flow.
const PARTS: [&str; 6] = ["log", "checkpoints", "catalogue", "results", "lexical", "vectors"];

impl Audit {
    /// Computes every digest, count and checkpoint again.
    fn log(&mut self, archive: &Archive, rows: &Rows) {
        let identity = |ordinal: Ordinal| rows.entry(ordinal).map(|row| row.id.to_bytes());
        let tokens = |ordinal: Ordinal| rows.entry(ordinal).map(|row| row.tokens);
        // One version may lack many entries; the catalogue's findings name them.
        let mut unknown = 0;
        let mut first = None;
        for damage in archive.verify(&identity, &tokens) {
            let (part, version, next) = match &damage {
                Damage::UnknownEntry { version, .. } => {
                    unknown += 1;
                    first.get_or_insert(*version);
                    continue;
                }
                Damage::Inexact { version } | Damage::Digest { version, .. } | Damage::Tokens { version, .. } => {
                    ("log", Some(*version), AGAIN)
                }
                Damage::Checkpoint { version, .. } => (
                    "checkpoints",
                    Some(*version),
                    "delete the file: it is a cache, and written again when it is worth it",
                ),
                _ => ("log", None, AGAIN),
            };
            self.findings.push(Finding { version, ..Finding::new(part, damage.to_string(), next) });
        }
        if unknown > 0 {
            let finding = Finding::new("log", "versions move entries that the catalogue does not have", AGAIN);
            self.findings.push(Finding { version: first, count: unknown, ..finding });
        }
    }

    /// Checks the lexical index: its files, one document for each entry, and each of the entry's length. Returns the entries that
    /// it holds.
    fn lexical(&mut self, layout: &Layout, reached: &Bitmaps, rows: &Rows) -> RoaringBitmap {
        let lengths = |ordinal: Ordinal| rows.entry(ordinal).map(|row| row.tokens.first());
        let check = match lexical::check(&layout.lexical(), Some(&lengths)) {
            Ok(check) => check,
            Err(error) => {
                let finding = Finding::new("lexical", chain(&error), REBUILD);
                self.findings.push(Finding { file: Some(layout.lexical()), ..finding });
                return RoaringBitmap::new();
            }
        };
        self.files += check.files as u64;
        for (file, problem) in check.damaged {
            self.findings.push(Finding { file: Some(file), ..Finding::new("lexical", problem, REBUILD) });
        }
        let missing = &reached.entries - &check.ordinals;
        self.findings.extend(rows.finding("lexical", "entries have no document", REBUILD, &missing));
        let odd = &check.other_length & &reached.entries;
        self.findings.extend(rows.finding("lexical", "documents are not as long as their entries", REBUILD, &odd));
        check.ordinals
    }
}

impl Audit {
    /// Checks the rows that no kept version reaches: those that an index lacks must have their text and vector.
    fn unreached(
        &mut self,
        unreached: &RoaringBitmap,
        words: &RoaringBitmap,
        vectors: &RoaringBitmap,
        rows: &Rows,
        memo: &StoreMemo,
    ) {
        let incomplete = (unreached - words) | (unreached - vectors);
        self.incomplete = incomplete.len();
        let mut lost = RoaringBitmap::new();
        for ordinal in incomplete {
            // A row that was removed meanwhile is not taken back.
            let Ok(record) = rows.catalogue().entry(Ordinal::new(ordinal)) else { continue };
            if memo.text(record.entry.text).is_none() {
                lost.insert(ordinal);
            }
        }
        let problem = "entries of dropped snapshots are in no index, and what they are made from is lost";
        self.findings.extend(rows.finding("results", problem, COLLECT, &lost));
    }
}

/// Returns an error and its causes as one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    said
}

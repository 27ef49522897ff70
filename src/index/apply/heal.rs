//! Repairs a store before a writer continues: an index that lacks entries of kept versions, or that another analyzer made.
//!
//! In: the open parts of a store. Out: both indexes, complete, or an error that names what cannot be repaired.
//!
//! ```text
//!  log ────────► reached ordinals ──┬─ rows missing in the catalogue ──► refused: no other part has them
//!                                   ├─ files of the lexical index damaged, documents missing,
//!                                   │  or of another analyzer ──► made again (`reindex`)
//!                                   └─ vectors missing ──► found elsewhere, or embedded again; else owed
//! ```
//!
//! **Invariant:** what is made again is what was there: an entry's text and card are in the database, and a vector follows from
//! them and the model. What was mended is told in one line.
//!
//! Rows that no kept version reaches are left alone: a publish that names one of them checks for itself (`presence`).
//!
//! This reads every file of the lexical index once, at some gigabyte a second; the vector writer has already read its files.

use super::ApplyError;
use super::owed::{Mended, Mender};
use super::reindex::{Reason, reindex};
use crate::index::lexical::{self, LexicalError, LexicalWriter, WriterOptions, searched_name};
use crate::index::vector::VectorWriter;
use crate::store::{Catalogue, Database, Layout, StoreMemo};
use dataflows::embed::Embedder;
use dataflows::memo::Memo;
use roaring::RoaringBitmap;
use snapshots::{Archive, Bitmaps, Ordinal, Tokens};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Entries that get their vectors in one transaction.
const BATCH: usize = 8192;

/// Refuses a store whose version log became shorter: opening it would treat the missing versions as never published.
///
/// # Errors
/// [`ApplyError::LogGone`] if the log is missing, and if the database fails.
pub fn check_log(layout: &Layout, database: &Database) -> Result<(), ApplyError> {
    let log = layout.versions().join("versions.log");
    match database.log_bytes()? {
        Some(published) if fs::metadata(&log).map_or(0, |file| file.len()) < published || !log.exists() => {
            Err(ApplyError::LogGone { path: log })
        }
        _ => Ok(()),
    }
}

/// Ensures that both indexes hold every entry of a version, and opens the lexical one.
///
/// # Errors
/// If rows or results are missing that no other part has, and if a part cannot be read or written.
pub fn heal(
    layout: &Layout,
    database: &Database,
    memo: &StoreMemo,
    archive: &mut Archive,
    vectors: &mut VectorWriter,
    embedder: &Arc<dyn Embedder>,
) -> Result<LexicalWriter, ApplyError> {
    let catalogue = database.catalogue();
    let reached = archive.reached()?;
    check_rows(&catalogue, &reached)?;
    heal_vectors(database, memo, &reached.entries, vectors, embedder)?;
    if let Some(reason) = why_again(&layout.lexical(), &reached.entries)? {
        reindex(layout, database, memo, archive, &reached.entries, &reason)?;
    }
    Ok(LexicalWriter::open_or_create(&layout.lexical())?)
}

/// Refuses a catalogue that lacks rows, because the content of versions is lost with them.
fn check_rows(catalogue: &Catalogue, reached: &Bitmaps) -> Result<(), ApplyError> {
    let (entries, documents) = catalogue.counts()?;
    let missing = reached.entries.len().saturating_sub(entries) + reached.documents.len().saturating_sub(documents);
    if missing > 0 { Err(ApplyError::RowsGone { missing }) } else { Ok(()) }
}

/// Gives entries the vectors that the files lost, or that the model refused before, and tells of it.
fn heal_vectors(
    database: &Database,
    memo: &StoreMemo,
    reached: &RoaringBitmap,
    vectors: &mut VectorWriter,
    embedder: &Arc<dyn Embedder>,
) -> Result<(), ApplyError> {
    let coverage = database.coverage(embedder.fingerprint());
    let (catalogue, memo, embedder) = (database.catalogue(), memo.clone(), embedder.clone());
    let missing: Vec<u32> = (reached - vectors.held() - coverage.without()?).into_iter().collect();
    let mender = Mender { catalogue, coverage, memo, embedder };
    let mut all = Mended::default();
    for part in missing.chunks(BATCH) {
        let mapping = database.mapping()?;
        let mut transaction = mapping.write()?;
        // Where the model refuses all of some texts, the next attempts are the tracker's.
        let asks = !all.is_refused;
        let mut mended = mender.mend(&part.iter().copied().collect(), vectors, &mut transaction, asks)?;
        transaction.commit()?;
        mender.committed(&mut mended);
        all.add(mended);
    }
    let (number, healed) = (all.given.len(), vectors.healed());
    if number > 0 || !healed.set_aside.is_empty() {
        let aside: Vec<String> = healed.set_aside.iter().map(|path| path.display().to_string()).collect();
        let aside = if aside.is_empty() { String::new() } else { format!("; set aside: {}", aside.join(", ")) };
        tracing::warn!("{number} vectors were missing and are there again{aside}");
    }
    if !all.owed.is_empty() {
        tracing::warn!("{} entries have no vector yet, which is tried again", all.owed.len());
    }
    Ok(())
}

/// Adds the documents of some entries to the lexical index; searches find them after its next commit.
pub(super) fn add_words(
    catalogue: &Catalogue,
    memo: &StoreMemo,
    entries: &RoaringBitmap,
    lexical: &mut LexicalWriter,
) -> Result<(), ApplyError> {
    for ordinal in entries.iter().map(Ordinal::new) {
        let (record, card) = catalogue.entry_with_card(ordinal)?;
        let Some(text) = memo.text(record.entry.text) else {
            memo.check()?;
            return Err(ApplyError::ResultGone { what: "text", path: record.entry.path });
        };
        if Tokens::from(lexical.add(ordinal, &text, &searched_name(&card))?) != record.tokens {
            return Err(ApplyError::ResultGone { what: "text as it was", path: record.entry.path });
        }
    }
    Ok(())
}

/// Returns the reason why the lexical index must be rebuilt, if there is one.
fn why_again(folder: &Path, reached: &RoaringBitmap) -> Result<Option<Reason>, ApplyError> {
    let reason = match lexical::check(folder, None) {
        Ok(check) => {
            let missing = reached - &check.ordinals;
            let damaged = check.damaged.first().map(|(file, problem)| format!("{}: {problem}", file.display()));
            damaged.or_else(|| (!missing.is_empty()).then(|| format!("{} entries had no document", missing.len())))
        }
        Err(LexicalError::Analyzer { .. }) => return Ok(Some(Reason::OtherAnalyzer)),
        Err(_) if reached.is_empty() && !folder.join("meta.json").exists() => None,
        Err(error) => Some(error.to_string()),
    };
    Ok(reason.map(Reason::Damaged))
}

/// Rebuilds the lexical index from the stored texts of some entries, beside the old one, and replaces that.
pub(super) fn make_lexical(
    place: &Path,
    catalogue: &Catalogue,
    memo: &StoreMemo,
    entries: &RoaringBitmap,
    next: u32,
) -> Result<(), ApplyError> {
    let beside = place.with_file_name("lexical.new");
    remove(&beside)?;
    let mut writer = LexicalWriter::open_with(&beside, WriterOptions::bulk())?;
    add_words(catalogue, memo, entries, &mut writer)?;
    writer.commit(next)?;
    writer.close()?;
    put_in_place(&beside, place)
}

/// Replaces an index by a complete one. After a crash in between there is no index, and the next start rebuilds it.
pub(super) fn put_in_place(beside: &Path, place: &Path) -> Result<(), ApplyError> {
    let old = place.with_file_name("lexical.damaged");
    remove(&old)?;
    if place.exists() {
        rename(place, &old)?;
    }
    rename(beside, place)?;
    sync(place.parent().unwrap_or(place))?;
    remove(&old)
}

pub(super) fn remove(folder: &Path) -> Result<(), ApplyError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io("remove", folder)(error)),
        _ => Ok(()),
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), ApplyError> {
    fs::rename(from, to).map_err(io("rename", from))
}

fn sync(folder: &Path) -> Result<(), ApplyError> {
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("sync", folder))
}

fn io(attempt: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ApplyError {
    let path = path.to_owned();
    move |source| crate::store::StoreError::Io { attempt, path, source }.into()
}

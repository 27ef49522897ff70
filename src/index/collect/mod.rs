//! Collecting: what no kept version and no living reader needs is removed from both indexes and from the database.
//!
//! In: the open parts of a store, whose log says which versions were dropped. Out: how much went of what.
//!
//! ```text
//!  needed = what kept versions hold + what versions hold that a living reader may still look at
//!
//!  catalogue rows ──► results ──► tantivy: delete, commit, merge ──► vector files, written anew
//!  └ from here on an ordinal is found by nobody: an entry that comes back gets a new one
//! ```
//!
//! **Invariant:** each step removes what is there and not needed, and nothing else. So it may break off anywhere, however
//! hard, and the next collection goes on where it ended: there is no journal. The catalogue goes first, since an entry is
//! found by its row: were it last, an entry might come back under an ordinal whose words or vector are gone.
//!
//! What unfinished publishes left in the indexes goes as well, once the log is past its ordinals. The order of writing of a publish is turned round here on
//! purpose: what is half removed has no row, and what has no row is not looked up.

use super::apply::ApplyError;
use super::lexical::LexicalWriter;
use super::vector::VectorWriter;
use crate::store::{Catalogue, Database, Layout, Needed, Swept, leases};
use dataflows::data::{ContentId, DocumentId, DocumentPath, Outcome};
use roaring::RoaringBitmap;
use snapshots::{Archive, Bitmaps, Ordinal};

/// Catalogue rows that one transaction removes at the most.
const TRANSACTION_ROWS: usize = 4096;
/// Documents that one commit of the lexical index removes at the most.
const LEXICAL_ROWS: usize = 32_768;

/// Names what cleaning made of a content at a path, under the rules in force.
pub type CleanedOf<'a> = &'a dyn Fn(&DocumentPath, ContentId) -> DocumentId;

/// What was removed, or would be.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Collected {
    /// Rows of entries.
    pub entries: u64,
    /// Rows of documents.
    pub documents: u64,
    /// Documents of the lexical index.
    pub words: u64,
    /// Rows of the vector files.
    pub vectors: u64,
    /// Results.
    pub results: Swept,
    /// Entries that only living readers hold back.
    pub held_back: u64,
    /// Whether all of it was done: nobody asked to stop.
    pub is_complete: bool,
}

/// The open parts of a store that are collected.
pub struct CollectParts<'a> {
    /// Where it is.
    pub layout: &'a Layout,
    /// The database.
    pub database: &'a Database,
    /// The version log.
    pub archive: &'a mut Archive,
    /// The lexical index.
    pub lexical: &'a mut LexicalWriter,
    /// The vectors.
    pub vectors: &'a mut VectorWriter,
}

/// Returns what must stay: what kept versions hold, and, as its second part, also what living readers may look at.
///
/// # Errors
/// Where the log or the leases cannot be read.
pub fn needed(archive: &Archive, layout: &Layout) -> Result<(Bitmaps, Bitmaps), ApplyError> {
    let kept = archive.reached()?;
    let Some(least_read) = leases(layout)?.into_iter().min() else { return Ok((kept.clone(), kept)) };
    // Whoever has not read of a drop takes the version for one that is kept.
    let held: RoaringBitmap =
        archive.dropped().filter(|(_, end)| *end > least_read).map(|(version, _)| version.get()).collect();
    let needed = if held.is_empty() {
        kept.clone()
    } else {
        archive.reached_by(|version| !archive.is_dropped(version) || held.contains(version.get()))?
    };
    Ok((kept, needed))
}

/// Removes what nothing needs; `go_on` is asked before each step, and its no ends the work there, for a later one to take up.
///
/// Of what cleaning made only that goes which `cleaned_of` leads to from no kept document; without it, all of it stays.
///
/// # Errors
/// Where a part cannot be read or written; what was removed before stays so, and nothing that is needed is touched.
pub fn collect(
    parts: &mut CollectParts<'_>,
    cleaned_of: Option<CleanedOf<'_>>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Collected, ApplyError> {
    let CollectParts { layout, database, archive, lexical, vectors } = parts;
    let catalogue = database.catalogue();
    let present = catalogue.ordinals()?;
    let (kept, mut needed) = needed(archive, layout)?;
    let missing = (&kept.entries - &present.entries).len() + (&kept.documents - &present.documents).len();
    if missing > 0 {
        // What rows that are lost need of the results is not known, so nothing is swept.
        return Err(ApplyError::RowsGone { missing });
    }
    // A reader that is about to open holds everything that was ever dropped; what is gone already is not held.
    needed.entries &= &present.entries;
    needed.documents &= &present.documents;
    let mut collected = Collected { held_back: needed.entries.len() - kept.entries.len(), ..Collected::default() };
    let mut stopped = false;
    let mut go_on = || {
        stopped |= !go_on();
        !stopped
    };
    (collected.entries, collected.documents) = remove_rows(database, &present, &needed, &mut go_on)?;
    let results = results(&catalogue, &needed, cleaned_of)?;
    if go_on() {
        collected.results = database.sweep(&results, &mut go_on)?;
    }
    // What lies beyond the log was left by a publish that did not finish: it keeps its ordinal from being given out again.
    let superfluous = |mut held: RoaringBitmap| {
        held.remove_range(archive.used_entries()..);
        held - &needed.entries
    };
    let words = superfluous(lexical.held()?);
    lexical.hold_merges(true);
    for rows in slices(&words, LEXICAL_ROWS) {
        if !go_on() {
            break;
        }
        lexical.remove(&rows)?;
        collected.words += rows.len();
    }
    if go_on() {
        lexical.compact(&mut go_on)?;
    }
    lexical.hold_merges(false);
    if go_on() {
        let before = vectors.held().len();
        let rows = superfluous(vectors.held().clone());
        vectors.remove(&rows, &mut go_on)?;
        collected.vectors = before - vectors.held().len();
    }
    collected.is_complete = !stopped;
    Ok(collected)
}

/// Returns what a collection would remove from the database if only `kept` were needed, without removing it.
///
/// # Errors
/// Where the database cannot be read.
pub fn estimate(
    database: &Database,
    kept: &Bitmaps,
    cleaned_of: Option<CleanedOf<'_>>,
) -> Result<Collected, ApplyError> {
    let catalogue = database.catalogue();
    let present = catalogue.ordinals()?;
    let entries = (&present.entries - &kept.entries).len();
    let documents = (&present.documents - &kept.documents).len();
    let results = database.superfluous(&results(&catalogue, kept, cleaned_of)?)?;
    // Each entry has its words, and but for a few its vector.
    Ok(Collected { entries, documents, words: entries, vectors: entries, results, ..Collected::default() })
}

/// Removes the rows of the catalogue that are not needed, documents with the last of them.
fn remove_rows(
    database: &Database,
    present: &Bitmaps,
    needed: &Bitmaps,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(u64, u64), ApplyError> {
    let catalogue = database.catalogue();
    let (mut entries, mut documents) = (0, 0);
    let slices_of = |superfluous: RoaringBitmap| slices(&superfluous, TRANSACTION_ROWS);
    let of_documents = slices_of(&present.documents - &needed.documents).into_iter();
    let of_entries = slices_of(&present.entries - &needed.entries).into_iter();
    let none = RoaringBitmap::new();
    let work = of_entries.map(|rows| (rows, none.clone())).chain(of_documents.map(|rows| (none.clone(), rows)));
    for (entry_rows, document_rows) in work {
        if !go_on() {
            break;
        }
        let mut transaction = database.write()?;
        let (e, d) = catalogue.remove(
            &mut transaction,
            entry_rows.iter().map(Ordinal::new),
            document_rows.iter().map(Ordinal::new),
        )?;
        transaction.commit()?;
        (entries, documents) = (entries + e, documents + d);
    }
    Ok((entries, documents))
}

/// Returns what the rows that stay need of the results.
fn results(catalogue: &Catalogue, needed: &Bitmaps, cleaned_of: Option<CleanedOf<'_>>) -> Result<Needed, ApplyError> {
    let mut results = Needed::default();
    results.rows(&needed.entries);
    if cleaned_of.is_some() {
        results.cleaned(std::iter::empty());
    }
    for rows in slices(&needed.entries, TRANSACTION_ROWS) {
        let records = catalogue.entries(rows.iter().map(Ordinal::new))?;
        records.iter().for_each(|record| results.entry(&record.entry));
    }
    for rows in slices(&needed.documents, TRANSACTION_ROWS) {
        for document in catalogue.documents(rows.iter().map(Ordinal::new))? {
            if let Some(cleaned_of) = cleaned_of {
                results.cleaned(std::iter::once(cleaned_of(&document.path, document.content)));
            }
            if let Outcome::Indexed { chunking, .. } = document.outcome {
                results.chunks(chunking);
            }
        }
    }
    Ok(results)
}

/// Cuts a set into parts of so many members.
fn slices(set: &RoaringBitmap, size: usize) -> Vec<RoaringBitmap> {
    let members: Vec<u32> = set.iter().collect();
    members.chunks(size).map(|part| part.iter().collect()).collect()
}

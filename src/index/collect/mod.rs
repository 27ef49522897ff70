//! Garbage collection: removes rows that no kept version and no living reader needs from both indexes and from the database.
//!
//! In: the open parts of a store, whose log has the dropped versions. Out: the number of removed rows of each kind.
//!
//! ```text
//!  needed = entries of kept versions + entries of versions that a living reader may still search
//!
//!  catalogue rows ──► results ──► tantivy: delete, commit, merge ──► vector files, rewritten
//!  └ from here on no look-up returns the ordinal: an entry that comes back gets a new one
//! ```
//!
//! **Invariant:** each step removes only existing garbage. So it may stop or crash anywhere, and the next collection continues:
//! mark-and-sweep needs no journal. The catalogue goes first, because an entry is found by its row: if it were last, an entry
//! might come back under an ordinal whose words or vector are gone.
//!
//! Orphans of unfinished publishes in the indexes are removed too, once the log is past their ordinals. This is deliberately the
//! reverse of the write order of a publish: a partly removed entry has no row, and without a row it is never looked up.

mod beside;
mod removal;
mod survey;

pub use beside::{Dropped, Progress, drop_beside, drop_versions, step};
pub use removal::Removal;
pub use survey::{Survey, needed, survey};

use super::apply::ApplyError;
use super::lexical::LexicalWriter;
use super::vector::VectorWriter;
use crate::store::{Database, Layout, Portion, Swept};
use dataflows::data::{Document, DocumentId};
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use snapshots::{Archive, Bitmaps};
use survey::slices;

/// Most documents that one commit of the lexical index deletes.
const LEXICAL_ROWS: usize = 32_768;

/// Returns the identity of the cleaning result for a content at a path, under the current rules.
pub type CleanedOf<'a> = &'a dyn Fn(&Document) -> DocumentId;

/// Removed rows, or those that would be.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
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
    /// Whether all of it was done, without an interruption.
    pub is_complete: bool,
}

/// The open parts of the collected store.
pub struct CollectParts<'a> {
    /// Its location.
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

/// Removes garbage; `go_on` is called before each step, and false ends the work there, for a later collection to continue.
///
/// Of the cleaning results only those are removed that `cleaned_of` gives for no kept document; without it, all of them stay.
///
/// # Errors
/// If a part cannot be read or written; earlier removals stay, and needed rows are never touched.
pub fn collect(
    parts: &mut CollectParts<'_>,
    cleaned_of: Option<CleanedOf<'_>>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Collected, ApplyError> {
    let CollectParts { layout, database, archive, lexical, vectors } = parts;
    let graph = Bitmaps::default();
    let Some(survey) = survey(layout, database, archive, &graph, cleaned_of, &mut || true)? else {
        return Ok(Collected::default());
    };
    let mut removal = Removal::begin(survey);
    let mut stopped = false;
    let mut go_on = || {
        stopped |= !go_on();
        !stopped
    };
    // No publish runs meanwhile, so no entry comes back.
    let none: CleanedOf<'_> = &|_| DocumentId::default();
    while removal.is_in_database() && go_on() {
        removal.step(database, none, Portion::LARGE, &mut || true)?;
    }
    let needed = removal.needed().clone();
    let mut collected = removal.collected;
    // Rows beyond the log are orphans of an unfinished publish: they keep their ordinals from being assigned again.
    let superfluous = |mut held: RoaringBitmap| {
        held.remove_range(archive.used_entries()..);
        held - &needed
    };
    let words = superfluous(lexical.held().clone());
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
/// If the database cannot be read.
pub fn estimate(
    database: &Database,
    kept: &Bitmaps,
    cleaned_of: Option<CleanedOf<'_>>,
) -> Result<Collected, ApplyError> {
    let catalogue = database.catalogue();
    let present = catalogue.ordinals()?;
    let entries = (&present.entries - &kept.entries).len();
    let documents = (&present.documents - &kept.documents).len();
    let go_on: &mut dyn FnMut() -> bool = &mut || true;
    let results = match survey::results(&catalogue, kept, cleaned_of, go_on)? {
        Some(needed) => database.superfluous(&needed, go_on)?.map(|found| found.count()).unwrap_or_default(),
        None => Swept::default(),
    };
    // Each entry has a document, and nearly every one a vector.
    Ok(Collected { entries, documents, words: entries, vectors: entries, results, ..Collected::default() })
}

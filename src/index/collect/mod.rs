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

/// Documents that one commit of the lexical index removes at the most.
const LEXICAL_ROWS: usize = 32_768;

/// Names what cleaning made of a content at a path, under the rules in force.
pub type CleanedOf<'a> = &'a dyn Fn(&Document) -> DocumentId;

/// What was removed, or would be.
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
    // Nothing is published meanwhile, so nothing comes back.
    let none: CleanedOf<'_> = &|_| DocumentId::default();
    while removal.is_in_database() && go_on() {
        removal.step(database, none, Portion::LARGE, &mut || true)?;
    }
    let needed = removal.needed().clone();
    let mut collected = removal.collected;
    // What lies beyond the log was left by a publish that did not finish: it keeps its ordinal from being given out again.
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
    let go_on: &mut dyn FnMut() -> bool = &mut || true;
    let results = match survey::results(&catalogue, kept, cleaned_of, go_on)? {
        Some(needed) => database.superfluous(&needed, go_on)?.map(|found| found.count()).unwrap_or_default(),
        None => Swept::default(),
    };
    // Each entry has its words, and but for a few its vector.
    Ok(Collected { entries, documents, words: entries, vectors: entries, results, ..Collected::default() })
}

//! The sweep: removes the rows on a survey's lists in portions, while versions may be published in between.
//!
//! In: a survey, and the versions published since. Out: a database without these rows.
//!
//! ```text
//!  survey ──► rows of entries ──► rows of documents ──► cleaned ──► chunk lists ──► texts ──► heads ──► vectors
//!                   ▲                                      ▲
//!  published since ─┴── ordinals that came back ───────────┴── results that these rows need
//! ```
//!
//! **Invariant:** before a row is removed, the rows needed by all later publishes are taken off the lists. That is enough: a row
//! needed at the time of the survey is on no list, and a row that became needed since belongs to a version published since. So
//! nothing is marked twice, whatever is published, and the cost follows the commits.
//!
//! Between the last check for published versions and the end of a portion, no code may look up a row and rely on it.

use super::survey::{Survey, results};
use super::{CleanedOf, Collected};
use crate::index::apply::ApplyError;
use crate::store::{Catalogue, Database, Portion, Superfluous, WriteTransaction};
use roaring::RoaringBitmap;
use snapshots::{Archive, Bitmaps, Ordinal, VersionId};
use std::time::Instant;

/// Most rows that one step looks up to keep what they need.
const LOOK_ROWS: usize = 256;
/// Rows that are removed between two checks of the time.
const ROWS_BETWEEN_LOOKS: usize = 16;

/// A removal in progress.
pub struct Removal {
    needed: Bitmaps,
    /// The additions since the survey; the results that they need are still to be taken off the list.
    since: Bitmaps,
    superfluous: Bitmaps,
    results: Superfluous,
    next_version: VersionId,
    /// The rows removed so far.
    pub collected: Collected,
}

impl Removal {
    /// Begins with nothing removed.
    #[must_use]
    pub fn begin(survey: Survey) -> Self {
        let Survey { needed, superfluous, results, held_back, next_version } = survey;
        let collected = Collected { held_back, ..Collected::default() };
        Self { needed, since: Bitmaps::default(), superfluous, results, next_version, collected }
    }

    /// Returns the entries that both indexes must keep.
    #[must_use]
    pub const fn needed(&self) -> &RoaringBitmap {
        &self.needed.entries
    }

    /// Returns whether rows of the database are left to remove.
    #[must_use]
    pub fn is_in_database(&self) -> bool {
        !(is_empty(&self.superfluous) && self.results.is_empty())
    }

    /// Adds the versions published since the survey, or since the last call; `graph` is the state of the tracker's graph.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn needs(&mut self, archive: &Archive, graph: &Bitmaps) -> Result<(), ApplyError> {
        self.need(graph);
        for version in (self.next_version.get()..archive.next_version().get()).map(VersionId::new) {
            self.need(&*archive.bitmaps(version)?);
        }
        self.next_version = archive.next_version();
        Ok(())
    }

    fn need(&mut self, held: &Bitmaps) {
        let (entries, documents) = (&held.entries - &self.needed.entries, &held.documents - &self.needed.documents);
        self.superfluous.entries -= &entries;
        self.superfluous.documents -= &documents;
        self.needed.entries |= &entries;
        self.needed.documents |= &documents;
        self.since.entries |= entries;
        self.since.documents |= documents;
    }

    /// Removes a portion from the database; `go_on` is called regularly, and false ends the portion early.
    ///
    /// # Errors
    /// If the database fails; earlier removals stay, and this removal must not be used again.
    pub fn step(
        &mut self,
        database: &Database,
        cleaned_of: CleanedOf<'_>,
        portion: Portion,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ApplyError> {
        let catalogue = database.catalogue();
        if !is_empty(&self.since) {
            let rows = Bitmaps {
                entries: self.since.entries.iter().take(LOOK_ROWS).collect(),
                documents: self.since.documents.iter().take(LOOK_ROWS).collect(),
            };
            if let Some(needed) = results(&catalogue, &rows, Some(cleaned_of), &mut || true)? {
                database.keep(&mut self.results, &needed)?;
            }
            self.since.entries -= rows.entries;
            self.since.documents -= rows.documents;
        } else if !is_empty(&self.superfluous) {
            self.remove_rows(database, &catalogue, portion, go_on)?;
        } else {
            self.collected.results.add(database.remove(&mut self.results, portion, go_on)?);
        }
        Ok(())
    }

    /// Removes rows of the catalogue, documents after the last entry.
    fn remove_rows(
        &mut self,
        database: &Database,
        catalogue: &Catalogue,
        portion: Portion,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ApplyError> {
        let ends = portion.ends();
        let (mut entries, mut documents) = (RoaringBitmap::new(), RoaringBitmap::new());
        let mapping = database.mapping()?;
        let mut transaction = mapping.write()?;
        let (mut removed, mut taken) = ((0, 0), 0);
        while taken < portion.rows {
            let is_over = || ends.is_some_and(|ends| Instant::now() >= ends);
            if taken > 0 && (is_over() || !go_on()) {
                break;
            }
            let few = ROWS_BETWEEN_LOOKS.min(portion.rows - taken);
            let (rows, is_entries) = match next(&self.superfluous.entries, &entries, few) {
                rows if rows.is_empty() => (next(&self.superfluous.documents, &documents, few), false),
                rows => (rows, true),
            };
            if rows.is_empty() {
                break;
            }
            taken += rows.len() as usize;
            let (e, d) = remove(catalogue, &mut transaction, &rows, is_entries)?;
            removed = (removed.0 + e, removed.1 + d);
            *(if is_entries { &mut entries } else { &mut documents }) |= rows;
        }
        transaction.commit()?;
        self.superfluous.entries -= entries;
        self.superfluous.documents -= documents;
        self.collected.entries += removed.0;
        self.collected.documents += removed.1;
        Ok(())
    }
}

/// Returns the next rows after those that were taken already.
fn next(rows: &RoaringBitmap, taken: &RoaringBitmap, number: usize) -> RoaringBitmap {
    let first = taken.max().map_or(0, |last| last.saturating_add(1));
    rows.range(first..).take(number).collect()
}

fn remove(
    catalogue: &Catalogue,
    transaction: &mut WriteTransaction<'_>,
    rows: &RoaringBitmap,
    is_entries: bool,
) -> Result<(u64, u64), ApplyError> {
    let none = RoaringBitmap::new();
    let (entries, documents) = if is_entries { (rows, &none) } else { (&none, rows) };
    Ok(catalogue.remove(transaction, entries.iter().map(Ordinal::new), documents.iter().map(Ordinal::new))?)
}

fn is_empty(rows: &Bitmaps) -> bool {
    rows.entries.is_empty() && rows.documents.is_empty()
}

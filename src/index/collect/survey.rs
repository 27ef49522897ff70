//! The mark phase: finds the needed rows, and lists the existing rows that are not needed.
//!
//! In: the log, the leases, and the state of a tracker's graph. Out: lists of removable rows.
//!
//! **Invariant:** nothing is written, so a survey may run beside a tracker, in a thread. The needed rows are found before the
//! existing ones. So a row published meanwhile is either needed here or has an ordinal that the collector passes to
//! [`Removal::needs`](super::Removal::needs).

use super::CleanedOf;
use crate::index::apply::ApplyError;
use crate::store::{Catalogue, Database, Layout, Needed, Superfluous, leases};
use dataflows::data::Outcome;
use roaring::RoaringBitmap;
use snapshots::{Archive, Bitmaps, Ordinal, VersionId};

/// Rows per look-up.
const LOOK_ROWS: usize = 4096;

/// The result of a survey.
pub struct Survey {
    pub(super) needed: Bitmaps,
    pub(super) superfluous: Bitmaps,
    pub(super) results: Superfluous,
    pub(super) held_back: u64,
    /// Versions from this one on are not covered.
    pub(super) next_version: VersionId,
}

/// Returns the rows that must stay: those of kept versions, and, as its second part, also those that living readers may search.
///
/// # Errors
/// If the log or the leases cannot be read.
pub fn needed(archive: &Archive, layout: &Layout) -> Result<(Bitmaps, Bitmaps), ApplyError> {
    let kept = archive.reached()?;
    let Some(least_read) = leases(layout)?.into_iter().min() else { return Ok((kept.clone(), kept)) };
    // A reader that has not read of a drop considers the version kept.
    let held: RoaringBitmap =
        archive.dropped().filter(|(_, end)| *end > least_read).map(|(version, _)| version.get()).collect();
    let needed = if held.is_empty() {
        kept.clone()
    } else {
        archive.reached_by(|version| !archive.is_dropped(version) || held.contains(version.get()))?
    };
    Ok((kept, needed))
}

/// Surveys a whole store for [`Removal`](super::Removal); returns nothing if `go_on` returns false, which is called for each row.
///
/// `graph` is the state of a tracker's graph. Of the cleaning results only those are listed that `cleaned_of` gives for no kept
/// document; without it, none.
///
/// # Errors
/// If a part cannot be read, or lacks rows of kept versions.
pub fn survey(
    layout: &Layout,
    database: &Database,
    archive: &Archive,
    graph: &Bitmaps,
    cleaned_of: Option<CleanedOf<'_>>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Survey>, ApplyError> {
    let catalogue = database.catalogue();
    let next_version = archive.next_version();
    let (kept, mut needed) = needed(archive, layout)?;
    let present = catalogue.ordinals()?;
    let missing = (&kept.entries - &present.entries).len() + (&kept.documents - &present.documents).len();
    if missing > 0 {
        // The results that lost rows need are unknown, so nothing is swept.
        return Err(ApplyError::RowsGone { missing });
    }
    // A reader that is about to open holds all versions ever dropped; rows that are already gone do not count.
    needed.entries &= &present.entries;
    needed.documents &= &present.documents;
    let held_back = needed.entries.len() - kept.entries.len();
    needed.entries |= &graph.entries & &present.entries;
    needed.documents |= &graph.documents & &present.documents;
    let Some(results) = results(&catalogue, &needed, cleaned_of, go_on)? else { return Ok(None) };
    let Some(results) = database.superfluous(&results, go_on)? else { return Ok(None) };
    let superfluous =
        Bitmaps { entries: present.entries - &needed.entries, documents: present.documents - &needed.documents };
    Ok(Some(Survey { needed, superfluous, results, held_back, next_version }))
}

/// Returns the results that rows need, or nothing if `go_on` returns false.
pub(super) fn results(
    catalogue: &Catalogue,
    rows: &Bitmaps,
    cleaned_of: Option<CleanedOf<'_>>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Needed>, ApplyError> {
    let mut results = Needed::default();
    results.rows(&rows.entries);
    if cleaned_of.is_some() {
        results.cleaned(std::iter::empty());
    }
    for rows in slices(&rows.entries, LOOK_ROWS) {
        catalogue.for_each_entry(rows.iter().map(Ordinal::new), |ordinal, record, card| {
            results.entry(ordinal, &record.entry, card.embed_input(record.entry.text));
        })?;
        if !go_on() {
            return Ok(None);
        }
    }
    for rows in slices(&rows.documents, LOOK_ROWS) {
        for document in catalogue.documents(rows.iter().map(Ordinal::new))? {
            if let Some(cleaned_of) = cleaned_of {
                results.cleaned(std::iter::once(cleaned_of(&document)));
            }
            if let Outcome::Indexed { chunking, .. } = document.outcome {
                results.chunks(chunking);
            }
        }
        if !go_on() {
            return Ok(None);
        }
    }
    Ok(Some(results))
}

/// Cuts a set into parts of so many members.
pub(super) fn slices(set: &RoaringBitmap, size: usize) -> Vec<RoaringBitmap> {
    let members: Vec<u32> = set.iter().collect();
    members.chunks(size).map(|part| part.iter().collect()).collect()
}

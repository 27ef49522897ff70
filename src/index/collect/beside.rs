//! Garbage collection beside a publishing tracker: in short steps, between epochs.
//!
//! In: a removal, and the writer of a tracker without an epoch in progress. Out: one step of it done, or the report that a thread
//! works on it.
//!
//! **Invariant:** a step takes some milliseconds, and begins with the versions published since the last one. Long work, merging
//! segments and rewriting vector files, is left to the maintenance threads. A step that removes database rows is an exclusive
//! section: no epoch is in the graph, and the feeder waits for the end of such a step.

use super::{CleanedOf, Removal};
use crate::index::Tended;
use crate::index::apply::{ApplyError, Beside, IndexWriter};
use crate::index::lexical::Forgotten;
use crate::store::{Database, Portion};
use roaring::RoaringBitmap;
use snapshots::{Archive, CommitId, Record, SourceId, VersionId};

/// The progress of a collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// There is more to do.
    GoesOn,
    /// A thread works on it, or a step of the tracker has to end first.
    Waits,
    /// Nothing is left.
    Done,
}

/// Drops versions by one group of the log, durably.
///
/// # Errors
/// If one of them is a view's head or already dropped, and if the disk fails; none is dropped then.
pub fn drop_versions(archive: &mut Archive, database: &Database, versions: RoaringBitmap) -> Result<(), ApplyError> {
    if versions.is_empty() {
        return Ok(());
    }
    let epoch = archive.next_epoch();
    archive.append(&[Record::Dropped { epoch, versions }])?;
    // A log truncated before this point would restore versions whose entries are gone.
    let mapping = database.mapping()?;
    let mut transaction = mapping.write()?;
    database.put_log_bytes(&mut transaction, archive.log_bytes())?;
    Ok(transaction.commit()?)
}

/// Versions that a tracker dropped.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Dropped {
    /// How many.
    pub versions: u64,
    /// The commits without a snapshot now.
    pub commits: Vec<(SourceId, CommitId)>,
}

/// Drops those of some versions that neither a view nor a head of the graph points at by now. Returns nothing while a step is
/// published in parts.
///
/// # Errors
/// As [`drop_versions`].
pub fn drop_beside(writer: &mut IndexWriter, mut versions: RoaringBitmap) -> Result<Option<Dropped>, ApplyError> {
    let Some(Beside { database, archive, versions: in_graph, .. }) = writer.beside() else { return Ok(None) };
    let heads = archive.views().map(|(_, head)| head.version).chain(in_graph);
    versions -= heads.map(VersionId::get).collect::<RoaringBitmap>();
    versions -= archive.dropped().map(|(version, _)| version.get()).collect::<RoaringBitmap>();
    drop_versions(archive, database, versions.clone())?;
    let dropped = versions.iter().filter_map(|version| archive.version(VersionId::new(version)));
    let gone = dropped.filter(|version| archive.by_commit(version.source, version.commit).is_none());
    let commits = gone.map(|version| (version.source, version.commit)).collect();
    Ok(Some(Dropped { versions: versions.len(), commits }))
}

/// Takes one step of a removal.
///
/// # Errors
/// If a part cannot be read or written; earlier removals stay, and the removal must not be used again.
pub fn step(
    writer: &mut IndexWriter,
    removal: &mut Removal,
    cleaned_of: CleanedOf<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Progress, ApplyError> {
    let Some(Beside { graph, database, archive, lexical, vectors, .. }) = writer.beside() else {
        return Ok(Progress::Waits);
    };
    removal.needs(archive, &graph)?;
    if removal.is_in_database() {
        removal.step(database, cleaned_of, Portion::SMALL, go_on)?;
        return Ok(Progress::GoesOn);
    }
    // Rows beyond the log belong to an unfinished publish, or to a future one.
    let used = archive.used_entries();
    match lexical.forget(removal.needed(), used)? {
        Forgotten::Some(words) => {
            removal.collected.words += words;
            return Ok(Progress::GoesOn);
        }
        Forgotten::Later => return Ok(Progress::Waits),
        Forgotten::All => {}
    }
    let mut dead = vectors.held() - removal.needed();
    dead.remove_range(used..);
    let before = vectors.held().len();
    let tended = vectors.forget(&dead)?;
    removal.collected.vectors += before - vectors.held().len();
    Ok(match tended {
        Tended::Busy | Tended::Waits => Progress::Waits,
        Tended::Idle => {
            removal.collected.is_complete = true;
            Progress::Done
        }
    })
}

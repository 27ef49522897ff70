//! What an unfinished publish left behind: rows beyond the version log. Those that are whole are kept, the others removed.
//!
//! In: an open catalogue and both indexes. Out: a catalogue each of whose entries is in both indexes.
//!
//! **Invariant:** whoever finds an entry's row may give its ordinal to a version, so the row of an orphan stays only where
//! its words are there, and its vector if it has one. A row was written after both were durable; but a file that was lost
//! since is made again for the entries of versions alone. An orphan that stays is found by its identity when the publish is
//! done again, so a first load that was ended half-way goes on where it was, and writes nothing twice.
//!
//! Ordinals of orphans are never given out again, whether they stay or not.

use super::ApplyError;
use crate::index::lexical::LexicalWriter;
use crate::index::vector::VectorWriter;
use crate::store::{Catalogue, Database};
use snapshots::{Archive, Ordinal};

/// Rows that one transaction removes at the most.
const TRANSACTION_ROWS: usize = 4096;

/// Removes the entries beyond the log that an index lacks.
pub(super) fn sweep(
    database: &Database,
    catalogue: &Catalogue,
    archive: &Archive,
    lexical: &LexicalWriter,
    vectors: &VectorWriter,
) -> Result<(), ApplyError> {
    let orphans = catalogue.entries_from(archive.used_entries())?;
    if orphans.is_empty() {
        return Ok(());
    }
    let (words, with_vector) = (lexical.held()?, vectors.held());
    let lacks = |(ordinal, has_vector): &(Ordinal, bool)| {
        !words.contains(ordinal.get()) || (*has_vector && !with_vector.contains(ordinal.get()))
    };
    let broken: Vec<Ordinal> = orphans.iter().filter(|row| lacks(row)).map(|(ordinal, _)| *ordinal).collect();
    for part in broken.chunks(TRANSACTION_ROWS) {
        let mapping = database.mapping()?;
        let mut transaction = mapping.write()?;
        catalogue.remove(&mut transaction, part.iter().copied(), std::iter::empty())?;
        transaction.commit()?;
    }
    let kept = orphans.len() - broken.len();
    tracing::info!("a publish did not finish: {kept} entries of it are kept, {} removed", broken.len());
    Ok(())
}

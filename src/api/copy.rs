//! `snapshots export` and `snapshots import`: one snapshot, from one machine to another.
//!
//! In: a revision and a folder. Out: the folder, or the snapshot in a store; one line that says which.

use super::wire::CopyLine;
use super::{ApiError, Place, Service};
use crate::engine::{Imported, import as publish};
use crate::index::copy::{self, Exported};
use crate::store::Layout;
use std::path::Path;

impl Service {
    /// Writes a copy of one snapshot into a folder that is not there yet.
    ///
    /// # Errors
    /// Where the revision is unknown, or the folder is there or cannot be written.
    pub fn export(&self, place: &Place, rev: &str, folder: &Path) -> Result<CopyLine, ApiError> {
        let rules = self.rules()?;
        let selected = self.one(place, rev)?;
        let (reader, revisions) = (self.searcher.reader(), self.searcher.revisions());
        let missing = || ApiError::Missing { what: format!("the source of {}", selected.commit) };
        let source = self.source(&selected).ok_or_else(missing)?;
        let views = reader.with_archive(|archive| {
            let standing =
                revisions.views_of(selected.source).filter(|(id, _)| archive.view(*id) == Some(selected.version));
            standing.map(|(_, name)| name.to_owned()).collect()
        });
        let dimensions = u32::try_from(self.searcher.model().dimensions()).unwrap_or(u32::MAX);
        let Exported { manifest, bytes } =
            copy::export(reader, source, selected.version, views, (&rules, dimensions), folder)?;
        Ok(CopyLine {
            commit: selected.commit.to_string(),
            source: manifest.source,
            live_entries: manifest.entries,
            digest: manifest.digest,
            bytes: Some(bytes),
            known: None,
        })
    }
}

/// Publishes a copy that was exported, in a store that may not be there yet.
///
/// # Errors
/// Where the copy is damaged or of another build, or another process writes to the store.
pub fn import(layout: &Layout, folder: &Path, name: Option<&str>) -> Result<CopyLine, ApiError> {
    let (imported, manifest) = publish(layout, folder, name)?;
    Ok(CopyLine {
        commit: manifest.commit()?.to_string(),
        source: name.unwrap_or(&manifest.source).to_owned(),
        live_entries: manifest.entries,
        digest: manifest.digest,
        bytes: None,
        known: Some(matches!(imported, Imported::Known)),
    })
}

//! Recovery at a start: the known sources and views, and the versions that the graph gets first.
//!
//! In: an open store. Out: numbers for sources and views, and the files of a version.
//!
//! **Invariant:** the data fed after a start comes from the version itself, so it needs neither the repository nor the disk.
//! Every stage answers from the memo, and the result is compared with the version's bitmaps.

use super::EngineError;
use super::git::ViewNumbers;
use super::place::is_same_place;
use crate::store::{Catalogue, Database, SourceKind, SourceRecord, SourceRoots, ViewRecord};
use dataflows::data::{DocumentPath, FileChange, FileMode, FileState, Outcome, SkipReason};
use snapshots::{Archive, Ordinal, SourceId, VersionId, ViewId};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Sources and views by number, and the database that keeps them.
pub(super) struct Registry {
    database: Database,
    catalogue: Catalogue,
    sources: Vec<(SourceId, SourceRecord)>,
    views: Vec<(ViewId, ViewRecord)>,
}

impl Registry {
    pub(super) fn open(database: &Database) -> Result<Self, EngineError> {
        let catalogue = database.catalogue();
        let (sources, views) = (catalogue.sources()?, catalogue.views()?);
        Ok(Self { database: database.clone(), catalogue, sources, views })
    }

    /// Returns the catalogue behind the registry.
    pub(super) fn catalogue(&self) -> Catalogue {
        self.catalogue.clone()
    }

    /// Returns the database behind the registry.
    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the number of a source that is identified by its name alone: of a trace, or of an imported snapshot.
    ///
    /// `roots` are noted where none are known yet.
    pub(super) fn source(&mut self, record: SourceRecord, roots: &SourceRoots) -> Result<SourceId, EngineError> {
        match self.named(&record.name) {
            Some((_, known)) if known.kind != record.kind => Err(EngineError::OtherKind {
                source_name: record.name.clone(),
                known: known.kind.as_str(),
                there: path_of(known),
                here: path_of(&record),
            }),
            known => {
                let id = known.map_or_else(|| self.next_source(), |(id, _)| *id);
                let known = self.database.source_roots(id)?.filter(|known| known.is_known);
                self.put(id, &record, known.as_ref().unwrap_or(roots))?;
                Ok(id)
            }
        }
    }

    /// Returns the number of the next new source.
    pub(super) fn next_source(&self) -> SourceId {
        SourceId::new(u32::try_from(self.sources.len()).unwrap_or(u32::MAX))
    }

    /// Writes the data of a source, if it is new.
    pub(super) fn put(&mut self, id: SourceId, record: &SourceRecord, roots: &SourceRoots) -> Result<(), EngineError> {
        let known = self.sources.iter_mut().find(|(known, _)| *known == id);
        let has_record = known.as_ref().is_some_and(|(_, known)| known == record);
        let has_roots = self.database.source_roots(id)?.as_ref() == Some(roots);
        if has_record && has_roots {
            return Ok(());
        }
        let mapping = self.database.mapping()?;
        let mut transaction = mapping.write()?;
        self.catalogue.put_source(&mut transaction, id, record)?;
        self.database.put_source_roots(&mut transaction, id, roots)?;
        transaction.commit()?;
        match known {
            Some((_, known)) => *known = record.clone(),
            None => self.sources.push((id, record.clone())),
        }
        Ok(())
    }

    /// Returns every source.
    pub(super) fn sources(&self) -> &[(SourceId, SourceRecord)] {
        &self.sources
    }

    /// Returns the source of this name, if there is one.
    pub(super) fn named(&self, name: &str) -> Option<&(SourceId, SourceRecord)> {
        self.sources.iter().find(|(_, known)| known.name == name)
    }

    /// Renames sources to the configured name for their location.
    pub(super) fn rename(&mut self, configured: &[SourceRecord]) -> Result<(), EngineError> {
        for record in configured {
            let is_named = |name: &str| configured.iter().any(|other| other.name == name);
            let is_known = self.sources.iter().any(|(_, known)| known.name == record.name);
            let same_place = self.sources.iter_mut().find(|(_, known)| {
                let is_here = || is_same_place(&path_of(known), &path_of(record));
                known.kind == record.kind && !is_named(&known.name) && is_here()
            });
            if let (false, Some((id, known))) = (is_known, same_place) {
                tracing::info!("the source {} is called {} from now on", known.name, record.name);
                *known = record.clone();
                let mapping = self.database.mapping()?;
                let mut transaction = mapping.write()?;
                self.catalogue.put_source(&mut transaction, *id, record)?;
                transaction.commit()?;
            }
        }
        Ok(())
    }

    /// Returns the views of all sources with none of these names.
    pub(super) fn views_beside(&self, names: &[String]) -> Vec<ViewId> {
        let others = self.sources.iter().filter(|(_, source)| !names.contains(&source.name)).map(|(id, _)| *id);
        others.flat_map(|id| self.views_of(id).map(|(view, _)| view)).collect()
    }

    /// Returns the name of a view.
    pub(super) fn view_name(&self, view: ViewId) -> Option<String> {
        self.views.iter().find(|(id, _)| *id == view).map(|(_, record)| record.name.clone())
    }

    /// Returns the views of a source.
    pub(super) fn views_of(&self, source: SourceId) -> impl Iterator<Item = (ViewId, &str)> {
        self.views.iter().filter(move |(_, view)| view.source == source).map(|(id, view)| (*id, view.name.as_str()))
    }
}

impl ViewNumbers for Registry {
    fn view(&mut self, source: SourceId, name: &str) -> Result<ViewId, EngineError> {
        // A view that was removed and comes back is the same view.
        if let Some((id, _)) = self.views_of(source).find(|(_, known)| *known == name) {
            return Ok(id);
        }
        let id = ViewId::new(u32::try_from(self.views.len()).unwrap_or(u32::MAX));
        let record = ViewRecord { source, name: name.to_owned() };
        let mapping = self.database.mapping()?;
        let mut transaction = mapping.write()?;
        self.catalogue.put_view(&mut transaction, id, &record)?;
        transaction.commit()?;
        self.views.push((id, record));
        Ok(id)
    }
}

/// Returns the files of a version.
pub(super) fn files_of(
    archive: &Archive,
    catalogue: &Catalogue,
    version: VersionId,
) -> Result<BTreeMap<DocumentPath, FileState>, EngineError> {
    files_in(catalogue, archive.bitmaps(version)?.documents.iter())
}

/// Returns the files of documents.
pub(super) fn files_in(
    catalogue: &Catalogue,
    documents: impl Iterator<Item = u32>,
) -> Result<BTreeMap<DocumentPath, FileState>, EngineError> {
    let rows = catalogue.documents(documents.map(Ordinal::new))?;
    let state = |row: &dataflows::data::Document| FileState {
        content: row.content,
        mode: match row.outcome {
            Outcome::Skipped(SkipReason::Symlink) => FileMode::Symlink,
            Outcome::Skipped(SkipReason::Submodule) => FileMode::Submodule,
            _ => FileMode::Regular,
        },
    };
    Ok(rows
        .into_iter()
        .map(|row| {
            let state = state(&row);
            (row.path, state)
        })
        .collect())
}

/// Returns the changes that insert files into an empty view.
pub(super) fn arrivals(files: BTreeMap<DocumentPath, FileState>) -> Vec<FileChange> {
    files.into_iter().map(|(path, state)| FileChange { path, before: None, after: Some(state) }).collect()
}

/// Returns the changes that remove files from a view.
pub(super) fn departures(files: impl IntoIterator<Item = (DocumentPath, FileState)>) -> Vec<FileChange> {
    files.into_iter().map(|(path, state)| FileChange { path, before: Some(state), after: None }).collect()
}

fn path_of(record: &SourceRecord) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(&record.location))
}

/// Returns the record of a source at a location.
pub(super) fn source_record(name: &str, kind: SourceKind, location: &std::path::Path) -> SourceRecord {
    use std::os::unix::ffi::OsStrExt;
    SourceRecord { name: name.to_owned(), kind, location: location.as_os_str().as_bytes().to_vec() }
}

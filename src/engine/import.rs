//! Import, the second half: a verified copy of a snapshot becomes a version of a store.
//!
//! In: an exported folder. Out: the version, published as usual: one group of the log.
//!
//! **Invariant:** the copy is proven before the store is touched, and the version is visible with its last write, the
//! log's. A copy joins the source of its name only where that may be the same one, as `track` decides it
//! ([`identity`](super::identity)). A source's own row is written just before; a source without a version is shown nowhere.
//!
//! A view that pointed at the commit at the export is created, if the store does not have it: tracking continues from there. An
//! existing view does not move.

use super::EngineError;
use super::git::ViewNumbers;
use super::recover::Registry;
use super::store::OpenStore;
use crate::embedders;
use crate::index::apply::{CommitTarget, IndexWriter, Published, Purpose, Target};
use crate::index::copy::{Manifest, SnapshotCopy};
use crate::store::{Layout, SourceKind, SourceRecord};
use dataflows::data::{Epoch, Fingerprint, View};
use dataflows::run::EpochDone;
use dataflows::work::Work;
use std::path::Path;
use std::time::{Duration, Instant};

/// The head for a copy; no graph runs, so it cannot collide with another.
const PASSING: View = View(u32::MAX - 1);

/// The result of an import.
#[derive(Clone, Debug)]
pub enum Imported {
    /// The snapshot was published, and the views that were made for it.
    Published(Box<Published>),
    /// The store has exactly this snapshot already.
    Known,
}

/// Publishes the copy in `folder` into a store, which it creates if needed; under another source name, if one is given. Returns
/// the result, and the copy's manifest.
///
/// # Errors
/// If the copy is damaged or of another model, the store has another snapshot of the commit, or cannot be written.
pub fn import(layout: &Layout, folder: &Path, name: Option<&str>) -> Result<(Imported, Manifest), EngineError> {
    let (begun, seen) = (Instant::now(), jiff::Timestamp::now().as_millisecond());
    let model = embedders::configured();
    let dimensions = u32::try_from(model.dimensions()).unwrap_or(u32::MAX);
    let copy = SnapshotCopy::open(folder, model.fingerprint(), dimensions)?;
    let manifest = &copy.manifest;
    let name = name.unwrap_or(&manifest.source).to_owned();
    let kind = match manifest.kind.as_str() {
        "directory" => SourceKind::Directory,
        "trace" => SourceKind::Trace,
        _ => SourceKind::Git,
    };
    let (commit, parent) = (manifest.commit()?, manifest.parent()?);
    let fingerprint = Fingerprint::from_bytes(manifest.fingerprint()?);

    let OpenStore { lock: _lock, database, memo, archive, lexical, vectors } = OpenStore::open(layout, &model)?;
    let mut registry = Registry::open(&database)?;
    let roots = manifest.roots()?;
    registry.may_join(&name, kind, commit, parent, &roots, &archive)?;
    let known = registry.named(&name).cloned();
    if let Some((source, _)) = &known
        && let Some(version) = archive.by_commit(*source, commit).and_then(|version| archive.version(version))
    {
        let same = version.digest.to_string() == manifest.digest && version.fingerprint == fingerprint.to_bytes();
        return if same {
            Ok((Imported::Known, copy.manifest))
        } else {
            Err(EngineError::OtherSnapshot { source_name: name, commit })
        };
    }
    copy.fill(&memo)?;

    let location = known.map(|(_, record)| record.location).unwrap_or_default();
    let source = registry.source(SourceRecord { name, kind, location }, &roots)?;
    let mut views = Vec::new();
    for view in &manifest.views {
        let id = registry.view(source, view)?;
        if archive.view(id).is_none() {
            views.push(id);
        }
    }
    let mut views = views.into_iter();
    let target = CommitTarget { source, commit, parent, time: manifest.time, view: views.next() };
    let mut epochs = vec![(Purpose::Commit(target), copy.entries, copy.documents)];
    epochs.extend(views.map(|view| (Purpose::Point { view, source, commit }, Vec::new(), Vec::new())));
    let epochs = (1..).zip(epochs).map(|(number, (purpose, entries, documents))| {
        let done = EpochDone {
            epoch: Epoch(number),
            entries: entries.into_iter().map(|entry| (PASSING, entry, 1)).collect(),
            documents: documents.into_iter().map(|document| (PASSING, document, 1)).collect(),
            work: Work::default(),
            fed: begun,
            finished: begun,
        };
        (Target { graph_view: PASSING, purpose, begun, diff: Duration::ZERO, seen }, done)
    });
    let mut writer = IndexWriter::new(database, memo, archive, lexical, vectors, fingerprint, model)?;
    let published = writer.publish(epochs.collect())?;
    let first = published.into_iter().next().ok_or(EngineError::PublisherStopped)?;
    Ok((Imported::Published(Box::new(first)), copy.manifest))
}

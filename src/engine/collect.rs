//! `snapshots gc`: applies retention and collects garbage.
//!
//! In: a store without a tracker, and the settings. Out: the removed rows, and the bytes of each part before and after.
//!
//! ```text
//!  retention ──► log: one group that drops versions (commit point) ──► collect ──► the database's file, rewritten
//!                                                                                  if there is no reader
//! ```
//!
//! A tracker with the store open does it on request ([`asking`](super::asking)), at its start or regularly
//! ([`collector`](super::collector)); but it does not rewrite the file, which other processes may have open.
//!
//! **Invariant:** only the log drops a version. Nothing is removed before that group is durable. After that the next run
//! continues any interrupted collection.

use super::EngineError;
use super::asking::{Asking, open_or_ask};
use super::board::now;
use super::open::{fingerprint, load_rules};
use super::place::source_name;
use super::recover::Registry;
use super::retention::Kept;
use super::store::OpenStore;
use crate::config::{Config, Retention};
use crate::index::apply::ApplyError;
use crate::index::collect::{self, CleanedOf, CollectParts, Collected, drop_versions};
use crate::store::{Database, Gate, LastCollection, Layout, Lease, SourceKind, leases};
use crate::watch::git::GitSource;
use dataflows::data::Document;
use dataflows::rules::Rules;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use snapshots::Archive;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file with a smaller free share than one in so many is not rewritten.
const WORTH_WRITING_ANEW: u64 = 10;

/// The result of a collection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Collection {
    /// Versions that were dropped, or would be.
    pub dropped: u64,
    /// Versions that are kept.
    pub kept: u64,
    /// Removed rows, or those that would be.
    pub collected: Collected,
    /// Living readers.
    pub readers: u64,
    /// Bytes of each part, before and after.
    pub bytes: BTreeMap<String, [u64; 2]>,
    /// Free bytes of the database's file, which are reused before it grows.
    pub free: u64,
    /// Bytes that were freed, in removed files or for reuse.
    pub given_back: u64,
}

/// Bytes by part, and free bytes of the database's file.
type Measured = (BTreeMap<&'static str, u64>, u64);

impl Collection {
    /// Adds the bytes before and after.
    pub(super) fn measured(mut self, before: &Measured, after: &Measured) -> Self {
        let used = |(parts, free): &Measured| parts.values().sum::<u64>().saturating_sub(*free);
        self.free = after.1;
        self.given_back = used(before).saturating_sub(used(after));
        self.bytes = before.0.iter().map(|(part, bytes)| ((*part).to_owned(), [*bytes, after.0[part]])).collect();
        self
    }

    /// Records a complete collection, for `status` and for the next collection.
    pub(super) fn note(&self, database: &Database) -> Result<(), EngineError> {
        let Self { dropped, collected, given_back, .. } = *self;
        let last = LastCollection { time: now(), dropped, entries: collected.entries, bytes: given_back };
        Ok(database.put_last_collection(last)?)
    }
}

/// Returns what a collection would do, beside any tracker; nothing is written.
///
/// # Errors
/// If the store or a pattern of the settings cannot be read.
pub fn estimate(layout: &Layout, config: &Config) -> Result<Collection, EngineError> {
    layout.check()?;
    let readers = leases(layout)?.len() as u64;
    let _lease = Lease::take(layout)?;
    let archive = Archive::open_reader(&layout.versions())?;
    let database = Database::open_reader(layout)?;
    let rules = load_rules(config.rules.as_deref())?;
    let dropped = versions_to_drop(&archive, &database, config)?;
    let is_kept = |version: snapshots::VersionId| !archive.is_dropped(version) && !dropped.contains(version.get());
    let reached = archive.reached_by(is_kept)?;
    let cleaned = cleaned_of(&rules);
    let versions = archive.versions().iter().filter(|version| is_kept(version.id));
    let collected = collect::estimate(&database, &reached, sweeps_cleaned(&rules, versions, &cleaned))?;
    let kept = archive.kept().count() as u64 - dropped.len();
    let now = measure(layout, &database)?;
    Ok(Collection { dropped: dropped.len(), kept, collected, readers, ..Collection::default() }.measured(&now, &now))
}

/// Drops versions and collects garbage, or asks the tracker that has the store open to do so, and waits for it; `go_on` is called
/// between steps, and false ends the work there.
///
/// # Errors
/// If a tracker with other retention has the store open, a part of the store is damaged, or the disk fails.
pub fn collect(layout: &Layout, config: &Config, go_on: &mut dyn FnMut() -> bool) -> Result<Collection, EngineError> {
    layout.check_for_writer()?;
    let rules = load_rules(config.rules.as_deref())?;
    let open = match open_or_ask(layout, config, go_on)? {
        Asking::Answered(collection) => return Ok(collection),
        Asking::Opened(open) => *open,
    };
    let OpenStore { lock: _lock, database, memo, mut archive, mut lexical, mut vectors, .. } = open;
    let before = measure(layout, &database)?;
    let mut open = CollectParts {
        layout,
        database: &database,
        archive: &mut archive,
        lexical: &mut lexical,
        vectors: &mut vectors,
    };
    let collection = drop_and_collect(&mut open, config, &rules, go_on)?;
    lexical.close().map_err(ApplyError::from)?;
    let (_, free) = measure(layout, &database)?;
    drop((memo, archive, vectors));
    if collection.collected.is_complete && go_on() {
        shrink(layout, &database, free)?;
    }
    let collection = collection.measured(&before, &measure(layout, &database)?);
    if collection.collected.is_complete {
        collection.note(&database)?;
    }
    Ok(collection)
}

/// Drops versions and collects in a store that is open for writing, without a running graph; the files keep their free pages.
pub(super) fn drop_and_collect(
    parts: &mut CollectParts<'_>,
    config: &Config,
    rules: &Rules,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Collection, EngineError> {
    let mut collection = Collection::default();
    let (layout, database) = (parts.layout, parts.database);
    let dropped = versions_to_drop(parts.archive, database, config)?;
    if !dropped.is_empty() && go_on() {
        collection.dropped = dropped.len();
        drop_versions(parts.archive, database, dropped)?;
    }
    collection.kept = parts.archive.kept().count() as u64;
    collection.readers = leases(layout)?.len() as u64;
    let cleaned = cleaned_of(rules);
    let cleaned_of = sweeps_cleaned(rules, parts.archive.kept(), &cleaned);
    collection.collected = collect::collect(parts, cleaned_of, go_on)?;
    Ok(collection)
}

/// Rewrites the database's file, if that is worth it and there is no reader.
fn shrink(layout: &Layout, database: &Database, free: u64) -> Result<(), EngineError> {
    if free >= database.disk_bytes()? / WORTH_WRITING_ANEW
        && let Some(gate) = Gate::shut(layout)?
    {
        database.compact(&gate)?;
    }
    Ok(())
}

/// Returns the versions that the settings do not keep.
pub(super) fn versions_to_drop(
    archive: &Archive,
    database: &Database,
    config: &Config,
) -> Result<RoaringBitmap, EngineError> {
    let (registry, now) = (Registry::open(database)?, now());
    let own: BTreeMap<String, &Retention> =
        config.sources.iter().filter_map(|source| Some((source_name(source), source.retention.as_ref()?))).collect();
    let mut dropped = RoaringBitmap::new();
    for (id, record) in registry.sources() {
        let git = match record.kind {
            SourceKind::Git if !record.location.is_empty() => {
                GitSource::open(Path::new(OsStr::from_bytes(&record.location))).ok()
            }
            _ => None,
        };
        let retention = own.get(&record.name).copied().unwrap_or(&config.retention);
        let kept = Kept { id: *id, record, views: registry.views_of(*id).collect(), retention, git };
        kept.drop_into(archive, now, &mut dropped)?;
    }
    Ok(dropped)
}

/// Returns what names the cleaned text of a document.
pub(super) fn cleaned_of(rules: &Rules) -> impl Fn(&Document) -> dataflows::data::DocumentId {
    |document| rules.document_id(document)
}

/// Returns that function, if all versions were made under these rules: only then does it give all of their cleaning results.
pub(super) fn sweeps_cleaned<'a, 'b>(
    rules: &Rules,
    mut versions: impl Iterator<Item = &'a snapshots::Version>,
    cleaned_of: CleanedOf<'b>,
) -> Option<CleanedOf<'b>> {
    let fingerprint = fingerprint(rules).to_bytes();
    versions.all(|version| version.fingerprint == fingerprint).then_some(cleaned_of)
}

/// Returns the bytes of each part of a store, and the free bytes of the database's file.
pub(super) fn measure(layout: &Layout, database: &Database) -> Result<Measured, EngineError> {
    let used: u64 = database.table_bytes()?.iter().map(|(_, bytes)| bytes).sum();
    let free = database.disk_bytes()?.saturating_sub(used);
    Ok((database.bytes_by_part(layout)?, free))
}

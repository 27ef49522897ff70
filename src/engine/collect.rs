//! `snapshots gc`: drops what retention does not keep, and gives back what nobody needs any more.
//!
//! In: a store that no tracker writes to, and the settings. Out: what went, and the bytes of each part before and after.
//!
//! ```text
//!  retention ──► log: one group that drops versions (commit point) ──► collect ──► the database's file, written anew
//!                                                                                  if nobody reads
//! ```
//!
//! A tracker that has the store open is asked to do it ([`asking`](super::asking)), and may do it when it starts or now and then
//! ([`collector`](super::collector)); but for the file, which others may have open.
//!
//! **Invariant:** a version is dropped by the log and by nothing else. Until that group is durable nothing is removed, and
//! from then on whatever breaks off is taken up by the next run.

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

/// A file of which less than one part in so many is free is left as it is.
const WORTH_WRITING_ANEW: u64 = 10;

/// What a collection came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Collection {
    /// Versions that were dropped, or would be.
    pub dropped: u64,
    /// Versions that are kept.
    pub kept: u64,
    /// What was removed, or would be.
    pub collected: Collected,
    /// Readers that live.
    pub readers: u64,
    /// Bytes of each part, before and after.
    pub bytes: BTreeMap<String, [u64; 2]>,
    /// Bytes of the database's file that hold nothing, and are written over before it grows.
    pub free: u64,
    /// Bytes that hold nothing any more, in files that are gone or for what comes.
    pub given_back: u64,
}

/// Bytes by part, and those of the database's file that hold nothing.
type Measured = (BTreeMap<&'static str, u64>, u64);

impl Collection {
    /// Adds how many bytes there were and are.
    pub(super) fn measured(mut self, before: &Measured, after: &Measured) -> Self {
        let used = |(parts, free): &Measured| parts.values().sum::<u64>().saturating_sub(*free);
        self.free = after.1;
        self.given_back = used(before).saturating_sub(used(after));
        self.bytes = before.0.iter().map(|(part, bytes)| ((*part).to_owned(), [*bytes, after.0[part]])).collect();
        self
    }

    /// Notes for `status`, and for who collects next, that all was done.
    pub(super) fn note(&self, database: &Database) -> Result<(), EngineError> {
        let Self { dropped, collected, given_back, .. } = *self;
        let last = LastCollection { time: now(), dropped, entries: collected.entries, bytes: given_back };
        Ok(database.put_last_collection(last)?)
    }
}

/// Says what a collection would do, beside any tracker; nothing is written.
///
/// # Errors
/// Where the store or a pattern of the settings cannot be read.
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

/// Drops versions and collects, or asks the tracker that has the store open to do so, and waits for it; `go_on` is asked between
/// steps, and its no ends the work there.
///
/// # Errors
/// Where a tracker has the store open that keeps other snapshots, a part of it is damaged, or the disk refuses.
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

/// Drops versions and collects in a store that is open for writing, while no graph runs; the files keep their free pages.
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

/// Writes the database's file anew, if that is worth it and nobody reads.
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

/// Returns what names cleaned texts, if all versions were made under these rules: only then do these name all that cleaning made
/// for them.
pub(super) fn sweeps_cleaned<'a, 'b>(
    rules: &Rules,
    mut versions: impl Iterator<Item = &'a snapshots::Version>,
    cleaned_of: CleanedOf<'b>,
) -> Option<CleanedOf<'b>> {
    let fingerprint = fingerprint(rules).to_bytes();
    versions.all(|version| version.fingerprint == fingerprint).then_some(cleaned_of)
}

/// Returns the bytes of each part of a store, and those of the database's file that hold nothing.
pub(super) fn measure(layout: &Layout, database: &Database) -> Result<Measured, EngineError> {
    let used: u64 = database.table_bytes()?.iter().map(|(_, bytes)| bytes).sum();
    let free = database.disk_bytes()?.saturating_sub(used);
    Ok((database.bytes_by_part(layout)?, free))
}

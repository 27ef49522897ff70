//! `snapshots gc`: drops what retention does not keep, and gives back what nobody needs any more.
//!
//! In: a store that no tracker writes to, and the settings. Out: what went, and the bytes of each part before and after.
//!
//! ```text
//!  retention ──► log: one group that drops versions (commit point) ──► collect ──► the database's file, written anew
//!                                                                                  if nobody reads
//! ```
//!
//! A tracker may do the same when it starts, but for the file.
//!
//! **Invariant:** a version is dropped by the log and by nothing else. Until that group is durable nothing is removed, and
//! from then on whatever breaks off is taken up by the next run.

use super::EngineError;
use super::open::{fingerprint, load_rules, source_name};
use super::recover::Registry;
use super::retention::Kept;
use super::store::OpenStore;
use crate::config::{Config, Retention};
use crate::embedders::StaticModel;
use crate::index::apply::ApplyError;
use crate::index::collect::{self, CollectParts, Collected};
use crate::store::{Database, Gate, Layout, Lease, SourceKind, StoreError, leases};
use crate::watch::git::GitSource;
use dataflows::data::{ContentId, DocumentPath};
use dataflows::rules::Rules;
use roaring::RoaringBitmap;
use snapshots::{Archive, Record};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file of which less than one part in so many is free is left as it is.
const WORTH_WRITING_ANEW: u64 = 10;

/// What a collection came to.
#[derive(Clone, Debug, Default)]
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
    pub bytes: BTreeMap<&'static str, [u64; 2]>,
    /// Bytes of the database's file that hold nothing, and are written over before it grows.
    pub free: u64,
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
    let versions = archive.versions().iter();
    let all_current = all_current(&rules, versions.filter(|version| is_kept(version.id)));
    let collected = collect::estimate(&database, &reached, if all_current { Some(&cleaned) } else { None })?;
    let (bytes, free) = measure(layout, &database)?;
    Ok(Collection {
        dropped: dropped.len(),
        kept: archive.kept().count() as u64 - dropped.len(),
        collected,
        readers,
        bytes: bytes.into_iter().map(|(part, bytes)| (part, [bytes, bytes])).collect(),
        free,
    })
}

/// Drops versions and collects; `go_on` is asked between steps, and its no ends the work there.
///
/// # Errors
/// Where a tracker writes to the store, a part of it is damaged, or the disk refuses.
pub fn collect(layout: &Layout, config: &Config, go_on: &mut dyn FnMut() -> bool) -> Result<Collection, EngineError> {
    layout.check_for_writer()?;
    let rules = load_rules(config.rules.as_deref())?;
    let OpenStore { lock: _lock, database, memo, mut archive, mut lexical, mut vectors, .. } =
        OpenStore::open(layout, &StaticModel::new()).map_err(|error| match error {
            EngineError::Store(StoreError::Locked { holder, .. }) => EngineError::Tracking { holder },
            error => error,
        })?;
    let (before, _) = measure(layout, &database)?;
    let mut open = CollectParts {
        layout,
        database: &database,
        archive: &mut archive,
        lexical: &mut lexical,
        vectors: &mut vectors,
    };
    let mut collection = drop_and_collect(&mut open, config, &rules, go_on)?;
    lexical.close().map_err(ApplyError::from)?;
    let (_, free) = measure(layout, &database)?;
    drop((memo, archive, vectors));
    let database = if collection.collected.is_complete && go_on() { shrink(layout, database, free)? } else { database };
    let (after, free) = measure(layout, &database)?;
    collection.free = free;
    collection.bytes = before.into_iter().map(|(part, bytes)| (part, [bytes, after[part]])).collect();
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
        let epoch = parts.archive.next_epoch();
        parts.archive.append(&[Record::Dropped { epoch, versions: dropped }])?;
        // A log that is cut in front of this would bring versions back whose entries are gone.
        let mut transaction = database.write()?;
        database.put_log_bytes(&mut transaction, parts.archive.log_bytes())?;
        transaction.commit()?;
    }
    collection.kept = parts.archive.kept().count() as u64;
    collection.readers = leases(layout)?.len() as u64;
    let cleaned = cleaned_of(rules);
    let cleaned_of: Option<collect::CleanedOf<'_>> =
        if all_current(rules, parts.archive.kept()) { Some(&cleaned) } else { None };
    collection.collected = collect::collect(parts, cleaned_of, go_on)?;
    Ok(collection)
}

/// Writes the database's file anew, if that is worth it and nobody reads.
fn shrink(layout: &Layout, database: Database, free: u64) -> Result<Database, EngineError> {
    if free < database.disk_bytes()? / WORTH_WRITING_ANEW {
        return Ok(database);
    }
    let Some(gate) = Gate::shut(layout)? else { return Ok(database) };
    database.compact(&gate)?;
    Ok(Database::open_writer(layout)?)
}

/// Returns the versions that the settings do not keep.
fn versions_to_drop(archive: &Archive, database: &Database, config: &Config) -> Result<RoaringBitmap, EngineError> {
    let registry = Registry::open(database)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
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

/// Returns what names the cleaned text of a content at a path.
fn cleaned_of(rules: &Rules) -> impl Fn(&DocumentPath, ContentId) -> dataflows::data::DocumentId {
    |path, content| rules.rule(rules.for_path(path)).document_id(content)
}

/// Whether all versions were made under these rules: only then do these name all that cleaning made for them.
fn all_current<'a>(rules: &Rules, mut versions: impl Iterator<Item = &'a snapshots::Version>) -> bool {
    let fingerprint = fingerprint(rules).to_bytes();
    versions.all(|version| version.fingerprint == fingerprint)
}

/// Returns the bytes of each part of a store, and those of the database's file that hold nothing.
fn measure(layout: &Layout, database: &Database) -> Result<(BTreeMap<&'static str, u64>, u64), EngineError> {
    let used: u64 = database.table_bytes()?.iter().map(|(_, bytes)| bytes).sum();
    let free = database.disk_bytes()?.saturating_sub(used);
    Ok((database.bytes_by_part(layout)?, free))
}

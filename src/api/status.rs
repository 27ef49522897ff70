//! `status`: what the store holds, how far behind its sources it is, and what went wrong.
//!
//! In: the store, its sources where they can be asked, and what the last tracker reported. Out: one answer.

use super::wire::{
    CollectedStatus, FaultStatus, RunningStatus, SourceStatus, StatusAnswer, TrackerStatus, UnsureFile, UnsureStatus,
    ViewStatus, WirePath, WorkCounts,
};
use super::{ApiError, Service};
use crate::search::show_time;
use crate::store::{Layout, SourceKind, SourceRecord, SourceState, TrackerState, writer};
use crate::watch::git::GitSource;
use crate::watch::worktree::WORKTREE_VIEW;
use dataflows::data::{Cleaned, Conversion, Document, Evidence, Outcome as DocumentOutcome, StageName};
use dataflows::memo::Memo;
use dataflows::rules::Rules;
use roaring::RoaringBitmap;
use snapshots::{CommitId, Ordinal, SourceId};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many documents of an unsure encoding are named.
const EXAMPLES: usize = 3;

impl Service {
    /// Returns what the store holds and how its sources do.
    ///
    /// # Errors
    /// Where the store or the rules cannot be read.
    pub fn status(&self) -> Result<StatusAnswer, ApiError> {
        let reader = self.searcher.reader();
        let known = self.searcher.revisions().sources();
        let tracker = TrackerState::read(reader.layout());
        let rules = self.rules()?;
        let mut sources = Vec::new();
        for (id, record) in known {
            sources.push(source_status(self, &rules, *id, record, tracker.as_ref())?);
        }
        // Sources that were never there have no row yet.
        let is_known = |name: &String| known.iter().any(|(_, record)| record.name == *name);
        let unknown = tracker.iter().flat_map(|state| &state.sources).filter(|(name, _)| !is_known(name));
        sources.extend(unknown.map(|(name, state)| missing_source(name, state)));
        let work = self.work()?;
        let bytes = reader.database().bytes_by_part(reader.layout())?;
        let entries = u64::from(reader.catalogue().next_entry()?);
        let last_collection = reader.database().last_collection()?.map(CollectedStatus::from);
        let tracker = running(reader.layout(), tracker.as_ref());
        Ok(StatusAnswer { sources, entries, bytes, work, last_collection, tracker })
    }

    /// Returns all work since the store was made.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn work(&self) -> Result<WorkCounts, ApiError> {
        let mut work = WorkCounts::default();
        self.searcher.reader().catalogue().receipts()?.iter().for_each(|receipt| work.add(receipt));
        Ok(work)
    }
}

/// Finds out whether a tracker runs, by the lock that it would hold.
fn running(layout: &Layout, report: Option<&TrackerState>) -> RunningStatus {
    let holder = writer(layout);
    let process = holder.flatten();
    let own = report.filter(|report| process == Some(report.process) && report.started > 0);
    RunningStatus {
        running: holder.is_some(),
        process,
        since: own.map(|report| show_time(report.started)),
        reported: report.map(|report| show_time(report.written)),
    }
}

/// Describes a source that a tracker misses and the store knows nothing of.
fn missing_source(name: &str, state: &SourceState) -> SourceStatus {
    let kind = if state.kind == "directory" { "directory" } else { "git" };
    let (skipped, tracker) = (BTreeMap::new(), Some(TrackerStatus::from(state)));
    let (name, unsure, without_syntax) = (name.to_owned(), UnsureStatus::default(), BTreeMap::new());
    let (views, faults) = (Vec::new(), Vec::new());
    SourceStatus { name, kind, views, documents: 0, skipped, without_syntax, unsure, faults, tracker }
}

/// What is known of how far behind its source a view is.
#[derive(Default)]
struct Lag {
    behind: Option<u64>,
    looked_at: Option<String>,
    unknown: Option<String>,
}

/// Asks a repository how far behind it a view is.
fn lag(git: &Result<GitSource, String>, view: &str, stands: CommitId) -> Lag {
    let git = match git {
        Ok(git) => git,
        Err(why) => return Lag { unknown: Some(why.clone()), ..Lag::default() },
    };
    let behind = git.resolve(view).and_then(|now| {
        let commits = git.new_commits(stands, now)?;
        // A head that was reset stands elsewhere, though nothing is new.
        Ok(if commits.is_empty() && now != stands { 1 } else { commits.len() as u64 })
    });
    match behind {
        Ok(behind) => Lag { behind: Some(behind), ..Lag::default() },
        Err(error) => Lag { unknown: Some(error.to_string()), ..Lag::default() },
    }
}

fn source_status(
    service: &Service,
    rules: &Rules,
    id: SourceId,
    record: &SourceRecord,
    tracker: Option<&TrackerState>,
) -> Result<SourceStatus, ApiError> {
    let (reader, revisions) = (service.searcher.reader(), service.searcher.revisions());
    let repository = match (revisions.repository(record), record.location.is_empty()) {
        (Some(git), _) => Ok(git),
        (None, true) => Err("the source was imported and is not tracked here".to_owned()),
        (None, false) => Err(GitSource::open(Path::new(OsStr::from_bytes(&record.location)))
            .err()
            .map_or_else(|| "it could not be opened".to_owned(), |error| error.to_string())),
    };
    let state = tracker.and_then(|state| state.sources.get(&record.name));
    let looked_at = |what: &str| state?.watches.get(what)?.last_reconcile.map(show_time);
    let mut views = Vec::new();
    reader.with_archive(|archive| {
        let heads: BTreeMap<_, _> = archive.views().collect();
        for (view, name) in revisions.views_of(id) {
            let Some(head) = heads.get(&view) else { continue };
            let Some(version) = archive.version(head.version) else { continue };
            let is_worktree = name == WORKTREE_VIEW && !repository.as_ref().is_ok_and(|git| git.resolve(name).is_ok());
            let Lag { behind, looked_at, unknown } = match record.kind {
                SourceKind::Directory => Lag { looked_at: looked_at("files"), ..Lag::default() },
                SourceKind::Git if is_worktree => Lag { looked_at: looked_at(name), ..Lag::default() },
                SourceKind::Git => lag(&repository, name, version.commit),
                SourceKind::Trace => Lag { behind: Some(0), ..Lag::default() },
            };
            views.push(ViewStatus {
                name: name.to_owned(),
                commit: version.commit.to_string(),
                epoch: head.epoch.get(),
                behind,
                looked_at,
                unknown,
                live_entries: version.statistics.live_entries,
            });
        }
    });
    let mut status = SourceStatus {
        name: record.name.clone(),
        kind: record.kind.as_str(),
        views,
        documents: 0,
        skipped: BTreeMap::new(),
        without_syntax: BTreeMap::new(),
        unsure: UnsureStatus::default(),
        faults: Vec::new(),
        tracker: state.map(TrackerStatus::from),
    };
    for watch in state.iter().flat_map(|state| state.watches.values()) {
        for (reason, number) in [("store", watch.stores), ("editor", watch.editors)] {
            if number > 0 {
                *status.skipped.entry(reason).or_default() += number;
            }
        }
    }
    let selected = revisions.select(reader, Some(&record.name), None, None).unwrap_or_default();
    for selected in selected {
        let alive = reader.with_archive(|archive| archive.bitmaps(selected.version))?;
        for document in reader.catalogue().documents(alive.documents.iter().map(Ordinal::new))? {
            match document.outcome {
                DocumentOutcome::Indexed { chunking, .. } => {
                    status.documents += 1;
                    if let Some(why) = reader.memo().no_syntax(chunking)? {
                        *status.without_syntax.entry(why.as_str()).or_default() += 1;
                    }
                    if let Some(file) = unsure(service, rules, &document) {
                        status.unsure.count += 1;
                        status.unsure.first.push(file);
                    }
                }
                DocumentOutcome::Skipped(reason) => *status.skipped.entry(reason.as_str()).or_default() += 1,
                DocumentOutcome::Fault { stage, error } => status.faults.push(FaultStatus {
                    path: WirePath::from(&document.path),
                    stage: stage.as_str(),
                    error,
                    since: Some(selected.commit.to_string()),
                }),
            }
        }
        status.faults.extend(owed(service, &alive.entries, selected.commit)?);
    }
    status.unsure.first.sort_by(|left, right| left.path.path.cmp(&right.path.path));
    status.unsure.first.truncate(EXAMPLES);
    Ok(status)
}

/// Returns what was guessed of a document's encoding, where that may be wrong.
fn unsure(service: &Service, rules: &Rules, document: &Document) -> Option<UnsureFile> {
    let rule = rules.rule(rules.for_path(&document.path));
    match service.searcher.reader().memo().cleaned(rules.document_id(document))? {
        Cleaned::Converted { from: Conversion { encoding, by: Evidence::Unsure }, .. } => {
            Some(UnsureFile { path: WirePath::from(&document.path), encoding, rule: rule.name().to_owned() })
        }
        _ => None,
    }
}

/// Returns the documents whose chunks are owed vectors, each with the reason.
fn owed(service: &Service, alive: &RoaringBitmap, commit: CommitId) -> Result<Vec<FaultStatus>, ApiError> {
    let reader = service.searcher.reader();
    let mut documents: BTreeMap<_, (u64, String)> = BTreeMap::new();
    for (ordinal, reason) in reader.owed_entries(alive)? {
        documents.entry(reader.catalogue().entry(ordinal)?.entry.path).or_insert((0, reason)).0 += 1;
    }
    let fault = |(path, (chunks, reason)): (_, (u64, String))| FaultStatus {
        path: WirePath::from(&path),
        stage: StageName::Embed.as_str(),
        error: format!(
            "{chunks} {} found by words only: {reason}",
            if chunks == 1 { "chunk is" } else { "chunks are" }
        ),
        since: Some(commit.to_string()),
    };
    Ok(documents.into_iter().map(fault).collect())
}

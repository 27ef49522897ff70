//! The output of `dump` and `status`.
//!
//! In: entries, sources, views and faults. Out: one line per entry, one object per store.

use super::{WirePath, WorkCounts};
use crate::search::show_time;
use crate::store::{LastCollection, LeftOutState, SourceState, TroubleState, UnreadableState, WatchState};
use serde::Serialize;
use std::collections::BTreeMap;

/// A line of `dump`.
#[derive(Debug, Serialize)]
pub struct DumpLine {
    /// The source's name.
    pub source: String,
    /// Its path.
    #[serde(flatten)]
    pub path: WirePath,
    /// The kind of text.
    pub kind: &'static str,
    /// The qualified name.
    pub symbol: Option<String>,
    /// Its lines.
    pub lines: Option<[u32; 2]>,
    /// The hash of the text.
    pub text_hash: String,
    /// The hash of the vector's bits, nothing for an entry without a vector.
    pub vector_hash: Option<String>,
    /// The commit that inserted it.
    pub introduced_in: Option<String>,
}

/// The answer of `status`.
#[derive(Debug, Serialize)]
pub struct StatusAnswer {
    /// Every source.
    pub sources: Vec<SourceStatus>,
    /// Stored entries, alive or not.
    pub entries: u64,
    /// Bytes on disk by part.
    pub bytes: BTreeMap<&'static str, u64>,
    /// All work since the store was created.
    pub work: WorkCounts,
    /// The last complete collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_collection: Option<CollectedStatus>,
    /// The process that writes to the store.
    pub tracker: RunningStatus,
}

/// Whether a tracker runs.
#[derive(Debug, Serialize)]
pub struct RunningStatus {
    /// Whether a process holds the writer's lock.
    pub running: bool,
    /// Its number.
    pub process: Option<u32>,
    /// Its start, as last reported.
    pub since: Option<String>,
    /// The time of a tracker's last report.
    pub reported: Option<String>,
}

/// A collection in `status`.
#[derive(Debug, Serialize)]
pub struct CollectedStatus {
    /// When it ended.
    pub time: String,
    /// Snapshots that it dropped.
    pub dropped: u64,
    /// Entries that it removed.
    pub entries: u64,
    /// Bytes that it freed, for the system or for reuse.
    pub bytes: u64,
}

impl From<LastCollection> for CollectedStatus {
    fn from(last: LastCollection) -> Self {
        let LastCollection { time, dropped, entries, bytes } = last;
        Self { time: show_time(time), dropped, entries, bytes }
    }
}

/// One source in `status`.
#[derive(Debug, Serialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// `git` or `directory`.
    pub kind: &'static str,
    /// Its views.
    pub views: Vec<ViewStatus>,
    /// Documents of the newest version.
    pub documents: u64,
    /// Files that are no documents, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Documents that were cut without their syntax though their rule asks for it, by reason.
    pub without_syntax: BTreeMap<&'static str, u64>,
    /// Documents whose encoding was guessed from few characters.
    pub unsure: UnsureStatus,
    /// The faults of documents.
    pub faults: Vec<FaultStatus>,
    /// The state of the running tracker, or of the last one.
    #[serde(flatten)]
    pub tracker: Option<TrackerStatus>,
}

/// Documents whose guessed encoding may be wrong.
#[derive(Debug, Default, Serialize)]
pub struct UnsureStatus {
    /// How many there are.
    pub count: u64,
    /// The first of them, by path.
    pub first: Vec<UnsureFile>,
}

/// A document whose guessed encoding may be wrong.
#[derive(Debug, Serialize)]
pub struct UnsureFile {
    /// Its path.
    #[serde(flatten)]
    pub path: WirePath,
    /// The guessed encoding.
    pub encoding: String,
    /// The document's rule.
    pub rule: String,
}

/// A tracker's state of a source.
#[derive(Debug, Serialize)]
pub struct TrackerStatus {
    /// What is watched, with its health.
    pub watches: Vec<WatchStatus>,
    /// Matched tags that are no commits.
    pub skipped_tags: u64,
    /// Matched refs that cannot be read.
    pub broken_refs: u64,
    /// The state of fetching, if it is enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch: Option<FetchStatus>,
    /// The trouble of the whole source; its indexed content stays.
    pub trouble: Option<TroubleStatus>,
    /// Heads and commits that are left out.
    pub left_out: Vec<LeftOutStatus>,
    /// Files and folders that cannot be read; their indexed content stays. At most a hundred of them.
    pub unreadable: Vec<UnreadableStatus>,
    /// How many there are.
    pub unreadable_paths: u64,
}

/// A trouble, its first time, and the time of the next try.
#[derive(Debug, Serialize)]
pub struct TroubleStatus {
    /// The attempt, its object, and the reason of the failure.
    pub what: String,
    /// The first time.
    pub since: String,
    /// The time of the next try; nothing if only a change of the source can help.
    pub next_try: Option<String>,
}

/// A head or a commit that is left out.
#[derive(Debug, Serialize)]
pub struct LeftOutStatus {
    /// The view, or the ref.
    pub view: String,
    /// The commit, if it is one.
    pub commit: Option<String>,
    /// Its trouble.
    #[serde(flatten)]
    pub trouble: TroubleStatus,
}

/// A file or folder that cannot be read.
#[derive(Debug, Serialize)]
pub struct UnreadableStatus {
    /// Its path.
    #[serde(flatten)]
    pub path: WirePath,
    /// The reason.
    pub why: String,
    /// The first time.
    pub since: String,
}

impl From<&TroubleState> for TroubleStatus {
    fn from(state: &TroubleState) -> Self {
        let TroubleState { what, since, next_try } = state;
        Self { what: what.clone(), since: show_time(*since), next_try: next_try.map(show_time) }
    }
}

impl From<&LeftOutState> for LeftOutStatus {
    fn from(state: &LeftOutState) -> Self {
        let LeftOutState { view, commit, trouble } = state;
        Self { view: view.clone(), commit: commit.clone(), trouble: trouble.into() }
    }
}

impl From<&UnreadableState> for UnreadableStatus {
    fn from(state: &UnreadableState) -> Self {
        let path = dataflows::data::DocumentPath::new(state.path.as_slice());
        Self { path: WirePath::from(&path), why: state.why.clone(), since: show_time(state.since) }
    }
}

/// The health of one watch.
#[derive(Debug, Serialize)]
pub struct WatchStatus {
    /// `refs`, `files` or `worktree`.
    pub what: String,
    /// When the last file event came.
    pub last_event: Option<String>,
    /// The time of the last full look.
    pub last_reconcile: Option<String>,
    /// The reason why events are missing.
    pub warning: Option<String>,
    /// How often the watcher died and was started again.
    pub restarts: u32,
}

/// The state of fetching.
#[derive(Debug, Serialize)]
pub struct FetchStatus {
    /// The time of the last successful fetch.
    pub last: Option<String>,
    /// The failures since.
    pub failures: u32,
    /// The error of the last one.
    pub error: Option<String>,
    /// The time of the next one.
    pub next: Option<String>,
}

impl From<&SourceState> for TrackerStatus {
    fn from(state: &SourceState) -> Self {
        let watch = |(what, watch): (&String, &WatchState)| WatchStatus {
            what: what.clone(),
            last_event: watch.last_event.map(show_time),
            last_reconcile: watch.last_reconcile.map(show_time),
            warning: watch.warning.clone(),
            restarts: watch.restarts,
        };
        Self {
            watches: state.watches.iter().map(watch).collect(),
            skipped_tags: state.skipped_tags,
            broken_refs: state.broken_refs,
            trouble: state.trouble.as_ref().map(TroubleStatus::from),
            left_out: state.left_out.iter().map(LeftOutStatus::from).collect(),
            unreadable: state.unreadable.iter().map(UnreadableStatus::from).collect(),
            unreadable_paths: state.unreadable_paths,
            fetch: state.fetch.as_ref().map(|fetch| FetchStatus {
                last: fetch.last.map(show_time),
                failures: fetch.failures,
                error: fetch.error.clone(),
                next: fetch.next.map(show_time),
            }),
        }
    }
}

/// One view in `status`.
#[derive(Debug, Serialize)]
pub struct ViewStatus {
    /// Its name.
    pub name: String,
    /// Its commit.
    pub commit: String,
    /// The epoch of its last move.
    pub epoch: u64,
    /// First-parent commits of the ref without a snapshot; nothing for files on disk, and if the repository cannot be read.
    pub behind: Option<u64>,
    /// For files on disk: the time of the last full look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    /// The reason why the repository cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Entries alive in it.
    pub live_entries: u64,
}

/// One fault in `status`.
#[derive(Debug, Serialize)]
pub struct FaultStatus {
    /// Its path.
    #[serde(flatten)]
    pub path: WirePath,
    /// The failed stage.
    pub stage: &'static str,
    /// The attempt and the reason of the failure.
    pub error: String,
    /// The commit since which it lasts.
    pub since: Option<String>,
}

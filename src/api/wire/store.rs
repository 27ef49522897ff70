//! What `dump` and `status` say of a store.
//!
//! In: entries, sources, views and faults. Out: one line an entry, one object a store.

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
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// What kind of thing.
    pub kind: &'static str,
    /// The qualified name.
    pub symbol: Option<String>,
    /// On which lines.
    pub lines: Option<[u32; 2]>,
    /// Names the text.
    pub text_hash: String,
    /// Names the vector's bits, nothing for an entry without a vector.
    pub vector_hash: Option<String>,
    /// The commit that brought it.
    pub introduced_in: Option<String>,
}

/// The answer of `status`.
#[derive(Debug, Serialize)]
pub struct StatusAnswer {
    /// Every source.
    pub sources: Vec<SourceStatus>,
    /// Entries that are stored, alive or not.
    pub entries: u64,
    /// Bytes on disk by part.
    pub bytes: BTreeMap<&'static str, u64>,
    /// All work since the store was made.
    pub work: WorkCounts,
    /// The last collection that was whole.
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
    /// When it started, as far as it has reported.
    pub since: Option<String>,
    /// When a tracker last reported.
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
    /// Bytes that it gave back, to the system or for what comes.
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
    /// Documents whose encoding was guessed from few characters.
    pub unsure: UnsureStatus,
    /// What went wrong with which document.
    pub faults: Vec<FaultStatus>,
    /// How the tracker that runs, or ran last, is doing with it.
    #[serde(flatten)]
    pub tracker: Option<TrackerStatus>,
}

/// Documents whose encoding may be another than was guessed.
#[derive(Debug, Default, Serialize)]
pub struct UnsureStatus {
    /// How many there are.
    pub count: u64,
    /// The first of them, by path.
    pub first: Vec<UnsureFile>,
}

/// A document whose encoding may be another than was guessed.
#[derive(Debug, Serialize)]
pub struct UnsureFile {
    /// Where it stands.
    #[serde(flatten)]
    pub path: WirePath,
    /// What was guessed.
    pub encoding: String,
    /// The rule that the document is under.
    pub rule: String,
}

/// How a tracker is doing with a source.
#[derive(Debug, Serialize)]
pub struct TrackerStatus {
    /// What is watched, and how well.
    pub watches: Vec<WatchStatus>,
    /// Matched tags that are no commits.
    pub skipped_tags: u64,
    /// Matched refs that cannot be read.
    pub broken_refs: u64,
    /// How fetching goes, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch: Option<FetchStatus>,
    /// What is wrong with the source as a whole; what was indexed of it stays.
    pub trouble: Option<TroubleStatus>,
    /// Heads and commits that are left out.
    pub left_out: Vec<LeftOutStatus>,
    /// Files and folders that cannot be read; what was indexed there stays. At most a hundred of them.
    pub unreadable: Vec<UnreadableStatus>,
    /// How many there are.
    pub unreadable_paths: u64,
}

/// What is wrong, since when, and when it is tried again.
#[derive(Debug, Serialize)]
pub struct TroubleStatus {
    /// What was tried, on what, and why it failed.
    pub what: String,
    /// Since when.
    pub since: String,
    /// When it is tried again; nothing where only a change of the source can help.
    pub next_try: Option<String>,
}

/// A head or a commit that is left out.
#[derive(Debug, Serialize)]
pub struct LeftOutStatus {
    /// The view, or the ref.
    pub view: String,
    /// The commit, if it is one.
    pub commit: Option<String>,
    /// What is wrong with it.
    #[serde(flatten)]
    pub trouble: TroubleStatus,
}

/// A file or folder that cannot be read.
#[derive(Debug, Serialize)]
pub struct UnreadableStatus {
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// Why.
    pub why: String,
    /// Since when.
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

/// How well one thing is watched.
#[derive(Debug, Serialize)]
pub struct WatchStatus {
    /// `refs`, `files` or `worktree`.
    pub what: String,
    /// When the last file event came.
    pub last_event: Option<String>,
    /// When all of it was last looked at.
    pub last_reconcile: Option<String>,
    /// Why events are not (all) to be had.
    pub warning: Option<String>,
    /// How often the watcher died and was started again.
    pub restarts: u32,
}

/// How fetching goes.
#[derive(Debug, Serialize)]
pub struct FetchStatus {
    /// When a fetch last succeeded.
    pub last: Option<String>,
    /// How many failed since.
    pub failures: u32,
    /// Why the last one failed.
    pub error: Option<String>,
    /// When the next one is due.
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
    /// The commit that it stands at.
    pub commit: String,
    /// When it moved there.
    pub epoch: u64,
    /// First-parent commits of the ref that have no snapshot yet; nothing for files on disk, and where the repository cannot be
    /// asked.
    pub behind: Option<u64>,
    /// Of files on disk: when all of them were last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    /// Why the repository cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Entries alive in it.
    pub live_entries: u64,
}

/// One fault in `status`.
#[derive(Debug, Serialize)]
pub struct FaultStatus {
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// Which stage failed.
    pub stage: &'static str,
    /// What was tried and why it failed.
    pub error: String,
    /// The commit since which it is so.
    pub since: Option<String>,
}

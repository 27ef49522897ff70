//! What `dump` and `status` say of a store.
//!
//! In: entries, sources, views and faults. Out: one line an entry, one object a store.

use super::{WirePath, WorkCounts};
use crate::search::show_time;
use crate::store::{LastCollection, SourceState, WatchState};
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
    /// What went wrong with which document.
    pub faults: Vec<FaultStatus>,
    /// How the tracker that runs, or ran last, is doing with it.
    #[serde(flatten)]
    pub tracker: Option<TrackerStatus>,
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
    /// First-parent commits of the ref that have no snapshot yet; nothing where the source cannot be asked.
    pub behind: Option<u64>,
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

//! A tracker's report: a small file that `status` reads.
//!
//! In: the state of watching and fetching. Out: the same, for other processes.
//!
//! **Invariant:** it is only a report: a lost or old one does no harm. It is replaced as a whole, so a reader never sees half of
//! one; its time shows whether the tracker still runs.
//!
//! It is a separate file beside the database, because it changes with every look at a source, and a database transaction would
//! wait for the disk each time.

use super::{Layout, StoreError, note};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tracker's report.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TrackerState {
    /// The process that wrote it.
    pub process: u32,
    /// Its time, in seconds since 1970.
    pub written: i64,
    /// When the tracker started, in seconds since 1970.
    #[serde(default)]
    pub started: i64,
    /// Sources by name.
    pub sources: BTreeMap<String, SourceState>,
}

/// The state of tracking one source.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceState {
    /// What is watched: `refs`, `files` or `worktree`.
    pub watches: BTreeMap<String, WatchState>,
    /// Matched tags that are no commits.
    pub skipped_tags: u64,
    /// Matched refs that cannot be read.
    pub broken_refs: u64,
    /// The state of fetching, if it is enabled.
    pub fetch: Option<FetchState>,
    /// `git` or `directory`.
    pub kind: String,
    /// The trouble of the whole source.
    pub trouble: Option<TroubleState>,
    /// Heads and commits that are left out.
    pub left_out: Vec<LeftOutState>,
    /// Files and folders that cannot be read: their indexed content stays. The first of them, if there are very many.
    pub unreadable: Vec<UnreadableState>,
    /// How many there are.
    pub unreadable_paths: u64,
}

/// A trouble. Times are in seconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TroubleState {
    /// The attempt, its object, and the reason of the failure.
    pub what: String,
    /// The first time.
    pub since: i64,
    /// The time of the next try; nothing if only a change of the source can help.
    pub next_try: Option<i64>,
}

/// A head or a commit that is left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOutState {
    /// The view, or the ref.
    pub view: String,
    /// The commit, if it is one.
    pub commit: Option<String>,
    /// Its trouble.
    #[serde(flatten)]
    pub trouble: TroubleState,
}

/// A file or folder that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadableState {
    /// Its path, in bytes.
    pub path: Vec<u8>,
    /// The reason.
    pub why: String,
    /// The first time, in seconds since 1970.
    pub since: i64,
}

/// The health of one watch. Times are in seconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchState {
    /// When the last file event came.
    pub last_event: Option<i64>,
    /// The time of the last full look.
    pub last_reconcile: Option<i64>,
    /// The reason why events are missing.
    pub warning: Option<String>,
    /// How often the watcher's thread died and was started again.
    pub restarts: u32,
    /// Stores of tidemill that were left out.
    pub stores: u64,
    /// Files that an editor left, which were left out too.
    pub editors: u64,
}

/// The state of fetching. Times are in seconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FetchState {
    /// The time of the last successful fetch.
    pub last: Option<i64>,
    /// The failures since.
    pub failures: u32,
    /// The error of the last one, if it failed.
    pub error: Option<String>,
    /// The time of the next one.
    pub next: Option<i64>,
}

impl TrackerState {
    /// Returns the last tracker's report, if there is one that can be read.
    #[must_use]
    pub fn read(layout: &Layout) -> Option<Self> {
        note::read(&layout.state())
    }

    /// Replaces the last report by this one.
    ///
    /// # Errors
    /// If the store's folder cannot be written.
    pub fn write(&self, layout: &Layout) -> Result<(), StoreError> {
        note::replace(&layout.state(), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_back_and_a_damaged_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        assert_eq!(TrackerState::read(&layout), None);
        let watch = WatchState { warning: Some("the limit is reached".to_owned()), ..WatchState::default() };
        let source = SourceState { watches: BTreeMap::from([("refs".to_owned(), watch)]), ..SourceState::default() };
        let state =
            TrackerState { sources: BTreeMap::from([("engine".to_owned(), source)]), ..TrackerState::default() };
        state.write(&layout).unwrap();
        assert_eq!(TrackerState::read(&layout), Some(state));
        std::fs::write(layout.state(), b"{").unwrap();
        assert_eq!(TrackerState::read(&layout), None);
    }
}

//! What a tracker says of itself: a small file that `status` reads.
//!
//! In: how watching and fetching go. Out: the same, to other processes.
//!
//! **Invariant:** it is a report and nothing else: losing it, or finding an old one, costs nobody anything. It is replaced
//! as a whole, so a reader never sees half of one; whether its tracker still runs is told by its time.
//!
//! It is a file of its own beside the database: it changes with every look at a source, and a transaction of the database
//! would wait for the disk each time.

use super::{Layout, StoreError, note};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tracker's report.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TrackerState {
    /// The process that wrote it.
    pub process: u32,
    /// When, in seconds since 1970.
    pub written: i64,
    /// When the tracker started, in seconds since 1970.
    #[serde(default)]
    pub started: i64,
    /// Sources by name.
    pub sources: BTreeMap<String, SourceState>,
}

/// How one source is being followed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceState {
    /// What is watched: `refs`, `files` or `worktree`.
    pub watches: BTreeMap<String, WatchState>,
    /// Matched tags that are no commits.
    pub skipped_tags: u64,
    /// Matched refs that cannot be read.
    pub broken_refs: u64,
    /// How fetching goes, where that is asked for.
    pub fetch: Option<FetchState>,
    /// `git` or `directory`.
    pub kind: String,
    /// What is wrong with the source as a whole.
    pub trouble: Option<TroubleState>,
    /// Heads and commits that are left out.
    pub left_out: Vec<LeftOutState>,
    /// Files and folders that cannot be read: what was indexed there stays. The first of them, where there are very many.
    pub unreadable: Vec<UnreadableState>,
    /// How many there are.
    pub unreadable_paths: u64,
}

/// What is wrong. Times are in seconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TroubleState {
    /// What was tried, on what, and why it failed.
    pub what: String,
    /// Since when.
    pub since: i64,
    /// When it is tried again; nothing where only a change of the source can help.
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
    /// What is wrong with it.
    #[serde(flatten)]
    pub trouble: TroubleState,
}

/// A file or folder that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadableState {
    /// Its path, in bytes.
    pub path: Vec<u8>,
    /// Why.
    pub why: String,
    /// Since when, in seconds since 1970.
    pub since: i64,
}

/// How well one thing is watched. Times are in seconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchState {
    /// When the last file event came.
    pub last_event: Option<i64>,
    /// When all of it was last looked at.
    pub last_reconcile: Option<i64>,
    /// Why events are not (all) to be had.
    pub warning: Option<String>,
    /// How often the watcher's thread died and was started again.
    pub restarts: u32,
    /// Stores of tidemill that were left out.
    pub stores: u64,
    /// Files that an editor left, which were left out too.
    pub editors: u64,
}

/// How fetching goes. Times are in seconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FetchState {
    /// When a fetch last succeeded.
    pub last: Option<i64>,
    /// How many failed since.
    pub failures: u32,
    /// Why the last one failed, if it did.
    pub error: Option<String>,
    /// When the next one is due.
    pub next: Option<i64>,
}

impl TrackerState {
    /// Returns the last tracker's report, if there is one that can be read.
    #[must_use]
    pub fn read(layout: &Layout) -> Option<Self> {
        note::read(&layout.state())
    }

    /// Puts this report in place of the last one.
    ///
    /// # Errors
    /// Where the store's folder cannot be written.
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

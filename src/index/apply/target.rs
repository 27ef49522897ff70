//! The purpose of an epoch of the graph, and its result.
//!
//! In: from the engine, the commit that was fed for a view. Out: the line that `track` prints.

use crate::store::Receipt;
use dataflows::data::View;
use dataflows::run::EpochDone;
use snapshots::{CommitId, Epoch, SourceId, Version, VersionId, ViewId};
use std::time::{Duration, Instant};

/// The purpose of an epoch of the graph.
#[derive(Clone, Debug)]
pub struct Target {
    /// The head of the graph that was fed.
    pub graph_view: View,
    /// What to publish.
    pub purpose: Purpose,
    /// The start of the work.
    pub begun: Instant,
    /// The time spent on finding the changes.
    pub diff: Duration,
    /// The time when the change was seen, in milliseconds since 1970: the log records it for the views that move.
    pub seen: i64,
}

/// Why an epoch was fed to the graph.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// A commit gets its snapshot.
    Commit(CommitTarget),
    /// A view moves to a commit with a snapshot; the graph is not involved.
    Point {
        /// The view.
        view: ViewId,
        /// The source it belongs to.
        source: SourceId,
        /// Its new commit.
        commit: CommitId,
    },
    /// The graph gets the content of a version after a start; nothing is published unless it differs.
    Restore {
        /// The version of the view.
        version: VersionId,
        /// The same as a commit, if it must be made again.
        again: CommitTarget,
    },
    /// A part of a step whose purpose its last part has: its changes are written, and nothing is published.
    Part,
    /// Files of a head are set aside for a moment. The next [`Purpose::Restore`] inserts them and looks at them again; nothing is
    /// published.
    Aside,
    /// A head leaves the graph.
    Leave {
        /// The removed view, if the head is a view and not a commit that passed through.
        view: Option<ViewId>,
    },
}

/// A commit that gets a snapshot.
#[derive(Clone, Debug)]
pub struct CommitTarget {
    /// The source it belongs to.
    pub source: SourceId,
    /// The commit, or a directory's tree hash.
    pub commit: CommitId,
    /// Its first parent.
    pub parent: Option<CommitId>,
    /// Its committer's time, in seconds since 1970.
    pub time: i64,
    /// The view that points at it from now on, if any.
    pub view: Option<ViewId>,
}

/// A published version, or a view that moved to one: a line of `track`.
#[derive(Clone, Debug)]
pub struct Published {
    /// The epoch.
    pub epoch: Epoch,
    /// The source's name.
    pub source: String,
    /// The name of the view that moved, if one did.
    pub view: Option<String>,
    /// The version.
    pub version: Version,
    /// Its cost.
    pub receipt: Receipt,
    /// The part of the time from the first look to the end that it waited for earlier epochs and those of its batch.
    pub waited: Duration,
    /// Whether the commit already had a version that was made under other rules, or was damaged.
    pub repaired: bool,
}

/// Returns the time of an epoch in the graph: from when it was fed, and the previous epoch had left, to its end.
pub(super) fn in_hand(done: &EpochDone, before: Option<Instant>) -> Duration {
    let begun = before.map_or(done.fed, |before| before.max(done.fed));
    done.finished.saturating_duration_since(begun)
}

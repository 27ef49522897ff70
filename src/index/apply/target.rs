//! What an epoch of the graph stands for, and what came of it.
//!
//! In: from the engine, which commit was fed for which view. Out: the line that `track` prints.

use crate::store::Receipt;
use dataflows::data::View;
use dataflows::run::EpochDone;
use snapshots::{CommitId, Epoch, SourceId, Version, VersionId, ViewId};
use std::time::{Duration, Instant};

/// The commit that an epoch of the graph stands for.
#[derive(Clone, Debug)]
pub struct Target {
    /// The head of the graph that was fed.
    pub graph_view: View,
    /// What to publish.
    pub purpose: Purpose,
    /// When the work began.
    pub begun: Instant,
    /// How long finding out what changed took.
    pub diff: Duration,
    /// When what is fed was seen, in milliseconds since 1970: the log says it of the views that move.
    pub seen: i64,
}

/// Why an epoch was fed to the graph.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// A commit gets its snapshot.
    Commit(CommitTarget),
    /// A view moves to a commit whose snapshot is there already; the graph has nothing to do with it.
    Point {
        /// The view.
        view: ViewId,
        /// The source it belongs to.
        source: SourceId,
        /// The commit that it stands at from now on.
        commit: CommitId,
    },
    /// The graph is told what a version holds, after a start; nothing is published unless it differs.
    Restore {
        /// The version that the view stands at.
        version: VersionId,
        /// The same as a commit, should it have to be made anew.
        again: CommitTarget,
    },
    /// A part of the step that the last part, which follows, says the purpose of: what it brings is written, and nothing
    /// is published.
    Part,
    /// Files of a head are taken out for a moment, to be brought back and looked at again by the [`Purpose::Restore`] that
    /// follows; nothing is published.
    Aside,
    /// A head leaves the graph.
    Leave {
        /// The view that is gone, if it is a view and not a commit that passed through.
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
    /// The view that stands at it from now on, if one does.
    pub view: Option<ViewId>,
}

/// A version that was published, or a view that moved to one: a line of `track`.
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
    /// What it took.
    pub receipt: Receipt,
    /// How long, of the time from the first look to the end, it waited for epochs before it and with it.
    pub waited: Duration,
    /// Whether the commit had a version already that was made under other rules, or did not hold.
    pub repaired: bool,
}

/// Returns how long the graph had an epoch in hand: from when it was fed, and the epoch before it had come out, to its end.
pub(super) fn in_hand(done: &EpochDone, before: Option<Instant>) -> Duration {
    let begun = before.map_or(done.fed, |before| before.max(done.fed));
    done.finished.saturating_duration_since(begun)
}

//! What the tracker will do next: a plan made of small steps, none of which reads a file yet.
//!
//! In: where a source's refs are and what was published. Out: steps in the order in which they must be fed.
//!
//! **Invariant:** a plan names commits only; where a head stands, and what changed since, is found when the step is taken. So a plan
//! for ten thousand commits is small, stopping between two steps loses nothing, and a step that cannot be taken is left out: the
//! one behind it starts from the last that was.

use crate::watch::git::Commit;
use dataflows::data::View;
use snapshots::{CommitId, ViewId};

/// One step of a git source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A head of the graph moves to a commit, which gets its snapshot.
    Move {
        /// The head of the graph.
        graph_view: View,
        /// The commit that it moves to.
        to: Commit,
        /// The view that stands there afterwards, if one does.
        view: Option<ViewId>,
    },
    /// A view moves to a commit that has its snapshot, or will have it by then.
    Point {
        /// The view.
        view: ViewId,
        /// The commit.
        commit: CommitId,
    },
    /// A head leaves the graph.
    Leave {
        /// The head of the graph.
        graph_view: View,
        /// The view that is gone, if it was one.
        view: Option<ViewId>,
    },
}

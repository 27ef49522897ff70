//! A plan of the tracker: small steps, which read no file yet.
//!
//! In: a source's refs and its published versions. Out: steps in the order in which they must be fed.
//!
//! **Invariant:** a plan names commits only; a head's version and its changes are determined when the step is taken. So a plan
//! for ten thousand commits is small, a stop between two steps loses nothing, and an impossible step is left out: the next one
//! starts from the last that was taken.

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
        /// The view that points at it afterwards, if any.
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
        /// The removed view, if it was one.
        view: Option<ViewId>,
    },
}

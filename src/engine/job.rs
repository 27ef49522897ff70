//! The waiting work of one source, in pieces that are fed one at a time.
//!
//! In: acts: versions to restore, steps of a plan, states of a directory. Out: slices of changes.
//!
//! ```text
//!  Job:  act ─► act ─► act                    of one source, in order
//!         └─► Cut:  slice ─► slice ─► last    of one step; between two slices other sources get their turn
//! ```
//!
//! **Invariant:** slices of one step are fed in order and none of them twice; manifests of a step go in one slice
//! ([`slices`](super::slices)). A step counts as taken once its last slice was fed.

use super::beside::Awaited;
use super::collector::Planned;
use super::directory::Found;
use super::publisher::Head;
use super::slices::speaks_below;
use super::step::{Diff, Step};
use crate::index::apply::{Purpose, Target};
use crate::watch::git::GitError;
use dataflows::data::FileChange;
use snapshots::{VersionId, ViewId};
use std::collections::VecDeque;
use std::time::Instant;

/// One piece of work of a source.
pub(super) enum Act {
    /// The graph gets the content of a version again.
    Restore(ViewId, VersionId),
    /// A step of a repository's plan.
    Step(Step),
    /// A full look at a directory.
    Look,
    /// The result of a look at a directory.
    Found(Box<Found>),
}

/// The work of a source.
pub(super) struct Job {
    pub(super) acts: VecDeque<Act>,
    /// The step whose changes are being looked for.
    pub(super) looking: Option<(Step, Awaited<Result<Diff, GitError>>)>,
    /// The step that is being fed.
    pub(super) cut: Option<Cut>,
    /// The start of the next act.
    pub(super) begun: Instant,
    /// Held until all steps are fed: a snapshot that the plan relies on is not dropped meanwhile.
    pub(super) _planned: Option<Planned>,
}

impl Job {
    pub(super) fn new(acts: impl IntoIterator<Item = Act>, begun: Instant, planned: Option<Planned>) -> Self {
        Self { acts: acts.into_iter().collect(), looking: None, cut: None, begun, _planned: planned }
    }
}

/// A step that is fed in slices.
pub(super) struct Cut {
    target: Target,
    parts: VecDeque<Vec<FileChange>>,
    /// Whether the parts may be cut further: manifests have separate parts.
    can_be_cut: bool,
    /// The plan's step, which is taken with the last slice.
    pub(super) step: Option<Step>,
}

impl Cut {
    /// Cuts the changes of a step: parts from [`slices`](super::slices::slices), and the last.
    pub(super) fn new(target: Target, parts: Vec<Vec<FileChange>>, last: Vec<FileChange>, step: Option<Step>) -> Self {
        let can_be_cut = !parts.is_empty();
        Self { target, parts: parts.into_iter().chain([last]).collect(), can_be_cut, step }
    }

    /// Returns the head of the graph that the step moves, and whether it only restores a version in the graph.
    pub(super) fn head(&self) -> Head {
        (self.target.graph_view, matches!(self.target.purpose, Purpose::Restore { .. }))
    }

    /// Returns the next slice of at most so many changes, with its purpose; `true` for the last one.
    pub(super) fn next(&mut self, most: usize) -> (Target, Vec<FileChange>, bool) {
        let mut slice = self.parts.pop_front().unwrap_or_default();
        let is_large = slice.len() > most.max(1);
        if self.can_be_cut && is_large && !slice.iter().all(|change| speaks_below(&change.path)) {
            self.parts.push_front(slice.split_off(most.max(1)));
        }
        let is_last = self.parts.is_empty();
        let purpose = if is_last { self.target.purpose.clone() } else { Purpose::Part };
        (Target { purpose, ..self.target.clone() }, slice, is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataflows::data::View;
    use std::time::Duration;

    fn changes(paths: &[&str]) -> Vec<FileChange> {
        paths.iter().map(|&path| FileChange { path: path.into(), before: None, after: None }).collect()
    }

    #[test]
    fn slices_come_in_order_manifests_in_one_and_only_the_last_has_the_purpose() {
        let (begun, diff) = (Instant::now(), Duration::ZERO);
        let target = Target { graph_view: View(3), purpose: Purpose::Leave { view: None }, begun, diff, seen: 0 };
        let manifests = changes(&["Cargo.toml", "a/Cargo.toml", "b/Cargo.toml"]);
        let (_, whole, is_last) = Cut::new(target.clone(), vec![], changes(&["Cargo.toml", "1", "2"]), None).next(1);
        assert_eq!((whole.len(), is_last), (3, true), "a small step is one slice, manifests and all");
        let mut cut = Cut::new(target, vec![manifests, changes(&["1", "2", "3"])], changes(&["4", "5"]), None);
        let mut fed = Vec::new();
        loop {
            let (target, slice, is_last) = cut.next(2);
            let paths: Vec<_> = slice.iter().map(|change| change.path.display().into_owned()).collect();
            fed.push(paths.join(" "));
            assert_eq!(matches!(target.purpose, Purpose::Part), !is_last);
            if is_last {
                break;
            }
        }
        assert_eq!(fed, ["Cargo.toml a/Cargo.toml b/Cargo.toml", "1 2", "3", "4 5"]);
    }
}

//! What a recorder is told of every step: the words of a trace for what the tracker is about to feed.
//!
//! In: a head of the graph, a purpose and changes. Out: steps by the names of their views.
//!
//! **Invariant:** what a start tells the graph again is recorded as the arrival of the whole version, with its digest; so a
//! trace begins with all files of every head, whatever the store knew.

use super::EngineError;
use super::tracker::Tracker;
use crate::index::apply::{CommitTarget, Purpose};
use crate::trace::TraceStep;
use dataflows::data::{FileChange, View};
use dataflows::memo::Contents;
use snapshots::{Archive, Digest, ViewId};

impl Tracker {
    /// Tells the recorder, if there is one, what is about to be fed.
    pub(super) fn record(
        &self,
        graph_view: View,
        purpose: &Purpose,
        changes: &[FileChange],
    ) -> Result<(), EngineError> {
        let Some(recorder) = &self.recorder else { return Ok(()) };
        let name = |view: ViewId| self.registry.view_name(view).unwrap_or_default();
        let commit = |target: &CommitTarget, digest: Option<Digest>| TraceStep::Commit {
            view: target.view.map(name),
            passes: target.view.is_none_or(|view| View(view.get()) != graph_view),
            commit: target.commit,
            parent: target.parent,
            time: target.time,
            digest,
        };
        let step = match purpose {
            Purpose::Commit(target) => commit(target, None),
            // A step is recorded whole, before it is cut.
            Purpose::Part => return Ok(()),
            // Brought back after it was taken aside: the trace holds it all the while.
            Purpose::Restore { .. } if recorder.was_aside() => return Ok(()),
            Purpose::Restore { version, again } => {
                let archive = Archive::open_reader(&self.layout.versions())?;
                commit(again, archive.version(*version).map(|version| version.digest))
            }
            Purpose::Point { view, commit, .. } => TraceStep::Point { view: name(*view), commit: *commit },
            Purpose::Leave { view } => TraceStep::Leave { view: view.map(name) },
            Purpose::Aside => {
                recorder.doubt();
                return Ok(());
            }
        };
        let read = |content, most| self.contents.read(content, most).map_err(|error| error.to_string());
        recorder.announce(step, changes, &read);
        Ok(())
    }
}

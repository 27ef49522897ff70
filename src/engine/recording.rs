//! Passes every step to a recorder, in the terms of a trace.
//!
//! In: a head of the graph, a purpose and changes. Out: steps by the names of their views.
//!
//! **Invariant:** a version that is restored at a start is recorded as the insertion of the whole version, with its digest. So a
//! trace begins with all files of every head, whatever the store had.

use super::EngineError;
use super::tracker::Tracker;
use crate::index::apply::{CommitTarget, Purpose};
use crate::trace::TraceStep;
use dataflows::data::{FileChange, View};
use dataflows::memo::Contents;
use snapshots::{Archive, Digest, ViewId};

impl Tracker {
    /// Passes a step that is about to be fed to the recorder, if there is one.
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
            // Restored after it was set aside: the trace has it all the time.
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

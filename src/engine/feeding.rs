//! Feeds the steps of sources to the graph as epochs.
//!
//! In: the next step of a repository's plan, a look at a directory, or a trace. Out: changes, fed to the graph as one epoch or in
//! slices, each announced to the publisher first.
//!
//! ```text
//!  slot ─ job: act, act, act ─┐
//!  slot ─ job: act ───────────┼─► one slice of each in turn ──► make room ──► announce ──► graph
//!  slot ─ job: act, act ──────┘
//! ```
//!
//! **Invariant:** one thread feeds. The steps of one source are fed in order; no other step of a source comes between the slices
//! of a step. The changes of a step are computed when it is taken. If several sources are tracked, about one second of work is in
//! progress, so that a commit of one source does not wait longer for another's load. Cards are dropped only if no work in
//! progress may need them.

use super::EngineError;
use super::job::Cut;
use super::publisher::Head;
use super::slices::slices;
use super::slot::Source;
use super::step::Step;
use super::tracker::Tracker;
use crate::index::apply::{Purpose, Target};
use dataflows::data::{Epoch, FileChange, View};
use std::time::{Duration, Instant};

/// Interval for checking a stop request while an epoch is not due yet.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// The result of a turn.
pub(super) enum Progress {
    /// No source has work.
    Nothing,
    /// No source has anything to do but to wait for an answer of its file system.
    Awaited,
    /// One piece of work was done.
    Taken,
    /// A source failed and is tried again later.
    Failed(EngineError),
}

impl Tracker {
    /// Gives the next source with work its turn: it plans, takes an act, or feeds one slice.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(super) fn advance(&mut self) -> Result<Progress, EngineError> {
        let is_awaited = self.note_hanging();
        let number = self.slots.len();
        let ready = (0..number).map(|offset| (self.turn + offset) % number).find(|index| self.slots[*index].has_work());
        let Some(index) = ready else {
            return Ok(if is_awaited { Progress::Awaited } else { Progress::Nothing });
        };
        let worked = match self.slots[index].job.as_ref().map(|job| job.cut.is_some()) {
            None => self.begin(index),
            Some(true) => self.feed_next(index),
            Some(false) => self.act(index),
        };
        // A recorder writes whole steps, so none may come in between.
        let is_cut = self.slots[index].job.as_ref().is_some_and(|job| job.cut.is_some());
        self.turn = if self.recorder.is_some() && is_cut { index } else { index + 1 };
        let is_in_fault = match worked {
            Ok(()) => None,
            Err(error) if error.is_of_source() => Some(error),
            Err(error) => return Err(error),
        };
        if let Source::Git(git, _) = &mut self.slots[index].source {
            for line in git.omitted.news() {
                if self.follows {
                    tracing::warn!("{}: {line}", git.name);
                }
            }
        }
        Ok(match is_in_fault {
            Some(error) => {
                // The rest of its job depends on what failed; no step of it is partly fed.
                self.slots[index].job = None;
                self.slots[index].fails_with(&error, self.follows);
                Progress::Failed(error)
            }
            None => Progress::Taken,
        })
    }

    /// Starts to feed a step; `times` are when its work began, and when its changes were known.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) fn cut(
        &mut self,
        graph_view: View,
        purpose: Purpose,
        changes: Vec<FileChange>,
        times: [Instant; 2],
        step: Option<Step>,
    ) -> Result<Cut, EngineError> {
        self.record(graph_view, &purpose, &changes)?;
        let (seen, [begun, known]) = (jiff::Timestamp::now().as_millisecond(), times);
        let diff = known.saturating_duration_since(begun);
        let target = Target { graph_view, purpose, begun, diff, seen };
        let standing = self.standing(graph_view, &changes)?;
        let came = changes.iter().filter(|change| change.before.is_none() && change.after.is_some()).count();
        let went = changes.iter().filter(|change| change.before.is_some() && change.after.is_none()).count();
        let files = self.files.entry(graph_view).or_default();
        *files = (*files + came).saturating_sub(went);
        let number = changes.len() + standing.len();
        let is_small = number <= self.most((graph_view, matches!(target.purpose, Purpose::Restore { .. })));
        // A step that is cut has its manifests separate; the sizes of its slices are decided when they are fed.
        let most = if is_small { number.max(1) } else { self.max_slice.min(number.saturating_sub(1)).max(1) };
        let (parts, last) = slices(changes, standing, most);
        Ok(Cut::new(target, parts, last, step))
    }

    /// Returns the current number of changes per slice of a head.
    fn most(&self, head: Head) -> usize {
        if self.is_shared() { self.publisher.fair_slice(head, self.max_slice) } else { self.max_slice }
    }

    /// Feeds the next slice of a source's current step.
    fn feed_next(&mut self, index: usize) -> Result<(), EngineError> {
        let is_shared = self.is_shared();
        let Some(head) = self.slots[index].job.as_ref().and_then(|job| job.cut.as_ref()).map(Cut::head) else {
            return Ok(());
        };
        let most = self.most(head);
        let Some(cut) = self.slots[index].job.as_mut().and_then(|job| job.cut.as_mut()) else { return Ok(()) };
        let (target, changes, is_last) = cut.next(most);
        let step = if is_last { cut.step.take() } else { None };
        self.feed_slice(target, changes, head, is_shared)?;
        let slot = &mut self.slots[index];
        if is_last && let Some(job) = &mut slot.job {
            job.cut = None;
        }
        if let (Some(step), Source::Git(git, _)) = (step, &mut slot.source) {
            git.took(&step);
        }
        Ok(())
    }

    /// Returns whether several sources share the graph, so that none may fill it for long.
    pub(super) fn is_shared(&self) -> bool {
        self.slots.iter().any(|slot| slot.name != self.slots[0].name)
    }

    /// Feeds the rest of a trace, each epoch when it is due.
    pub(super) fn take_trace(&mut self, index: usize) -> Result<(), EngineError> {
        loop {
            let begun = Instant::now();
            let Source::Trace(trace) = &mut self.slots[index].source else { return Ok(()) };
            let Some((record, due)) = trace.next()? else { return Ok(()) };
            let (graph_view, purpose) = trace.purpose(&record, &mut self.registry)?;
            let diff = begun.elapsed();
            while let Some(left) = due.and_then(|due| due.checked_duration_since(Instant::now())) {
                if self.stop.is_asked() {
                    break;
                }
                std::thread::sleep(left.min(STOP_INTERVAL));
            }
            if self.stop.is_asked() {
                return Ok(());
            }
            self.feed(graph_view, purpose, record.changes, due.unwrap_or(begun), diff)?;
            let Source::Trace(trace) = &mut self.slots[index].source else { return Ok(()) };
            if trace.took() {
                // The first load is published before the next epoch, so that both can be measured separately.
                self.publisher.settle()?;
            }
        }
    }

    /// Feeds a step: as one epoch of the graph, or in slices of which the last has the step's purpose.
    pub(super) fn feed(
        &mut self,
        graph_view: View,
        purpose: Purpose,
        changes: Vec<FileChange>,
        begun: Instant,
        diff: Duration,
    ) -> Result<(), EngineError> {
        let mut cut = self.cut(graph_view, purpose, changes, [begun, begun + diff], None)?;
        loop {
            let head = cut.head();
            let (target, slice, is_last) = cut.next(self.max_slice);
            self.feed_slice(target, slice, head, false)?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Feeds one epoch of the graph, once there is room for it.
    fn feed_slice(
        &mut self,
        target: Target,
        changes: Vec<FileChange>,
        head: Head,
        is_shared: bool,
    ) -> Result<(), EngineError> {
        self.publisher.make_room(changes.len(), is_shared.then_some(head))?;
        let graph_view = target.graph_view;
        self.publisher.announce(target, changes.len(), head)?;
        self.mill.feed(Epoch(self.next_epoch), graph_view, changes)?;
        self.next_epoch += 1;
        Ok(())
    }
}

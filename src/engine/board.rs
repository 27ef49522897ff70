//! The board on which tasks note the state of their sources, and the report that is made of it.
//!
//! In: notes, from any thread. Out: the store's [`TrackerState`], written at most once a second.
//!
//! **Invariant:** a note never waits for the disk; a report that cannot be written is reported and never stops tracking.

use super::slot::{Slot, Source};
use crate::store::{Layout, SourceState, TrackerState, UnreadableState};
use crate::watch::{EventState, LeftOut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Shortest time between two reports.
const PACE: Duration = Duration::from_secs(1);

/// Most paths and commits of one source in the report.
const MAX_LISTED: usize = 100;

/// The notes so far; clones share it.
#[derive(Clone)]
pub(super) struct Board(Arc<Mutex<Notes>>);

struct Notes {
    state: TrackerState,
    is_new: bool,
    written: Option<Instant>,
}

impl Board {
    pub(super) fn new() -> Self {
        let state = TrackerState { process: std::process::id(), started: now(), ..TrackerState::default() };
        Self(Arc::new(Mutex::new(Notes { state, is_new: false, written: None })))
    }

    /// Changes the notes on a source.
    pub(super) fn note(&self, source: &str, change: impl FnOnce(&mut SourceState)) {
        let mut notes = self.lock();
        change(notes.state.sources.entry(source.to_owned()).or_default());
        notes.is_new = true;
    }

    /// Notes how events arrive, and a full look if there was one.
    pub(super) fn note_watch(&self, source: &str, what: &str, events: &EventState, reconciled: bool) {
        self.note(source, |state| {
            let watch = state.watches.entry(what.to_owned()).or_default();
            watch.last_event = events.last_event.map(seconds);
            watch.warning.clone_from(&events.warning);
            watch.restarts = events.restarts;
            if reconciled {
                watch.last_reconcile = Some(now());
            }
        });
    }

    /// Notes the current problems of the sources, and removes old ones.
    pub(super) fn note_troubles(&self, slots: &[Slot]) {
        let mut notes = self.lock();
        let sources = &mut notes.state.sources;
        let before = sources.clone();
        for slot in slots {
            let state = sources.entry(slot.name.clone()).or_default();
            (state.trouble, state.unreadable_paths) = (None, 0);
            state.unreadable.clear();
            state.left_out.clear();
        }
        for slot in slots {
            let state = sources.entry(slot.name.clone()).or_default();
            state.kind = if state.kind.is_empty() { slot.kind().to_owned() } else { std::mem::take(&mut state.kind) };
            let trouble = slot.trouble.as_ref().or(slot.held.as_ref()).map(super::trouble::Trouble::state);
            state.trouble = state.trouble.take().or(trouble);
            match &slot.source {
                Source::Git(git, _) => {
                    state.skipped_tags = git.skipped_tags as u64;
                    state.broken_refs = git.omitted.refs() as u64;
                    state.left_out = git.omitted.all().take(MAX_LISTED).map(super::trouble::LeftOut::state).collect();
                }
                Source::Directory(directory, _) => {
                    let unreadable = directory.unreadable.iter().map(|(path, (why, since))| UnreadableState {
                        path: path.as_bytes().to_vec(),
                        why: why.clone(),
                        since: *since,
                    });
                    state.unreadable_paths += directory.unreadable.len() as u64;
                    state.unreadable.extend(unreadable.take(MAX_LISTED));
                }
                Source::Trace(_) | Source::Missing(_) => {}
            }
        }
        notes.is_new |= notes.state.sources != before;
    }

    /// Notes what was left out of what is watched.
    pub(super) fn note_left_out(&self, source: &str, what: &str, LeftOut { stores, editors }: LeftOut) {
        self.note(source, |state| {
            let watch = state.watches.entry(what.to_owned()).or_default();
            (watch.stores, watch.editors) = (stores as u64, editors as u64);
        });
    }

    /// Tells whether there is something to report and the last report is at least a second old.
    pub(super) fn is_due(&self) -> bool {
        let notes = self.lock();
        notes.is_new && notes.written.is_none_or(|written| written.elapsed() >= PACE)
    }

    /// Writes the report.
    pub(super) fn write(&self, layout: &Layout) {
        let state = {
            let mut notes = self.lock();
            notes.is_new = false;
            notes.written = Some(Instant::now());
            notes.state.written = now();
            notes.state.clone()
        };
        if let Err(error) = state.write(layout) {
            tracing::warn!("{error}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the seconds since 1970.
pub(super) fn now() -> i64 {
    seconds(SystemTime::now())
}

fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

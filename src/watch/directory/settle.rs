//! Decides when a burst of events has settled into one batch.
//!
//! In: touched paths with their times. Out: the time to look, and the paths to look at.
//!
//! **Invariant:** a touched path is never lost before it is taken. Memory is bounded, because too many paths become "everything".
//! A batch is due [`QUIET`] after the last touch or [`LONGEST`] after the first, whichever comes first.
//!
//! | state     | touch                        | take              |
//! |-----------|------------------------------|-------------------|
//! | quiet     | gathering, first = last      | quiet, nothing    |
//! | gathering | gathering, last moves on     | quiet, the paths  |

use crate::watch::Events;
use dataflows::data::DocumentPath;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time without events after which a burst is over.
pub(in crate::watch) const QUIET: Duration = Duration::from_millis(100);
/// Longest time that a change waits for a burst to end.
pub(in crate::watch) const LONGEST: Duration = Duration::from_secs(2);
/// Most paths that are kept one by one. For more, a full scan is cheaper.
const MAX_PATHS: usize = 100_000;

/// The paths to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::watch) enum Touched {
    /// These paths, and what is below them.
    Paths(BTreeSet<DocumentPath>),
    /// The whole directory.
    Everything,
}

impl Touched {
    /// Returns the paths, unless everything was touched.
    pub(in crate::watch) fn paths(self) -> Option<BTreeSet<DocumentPath>> {
        match self {
            Self::Paths(paths) => Some(paths),
            Self::Everything => None,
        }
    }
}

/// Events that wait for their batch.
#[derive(Default, Debug)]
enum Settling {
    /// Nothing has happened.
    #[default]
    Quiet,
    /// A burst has begun.
    Gathering {
        /// The time of its first event.
        first: Instant,
        /// The time of its last event.
        last: Instant,
        /// The touched paths.
        touched: Touched,
    },
}

impl Settling {
    /// Adds one path, or everything.
    fn touch(&mut self, now: Instant, path: Option<DocumentPath>) {
        if matches!(self, Self::Quiet) {
            *self = Self::Gathering { first: now, last: now, touched: Touched::Paths(BTreeSet::new()) };
        }
        let Self::Gathering { last, touched, .. } = self else { return };
        *last = now;
        match (touched, path) {
            (Touched::Everything, _) => {}
            (Touched::Paths(paths), Some(path)) if paths.len() < MAX_PATHS => {
                paths.insert(path);
            }
            (touched, _) => *touched = Touched::Everything,
        }
    }

    /// Returns when the batch is due, if there is one.
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Quiet => None,
            Self::Gathering { first, last, .. } => Some((*last + QUIET).min(*first + LONGEST)),
        }
    }

    /// Takes the gathered paths and becomes quiet again.
    fn take(&mut self) -> Touched {
        match std::mem::take(self) {
            Self::Quiet => Touched::Paths(BTreeSet::new()),
            Self::Gathering { touched, .. } => touched,
        }
    }
}

/// Events that wait for their batch, shared by the event thread and the watcher.
#[derive(Clone, Default)]
pub(in crate::watch) struct Touches(Arc<Mutex<Settling>>);

impl Touches {
    /// Adds one path, or everything, as touched at `now`.
    pub(in crate::watch) fn touch(&self, now: Instant, path: Option<DocumentPath>) {
        self.lock().touch(now, path);
    }

    /// Starts to gather what file events name; `place` says what a path of an event means: nothing, one path, or everything.
    pub(in crate::watch) fn follow(
        &self,
        place: impl Fn(&Path) -> Option<Option<DocumentPath>> + Send + Sync + 'static,
    ) -> Events {
        let touches = self.clone();
        Events::start(move |event| {
            let now = Instant::now();
            match event {
                Ok(event) if !event.need_rescan() => {
                    event.paths.iter().filter_map(|path| place(path)).for_each(|path| touches.touch(now, path));
                }
                _ => touches.touch(now, None),
            }
        })
    }

    /// Takes the gathered paths.
    pub(in crate::watch) fn take(&self) -> Touched {
        self.lock().take()
    }

    /// Waits until a batch has settled or `next_scan` has come. It may be dropped at any point and called again.
    pub(in crate::watch) async fn settled(&self, events: &Events, next_scan: Instant) {
        loop {
            let due = self.lock().due().map_or(next_scan, |due| due.min(next_scan));
            if due <= Instant::now() {
                return;
            }
            tokio::select! {
                () = events.event() => {}
                () = tokio::time::sleep_until(due.into()) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Settling> {
        // The state is complete after every touch, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_burst_is_one_batch_that_is_due_when_it_falls_silent() {
        let start = Instant::now();
        let mut settling = Settling::default();
        assert_eq!(settling.due(), None);
        settling.touch(at(start, 0), Some("a".into()));
        settling.touch(at(start, 60), Some("b".into()));
        settling.touch(at(start, 90), Some("a".into()));
        assert_eq!(settling.due(), Some(at(start, 190)));
        assert_eq!(settling.take(), Touched::Paths(["a".into(), "b".into()].into()));
        assert_eq!(settling.due(), None);
    }

    #[test]
    fn a_burst_without_end_is_due_after_two_seconds() {
        let start = Instant::now();
        let mut settling = Settling::default();
        for step in 0..50 {
            settling.touch(at(start, step * 50), Some("log".into()));
        }
        assert_eq!(settling.due(), Some(at(start, 2_000)));
    }

    #[test]
    fn too_many_paths_become_everything() {
        let now = Instant::now();
        let mut settling = Settling::default();
        for number in 0..=MAX_PATHS {
            settling.touch(now, Some(DocumentPath::from(number.to_string().as_str())));
        }
        assert_eq!(settling.take(), Touched::Everything);
    }
}

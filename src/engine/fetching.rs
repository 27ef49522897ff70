//! Fetches on an interval: one thread per source, which fetches, reports the result, and waits.
//!
//! In: a repository and an interval. Out: a message to the tracker after each successful fetch.
//!
//! **Invariant:** a failure is reported and tried again, later each time, and never stops tracking of the objects that are
//! already here.
//!
//! It is a thread and no task: a hanging connection must not delay the end of the process.

use super::EngineError;
use super::board::{Board, now};
use super::tracker::Stop;
use crate::resources::chain;
use crate::store::FetchState;
use crate::watch::git::GitSource;
use std::time::{Duration, Instant};

/// Shortest interval; below it fetches would overlap.
const SHORTEST: Duration = Duration::from_millis(100);
/// Longest wait after failures, unless the interval itself is longer.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// Interval for checking a stop request while waiting.
const TICK: Duration = Duration::from_millis(50);

/// One source that is fetched.
pub(super) struct Fetching {
    pub(super) name: String,
    pub(super) source: GitSource,
    pub(super) every: Duration,
    pub(super) board: Board,
    pub(super) stop: Stop,
}

/// The state of fetching.
#[derive(Default)]
pub(super) struct Tries {
    /// Consecutive failures.
    failures: u32,
    /// The logged failure that still holds.
    said: Option<String>,
}

impl Fetching {
    /// Fetches once; returns whether it succeeded. A repeated failure is logged once.
    pub(super) fn once(&self, Tries { failures, said }: &mut Tries) -> bool {
        let fetched = self.source.fetch(|| self.stop.is_asked());
        *failures = if fetched.is_ok() { 0 } else { failures.saturating_add(1) };
        let wait = wait(self.every, *failures);
        let error = fetched.err().map(|error| chain(&error));
        let name = &self.name;
        match (&error, said.take()) {
            (None, Some(_)) => tracing::warn!("{name}: it is fetched again"),
            (Some(error), before) if !self.stop.is_asked() => {
                if before.as_ref() != Some(error) {
                    tracing::warn!("{name}: {error}; it is tried again in {} s", wait.as_secs().max(1));
                }
                *said = Some(error.clone());
            }
            (_, before) => *said = before,
        }
        let succeeded = error.is_none();
        self.board.note(&self.name, |state| {
            let fetch = state.fetch.get_or_insert_with(FetchState::default);
            fetch.last = if succeeded { Some(now()) } else { fetch.last };
            fetch.failures = *failures;
            fetch.error = error;
            fetch.next = Some(now().saturating_add_unsigned(wait.as_secs()));
        });
        succeeded
    }

    /// Fetches repeatedly on a separate thread, until a stop is requested or the receiver is gone.
    pub(super) fn start(self, fetched: impl Fn() -> bool + Send + 'static) -> Result<(), EngineError> {
        let work = move || {
            let mut tries = Tries::default();
            loop {
                if self.once(&mut tries) && !fetched() {
                    return;
                }
                let due = Instant::now() + wait(self.every, tries.failures);
                while Instant::now() < due {
                    if self.stop.is_asked() {
                        return;
                    }
                    std::thread::sleep(TICK.min(due.saturating_duration_since(Instant::now())));
                }
            }
        };
        let thread = std::thread::Builder::new().name("tidemill-fetch".to_owned()).spawn(work);
        thread.map(drop).map_err(|source| EngineError::Thread { source })
    }
}

/// Returns the wait: the interval, doubled after each failure.
pub(super) fn wait(every: Duration, failures: u32) -> Duration {
    let every = every.max(SHORTEST);
    every.saturating_mul(1 << failures.min(16)).min(every.max(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_make_the_wait_longer_up_to_a_quarter_of_an_hour() {
        let minute = Duration::from_secs(60);
        let waits: Vec<u64> = [0, 1, 2, 3, 4, 99].map(|failures| wait(minute, failures).as_secs()).to_vec();
        assert_eq!(waits, [60, 120, 240, 480, 900, 900]);
        assert_eq!(wait(Duration::from_secs(3600), 5), Duration::from_secs(3600));
        assert_eq!(wait(Duration::ZERO, 0), SHORTEST);
    }
}

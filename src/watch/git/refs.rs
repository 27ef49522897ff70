//! The moment to look at the refs again: file events at once, and polling behind them.
//!
//! In: a repository. Out: wake-ups, each of which says only "list the heads again".
//!
//! **Invariant:** nothing is decided from an event. A ref that moves is seen at the next poll at the latest, whatever
//! events are lost, and every wake-up is followed by another look shortly after: a ref in a new folder may be written
//! before that folder is watched.
//!
//! Refs live in the git folder itself (`HEAD`, `packed-refs`), which is watched flat, and under `refs/`, which is
//! watched deep; a linked work tree has a `HEAD` of its own and shares the rest (gitrepository-layout). Folders are
//! added again at every poll, so a repository that was deleted and made anew is heard again.

use super::{GitError, GitSource};
use crate::watch::{EventState, Events};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long after an event the refs are looked at once more: longer than it takes to watch a new folder.
const ECHO: Duration = Duration::from_millis(50);
/// Shortest polling interval; below it a poll would meet the one before.
const MIN_POLL: Duration = Duration::from_millis(20);

/// Why a [`RefWatcher`] woke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// A file event came.
    Event,
    /// The interval is over.
    Poll,
}

/// Wakes whoever tracks a repository's refs.
pub struct RefWatcher {
    source: GitSource,
    events: Events,
    poll: Duration,
    next_poll: Instant,
    echo: Option<Instant>,
}

impl RefWatcher {
    /// Starts watching; `poll` is the time between two looks where no event comes.
    ///
    /// # Errors
    ///
    /// Where the repository no longer opens. That events are not to be had is no error: [`Self::state`] says it.
    pub fn start(source: &GitSource, poll: Duration) -> Result<Self, GitError> {
        let events = Events::start(|_| {});
        let poll = poll.max(MIN_POLL);
        let mut watcher = Self { source: source.clone(), events, poll, next_poll: Instant::now() + poll, echo: None };
        // Watching comes before the caller's first look, so nothing falls between the two.
        watcher.watch()?;
        Ok(watcher)
    }

    /// Waits until the refs should be looked at.
    ///
    /// It may be dropped at any point and called again: no wake-up is lost, and the interval runs on.
    pub async fn changed(&mut self) -> Woken {
        let until = self.echo.map_or(self.next_poll, |echo| echo.min(self.next_poll));
        tokio::select! {
            () = self.events.event() => {
                self.echo = Some(Instant::now() + ECHO);
                Woken::Event
            }
            () = sleep_until(until) => {
                self.echo = None;
                if until == self.next_poll {
                    self.next_poll = Instant::now() + self.poll;
                    self.events.revive();
                    self.events.clear_warning();
                    // A repository that does not open is reported by the look that follows.
                    let _ = self.watch();
                }
                Woken::Poll
            }
        }
    }

    /// Returns how well events arrive.
    #[must_use]
    pub fn state(&self) -> EventState {
        self.events.state()
    }

    fn watch(&mut self) -> Result<(), GitError> {
        let (own, shared): (PathBuf, PathBuf) = {
            let repository = self.source.pool.get()?;
            (repository.path().to_owned(), repository.commondir().to_owned())
        };
        self.events.watch(&own);
        if shared != own {
            self.events.watch(&shared);
        }
        self.events.watch_all(&shared.join("refs"));
        Ok(())
    }
}

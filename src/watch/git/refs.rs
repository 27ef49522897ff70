//! Decides when to read the refs again: at file events, with polling as a backup.
//!
//! In: a repository. Out: wake-ups, each of which only says "list the heads again".
//!
//! **Invariant:** no event decides anything. A moved ref is seen at the next poll at the latest, whatever events are lost. Every
//! wake-up is followed by another look shortly after: a ref in a new folder may be written before that folder is watched.
//!
//! Refs are in the git folder itself (`HEAD`, `packed-refs`), which is watched flat, and under `refs/`, which is watched deep. A
//! linked work tree has its own `HEAD` and shares the rest (gitrepository-layout). Folders are added again at every poll, so a
//! repository that was deleted and created again is watched again.

use super::{GitError, GitSource};
use crate::watch::{EventState, Events};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time after an event until the refs are read once more: longer than it takes to watch a new folder.
const ECHO: Duration = Duration::from_millis(50);
/// Shortest polling interval; below it polls would overlap.
const MIN_POLL: Duration = Duration::from_millis(20);

/// The reason why a [`RefWatcher`] woke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// A file event came.
    Event,
    /// The interval is over.
    Poll,
}

/// Wakes the task that tracks a repository's refs.
pub struct RefWatcher {
    source: GitSource,
    events: Events,
    poll: Duration,
    next_poll: Instant,
    echo: Option<Instant>,
}

impl RefWatcher {
    /// Starts watching; `poll` is the time between two looks if no event comes.
    ///
    /// # Errors
    ///
    /// If the repository no longer opens. Missing events are no error: [`Self::state`] reports them.
    pub fn start(source: &GitSource, poll: Duration) -> Result<Self, GitError> {
        let events = Events::start(|_| {});
        let poll = poll.max(MIN_POLL);
        let mut watcher = Self { source: source.clone(), events, poll, next_poll: Instant::now() + poll, echo: None };
        // The watch starts before the caller's first look, so no change falls between the two.
        watcher.watch()?;
        Ok(watcher)
    }

    /// Waits until the refs should be looked at.
    ///
    /// It may be dropped at any point and called again: no wake-up is lost, and the interval continues.
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
                    // The next look reports a repository that does not open.
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

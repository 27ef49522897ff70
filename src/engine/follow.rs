//! Following: one task a source waits for movements, and the tracker takes them one after the other.
//!
//! In: file events and intervals. Out: calls on the tracker, in the order in which movements were seen.
//!
//! **Invariant:** a movement only says that something is to be looked at; several that wait are one. The tracker itself
//! is never run from two places at once.

use super::EngineError;
use super::directory::DirectoryState;
use super::tracker::{Source, Tracker};
use crate::watch::git::RefWatcher;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, block_in_place};

/// How often the wish to stop is looked for while nothing moves.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// Something moved in the source of this number.
enum Movement {
    Refs(usize),
    Directory(usize, DirectoryState, Instant),
}

/// Runs until a stop is asked for.
pub(super) async fn follow(tracker: &mut Tracker) -> Result<(), EngineError> {
    let (movements, mut moved) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    for (index, source) in tracker.sources.iter_mut().enumerate() {
        let movements = movements.clone();
        match source {
            Source::Git(git, poll) => {
                let mut watcher = RefWatcher::start(&git.source, *poll)?;
                tasks.spawn(async move {
                    loop {
                        watcher.changed().await;
                        if movements.send(Movement::Refs(index)).await.is_err() {
                            return;
                        }
                    }
                });
            }
            Source::Directory(directory, _) => {
                let Some(mut watcher) = directory.watcher.take() else { continue };
                let name = directory.name.clone();
                tasks.spawn(async move {
                    loop {
                        watcher.changed().await;
                        let begun = Instant::now();
                        let state = block_in_place(|| {
                            let batch = watcher.collect()?;
                            Ok::<_, EngineError>(DirectoryState::after(&watcher, batch))
                        });
                        let sent = match state {
                            Ok(state) => movements.send(Movement::Directory(index, state, begun)).await,
                            Err(error) => {
                                tracing::warn!("{name}: {error}; it is tried again");
                                Ok(())
                            }
                        };
                        if sent.is_err() {
                            return;
                        }
                    }
                });
            }
        }
    }
    // What moved between the last look and the first watch.
    block_in_place(|| tracker.catch_up())?;
    while !tracker.stop.is_asked() {
        let movement = tokio::select! {
            movement = moved.recv() => movement,
            () = tokio::time::sleep(STOP_INTERVAL) => continue,
        };
        let taken = match movement {
            Some(Movement::Refs(index)) => block_in_place(|| tracker.catch_up_git(index)),
            Some(Movement::Directory(index, state, begun)) => {
                block_in_place(|| tracker.move_directory(index, state, begun))
            }
            None => break,
        };
        match taken {
            Ok(()) => {}
            // The source may be in the middle of something; the next look tells.
            Err(
                error @ (EngineError::Git(_)
                | EngineError::Directory(_)
                | EngineError::Unborn { .. }
                | EngineError::NoRefs { .. }),
            ) => {
                tracing::warn!("{error}; it is tried again");
            }
            Err(error) => return Err(error),
        }
    }
    tasks.shutdown().await;
    block_in_place(|| tracker.settle())
}

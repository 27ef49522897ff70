//! Following: one task a source waits for movements, and the tracker takes them one after the other.
//!
//! In: file events and intervals. Out: calls on the tracker, in the order in which movements were seen.
//!
//! **Invariant:** a movement only says that something is to be looked at; several that wait are one. The tracker itself
//! is never run from two places at once.

use super::EngineError;
use super::board::Board;
use super::directory::{DirectoryState, Watcher};
use super::tracker::{Source, Tracker};
use crate::watch::EventState;
use crate::watch::git::RefWatcher;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, block_in_place};

/// How often the wish to stop is looked for while nothing moves.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// How often documents that could not be read are looked at again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Something moved in the source of this number.
enum Movement {
    Refs(usize, EventState),
    Fetched,
    Directory(usize, DirectoryState, Instant),
}

/// Runs until a stop is asked for.
pub(super) async fn follow(tracker: &mut Tracker) -> Result<(), EngineError> {
    let (movements, mut moved) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    let board = tracker.board.clone();
    for (index, source) in tracker.sources.iter_mut().enumerate() {
        let movements = movements.clone();
        match source {
            Source::Git(git, poll) => {
                let watcher = RefWatcher::start(&git.source, *poll)?;
                tasks.spawn(follow_refs(index, watcher, movements));
            }
            // A trace has ended when it was looked at once.
            Source::Trace(_) => {}
            Source::Directory(directory, _) => {
                let Some(watcher) = directory.watcher.take() else { continue };
                tasks.spawn(follow_files(index, directory.name.clone(), watcher, board.clone(), movements));
            }
        }
    }
    // What moved between the last look and the first watch; before a remote has answered.
    block_in_place(|| tracker.look())?;
    for fetching in tracker.fetchings() {
        let movements = movements.clone();
        fetching.start(move || movements.blocking_send(Movement::Fetched).is_ok())?;
    }
    let mut retried = Instant::now();
    while !tracker.stop.is_asked() {
        let movement = tokio::select! {
            movement = moved.recv() => movement,
            () = tokio::time::sleep(STOP_INTERVAL) => {
                if retried.elapsed() >= RETRY_INTERVAL {
                    block_in_place(|| tracker.retry())?;
                    retried = Instant::now();
                }
                if board.is_due() {
                    block_in_place(|| tracker.report());
                }
                continue;
            }
        };
        let taken = match movement {
            Some(Movement::Refs(index, events)) => {
                if let Source::Git(git, _) = &mut tracker.sources[index] {
                    git.events = events;
                }
                block_in_place(|| tracker.catch_up_git(index))
            }
            // The refs that a fetch moved are seen by themselves; objects that were missing are not.
            Some(Movement::Fetched) => block_in_place(|| tracker.retry_all()),
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
                | EngineError::Worktree(_)
                | EngineError::Unborn { .. }
                | EngineError::NoRefs { .. }),
            ) => {
                tracing::warn!("{error}; it is tried again");
            }
            Err(error) => return Err(error),
        }
    }
    tasks.shutdown().await;
    block_in_place(|| {
        tracker.report();
        tracker.settle()
    })
}

async fn follow_refs(index: usize, mut watcher: RefWatcher, movements: mpsc::Sender<Movement>) {
    loop {
        watcher.changed().await;
        if movements.send(Movement::Refs(index, watcher.state())).await.is_err() {
            return;
        }
    }
}

async fn follow_files(
    index: usize,
    name: String,
    mut watcher: Watcher,
    board: Board,
    movements: mpsc::Sender<Movement>,
) {
    loop {
        watcher.changed().await;
        let begun = Instant::now();
        let state = block_in_place(|| watcher.look());
        let reconciled = state.as_ref().is_ok_and(|state| state.is_reconciled);
        board.note_watch(&name, watcher.what(), &watcher.state(), reconciled);
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
}

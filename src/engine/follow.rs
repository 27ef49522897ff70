//! Follows sources: one task per source waits for movements, and the tracker takes them in turns.
//!
//! In: file events and intervals. Out: work for the tracker's slots.
//!
//! ```text
//!  task a source: event, interval ─► look (directories) ─► movement ─┐
//!  thread a missing source: open ────────────────────────────────────┼─► slots ─► one slice of each in turn
//!  thread a remote: fetch ───────────────────────────────────────────┘
//! ```
//!
//! **Invariant:** a movement only says that a look is needed; several waiting ones are merged. The tracker itself never runs
//! twice at once. Between two slices it takes the new movements.
//!
//! Directories are looked at, refs probed and missing sources opened off the feeding thread; where there are several sources, what a
//! plan reads, trees and contents are read there too ([`beside`](super::beside)). So a call that hangs holds up its own source only.

use super::EngineError;
use super::board::Board;
use super::directory::{DirectoryState, Found, Watcher};
use super::feeding::Progress;
use super::slot::Source;
use super::tracker::Tracker;
use crate::resources::chain;
use crate::watch::EventState;
use crate::watch::git::{GitSource, RefWatcher, Woken};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinSet, block_in_place};

/// Interval for checking a stop request while nothing moves.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// Interval for trying unreadable documents again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Interval for noting the problems of sources.
const NOTE_INTERVAL: Duration = Duration::from_millis(500);

/// Most states of one directory that wait to be taken.
const MAX_FOUND: usize = 4;

/// A movement in the source of this slot.
enum Movement {
    Refs(usize, EventState, Woken),
    Fetched(usize),
    Directory(usize, Found),
    /// A look at a directory failed: the reason, and the time of the next try.
    Unseen(usize, String, Duration),
}

/// Runs until a stop is asked for.
pub(super) async fn follow(tracker: &mut Tracker) -> Result<(), EngineError> {
    let (movements, mut moved) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    let board = tracker.board.clone();
    // Movements between the last look and the start of the watch.
    tracker.slots.iter_mut().for_each(|slot| slot.is_wanted = true);
    block_in_place(|| tracker.report());
    let (mut retried, mut noted, mut retries_now) = (Instant::now(), Instant::now(), true);
    while !tracker.stop.is_asked() {
        while let Ok(movement) = moved.try_recv() {
            retries_now |= take(tracker, movement);
        }
        block_in_place(|| tracker.find_missing())?;
        for index in 0..tracker.slots.len() {
            watch(tracker, index, &mut tasks, &movements)?;
        }
        if noted.elapsed() >= NOTE_INTERVAL {
            board.note_troubles(&tracker.slots);
            noted = Instant::now();
        }
        if board.is_due() {
            block_in_place(|| tracker.report());
        }
        // A slice takes a while, and new movements come next.
        let progress = block_in_place(|| tracker.advance())?;
        if !matches!(progress, Progress::Nothing | Progress::Awaited) {
            continue;
        }
        if std::mem::take(&mut retries_now) || retried.elapsed() >= RETRY_INTERVAL {
            block_in_place(|| tracker.retry())?;
            retried = Instant::now();
        }
        tokio::select! {
            movement = moved.recv() => match movement {
                Some(movement) => retries_now |= take(tracker, movement),
                None => break,
            },
            () = tokio::time::sleep(STOP_INTERVAL) => {}
        }
    }
    tasks.shutdown().await;
    block_in_place(|| {
        tracker.report();
        tracker.settle()
    })
}

/// Notes a movement in its slot; returns whether unreadable documents are to be tried again.
fn take(tracker: &mut Tracker, movement: Movement) -> bool {
    let follows = tracker.follows;
    let is_fetched = matches!(movement, Movement::Fetched(_));
    match movement {
        Movement::Refs(index, events, woken) => {
            let slot = &mut tracker.slots[index];
            slot.is_wanted = true;
            if let Source::Git(git, _) = &mut slot.source {
                git.events = events;
            }
            if let (Woken::Event, Some(trouble)) = (woken, &mut slot.trouble) {
                trouble.hurry();
            }
        }
        // The ref watcher sees the refs that a fetch moved; it does not see new objects.
        Movement::Fetched(index) => {
            tracker.slots[index].is_wanted = true;
            if let Source::Git(git, _) = &mut tracker.slots[index].source {
                git.omitted.hurry();
            }
            tracker.attempts.hurry();
        }
        Movement::Directory(index, found) => tracker.slots[index].found.push_back(found),
        Movement::Unseen(index, what, wait) => tracker.slots[index].fails(what, Some(wait), follows),
    }
    is_fetched
}

/// Starts to wait for the movements of a source, once the source exists and the graph has its stored state.
fn watch(
    tracker: &mut Tracker,
    index: usize,
    tasks: &mut JoinSet<()>,
    movements: &mpsc::Sender<Movement>,
) -> Result<(), EngineError> {
    if tracker.slots[index].is_watched {
        return Ok(());
    }
    let movements = movements.clone();
    match &mut tracker.slots[index].source {
        Source::Git(git, poll) => {
            // If a repository cannot be watched, the next look fails and reports it.
            let Ok(watcher) = RefWatcher::start(&git.source, *poll) else { return Ok(()) };
            tasks.spawn(follow_refs(index, git.source.clone(), watcher, movements.clone()));
            if let Some(fetching) = tracker.fetching(&tracker.slots[index]) {
                fetching.start(move || movements.blocking_send(Movement::Fetched(index)).is_ok())?;
            }
        }
        Source::Directory(directory, _) => {
            let Some(watcher) = directory.watcher.take() else { return Ok(()) };
            tasks.spawn(follow_files(index, directory.name.clone(), watcher, tracker.board.clone(), movements));
        }
        // A trace ends after one look.
        Source::Trace(_) => {}
        Source::Missing(_) => return Ok(()),
    }
    tracker.slots[index].is_watched = true;
    Ok(())
}

async fn follow_refs(index: usize, source: GitSource, mut watcher: RefWatcher, movements: mpsc::Sender<Movement>) {
    loop {
        let woken = watcher.changed().await;
        // A hanging file system hangs here and not on the feeding thread, which repeats the check.
        let _ = block_in_place(|| source.check());
        if movements.send(Movement::Refs(index, watcher.state(), woken)).await.is_err() {
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
    let permits = Arc::new(Semaphore::new(MAX_FOUND));
    loop {
        watcher.changed().await;
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let begun = Instant::now();
        let state: Result<DirectoryState, EngineError> = block_in_place(|| watcher.look());
        let reconciled = state.as_ref().is_ok_and(|state| state.is_reconciled);
        board.note_watch(&name, watcher.what(), &watcher.state(), reconciled);
        board.note_left_out(&name, watcher.what(), watcher.left_out());
        let movement = match state {
            Ok(state) => Movement::Directory(index, Found { state, begun, _permit: Some(permit) }),
            Err(error) => Movement::Unseen(index, chain(&error), watcher.next_look()),
        };
        if movements.send(movement).await.is_err() {
            return;
        }
    }
}

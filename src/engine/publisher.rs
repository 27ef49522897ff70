//! The thread that publishes: it pairs finished epochs with what they stand for, and applies them in batches.
//!
//! In: targets in the order in which they were fed, and finished epochs in the same order. Out: published versions, told
//! to a callback the moment they are durable.
//!
//! **Invariant:** epochs are published in the order in which they were fed. Whatever waits when the thread is free shares
//! one batch, so the more there is to do, the less each epoch costs. After a failure nothing more is published, and
//! whoever waits is told.

use super::EngineError;
use super::tracker::Stop;
use super::transient::Transient;
use crate::index::apply::{ApplyError, IndexWriter, Published, Target};
use crate::index::vector::Tended;
use dataflows::data::{ContentId, DocumentPath, View};
use dataflows::run::EpochDone;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often upkeep takes a step while nothing is to be published.
const PAUSE: Duration = Duration::from_millis(200);
/// … and while somebody waits for it.
const PAUSE_WHILE_AWAITED: Duration = Duration::from_millis(5);
/// How many epochs share one batch at the most, unless a replay asks for another number.
pub(super) const MAX_BATCH: usize = 64;
/// How many epochs may be under way: enough to fill batches, few enough that stopping is quick.
const MAX_OPEN: usize = 96;

/// What is called for every published version.
pub type OnPublished = Box<dyn FnMut(&Published) + Send>;

/// The publishing thread and what is under way.
pub(super) struct Publisher {
    targets: Option<Sender<Target>>,
    open: Arc<Open>,
    thread: Option<JoinHandle<()>>,
}

/// How many epochs are under way, and what stopped the thread.
#[derive(Default)]
struct Open {
    state: Mutex<OpenState>,
    changed: Condvar,
    transient: Mutex<Transient>,
}

#[derive(Default)]
struct OpenState {
    epochs: usize,
    failure: Option<ApplyError>,
    ended: bool,
    /// Whether somebody waits for upkeep to have nothing more to do.
    tidying: bool,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, OpenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until at most `most` epochs are under way, or the thread has ended.
    fn wait(&self, most: usize) -> Result<(), EngineError> {
        let mut state = self.lock();
        while state.epochs > most && !state.ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.failure.take() {
            Some(failure) => Err(failure.into()),
            None if state.ended => Err(EngineError::PublisherStopped),
            None => Ok(()),
        }
    }
}

impl Publisher {
    /// Starts the thread.
    pub(super) fn start(
        writer: IndexWriter,
        finished: Receiver<EpochDone>,
        on_published: OnPublished,
        max_batch: usize,
    ) -> Result<Self, EngineError> {
        let (targets, queue) = channel();
        let open = Arc::new(Open::default());
        let shared = open.clone();
        let thread = std::thread::Builder::new()
            .name("tidemill-publish".to_owned())
            .spawn(move || {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    publish_all(writer, &queue, &finished, on_published, &shared, max_batch)
                }));
                let mut state = shared.lock();
                state.ended = true;
                state.failure = match outcome {
                    Ok(outcome) => outcome.err(),
                    Err(_) => Some(ApplyError::Unexpected("the publishing thread panicked")),
                };
                shared.changed.notify_all();
            })
            .map_err(|source| EngineError::Thread { source })?;
        Ok(Self { targets: Some(targets), open, thread: Some(thread) })
    }

    /// Announces an epoch that is about to be fed; waits while too many are under way.
    pub(super) fn announce(&self, target: Target) -> Result<(), EngineError> {
        self.open.wait(MAX_OPEN)?;
        self.open.lock().epochs += 1;
        let targets = self.targets.as_ref().ok_or(EngineError::PublisherStopped)?;
        targets.send(target).map_err(|_| EngineError::PublisherStopped)
    }

    /// Returns the documents, as far as epochs are published, that are worth another look.
    pub(super) fn transient(&self) -> Vec<(View, DocumentPath, ContentId)> {
        self.open.transient.lock().unwrap_or_else(PoisonError::into_inner).documents()
    }

    /// Returns whether everything announced is published.
    pub(super) fn is_idle(&self) -> bool {
        self.open.lock().epochs == 0
    }

    /// Waits until upkeep has nothing more to do, `stop` asks to stop, or the thread has ended.
    pub(super) fn tidy(&self, stop: &Stop) {
        let mut state = self.open.lock();
        state.tidying = true;
        while state.tidying && !state.ended && !stop.is_asked() {
            let waited = self.open.changed.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.tidying = false;
    }

    /// Waits until everything announced is published.
    pub(super) fn settle(&self) -> Result<(), EngineError> {
        self.open.wait(0)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        drop(self.targets.take());
        if let Some(thread) = self.thread.take() {
            // The thread catches its own panics and leaves them as its failure.
            let _ = thread.join();
        }
    }
}

/// Waits for the next finished epoch, with steps of upkeep meanwhile; returns nothing when no more will come.
fn next_epoch(writer: &mut IndexWriter, finished: &Receiver<EpochDone>, open: &Open) -> Option<EpochDone> {
    let mut pause = Duration::ZERO;
    loop {
        match finished.recv_timeout(pause) {
            Ok(done) => return Some(done),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let is_awaited = open.lock().tidying;
        let tended = writer.tend(is_awaited).unwrap_or_else(|error| {
            tracing::warn!("upkeep waits a minute: {error}");
            Tended::Idle
        });
        if tended == Tended::Idle && is_awaited {
            open.lock().tidying = false;
            open.changed.notify_all();
        }
        pause = if tended == Tended::Busy && is_awaited { PAUSE_WHILE_AWAITED } else { PAUSE };
    }
}

fn publish_all(
    mut writer: IndexWriter,
    targets: &Receiver<Target>,
    finished: &Receiver<EpochDone>,
    mut on_published: OnPublished,
    open: &Open,
    max_batch: usize,
) -> Result<(), ApplyError> {
    // Either end closes when the tracker stops; what is under way then was not promised to anybody.
    while let Some(done) = next_epoch(&mut writer, finished, open) {
        let mut batch = Vec::new();
        let mut next = Some(done);
        while let Some(done) = next.take() {
            let Ok(target) = targets.recv() else { return Ok(()) };
            batch.push((target, done));
            if batch.len() < max_batch {
                next = finished.try_recv().ok();
            }
        }
        let number = batch.len();
        {
            let mut transient = open.transient.lock().unwrap_or_else(PoisonError::into_inner);
            batch.iter().for_each(|(_, done)| transient.take(&done.documents));
        }
        for published in writer.publish(batch)? {
            on_published(&published);
        }
        open.lock().epochs -= number;
        open.changed.notify_all();
    }
    // The tracker stops in good order: merges that run are finished, so that the store is left as small as it is.
    writer.close()
}

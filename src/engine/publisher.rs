//! The publishing thread: it pairs finished epochs with their targets, and applies them in batches.
//!
//! In: targets in the order in which they were fed, and finished epochs in the same order. Out: published versions, passed to a
//! callback as soon as they are durable.
//!
//! **Invariant:** epochs are published in the order in which they were fed. All epochs that wait when the thread is free share
//! one batch, so under load each epoch costs less. After a failure nothing more is published, and waiting callers get the error.
//!
//! While nothing is under way the thread asks the model again for vectors that entries are owed, later each time, and takes short
//! steps of upkeep, and of collecting. Of the latter some remove what the graph
//! may look up: they begin only while nothing is in the graph, and an epoch is announced, and so fed, behind their end.

use super::EngineError;
use super::collector::{Collector, Turn};
use super::fetching::wait;
use super::pace::{Open as Fed, Paces};
use super::tracker::Stop;
use super::transient::Transient;
use crate::index::apply::{ApplyError, IndexWriter, Published, Target, Tried};
use crate::index::{Tended, Urgency};
use crate::resources::chain;
use dataflows::data::{Document, View};
use dataflows::run::EpochDone;
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long no epoch is in progress before a collection continues.
const PAUSE: Duration = Duration::from_millis(50);
/// How long nothing was published before maintenance begins: its threads slow a concurrent commit, and commits come in bursts.
const CALM: Duration = Duration::from_secs(2);
/// The longest delay of maintenance, if commits never stop.
const PUT_OFF: Duration = Duration::from_secs(300);
/// The least pause after a step, for epochs to begin.
const PAUSE_WHILE_BUSY: Duration = Duration::from_millis(5);
/// Interval for checking whether a collection is due or requested, while idle.
const LOOK: Duration = Duration::from_millis(200);
/// Interval for checking whether a thread of maintenance or of a collection has ended.
const PAUSE_WHILE_WAITING: Duration = Duration::from_millis(20);
/// How soon the model is asked again for vectors that entries are owed; after each attempt that gave none it takes twice as long,
/// up to a quarter of an hour.
const SOONEST: Duration = Duration::from_millis(500);
/// How long upkeep waits after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// Most epochs in one batch, unless a replay sets another number.
pub(super) const MAX_BATCH: usize = 64;
/// Most epochs in progress: enough to fill batches, few enough to stop quickly (backpressure).
const MAX_OPEN: usize = 96;

pub(super) use super::pace::Head;

/// Called for every published version.
pub type OnPublished = Box<dyn FnMut(&Published) + Send>;

/// The publishing thread and the work in progress.
pub(super) struct Publisher {
    targets: Option<Sender<(Target, usize)>>,
    open: Arc<Open>,
    /// Most changes in progress, unless one epoch alone has more: their results are in memory until they are published.
    max_changes: usize,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// The limits of the work in progress.
pub(super) struct Room {
    /// Most epochs in one batch.
    pub(super) max_batch: usize,
    /// Most changes in progress.
    pub(super) max_changes: usize,
    /// The request to end the work early.
    pub(super) stop: Stop,
}

/// The number of epochs in progress, and the error that stopped the thread.
#[derive(Default)]
struct Open {
    state: Mutex<OpenState>,
    changed: Condvar,
    transient: Mutex<Transient>,
    /// The documents of each head, as of the last published epoch.
    documents: Mutex<FxHashMap<View, RoaringBitmap>>,
}

#[derive(Default)]
struct OpenState {
    epochs: usize,
    /// Changed files that were fed with them.
    changes: usize,
    /// Their expected time.
    paces: Paces,
    failure: Option<ApplyError>,
    ended: bool,
    /// Whether maintenance may have work.
    is_untidy: bool,
    /// Whether an exclusive section is running: a step removes rows that the graph may look up.
    is_silent: bool,
    /// Whether a caller waits for its end.
    is_awaited: bool,
    /// Whether a caller waits until maintenance is done.
    is_hurried: bool,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, OpenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an exclusive section, in which no epoch can be announced; returns whether it did, because none was in progress.
    fn begin_silence(&self) -> bool {
        let mut state = self.lock();
        state.is_silent = state.epochs == 0;
        state.is_silent
    }

    fn end_silence(&self) {
        let mut state = self.lock();
        (state.is_silent, state.is_awaited) = (false, false);
        drop(state);
        self.changed.notify_all();
    }

    /// Whether no caller wants to publish.
    fn is_quiet(&self) -> bool {
        let state = self.lock();
        state.epochs == 0 && !state.is_awaited
    }

    /// Waits while too much is in progress, until the thread has ended, or until the time after a request of `stop` is over.
    fn wait(&self, stop: &Stop, too_much: impl Fn(&OpenState) -> bool) -> Result<(), EngineError> {
        let mut state = self.lock();
        while too_much(&state) && !state.ended {
            if stop.is_over() {
                return Err(EngineError::Interrupted);
            }
            state = self.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
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
        collector: Collector,
        finished: Receiver<EpochDone>,
        on_published: OnPublished,
        room: Room,
    ) -> Result<Self, EngineError> {
        let Room { max_batch, max_changes, stop } = room;
        let (targets, queue) = channel();
        let open = Arc::new(Open::default());
        // Work left by an earlier tracker.
        open.lock().is_untidy = true;
        let shared = open.clone();
        let thread = std::thread::Builder::new()
            .name("tidemill-publish".to_owned())
            .spawn(move || {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    publish_all(writer, collector, &queue, &finished, on_published, &shared, max_batch)
                }));
                let mut state = shared.lock();
                (state.ended, state.is_silent) = (true, false);
                state.failure = match outcome {
                    Ok(outcome) => outcome.err(),
                    Err(_) => Some(ApplyError::Unexpected("the publishing thread panicked")),
                };
                shared.changed.notify_all();
            })
            .map_err(|source| EngineError::Thread { source })?;
        Ok(Self { targets: Some(targets), open, max_changes, stop, thread: Some(thread) })
    }

    /// Waits until an epoch of so many changes may be fed.
    ///
    /// If several sources share the graph, none may have more than about one second of work in progress: `shares` names the head
    /// then.
    pub(super) fn make_room(&self, changes: usize, shares: Option<Head>) -> Result<(), EngineError> {
        self.open.wait(&self.stop, |open| {
            let is_unfair = shares.is_some_and(|head| open.paces.is_too_much(head, changes));
            let is_too_much = is_unfair || open.changes.saturating_add(changes) > self.max_changes;
            open.epochs > MAX_OPEN || (open.epochs > 0 && is_too_much)
        })
    }

    /// Returns how many changes of a head take about half a second.
    pub(super) fn fair_slice(&self, head: Head, most: usize) -> usize {
        self.open.lock().paces.slice(head).min(most)
    }

    /// Announces an epoch of so many changes that is about to be fed.
    pub(super) fn announce(&self, target: Target, changes: usize, head: Head) -> Result<(), EngineError> {
        let targets = self.targets.as_ref().ok_or(EngineError::PublisherStopped)?;
        {
            let mut open = self.open.lock();
            while open.is_silent {
                open.is_awaited = true;
                open = self.open.changed.wait(open).unwrap_or_else(PoisonError::into_inner);
            }
            open.epochs += 1;
            open.changes += changes;
            open.paces.fed(Fed { head, changes, at: Instant::now() });
        }
        targets.send((target, changes)).map_err(|_| EngineError::PublisherStopped)
    }

    /// Returns the documents, as of the last published epoch, that should be tried again.
    pub(super) fn transient(&self) -> Vec<(View, Document)> {
        self.open.transient.lock().unwrap_or_else(PoisonError::into_inner).documents()
    }

    /// Returns the documents of a head, as of the last published epoch.
    pub(super) fn documents_of(&self, head: View) -> RoaringBitmap {
        let documents = self.open.documents.lock().unwrap_or_else(PoisonError::into_inner);
        documents.get(&head).cloned().unwrap_or_default()
    }

    /// Returns whether everything announced is published.
    pub(super) fn is_idle(&self) -> bool {
        self.open.lock().epochs == 0
    }

    /// Waits until maintenance has no more work, `stop` is requested, or the thread has ended.
    pub(super) fn tidy(&self, stop: &Stop) {
        let mut state = self.open.lock();
        state.is_hurried = true;
        while state.is_untidy && !state.ended && !stop.is_asked() {
            let waited = self.open.changed.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_hurried = false;
    }

    /// Waits until everything announced is published.
    pub(super) fn settle(&self) -> Result<(), EngineError> {
        self.open.wait(&self.stop, |open| open.epochs > 0)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        drop(self.targets.take());
        if let Some(thread) = self.thread.take() {
            // The thread catches its own panics and stores them as its failure.
            let _ = thread.join();
        }
    }
}

/// Runs one step of the collector, if there is one.
fn collect(writer: &mut IndexWriter, collector: &mut Collector, open: &Open) -> Turn {
    let needs_silence = collector.needs_silence();
    if needs_silence && !open.begin_silence() {
        return Turn::Waits;
    }
    let begun = Instant::now();
    let turn = collector.turn(writer, &mut || open.is_quiet());
    if needs_silence {
        open.end_silence();
    }
    if turn == Turn::Busy {
        tracing::debug!("a step of collecting took {:.1} ms", begun.elapsed().as_secs_f64() * 1000.0);
    }
    turn
}

/// The time at which maintenance may begin.
struct Patience {
    published: Instant,
    /// The time since which it has work.
    untidy: Option<Instant>,
    /// After a failure: nothing is tried before this.
    not_before: Instant,
}

impl Patience {
    fn new() -> Self {
        let now = Instant::now();
        Self { published: now, untidy: Some(now), not_before: now }
    }

    /// Returns how long maintenance has to wait; zero if a caller waits for its end.
    fn left(&self, is_hurried: bool) -> Duration {
        let calm = if is_hurried { self.published } else { self.published + CALM };
        let latest = self.untidy.map_or(calm, |untidy| calm.min(untidy + PUT_OFF));
        latest.max(self.not_before).saturating_duration_since(Instant::now())
    }
}

/// When the model is asked again for the vectors that entries are owed.
struct Owing {
    /// How often in a row it gave none.
    failures: u32,
    /// Entries that got theirs since the attempt began.
    given: u64,
    due: Instant,
}

impl Owing {
    fn new() -> Self {
        Self { failures: 0, given: 0, due: Instant::now() }
    }

    /// Takes note of a part of an attempt; where it was the last one, the next attempt has to wait.
    fn tried(&mut self, part: Tried) {
        self.given += part.given;
        if part.is_last {
            self.failures = if self.given > 0 { 0 } else { self.failures.saturating_add(1) };
            self.given = 0;
            self.due = Instant::now() + wait(SOONEST, self.failures);
        }
    }

    /// Takes note that the model answered an epoch.
    fn answered(&mut self) {
        if self.failures > 0 {
            *self = Self::new();
        }
    }
}

/// Asks the model again for some of the vectors that entries are owed, where that is due; returns whether it was.
fn mend(writer: &mut IndexWriter, owing: &mut Owing) -> bool {
    if writer.owed() == 0 || owing.due > Instant::now() {
        return false;
    }
    match writer.mend_owed() {
        Ok(part) => owing.tried(part),
        Err(error) => {
            tracing::warn!("vectors that are owed wait a minute: {}", chain(&error));
            owing.due = Instant::now() + PAUSE_AFTER_FAILURE;
        }
    }
    true
}

/// Waits for the next finished epoch, with steps of upkeep and of collecting while none is under way; returns nothing when no
/// more will come.
fn next_epoch(
    writer: &mut IndexWriter,
    collector: &mut Collector,
    finished: &Receiver<EpochDone>,
    open: &Open,
    patience: &mut Patience,
    owing: &mut Owing,
) -> Option<EpochDone> {
    let mut pause = PAUSE;
    loop {
        match finished.recv_timeout(pause) {
            Ok(done) => {
                let waited = done.finished.elapsed().as_secs_f64() * 1000.0;
                tracing::debug!("an epoch waited {waited:.1} ms for the publishing thread");
                return Some(done);
            }
            Err(RecvTimeoutError::Disconnected) => return None,
            // While epochs are in progress, the content of heads may be incomplete.
            Err(RecvTimeoutError::Timeout) if open.lock().epochs > 0 => continue,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let begun = Instant::now();
        if mend(writer, owing) {
            pause = begun.elapsed().max(PAUSE_WHILE_BUSY);
            continue;
        }
        // Upkeep and collecting look at rows all over the file.
        writer.let_go_of_much();
        let turn = collect(writer, collector, open);
        // A caller that waits for maintenance waits for this as well.
        open.lock().is_untidy |= turn != Turn::Rests;
        if turn != Turn::Rests {
            // Steps of a few milliseconds, and `snapshots gc` waits for the last.
            let busy = begun.elapsed().max(PAUSE_WHILE_BUSY);
            pause = if turn == Turn::Busy { busy } else { PAUSE_WHILE_WAITING };
            continue;
        }
        let (is_untidy, is_hurried) = {
            let open = open.lock();
            (open.is_untidy, open.is_hurried)
        };
        pause = LOOK;
        let left = patience.left(is_hurried);
        if !is_untidy || !left.is_zero() {
            if is_untidy {
                pause = pause.min(left);
            }
            continue;
        }
        match tend(writer, is_hurried, open, patience) {
            Tended::Busy => pause = PAUSE_WHILE_BUSY,
            Tended::Waits => pause = PAUSE_WHILE_WAITING,
            Tended::Idle => {
                tracing::debug!("upkeep has nothing left to do");
                patience.untidy = None;
                open.lock().is_untidy = false;
                open.changed.notify_all();
            }
        }
    }
}

/// Takes a step of maintenance. After a failure it pauses, and nothing else does.
fn tend(writer: &mut IndexWriter, is_hurried: bool, open: &Open, patience: &mut Patience) -> Tended {
    let urgency = if is_hurried { Urgency::Awaited } else { Urgency::CanWait };
    let begun = Instant::now();
    let tended = writer.tend(urgency, &|| open.is_quiet());
    tracing::debug!("a step of upkeep took {:.1} ms", begun.elapsed().as_secs_f64() * 1000.0);
    tended.unwrap_or_else(|error| {
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), chain);
        tracing::warn!("upkeep waits a minute: {cause}");
        patience.not_before = Instant::now() + PAUSE_AFTER_FAILURE;
        if is_hurried { Tended::Idle } else { Tended::Waits }
    })
}

fn publish_all(
    mut writer: IndexWriter,
    mut collector: Collector,
    targets: &Receiver<(Target, usize)>,
    finished: &Receiver<EpochDone>,
    mut on_published: OnPublished,
    open: &Open,
    max_batch: usize,
) -> Result<(), ApplyError> {
    // Either end closes when the tracker stops; what is under way then was not promised to anybody.
    let (mut patience, mut owing) = (Patience::new(), Owing::new());
    while let Some(done) = next_epoch(&mut writer, &mut collector, finished, open, &mut patience, &mut owing) {
        let (mut batch, mut changes) = (Vec::new(), 0);
        let mut next = Some(done);
        while let Some(done) = next.take() {
            let Ok((target, of_target)) = targets.recv() else { return Ok(()) };
            batch.push((target, done));
            changes += of_target;
            if batch.len() < max_batch {
                next = finished.try_recv().ok();
            }
        }
        let number = batch.len();
        if batch.iter().any(|(_, done)| done.work.embed.calls > done.work.embed.faults) {
            owing.answered();
        }
        let heads: FxHashSet<View> = batch.iter().map(|(target, _)| target.graph_view).collect();
        {
            let mut transient = open.transient.lock().unwrap_or_else(PoisonError::into_inner);
            batch.iter().for_each(|(_, done)| transient.take(&done.documents));
        }
        writer = writer.with_lost_files()?;
        let all_published = writer.publish(batch)?;
        all_published.iter().for_each(&mut on_published);
        {
            let mut documents = open.documents.lock().unwrap_or_else(PoisonError::into_inner);
            for head in heads {
                match writer.documents_of(head) {
                    Some(of_head) => documents.insert(head, of_head.clone()),
                    None => documents.remove(&head),
                };
            }
        }
        writer.let_go_of_much();
        patience.published = Instant::now();
        patience.untidy.get_or_insert(patience.published);
        {
            let mut open = open.lock();
            // Even a restored head counts.
            open.is_untidy = true;
            open.epochs -= number;
            open.changes -= changes;
            open.paces.published(number);
        }
        open.changed.notify_all();
    }
    drop(collector);
    // The tracker stops normally: running merges are finished, so that the store is small.
    writer.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upkeep_waits_for_calm_but_not_for_ever_and_not_where_somebody_waits() {
        let now = Instant::now();
        let patience =
            |untidy: Duration, not_before| Patience { published: now, untidy: Some(now - untidy), not_before };
        let calm = patience(Duration::from_secs(1), now);
        assert!((Duration::from_secs(1)..=CALM).contains(&calm.left(false)));
        assert_eq!(calm.left(true), Duration::ZERO);
        assert_eq!(patience(PUT_OFF, now).left(false), Duration::ZERO);
        let failed = patience(PUT_OFF, now + PAUSE_AFTER_FAILURE);
        assert!(failed.left(false).min(failed.left(true)) > PAUSE_AFTER_FAILURE / 2);
    }

    #[test]
    fn a_model_that_refuses_is_asked_later_each_time_and_at_once_when_it_answers() {
        let mut owing = Owing::new();
        let waits = |owing: &mut Owing, given: u64| {
            owing.tried(Tried { given, is_last: true });
            owing.due.saturating_duration_since(Instant::now()).as_millis().div_ceil(100)
        };
        assert_eq!([0, 0, 0].map(|given| waits(&mut owing, given)), [10, 20, 40]);
        owing.tried(Tried { given: 3, is_last: false });
        assert_eq!(waits(&mut owing, 0), 5, "the attempt gave something");
        assert_eq!([0, 0].map(|given| waits(&mut owing, given)), [10, 20]);
        owing.answered();
        assert!(owing.due <= Instant::now());
    }

    #[test]
    fn an_epoch_is_announced_behind_a_step_that_removes_and_ends_it() {
        let open = Arc::new(Open::default());
        let (targets, announced) = channel();
        let publisher = Publisher {
            targets: Some(targets),
            open: open.clone(),
            max_changes: 1,
            stop: Stop::default(),
            thread: None,
        };
        let target = || Target {
            graph_view: View(1),
            purpose: crate::index::apply::Purpose::Part,
            begun: Instant::now(),
            diff: Duration::ZERO,
            seen: 0,
        };
        assert!(open.begin_silence() && open.is_quiet());
        std::thread::scope(|scope| {
            let comes = scope.spawn(|| publisher.announce(target(), 1, (View(1), false)).unwrap());
            while open.is_quiet() {
                std::thread::yield_now();
            }
            // The step is asked to end, and until then nothing is fed.
            std::thread::sleep(Duration::from_millis(20));
            assert!(!comes.is_finished() && open.lock().epochs == 0 && announced.try_recv().is_err());
            open.end_silence();
            comes.join().unwrap();
        });
        assert_eq!((open.lock().epochs, announced.try_iter().count()), (1, 1));
        assert!(!open.begin_silence(), "what is in the graph may look anything up");
        // A step that never began delays nothing.
        publisher.announce(target(), 1, (View(1), false)).unwrap();
    }
}

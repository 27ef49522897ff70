//! The thread that publishes: it pairs finished epochs with what they stand for, and applies them in batches.
//!
//! In: targets in the order in which they were fed, and finished epochs in the same order. Out: published versions, told
//! to a callback the moment they are durable.
//!
//! **Invariant:** epochs are published in the order in which they were fed. Whatever waits when the thread is free shares
//! one batch, so the more there is to do, the less each epoch costs. After a failure nothing more is published, and
//! whoever waits is told.
//!
//! While nothing is under way the thread takes short steps of upkeep, and of collecting. Of the latter some remove what the graph
//! may look up: they begin only while nothing is in the graph, and an epoch is announced, and so fed, behind their end.

use super::EngineError;
use super::collector::{Collector, Turn};
use super::pace::{Open as Fed, Paces};
use super::tracker::Stop;
use super::transient::Transient;
use crate::index::apply::{ApplyError, IndexWriter, Published, Target};
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

/// How long nothing is under way before a collection goes on.
const PAUSE: Duration = Duration::from_millis(50);
/// How long nothing was published before upkeep begins: what its threads do is felt by a commit that comes meanwhile, and commits come
/// in bursts.
const CALM: Duration = Duration::from_secs(2);
/// And for how long it is put off at the most, where commits never stop.
const PUT_OFF: Duration = Duration::from_secs(300);
/// How long a step leaves behind itself at the least, for epochs to begin.
const PAUSE_WHILE_BUSY: Duration = Duration::from_millis(5);
/// How often it is looked whether a collection is due or asked for, while there is nothing else to do.
const LOOK: Duration = Duration::from_millis(200);
/// How often it is looked whether a thread of upkeep or of a collection has ended.
const PAUSE_WHILE_WAITING: Duration = Duration::from_millis(20);
/// How long upkeep waits after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How many epochs share one batch at the most, unless a replay asks for another number.
pub(super) const MAX_BATCH: usize = 64;
/// How many epochs may be under way: enough to fill batches, few enough that stopping is quick.
const MAX_OPEN: usize = 96;

pub(super) use super::pace::Head;

/// What is called for every published version.
pub type OnPublished = Box<dyn FnMut(&Published) + Send>;

/// The publishing thread and what is under way.
pub(super) struct Publisher {
    targets: Option<Sender<(Target, usize)>>,
    open: Arc<Open>,
    /// How many changes may be under way, unless one epoch alone has more: what they lead to is in memory until it is
    /// published.
    max_changes: usize,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// How much may be under way, and until when.
pub(super) struct Room {
    /// How many epochs share one batch at the most.
    pub(super) max_batch: usize,
    /// How many changes may be under way.
    pub(super) max_changes: usize,
    /// Asked to end the work early.
    pub(super) stop: Stop,
}

/// How many epochs are under way, and what stopped the thread.
#[derive(Default)]
struct Open {
    state: Mutex<OpenState>,
    changed: Condvar,
    transient: Mutex<Transient>,
    /// The documents of each head, as far as epochs are published.
    documents: Mutex<FxHashMap<View, RoaringBitmap>>,
}

#[derive(Default)]
struct OpenState {
    epochs: usize,
    /// Changes of files that were fed with them.
    changes: usize,
    /// How long they take, as far as can be told.
    paces: Paces,
    failure: Option<ApplyError>,
    ended: bool,
    /// Whether upkeep may have something to do.
    is_untidy: bool,
    /// Whether a step removes what the graph may look up.
    is_silent: bool,
    /// Whether somebody waits for the end of that.
    is_awaited: bool,
    /// Whether somebody waits until nothing is left to do.
    is_hurried: bool,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, OpenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nobody announce an epoch from now on; returns whether none is under way.
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

    /// Whether nobody wants to publish anything.
    fn is_quiet(&self) -> bool {
        let state = self.lock();
        state.epochs == 0 && !state.is_awaited
    }

    /// Waits while too much is under way, until the thread has ended, or until no time is left once `stop` was asked for.
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
        // What an earlier tracker left to do.
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
    /// Of several sources none may have more under way than about a second takes: `shares` names the head then.
    pub(super) fn make_room(&self, changes: usize, shares: Option<Head>) -> Result<(), EngineError> {
        self.open.wait(&self.stop, |open| {
            let is_unfair = shares.is_some_and(|head| open.paces.is_too_much(head, changes));
            let is_too_much = is_unfair || open.changes.saturating_add(changes) > self.max_changes;
            open.epochs > MAX_OPEN || (open.epochs > 0 && is_too_much)
        })
    }

    /// Returns how many changes of a head are worked on in about half a second.
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

    /// Returns the documents, as far as epochs are published, that are worth another look.
    pub(super) fn transient(&self) -> Vec<(View, Document)> {
        self.open.transient.lock().unwrap_or_else(PoisonError::into_inner).documents()
    }

    /// Returns the documents of a head, as far as epochs are published.
    pub(super) fn documents_of(&self, head: View) -> RoaringBitmap {
        let documents = self.open.documents.lock().unwrap_or_else(PoisonError::into_inner);
        documents.get(&head).cloned().unwrap_or_default()
    }

    /// Returns whether everything announced is published.
    pub(super) fn is_idle(&self) -> bool {
        self.open.lock().epochs == 0
    }

    /// Waits until upkeep has nothing more to do, `stop` asks to stop, or the thread has ended.
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
            // The thread catches its own panics and leaves them as its failure.
            let _ = thread.join();
        }
    }
}

/// Lets the collector take a step, if there is one to take.
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

/// When upkeep may begin.
struct Patience {
    published: Instant,
    /// Since when it has something to do.
    untidy: Option<Instant>,
    /// After a failure: nothing is tried before.
    not_before: Instant,
}

impl Patience {
    fn new() -> Self {
        let now = Instant::now();
        Self { published: now, untidy: Some(now), not_before: now }
    }

    /// Returns how long upkeep has to wait; not at all where somebody waits for the end of it.
    fn left(&self, is_hurried: bool) -> Duration {
        let calm = if is_hurried { self.published } else { self.published + CALM };
        let latest = self.untidy.map_or(calm, |untidy| calm.min(untidy + PUT_OFF));
        latest.max(self.not_before).saturating_duration_since(Instant::now())
    }
}

/// Waits for the next finished epoch, with steps of upkeep and of collecting while none is under way; returns nothing when no
/// more will come.
fn next_epoch(
    writer: &mut IndexWriter,
    collector: &mut Collector,
    finished: &Receiver<EpochDone>,
    open: &Open,
    patience: &mut Patience,
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
            // While epochs are under way, what heads hold may be half of what they will.
            Err(RecvTimeoutError::Timeout) if open.lock().epochs > 0 => continue,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let begun = Instant::now();
        // Upkeep and collecting look at rows all over the file.
        writer.let_go_of_much();
        let turn = collect(writer, collector, open);
        // Who waits for upkeep waits for this as well.
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

/// Takes a step of upkeep. After a failure it waits a while, and so does nobody else.
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
    let mut patience = Patience::new();
    while let Some(done) = next_epoch(&mut writer, &mut collector, finished, open, &mut patience) {
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
            // Also what only brought back what heads hold.
            open.is_untidy = true;
            open.epochs -= number;
            open.changes -= changes;
            open.paces.published(number);
        }
        open.changed.notify_all();
    }
    drop(collector);
    // The tracker stops in good order: merges that run are finished, so that the store is left as small as it is.
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
        // Nobody is held up by a step that never began.
        publisher.announce(target(), 1, (View(1), false)).unwrap();
    }
}

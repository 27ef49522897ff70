//! Start and stop the graph behind a plain handle: no type of timely shows outside this crate.
//!
//! In: [`Mill::feed`], one call an epoch. Out: one [`EpochDone`] an epoch, in order, from [`Mill::finished`].
//!
//! **Invariant:** an epoch comes out only when its frontier has passed: every result it needs is in the memo. Epochs are
//! fed in ascending order and come out in that order, also those that change nothing.
//!
//! One worker is the default: small epochs are most of the work, and a second worker makes each of them wait for two. The
//! expensive stages have threads of their own.

use crate::code::Outliner;
use crate::data::{CardedEntry, Document, Epoch, File, FileChange, View};
use crate::embed::Embedder;
use crate::graph::{self, Parts, Row};
use crate::memo::{Contents, Memo};
use crate::rules::Rules;
use crate::stage::{Halt, Pool, Time};
use crate::work::{Ledger, Work};
use differential_dataflow::input::InputSession;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use timely::dataflow::ProbeHandle;
use timely::scheduling::SyncActivator;
use timely::worker::Worker;

/// How often a worker that has nothing to do, and no driver that wakes it, looks whether the graph is halted.
const LOOK: Duration = Duration::from_millis(100);

/// What a mill is made of.
#[derive(Clone)]
pub struct MillParts {
    /// Which path is cleaned and cut how.
    pub rules: Arc<Rules>,
    /// Where results are remembered.
    pub memo: Arc<dyn Memo>,
    /// Where contents come from.
    pub contents: Arc<dyn Contents>,
    /// The model that embeds.
    pub embedder: Arc<dyn Embedder>,
    /// What parses: in processes of its own, or in this one ([`InProcess`](crate::code::InProcess)).
    pub outliner: Arc<dyn Outliner>,
}

/// How many threads a mill has.
#[derive(Clone, Copy, Debug)]
pub struct MillThreads {
    /// Workers of the dataflow.
    pub workers: usize,
    /// Threads on which contents are cleaned, cut and embedded.
    pub pool: usize,
}

/// What one epoch changed, in all views.
#[derive(Debug)]
pub struct EpochDone {
    /// Which epoch.
    pub epoch: Epoch,
    /// Entries that came (+1) or went (−1), each with its card, by view, sorted.
    pub entries: Vec<(View, CardedEntry, isize)>,
    /// Files whose row came (+1) or went (−1), by view, sorted.
    pub documents: Vec<(View, Document, isize)>,
    /// What the expensive stages did for it.
    pub work: Work,
    /// When it was fed.
    pub fed: Instant,
    /// When all of it had come out of the graph.
    pub finished: Instant,
}

/// Why a mill cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MillError {
    /// The operating system gave no thread.
    #[error("cannot start the dataflow's threads")]
    Threads(#[source] std::io::Error),
    /// The worker did not start.
    #[error("cannot start the dataflow: {0}")]
    Start(String),
    /// The worker ended; what was published stays, and a new start continues from there.
    #[error("the dataflow's worker has stopped; start again to continue from the last published version")]
    Stopped,
}

struct Feed {
    epoch: Epoch,
    changes: Vec<(File, isize)>,
    fed: Instant,
}

/// A running graph.
pub struct Mill {
    feeds: Option<mpsc::Sender<Feed>>,
    finished: Option<mpsc::Receiver<EpochDone>>,
    activator: SyncActivator,
    guards: Option<timely::communication::WorkerGuards<()>>,
    halt: Halt,
    outliner: Arc<dyn Outliner>,
}

impl Mill {
    /// Starts the workers and the pool.
    ///
    /// # Errors
    /// Where threads cannot be had.
    pub fn start(parts: MillParts, threads: MillThreads) -> Result<Self, MillError> {
        let halt = Halt::default();
        let pool = Pool::start(threads.pool, halt.clone()).map_err(MillError::Threads)?;
        let MillParts { rules, memo, contents, embedder, outliner } = parts;
        let ledger = Arc::new(Ledger::default());
        let parts = Parts { rules, memo, contents, embedder, outliner: outliner.clone(), ledger, pool };
        let (feeds, queue) = mpsc::channel();
        let (done, finished) = mpsc::channel();
        let (started, activator) = mpsc::channel();
        // Worker 0 takes the driver's ends; the others only do their share of the graph.
        let driver = Mutex::new(Some((queue, done, started)));
        let halting = halt.clone();
        let config = timely::Config::process(threads.workers.max(1));
        let guards = timely::execute(config, move |worker| {
            let driver =
                (worker.index() == 0).then(|| driver.lock().unwrap_or_else(PoisonError::into_inner).take()).flatten();
            run_worker(worker, &parts, driver, &halting);
        })
        .map_err(MillError::Start)?;
        let activator = activator.recv().map_err(|_| MillError::Stopped)?;
        Ok(Self { feeds: Some(feeds), finished: Some(finished), activator, guards: Some(guards), halt, outliner })
    }

    /// Feeds one epoch: what changed in `view`. Epochs must ascend.
    ///
    /// # Errors
    /// Where the worker has ended.
    pub fn feed(&self, epoch: Epoch, view: View, changes: Vec<FileChange>) -> Result<(), MillError> {
        let mut rows = Vec::with_capacity(changes.len());
        for FileChange { path, before, after } in changes {
            if let Some(state) = before {
                rows.push((File { view, path: path.clone(), state }, -1));
            }
            if let Some(state) = after {
                rows.push((File { view, path, state }, 1));
            }
        }
        let feeds = self.feeds.as_ref().ok_or(MillError::Stopped)?;
        feeds.send(Feed { epoch, changes: rows, fed: Instant::now() }).map_err(|_| MillError::Stopped)?;
        // First sent, then woken: the other way round the worker could fall asleep over a full queue.
        self.activator.activate().map_err(|_| MillError::Stopped)
    }

    /// Returns the channel on which finished epochs arrive, the first time it is asked.
    pub fn finished(&mut self) -> Option<mpsc::Receiver<EpochDone>> {
        self.finished.take()
    }

    /// Ends the graph without finishing what is under way: no epoch comes out any more. What is in the memo by then stays
    /// there; a stage's job that runs is ended soon, and those behind it are dropped.
    pub fn halt(&self) {
        self.halt.ask();
        self.outliner.halt();
        // Fails only where the worker has ended.
        let _ = self.activator.activate();
    }

    /// Ends the input, waits until what was fed has come out, and stops the threads.
    ///
    /// # Errors
    /// Where a worker had ended before.
    pub fn stop(mut self) -> Result<(), MillError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), MillError> {
        drop(self.feeds.take());
        // Fails only where the worker has ended, and then there is nobody to wake.
        let _ = self.activator.activate();
        let Some(guards) = self.guards.take() else { return Ok(()) };
        guards.join().into_iter().try_for_each(|ended| ended.map_err(|_| MillError::Stopped))
    }
}

impl Drop for Mill {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!("{error}");
        }
    }
}

type Driver = (mpsc::Receiver<Feed>, mpsc::Sender<EpochDone>, mpsc::Sender<SyncActivator>);

/// Builds one worker's part of the graph and, on worker 0, drives it until the feed ends.
fn run_worker(worker: &mut Worker, parts: &Parts, driver: Option<Driver>, halt: &Halt) {
    let activator = worker.sync_activator_for(vec![worker.next_dataflow_index()]);
    let mut input = InputSession::<Time, File, isize>::new();
    let probe = ProbeHandle::new();
    let gathered = worker.dataflow::<Time, _, _>(|scope| graph::build(input.to_collection(scope), parts, &probe));
    let Some((feeds, done, started)) = driver else {
        // An input that stays open would hold every frontier.
        input.close();
        while worker.has_dataflows() && !halt.is_asked() {
            worker.step_or_park(Some(LOOK));
        }
        return drop_dataflows(worker, halt);
    };
    if started.send(activator).is_err() {
        return;
    }
    let mut open: VecDeque<(Epoch, Instant)> = VecDeque::new();
    let mut feeding = true;
    while feeding || !open.is_empty() {
        if halt.is_asked() {
            return drop_dataflows(worker, halt);
        }
        loop {
            match feeds.try_recv() {
                Ok(Feed { epoch, changes, fed }) => {
                    input.advance_to(epoch.0);
                    for (file, change) in changes {
                        input.update(file, change);
                    }
                    input.advance_to(epoch.0 + 1);
                    open.push_back((epoch, fed));
                }
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => {
                    feeding = false;
                    break;
                }
            }
        }
        input.flush();
        if feeding || !open.is_empty() {
            // Woken by the driver, also to halt, and by the pool for every batch that is done.
            worker.step_or_park(None);
        }
        while let Some(&(epoch, fed)) = open.front() {
            if probe.less_than(&(epoch.0 + 1)) {
                break;
            }
            open.pop_front();
            let finished = finish(gathered.borrow_mut().take(epoch.0), epoch, parts.ledger.take(epoch), fed);
            if done.send(finished).is_err() {
                // Nobody listens any more: what is in flight may be dropped.
                return;
            }
        }
    }
}

/// Drops what a halted graph holds, so that timely has nothing to go on with.
fn drop_dataflows(worker: &mut Worker, halt: &Halt) {
    if halt.is_asked() {
        worker.installed_dataflows().into_iter().for_each(|dataflow| worker.drop_dataflow(dataflow));
    }
}

fn finish(changes: Vec<(Row, isize)>, epoch: Epoch, work: Work, fed: Instant) -> EpochDone {
    let (mut entries, mut documents) = (Vec::new(), Vec::new());
    for (row, change) in changes {
        match row {
            Row::Entry(view, entry) => entries.push((view, entry, change)),
            Row::Document(view, document) => documents.push((view, document, change)),
        }
    }
    EpochDone { epoch, entries, documents, work, fed, finished: Instant::now() }
}

//! Starts and stops the graph behind a plain handle: no type of timely is visible outside this crate.
//!
//! In: [`Mill::feed`], one call per epoch. Out: one [`EpochDone`] per epoch, in order, from [`Mill::finished`].
//!
//! **Invariant:** an epoch is returned only when its frontier has passed: the memo has every result that it needs. Epochs are fed
//! in ascending order and returned in that order, including those without changes.
//!
//! One worker is the default: most work is small epochs, and with a second worker each of them waits for both. The expensive
//! stages have their own threads.

use crate::code::Outliner;
use crate::data::{Document, Entry, Epoch, File, FileChange, View};
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

/// How often a worker that is idle and was not woken checks whether the graph is halted.
const LOOK: Duration = Duration::from_millis(100);

/// The parts of a mill.
#[derive(Clone)]
pub struct MillParts {
    /// The rules of cleaning and cutting.
    pub rules: Arc<Rules>,
    /// The memo of results.
    pub memo: Arc<dyn Memo>,
    /// The source of contents.
    pub contents: Arc<dyn Contents>,
    /// The model that embeds.
    pub embedder: Arc<dyn Embedder>,
    /// The parser: in worker processes, or in this process ([`InProcess`](crate::code::InProcess)).
    pub outliner: Arc<dyn Outliner>,
}

/// The numbers of threads of a mill.
#[derive(Clone, Copy, Debug)]
pub struct MillThreads {
    /// Workers of the dataflow.
    pub workers: usize,
    /// Threads on which contents are cleaned, cut and embedded.
    pub pool: usize,
}

/// The changes of one epoch, in all views.
#[derive(Debug)]
pub struct EpochDone {
    /// The epoch.
    pub epoch: Epoch,
    /// Entries inserted (+1) or retracted (−1), by view, sorted.
    pub entries: Vec<(View, Entry, isize)>,
    /// Files whose row was inserted (+1) or retracted (−1), by view, sorted.
    pub documents: Vec<(View, Document, isize)>,
    /// The work of the expensive stages.
    pub work: Work,
    /// The time when it was fed.
    pub fed: Instant,
    /// The time when all of it had left the graph.
    pub finished: Instant,
}

/// Reason why a mill cannot continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MillError {
    /// The operating system refused a thread.
    #[error("cannot start the dataflow's threads")]
    Threads(#[source] std::io::Error),
    /// The worker did not start.
    #[error("cannot start the dataflow: {0}")]
    Start(String),
    /// The worker ended. Published epochs stay, and a new start continues from there.
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
    /// If threads cannot be started.
    pub fn start(parts: MillParts, threads: MillThreads) -> Result<Self, MillError> {
        let halt = Halt::default();
        let pool = Pool::start(threads.pool, halt.clone()).map_err(MillError::Threads)?;
        let MillParts { rules, memo, contents, embedder, outliner } = parts;
        let ledger = Arc::new(Ledger::default());
        let parts = Parts { rules, memo, contents, embedder, outliner: outliner.clone(), ledger, pool };
        let (feeds, queue) = mpsc::channel();
        let (done, finished) = mpsc::channel();
        let (started, activator) = mpsc::channel();
        // Worker 0 takes the driver's ends; further workers only do their share of the graph.
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

    /// Feeds one epoch: the changes in `view`. Epochs must ascend.
    ///
    /// # Errors
    /// If the worker has ended.
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
        // First sent, then woken: in the other order the worker could go to sleep over a full queue.
        self.activator.activate().map_err(|_| MillError::Stopped)
    }

    /// Returns the channel of finished epochs, on the first call.
    pub fn finished(&mut self) -> Option<mpsc::Receiver<EpochDone>> {
        self.finished.take()
    }

    /// Ends the graph without finishing the work in progress: no further epoch is returned. Results in the memo stay. A running
    /// stage job ends soon, and waiting jobs are dropped.
    pub fn halt(&self) {
        self.halt.ask();
        self.outliner.halt();
        // This fails only if the worker has ended.
        let _ = self.activator.activate();
    }

    /// Ends the input, waits until all fed epochs are finished, and stops the threads.
    ///
    /// # Errors
    /// If a worker had ended before.
    pub fn stop(mut self) -> Result<(), MillError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), MillError> {
        drop(self.feeds.take());
        // This fails only if the worker has ended, and then no wake-up is needed.
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
            // The driver wakes it, also to halt, and the pool does for every finished batch.
            worker.step_or_park(None);
        }
        while let Some(&(epoch, fed)) = open.front() {
            if probe.less_than(&(epoch.0 + 1)) {
                break;
            }
            open.pop_front();
            let finished = finish(gathered.borrow_mut().take(epoch.0), epoch, parts.ledger.take(epoch), fed);
            if done.send(finished).is_err() {
                // The receiver is gone: work in flight may be dropped.
                return;
            }
        }
    }
}

/// Drops the state of a halted graph, so that timely stops.
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

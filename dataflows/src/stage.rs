//! The asynchronous stage: expensive work runs here, off the dataflow's worker, once per distinct input.
//!
//! In: a collection of inputs, each present once. Out: the same collection, each update delayed until the memo holds the result
//! of its input, so that later operators can simply look it up.
//!
//! ```text
//!            known to the memo ───────────────────────────────►┐
//!  update ──►┤                                                 ├──► the same update, at its own time
//!            new ──► waiting list ──► batch ──► pool ──► memo ─►┘
//!                    (one per input)   by epoch   (a capability is held for each waiting time)
//! ```
//!
//! **Invariant:** an epoch's frontier passes only when every input of that epoch has its result in the memo. The stage's function
//! runs once per distinct input that the memo lacks, and never because of a retraction. An input that panics, or comes back
//! without a result, gets a fault as its result, because a lost job would hold the frontier for ever. Jobs are dropped only once
//! the graph is halted, when no frontier matters any more.
//!
//! A retraction waits until the pending insertion of the same input is done, because it uses the same result in the memo. The
//! queue is ordered by epoch and not by arrival: `distinct` emits many epochs in key order, and first-in-first-out would finish
//! the first epoch last.

use crate::data::{Epoch, StageName};
use crate::work::Ledger;
use differential_dataflow::{AsCollection, ExchangeData, Hashable, VecCollection};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::Operator;
use timely::scheduling::SyncActivator;

/// The graph's time: an [`Epoch`]'s number.
pub(crate) type Time = u64;

/// One expensive stage: how to check whether a result is known, and how to compute it.
pub(crate) trait Task<K>: Send + Sync + 'static {
    /// Returns the stage's name in the receipt of the work.
    fn name(&self) -> StageName;
    /// Returns whether the memo holds the result of this input.
    fn is_known(&self, input: &K) -> bool;
    /// Computes the results of these inputs and puts them into the memo; returns how many are faults.
    fn run(&self, inputs: &[K]) -> u64;
    /// Puts a fault into the memo as the result of an input for which `run` left none.
    fn give_up(&self, input: &K, reason: String);
    /// Returns the most inputs of one call.
    fn batch(&self) -> usize;
}

/// A request to end the graph without finishing the work in progress; clones share it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Halt(Arc<AtomicBool>);

impl Halt {
    /// Makes the request.
    pub(crate) fn ask(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether it was made.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A bounded pool of threads beside the dataflow's workers; it ends when its last handle is dropped.
#[derive(Clone)]
pub(crate) struct Pool {
    jobs: crossbeam_channel::Sender<Box<dyn FnOnce() + Send>>,
    threads: usize,
    halt: Halt,
}

impl Pool {
    /// Starts `threads` threads (at least one).
    ///
    /// # Errors
    /// If the operating system refuses a thread.
    pub(crate) fn start(threads: usize, halt: Halt) -> std::io::Result<Self> {
        let threads = threads.max(1);
        let (jobs, queue) = crossbeam_channel::unbounded::<Box<dyn FnOnce() + Send>>();
        for index in 0..threads {
            let queue = queue.clone();
            std::thread::Builder::new()
                .name(format!("tidemill-pool-{index}"))
                .spawn(move || queue.iter().for_each(|job| job()))?;
        }
        Ok(Self { jobs, threads, halt })
    }
}

/// Delays every update until the memo holds the result of its input.
pub(crate) fn asynchronous<'s, K, T>(
    input: VecCollection<'s, Time, K>,
    task: Arc<T>,
    pool: Pool,
    ledger: Arc<Ledger>,
) -> VecCollection<'s, Time, K>
where
    K: ExchangeData + Hashable,
    T: Task<K>,
{
    let scope = input.inner.scope();
    let pact = Exchange::new(|update: &(K, Time, isize)| update.0.hashed().into());
    let name = format!("Stage({})", task.name());
    let stream = input.inner.unary_frontier(pact, &name, move |initial, info| {
        // This capability would hold the frontier at the beginning of time.
        drop(initial);
        let activator = scope.worker().sync_activator_for(info.address.to_vec());
        let (done, finished) = mpsc::channel::<Vec<K>>();
        let mut state = State {
            waiting: BTreeMap::new(),
            queue: BTreeMap::new(),
            capabilities: BTreeMap::new(),
            running: 0,
            task,
            pool,
            ledger,
            done,
            activator,
        };
        move |(input, _frontier), output| {
            input.for_each(|capability, updates| {
                let mut session = output.session(&capability);
                for update in updates.drain(..) {
                    let time = update.1;
                    if let Some(ready) = state.admit(update, |at| capability.delayed(at, 0)) {
                        debug_assert!(ready.1 == time);
                        session.give(ready);
                    }
                }
            });
            while let Ok(inputs) = finished.try_recv() {
                state.running -= 1;
                for update in inputs.into_iter().filter_map(|input| state.waiting.remove(&input)).flatten() {
                    let time = update.1;
                    if let Some((capability, waiting)) = state.capabilities.get_mut(&time) {
                        output.session(&*capability).give(update);
                        *waiting -= 1;
                        if *waiting == 0 {
                            // This stage no longer holds the frontier at this time.
                            state.capabilities.remove(&time);
                        }
                    }
                }
            }
            state.dispatch();
        }
    });
    stream.as_collection()
}

/// The state of one worker's part of a stage.
struct State<K, T> {
    /// Updates of one input that wait for its result.
    waiting: BTreeMap<K, Vec<(K, Time, isize)>>,
    queue: BTreeMap<Time, VecDeque<K>>,
    capabilities: BTreeMap<Time, (Capability<Time>, usize)>,
    running: usize,
    task: Arc<T>,
    pool: Pool,
    ledger: Arc<Ledger>,
    done: mpsc::Sender<Vec<K>>,
    activator: SyncActivator,
}

impl<K: ExchangeData, T: Task<K>> State<K, T> {
    /// Passes an update with a known result; otherwise delays it, and queues its input the first time.
    fn admit(
        &mut self,
        update: (K, Time, isize),
        capability: impl FnOnce(&Time) -> Capability<Time>,
    ) -> Option<(K, Time, isize)> {
        let (input, time, change) = (&update.0, update.1, update.2);
        let waiting = self.waiting.get_mut(input);
        if waiting.is_none() && self.task.is_known(input) {
            if change > 0 {
                self.ledger.note(Epoch(time), self.task.name(), |work| work.cache_hits += 1);
            }
            return Some(update);
        }
        self.capabilities.entry(time).or_insert_with(|| (capability(&time), 0)).1 += 1;
        match waiting {
            Some(waiting) => waiting.push(update),
            None => {
                self.queue.entry(time).or_default().push_back(input.clone());
                self.waiting.insert(input.clone(), vec![update]);
            }
        }
        None
    }

    /// Hands batches to the pool while it has room: two per thread, so that no thread waits for this worker.
    fn dispatch(&mut self) {
        while self.running < 2 * self.pool.threads && !self.pool.halt.is_asked() {
            let mut batch = Vec::new();
            let mut epochs = Vec::new();
            while batch.len() < self.task.batch() {
                let Some(mut first) = self.queue.first_entry() else { break };
                let time = *first.key();
                match first.get_mut().pop_front() {
                    Some(input) => {
                        batch.push(input);
                        epochs.push(time);
                    }
                    None => {
                        first.remove();
                    }
                }
            }
            if batch.is_empty() {
                return;
            }
            let (task, ledger, done, activator, halt) = (
                self.task.clone(),
                self.ledger.clone(),
                self.done.clone(),
                self.activator.clone(),
                self.pool.halt.clone(),
            );
            let job = move || {
                if halt.is_asked() {
                    return;
                }
                work_off(&*task, &batch, &epochs, &ledger, &halt);
                // Both fail only if the worker has ended, and then the answer is not needed.
                let _ = done.send(batch);
                let _ = activator.activate();
            };
            if self.pool.jobs.send(Box::new(job)).is_err() {
                unreachable!("the pool's threads end only after its last handle, and this stage holds one");
            }
            self.running += 1;
        }
    }
}

/// Runs a task on a batch, turns a panic into faults, and records the work.
fn work_off<K, T: Task<K>>(task: &T, batch: &[K], epochs: &[Time], ledger: &Ledger, halt: &Halt) {
    let started = Instant::now();
    let mut faults = catch_unwind(AssertUnwindSafe(|| task.run(batch))).unwrap_or_else(|_| {
        // One input of the batch panicked: run alone, each either gets its result or is found to be the cause.
        let unfinished = batch.iter().filter(|input| !task.is_known(input));
        unfinished.map(|input| run_alone(task, input)).sum()
    });
    if halt.is_asked() {
        return;
    }
    for input in batch.iter().filter(|input| !task.is_known(input)) {
        task.give_up(input, format!("the {} stage returned without a result", task.name()));
        faults += 1;
    }
    let share = started.elapsed() / u32::try_from(batch.len()).unwrap_or(u32::MAX).max(1);
    for &time in epochs {
        ledger.note(Epoch(time), task.name(), |work| {
            work.calls += 1;
            work.time += share;
        });
    }
    if let (Some(&time), true) = (epochs.first(), faults > 0) {
        ledger.note(Epoch(time), task.name(), |work| work.faults += faults);
    }
}

/// Runs a task on one input; returns 1 if that ends in a fault, else 0.
fn run_alone<K, T: Task<K>>(task: &T, input: &K) -> u64 {
    catch_unwind(AssertUnwindSafe(|| task.run(std::slice::from_ref(input)))).unwrap_or_else(|panic| {
        task.give_up(input, format!("the {} stage panicked: {}", task.name(), panic_text(&*panic)));
        1
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

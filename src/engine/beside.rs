//! Calls into a source on threads beside the one that waits, since a file system may hang.
//!
//! In: a call. Out: what it came to, or that it has not come back.
//!
//! | a source | a call | then |
//! |---|---|---|
//! | answers | is made on a thread that is kept for the next | it answers |
//! | answers | is made, and its caller leaves before the answer | it is out |
//! | is out | is not made | it is out |
//! | is out | comes back | it answers, once none is out any more |
//!
//! **Invariant:** a caller never waits for longer than it says. While a source is out nothing more is asked of it, so what hangs holds
//! as many threads as asked at the same time, and no more however long it lasts.
//!
//! Where one source is tracked alone its calls are made where they are wanted: there is none to be held up.

use super::EngineError;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a thread without a call is kept.
const IDLE: Duration = Duration::from_secs(60);

type Call = Box<dyn FnOnce() + Send>;

/// The threads of one source.
pub(super) struct Beside {
    // Without capacity: a call is handed over only where a thread waits for one.
    calls: Sender<Call>,
    waiting: Receiver<Call>,
    /// Calls whose callers have left.
    out: AtomicUsize,
}

/// A call that was made.
pub(super) struct Awaited<T> {
    answer: Receiver<thread::Result<T>>,
    /// Whether one side is done: the caller with waiting, or the call.
    is_over: Arc<AtomicBool>,
    beside: Arc<Beside>,
    since: Instant,
}

impl Beside {
    pub(super) fn new() -> Arc<Self> {
        let (calls, waiting) = bounded(0);
        Arc::new(Self { calls, waiting, out: AtomicUsize::new(0) })
    }

    /// Returns whether a call has not come back that its caller waited for in vain.
    pub(super) fn is_out(&self) -> bool {
        self.out.load(Ordering::SeqCst) > 0
    }

    /// Makes a call.
    ///
    /// # Errors
    /// Where the operating system gives no thread.
    pub(super) fn begin<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Awaited<T>, EngineError> {
        let (sender, answer) = bounded(1);
        let is_over = Arc::new(AtomicBool::new(false));
        let awaited = Awaited { answer, is_over: is_over.clone(), beside: self.clone(), since: Instant::now() };
        let beside = self.clone();
        let made: Call = Box::new(move || {
            let answer = catch_unwind(AssertUnwindSafe(call));
            if is_over.swap(true, Ordering::SeqCst) {
                beside.out.fetch_sub(1, Ordering::SeqCst);
            } else {
                // It has room for one.
                let _ = sender.send(answer);
            }
        });
        match self.calls.try_send(made) {
            Ok(()) => {}
            Err(TrySendError::Full(made) | TrySendError::Disconnected(made)) => {
                if let Err(error) = self.start(made) {
                    // It will never come back, and is not waited for.
                    awaited.is_over.store(true, Ordering::SeqCst);
                    return Err(error);
                }
            }
        }
        Ok(awaited)
    }

    /// Starts a thread with its first call.
    fn start(&self, first: Call) -> Result<(), EngineError> {
        let waiting = self.waiting.clone();
        let work = move || {
            first();
            while let Ok(call) = waiting.recv_timeout(IDLE) {
                call();
            }
        };
        let started = thread::Builder::new().name("tidemill-beside".to_owned()).spawn(work);
        started.map(drop).map_err(|source| EngineError::Thread { source })
    }

    /// Makes a call and waits for so long; nothing comes of it where the source is out, or is from now on.
    pub(super) fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if self.is_out() {
            return None;
        }
        self.begin(call).ok()?.wait(patience).ok()
    }
}

impl<T> Awaited<T> {
    /// Waits for so long; returns itself where that is in vain.
    pub(super) fn wait(self, patience: Duration) -> Result<T, Self> {
        match self.answer.recv_timeout(patience) {
            Ok(answer) => Ok(answer.unwrap_or_else(|panic| resume_unwind(panic))),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(self),
        }
    }

    /// Returns whether waiting would take no time.
    pub(super) fn is_ready(&self) -> bool {
        !self.answer.is_empty()
    }

    /// Returns since when it is waited for.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        // Counted first, so that a call that comes back right now is not taken off before.
        self.beside.out.fetch_add(1, Ordering::SeqCst);
        if self.is_over.swap(true, Ordering::SeqCst) {
            self.beside.out.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const SOON: Duration = Duration::from_millis(10);
    const LATE: Duration = Duration::from_secs(60);

    #[test]
    fn a_source_is_out_from_the_call_that_is_left_until_it_comes_back() {
        let beside = Beside::new();
        assert_eq!(beside.ask(LATE, || 7), Some(7));
        let (release, held) = mpsc::channel::<()>();
        let begun = Instant::now();
        assert_eq!(beside.ask(SOON, move || held.recv().is_ok()), None);
        assert!(beside.is_out());
        assert_eq!(beside.ask(LATE, || unreachable!("nothing is asked of it")), None::<()>);
        assert!(begun.elapsed() < LATE);
        release.send(()).unwrap();
        while beside.is_out() {
            thread::yield_now();
        }
        assert_eq!(beside.ask(LATE, || 8), Some(8));
    }

    #[test]
    fn a_call_that_is_kept_is_not_out_and_is_answered_when_it_comes() {
        let beside = Beside::new();
        let (release, held) = mpsc::channel();
        let awaited = beside.begin(move || held.recv().unwrap()).unwrap();
        assert!(!awaited.is_ready());
        let awaited = awaited.wait(SOON).err().unwrap();
        assert!(!beside.is_out());
        assert_eq!(beside.ask(LATE, || 1), Some(1), "another thread takes it");
        release.send(9).unwrap();
        assert_eq!(awaited.wait(LATE).ok(), Some(9));
        assert!(!beside.is_out());
    }

    #[test]
    fn a_panic_is_that_of_the_caller() {
        let beside = Beside::new();
        let caught = catch_unwind(AssertUnwindSafe(|| beside.ask(LATE, || panic!("inside"))));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"inside"));
        assert_eq!(beside.ask(LATE, || 1), Some(1));
    }
}

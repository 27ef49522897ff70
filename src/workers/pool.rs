//! The pool: as many workers as there are concurrent jobs, kept for later ones.
//!
//! In: texts, from any thread. Out: outlines.
//!
//! **Invariant:** there are never more workers than threads that asked at the same time, and no two threads use one. A text that
//! crashed a worker is tried once more in a new one: only a crash there is blamed on the text.

use super::WorkerError;
use super::message::{JobKind, JobResult};
use super::process::{Ended, Worker};
use dataflows::code::{Outline, OutlineError, Outliner};
use dataflows::data::NoSyntax;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Worker processes that parse.
pub struct Workers {
    program: PathBuf,
    idle: Mutex<Vec<Worker>>,
    is_halted: AtomicBool,
}

impl Workers {
    /// Starts the first worker; more are started on demand.
    ///
    /// # Errors
    /// If that cannot be done, or `program` is another build.
    pub fn start(program: &Path) -> Result<Self, WorkerError> {
        let first = Worker::start(program, &|| false)?;
        Ok(Self { program: program.to_owned(), idle: Mutex::new(vec![first]), is_halted: AtomicBool::new(false) })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Relaxed)
    }

    /// Runs a job in an idle worker, or in a new one.
    fn run(&self, language: &str, text: &str, idle: Option<Worker>) -> Result<JobResult, Ended> {
        let is_halted = || self.is_halted();
        let mut worker = match idle {
            Some(idle) => idle,
            None => Worker::start(&self.program, &is_halted).map_err(|error| Ended::Gone(chain(&error)))?,
        };
        let done = worker.run(JobKind::Outline { language: language.to_owned() }, text, &is_halted)?;
        self.idle().push(worker);
        Ok(done)
    }
}

impl Outliner for Workers {
    fn outline(&self, language: &str, text: &str) -> Result<Outline, OutlineError> {
        if self.is_halted() {
            return Err(OutlineError::Halted);
        }
        let idle = self.idle().pop();
        let was_used = idle.is_some();
        let mut done = self.run(language, text, idle);
        let is_worth_another = match &done {
            Err(Ended::Crashed) => true,
            // Another cause may have ended it while it was idle.
            Err(Ended::Gone(_)) => was_used,
            Ok(_) | Err(Ended::Limit(_) | Ended::Halted) => false,
        };
        if is_worth_another && !self.is_halted() {
            done = self.run(language, text, None);
        }
        let failed = |reason| OutlineError::Failed { reason };
        match done {
            Ok(JobResult::Outline(outline)) => Ok(outline),
            Ok(JobResult::Panicked(reason)) => Err(failed(format!("the parser panicked: {reason}"))),
            Err(_) if self.is_halted() => Err(OutlineError::Halted),
            Err(Ended::Crashed) => Ok(Outline::Without(NoSyntax::Crash)),
            Err(Ended::Limit(reason) | Ended::Gone(reason)) => Err(failed(reason)),
            Err(Ended::Halted) => Err(OutlineError::Halted),
        }
    }

    fn halt(&self) {
        self.is_halted.store(true, Ordering::Relaxed);
    }
}

/// Returns an error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

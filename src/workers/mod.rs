//! Worker processes: code that a hostile document may crash runs outside the tracker.
//!
//! In: jobs (today: a text to parse). Out: their results, or why they did not end.
//!
//! ```text
//!  tracker                                     worker: the same program, `tidemill --worker`
//!  a pool's thread ── job, text ──► pipe ──►   parsing thread, fixed stack
//!       │ waits, watches its clock             limits: processor time, memory, no core file
//!       ◄──────────── outcome ◄─── pipe ◄──    main thread: ends the process when the tracker is gone
//! ```
//!
//! **Invariant:** a worker holds nothing persistent: no store, no file, no lock. Its failure costs only the current document. A
//! crash is a property of the document if it happens twice, the second time in a fresh process. A limit of time or memory is a
//! transient failure.
//!
//! A message names the kind of its job, so that parsers of other formats can be added.

mod message;
mod pool;
mod process;
mod serve;

pub use pool::Workers;
pub use serve::{is_worker, serve};

use dataflows::code::{InProcess, Outliner};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The argument that makes the program a worker.
const ARGUMENT: &str = "--worker";

/// Where texts are parsed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Parsing {
    /// In this process, which a crashing text ends too: for tests, and for programs that trust their texts.
    #[default]
    InProcess,
    /// In worker processes of this program, which must be tidemill itself.
    Workers(PathBuf),
}

impl Parsing {
    /// Returns the program's default: workers of the file that this process runs, even if another file has replaced it.
    #[must_use]
    pub fn of_this_program() -> Self {
        let own = Path::new("/proc/self/exe");
        let program = if own.exists() { Ok(own.to_owned()) } else { std::env::current_exe() };
        Self::Workers(program.unwrap_or_else(|_| PathBuf::from("tidemill")))
    }

    /// Returns the parser.
    ///
    /// # Errors
    /// If no worker can be started.
    pub fn outliner(&self) -> Result<Arc<dyn Outliner>, WorkerError> {
        Ok(match self {
            Self::InProcess => Arc::new(InProcess),
            Self::Workers(program) => Arc::new(Workers::start(program)?),
        })
    }
}

/// Reason why there is no worker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The operating system gave no process.
    #[error("cannot start a worker process of `{}`; see the limits of processes and memory (ulimit -u, ulimit -v)", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The process ended, or its greeting is not that of this build.
    #[error("cannot use `{}` as a worker process: {reason}; start the tracker again", program.display())]
    Greeting {
        /// The program.
        program: PathBuf,
        /// The failure.
        reason: String,
    },
}

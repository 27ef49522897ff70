//! Logs to standard error, so that standard output holds results only.
//!
//! In: the verbosity. Out: lines of `tracing`. `TIDEMILL_LOG` (in the syntax of `tracing`'s filters) overrides it.
//!
//! **Invariant:** colours go to terminals only, and never if `NO_COLOR` is set. A line that standard error refuses is lost and
//! has no other effect.

mod plain;

pub(crate) use plain::{is_active, plain};

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// How much is logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verbosity {
    /// Errors.
    Quiet,
    /// Warnings.
    Normal,
    /// Progress.
    Verbose,
    /// Everything.
    Debug,
}

/// Starts logging; a second call changes nothing.
pub fn start(verbosity: Verbosity) {
    let default = match verbosity {
        Verbosity::Quiet => "error",
        // A merge that a writer's end cuts short is begun again by the next one; tantivy warns of it.
        Verbosity::Normal => "warn,tantivy::indexer=error",
        Verbosity::Verbose => "info,tantivy::indexer=error",
        Verbosity::Debug => "debug",
    };
    let filter = EnvFilter::try_from_env("TIDEMILL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| plain::PlainLog)
        .with_ansi(!is_plain && std::io::stderr().is_terminal())
        // It would write to standard error, and panic if that failed.
        .log_internal_errors(false)
        .with_target(false)
        .without_time()
        .try_init();
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

//! Logs: to standard error, so that standard output holds results only.
//!
//! In: how much is wanted. Out: lines of `tracing`. `TIDEMILL_LOG` (in the syntax of `tracing`'s filters) overrides it.

mod plain;

pub(crate) use plain::{is_active, plain};

use tracing_subscriber::EnvFilter;

/// How much is logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verbosity {
    /// Errors.
    Quiet,
    /// Warnings.
    Normal,
    /// What is done.
    Verbose,
    /// Everything.
    Debug,
}

/// Starts logging; a second call changes nothing.
pub fn start(verbosity: Verbosity) {
    let default = match verbosity {
        Verbosity::Quiet => "error",
        Verbosity::Normal => "warn",
        Verbosity::Verbose => "info",
        Verbosity::Debug => "debug",
    };
    let filter = EnvFilter::try_from_env("TIDEMILL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| plain::PlainLog)
        .with_target(false)
        .without_time()
        .try_init();
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

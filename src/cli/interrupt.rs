//! Interrupts: the first asks for a good end, the second ends the process.
//!
//! In: Ctrl-C and SIGTERM. Out: a runtime that listens for them, and the wish to stop that they set.
//!
//! **Invariant:** whoever keeps the runtime is asked to stop at the first interrupt, and nothing that was published is lost by
//! the second.

use crate::engine::Stop;
use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Starts a runtime of so many threads that listens for interrupts as long as it lives.
pub(super) fn listening(threads: usize) -> Result<(Runtime, Stop)> {
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let stop = Stop::default();
    runtime.spawn(listen(stop.clone()));
    Ok((runtime, stop))
}

async fn listen(stop: Stop) {
    let (Ok(mut interrupts), Ok(mut terminations)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::warn!("cannot listen for interrupts; the next one ends the process at once, and loses nothing");
        return;
    };
    loop {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminations.recv() => {}
        }
        if stop.is_asked() {
            std::process::exit(130);
        }
        stop.ask();
    }
}

//! Interrupts: the first asks for a good end, the second ends the process.
//!
//! In: Ctrl-C and SIGTERM. Out: a runtime that listens for them, and the wish to stop that they set.
//!
//! **Invariant:** the command that keeps the runtime is asked to stop at the first interrupt, and nothing that was published is
//! lost by the second, nor by the end of a patience: what is durable is whole at any instruction.

use crate::engine::Stop;
use crate::resources::{can_open, can_start};
use anyhow::{Context, Result};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Files that the runtime opens to wait for events and signals, and some more.
const FILES: usize = 12;

/// How long a command may take to stop.
const PATIENCE: Duration = Duration::from_millis(900);

/// What becomes of a command that does not stop in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Patience {
    /// It is waited for.
    Wait,
    /// The process ends with status 0: the next start goes on from what is published.
    End,
}

/// Starts a runtime of so many threads that listens for interrupts as long as it lives.
pub(super) fn listening(threads: usize, patience: Patience) -> Result<(Runtime, Stop)> {
    // The runtime would panic; to work it needs one more, for the time in which one of its own does.
    can_open(FILES).context("cannot open the files that the runtime needs")?;
    can_start(threads + 1).context("cannot start a thread")?;
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let stop = Stop::default();
    runtime.spawn(listen(stop.clone(), patience));
    Ok((runtime, stop))
}

async fn listen(stop: Stop, patience: Patience) {
    let (Ok(mut interrupts), Ok(mut terminations)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::warn!("cannot listen for interrupts; the next one ends the process at once, and loses nothing");
        return;
    };
    // A file that may not become larger is an error then, instead of the end of the process.
    let _larger_files = signal(SignalKind::from_raw(libc::SIGXFSZ));
    loop {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminations.recv() => {}
        }
        if stop.is_asked() {
            std::process::exit(130);
        }
        stop.ask();
        if patience == Patience::End {
            // Beside the runtime, whose threads may all be at work.
            let ending = std::thread::Builder::new().name("tidemill-stop".to_owned());
            let ending = ending.spawn(|| {
                std::thread::sleep(PATIENCE);
                super::end_at_once(0);
            });
            if ending.is_err() {
                super::end_at_once(0);
            }
        }
    }
}

//! Interrupts: the first requests a normal end, the second ends the process.
//!
//! In: Ctrl-C and SIGTERM. Out: a runtime that listens for them, and the stop request that they set.
//!
//! **Invariant:** the command that holds the runtime gets a stop request at the first interrupt. Neither the second interrupt nor
//! the time limit loses a published version: durable data is consistent at any instruction.

use crate::engine::Stop;
use crate::resources::{can_open, can_start};
use anyhow::{Context, Result};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Files that the runtime opens to wait for events and signals, and some spare ones.
const FILES: usize = 12;

/// How long a command may take to stop.
const PATIENCE: Duration = Duration::from_millis(900);

/// What happens to a command that does not stop in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Patience {
    /// The process waits for it.
    Wait,
    /// The process ends with status 0: the next start continues from the published versions.
    End,
}

/// Starts a runtime of so many threads that listens for interrupts during its lifetime.
pub(super) fn listening(threads: usize, patience: Patience) -> Result<(Runtime, Stop)> {
    // The runtime would panic; it also needs one spare thread while one of its own is blocked.
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
    // A file that may not grow is an error then, instead of the end of the process.
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
            // Outside of the runtime, whose threads may all be busy.
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

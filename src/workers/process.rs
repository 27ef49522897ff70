//! One worker process, as the tracker sees it.
//!
//! In: a job. Out: its result, or how the process ended.
//!
//! **Invariant:** no call waits longer than the limits allow: reads and writes never block, and the process is watched between
//! them. A worker that exceeds a limit, or does not understand, is killed. Dropping a worker kills it and reaps its status, so
//! none is left behind.

use super::message::{Greeting, Job, JobKind, JobResult, Outcome, PROTOCOL, read, write};
use super::{ARGUMENT, WorkerError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Processor time that one document may take.
const PROCESSOR: Duration = Duration::from_secs(2);
/// Wall time that one document may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between checks of a busy worker.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a dead worker's last output that are read.
const LAST_WORDS: u64 = 4_096;

/// How a process without a result ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// It crashed.
    Crashed,
    /// It exceeded a limit: of time, memory or output.
    Limit(String),
    /// Something outside of the job ended it.
    Gone(String),
    /// The tracker is stopping.
    Halted,
}

/// A worker process that is ready for a job.
pub(super) struct Worker {
    child: Child,
    jobs: ChildStdin,
    outcomes: ChildStdout,
    last_words: ChildStderr,
    /// Its processor time at its last message.
    processor: Duration,
}

impl Worker {
    /// Starts a process and waits for its greeting.
    pub(super) fn start(program: &Path, is_halted: &dyn Fn() -> bool) -> Result<Self, WorkerError> {
        let failed = |source| WorkerError::Start { program: program.to_owned(), source };
        let mut command = Command::new(program);
        // A process group of its own: a terminal interrupt is for the tracker, which ends its workers.
        command.arg0("tidemill").arg(ARGUMENT).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Libraries must not start threads here when they are loaded.
        command.env("OPENBLAS_NUM_THREADS", "1").env("OMP_NUM_THREADS", "1");
        command.env("_RJEM_MALLOC_CONF", "background_thread:false");
        let mut child = command.spawn().map_err(failed)?;
        let (Some(jobs), Some(outcomes), Some(last_words)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three were asked for as pipes");
        };
        let mut worker = Self { child, jobs, outcomes, last_words, processor: Duration::ZERO };
        let greeting = ioctl_fionbio(&worker.jobs, true).and_then(|()| ioctl_fionbio(&worker.outcomes, true));
        greeting.map_err(|error| failed(error.into()))?;
        let wrong = |reason: String| WorkerError::Greeting { program: program.to_owned(), reason };
        let mut watch = Watch::new(&worker.child, worker.processor, is_halted);
        let greeting = read::<Greeting>(&mut Watched { pipe: &mut worker.outcomes, watch: &mut watch });
        let broken = watch.broken.take();
        let Greeting { protocol, processor } = greeting.map_err(|error| match worker.ended(broken, &error) {
            Ended::Crashed => wrong("it crashed".to_owned()),
            Ended::Halted => wrong("the tracker is stopping".to_owned()),
            Ended::Limit(reason) | Ended::Gone(reason) => wrong(reason),
        })?;
        if protocol != PROTOCOL {
            return Err(wrong(format!("it says `{protocol}`, and this build `{PROTOCOL}`")));
        }
        worker.processor = processor;
        Ok(worker)
    }

    /// Gives the process a job and returns the result; after an error the process is gone.
    pub(super) fn run(&mut self, kind: JobKind, text: &str, is_halted: &dyn Fn() -> bool) -> Result<JobResult, Ended> {
        let mut watch = Watch::new(&self.child, self.processor, is_halted);
        let exchange = (|| {
            let mut jobs = Watched { pipe: &mut self.jobs, watch: &mut watch };
            write(&mut jobs, &Job { kind, bytes: text.len() }, text.as_bytes())?;
            read::<Outcome>(&mut Watched { pipe: &mut self.outcomes, watch: &mut watch })
        })();
        let broken = watch.broken.take();
        let Outcome { result, processor } = exchange.map_err(|error| self.ended(broken, &error))?;
        self.processor = processor;
        Ok(result)
    }

    /// Ends the process, if it has not ended, and returns how it ended.
    fn ended(&mut self, broken: Option<Ended>, error: &io::Error) -> Ended {
        if let Some(ended) = broken {
            return ended;
        }
        if error.kind() == io::ErrorKind::InvalidData {
            return Ended::Limit(format!("its answer cannot be read: {error}"));
        }
        // Its ends of the pipes are closed: it has ended or is about to.
        match self.child.wait() {
            Ok(status) => {
                let mut last_words = Vec::new();
                let _ = (&mut self.last_words).take(LAST_WORDS).read_to_end(&mut last_words);
                verdict(status, &String::from_utf8_lossy(&last_words))
            }
            Err(error) => Ended::Gone(format!("its status cannot be read: {error}")),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // This fails only if it has ended, and the status is reaped in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Interprets an exit status, with the last output of the process.
fn verdict(status: ExitStatus, last_words: &str) -> Ended {
    /// Signals by their numbers on Linux: those of a crash, and that of the processor time limit.
    const CRASHES: [i32; 6] = [4, 5, 6, 7, 8, 11];
    const PROCESSOR_TIME: i32 = 24;
    let last = last_words.lines().next_back().unwrap_or_default().trim();
    match status.signal() {
        Some(PROCESSOR_TIME) => Ended::Limit(format!("it took more than {} s of processor time", PROCESSOR.as_secs())),
        // The message of a C parser or the allocator when memory is exhausted, before it aborts.
        Some(_) if last_words.contains("failed to allocate") || last_words.contains("memory allocation of") => {
            Ended::Limit("it took more than 200 MB of memory".to_owned())
        }
        Some(signal) if CRASHES.contains(&signal) => Ended::Crashed,
        Some(signal) => Ended::Gone(format!("its process was ended by signal {signal}")),
        None if last.is_empty() => Ended::Gone(format!("its process ended with {status}")),
        None => Ended::Gone(format!("its process ended with {status}: {last}")),
    }
}

/// The limits of a busy worker.
struct Watch<'a> {
    id: u32,
    begun: Instant,
    before: Duration,
    is_halted: &'a dyn Fn() -> bool,
    broken: Option<Ended>,
}

impl<'a> Watch<'a> {
    fn new(child: &Child, before: Duration, is_halted: &'a dyn Fn() -> bool) -> Self {
        Self { id: child.id(), begun: Instant::now(), before, is_halted, broken: None }
    }

    /// Waits until a pipe is ready, or the worker exceeded a limit.
    fn wait(&mut self, pipe: &impl AsFd, flags: PollFlags) -> io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        loop {
            match poll(&mut [PollFd::new(pipe, flags)], Some(&timeout)) {
                Ok(0) => {}
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.broken = self.look();
            if self.broken.is_some() {
                return Err(io::Error::other("the worker is to end"));
            }
        }
    }

    fn look(&self) -> Option<Ended> {
        if (self.is_halted)() {
            return Some(Ended::Halted);
        }
        if processor_of(self.id).is_some_and(|used| used.saturating_sub(self.before) > PROCESSOR) {
            return Some(Ended::Limit(format!("it took more than {} s of processor time", PROCESSOR.as_secs())));
        }
        let is_late = self.begun.elapsed() > PATIENCE;
        is_late.then(|| Ended::Limit(format!("it took more than {} s", PATIENCE.as_secs())))
    }
}

/// Returns the processor time of a process so far, in steps of some milliseconds.
fn processor_of(id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything; fields 14 and 15 are ticks, counted from the one before it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// A pipe that never blocks, with a blocking interface, under a watch.
struct Watched<'w, 'a, P> {
    pipe: &'w mut P,
    watch: &'w mut Watch<'a>,
}

impl<P: Read + AsFd> Read for Watched<'_, '_, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pipe.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.watch.wait(self.pipe, PollFlags::IN)?,
                read => return read,
            }
        }
    }
}

impl<P: Write + AsFd> Write for Watched<'_, '_, P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.watch.wait(self.pipe, PollFlags::OUT)?
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_told_from_a_limit_and_from_what_came_from_outside() {
        let by_signal = |signal: i32, words: &str| verdict(ExitStatus::from_raw(signal), words);
        assert_eq!(by_signal(11, ""), Ended::Crashed);
        assert_eq!(by_signal(6, "thread 'parser' has overflowed its stack\n"), Ended::Crashed);
        assert!(matches!(by_signal(6, "tree-sitter failed to allocate 80 bytes"), Ended::Limit(_)));
        assert!(matches!(by_signal(6, "memory allocation of 80 bytes failed"), Ended::Limit(_)));
        assert!(matches!(by_signal(24, ""), Ended::Limit(_)));
        assert!(matches!(by_signal(9, ""), Ended::Gone(_)));
        let exited = verdict(ExitStatus::from_raw(1 << 8), "no threads\n");
        assert_eq!(exited, Ended::Gone("its process ended with exit status: 1: no threads".to_owned()));
    }

    #[test]
    fn the_clock_of_a_process_is_read_whatever_its_name() {
        assert!(processor_of(std::process::id()).is_some_and(|used| used < Duration::from_secs(3_600)));
        assert_eq!(processor_of(u32::MAX), None);
    }
}

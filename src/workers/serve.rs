//! The worker's side: jobs from standard input, outcomes to standard output.
//!
//! In: frames. Out: frames. Nothing else is read or written.
//!
//! **Invariant:** the parsing thread has a stack of fixed size, and each job has its own limits of processor time and memory,
//! relative to earlier usage. So a document's result does not depend on earlier documents. The main thread waits for the
//! tracker's end of the pipe to close, and then ends the process at once, whatever the parsing thread does.

use super::ARGUMENT;
use super::message::{Greeting, Job, JobKind, JobResult, Outcome, PROTOCOL, read, write};
use dataflows::code::{PARSER_STACK, outline};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

/// Memory limit of one document of at most [`USUAL_TEXT`], in bytes.
const MEMORY: u64 = 200 << 20;
/// Largest text in bytes that the default rules allow.
const USUAL_TEXT: usize = 1 << 20;
/// Memory limit of a larger text, beside four times its size: the parser's budgets stop growing there, and so does its tree.
const MEMORY_OF_LARGE: u64 = 600 << 20;

/// Processor time after which the system ends the process, in whole seconds: more than the tracker's own limit.
const PROCESSOR_SECONDS: u64 = 3;

/// Returns whether this process was started as a worker.
#[must_use]
pub fn is_worker() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT)
}

/// Works until the tracker is gone.
#[must_use]
pub fn serve() -> ExitCode {
    // A panic is an outcome, and standard error is reserved for the cause of the process's end.
    std::panic::set_hook(Box::new(|_| {}));
    let _ = std::fs::write("/proc/self/comm", "tidemill-worker");
    let core = Rlimit { current: Some(0), maximum: Some(0) };
    let started = setrlimit(Resource::Core, core)
        .map_err(io::Error::from)
        .and_then(|()| std::thread::Builder::new().name("parser".to_owned()).stack_size(PARSER_STACK).spawn(work));
    if let Err(error) = started {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    // No event is requested: the poll reports only that the other end is closed.
    let stdin = io::stdin();
    loop {
        let mut pipe = [PollFd::new(&stdin, PollFlags::empty())];
        match poll(&mut pipe, None) {
            Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }
    // No destructor may wait for a parser.
    let _ = kill_process(getpid(), Signal::KILL);
    ExitCode::SUCCESS
}

fn work() {
    // Any failure means that the tracker is gone, or will see that this end is.
    let ended = (|| -> io::Result<()> {
        // The pipe itself: what the library has for standard output is written line by line.
        let (mut jobs, mut outcomes) = (io::stdin().lock(), File::from(io::stdout().as_fd().try_clone_to_owned()?));
        write(&mut outcomes, &Greeting { protocol: PROTOCOL.to_owned(), processor: processor() }, &[])?;
        loop {
            let Job { kind, bytes } = read(&mut jobs)?;
            limit(bytes)?;
            let mut text = Vec::with_capacity(bytes);
            (&mut jobs).take(bytes as u64).read_to_end(&mut text)?;
            let text = String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let result = catch_unwind(AssertUnwindSafe(|| run(&kind, &text)));
            let result = result.unwrap_or_else(|panic| JobResult::Panicked(reason(&*panic).to_owned()));
            drop(text);
            write(&mut outcomes, &Outcome { result, processor: processor() }, &[])?;
        }
    })();
    if let Err(error) = ended {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(kind: &JobKind, text: &str) -> JobResult {
    match kind {
        JobKind::Outline { language } => JobResult::Outline(outline(language, text)),
    }
}

fn reason(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

/// Returns the processor time of this process so far.
fn processor() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Sets the limits of the next job, on top of the usage so far.
fn limit(bytes: usize) -> io::Result<()> {
    let set = |resource: Resource, current: u64| {
        let maximum = getrlimit(resource).maximum;
        let current = maximum.map_or(current, |maximum| current.min(maximum));
        setrlimit(resource, Rlimit { current: Some(current), maximum })
    };
    set(Resource::Cpu, processor().as_secs() + 1 + PROCESSOR_SECONDS)?;
    let memory = if bytes <= USUAL_TEXT { MEMORY } else { MEMORY_OF_LARGE + 4 * bytes as u64 };
    set(Resource::Data, data_bytes() + memory)?;
    Ok(())
}

/// Returns the bytes of this process's own memory.
fn data_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|pages| pages.split(' ').nth(5)?.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

//! The program, started as a user starts it.
//!
//! In: a source and a store. Out: the printed lines and the time. **Invariant:** figures are taken from outside the process;
//! dropping the value of a started tracker ends it.

use super::Repository;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Returns the command that tracks a repository.
pub(crate) fn track(repository: &Repository, data: &Path, flags: &[&str]) -> Command {
    track_by(Path::new(env!("CARGO_BIN_EXE_tidemill")), repository, data, flags)
}

/// Returns the command by which a program tracks a repository.
pub(crate) fn track_by(program: &Path, repository: &Repository, data: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("track").arg(repository.path()).arg("--data").arg(data).arg("--json").args(flags);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// Runs to the end; returns the seconds and the printed lines.
pub(crate) fn run(mut command: Command) -> (f64, Vec<Value>) {
    let started = Instant::now();
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "the program fails: {}", output.status);
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice(line).expect("every line is JSON")).collect();
    (started.elapsed().as_secs_f64(), lines)
}

/// A running tracker, with its printed lines.
pub(crate) struct Live {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Live {
    /// Starts a tracker.
    pub(crate) fn start(repository: &Repository, data: &Path) -> Self {
        Self::spawn(track(repository, data, &[]))
    }

    /// Starts a tracker of another program.
    pub(crate) fn start_program(program: &Path, repository: &Repository, data: &Path) -> Self {
        Self::spawn(track_by(program, repository, data, &[]))
    }

    /// Starts a tracker that logs the steps of its publishing thread to a file.
    pub(crate) fn start_logged(repository: &Repository, data: &Path, log: &Path) -> Self {
        Self::start_logged_with(repository, data, log, &[])
    }

    /// Starts such a tracker with further flags.
    pub(crate) fn start_logged_with(repository: &Repository, data: &Path, log: &Path, flags: &[&str]) -> Self {
        let mut command = track(repository, data, flags);
        let log = File::create(log).expect("a log can be written");
        command.env("TIDEMILL_LOG", "warn,tidemill::engine::publisher=debug").env("NO_COLOR", "1").stderr(log);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, lines }
    }

    /// Starts a tracker with further flags.
    pub(crate) fn start_with(repository: &Repository, data: &Path, flags: &[&str]) -> Self {
        Self::spawn(track(repository, data, flags))
    }

    /// Waits for the next line.
    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the program prints");
        serde_json::from_str(&line).expect("every line is JSON")
    }

    /// Returns a figure of the process in MB, from the kernel.
    pub(crate) fn memory(&self, name: &str) -> f64 {
        super::memory_megabytes(self.child.id(), name)
    }

    /// Returns the seconds of processor time that the process and those that it started have taken.
    pub(crate) fn processor_seconds(&self) -> f64 {
        super::processor_seconds(self.child.id())
    }

    /// Asks the tracker to end normally, and waits until it has.
    pub(crate) fn end(mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(asked.is_ok_and(|status| status.success()), "the tracker can be asked to end");
        self.child.wait().expect("it was started");
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The whole binary, run in a separate folder.
//!
//! In: arguments. Out: exit status and output; for a running program, its lines as they come.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a test waits for something that must come: far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder in which the program runs, and in which it keeps its store.
pub(crate) struct Program {
    folder: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A program that is running.
pub(crate) struct Live {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Returns the folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the store, which may not be there yet.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join(".tidemill")
    }

    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
        command.current_dir(self.folder.path()).args(arguments).env_remove("TIDEMILL_DATA").env_remove("RUST_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(&arguments.iter().map(OsStr::new).collect::<Vec<_>>())
    }

    /// As [`Self::run`], with arguments that may hold any bytes.
    pub(crate) fn run_with(&self, arguments: &[&OsStr]) -> Run {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints UTF-8");
        Run { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs the program to its end with something on standard input.
    pub(crate) fn run_fed(&self, arguments: &[&str], input: &str) -> Run {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // One that ends before it has read all is no failure.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints UTF-8");
        Run { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs the program, which must succeed and print JSON only; returns the objects, one a line.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let run = self.run(arguments);
        assert_eq!(run.status, Some(0), "{arguments:?}: {}", run.err);
        run.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    /// Runs the program, which must fail with status 1, nothing on standard output and one line on standard error that
    /// holds every one of `words`; returns that line.
    pub(crate) fn refuses(&self, arguments: &[&str], words: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!(run.status, Some(1), "{arguments:?}: {run:?}");
        assert_eq!(run.out, "", "{arguments:?}");
        assert_eq!(run.err.lines().count(), 1, "{arguments:?}: {}", run.err);
        assert!(run.err.starts_with("tidemill: "), "{}", run.err);
        for word in words {
            assert!(run.err.contains(word), "{arguments:?} does not say `{word}`: {}", run.err);
        }
        run.err
    }

    /// Starts the program and lets it run.
    pub(crate) fn start(&self, arguments: &[&str]) -> Live {
        Self::live(self.command(arguments).stderr(Stdio::null()))
    }

    /// As [`Self::start`], with its log in a file.
    pub(crate) fn start_logged(&self, arguments: &[&str], log: &Path) -> Live {
        Self::live(self.command(arguments).stderr(std::fs::File::create(log).unwrap()))
    }

    fn live(command: &mut Command) -> Live {
        let mut child = command.spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Live { child, lines }
    }
}

impl Live {
    /// Returns the next line as JSON, which must come.
    pub(crate) fn line(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line comes before patience ends");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    /// Returns the next line if it comes within `wait`.
    pub(crate) fn line_within(&self, wait: Duration) -> Option<Value> {
        match self.lines.recv_timeout(wait) {
            Ok(line) => Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// Waits for the end; returns the exit status, or nothing where a signal ended it.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the program does not end");
    }

    /// Ends the program at once, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A test that failed must not leave its program behind; one that ended is past killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

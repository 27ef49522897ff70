//! Faults at every write of the program: `strace` counts the calls of each thread and disturbs one of them.
//!
//! In: a command. Out: its crash points, and its behaviour at one of them. **Invariant:** strace counts the calls of each thread
//! and kind separately, so a crash point is a kind of call and a number. Every write is a crash point.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Calls that change a file or a folder, or make a change durable.
const WRITES: &str =
    "write,pwrite64,writev,pwritev,fsync,fdatasync,msync,rename,renameat,renameat2,unlink,unlinkat,ftruncate";
/// Those that are only ever made on files: threads wake each other by `write`, which a full disk never stops.
const WRITES_TO_DISK: &str =
    "pwrite64,writev,pwritev,fsync,fdatasync,msync,rename,renameat,renameat2,unlink,unlinkat,ftruncate";
/// Seconds after which a run is taken for one that hangs.
const PATIENCE: &str = "60";

/// The disturbance of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The program is ended before it.
    Killed,
    /// It gets the error of a full disk.
    DiskFull,
}

/// The crash point: the n-th call of a kind in any thread; optionally of one file only, below the folder in which it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    call: String,
    nth: usize,
    file: Option<PathBuf>,
}

/// Runs the program under strace in a folder: it notes calls of these kinds, of one file alone if there is one.
fn trace(calls: &str, inject: Option<&str>, file: Option<&Path>, log: &Path, folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE, "strace", "-f", "-qq", "-s", "0", "-o"]).arg(log);
    command.arg("-e").arg(format!("trace={calls}"));
    if let Some(inject) = inject {
        command.arg("-e").arg(format!("inject={inject}"));
    }
    if let Some(file) = file {
        command.arg("-P").arg(folder.join(file));
    }
    command.arg(env!("CARGO_BIN_EXE_tidemill")).env_remove("TIDEMILL_DATA").current_dir(folder);
    command
}

/// Runs a command undisturbed, and returns the kind of each call and its number within its thread, in order.
fn calls(calls: &str, file: Option<&Path>, arguments: &[&str], folder: &Path) -> Vec<(String, usize)> {
    let log = folder.join("calls");
    let output = trace(calls, None, file, &log, folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let (mut counts, mut seen, mut places) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Some((call, _)) = call.trim_start().split_once('(') else { continue };
        if call.contains(' ') {
            continue;
        }
        let count: &mut usize = counts.entry((thread.to_owned(), call.to_owned())).or_default();
        *count += 1;
        if seen.insert((call.to_owned(), *count)) {
            places.push((call.to_owned(), *count));
        }
    }
    places
}

impl Fault {
    /// Returns the crash points of a command that runs to its end, in order; the `write`s of `file` come last. `folder` makes a
    /// folder in which it can run.
    pub(crate) fn places(self, arguments: &[&str], file: &Path, folder: &dyn Fn() -> TempDir) -> Vec<Place> {
        let kinds = match self {
            Self::Killed => WRITES,
            Self::DiskFull => WRITES_TO_DISK,
        };
        let mut places = Vec::new();
        let mut add = |kinds: &str, file: Option<&Path>| {
            let found = calls(kinds, file, arguments, folder().path()).into_iter();
            places.extend(found.map(|(call, nth)| Place { call, nth, file: file.map(Path::to_owned) }));
        };
        add(kinds, None);
        if self == Self::DiskFull {
            add("write", Some(file));
        }
        places
    }

    /// Runs a command and disturbs it at a crash point, if it gets there.
    pub(crate) fn run(self, at: &Place, arguments: &[&str], folder: &Path) -> Output {
        let Place { call, nth, file } = at;
        let what = match self {
            Self::Killed => "signal=KILL",
            Self::DiskFull => "error=ENOSPC",
        };
        let inject = format!("{call}:{what}:when={nth}");
        trace(call, Some(&inject), file.as_deref(), Path::new("/dev/null"), folder).args(arguments).output().unwrap()
    }
}

/// Every n-th of so many crash points is tested: at least some eight, and every one with `TIDEMILL_HEAVY=1`.
pub(crate) fn stride(places: usize) -> usize {
    let is_heavy = std::env::var_os("TIDEMILL_HEAVY").is_some_and(|value| value == "1");
    if is_heavy { 1 } else { (places / 8).clamp(1, 4) }
}

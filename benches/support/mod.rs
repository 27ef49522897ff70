//! Shared by the benches: the measured repository, the program as a user starts it, questions, the machine's name, and the output
//! of figures.

#![allow(dead_code, reason = "every bench is a program of its own and uses a part of this")]

pub(crate) mod copies;
mod import;
pub(crate) mod program;
pub(crate) mod questions;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A bare clone whose refs a bench may move.
pub(crate) struct Repository {
    path: PathBuf,
    origin: String,
    head: String,
}

impl Repository {
    /// Clones the repository that `TIDEMILL_BENCH_REPO` names into `folder`, or generates a small one there.
    pub(crate) fn for_bench(folder: &Path) -> Self {
        let path = folder.join("bench.git");
        let origin = match std::env::var("TIDEMILL_BENCH_REPO") {
            Ok(origin) => origin,
            Err(_) => {
                let generated = folder.join("generated");
                generate(&generated);
                generated.to_string_lossy().into_owned()
            }
        };
        git(folder, &["clone", "--quiet", "--bare", "--shared", &origin, "bench.git"]);
        let head = git(&path, &["rev-parse", "HEAD"]);
        Self { path, origin, head }
    }

    /// Opens a bare repository that a bench made itself.
    pub(crate) fn open(path: &Path) -> Self {
        let head = git(path, &["rev-parse", "HEAD"]);
        Self { path: path.to_owned(), origin: path.to_string_lossy().into_owned(), head }
    }

    /// Returns the commit at which the repository was opened.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// Returns the path of the clone.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last `number` first-parent commits of the head that was cloned, oldest first.
    pub(crate) fn first_parents(&self, number: usize) -> Vec<String> {
        let listed = git(&self.path, &["rev-list", "--first-parent", "-n", &number.to_string(), &self.head]);
        listed.lines().rev().map(str::to_owned).collect()
    }

    /// Moves the branch that HEAD names as git does, by a rename; returns the moment before it.
    pub(crate) fn move_head(&self, commit: &str) -> Instant {
        let branch = git(&self.path, &["symbolic-ref", "HEAD"]);
        let (lock, target) = (self.path.join(format!("{branch}.lock")), self.path.join(&branch));
        std::fs::create_dir_all(target.parent().expect("a ref stands in a folder")).expect("the clone can be written");
        std::fs::write(&lock, format!("{commit}\n")).expect("the clone can be written");
        let before = Instant::now();
        std::fs::rename(&lock, &target).expect("the clone can be written");
        before
    }
}

/// The machine and the code of the figures.
pub(crate) struct Machine;

impl Machine {
    /// Returns one line with everything that a quoted figure needs.
    pub(crate) fn describe(repository: &Repository) -> String {
        let corpus = Path::new(&repository.origin)
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        format!("{}; corpus {corpus} at {}", Self::name(), &repository.head[..10])
    }

    /// Returns the commit of this code, and the machine.
    pub(crate) fn name() -> String {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap_or("unknown processor");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let commit = git(Path::new(env!("CARGO_MANIFEST_DIR")), &["rev-parse", "--short=10", "HEAD"]);
        format!("tidemill {commit}; {cpu}, {cores} cores")
    }
}

/// Prints one row of the table of figures.
pub(crate) fn row(what: &str, figure: impl AsRef<str>) {
    println!("| {what} | {} |", figure.as_ref());
}

/// Returns the number in an environment variable.
pub(crate) fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Returns the milliseconds since a moment.
pub(crate) fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// Returns the median.
pub(crate) fn median(figures: &mut [f64]) -> f64 {
    percentile(figures, 0.5)
}

/// Returns the percentile of this share.
pub(crate) fn percentile(figures: &mut [f64], share: f64) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[((figures.len() - 1) as f64 * share).round() as usize]
}

/// Returns the median and the tail of some milliseconds, in words.
pub(crate) fn latency(figures: &mut [f64]) -> String {
    format!("p50 {:.2} ms, p99 {:.2} ms", percentile(figures, 0.5), percentile(figures, 0.99))
}

/// Returns a figure of a process in MB, from the kernel: `VmRSS`, `RssAnon`, `VmHWM`.
pub(crate) fn memory_megabytes(process: u32, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok()).map_or(f64::NAN, |kb| kb / 1000.0)
}

/// Returns the resident MB of each kind of mapping of this process.
pub(crate) fn resident_parts() -> Vec<(&'static str, f64)> {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut parts = [("allocated", 0.0), ("database", 0.0), ("lexical index", 0.0), ("program", 0.0)];
    let mut part = 0;
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let first = fields.next().unwrap_or_default();
        if !first.ends_with(':') {
            let file = fields.nth(4).unwrap_or_default();
            part = match file {
                file if file.ends_with("data.mdb") => 1,
                file if file.contains("/lexical/") => 2,
                file if file.starts_with('/') => 3,
                _ => 0,
            };
        } else if first == "Rss:" {
            parts[part].1 += fields.next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or_default() / 1000.0;
        }
    }
    parts.to_vec()
}

/// Returns the seconds of processor time that a process and those that it started have taken, all threads together, in steps of
/// 10 ms.
pub(crate) fn processor_seconds(process: u32) -> f64 {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_of_it = |fields: &[f64]| fields.get(1) == Some(&f64::from(process));
    let children = numbers.filter(|number| *number != process).map(stat).filter(|fields| is_of_it(fields));
    // Of children that have ended only their parent knows.
    let own = stat(process).get(11..15).map_or(0.0, |times| times.iter().sum());
    (own + children.filter_map(|fields| Some(fields.get(11..15)?.iter().sum::<f64>())).sum::<f64>()) / 100.0
}

/// Returns the seconds of processor time that all processes took that this one started and that have ended.
pub(crate) fn ended_seconds() -> f64 {
    stat(std::process::id()).get(13..15).map_or(0.0, |times| times.iter().sum::<f64>()) / 100.0
}

/// Returns the numbers that the kernel has of a process, from its state on, which is none: its parent is the second; user and system
/// time, and those of children that have ended, are the 12th to 15th, in ticks of 10 ms.
fn stat(process: u32) -> Vec<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which may hold blanks.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.map(|field| field.parse().unwrap_or_default()).collect()
}

/// Returns the bytes of all files below a folder.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Returns every folder of a repository's head with the bytes of the files below it, the heaviest first; the root is `""`.
pub(crate) fn folder_weights(repository: &Path) -> Vec<(String, u64)> {
    let mut weights = std::collections::BTreeMap::<String, u64>::new();
    for line in git(repository, &["ls-tree", "-r", "-l", "HEAD"]).lines() {
        let Some((facts, path)) = line.split_once('\t') else { continue };
        let bytes: u64 = facts.split_whitespace().nth(3).and_then(|bytes| bytes.parse().ok()).unwrap_or_default();
        let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        for folder in std::iter::once("").chain(folders) {
            *weights.entry(folder.to_owned()).or_default() += bytes;
        }
    }
    let mut weights: Vec<(String, u64)> = weights.into_iter().collect();
    weights.sort_by(|(left, one), (right, other)| other.cmp(one).then_with(|| left.cmp(right)));
    weights
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    let output =
        Command::new("git").arg("-C").arg(folder).args(identity).args(arguments).output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Creates a repository of thirty commits over forty small files: enough to see that a bench runs.
fn generate(folder: &Path) {
    std::fs::create_dir_all(folder.join("src")).expect("the folder can be made");
    git(folder, &["init", "--quiet", "--initial-branch=main", "."]);
    for commit in 0..30 {
        for file in (0..40).filter(|file| commit == 0 || file % 10 == commit % 10) {
            let functions = (0..8).map(|n| {
                let version = if n == commit % 8 { commit } else { 0 };
                format!("/// Spawns the camera number {n} of file {file}.\npub fn spawn_camera_{file}_{n}(world: &mut World) -> u32 {{\n    world.spawn({version})\n}}\n\n")
            });
            std::fs::write(folder.join(format!("src/file_{file}.rs")), functions.collect::<String>())
                .expect("the file can be written");
        }
        git(folder, &["add", "--all"]);
        git(folder, &["commit", "--quiet", "--allow-empty", "-m", &format!("commit {commit}")]);
    }
}

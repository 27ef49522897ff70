//! What do snapshots cost on a real engine repository: bytes of a commit in the log, opening the log and a version of it,
//! comparing two; and what does dropping most of them free, in what time, with the same answers?
//!
//! `TIDEMILL_BENCH_REPO=/path/to/engine.git cargo bench --bench snapshots` measures on that repository (it is cloned, never
//! written to). `TIDEMILL_BENCH_COMMITS` sets how many commits get a snapshot (500), `TIDEMILL_BENCH_KEEP` how many are kept
//! (50). Without a repository a small generated one is used: a smoke test whose figures mean nothing.

mod support;

use serde_json::Value;
use snapshots::{Archive, VersionId};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use support::{Machine, Repository, percentile};
use tidemill::search::{Mode, Request, Searcher};
use tidemill::store::Layout;

const QUESTIONS: [&str; 5] = [
    "how to spawn a camera entity",
    "system ordering before after",
    "transform propagation hierarchy",
    "shader material bind group",
    "World::spawn",
];

fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let repository = Repository::for_bench(folder.path());
    println!("{}", Machine::describe(&repository));
    println!("\n| what | figure |\n|---|---|");
    let number =
        |name: &str, otherwise: usize| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise);
    let (commits, keep) = (number("TIDEMILL_BENCH_COMMITS", 500), number("TIDEMILL_BENCH_KEEP", 50));
    let data = folder.path().join("store");
    let backfill = commits.saturating_sub(1).to_string();
    let path = repository.path().to_string_lossy().into_owned();
    run(&data, folder.path(), &["track", &path, "--once", "--backfill", &backfill, "--quiet"]);
    versions(&data);
    collection(&repository, &data, folder.path(), keep);
}

fn row(what: &str, figure: impl AsRef<str>) {
    println!("| {what} | {} |", figure.as_ref());
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Runs the program to the end in a folder; returns the seconds and the output.
fn run(data: &Path, folder: &Path, arguments: &[&str]) -> (f64, Vec<Value>) {
    let started = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .current_dir(folder)
        .args(arguments)
        .arg("--data")
        .arg(data)
        .arg("--json")
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice(line).expect("every line is JSON")).collect();
    (started.elapsed().as_secs_f64(), lines)
}

/// Measures the log: the size of a version, and the time to open it.
fn versions(data: &Path) {
    let folder = data.join("versions");
    let mut opened = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        Archive::open_reader(&folder).expect("the log opens");
        opened.push(milliseconds(started));
    }
    let archive = Archive::open_reader(&folder).expect("the log opens");
    let versions = archive.versions();
    let moved: u64 = versions.iter().skip(1).map(|version| version.entries.inserted + version.entries.retracted).sum();
    let (log, checkpoints) = archive.bytes();
    let per = |bytes: u64| bytes as f64 / versions.len() as f64;
    let (in_log, in_checkpoints) = (per(log), per(checkpoints));
    row(
        &format!("log, a version (mean of {:.1} moved entries)", moved as f64 / versions.len() as f64),
        format!("{in_log:.0} bytes, and {in_checkpoints:.0} of checkpoints"),
    );
    row(&format!("opening a log of {} versions", versions.len()), median(&mut opened));
    let mut rebuilt = Vec::new();
    let mut compared = Vec::new();
    let last = VersionId::new(versions.len() as u32 - 1);
    for at in (0..versions.len()).step_by((versions.len() / 50).max(1)) {
        // A separate handle, without cached bitmaps.
        let fresh = Archive::open_reader(&folder).expect("the log opens");
        let started = Instant::now();
        fresh.bitmaps(VersionId::new(at as u32)).expect("the version is there");
        rebuilt.push(milliseconds(started));
        let started = Instant::now();
        fresh.diff(VersionId::new(at as u32), last).expect("both versions are there");
        compared.push(milliseconds(started));
    }
    row("the bitmaps of an old version, cold", median(&mut rebuilt));
    row("the difference of an old version and the head", median(&mut compared));
}

/// Measures what keeping only the newest snapshots frees.
fn collection(repository: &Repository, data: &Path, folder: &Path, keep: usize) {
    let kept = repository.first_parents(keep);
    let (oldest, newest) = (&kept[0], &kept[kept.len() - 1]);
    let before = [answers(data, oldest), answers(data, newest)];
    let settings = format!("[retention]\nnewest = {keep}\n");
    std::fs::write(folder.join("tidemill.toml"), settings).expect("the folder can be written");
    let (dry, _) = run(data, folder, &["snapshots", "gc", "--dry-run"]);
    let (seconds, lines) = run(data, folder, &["snapshots", "gc"]);
    let outcome = &lines[0];
    let (again, _) = run(data, folder, &["snapshots", "gc"]);
    assert_eq!([answers(data, oldest), answers(data, newest)], before, "kept snapshots answer as before");
    let (checked, _) = run(data, folder, &["snapshots", "verify"]);
    let count = |name: &str| outcome[name].as_u64().unwrap_or_default();
    row(
        &format!("`snapshots gc`, {} dropped and {} kept", count("dropped"), count("kept")),
        format!("{seconds:.2} s (`--dry-run` {dry:.2} s, again {again:.2} s, `verify` {checked:.2} s)"),
    );
    row(
        "… removed",
        format!(
            "{} entries, {} documents, {} texts, {} vectors",
            count("entries"),
            count("documents"),
            count("texts"),
            count("vectors")
        ),
    );
    let mut total = [0, 0];
    for part in ["database", "lexical", "vectors", "versions"] {
        let bytes = ["before", "after"].map(|when| outcome["bytes"][part][when].as_u64().unwrap_or_default());
        total = [total[0] + bytes[0], total[1] + bytes[1]];
        row(&format!("… {part}, before and after"), format!("{}, {}", megabytes(bytes[0]), megabytes(bytes[1])));
    }
    row("… all of it, before and after", format!("{}, {}", megabytes(total[0]), megabytes(total[1])));
}

/// Returns a store's answers as of a commit, with the bits of the scores.
fn answers(data: &Path, commit: &str) -> Vec<(String, u32, String)> {
    let searcher = Searcher::open(&Layout::new(data)).expect("the store can be read");
    let mut answers = Vec::new();
    for question in QUESTIONS {
        for mode in [Mode::Bm25, Mode::Vector, Mode::Hybrid] {
            let request = Request { mode, k: 50, at: Some(commit.to_owned()), ..Request::new(question) };
            let hits = searcher.search(&request).expect("the question can be answered").hits;
            answers.extend(hits.into_iter().map(|hit| (hit.path.to_string(), hit.score.to_bits(), hit.text)));
        }
    }
    answers
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn median(figures: &mut [f64]) -> String {
    format!("p50 {:.2} ms, p95 {:.2} ms", percentile(figures, 0.5), percentile(figures, 0.95))
}

//! Does index maintenance between commits delay a publish, or a search?
//!
//! `TIDEMILL_BENCH_REPO=/path/to/engine.git cargo bench --bench upkeep` makes a store of `TIDEMILL_BENCH_DEAD` (5,000) live
//! entries, each of which was rewritten ten times, without any maintenance. Searches run on an idle machine, and beside a tracker
//! that only runs maintenance, by turns with separate stores. Then commits and searches run beside maintenance, and as many after
//! it. The bench prints all times, and the longest step during which the publishing thread can do nothing else.
//!
//! Then it makes a store of `TIDEMILL_BENCH_COMMITS` (500) snapshots, of which `TIDEMILL_BENCH_KEEP` (50) are to be kept. Commits
//! and searches run while a tracker collects the rest, at the request of `snapshots gc`, and as many without a collection.
//!
//! A step begins only while no epoch is in progress, and the stages before publishing take their time: a publish waits only for
//! the rest of the step. So both are printed. Without a repository a small generated one is used: a smoke test whose figures mean
//! nothing.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use support::copies::{Corpus, DEATHS, SEED, small_commits};
use support::program::{Live, run, track};
use support::questions::{DRAWN, questions};
use support::{Machine, Repository, latency, milliseconds, number, row};
use tidemill::search::{Request, Searcher};
use tidemill::store::Layout;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Commits beside maintenance, and as many after it.
const COMMITS: usize = 20;
/// Stores whose maintenance runs beside searches.
const ROUNDS: usize = 3;
/// The log text for an epoch that finishes during a step of the publishing thread.
const WAITED: &str = "… of that, until the thread that publishes was free (reach ≤ 20 ms)";

fn main() {
    // As the program does.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let origin = Repository::for_bench(folder.path());
    println!("{}", Machine::describe(&origin));
    upkeep(&origin, folder.path(), number("TIDEMILL_BENCH_DEAD", 5_000));
    if std::env::var_os("ONLY_UPKEEP").is_none() {
        collecting(&origin, folder.path(), number("TIDEMILL_BENCH_COMMITS", 500), number("TIDEMILL_BENCH_KEEP", 50));
    }
}

/// Measures commits and searches beside a collection, against those without; and a collection without load.
fn collecting(origin: &Repository, folder: &Path, commits: usize, keep: usize) {
    let (data, idle, settings) = (folder.join("collected"), folder.join("idle"), folder.join("settings.toml"));
    run(track(origin, &data, &["--once", "--backfill", &commits.saturating_sub(1).to_string()]));
    std::fs::write(&settings, format!("[retention]\nnewest = {keep}\n")).expect("the folder can be written");
    let settings = settings.to_str().expect("its path is UTF-8");
    copy(&data, &idle);
    let collect = |data: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
        command.args(["snapshots", "gc", "--json", "--config", settings, "--data"]).arg(data).stdout(Stdio::piped());
        run(command)
    };
    let new = small_commits(origin.path(), 2 * COMMITS + 1);
    let (first, new) = new.split_first().expect("commits were made");
    let asked = questions(origin.path(), DRAWN);
    let begin = |data: &Path, log: &Path| {
        let mut live = Live::start_logged_with(origin, data, log, &["--config", settings]);
        origin.move_head(first);
        while live.next()["commit"].as_str() != Some(first) {}
        rested(log);
        live
    };
    let log = folder.join("collecting");
    let mut live = begin(&data, &log);
    let (mut quiet, mut searches_quiet) = met(origin, &mut live, &data, &asked, &new[..COMMITS]);
    let mut quiet_waits = last(steps_of(&log, WAITING));
    rested(&log);
    let (mut beside, mut searches_beside, busy) = std::thread::scope(|scope| {
        let collects = scope.spawn(|| collect(&data));
        let (publishes, searches) = met(origin, &mut live, &data, &asked, &new[COMMITS..]);
        (publishes, searches, collects.join().expect("the collection ends"))
    });
    live.end();
    let mut waits = last(steps_of(&log, WAITING));
    let mut steps = steps_of(&log, COLLECTING);
    origin.move_head(first);
    let log = folder.join("collecting-idle");
    let live = begin(&idle, &log);
    let alone = collect(&idle);
    live.end();
    println!(
        "\ncollecting beside a tracker: {commits} snapshots, {} dropped and {} entries removed\n\n| what | figure |\n|---|---|",
        busy.1[0]["dropped"], busy.1[0]["entries"]
    );
    let longest = steps.iter().copied().fold(0.0, f64::max);
    row(&format!("the longest of {} steps", steps.len()), format!("{longest:.1} ms; {}", latency(&mut steps)));
    let mut steps = steps_of(&log, COLLECTING);
    let longest = steps.iter().copied().fold(0.0, f64::max);
    row(
        &format!("… with nothing beside it, {} steps", steps.len()),
        format!("{longest:.1} ms; {}", latency(&mut steps)),
    );
    let figure = format!("{} against {}", latency(&mut beside), latency(&mut quiet));
    row(&format!("from the ref to the line, {COMMITS} commits beside a collection against as many without"), figure);
    let figure = format!("{} against {}", latency(&mut waits), latency(&mut quiet_waits));
    row(WAITED, figure);
    let figure = format!("{} against {}", latency(&mut searches_beside), latency(&mut searches_quiet));
    row("hybrid search meanwhile, against without", figure);
    row("`snapshots gc` beside the commits; with nothing beside it", format!("{:.1} s; {:.1} s", busy.0, alone.0));
}

/// Measures searches and commits beside the maintenance of a store with ten dead entries for each live one, against those
/// without.
fn upkeep(origin: &Repository, folder: &Path, living: usize) {
    let (untidy, path) = (folder.join("untidy"), folder.join("untidy.git"));
    Corpus::read(origin.path(), SEED).rewrite(living, DEATHS, &path);
    let repository = Repository::open(&path);
    // Stopped at the last line, as by a user: maintenance is left undone.
    let mut loads = Live::start_with(&repository, &untidy, &["--backfill", "all"]);
    while loads.next()["commit"].as_str() != Some(repository.head()) {}
    // Killed, when it is dropped.
    drop(loads);
    let commits = small_commits(&path, 2 * COMMITS + 1);
    let (first, commits) = commits.split_first().expect("commits were made");
    let asked = questions(&path, DRAWN);
    println!(
        "\nupkeep of a store of {living} living entries and ten dead ones for each\n\n| what | figure |\n|---|---|"
    );
    repository.move_head(first);
    let [mut alone, mut meanwhile] = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let data = copy(&untidy, &folder.join(format!("searched-{round}")));
        let log = folder.join(format!("searched-{round}.log"));
        let mut live = Live::start_logged(&repository, &data, &log);
        live.next();
        told(&log, UPKEEP);
        let met = beside(&data, &asked, || told(&log, RESTS));
        live.end();
        let nobody = copy(&untidy, &folder.join(format!("alone-{round}")));
        alone.extend(ask(&nobody, &asked, |asked| asked == met.len()));
        meanwhile.extend(met);
    }
    row(
        &format!(
            "hybrid search beside upkeep, against one of the same store with nobody else at work, {} of each",
            alone.len()
        ),
        format!("{} against {}", latency(&mut meanwhile), latency(&mut alone)),
    );
    let log = folder.join("log");
    let mut live = Live::start_logged(&repository, &untidy, &log);
    live.next();
    told(&log, UPKEEP);
    let (mut publishes, mut searches) = met(&repository, &mut live, &untidy, &asked, &commits[..COMMITS]);
    rested(&log);
    let mut waits = last(steps_of(&log, WAITING));
    let (mut later, mut quiet) = met(&repository, &mut live, &untidy, &asked, &commits[COMMITS..]);
    let mut later_waits = last(steps_of(&log, WAITING));
    live.end();
    let mut steps: Vec<f64> = steps_of(&log, UPKEEP).into_iter().filter(|step| *step >= 1.0).collect();
    row(
        &format!("the longest of {} steps of a millisecond and more", steps.len()),
        format!("{:.1} ms; {}", steps.iter().copied().fold(0.0, f64::max), latency(&mut steps)),
    );
    let figure = format!("{} against {}", latency(&mut publishes), latency(&mut later));
    row(&format!("from the ref to the line, {COMMITS} commits beside upkeep against as many behind it"), figure);
    let figure = format!("{} against {}", latency(&mut waits), latency(&mut later_waits));
    row(WAITED, figure);
    let figure = format!("{} against {}", latency(&mut searches), latency(&mut quiet));
    row("hybrid search beside those commits", figure);
}

/// Copies a store, and waits for the disk, so that no measured code does.
fn copy(data: &Path, to: &Path) -> PathBuf {
    let copied = Command::new("cp").arg("-a").arg(data).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "the store can be copied");
    assert!(Command::new("sync").status().is_ok_and(|status| status.success()), "the disk can be waited for");
    to.to_owned()
}

/// Searches until a process has ended; returns the time of each question.
fn beside(data: &Path, asked: &[String], something: impl FnOnce() + Send) -> Vec<f64> {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            something();
            ends.store(true, Relaxed);
        });
        ask(data, asked, |_| ends.load(Relaxed))
    })
}

/// Returns the times of commits and searches while both run.
fn met(
    repository: &Repository,
    live: &mut Live,
    data: &Path,
    asked: &[String],
    commits: &[String],
) -> (Vec<f64>, Vec<f64>) {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let searches = scope.spawn(|| ask(data, asked, |_| ends.load(Relaxed)));
        let publishes = commits.iter().map(|commit| {
            std::thread::sleep(Duration::from_millis(150));
            let written = repository.move_head(commit);
            while live.next()["commit"].as_str() != Some(commit) {}
            milliseconds(written)
        });
        let publishes = publishes.collect();
        ends.store(true, Relaxed);
        (publishes, searches.join().expect("searches go on"))
    })
}

/// Asks a question every 20 ms until `enough` is true of their number; returns the time of each.
fn ask(data: &Path, questions: &[String], is_enough: impl Fn(usize) -> bool) -> Vec<f64> {
    let mut searcher = Searcher::open(&Layout::new(data)).expect("the store can be read");
    let mut times = Vec::new();
    for question in questions.iter().cycle() {
        if is_enough(times.len()) {
            break;
        }
        // As a server does; a reader without refreshes would hold dropped versions.
        searcher.refresh().expect("the store can be read");
        let answer = searcher.search(&Request::new(question)).expect("the question can be answered");
        times.push(answer.took.as_secs_f64() * 1000.0);
        std::thread::sleep(Duration::from_millis(20));
    }
    times
}

/// Returns the waits of the last commits.
fn last(mut waits: Vec<f64>) -> Vec<f64> {
    waits.split_off(waits.len().saturating_sub(COMMITS))
}

/// Waits until a log has an entry.
fn told(log: &Path, something: &str) {
    while !std::fs::read_to_string(log).is_ok_and(|log| log.contains(something)) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until nothing more is done: maintenance begins after two calm seconds.
fn rested(log: &Path) {
    let mut known = 0;
    while steps_of(log, UPKEEP).len() > std::mem::replace(&mut known, steps_of(log, UPKEEP).len()) {
        std::thread::sleep(Duration::from_secs(3));
    }
}

const UPKEEP: &str = "a step of upkeep took ";
const RESTS: &str = "upkeep has nothing left to do";
const COLLECTING: &str = "a step of collecting took ";
const WAITING: &str = "an epoch waited ";

/// Returns the milliseconds of each step of one kind in a log.
fn steps_of(log: &Path, kind: &str) -> Vec<f64> {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let steps = log.lines().filter_map(|line| line.split_once(kind)?.1.split_once(" ms"));
    steps.filter_map(|(step, _)| step.parse().ok()).collect()
}

//! How fast is the main job on a real engine repository: first load, a live commit, backfill, an idle start, memory, queries, and
//! the store growth of a commit?
//!
//! `TIDEMILL_BENCH_REPO=/path/to/engine.git cargo bench --bench incremental` measures on that repository (it is cloned, never
//! written to). `TIDEMILL_BENCH_COMMITS` sets the number of commits of backfill (500), `TIDEMILL_BENCH_ONLY` one part of three:
//! `load`, `live`, or `backfill`, which measures the growth. Without a repository a small generated one is used: a smoke test
//! whose figures mean nothing.
//!
//! `TIDEMILL_BENCH_BESIDE=/path/to/another/tidemill` compares the program with another one in the same parts, by turns, so that a machine
//! that becomes slower meets both: first loads; trackers that follow a clone each and get the same commits; backfill. Processor time is
//! that of the program and of its workers, and says more than the clock where something else is at work.
//!
//! The figures are of whole processes: the program is started as a user starts it. Latency runs from the moment the ref is
//! renamed into place until the flushed line of the epoch is read.

mod support;

use std::path::Path;
use std::time::Duration;
use support::program::{Live, run, track, track_by};
use support::questions::QUESTIONS;
use support::{Machine, Repository, ended_seconds, median, milliseconds, number, percentile, row};
use tidemill::search::{Mode, Request, Searcher};
use tidemill::store::{Database, Layout};

/// Commits that arrive one by one while the tracker is live.
const LIVE_COMMITS: usize = 20;
/// Pairs of trackers, if two programs are compared.
const PAIRS: usize = 8;
/// How often each of two programs loads the head and takes past commits, where they are compared.
const TURNS: usize = 5;
/// Past commits that each takes then.
const TURN_COMMITS: usize = 200;
/// How often each question is asked.
const ROUNDS: usize = 20;

/// A part of the bench, by name.
type Part = (&'static str, fn(&Repository, &Path));

fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let repository = Repository::for_bench(folder.path());
    println!("{}", Machine::describe(&repository));
    println!("\n| what | figure |\n|---|---|");
    if let Some(other) = std::env::var_os("TIDEMILL_BENCH_BESIDE") {
        return beside(&repository, folder.path(), Path::new(&other));
    }
    let only = std::env::var("TIDEMILL_BENCH_ONLY").ok();
    let parts: [Part; 3] = [("load", first_load), ("live", live), ("backfill", backfill)];
    for (name, measure) in parts {
        if only.as_deref().is_none_or(|only| only == name) {
            measure(&repository, folder.path());
        }
    }
}

fn first_load(repository: &Repository, folder: &Path) {
    let mut loads = Vec::new();
    let mut starts = Vec::new();
    for round in 0..3 {
        let data = folder.join(format!("load-{round}"));
        loads.push(run(track(repository, &data, &["--once"])).0);
        let (seconds, lines) = run(track(repository, &data, &["--once"]));
        assert_eq!(lines.len(), 1, "a start on an unchanged head prints its summary only");
        starts.push(seconds);
        if round == 2 {
            queries(&data);
        }
    }
    row("first load, head only (median of 3)", format!("{:.2} s", median(&mut loads)));
    row("start on an unchanged head (median of 3)", format!("{:.2} s", median(&mut starts)));
}

fn queries(data: &Path) {
    let searcher = Searcher::open(&Layout::new(data)).expect("the store was just written");
    let entries = searcher.reader().catalogue().next_entry().expect("the store can be read");
    for mode in [Mode::Bm25, Mode::Vector, Mode::Hybrid] {
        let mut times = Vec::new();
        for round in 0..=ROUNDS {
            for question in QUESTIONS {
                let request = Request { mode, ..Request::new(question) };
                let answer = searcher.search(&request).expect("the question can be answered");
                // The first round fills caches: it belongs to the cost of a start, not of a question.
                if round > 0 {
                    times.push(answer.took.as_secs_f64() * 1000.0);
                }
            }
        }
        let (p50, p99) = (percentile(&mut times, 0.50), percentile(&mut times, 0.99));
        row(
            &format!("query in process, {}, {entries} entries", mode.as_str()),
            format!("p50 {p50:.2} ms, p99 {p99:.2} ms"),
        );
    }
}

fn live(repository: &Repository, folder: &Path) {
    let commits = repository.first_parents(LIVE_COMMITS + 1);
    let (start, arriving) = commits.split_first().expect("the repository has commits");
    repository.move_head(start);
    let mut live = Live::start(repository, &folder.join("live"));
    live.next();
    std::thread::sleep(Duration::from_millis(500));
    let mut latencies = Vec::new();
    for commit in arriving {
        let written = repository.move_head(commit);
        let line = live.next();
        latencies.push(written.elapsed().as_secs_f64() * 1000.0);
        assert_eq!(line["commit"].as_str(), Some(commit.as_str()), "the line is that of the commit that arrived");
        std::thread::sleep(Duration::from_millis(200));
    }
    let (p50, p95) = (percentile(&mut latencies, 0.50), percentile(&mut latencies, 0.95));
    row(
        &format!("from the ref being written to the flushed line, live, {LIVE_COMMITS} commits"),
        format!("p50 {p50:.0} ms, p95 {p95:.0} ms"),
    );
    let (now, anonymous, peak) = (live.memory("VmRSS"), live.memory("RssAnon"), live.memory("VmHWM"));
    row(
        "resident memory while live, in the process that did the first load",
        format!("{now:.0} MB ({anonymous:.0} MB of it anonymous; peak {peak:.0} MB)"),
    );
}

/// Compares the program with another one, part by part.
fn beside(repository: &Repository, folder: &Path, other: &Path) {
    let only = std::env::var("TIDEMILL_BENCH_ONLY").ok();
    let is_wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    if is_wanted("load") {
        compare("first load, head only", folder, other, |program, data| {
            timed(|| run(track_by(program, repository, data, &["--once"])))
        });
    }
    if is_wanted("live") {
        live_beside(repository, folder, other);
    }
    if is_wanted("backfill") {
        let commits = number("TIDEMILL_BENCH_COMMITS", TURN_COMMITS);
        let history = repository.first_parents(commits + 1);
        compare(&format!("a commit of {commits} that wait"), folder, other, |program, data| {
            repository.move_head(&history[0]);
            run(track_by(program, repository, data, &["--once"]));
            repository.move_head(&history[history.len() - 1]);
            let (clock, processor) = timed(|| run(track_by(program, repository, data, &["--once"])));
            let epochs = (history.len() - 1) as f64;
            (clock / epochs, processor / epochs)
        });
    }
}

/// Returns the seconds that something takes, by the clock and of processor time.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, f64) {
    let (begun, before) = (std::time::Instant::now(), ended_seconds());
    work();
    (begun.elapsed().as_secs_f64(), ended_seconds() - before)
}

/// Measures two programs by turns, each in a new store, and prints medians and the median of the ratios.
fn compare(what: &str, folder: &Path, other: &Path, measure: impl Fn(&Path, &Path) -> (f64, f64)) {
    let programs = [Path::new(env!("CARGO_BIN_EXE_tidemill")), other];
    let mut figures = [(); 4].map(|()| Vec::new());
    for turn in 0..TURNS {
        for at in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            let data = folder.join(format!("turn-{turn}-{at}"));
            let (clock, processor) = measure(programs[at], &data);
            figures[at].push(clock * 1000.0);
            figures[2 + at].push(processor * 1000.0);
            std::fs::remove_dir_all(&data).expect("the store was just written");
        }
    }
    let [this, other, this_processor, other_processor] = figures;
    for (kind, mut this, mut other) in [("clock", this, other), ("processor time", this_processor, other_processor)] {
        let mut ratios: Vec<f64> = this.iter().zip(&other).map(|(this, other)| this / other).collect();
        let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        row(
            &format!("{what}, {kind}: this program; the other; of each of {TURNS} turns the ratio; their median"),
            format!(
                "{:.1}; {:.1} ms; {}; {:.2}",
                median(&mut this),
                median(&mut other),
                each.join(", "),
                median(&mut ratios)
            ),
        );
    }
}

/// Lets two programs follow a clone each, and get the same commits by turns; again and again with new stores, since what a process
/// takes depends on the memory that it happened to get, by more than most changes do.
fn live_beside(repository: &Repository, folder: &Path, other: &Path) {
    let programs = [Path::new(env!("CARGO_BIN_EXE_tidemill")), other];
    let mut latencies = [Vec::new(), Vec::new()];
    let (mut processor, mut ratios) = ([0.0; 2], Vec::new());
    for pair in 0..PAIRS {
        // Each is started first in half of the pairs, and then gets the first commit.
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        let of_pair = by_turns(repository, &folder.join(pair.to_string()), order.map(|at| programs[at]));
        let mut medians = [0.0; 2];
        for (at, (mut times, seconds)) in order.into_iter().zip(of_pair) {
            medians[at] = median(&mut times);
            processor[at] += seconds;
            latencies[at].extend(times);
        }
        ratios.push(medians[0] / medians[1]);
    }
    for (at, name) in ["this program", "the other"].into_iter().enumerate() {
        let times = &mut latencies[at];
        let figure = format!(
            "p50 {:.1} ms, p90 {:.1} ms; {:.0} ms of processor time each",
            percentile(times, 0.50),
            percentile(times, 0.90),
            processor[at] * 1000.0 / times.len() as f64
        );
        row(
            &format!("from the ref to the flushed line, {LIVE_COMMITS} commits in each of {PAIRS} pairs, {name}"),
            figure,
        );
    }
    let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    row("this program by the other: of each pair the ratio of p50; their median", {
        format!("{}; {:.2}", each.join(", "), median(&mut ratios))
    });
}

/// Returns the milliseconds of each commit and the seconds of processor time of two programs, in the order of their start.
fn by_turns(repository: &Repository, folder: &Path, programs: [&Path; 2]) -> [(Vec<f64>, f64); 2] {
    let commits = repository.first_parents(LIVE_COMMITS + 1);
    let (start, arriving) = commits.split_first().expect("the repository has commits");
    let mut places = [0, 1];
    let mut followed = places.map(|place| {
        let folder = folder.join(place.to_string());
        std::fs::create_dir_all(&folder).expect("the folder can be written");
        let clone = Repository::for_bench(&folder);
        clone.move_head(start);
        let mut live = Live::start_program(programs[place], &clone, &folder.join("store"));
        live.next();
        (clone, live, Vec::new(), 0.0)
    });
    std::thread::sleep(Duration::from_secs(2));
    for commit in arriving {
        for place in places {
            let (clone, live, times, processor) = &mut followed[place];
            let before = live.processor_seconds();
            let written = clone.move_head(commit);
            while live.next()["commit"].as_str() != Some(commit.as_str()) {}
            times.push(milliseconds(written));
            std::thread::sleep(Duration::from_millis(300));
            *processor += live.processor_seconds() - before;
        }
        places.rotate_left(1);
    }
    followed.map(|(_, _, times, processor)| (times, processor))
}

fn backfill(repository: &Repository, folder: &Path) {
    let commits: usize = std::env::var("TIDEMILL_BENCH_COMMITS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let history = repository.first_parents(commits + 1);
    let (oldest, newest) = (&history[0], &history[history.len() - 1]);
    let data = folder.join("backfill");
    repository.move_head(oldest);
    let (load, _) = run(track(repository, &data, &["--once"]));
    let before = stored_bytes(&data);
    repository.move_head(newest);
    let (seconds, lines) = run(track(repository, &data, &["--once"]));
    let epochs = (lines.len() - 1).max(1) as f64;
    let after = stored_bytes(&data);
    row(
        &format!("{epochs} commits, a snapshot each, after a first load of {load:.1} s"),
        format!("{:.1} ms a commit", seconds * 1000.0 / epochs),
    );
    let inserted: u64 = lines.iter().filter_map(|line| line["work"]["inserted"].as_u64()).sum();
    let grown: Vec<(&str, f64)> = after
        .iter()
        .map(|(part, bytes)| {
            let earlier = before.iter().find(|(known, _)| known == part).map_or(0, |(_, bytes)| *bytes);
            (*part, bytes.saturating_sub(earlier) as f64 / epochs / 1000.0)
        })
        .collect();
    // A head holds the text of the `name` field; it is counted, and printed separately.
    let sum = |left_out: &[&str]| -> f64 {
        grown.iter().filter(|(part, _)| !left_out.contains(part)).map(|(_, grown)| grown).sum()
    };
    let left_out = ["text_rows", "text_numbers", "vector_rows", "vector_numbers", "vector files"];
    let counted = sum(&left_out);
    let without_heads = sum(&[&left_out[..], &["heads"]].concat());
    row(
        &format!(
            "store growth a commit (mean of {:.1} new entries), texts and vectors with what finds them left out",
            inserted as f64 / epochs
        ),
        format!("{counted:.1} KB (without the table `heads`: {without_heads:.1} KB)"),
    );
    let parts: Vec<String> =
        grown.iter().filter(|(_, grown)| *grown >= 0.01).map(|(part, grown)| format!("{part} {grown:.2}")).collect();
    row("… by part, in KB a commit", parts.join(", "));
}

/// Returns the bytes of every part of a store.
fn stored_bytes(data: &Path) -> Vec<(&'static str, u64)> {
    let database = Database::open_reader(&Layout::new(data)).expect("the store was just written");
    let mut parts = database.table_bytes().expect("the store can be read");
    parts.push(("lexical index", support::folder_bytes(&data.join("lexical"))));
    parts.push(("vector files", support::folder_bytes(&data.join("vectors"))));
    parts.push(("version log", support::folder_bytes(&data.join("versions"))));
    parts
}

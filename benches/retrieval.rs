//! What does a question cost, and how much of the exact answer does it find, by size, selectivity and age? And what do a reader,
//! a version and a commit cost in a store of a million entries?
//!
//! `TIDEMILL_BENCH_REPO=/path/to/engine.git TIDEMILL_BENCH_ENTRIES=30000,1000000 cargo bench --bench retrieval` makes a store of
//! each size from that repository's head (its files repeated, each copy with other words: `support/copies.rs`) and searches it.
//! `TIDEMILL_BENCH_FOLDER` keeps repositories and stores as `SIZE.git` and `SIZE` in that folder, and finds them again.
//! `TIDEMILL_BENCH_ONLY` names one part of `make`, `query`, `log`, `publish` (which adds commits to the store that it measures)
//! and `dead`; `TIDEMILL_BENCH_DEAD` sets the number of live entries of the last (5,000). Without a repository a small generated
//! one is used: a smoke test whose figures mean nothing.
//!
//! Questions are asked in a process of its own, with the program's allocator, and drawn in another, so its memory is that of a reader.
//! Each is asked once before it is measured. Cold questions are asked each in a process of its own. `TIDEMILL_BENCH_READER=STORE` asks a
//! store that is there, and nothing else.

mod support;

use roaring::RoaringBitmap;
use snapshots::{Archive, Ordinal, VersionId};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::copies::{Corpus, DEATHS, SEED, small_commits};
use support::program::{Live, run, track};
use support::questions::{DRAWN, questions};
use support::{Machine, Repository, latency, median, milliseconds, number, row};
use tidemill::embedders::StaticModel;
use tidemill::index::vector::Reach;
use tidemill::index::{IndexReader, IndexView};
use tidemill::search::{Answer, Filter, Mode, Request, Searcher};
use tidemill::store::Layout;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Small commits after the first load.
const COMMITS: usize = 20;
/// Repetitions of every question.
const ROUNDS: usize = 3;
/// Shares of the entries that filters pass.
const SHARES: [f64; 4] = [0.5, 0.1, 0.01, 0.001];
/// Hits that are compared with the exact ones.
const K: usize = 10;
/// The store to search.
const READER: &str = "TIDEMILL_BENCH_READER";
/// The questions for a child process: a file.
const ASKED: &str = "TIDEMILL_BENCH_ASKED";
/// The one question that a child of this process asks it: a file as well.
const COLD: &str = "TIDEMILL_BENCH_COLD";
/// So many processes ask one question each, for each mode and age.
const COLD_PROCESSES: usize = 7;

fn main() {
    // As the program does.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    if let Some(store) = std::env::var_os(READER) {
        let store = Store::at(Path::new(&store));
        match (std::env::var_os(ASKED), std::env::var_os(COLD)) {
            (Some(file), _) => ask(&store, &Drawn::read(Path::new(&file))),
            (None, Some(file)) => ask_once(&store, Path::new(&file)),
            (None, None) => query(&store),
        }
        return;
    }
    let temporary = tempfile::tempdir().expect("a folder for temporary files can be made");
    let kept = std::env::var_os("TIDEMILL_BENCH_FOLDER").map(PathBuf::from);
    let folder = kept.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let origin = Repository::for_bench(temporary.path());
    println!("{}", Machine::describe(&origin));
    let sizes = std::env::var("TIDEMILL_BENCH_ENTRIES").unwrap_or_else(|_| "1000,3000".to_owned());
    let only = std::env::var("TIDEMILL_BENCH_ONLY").ok();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let measured = ["make", "log", "query", "publish"].into_iter().any(wanted);
    for size in
        sizes.split(',').filter(|_| measured).map(|size| size.trim().parse::<usize>().expect("sizes are numbers"))
    {
        println!("\n{size} entries\n\n| what | figure |\n|---|---|");
        let store = Store::at(&folder.join(size.to_string()));
        store.make(&origin, size);
        if wanted("log") {
            log(&store);
        }
        if wanted("query") {
            query(&store);
        }
        if wanted("publish") {
            publish(&store);
        }
    }
    if wanted("dead") {
        dead(&origin, temporary.path(), number("TIDEMILL_BENCH_DEAD", 5_000));
    }
}

/// A repository and its store.
struct Store {
    data: PathBuf,
    repository: PathBuf,
}

impl Store {
    fn at(data: &Path) -> Self {
        let mut repository = data.as_os_str().to_owned();
        repository.push(".git");
        Self { data: data.to_owned(), repository: repository.into() }
    }

    /// Creates what is missing: the copies in one commit, then the small commits.
    fn make(&self, origin: &Repository, entries: usize) {
        if !self.repository.exists() {
            Corpus::read(origin.path(), SEED).replicate(entries, &self.repository);
        }
        if self.data.exists() {
            return;
        }
        let repository = Repository::open(&self.repository);
        let (seconds, lines) = run(track(&repository, &self.data, &["--once"]));
        let line = &lines[0];
        row(
            "first load",
            format!(
                "{seconds:.1} s; {} files, {} entries, {} texts embedded",
                line["documents"]["added"], line["live_entries"], line["work"]["embedded"]
            ),
        );
        let commits = small_commits(&self.repository, COMMITS);
        repository.move_head(commits.last().expect("commits were made"));
        let (seconds, lines) = run(track(&repository, &self.data, &["--once"]));
        let epochs = lines.len() - 1;
        let inserted: u64 = lines.iter().filter_map(|line| line["work"]["inserted"].as_u64()).sum();
        let mean = inserted as f64 / epochs as f64;
        row(&format!("{epochs} commits of {mean:.1} new entries on average"), format!("{seconds:.1} s"));
    }

    fn searcher(&self) -> Searcher {
        Searcher::open(&Layout::new(&self.data)).expect("the store can be read")
    }
}

/// Measures the log: opening it, a version of it, and its bytes.
fn log(store: &Store) {
    let folder = store.data.join("versions");
    let archive = Archive::open_reader(&folder).expect("the log opens");
    let versions = archive.versions();
    let moved: u64 = versions.iter().skip(1).map(|version| version.entries.inserted + version.entries.retracted).sum();
    let behind = versions.len() as u64 - 1;
    let (in_log, in_checkpoints) = archive.bytes();
    let allowed = 160 * behind + 4 * moved;
    row(
        &format!("log of {} versions, {moved} entries moved after the first", versions.len()),
        format!("{in_log} bytes (reach for all but the first: ≤ {allowed}), and {in_checkpoints} of checkpoints"),
    );
    let (mut opened, mut rebuilt) = (Vec::new(), Vec::new());
    for round in 0..50 {
        let started = Instant::now();
        // A separate handle, without cached bitmaps.
        let fresh = Archive::open_reader(&folder).expect("the log opens");
        opened.push(milliseconds(started));
        let started = Instant::now();
        fresh.bitmaps(VersionId::new(round % versions.len() as u32)).expect("the version is there");
        rebuilt.push(milliseconds(started));
    }
    row("opening the log (reach ≤ 2 ms with the next)", latency(&mut opened));
    row("a version of it, cold", latency(&mut rebuilt));
}

/// The input for a store. Drawing it takes the whole repository, which a reader does not need.
#[derive(serde::Serialize, serde::Deserialize)]
struct Drawn {
    questions: Vec<String>,
    /// The oldest commit.
    oldest: String,
    /// Filters by path that pass about [`SHARES`] of the entries.
    filters: Vec<String>,
}

impl Drawn {
    fn of(store: &Store) -> Self {
        let history = Repository::open(&store.repository).first_parents(COMMITS + 1);
        Self {
            questions: questions(&store.repository, DRAWN),
            oldest: history[0].clone(),
            filters: filters(&store.repository),
        }
    }

    fn read(file: &Path) -> Self {
        let text = std::fs::read(file).expect("what is asked can be read");
        serde_json::from_slice(&text).expect("what is asked was written by this program")
    }
}

/// Lets a child process search a store.
fn query(store: &Store) {
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let file = folder.path().join("asked.json");
    let drawn = Drawn::of(store);
    std::fs::write(&file, serde_json::to_vec(&drawn).expect("strings can be written"))
        .expect("the folder can be written");
    cold(store, &drawn, folder.path());
    let mut child = Command::new(std::env::current_exe().expect("the program knows itself"));
    let status = child.env(READER, &store.data).env(ASKED, &file).status().expect("the program starts");
    assert!(status.success(), "questions cannot be asked: {status}");
}

/// A question that a process of its own asks.
#[derive(serde::Serialize, serde::Deserialize)]
struct ColdQuestion {
    question: String,
    mode: String,
    at: Option<String>,
}

/// What it took: milliseconds from the start to the hits, those of them within the search, and the most megabytes that were resident.
#[derive(serde::Serialize, serde::Deserialize)]
struct ColdAnswer {
    milliseconds: f64,
    took: f64,
    peak: f64,
}

const MODES: [Mode; 3] = [Mode::Bm25, Mode::Vector, Mode::Hybrid];

/// Measures questions that are the first and only one of their process, at the head and as of the oldest commit.
fn cold(store: &Store, drawn: &Drawn, folder: &Path) {
    let (file, program) = (folder.join("cold.json"), std::env::current_exe().expect("the program knows itself"));
    for (mode, at) in MODES.into_iter().flat_map(|mode| [(mode, None), (mode, Some(drawn.oldest.clone()))]) {
        let answers = drawn.questions.iter().cycle().take(COLD_PROCESSES).map(|question| {
            let asked = ColdQuestion { question: question.clone(), mode: mode.as_str().to_owned(), at: at.clone() };
            let asked = serde_json::to_vec(&asked).expect("strings can be written");
            std::fs::write(&file, asked).expect("the folder can be written");
            let output = Command::new(&program).env(READER, &store.data).env(COLD, &file).output();
            let output = output.expect("the program starts");
            serde_json::from_slice::<ColdAnswer>(&output.stdout).expect("it prints what it took")
        });
        let answers: Vec<ColdAnswer> = answers.collect();
        let of = |figure: fn(&ColdAnswer) -> f64| median(&mut answers.iter().map(figure).collect::<Vec<_>>());
        let age = if at.is_some() { "as of the oldest commit" } else { "head" };
        row(
            &format!("cold question, {}, {age} (reach ≤ 300 ms)", mode.as_str()),
            format!(
                "{:.0} ms, {:.1} of them searching; peak {:.0} MB",
                of(|answer| answer.milliseconds),
                of(|answer| answer.took),
                of(|answer| answer.peak)
            ),
        );
    }
}

/// Asks one question and prints what that took.
fn ask_once(store: &Store, file: &Path) {
    let started = Instant::now();
    let text = std::fs::read(file).expect("what is asked can be read");
    let ColdQuestion { question, mode, at } = serde_json::from_slice(&text).expect("this program wrote it");
    let mode = MODES.into_iter().find(|known| known.as_str() == mode).expect("this program wrote it");
    let answer = store.searcher().search(&Request { mode, at, ..Request::new(&question) });
    let took = answer.expect("the question can be answered").took.as_secs_f64() * 1000.0;
    let (milliseconds, peak) = (milliseconds(started), support::memory_megabytes(std::process::id(), "VmHWM"));
    let answer = ColdAnswer { milliseconds, took, peak };
    println!("{}", serde_json::to_string(&answer).expect("numbers can be written"));
}

/// Searches a store, in a process that does nothing else.
fn ask(store: &Store, drawn: &Drawn) {
    let started = Instant::now();
    let searcher = store.searcher();
    row("opening the store", format!("{:.0} ms", milliseconds(started)));
    let asked = &drawn.questions;
    let entries = searcher.revisions().select(searcher.reader(), None, None, None).expect("the store has a head");
    let versions: Vec<VersionId> = entries.iter().map(|selected| selected.version).collect();
    let view = searcher.reader().view(&versions).expect("the head can be read");
    let modes = MODES;

    for mode in modes {
        let request = |question: &String| Request { mode, ..Request::new(question) };
        let mut times = times(&searcher, asked, request);
        let first = latency(&mut times.first);
        row(&format!("{}, head", mode.as_str()), format!("{} (first time {first})", times.show()));
    }
    for mode in modes {
        let head = |question: &String| Request { mode, ..Request::new(question) };
        let old = |question: &String| Request { at: Some(drawn.oldest.clone()), ..head(question) };
        let figure = beside((&searcher, &old), (&searcher, &head), asked);
        let what = format!("{}, as of the oldest commit beside head (reach ≤ 1.5 ×)", mode.as_str());
        row(&what, figure);
    }
    row("recall@10, head", recall(&searcher, &view, asked, &view.entries));
    resident("resident memory of the reader before the first filter", "");
    for expression in &drawn.filters {
        let filter = Filter::parse(expression).expect("the expression is one");
        let passing = || {
            let started = Instant::now();
            let passing = filter.entries(searcher.reader(), &view, &[]).expect("the store can be read").entries;
            (passing, milliseconds(started))
        };
        let ((passing, first), (_, filtering)) = (passing(), passing());
        let share = passing.len() as f64 / view.entries.len() as f64;
        // A filter that takes seconds is not repeated hundreds of times.
        let few = &asked[..(2_000.0 / filtering).clamp(3.0, 20.0) as usize];
        let figures = modes.map(|mode| {
            let request = |question: &String| Request { mode, filter: Some(filter.clone()), ..Request::new(question) };
            format!("{} {}", mode.as_str(), times(&searcher, few, request).show())
        });
        row(
            &format!("filter that lets {:.2} % pass", 100.0 * share),
            format!(
                "{}; the filter itself {filtering:.1} ms of each, {first:.1} ms the first time",
                figures.join(", ")
            ),
        );
        row(&format!("recall@10, {:.2} % pass", 100.0 * share), recall(&searcher, &view, asked, &passing));
    }
    let set = searcher.reader().vectors(&view).expect("the vectors can be read");
    let vectors = set.len();
    let allowed = (1.5 * (2 * vectors * set.dimensions()) as f64 + 40.0 * vectors as f64) / 1e6;
    let reach = format!(" (reach ≤ 1.5 × vectors + 40 B an entry: {allowed:.0} MB)");
    resident("resident memory of the reader after all that", &reach);
}

/// Prints the resident memory of this process.
fn resident(what: &str, reach: &str) {
    // The allocator returns free memory after half a second.
    std::thread::sleep(Duration::from_secs(2));
    let memory = |name| support::memory_megabytes(std::process::id(), name);
    let parts: Vec<String> = support::resident_parts().iter().map(|(part, mb)| format!("{part} {mb:.0}")).collect();
    row(
        &format!("{what}{reach}"),
        format!("{:.0} MB ({}); peak {:.0} MB", memory("VmRSS"), parts.join(", "), memory("VmHWM")),
    );
}

/// The times of asking every question repeatedly, in milliseconds.
struct Asked {
    /// Each question's first time, which fills caches.
    first: Vec<f64>,
    others: Vec<f64>,
    /// Processor time of a question, over all threads, without the first times.
    processor: f64,
}

impl Asked {
    fn show(&mut self) -> String {
        format!("{}, {:.2} ms of processor time", latency(&mut self.others), self.processor)
    }
}

fn times(searcher: &Searcher, asked: &[String], request: impl Fn(&String) -> Request) -> Asked {
    let (mut first, mut others, mut before) = (Vec::new(), Vec::new(), 0.0);
    let process = std::process::id();
    for round in 0..=ROUNDS {
        if round == 1 {
            before = support::processor_seconds(process);
        }
        for question in asked {
            let answer = searcher.search(&request(question)).expect("the question can be answered");
            let times = if round == 0 { &mut first } else { &mut others };
            times.push(answer.took.as_secs_f64() * 1000.0);
        }
    }
    let processor = (support::processor_seconds(process) - before) * 1000.0 / others.len() as f64;
    Asked { first, others, processor }
}

/// Returns the exact best of some entries: the scan that is the reference for every other answer.
fn exactly(view: &IndexView, alive: &RoaringBitmap, question: &[f32], reader: &IndexReader) -> Vec<(Ordinal, f32)> {
    let vectors = reader.vectors(view).expect("the vectors can be read");
    vectors.search(alive, question, K, Reach::All, reader).expect("the vectors can be searched").ranked
}

/// Returns the share of the exact hits that the vector index finds, on average and at worst, and the time of a scan.
fn recall(searcher: &Searcher, view: &IndexView, asked: &[String], alive: &RoaringBitmap) -> String {
    use dataflows::embed::Embedder;
    let (model, reader) = (StaticModel::new(), searcher.reader());
    let (mut recalls, mut scans, mut quick) = (Vec::new(), Vec::new(), Vec::new());
    for question in asked {
        let Some(question) = model.embed_query(question).expect("the built-in model runs") else { continue };
        let started = Instant::now();
        let exact = exactly(view, alive, &question, reader);
        scans.push(milliseconds(started));
        let started = Instant::now();
        let vectors = reader.vectors(view).expect("the vectors can be read");
        let found = vectors.search(alive, &question, K, Reach::Near, reader).expect("the vectors can be searched");
        quick.push(milliseconds(started));
        // By score: any of several entries with one vector counts.
        let border = exact.last().map_or(f32::NEG_INFINITY, |(_, score)| *score);
        let right = found.ranked.iter().filter(|(_, score)| *score >= border).count();
        recalls.push(right as f64 / exact.len().max(1) as f64);
    }
    let mean = recalls.iter().sum::<f64>() / recalls.len() as f64;
    let worst = recalls.iter().copied().fold(1.0, f64::min);
    format!(
        "{mean:.4} on average, {worst:.1} at worst (ten nearest: {}; by an exact scan: {})",
        latency(&mut quick),
        latency(&mut scans)
    )
}

/// Returns filters by path that pass about [`SHARES`] of the entries.
///
/// Folders are weighed by their bytes; the store gives the actual share.
fn filters(repository: &Path) -> Vec<String> {
    let weights = support::folder_weights(repository);
    let whole = weights.iter().find(|(folder, _)| folder.is_empty()).map_or(1, |(_, bytes)| *bytes) as f64;
    SHARES
        .iter()
        .filter_map(|share| {
            // The largest folders that fit go first, so that few are named.
            let (mut left, mut chosen) = (share * whole, Vec::<&str>::new());
            for (folder, bytes) in weights.iter().filter(|(folder, _)| !folder.is_empty()) {
                let is_new = !chosen.iter().any(|known| folder.starts_with(&format!("{known}/")));
                if *bytes as f64 <= left * 1.02 && is_new && chosen.len() < 40 {
                    left -= *bytes as f64;
                    chosen.push(folder);
                }
            }
            let expression = format!("path:{{{}}}/**", chosen.join(","));
            (!chosen.is_empty() && Filter::parse(&expression).is_ok()).then_some(expression)
        })
        .collect()
}

/// Measures commits to a store while its tracker is live.
fn publish(store: &Store) {
    let repository = Repository::open(&store.repository);
    let commits = small_commits(&store.repository, COMMITS + 1);
    let (first, arriving) = commits.split_first().expect("commits were made");
    repository.move_head(first);
    let mut live = Live::start(&repository, &store.data);
    live.next();
    std::thread::sleep(Duration::from_secs(2));
    let (mut latencies, mut applied, mut inserted) = (Vec::new(), Vec::new(), 0);
    let before = live.processor_seconds();
    for commit in arriving {
        let written = repository.move_head(commit);
        let line = live.next();
        latencies.push(milliseconds(written));
        assert_eq!(line["commit"].as_str(), Some(commit.as_str()), "the line is that of the commit that arrived");
        applied.push(line["ms"]["apply"].as_f64().expect("a line has its times"));
        inserted += line["work"]["inserted"].as_u64().unwrap_or_default();
        std::thread::sleep(Duration::from_millis(200));
    }
    let processor = (live.processor_seconds() - before) * 1000.0 / arriving.len() as f64;
    let mean = inserted as f64 / arriving.len() as f64;
    row(
        &format!("from the ref being written to the flushed line, live, {COMMITS} commits of {mean:.1} new entries"),
        format!("{}; {processor:.0} ms of processor time each", latency(&mut latencies)),
    );
    row("… of that, publishing (`apply`)", latency(&mut applied));
    row("resident memory of the tracker", format!("{:.0} MB", live.memory("VmRSS")));
    live.end();
}

/// Compares a store with ten dead entries for each live one with a store of the live ones only.
fn dead(origin: &Repository, folder: &Path, living: usize) {
    let (old, fresh) = (Store::at(&folder.join("rewritten")), Store::at(&folder.join("fresh")));
    Corpus::read(origin.path(), SEED).rewrite(living, DEATHS, &old.repository);
    let repository = Repository::open(&old.repository);
    run(track(&repository, &old.data, &["--once", "--backfill", "all"]));
    // The maintenance of an idle tracker is part of it.
    let live = Live::start(&repository, &old.data);
    std::thread::sleep(Duration::from_secs(number("TIDEMILL_BENCH_IDLE", 5) as u64));
    live.end();
    run(track(&repository, &fresh.data, &["--once"]));
    let asked = questions(&old.repository, DRAWN);
    let (old, fresh) = (old.searcher(), fresh.searcher());
    let head = |searcher: &Searcher| searcher.search(&Request::new("the")).expect("it can be asked").at[0].version;
    let entries =
        |searcher: &Searcher| searcher.reader().view(&[head(searcher)]).expect("the head can be read").entries.len();
    let stored = old.reader().catalogue().next_entry().expect("the store can be read");
    println!("\n{} living entries of {stored}\n\n| what | figure |\n|---|---|", entries(&old));
    assert_eq!(entries(&old), entries(&fresh), "both hold the head");
    for mode in [Mode::Bm25, Mode::Vector, Mode::Hybrid] {
        let request = |question: &String| Request { mode, ..Request::new(question) };
        for question in &asked {
            let [old, fresh] = [&old, &fresh].map(|store| store.search(&request(question)).expect("it can be asked"));
            let hits = |answer: &Answer| -> Vec<(String, u32)> {
                answer.hits.iter().map(|hit| (hit.path.to_string(), hit.score.to_bits())).collect()
            };
            let comparable = old.exact && fresh.exact;
            assert!(!comparable || hits(&old) == hits(&fresh), "{question}: what died changes no answer");
        }
        let what = format!("{}, head, beside the living only (reach ≤ 1.3 ×)", mode.as_str());
        row(&what, beside((&old, &request), (&fresh, &request), &asked));
    }
}

/// Asks every question in two ways, by turns, so that other load affects both; returns the latencies and their ratio.
fn beside(left: Way<'_>, right: Way<'_>, asked: &[String]) -> String {
    let mut figures = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for question in asked {
            for ((searcher, request), times) in [left, right].into_iter().zip(&mut figures) {
                let answer = searcher.search(&request(question)).expect("the question can be answered");
                if round > 0 {
                    times.push(answer.took.as_secs_f64() * 1000.0);
                }
            }
        }
    }
    let [mut left, mut right] = figures;
    let ratio = median(&mut left) / median(&mut right);
    format!("{} against {}: {ratio:.2} ×", latency(&mut left), latency(&mut right))
}

/// A store, and the search of a question in it.
type Way<'a> = (&'a Searcher, &'a dyn Fn(&String) -> Request);

//! How many instructions does each hot path take, on fixed inputs, compared with the table?
//!
//! `cargo bench --bench instructions` runs every path under valgrind's callgrind, once for a number of rounds and once for twice
//! as many; the difference is the cost of the rounds without the start. So threads count too, and clocks and other processes do
//! not. The counts are compared with `benches/instructions.tsv`. A path above its tolerance ends the bench with an error; a path
//! below it is reported. `-- --write` writes the table; `-- PATH` measures one path; `-- --test` runs every path once, without
//! valgrind, as a smoke test.
//!
//! valgrind offers a processor with AVX2 and without AVX-512, so code that checks the processor runs the same everywhere. The
//! table names the compiler: another one gives other counts, which are shown and not judged. The profile of the last run of each
//! path stays in `target/tmp/instructions/`, for `callgrind_annotate`.
//!
//! The inputs are those of a generated tree (`tidemill bench steady` with seed 1).

use dataflows::chunk::chunk;
use dataflows::clean::clean;
use dataflows::embed::Embedder;
use dataflows::rules::{Rule, Rules};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tidemill::embedders::StaticModel;
use tidemill::index::lexical::analyze;
use tidemill::replay::{Knobs, replay};
use tidemill::search::{Mode, Request, Searcher};
use tidemill::store::Layout;
use tidemill::trace::generate::{Scenario, Settings, generate};
use tidemill::trace::{Stored, Trace};

/// The job of a child process: the path, the rounds and the folder of the inputs, separated by spaces.
const CHILD: &str = "TIDEMILL_INSTRUCTIONS";
/// Files of the generated tree: a module.
const FILES: u64 = 64;

/// One hot path.
struct Measured {
    name: &'static str,
    what: &'static str,
    /// Rounds of the shorter run.
    rounds: usize,
    /// Tolerance in percent: waiting threads do not wait equally often twice, and a build with other code units takes some more
    /// or less.
    tolerance: f64,
    /// Creates the inputs, and runs so many rounds.
    run: fn(&Inputs, usize),
}

const PATHS: [Measured; 7] = [
    Measured { name: "cut", what: "clean and cut the tree", rounds: 1, tolerance: 10.0, run: cut },
    Measured { name: "analyze", what: "analyse its texts for BM25", rounds: 1, tolerance: 10.0, run: analyse },
    Measured { name: "embed", what: "embed 64 of its texts", rounds: 1, tolerance: 10.0, run: embed },
    Measured {
        name: "publish",
        what: "a commit of five files, from nothing to published",
        rounds: 8,
        tolerance: 15.0,
        run: publish,
    },
    Measured {
        name: "search-bm25",
        what: "a question by words",
        rounds: 20,
        tolerance: 10.0,
        run: |inputs, rounds| search(inputs, rounds, Mode::Bm25),
    },
    Measured {
        name: "search-vector",
        what: "a question by vectors",
        rounds: 20,
        tolerance: 10.0,
        run: |inputs, rounds| search(inputs, rounds, Mode::Vector),
    },
    Measured {
        name: "search-hybrid",
        what: "a question by both",
        rounds: 20,
        tolerance: 10.0,
        run: |inputs, rounds| search(inputs, rounds, Mode::Hybrid),
    },
];

fn main() {
    if let Ok(asked) = std::env::var(CHILD) {
        let mut words = asked.splitn(3, ' ');
        let mut word = || words.next().expect("the parent says what to do");
        let (name, rounds, folder) = (word(), word().parse().expect("rounds are a number"), word());
        let path = PATHS.iter().find(|path| path.name == name).expect("the parent knows the paths");
        (path.run)(&Inputs { folder: folder.into() }, rounds);
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let names: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let inputs = Inputs { folder: folder.path().to_owned() };
    inputs.make();
    let wanted: Vec<&Measured> =
        PATHS.iter().filter(|path| names.is_empty() || names.iter().any(|name| *name == path.name)).collect();
    if has("--test") {
        wanted.iter().for_each(|path| (path.run)(&inputs, 1));
        println!("{} paths run", wanted.len());
        return;
    }
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("valgrind is not installed (Debian: apt-get install valgrind); nothing was counted");
        return;
    }
    let known = Table::read();
    let compiler = compiler();
    let is_comparable = known.compiler == compiler;
    println!("{compiler}; the table is of {}", known.compiler);
    println!("\n| path | what | instructions | in the table | |\n|---|---|---|---|---|");
    let mut counted = Table { compiler, ..Table { counts: known.counts.clone(), ..Table::default() } };
    let mut worse = Vec::new();
    for path in wanted {
        let per_round = count(path, &inputs);
        let before = known.counts.get(path.name).copied();
        let change = before.map(|before| 100.0 * (per_round as f64 / before as f64 - 1.0));
        let verdict = match change {
            None => "new".to_owned(),
            Some(change) if change > path.tolerance => format!("{change:+.1} %, MORE"),
            Some(change) if change < -path.tolerance => format!("{change:+.1} %, less: write the table anew"),
            Some(change) => format!("{change:+.1} %"),
        };
        println!("| {} | {} | {per_round} | {} | {verdict} |", path.name, path.what, before.unwrap_or_default());
        if change.is_some_and(|change| change > path.tolerance) {
            worse.push(path.name);
        }
        counted.counts.insert(path.name.to_owned(), per_round);
    }
    if has("--write") {
        counted.write();
    } else if is_comparable && !worse.is_empty() {
        eprintln!(
            "more instructions than before: {}; find out why, or write the table anew and say why",
            worse.join(", ")
        );
        std::process::exit(1);
    }
}

/// Returns the instructions of one round of a path.
fn count(path: &Measured, inputs: &Inputs) -> u64 {
    let [once, twice] = [path.rounds, 2 * path.rounds].map(|rounds| {
        let profiles = Path::new(env!("CARGO_TARGET_TMPDIR")).join("instructions");
        std::fs::create_dir_all(&profiles).expect("the target folder can be written");
        let child = std::env::current_exe().expect("the program knows itself");
        let output = Command::new("valgrind")
            .arg("--tool=callgrind")
            .arg(format!("--callgrind-out-file={}", profiles.join(path.name).display()))
            .arg(child)
            .env(CHILD, format!("{} {rounds} {}", path.name, inputs.folder.display()))
            .stdout(Stdio::null())
            .output()
            .expect("valgrind was just there");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", path.name);
        let line =
            said.lines().find_map(|line| line.split_once("Collected : ")).expect("callgrind says what it counted");
        line.1.trim().parse::<u64>().expect("callgrind counts")
    });
    (twice - once) / path.rounds as u64
}

/// The counts of the table.
#[derive(Default)]
struct Table {
    compiler: String,
    counts: BTreeMap<String, u64>,
}

impl Table {
    fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.tsv")
    }

    fn read() -> Self {
        let text = std::fs::read_to_string(Self::path()).unwrap_or_default();
        let mut lines = text.lines();
        let compiler = lines.next().unwrap_or("no compiler").to_owned();
        let row = |line: &str| {
            let (name, count) = line.split_once('\t')?;
            Some((name.to_owned(), count.parse().ok()?))
        };
        Self { compiler, counts: lines.filter_map(row).collect() }
    }

    fn write(&self) {
        let rows: String = self.counts.iter().map(|(name, count)| format!("{name}\t{count}\n")).collect();
        std::fs::write(Self::path(), format!("{}\n{rows}", self.compiler)).expect("the table can be written");
    }
}

/// Returns the compiler of this program, as far as can be known: the one that would build it now.
fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or_else(|_| "no compiler".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A generated tree, and a store that was filled from it.
struct Inputs {
    folder: PathBuf,
}

impl Inputs {
    /// Creates trace and store, once for all runs.
    fn make(&self) {
        let settings = Settings { files: FILES, epochs: 33, seed: 1 };
        generate(&self.trace_path(), Scenario::Steady, settings).expect("the folder can be written");
        replay(&self.trace(), &knobs(Some(self.store())), Box::new(|_| {})).expect("the trace can be replayed");
    }

    fn trace_path(&self) -> PathBuf {
        self.folder.join("steady.tmtrace")
    }

    fn trace(&self) -> Arc<Trace> {
        Arc::new(Trace::open(&self.trace_path()).expect("the trace was just written"))
    }

    fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// Returns the contents of the tree, each with its path.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let trace = self.trace();
        let changes = trace.epoch(0).expect("the trace has it").changes;
        let content = |content| match trace.content(content) {
            Ok(Some(Stored::Whole(bytes))) => Some(bytes),
            _ => None,
        };
        changes
            .iter()
            .filter_map(|change| Some((change.path.display().into_owned(), content(change.after?.content)?)))
            .collect()
    }

    fn texts(&self) -> Vec<String> {
        let rules = Rules::built_in();
        let files = self.files();
        files.iter().flat_map(|(path, bytes)| pieces(rule(&rules, path), bytes)).collect()
    }
}

fn knobs(data: Option<PathBuf>) -> Knobs {
    Knobs { data, workers: 1, pool: 1, batch: 1, check_work: false, ..Knobs::default() }
}

fn rule<'a>(rules: &'a Rules, path: &str) -> &'a Rule {
    rules.rule(rules.for_path(&path.into()))
}

fn pieces(rule: &Rule, bytes: &[u8]) -> Vec<String> {
    let text = clean(rule, bytes).unwrap_or_default();
    chunk(rule, &text).into_iter().map(|piece| piece.text).collect()
}

fn cut(inputs: &Inputs, rounds: usize) {
    let (rules, files) = (Rules::built_in(), inputs.files());
    for _ in 0..rounds {
        for (path, bytes) in &files {
            black_box(pieces(rule(&rules, path), bytes));
        }
    }
}

fn analyse(inputs: &Inputs, rounds: usize) {
    let texts = inputs.texts();
    for _ in 0..rounds {
        for text in &texts {
            black_box(analyze(text));
        }
    }
}

fn embed(inputs: &Inputs, rounds: usize) {
    let (texts, model) = (inputs.texts(), StaticModel::new());
    let texts: Vec<&str> = texts.iter().step_by(texts.len().div_ceil(64)).map(String::as_str).collect();
    for _ in 0..rounds {
        black_box(model.embed_documents(&texts).expect("the built-in model runs"));
    }
}

/// Publishes one commit per round, from an empty store; the cost of the first load does not depend on their number.
fn publish(inputs: &Inputs, rounds: usize) {
    let path = inputs.folder.join(format!("steady-{rounds}.tmtrace"));
    let settings = Settings { files: FILES, epochs: rounds + 1, seed: 1 };
    generate(&path, Scenario::Steady, settings).expect("the folder can be written");
    let trace = Arc::new(Trace::open(&path).expect("the trace was just written"));
    replay(&trace, &knobs(None), Box::new(|_| {})).expect("the trace can be replayed");
}

fn search(inputs: &Inputs, rounds: usize, mode: Mode) {
    let searcher = Searcher::open(&Layout::new(inputs.store())).expect("the store was just filled");
    let questions =
        ["camera that renders the shadow of a mesh", "spawn entity", "transform", "how is a frame allocated"];
    for question in questions.into_iter().cycle().take(rounds) {
        let request = Request { mode, ..Request::new(question) };
        black_box(searcher.search(&request).expect("the question can be answered"));
    }
}

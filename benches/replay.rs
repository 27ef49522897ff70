//! Is the main job incremental: does a commit cost only its changes, in time and in work, whatever the history, and how does that
//! compare with a rebuild?
//!
//! `TIDEMILL_BENCH_REPO=/path/to/engine.git cargo bench --bench replay` records the last commits of that repository
//! (`TIDEMILL_BENCH_COMMITS` of them, 1,000) and replays them: through everything, through the graph alone over a warm memo, and
//! some of them from scratch; then generated trees of two sizes. Without a repository a small generated one is used: a smoke test
//! whose figures mean nothing.
//!
//! It runs the code of `tidemill replay`, in one process, so that command repeats every figure.

mod support;

use std::path::Path;
use std::sync::Arc;
use support::{Machine, Repository};
use tidemill::replay::{Knobs, Report, replay};
use tidemill::trace::generate::{Scenario, Settings, generate};
use tidemill::trace::record::{Recording, line, record};
use tidemill::trace::{About, Trace};
use tidemill::watch::git::GitSource;

fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let repository = Repository::for_bench(folder.path());
    println!("{}", Machine::describe(&repository));
    let commits: usize = std::env::var("TIDEMILL_BENCH_COMMITS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let trace = recorded(&repository, commits, folder.path());
    let report = run("everything, from an empty memo", &trace, &Knobs { rebuilds: 3, ..Knobs::default() });
    assert!(report.work.is_some_and(|work| work.epochs_off == 0), "the work is the least that it can be");
    let graph = Knobs { index: false, warm: true, check_work: false, ..Knobs::default() };
    run("the graph alone, memo warm", &trace, &graph);
    let sizes: [u64; 2] = if std::env::var_os("TIDEMILL_BENCH_REPO").is_some() { [2_000, 20_000] } else { [50, 100] };
    for files in sizes {
        let path = folder.path().join(format!("steady-{files}.tmtrace"));
        let settings = Settings { files, epochs: 61, seed: 1 };
        generate(&path, Scenario::Steady, settings).expect("the folder can be written");
        let paced = Knobs { pace: Some(5.0), check_work: false, ..Knobs::default() };
        run(&format!("generated tree of {files} files, commits of five files, paced"), &opened(&path), &paced);
    }
}

fn opened(path: &Path) -> Arc<Trace> {
    Arc::new(Trace::open(path).expect("the trace was just written"))
}

fn recorded(repository: &Repository, commits: usize, folder: &Path) -> Arc<Trace> {
    let source = GitSource::open(repository.path()).expect("the clone was just made");
    let history = repository.first_parents(commits + 1);
    let (first, last) = (&history[0], &history[history.len() - 1]);
    let rules = Arc::new(dataflows::rules::Rules::built_in());
    let about = About {
        source: "bench".to_owned(),
        range: format!("{first}..{last}"),
        fingerprint: rules.fingerprint().to_bytes(),
        model: [0; 16],
        rules: String::new(),
        redacted: false,
        corpus: [0; 32],
    };
    let recording = Recording {
        commits: line(&source, first, last).expect("the commits are on one line"),
        source,
        view: "main".to_owned(),
        about,
        rules,
        digests: None,
        redactor: None,
        progress: &mut |_| {},
        stop: &|| false,
    };
    let path = folder.join("bench.tmtrace");
    record(&path, recording).expect("the clone can be read and the folder written").expect("nobody stops it");
    opened(&path)
}

fn run(what: &str, trace: &Arc<Trace>, knobs: &Knobs) -> Report {
    let report = replay(trace, knobs, Box::new(|_| {})).expect("the trace can be replayed");
    assert!(report.is_proven(), "{what}: {:?}", report.proof.differing);
    println!("\n{what}\n\n| what | figure |\n|---|---|");
    for (what, figure) in report.rows() {
        println!("| {what} | {figure} |");
    }
    report
}

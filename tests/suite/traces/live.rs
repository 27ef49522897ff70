//! Recording a tracked source: a replay gives what was published.

use super::open;
use crate::support::{Program, Repository, Store, git, tree};
use dataflows::embed::Embedder;
use dataflows::rules::Rules;
use std::sync::Arc;
use tidemill::config::Config;
use tidemill::embedders::StaticModel;
use tidemill::engine::{Extras, Stop, Tracker, TrackerOptions};
use tidemill::replay::{Knobs, replay};
use tidemill::trace::live::LiveRecorder;
use tidemill::trace::redact::Redactor;
use tidemill::trace::{About, TraceStep};

fn code(number: usize) -> String {
    format!("/// Turns the wheel.\nfn turn() {{\n    wheel({number});\n}}\n")
}

fn about(redacted: bool) -> About {
    About {
        source: "engine".to_owned(),
        range: "live".to_owned(),
        fingerprint: Rules::built_in().fingerprint().to_bytes(),
        model: StaticModel::new().fingerprint().to_bytes(),
        rules: String::new(),
        redacted,
        corpus: [0; 32],
    }
}

/// Catches up with a repository and records it.
pub(super) fn record(
    store: &Store,
    repository: &Repository,
    name: &str,
    redactor: Option<Redactor>,
) -> std::path::PathBuf {
    let out = store.layout().root().with_file_name(name);
    let recorder = LiveRecorder::begin(&out, about(redactor.is_some()), Arc::new(Rules::built_in()), redactor).unwrap();
    let told = recorder.clone();
    let options = TrackerOptions {
        layout: store.layout(),
        config: Config { sources: vec![git(repository.path(), &["*"], None)], ..Config::default() },
        on_published: Box::new(move |line| told.published(line.version.commit, line.version.digest)),
        stop: Stop::default(),
    };
    let extras = Extras { recorder: Some(recorder.clone()), ..Extras::default() };
    Tracker::open_with(options, extras).unwrap().catch_up().unwrap();
    recorder.finish().unwrap().unwrap();
    out
}

#[test]
fn branches_tags_and_restarts_are_recorded_and_replay_to_the_same_digests() {
    let repository = Repository::new();
    let store = Store::new();
    let mut heads = Vec::new();
    for number in 0..3 {
        heads.push(
            repository
                .commit(&tree([("src/wheel.rs", code(number).as_str()), ("README.md", "# Wheel\n\nIt turns.\n")])),
        );
    }
    let side =
        repository.write(&[heads[1]], &tree([("src/wheel.rs", code(70).as_str()), ("src/new.rs", code(71).as_str())]));
    let orphan = repository.write(&[], &tree([("other.md", "# Other\n\nWords of its own.\n")]));
    repository.point("refs/heads/side", side);
    repository.point("refs/tags/v1", orphan);
    repository.point("refs/tags/v2", heads[2]);
    let first = record(&store, &repository, "first.tmtrace", None);
    // A second run starts from the stored state: the whole of every branch comes first.
    repository.remove("refs/heads/side");
    repository.commit(&tree([("src/wheel.rs", code(4).as_str())]));
    let second = record(&store, &repository, "second.tmtrace", None);
    for (path, least) in [(&first, 3), (&second, 3)] {
        let trace = open(path);
        let steps: Vec<TraceStep> = trace.epochs().map(|epoch| epoch.unwrap().step).collect();
        assert!(steps.len() >= least, "{steps:?}");
        let report = replay(&trace, &Knobs::default(), Box::new(|_| {})).unwrap();
        assert!(report.is_proven(), "{:?}", report.proof);
        let commits = steps.iter().filter(|step| matches!(step, TraceStep::Commit { .. })).count() as u64;
        assert_eq!(report.proof.recorded, commits, "{steps:?}");
    }
    let steps = |path| open(path).epochs().map(|epoch| epoch.unwrap().step).collect::<Vec<_>>();
    assert!(steps(&first).iter().any(|step| matches!(step, TraceStep::Commit { passes: true, .. })), "a tag passes");
    assert!(steps(&first).iter().any(|step| matches!(step, TraceStep::Point { .. })), "a tag points");
    assert!(steps(&second).iter().any(|step| matches!(step, TraceStep::Leave { view: Some(view) } if view == "side")));
}

#[test]
fn a_directory_that_is_followed_is_recorded_as_it_was_saved() {
    let program = Program::new();
    let folder = program.folder().join("notes");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("wheel.rs"), code(0)).unwrap();
    let arguments = ["record", "notes.tmtrace", "--live", "--source", "dir:notes", "--json"];
    let mut live = program.start(&arguments);
    let mut digests = vec![live.line()["digest"].clone()];
    for number in 1..4 {
        std::fs::write(folder.join("wheel.rs"), code(number)).unwrap();
        std::fs::write(folder.join(format!("new{number}.md")), "# Wheel\n\nIt turns.\n").unwrap();
        digests.push(live.line()["digest"].clone());
    }
    live.signal("TERM");
    let written = live.line();
    assert_eq!(live.end(), Some(0));
    assert_eq!(written["digests"], "tracker");
    let trace = open(&program.folder().join("notes.tmtrace"));
    let recorded: Vec<String> = trace.epochs().map(|epoch| epoch.unwrap().digest().unwrap().to_string()).collect();
    assert_eq!(recorded, digests);
    let times: Vec<u64> = trace.epochs().map(|epoch| epoch.unwrap().arrived).collect();
    assert!(times.is_sorted() && times.last() > times.first(), "{times:?}");
    let report = program.json(&["replay", "notes.tmtrace", "--json"]).remove(0);
    assert_eq!((&report["proof"]["recorded"], &report["proof"]["differ"]), (&trace.len().into(), &0.into()));
}

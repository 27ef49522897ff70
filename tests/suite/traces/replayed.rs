//! Replays: every digest is the recorded one, with any settings, and after any interruption; and the work is the least possible.

use super::{open, record_all};
use crate::support::{self, History, Program, Repository, Step, Store, git, steps, tree};
use dataflows::memo::Contents as _;
use dataflows::reference;
use dataflows::rules::Rules;
use proptest::prelude::*;
use snapshots::{CommitId, Digest};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tidemill::config::Backfill;
use tidemill::engine::Stop;
use tidemill::replay::{Knobs, Model, Report, page, replay};
use tidemill::trace::bound::Bound;
use tidemill::trace::generate::{Scenario, Settings, generate};
use tidemill::trace::{Trace, TraceContents, TraceStep, TraceWriter};
use tidemill::watch::{Content, Contents};

fn run(trace: &Arc<Trace>, knobs: &Knobs) -> Report {
    replay(trace, knobs, Box::new(|_| {})).unwrap()
}

fn digests(report: &Report) -> Vec<Digest> {
    report.samples.iter().map(|sample| sample.digest).collect()
}

fn assert_proven(report: &Report, epochs: usize) {
    assert!(report.is_proven(), "{:?}", report.proof);
    assert_eq!(report.proof.compared, epochs as u64, "every epoch was compared");
    assert_eq!(report.samples.len(), epochs);
}

fn history(steps: Vec<Step>) -> (History, CommitId) {
    let mut history = History::new();
    steps.into_iter().filter(|step| !matches!(step, Step::Sync | Step::Restart)).for_each(|step| history.take(step));
    let head = history.head();
    (history, head)
}

proptest! {
    #![proptest_config(support::cases(4))]

    #[test]
    fn a_replay_has_the_recorded_digests_whatever_the_knobs(steps in steps(5..16), batch in 1..9_usize) {
        let folder = tempfile::tempdir().unwrap();
        let (history, head) = history(steps);
        let out = folder.path().join("history.tmtrace");
        record_all(&history.repository, &out, head, None);
        let trace = open(&out);
        let plain = run(&trace, &Knobs::default());
        assert_proven(&plain, trace.len());
        prop_assert_eq!(plain.proof.recorded, trace.len() as u64);
        for knobs in [
            Knobs { workers: 2, batch, ..Knobs::default() },
            Knobs { batch: 1, model: Model::None, pace: Some(1e9), ..Knobs::default() },
            Knobs { index: false, workers: 2, ..Knobs::default() },
            Knobs { index: false, warm: true, ..Knobs::default() },
        ] {
            let other = run(&trace, &knobs);
            assert_proven(&other, trace.len());
            prop_assert_eq!(digests(&other), digests(&plain), "{:?}", knobs);
        }
        // A store that tracked the repository itself has exactly these versions.
        let store = Store::new();
        store.open(git(history.repository.path(), &["*"], Some(Backfill::All))).catch_up();
        let searcher = store.searcher();
        for sample in &plain.samples {
            let tracked = searcher.reader().with_archive(|archive| {
                archive.versions().iter().find(|version| version.commit == sample.commit).map(|version| version.digest)
            });
            prop_assert_eq!(tracked, Some(sample.digest), "{}", sample.commit);
        }
    }

    #[test]
    fn a_replay_that_was_stopped_goes_on_where_it_stood(steps in steps(8..20), at in 0.0..1.0_f64, batch in 1..5_usize) {
        let folder = tempfile::tempdir().unwrap();
        let (history, head) = history(steps);
        let out = folder.path().join("history.tmtrace");
        record_all(&history.repository, &out, head, None);
        let trace = open(&out);
        let whole = run(&trace, &Knobs::default());
        let stop = Stop::default();
        let knobs = Knobs { data: Some(folder.path().join("store")), batch, stop: stop.clone(), ..Knobs::default() };
        let last = (at * trace.len() as f64) as usize;
        let asked = stop.clone();
        let first = replay(&trace, &knobs, Box::new(move |sample| if sample.number >= last { asked.ask() })).unwrap();
        let second = run(&trace, &Knobs { stop: Stop::default(), ..knobs });
        prop_assert!(first.is_proven() && second.is_proven());
        prop_assert_eq!(second.proof.left_out, first.samples.len() as u64, "nothing is done twice");
        let both: Vec<Digest> = digests(&first).into_iter().chain(digests(&second)).collect();
        prop_assert_eq!(both, digests(&whole));
    }

    #[test]
    fn the_bound_is_what_the_reference_says_of_every_tree(steps in steps(5..16)) {
        let folder = tempfile::tempdir().unwrap();
        let (history, head) = history(steps);
        let out = folder.path().join("history.tmtrace");
        record_all(&history.repository, &out, head, None);
        check_bound(&open(&out));
    }
}

/// Contents of a trace, as the reference asks for them.
struct ForReference(TraceContents);

impl dataflows::memo::Contents for ForReference {
    fn read(&self, content: dataflows::data::ContentId, max_bytes: u64) -> Result<Content, dataflows::memo::ReadError> {
        Contents::read(&self.0, content, max_bytes)
            .map_err(|error| dataflows::memo::ReadError::Missing { content, reason: error.to_string() })
    }
}

/// Compares the bound with the reference, which builds every tree from scratch, and counts inputs with separate sets.
fn check_bound(trace: &Arc<Trace>) {
    let rules = Arc::new(Rules::built_in());
    let contents = ForReference(TraceContents(trace.clone()));
    assert!(contents.read(Default::default(), 1).is_err(), "a content that was never recorded is missing");
    let mut bound = Bound::new(rules.clone(), Arc::new(TraceContents(trace.clone())));
    let (mut cleaned, mut chunked, mut embedded) =
        <(std::collections::BTreeSet<_>, std::collections::BTreeSet<_>, std::collections::BTreeSet<_>)>::default();
    let mut sets: BTreeMap<CommitId, std::collections::BTreeSet<_>> = BTreeMap::new();
    let mut heads: BTreeMap<Option<String>, CommitId> = BTreeMap::new();
    for (number, record) in trace.epochs().enumerate() {
        let record = record.unwrap();
        let least = bound.take(&record);
        let head = record.head().map(str::to_owned);
        let TraceStep::Commit { commit, parent, .. } = record.step else {
            heads.remove(&head);
            continue;
        };
        let files = trace.heads_after(number + 1).unwrap().remove(&head).unwrap_or_default();
        let built = reference::build(&files, &rules, &contents);
        let ids: std::collections::BTreeSet<_> = built.entries.iter().map(|entry| entry.placed.entry.id()).collect();
        let identities: Vec<[u8; 16]> = ids.iter().map(|id| id.to_bytes()).collect();
        assert_eq!(least.digest, Some(Digest::of(&identities)), "epoch {number}");
        assert_eq!(least.live, ids.len() as u64);
        let before = [cleaned.len(), chunked.len(), embedded.len()];
        cleaned.extend(built.inputs.clean);
        chunked.extend(built.inputs.chunk);
        embedded.extend(built.inputs.embed);
        let after = [cleaned.len(), chunked.len(), embedded.len()];
        let new: [u64; 3] = std::array::from_fn(|at| (after[at] - before[at]) as u64);
        assert_eq!([least.cleaned, least.chunked, least.embedded], new, "epoch {number}");
        let base = parent.filter(|parent| sets.contains_key(parent)).or_else(|| heads.get(&head).copied());
        if !sets.contains_key(&commit) {
            let nothing = std::collections::BTreeSet::new();
            let base = base.and_then(|base| sets.get(&base)).unwrap_or(&nothing);
            let moved = [ids.difference(base).count() as u64, base.difference(&ids).count() as u64];
            assert_eq!([least.inserted, least.retracted], moved, "epoch {number}");
        }
        sets.insert(commit, ids);
        heads.insert(head, commit);
    }
}

#[test]
fn receipts_are_exactly_the_least_in_every_scenario() {
    let folder = tempfile::tempdir().unwrap();
    for scenario in Scenario::ALL {
        let path = folder.path().join(scenario.as_str());
        generate(&path, scenario, Settings { files: 66, epochs: 12, seed: 3 }).unwrap();
        let trace = open(&path);
        check_bound(&trace);
        let commits = trace.epochs().filter(|epoch| epoch.as_ref().unwrap().commit().is_some()).count();
        let report = run(&trace, &Knobs { batch: 5, ..Knobs::default() });
        assert_proven(&report, commits);
        let work = report.work.unwrap();
        for ratio in [work.cleaned, work.chunked, work.embedded, work.inserted.unwrap(), work.retracted.unwrap()] {
            assert_eq!(ratio.did, ratio.least, "{scenario}: {work:?}");
        }
        assert_eq!(work.epochs_off, 0, "{scenario}: epoch by epoch as well");
    }
}

#[test]
fn a_rebuild_has_the_same_digest_and_costs_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steady.tmtrace");
    generate(&path, Scenario::Steady, Settings { files: 60, epochs: 10, seed: 1 }).unwrap();
    let report = run(&open(&path), &Knobs { rebuilds: 3, ..Knobs::default() });
    assert_eq!(report.rebuilds.iter().map(|row| row.epoch).collect::<Vec<_>>(), [2, 5, 9]);
    assert!(report.rebuilds.iter().all(|row| row.agrees && row.embedded > 500), "{:?}", report.rebuilds);
    let against = report.against_rebuild.unwrap();
    assert!(against.embedded > 0.0 && against.embedded < 0.1 && against.moved < 0.1, "{against:?}");
    let html = page(&report);
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    assert!(html.matches("<svg").count() >= 6);
    for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!html.contains(outside), "the page asks for {outside}");
    }
}

/// A repository of a few commits.
fn small() -> Repository {
    let repository = Repository::new();
    for number in 0..6 {
        let code = format!("/// Turns the wheel.\nfn turn() {{\n    wheel({number});\n}}\n");
        repository.commit(&tree([("src/wheel.rs", code.as_str()), ("README.md", "# Wheel\n\nIt turns.\n")]));
    }
    repository
}

#[test]
fn commands_record_replay_and_report() {
    let repository = small();
    let program = Program::new();
    let trace = program.folder().join("wheel.tmtrace");
    let trace = trace.to_str().unwrap();
    let range = ["--from", "main~4", "--to", "main"];
    let from_trees = program.json(&[&["record", trace, "--source", repository.name(), "--json"][..], &range].concat());
    assert_eq!((&from_trees[0]["epochs"], &from_trees[0]["digests"]), (&5.into(), &"trees".into()));
    program.refuses(&[&["record", trace, "--source", repository.name()][..], &range].concat(), &["is there already"]);
    program.refuses(
        &["record", "o", "--source", repository.name(), "--from", "main", "--to", "main~1"],
        &["first parent"],
    );
    // A store that tracked the source has digests of its own, and they are the same.
    program.json(&["track", repository.name(), "--once", "--json", "--backfill", "5"]);
    let tracked = program.json(&[&["record", "tracked.tmtrace", "--source", "engine", "--json"][..], &range].concat());
    assert_eq!(tracked[0]["digests"], "store");
    assert_eq!(tracked[0]["corpus"], from_trees[0]["corpus"]);
    assert_eq!(std::fs::read(trace).unwrap(), std::fs::read(program.folder().join("tracked.tmtrace")).unwrap());
    let report = program.json(&["replay", trace, "--json", "--html", "report.html", "--plots", "plots"]).remove(0);
    assert_eq!(report["proof"]["recorded"], 5);
    assert_eq!((&report["proof"]["computed"], &report["proof"]["differ"]), (&5.into(), &0.into()));
    assert_eq!(report["work"]["embedded"]["ratio"], 1.0);
    assert!(std::fs::read_to_string(program.folder().join("report.html")).unwrap().contains("<svg"));
    for name in ["cost-by-epoch", "cost-by-size", "latencies"] {
        let plot = std::fs::read_to_string(program.folder().join(format!("plots/{name}.svg"))).unwrap();
        assert!(plot.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=") && plot.ends_with("</svg>\n"));
        assert!(plot.contains("<style>"), "the file needs nothing from outside");
    }
    // Half of it: said, and replayed all the same.
    let bytes = std::fs::read(trace).unwrap();
    std::fs::write(program.folder().join("cut.tmtrace"), &bytes[..bytes.len() - 60]).unwrap();
    let run = program.run(&["replay", "cut.tmtrace"]);
    assert_eq!(run.status, Some(0), "{}", run.err);
    assert!(run.err.contains("was cut") && run.err.contains("last whole epoch"), "{}", run.err);
    let mut wrong = bytes.clone();
    wrong[200] ^= 1;
    std::fs::write(program.folder().join("wrong.tmtrace"), &wrong).unwrap();
    program.refuses(&["replay", "wrong.tmtrace"], &["wrong.tmtrace", "damaged at byte"]);
    assert_eq!(program.run(&["bench", "no-such-scenario"]).status, Some(2));
    let bench = program.json(&["bench", "revert", "--files", "20", "--epochs", "5", "--json"]).remove(0);
    assert_eq!(bench["proof"]["compared"], 5);
}

/// Writes a trace again with another digest for one epoch.
fn with_wrong_digest(trace: &Trace, out: &Path, wrong: usize) {
    let mut writer = TraceWriter::create(out, trace.about().clone()).unwrap();
    for (number, record) in trace.epochs().enumerate() {
        let mut record = record.unwrap();
        for state in record.changes.iter().filter_map(|change| change.after) {
            writer.content(state.content, &trace.content(state.content).unwrap().unwrap()).unwrap();
        }
        if let (TraceStep::Commit { digest: Some(digest), .. }, true) = (&mut record.step, number == wrong) {
            digest.add(&[1; 16]);
        }
        writer.epoch(&record).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_digest_that_differs_is_status_3_and_names_the_epoch() {
    let repository = small();
    let program = Program::new();
    let path = |name: &str| program.folder().join(name);
    let head: CommitId = repository.git_text(&["rev-parse", "main"]).parse().unwrap();
    record_all(&repository, &path("right.tmtrace"), head, None);
    with_wrong_digest(&open(&path("right.tmtrace")), &path("wrong.tmtrace"), 3);
    assert_eq!(program.run(&["replay", "right.tmtrace"]).status, Some(0));
    for knobs in [&["--index", "on"], &["--index", "off"]] {
        let run = program.run(&[&["replay", "wrong.tmtrace"], &knobs[..]].concat());
        assert_eq!(run.status, Some(3), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        assert!(run.err.contains("epoch 3 ") && run.err.contains("recorded"), "{}", run.err);
    }
}

#[test]
fn a_replay_that_is_killed_ends_with_the_same_digests() {
    let program = Program::new();
    let path = program.folder().join("steady.tmtrace");
    generate(&path, Scenario::Steady, Settings { files: 30, epochs: 40, seed: 5 }).unwrap();
    let trace = path.to_str().unwrap();
    let store = ["--store", "store"];
    for wait in [200, 500, 900] {
        let mut live = program.start(&[&["replay", trace, "--pace", "20", "--batch", "3"][..], &store].concat());
        std::thread::sleep(std::time::Duration::from_millis(wait));
        live.kill();
    }
    let report = program.json(&[&["replay", trace, "--json"][..], &store].concat()).remove(0);
    assert_eq!(report["proof"]["differ"], 0, "{report}");
    let done = report["proof"]["left_out"].as_u64().unwrap() + report["proof"]["compared"].as_u64().unwrap();
    assert_eq!(done, 40);
    // The store now equals that of an uninterrupted replay.
    program.json(&["replay", trace, "--json", "--store", "other"]);
    let list = |store: &str| -> Vec<_> {
        let lines = program.json(&["snapshots", "--json", "--data", store]);
        lines.into_iter().map(|line| (line["commit"].clone(), line["digest"].clone())).collect()
    };
    assert_eq!(list("store"), list("other"));
    assert_eq!(list("store").len(), 40);
    let run = program.run(&["snapshots", "verify", "--data", "store"]);
    assert_eq!(run.status, Some(0), "{}", run.out);
    generate(&program.folder().join("hot"), Scenario::HotFile, Settings { files: 30, epochs: 4, seed: 5 }).unwrap();
    let other = program.run(&["replay", "hot", "--store", "store"]);
    assert_eq!(other.status, Some(0), "another source of the same store: {}", other.err);
    let steady = Settings { files: 30, epochs: 9, seed: 6 };
    generate(&program.folder().join("else"), Scenario::Steady, steady).unwrap();
    program.refuses(&["replay", "else", "--store", "store"], &["steady", "no epoch of this trace"]);
}

//! Redaction: a trace without a word of its source that still replays, and moves as its source did.

use super::live::record;
use super::{open, record_all};
use crate::support::{Repository, Store, tree};
use snapshots::CommitId;
use std::collections::BTreeSet;
use tidemill::replay::{Knobs, replay};
use tidemill::trace::redact::Redactor;
use tidemill::trace::{Stored, Trace, TraceStep};

/// Words that are in no grammar.
const WORDS: [&str; 14] = [
    "quicksilver",
    "turnwheel",
    "governor",
    "flyball",
    "headrace",
    "sluicegate",
    "waterbucket",
    "millpond",
    "grindstone",
    "hopper",
    "damsel",
    "tentering",
    "Geheimwort",
    "渲染",
];

fn repository() -> (Repository, CommitId) {
    let repository = Repository::new();
    let mut head = None;
    for number in 0..8 {
        let code: String = (0..6)
            .map(|item| {
                let value = if item == number % 6 { number * 1000 } else { 0 };
                format!("/// Opens the SluiceGate of a {}.\npub fn open_{}_{item}(flyball: &mut Governor) -> u32 {{\n    flyball.turnwheel({value})\n}}\n\n", WORDS[item], WORDS[item + 6])
            })
            .collect();
        let header = "class MILL_API AGovernor : public UObject\n{\n    GENERATED_BODY()\npublic:\n    UFUNCTION()\n    void TurnWheel(float Quicksilver);\n};\n";
        head = Some(repository.commit(&tree([
            ("crates/millpond/Cargo.toml", "[package]\nname = \"millpond\"\n"),
            ("crates/millpond/src/sluicegate.rs", code.as_str()),
            ("Source/Headrace/Headrace.Build.cs", "public class Headrace {}\n"),
            ("Source/Headrace/Public/Governor.h", header),
            ("docs/渲染.md", "# Tentering\n\nThe damsel shakes the hopper 渲染.\n\nGeheimwort.\n"),
            ("assets/grindstone.bin", "quicksilver\0\0\0waterbucket"),
        ])));
    }
    (repository, head.unwrap())
}

/// Returns every text of a trace: contents, paths, names, and its description.
fn texts(trace: &Trace) -> Vec<String> {
    let about = trace.about();
    let mut texts = vec![about.source.clone(), about.range.clone(), about.rules.clone()];
    for epoch in trace.epochs().map(Result::unwrap) {
        if let TraceStep::Commit { view: Some(view), .. }
        | TraceStep::Point { view, .. }
        | TraceStep::Leave { view: Some(view) } = &epoch.step
        {
            texts.push(view.clone());
        }
        for change in &epoch.changes {
            texts.push(change.path.display().into_owned());
            for state in [change.before, change.after].into_iter().flatten() {
                match trace.content(state.content).unwrap() {
                    Some(Stored::Whole(bytes) | Stored::Head(_, bytes)) => {
                        texts.push(String::from_utf8_lossy(&bytes).into_owned());
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    texts
}

#[test]
fn a_redacted_trace_replays_and_leaks_no_word() {
    let folder = tempfile::tempdir().unwrap();
    let (repository, head) = repository();
    let (plain, redacted) = (folder.path().join("plain"), folder.path().join("redacted"));
    record_all(&repository, &plain, head, None);
    record_all(&repository, &redacted, head, Some(Redactor::new([9; 32])));
    let (plain, redacted) = (open(&plain), open(&redacted));
    let all = texts(&redacted).join("\n").to_lowercase();
    assert!(texts(&plain).join("\n").to_lowercase().contains("quicksilver"), "the original has the words");
    for word in WORDS.map(str::to_lowercase) {
        assert!(!all.contains(&word), "{word} is left");
    }
    let commits =
        |trace: &Trace| -> BTreeSet<CommitId> { trace.epochs().filter_map(|epoch| epoch.unwrap().commit()).collect() };
    assert!(commits(&plain).is_disjoint(&commits(&redacted)), "no commit keeps its name");
    let knobs = Knobs::default();
    let reports = [&plain, &redacted].map(|trace| replay(trace, &knobs, Box::new(|_| {})).unwrap());
    for report in &reports {
        assert!(report.is_proven() && report.proof.recorded == 8, "{:?}", report.proof);
    }
    // The same shapes: every commit inserts and retracts as many chunks, and embeds as many texts.
    let moves = |at: usize| -> Vec<_> {
        reports[at].samples.iter().map(|sample| (sample.paths, sample.moved, sample.calls)).collect()
    };
    assert_eq!(moves(0), moves(1));
    assert!(reports[0].samples[0].moved[0] > 8);
}

#[test]
fn a_source_that_is_followed_is_recorded_without_a_word_of_it_too() {
    let (repository, head) = repository();
    // Two names that are as long and differ in digits alone, and a tag on a line of its own.
    let other = repository.write(&[head], &tree([("headrace.md", "# Hopper\n\nThe damsel.\n")]));
    repository.point("refs/heads/quicksilver-1000", head);
    repository.point("refs/heads/quicksilver-2000", other);
    let orphan = repository.write(&[], &tree([("flyball.md", "# Flyball\n\nGeheimwort.\n")]));
    repository.point("refs/tags/millpond", orphan);
    let [plain, redacted] = ["plain", "redacted"].map(|name| {
        let store = Store::new();
        let redactor = (name == "redacted").then(|| Redactor::new([9; 32]));
        (record(&store, &repository, name, redactor), store)
    });
    let [plain, redacted] = [&plain, &redacted].map(|(path, _store)| open(path));
    let words = |trace: &Trace| texts(trace).join("\n").to_lowercase();
    for word in WORDS.map(str::to_lowercase) {
        assert!(!words(&redacted).contains(&word), "{word} is left");
    }
    assert!(words(&plain).contains("quicksilver-2000"), "the original has the words");
    let reports = [&plain, &redacted].map(|trace| replay(trace, &Knobs::default(), Box::new(|_| {})).unwrap());
    let commits = plain.epochs().filter(|epoch| epoch.as_ref().unwrap().digest().is_some()).count() as u64;
    for report in &reports {
        assert!(report.is_proven() && report.proof.recorded == commits, "{:?}", report.proof);
    }
    let moves = |at: usize| -> Vec<_> {
        reports[at].samples.iter().map(|sample| (sample.paths, sample.moved, sample.calls)).collect()
    };
    assert_eq!(moves(0), moves(1));
    let heads = |trace: &Trace| -> BTreeSet<Option<String>> {
        trace.epochs().map(|epoch| epoch.unwrap().head().map(str::to_owned)).collect()
    };
    assert_eq!(heads(&plain).len(), heads(&redacted).len(), "heads stay apart");
    let stolen = |head: &Option<String>| head.as_ref().is_some_and(|head| head.contains("quicksilver"));
    assert!(heads(&plain).iter().any(stolen) && !heads(&redacted).iter().any(stolen));
}

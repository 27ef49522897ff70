//! The file: after any change, it is read as written up to some whole epoch, or refused by name.

use super::{open, record_all};
use crate::support::{self, History, Step, content_id, steps};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tidemill::trace::generate::{Scenario, Settings, generate};
use tidemill::trace::{EpochRecord, Stored, Trace, TraceError, TraceStep};

fn epochs(trace: &Trace) -> Vec<EpochRecord> {
    trace.epochs().map(Result::unwrap).collect()
}

/// Returns a history's trace, and the bytes of the file.
fn recorded(folder: &Path, steps: Vec<Step>) -> (History, PathBuf, Vec<u8>) {
    let mut history = History::new();
    steps.into_iter().filter(|step| !matches!(step, Step::Sync | Step::Restart)).for_each(|step| history.take(step));
    let out = folder.join("history.tmtrace");
    let head = history.head();
    record_all(&history.repository, &out, head, None);
    let bytes = std::fs::read(&out).unwrap();
    (history, out, bytes)
}

proptest! {
    #![proptest_config(support::cases(12))]

    #[test]
    fn a_trace_holds_every_commit_and_every_content(steps in steps(4..20)) {
        let folder = tempfile::tempdir().unwrap();
        let (history, out, _) = recorded(folder.path(), steps);
        let trace = open(&out);
        prop_assert_eq!(trace.cut(), None);
        let mut files = support::Tree::new();
        for epoch in epochs(&trace) {
            let TraceStep::Commit { commit, .. } = epoch.step else { panic!("only commits are recorded of a range") };
            for change in epoch.changes {
                let before = files.get(change.path.as_bytes()).map(|bytes| content_id(bytes));
                prop_assert_eq!(change.before.map(|state| state.content), before, "what stood there is what was there");
                let Some(after) = change.after else {
                    files.remove(change.path.as_bytes());
                    continue;
                };
                let expected = &history.trees[&commit][change.path.as_bytes()];
                prop_assert_eq!(after.content, content_id(expected));
                if let Some(Stored::Whole(bytes)) = trace.content(after.content).unwrap() {
                    prop_assert_eq!(&bytes, expected, "a content is kept as it is");
                }
                files.insert(change.path.as_bytes().to_vec(), expected.clone());
            }
            prop_assert_eq!(&files, &history.trees[&commit], "the changes lead to the tree of {}", commit);
        }
    }

    #[test]
    fn a_trace_that_is_cut_anywhere_holds_its_whole_epochs_or_is_refused(
        steps in steps(4..12),
        cuts in prop::collection::vec(0.0..1.0_f64, 24),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (_, out, bytes) = recorded(folder.path(), steps);
        let all = epochs(&open(&out));
        let cut = folder.path().join("cut.tmtrace");
        for at in cuts.into_iter().map(|share| (share * bytes.len() as f64) as usize).chain(bytes.len() - 40..bytes.len()) {
            std::fs::write(&cut, &bytes[..at]).unwrap();
            match Trace::open(&cut) {
                Ok(trace) => {
                    prop_assert!(trace.cut().is_some(), "it says that it was cut at {}", at);
                    prop_assert_eq!(&epochs(&trace)[..], &all[..trace.len()]);
                }
                Err(TraceError::NoTrace { .. } | TraceError::Empty { .. }) => {}
                Err(error) => prop_assert!(false, "cut at {}: {}", at, error),
            }
        }
    }

    #[test]
    fn a_byte_that_is_wrong_is_refused_by_name(
        steps in steps(4..10),
        flips in prop::collection::vec((0.0..1.0_f64, 0..8_u32), 60),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (_, _, bytes) = recorded(folder.path(), steps);
        let wrong = folder.path().join("wrong.tmtrace");
        for (share, bit) in flips {
            let at = (share * bytes.len() as f64) as usize;
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            std::fs::write(&wrong, &flipped).unwrap();
            let error = Trace::open(&wrong).err().unwrap_or_else(|| panic!("bit {bit} of byte {at} was taken"));
            prop_assert!(error.to_string().contains("wrong.tmtrace"), "{}", error);
            if at >= 16 {
                prop_assert!(matches!(error, TraceError::Damaged { .. }), "byte {}: {}", at, error);
            }
        }
    }
}

#[test]
fn what_is_no_trace_or_of_another_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tmtrace");
    let refusal = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Trace::open(&path).err().unwrap().to_string()
    };
    assert!(refusal(b"").contains("is no trace"));
    assert!(refusal(b"some other file, which is long enough").contains("tidemill record"));
    let mut other = b"tidemtrc\x07\0\0\0".to_vec();
    other.extend_from_slice(&blake3(&other)[..4]);
    assert!(refusal(&other).contains("format 7"));
    assert!(Trace::open(folder.path()).err().unwrap().to_string().contains("is no trace"));
}

fn blake3(bytes: &[u8]) -> [u8; 32] {
    // The magic's sum, by the crate that the product uses.
    *blake3::hash(bytes).as_bytes()
}

/// The output of `tidemill bench branch-storm --files 3 --epochs 24 --seed 4 --keep FILE` in format 1, by generator 1. It is
/// never written again; a new format gets a separate fixture.
const FIXTURE: &str = "tests/fixtures/trace-format-1.tmtrace";

#[test]
fn what_format_1_wrote_keeps_opening() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
    let trace = open(&path);
    assert_eq!((trace.len(), trace.cut()), (24, None));
    assert_eq!(trace.about().source, "branch-storm");
    let all = epochs(&trace);
    assert!(all.iter().any(|epoch| matches!(epoch.step, TraceStep::Leave { .. })));
    let mut contents = 0;
    for state in all.iter().flat_map(|epoch| &epoch.changes).filter_map(|change| change.after) {
        let Some(Stored::Whole(bytes)) = trace.content(state.content).unwrap() else { panic!("it is there") };
        assert_eq!(content_id(&bytes), state.content);
        contents += 1;
    }
    assert!(contents > 12);
}

#[test]
fn a_scenario_is_the_same_for_the_same_seed() {
    let folder = tempfile::tempdir().unwrap();
    for scenario in Scenario::ALL {
        let bytes = |name: &str, seed: u64| {
            let path = folder.path().join(format!("{scenario}-{name}"));
            let written = generate(&path, scenario, Settings { files: 70, epochs: 12, seed }).unwrap();
            assert_eq!(written.epochs, 12, "{scenario}");
            std::fs::read(&path).unwrap()
        };
        let (one, again, other) = (bytes("one", 1), bytes("again", 1), bytes("other", 2));
        assert!(one == again, "{scenario}");
        assert!(one != other, "{scenario}");
    }
}

//! *A step in slices is one step*: however a step is cut, it is published once, as if it had not been cut, and nothing of it is
//! visible before.

use crate::support::{self, History, Picture, Program, Repository, Step, Store, git, steps, tree};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tidemill::index::apply::Published;
use tidemill::store::Receipt;
use tidemill::trace::generate::{Scenario, Settings, generate};

/// Returns the part of a line that must not depend on how its step was cut.
///
/// It leaves out the number of memo look-ups, because a file that is removed in one slice and inserted in another is looked up
/// again, and the bytes of the record, which depend on the order of entries.
fn line(published: &Published) -> (u64, Option<String>, snapshots::Version, Receipt, bool) {
    let Published { epoch, view, version, receipt, repaired, .. } = published.clone();
    let version = snapshots::Version { bytes: 0, ..version };
    (epoch.get(), view, version, Receipt { ms: [0.0; 6], cache_hits: 0, ..receipt }, repaired)
}

proptest! {
    #![proptest_config(support::cases(10))]

    #[test]
    fn a_step_is_published_alike_however_it_is_cut(steps in steps(6..24), slice in 1..4_usize) {
        let mut history = History::new();
        let stores = [Store::new(), Store::in_slices(Some(slice))];
        let open = |store: &Store, history: &History| store.open(git(history.repository.path(), &["*"], None));
        let mut running: Vec<_> = stores.iter().map(|store| open(store, &history)).collect();
        let mut published = 0;
        for step in steps.into_iter().chain([Step::Sync]) {
            match step {
                Step::Sync => {
                    let [whole, cut]: [Vec<_>; 2] =
                        [0, 1].map(|number| running[number].catch_up().iter().map(line).collect());
                    published += whole.len();
                    prop_assert_eq!(whole, cut);
                }
                Step::Restart => {
                    running.clear();
                    running.extend(stores.iter().map(|store| open(store, &history)));
                }
                step => history.take(step),
            }
        }
        prop_assert!(published > 0);
    }
}

#[test]
fn a_manifest_that_names_another_module_moves_what_stands_below_it_in_slices() {
    let repository = Repository::new();
    let manifest = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\n");
    let mut files: BTreeMap<String, String> = (0..30)
        .map(|number| (format!("src/part_{number}.rs"), format!("/// Part {number}.\npub fn part_{number}() {{}}\n")))
        .collect();
    files.insert("Cargo.toml".to_owned(), manifest("mill"));
    files.insert("tools/Cargo.toml".to_owned(), manifest("tools"));
    files.insert("tools/src/main.rs".to_owned(), "fn main() {}\n".to_owned());
    // A manifest without a name, below which the root's name counts.
    files.insert("docs/package.json".to_owned(), "{}\n".to_owned());
    files.insert("docs/guide.md".to_owned(), "# Guide\n\nHow the mill turns.\n".to_owned());
    let commit = |files: &BTreeMap<String, String>| {
        repository.commit(&tree(files.iter().map(|(path, text)| (path.as_str(), text.as_str()))));
    };
    let stores = [Store::new(), Store::in_slices(Some(4))];
    commit(&files);
    let mut running = stores.each_ref().map(|store| store.open(git(repository.path(), &["*"], None)));
    let mut both = |why: &str| {
        let [whole, cut]: [Vec<_>; 2] = running.each_mut().map(|running| running.catch_up().iter().map(line).collect());
        assert_eq!(whole, cut, "{why}");
        whole[0].3.clone()
    };
    let first = both("a first load");
    files.insert("Cargo.toml".to_owned(), manifest("tide"));
    commit(&files);
    let renamed = both("a manifest names another module");
    assert!(renamed.inserted > 30 && renamed.inserted < first.inserted, "all but the tools move: {renamed:?}");
    assert_eq!((renamed.inserted, renamed.changed), (renamed.retracted, 1));
    files.insert("Cargo.toml".to_owned(), manifest("mill"));
    files.insert("src/part_3.rs".to_owned(), "/// Another part.\npub fn another() {}\n".to_owned());
    commit(&files);
    let back = both("the name comes back, and a file changes");
    assert!(back.embedded < 4, "what comes back is known: {back:?}");
    files.remove("Cargo.toml");
    commit(&files);
    both("no manifest is left at the root");
    let pictures = stores.each_ref().map(|store| Picture::of(&store.searcher(), None));
    pictures[0].assert_equals(&pictures[1], "in slices");
}

/// Returns the bytes of the files in a folder that may not be there yet.
fn bytes_in(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |file: std::fs::DirEntry| {
        let metadata = file.metadata().ok()?;
        Some(if metadata.is_dir() { bytes_in(&file.path()) } else { metadata.len() })
    };
    files.filter_map(size).sum()
}

/// Returns all data of a store's versions, except times.
fn versions(program: &Program, store: &str) -> Vec<[serde_json::Value; 5]> {
    let lines = program.json(&["snapshots", "--json", "--data", store]).into_iter();
    lines
        .map(|line| ["commit", "digest", "live_entries", "inserted", "retracted"].map(|key| line[key].clone()))
        .collect()
}

#[test]
fn a_first_load_that_is_killed_between_slices_shows_nothing_and_heals() {
    let program = Program::new();
    let trace = program.folder().join("steady.tmtrace");
    generate(&trace, Scenario::Steady, Settings { files: 400, epochs: 3, seed: 7 }).unwrap();
    let replay = ["replay", trace.to_str().unwrap(), "--json", "--check-work", "off", "--slice"];
    let whole = program.json(&[&replay[..], &["100000", "--store", "whole"]].concat()).remove(0);
    let list = |store: &str| program.run(&["snapshots", "--json", "--data", store]);
    let versions = |store: &str| versions(&program, store);
    let expected = versions("whole");
    assert_eq!(expected.len(), 3);
    let vectors = program.folder().join("cut/vectors");
    let mut ends_inside = 0;
    for wait in [0, 10, 40] {
        let before = bytes_in(&vectors);
        let mut live = program.start(&[&replay[..], &["5", "--pool", "1", "--store", "cut"]].concat());
        // Until a slice that no run before has brought is being written.
        let began = Instant::now();
        while bytes_in(&vectors) <= before + 200 {
            assert!(began.elapsed() < Duration::from_secs(60), "no slice was written");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(wait));
        live.kill();
        let seen = list("cut");
        if seen.out.is_empty() {
            ends_inside += 1;
        } else {
            assert!(expected.starts_with(&versions("cut")), "half of a load was seen: {}", seen.out);
        }
    }
    assert!(ends_inside > 0, "no end was inside the load");
    program.json(&[&replay[..], &["5", "--store", "cut"]].concat());
    assert_eq!(versions("cut"), expected);
    let verified = program.run(&["snapshots", "verify", "--data", "cut"]);
    assert_eq!(verified.status, Some(0), "{}{}", verified.out, verified.err);
    // The work of the slices before a stop is reused by the next load: each stop loses at most the slice that was being written.
    let left = program.json(&["snapshots", "gc", "--json", "--data", "cut"]).remove(0);
    let (words, entries) = (left["words"].as_u64().unwrap(), whole["first_load"]["entries"].as_u64().unwrap());
    assert!(words < entries / 8, "the words of {words} entries were left behind by {ends_inside} ends, of {entries}");
    assert_eq!(versions("cut"), expected);
}

#[test]
fn parts_of_very_many_entries_are_one_step_too() {
    let program = Program::new();
    let trace = program.folder().join("steady.tmtrace");
    generate(&trace, Scenario::Steady, Settings { files: 1_800, epochs: 3, seed: 11 }).unwrap();
    let replay = ["replay", trace.to_str().unwrap(), "--json", "--check-work", "off", "--slice"];
    // Parts of more entries than one transaction takes.
    for (slice, store) in [("100000", "whole"), ("950", "cut")] {
        program.json(&[&replay[..], &[slice, "--store", store]].concat());
    }
    let [whole, cut] = ["whole", "cut"].map(|store| {
        let versions = versions(&program, store);
        let ask = |question: &str| {
            let answer = program.json(&["search", question, "--json", "-k", "20", "--data", store]).remove(0);
            answer["hits"].as_array().unwrap().clone()
        };
        let verified = program.run(&["snapshots", "verify", "--data", store]);
        assert_eq!(verified.status, Some(0), "{}{}", verified.out, verified.err);
        (versions, ask("the state of a buffer"), ask("fn update"))
    });
    assert_eq!(whole.0.len(), 3);
    assert!(!whole.1.is_empty() && !whole.2.is_empty());
    assert_eq!(whole, cut);
}

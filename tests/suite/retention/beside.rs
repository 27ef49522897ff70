//! Collections beside a running tracker: their only visible effect is the freed space.

use super::{check, commits_of, newest, tracked};
use crate::support::{self, History, Picture, Program, Step, Store, git, steps, tree};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tidemill::config::Config;
use tidemill::engine::{Stop, Tracker, TrackerOptions, collect};
use tidemill::store::{Database, Layout};

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens a tracker in this process that drops and collects whenever it is idle.
fn collecting(layout: Layout, config: &Config) -> Tracker {
    let mut config = config.clone();
    config.retention.every = Some(Duration::from_millis(1));
    Tracker::open(TrackerOptions { layout, config, on_published: Box::new(|_| {}), stop: Stop::default() }).unwrap()
}

/// Waits until a tracker in this process has completed one more collection.
fn collected_again(layout: &Layout) {
    let database = Database::open_reader(layout).unwrap();
    let (begun, mut seen) = (Instant::now(), 0);
    let mut last = database.last_collection().unwrap();
    // The current one may have begun before; times are in seconds.
    while seen < 2 {
        assert!(begun.elapsed() < PATIENCE, "nothing is collected");
        std::thread::sleep(Duration::from_millis(20));
        let now = database.last_collection().unwrap();
        seen += usize::from(now != last);
        last = now;
    }
}

proptest! {
    #![proptest_config(support::cases(3))]

    #[test]
    fn collections_beside_commits_that_keep_coming_change_no_answer(
        steps in steps(16..32),
        pauses in prop::collection::vec(0..150u64, 32),
    ) {
        let (mut history, store, all) = (History::new(), Store::new(), Store::new());
        let config = newest(history.repository.path(), 2);
        let mut tracker = Some(collecting(store.layout(), &config));
        let mut ever = BTreeSet::new();
        let end = [Step::Sync, Step::Restart, Step::Sync];
        for (step, pause) in steps.into_iter().chain(end).zip(pauses.into_iter().cycle()) {
            history.take(step);
            if step == Step::Restart {
                drop(tracker.take());
            }
            if matches!(step, Step::Sync | Step::Restart) {
                let tracker = tracker.get_or_insert_with(|| collecting(store.layout(), &config));
                tracker.catch_up().unwrap();
                // Beside it a store that keeps everything.
                all.track(git(history.repository.path(), &["*"], None));
                ever.extend(history.synced());
                std::thread::sleep(Duration::from_millis(pause));
                let (searcher, whole) = (store.searcher(), all.searcher());
                let present = commits_of(&searcher);
                let heads: BTreeSet<_> = history.heads().collect();
                prop_assert!(present.is_superset(&heads) && present.is_subset(&ever));
                for commit in present {
                    let at = commit.to_string();
                    Picture::of(&searcher, Some(&at)).assert_equals(&Picture::of(&whole, Some(&at)), commit);
                }
            }
        }
        collected_again(&store.layout());
        prop_assert_eq!(check(&store.layout()).findings, []);
        drop(tracker);
        let outcome = collect(&store.layout(), &config, &mut || true).unwrap();
        prop_assert_eq!((outcome.dropped, outcome.collected.entries), (0, 0), "a tracker left nothing to collect");
        let checked = check(&store.layout());
        prop_assert_eq!((checked.findings, checked.garbage), (Vec::new(), 0));
    }
}

#[test]
fn a_tag_of_a_commit_whose_snapshot_a_running_tracker_dropped_brings_it_back() {
    let (repository, commits, store, pictures) = tracked(9);
    let mut config = newest(repository.path(), 2);
    config.retention.tags = false;
    let mut tracker = collecting(store.layout(), &config);
    tracker.catch_up().unwrap();
    collected_again(&store.layout());
    assert_eq!(commits_of(&store.searcher()).len(), 2);
    repository.point("refs/tags/v1", commits[3]);
    tracker.catch_up().unwrap();
    collected_again(&store.layout());
    let searcher = store.searcher();
    assert_eq!(commits_of(&searcher), BTreeSet::from([commits[3], commits[7], commits[8]]));
    for at in [3, 7, 8] {
        Picture::of(&searcher, Some(&commits[at].to_string())).assert_equals(&pictures[at], at);
    }
    drop(tracker);
    assert_eq!(check(&store.layout()).findings, []);
}

#[test]
fn a_restart_does_not_make_a_collection_due() {
    let (repository, _, store, _) = tracked(6);
    let mut config = newest(repository.path(), 2);
    config.retention.every = Some(Duration::from_secs(3600));
    let run = || {
        let (layout, config) = (store.layout(), config.clone());
        let options = TrackerOptions { layout, config, on_published: Box::new(|_| {}), stop: Stop::default() };
        let mut tracker = Tracker::open(options).unwrap();
        tracker.catch_up().unwrap();
        tracker.tidy();
    };
    run();
    let last = || Database::open_reader(&store.layout()).unwrap().last_collection().unwrap();
    let first = last().unwrap();
    assert!(first.dropped == 4 && first.entries > 0 && first.bytes > 0, "{first:?}");
    repository.commit(&tree([("src/new.rs", "pub fn new() {}\n")]));
    run();
    assert_eq!((last(), commits_of(&store.searcher()).len()), (Some(first), 3), "an hour has not passed");
}

#[test]
fn a_reader_that_looks_again_meanwhile_holds_nothing_back() {
    let (repository, commits, store, pictures) = tracked(8);
    let mut config = newest(repository.path(), 2);
    config.retention.every = Some(Duration::from_secs(3600));
    let mut searcher = store.searcher();
    let (layout, on_published) = (store.layout(), Box::new(|_: &_| {}));
    let options = TrackerOptions { layout, config, on_published, stop: Stop::default() };
    let mut tracker = Tracker::open(options).unwrap();
    tracker.catch_up().unwrap();
    let database = Database::open_reader(&store.layout()).unwrap();
    let begun = Instant::now();
    let last = loop {
        assert!(begun.elapsed() < PATIENCE, "nothing is collected");
        if let Some(last) = database.last_collection().unwrap() {
            break last;
        }
        searcher.refresh().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(last.dropped == 6 && last.entries > 0, "{last:?}");
    Picture::of(&searcher, Some(&commits[7].to_string())).assert_equals(&pictures[7], 7);
    drop((tracker, searcher));
    assert_eq!((check(&store.layout()).findings, check(&store.layout()).garbage), (Vec::new(), 0));
}

/// Writes settings that keep the newest few snapshots of a repository.
fn settings(program: &Program, repository: &str, newest: usize) {
    let text = format!(
        "[retention]\nnewest = {newest}\n[[source]]\npath = \"{repository}\"\nname = \"engine\"\nref = [\"*\"]\n"
    );
    std::fs::write(program.folder().join("tidemill.toml"), text).unwrap();
}

/// Waits until a process has a store open.
fn until_it_tracks(store: &Path, process: u32) {
    let begun = Instant::now();
    while !std::fs::read_to_string(store.join("LOCK")).is_ok_and(|lock| lock.contains(&process.to_string())) {
        assert!(begun.elapsed() < PATIENCE, "{process} does not track");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_tracker_is_asked_to_collect_and_goes_on() {
    let (repository, commits, store, pictures) = tracked(12);
    let program = Program::new();
    let data = store.layout().root().to_str().unwrap().to_owned();
    settings(&program, repository.name(), 4);
    let mut tracker = program.start(&["--data", &data, "track", "--json"]);
    until_it_tracks(store.layout().root(), tracker.id());
    let collect = ["--data", &data, "snapshots", "gc", "--json"];
    let dry = program.json(&["--data", &data, "snapshots", "gc", "--dry-run", "--json"]).remove(0);
    assert_eq!((&dry["dry_run"], &dry["dropped"], &dry["kept"]), (&true.into(), &8.into(), &4.into()));
    // Two at once: both get an answer, and one of them the work.
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..2).map(|_| scope.spawn(|| program.json(&collect).remove(0))).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    let sum = |name: &str| outcomes.iter().map(|outcome| outcome[name].as_u64().unwrap()).sum::<u64>();
    assert!(outcomes.iter().all(|outcome| outcome["complete"] == true && outcome["kept"] == 4), "{outcomes:?}");
    // One collection for both, or one after the other.
    assert!([8, 16].contains(&sum("dropped")), "{outcomes:?}");
    assert!(outcomes.iter().any(|outcome| outcome["entries"] == dry["entries"] && outcome["texts"] == dry["texts"]));
    let again = program.json(&collect).remove(0);
    assert_eq!((&again["dropped"], &again["entries"], &again["complete"]), (&0.into(), &0.into(), &true.into()));
    assert_eq!(std::fs::read_dir(store.layout().requests()).unwrap().count(), 0);
    let status = program.json(&["--data", &data, "status", "--json"]).remove(0);
    assert!(status["last_collection"]["time"].is_string(), "{status}");
    // The tracker continues, and dropped snapshots come back on request.
    let new = repository.commit(&tree([("src/new.rs", "pub fn comes_after() {}\n")]));
    assert_eq!(tracker.line()["commit"], new.to_string());
    repository.point("refs/tags/old", commits[2]);
    assert_eq!(tracker.line()["commit"], commits[2].to_string());
    program.json(&["--data", &data, "snapshots", "verify", "--json"]);
    let searcher = store.searcher();
    for at in [2, 8, 9, 10, 11] {
        Picture::of(&searcher, Some(&commits[at].to_string())).assert_equals(&pictures[at], at);
    }
    // Settings changed after its start do not apply to it.
    settings(&program, repository.name(), 2);
    program.refuses(&collect, &[&tracker.id().to_string(), "other settings", "start it again"]);
    tracker.signal("TERM");
    assert_eq!(tracker.end(), Some(0));
    assert_eq!(program.json(&collect).remove(0)["kept"], 3);
    assert_eq!(check(&store.layout()).findings, []);
}

#[test]
fn who_asks_a_tracker_that_does_not_answer_may_take_it_back_or_collects_when_it_ends() {
    let (repository, _, store, _) = tracked(8);
    let program = Program::new();
    let data = store.layout().root().to_str().unwrap().to_owned();
    settings(&program, repository.name(), 3);
    let mut tracker = program.start(&["--data", &data, "track", "--json"]);
    until_it_tracks(store.layout().root(), tracker.id());
    tracker.signal("STOP");
    let collect = ["--data", &data, "snapshots", "gc", "--json"];
    let asked = || std::fs::read_dir(store.layout().requests()).map_or(0, Iterator::count);
    let until_it_asks = || {
        let begun = Instant::now();
        while asked() == 0 {
            assert!(begun.elapsed() < PATIENCE, "nobody asks");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let mut taken_back = program.start(&collect);
    until_it_asks();
    taken_back.signal("INT");
    assert_eq!(taken_back.line()["complete"], false);
    assert_eq!((taken_back.end(), asked()), (Some(0), 0));
    let mut collects = program.start(&collect);
    until_it_asks();
    tracker.kill();
    let outcome = collects.line();
    assert_eq!((&outcome["complete"], &outcome["dropped"]), (&true.into(), &5.into()));
    assert_eq!((collects.end(), asked()), (Some(0), 0));
    assert_eq!(check(&store.layout()).findings, []);
}

#[test]
fn a_tracker_that_is_killed_while_it_collects_loses_nothing_that_is_kept() {
    let (repository, line, store, pictures) = tracked(48);
    let program = Program::new();
    let data = store.layout().root().to_str().unwrap().to_owned();
    let collect = ["--data", &data, "snapshots", "gc", "--json"];
    let mut ended = 0;
    for (round, kept) in (1..12).rev().map(|kept| 4 * kept).enumerate() {
        settings(&program, repository.name(), kept);
        let mut tracker = program.start(&["--data", &data, "track", "--json"]);
        until_it_tracks(store.layout().root(), tracker.id());
        let mut asks = program.start(&collect);
        let wait = Duration::from_millis(60 + 47 * round as u64);
        ended += usize::from(asks.line_within(wait).is_some());
        // The requester would take over otherwise.
        asks.kill();
        tracker.kill();
        assert_eq!(check(&store.layout()).findings, [], "{kept} kept");
        let searcher = store.searcher();
        for (commit, picture) in line.iter().zip(&pictures).skip(48 - kept).step_by(11) {
            Picture::of(&searcher, Some(&commit.to_string())).assert_equals(picture, commit);
        }
    }
    assert!(ended < 11, "none was ended in the middle");
    let outcome = program.json(&collect).remove(0);
    assert_eq!((&outcome["complete"], &outcome["kept"]), (&true.into(), &4.into()), "{outcome}");
    let checked = check(&store.layout());
    assert_eq!((checked.findings, checked.garbage), (Vec::new(), 0));
}

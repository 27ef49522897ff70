//! *Kept snapshots answer as before, whatever is collected beside them*: after drops, interrupted collections, kills and
//! restarts, every kept commit gives the same hits and scores, `verify` finds nothing, and a dropped commit is refused by name
//! and can be made again.

mod beside;
mod killed;
mod lost;
mod readers;
mod removal;

use crate::support::{self, History, Picture, Repository, Step, Store, git, steps, tree};
use dataflows::embed::Embedder;
use proptest::prelude::*;
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use tidemill::config::{Backfill, Config, Keep, Retention, SourceConfig};
use tidemill::embedders::StaticModel;
use tidemill::engine::{Collection, Imported, Stop, Tracker, TrackerOptions, collect, estimate, import};
use tidemill::index::audit::{Audit, audit};
use tidemill::search::{Mode, Request, RevisionError, SearchError, Searcher};
use tidemill::store::Layout;

/// Returns settings that keep the newest few snapshots of every view.
fn newest(path: &Path, newest: usize) -> Config {
    let keep = Keep { newest: Some(newest), ..Keep::default() };
    Config {
        sources: vec![git(path, &["*"], None)],
        retention: Retention { keep, ..Retention::default() },
        ..Config::default()
    }
}

fn check(layout: &Layout) -> Audit {
    let model = StaticModel::new();
    audit(layout, model.fingerprint(), u32::try_from(model.dimensions()).unwrap()).unwrap()
}

/// Returns the commits that have a snapshot.
fn commits_of(searcher: &Searcher) -> BTreeSet<CommitId> {
    searcher.reader().with_archive(|archive| archive.kept().map(|version| version.commit).collect())
}

/// Asks for dropped commits, which must be refused with the commit and the advice.
fn refuses(searcher: &Searcher, commit: CommitId) {
    let request = Request { at: Some(commit.to_string()), ..Request::new("camera") };
    match searcher.search(&request) {
        Err(SearchError::Revision(error @ RevisionError::Dropped { .. })) => {
            let said = error.to_string();
            assert!(said.contains(&commit.to_string()) && said.contains("`tidemill track PATH"), "{said}");
        }
        other => panic!("{other:?} for a dropped snapshot"),
    }
}

/// An event of a store: a step of the history, or a collection that keeps so many of each view and may stop before one of its
/// steps.
#[derive(Clone, Debug)]
enum Happens {
    Step(Step),
    Collect(usize, Option<usize>),
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let collections = prop::collection::vec((0..24usize, 1..4usize, prop::option::of(0..14usize)), 2..5);
    (steps(10..24), collections).prop_map(|(steps, collections)| {
        let mut happenings: Vec<Happens> = steps.into_iter().map(Happens::Step).collect();
        for (at, newest, stop) in collections {
            happenings.insert(at.min(happenings.len()), Happens::Collect(newest, stop));
        }
        happenings.push(Happens::Collect(2, None));
        happenings
    })
}

proptest! {
    #![proptest_config(support::cases(8))]

    #[test]
    fn what_is_kept_answers_as_before_whatever_is_collected(happenings in happenings()) {
        let mut world = World::new();
        for happens in happenings {
            match happens {
                Happens::Step(step) => world.take(step),
                Happens::Collect(newest, stop) => world.collect(newest, stop),
            }
        }
    }
}

/// A store beside a model: the commits that must have snapshots, and the answers of each.
struct World {
    history: History,
    store: Store,
    /// Commits that have a snapshot.
    present: BTreeSet<CommitId>,
    /// Commits that have or had one.
    ever: BTreeSet<CommitId>,
    pictures: BTreeMap<CommitId, Picture>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            history: History::new(),
            store: Store::new(),
            present: BTreeSet::new(),
            ever: BTreeSet::new(),
            pictures: BTreeMap::new(),
        };
        world.take(Step::Sync);
        world
    }

    fn take(&mut self, step: Step) {
        self.history.take(step);
        if matches!(step, Step::Sync | Step::Restart) {
            self.store.track(git(self.history.repository.path(), &["*"], None));
            let made = self.history.synced();
            self.present.extend(&made);
            self.ever.extend(&made);
            self.look();
        }
    }

    fn collect(&mut self, keep: usize, stop: Option<usize>) {
        // So that the views point where their refs do.
        self.take(Step::Sync);
        let layout = self.store.layout();
        let config = newest(self.history.repository.path(), keep);
        let heads: BTreeSet<CommitId> = self.history.heads().collect();
        let lines = self.history.heads().flat_map(|head| {
            self.history.line(head).filter(|commit| self.ever.contains(commit)).take(keep).collect::<Vec<_>>()
        });
        let stays: BTreeSet<CommitId> = lines.chain(heads.iter().copied()).collect();
        let expected = estimate(&layout, &config).unwrap();
        let mut asked = 0;
        let outcome = collect(&layout, &config, &mut || {
            asked += 1;
            stop.is_none_or(|stop| asked <= stop)
        })
        .unwrap();
        if stop != Some(0) {
            self.present.retain(|commit| stays.contains(commit));
            assert_eq!(outcome.dropped, expected.dropped);
        }
        assert_eq!((outcome.kept, outcome.readers), (self.present.len() as u64, 0));
        if stop.is_none() {
            assert!(outcome.collected.is_complete);
            assert_eq!(outcome.collected.entries, expected.collected.entries);
            assert_eq!(outcome.collected.results, expected.collected.results);
            assert_eq!(check(&layout).garbage, 0);
            let again = collect(&layout, &config, &mut || true).unwrap();
            let nothing = tidemill::index::collect::Collected { is_complete: true, ..Default::default() };
            assert_eq!((again.dropped, again.collected), (0, nothing), "a second collection finds nothing");
        }
        assert_eq!(check(&layout).findings, [], "after {outcome:?}");
        self.look();
    }

    /// Compares every existing snapshot with its answers when it was first searched.
    fn look(&mut self) {
        let searcher = self.store.searcher();
        assert_eq!(commits_of(&searcher), self.present, "the commits that have a snapshot");
        for &commit in &self.present {
            let picture = Picture::of(&searcher, Some(&commit.to_string()));
            match self.pictures.get(&commit) {
                Some(known) => picture.assert_equals(known, commit),
                None => {
                    self.pictures.insert(commit, picture);
                }
            }
        }
        for &commit in self.ever.difference(&self.present) {
            refuses(&searcher, commit);
        }
    }
}

/// A line of commits, each of which changes one file of several and now and then reverts.
fn line(length: usize) -> (Repository, Vec<CommitId>) {
    let repository = Repository::new();
    let text = |file: usize, number: usize| {
        let items = (0..6).map(|item| {
            let version = if item == number % 6 { number } else { 0 };
            format!("/// Spawns camera {item} of file {file}.\npub fn spawn_{file}_{item}() {{\n    camera({version});\n}}\n\n")
        });
        items.collect::<String>()
    };
    let mut files: Vec<String> = (0..5).map(|file| text(file, 0)).collect();
    let mut commits = Vec::new();
    for number in 0..length {
        // Every seventh commit reverts the previous one.
        let (file, version) = if number % 7 == 6 { ((number - 1) % 5, 0) } else { (number % 5, number) };
        files[file] = text(file, version);
        let paths: Vec<String> = (0..files.len()).map(|file| format!("src/file_{file}.rs")).collect();
        commits.push(repository.commit(&tree(paths.iter().map(String::as_str).zip(files.iter().map(String::as_str)))));
    }
    (repository, commits)
}

/// A store with a snapshot of every commit of a line, with the answers of each.
fn tracked(length: usize) -> (Repository, Vec<CommitId>, Store, Vec<Picture>) {
    let (repository, commits) = line(length);
    let store = Store::new();
    store.track(git(repository.path(), &["*"], Some(Backfill::All)));
    let searcher = store.searcher();
    let pictures = commits.iter().map(|commit| Picture::of(&searcher, Some(&commit.to_string()))).collect();
    (repository, commits, store, pictures)
}

#[test]
fn a_dropped_snapshot_is_made_again_on_request_only_and_answers_as_before() {
    let (repository, commits, store, pictures) = tracked(12);
    let config = newest(repository.path(), 4);
    let Collection { dropped, kept, collected, bytes, .. } = collect(&store.layout(), &config, &mut || true).unwrap();
    assert_eq!((dropped, kept), (8, 4));
    assert!(collected.entries > 0 && collected.vectors > 0 && collected.results.texts > 0, "{collected:?}");
    assert_eq!((collected.words, collected.held_back), (collected.entries, 0));
    for part in ["database", "vectors"] {
        assert!(bytes[part][1] < bytes[part][0], "{part}: {bytes:?}");
    }
    // A backfill in the settings applies to every start: it would make everything again each time.
    let source = SourceConfig { ..git(repository.path(), &["*"], Some(Backfill::All)) };
    assert_eq!(store.track(source.clone()).len(), 0);
    refuses(&store.searcher(), commits[0]);
    let made = store.track(SourceConfig { asks_again: true, ..source });
    assert_eq!(made.len(), 8);
    assert!(made.iter().map(|line| line.receipt.embedded).sum::<u64>() > 0, "what was swept is embedded again");
    let searcher = store.searcher();
    for (commit, picture) in commits.iter().zip(&pictures) {
        Picture::of(&searcher, Some(&commit.to_string())).assert_equals(picture, commit);
    }
    assert_eq!(check(&store.layout()).findings, []);
}

#[test]
fn a_dropped_snapshot_comes_back_with_its_copy_and_answers_as_before() {
    let (repository, commits, store, pictures) = tracked(12);
    let (folder, name) = (tempfile::tempdir().unwrap(), commits[1].to_string());
    let copy = folder.path().join("copy");
    let mut export = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    export.arg("--data").arg(store.layout().root()).args(["snapshots", "export", &name]).arg(&copy);
    let exported = export.stdout(Stdio::null()).status();
    assert!(exported.unwrap().success());
    let config = newest(repository.path(), 4);
    assert_eq!(collect(&store.layout(), &config, &mut || true).unwrap().dropped, 8);
    refuses(&store.searcher(), commits[1]);

    let (imported, _) = import(&store.layout(), &copy, None).unwrap();
    let Imported::Published(published) = imported else { panic!("it was dropped") };
    assert_eq!((published.version.commit, published.view), (commits[1], None));
    let searcher = store.searcher();
    for (number, (commit, picture)) in commits.iter().zip(&pictures).enumerate() {
        match number {
            1 | 8.. => Picture::of(&searcher, Some(&commit.to_string())).assert_equals(picture, commit),
            _ => refuses(&searcher, *commit),
        }
    }
    assert_eq!(check(&store.layout()).findings, []);
    assert!(matches!(import(&store.layout(), &copy, None).unwrap().0, Imported::Known));
    // It is an ordinary snapshot: the settings drop it again, and its copy restores it again.
    drop(searcher);
    assert_eq!(collect(&store.layout(), &config, &mut || true).unwrap().dropped, 1);
    refuses(&store.searcher(), commits[1]);
    assert!(matches!(import(&store.layout(), &copy, None).unwrap().0, Imported::Published(_)));
    Picture::of(&store.searcher(), Some(&name)).assert_equals(&pictures[1], commits[1]);
}

#[test]
fn without_settings_nothing_is_dropped_and_nothing_removed() {
    let (repository, _, store, _) = tracked(5);
    let config = Config { sources: vec![git(repository.path(), &["*"], None)], ..Config::default() };
    let outcome = collect(&store.layout(), &config, &mut || true).unwrap();
    assert_eq!((outcome.dropped, outcome.kept, outcome.collected.entries), (0, 5, 0));
    assert_eq!(outcome.collected.results, Default::default());
}

#[test]
fn a_tracker_may_collect_when_it_starts_and_goes_on_from_what_is_left() {
    let (repository, commits, store, pictures) = tracked(9);
    let mut config = newest(repository.path(), 3);
    config.retention.at_start = true;
    let start = |config: &Config| {
        let options = TrackerOptions {
            layout: store.layout(),
            config: config.clone(),
            on_published: Box::new(|_| {}),
            stop: Stop::default(),
        };
        Tracker::open(options).unwrap().catch_up().unwrap();
    };
    start(&config);
    let back = repository.commit(&tree([("src/back.rs", "pub fn comes_back() {}\n")]));
    start(&config);
    let searcher = store.searcher();
    assert_eq!(commits_of(&searcher).len(), 4, "the newest three, and the one that came since");
    assert!(commits_of(&searcher).contains(&back));
    for (commit, picture) in commits.iter().zip(&pictures).skip(7) {
        Picture::of(&searcher, Some(&commit.to_string())).assert_equals(picture, commit);
    }
    assert_eq!((check(&store.layout()).findings, check(&store.layout()).garbage), (Vec::new(), 0));
}

#[test]
fn tags_days_and_weeks_keep_what_they_say() {
    // Commits of one minute each, from 2023-11-14T22:13:20Z on: 106 of them before midnight.
    let (repository, commits, store, _) = tracked(110);
    repository.point("refs/tags/v1.0", commits[3]);
    let keep = |keep: Keep, tags: bool| {
        let mut config = newest(repository.path(), 0);
        config.retention = Retention { keep, tags, ..Retention::default() };
        estimate(&store.layout(), &config).unwrap().kept
    };
    let all = 36_500;
    assert_eq!(keep(Keep { newest: Some(0), ..Keep::default() }, false), 1, "the head stays");
    assert_eq!(keep(Keep { newest: Some(5), ..Keep::default() }, true), 6, "and what a tag names");
    assert_eq!(keep(Keep { daily: Some(all), ..Keep::default() }, false), 2, "the last of each of two days");
    assert_eq!(keep(Keep { weekly: Some(all), ..Keep::default() }, false), 1, "both days are of one week");
    assert_eq!(keep(Keep { days: Some(all), ..Keep::default() }, false), 110);
    assert_eq!(keep(Keep { days: Some(1), ..Keep::default() }, false), 1, "they are years old");
}

#[test]
fn saves_go_sooner_than_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new();
    let source = SourceConfig {
        path: format!("dir:{}", folder.path().display()),
        name: Some("notes".to_owned()),
        ..SourceConfig::default()
    };
    for number in 0..4 {
        std::fs::write(folder.path().join("note.md"), format!("# Note\n\nNumber {number} of the tide mill.\n"))
            .unwrap();
        store.track(source.clone());
    }
    let of = |saves_hours| {
        let retention = Retention { saves_hours: Some(saves_hours), ..Retention::default() };
        let config = Config { sources: vec![source.clone()], retention, ..Config::default() };
        collect(&store.layout(), &config, &mut || true).unwrap()
    };
    assert_eq!((of(1).dropped, of(1).kept), (0, 4), "they were saved just now");
    let outcome = of(0);
    assert_eq!((outcome.dropped, outcome.kept), (3, 1), "what the directory holds now stays");
    assert!(outcome.collected.entries > 0);
    assert_eq!(check(&store.layout()).findings, []);
}

//! *Calls equal distinct new inputs*: what an epoch claims to have computed is what it had to compute.
//!
//! The expected numbers are counted here, over the repository: trees are walked by the git program, contents go through
//! the pure functions, and sets remember what was there before. None of the product's counters is read for them.

use crate::support::{self, History, Repository, Step, Store, Tree, git, steps, tree, work};
use dataflows::chunk::chunk;
use dataflows::clean::clean;
use dataflows::code::{is_manifest, module_name};
use dataflows::data::{Card, DocumentPath, TextHash};
use dataflows::rules::Rules;
use proptest::prelude::*;
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tidemill::index::apply::Published;
use tidemill::search::{Mode, Request};

/// Every input that a stage was ever given.
struct Seen {
    rules: Rules,
    cleaned: BTreeSet<Vec<u8>>,
    chunked: BTreeSet<(String, String)>,
    embedded: HashSet<String>,
}

impl Seen {
    fn new() -> Self {
        let (cleaned, chunked, embedded) = Default::default();
        Self { rules: Rules::built_in(), cleaned, chunked, embedded }
    }

    /// Returns how many inputs a commit brings to each stage that none before it had.
    fn see(&mut self, repository: &Repository, commit: CommitId) -> [u64; 3] {
        let before = [self.cleaned.len(), self.chunked.len(), self.embedded.len()];
        let mut texts = BTreeMap::new();
        for (path, blob) in list(repository, commit) {
            let rule = self.rules.rule(self.rules.for_path(&path));
            // The built-in rules clean all files alike, so a blob is the distinct input.
            self.cleaned.insert(blob.clone());
            let bytes = repository.git(&["cat-file", "blob", std::str::from_utf8(&blob).unwrap()]);
            if let Ok(text) = clean(rule, &bytes) {
                texts.insert(path, text);
            }
        }
        let modules: BTreeMap<Vec<u8>, String> = texts
            .iter()
            .filter(|(path, _)| is_manifest(path))
            .filter_map(|(path, text)| Some((path.folder().to_vec(), module_name(path, text)?)))
            .collect();
        for (path, text) in &texts {
            let rule = self.rules.rule(self.rules.for_path(path));
            let cutting = format!("{:?}", rule.chunking_id(TextHash::of("")));
            self.chunked.insert((cutting, text.clone()));
            for piece in chunk(rule, text) {
                let (chunk, text) = (piece.chunk, piece.text);
                let card = Card {
                    kind: chunk.kind,
                    language: chunk.language,
                    symbol: chunk.symbol,
                    name: chunk.name,
                    folder: String::from_utf8_lossy(path.folder()).into_owned(),
                    module: module_of(&modules, path),
                    labels: Vec::new(),
                };
                self.embedded.insert(card.frame().around(&text));
            }
        }
        let after = [self.cleaned.len(), self.chunked.len(), self.embedded.len()];
        std::array::from_fn(|stage| (after[stage] - before[stage]) as u64)
    }
}

/// Returns the regular files of a commit and their blobs, as `git ls-tree` lists them.
fn list(repository: &Repository, commit: CommitId) -> Vec<(DocumentPath, Vec<u8>)> {
    let listing = repository.git(&["ls-tree", "-r", "-z", &commit.to_string()]);
    let rows = listing.split(|&byte| byte == 0).filter(|row| row.starts_with(b"100"));
    rows.map(|row| {
        let tab = row.iter().position(|&byte| byte == b'\t').unwrap();
        let blob = row[..tab].rsplit(|&byte| byte == b' ').next().unwrap();
        (DocumentPath::new(&row[tab + 1..]), blob.to_vec())
    })
    .collect()
}

/// Returns the module that the nearest manifest above a path names.
fn module_of(modules: &BTreeMap<Vec<u8>, String>, path: &DocumentPath) -> String {
    let mut folder = path.folder().to_vec();
    loop {
        if let Some(name) = modules.get(&folder) {
            return name.clone();
        }
        if folder.is_empty() {
            return String::new();
        }
        folder.truncate(folder.iter().rposition(|&byte| byte == b'/').unwrap_or(0));
    }
}

fn calls(published: &Published) -> [u64; 3] {
    let [cleaned, chunked, embedded, ..] = work(published);
    [cleaned, chunked, embedded]
}

proptest! {
    #![proptest_config(support::cases(10))]

    #[test]
    fn calls_equal_distinct_new_inputs_epoch_by_epoch(steps in steps(6..24), slice in prop::option::of(1..4_usize)) {
        let mut history = History::new();
        let store = Store::in_slices(slice);
        let mut seen = Seen::new();
        let mut running = store.open(git(history.repository.path(), &["*"], None));
        for step in steps.into_iter().chain([Step::Sync]) {
            match step {
                Step::Sync => {
                    for published in running.catch_up() {
                        let expected = seen.see(&history.repository, published.version.commit);
                        prop_assert_eq!(calls(&published), expected, "at {}", published.version.commit);
                    }
                }
                Step::Restart => {
                    drop(running);
                    running = store.open(git(history.repository.path(), &["*"], None));
                }
                step => history.take(step),
            }
        }
    }
}

#[test]
fn a_start_on_an_unchanged_head_computes_nothing_and_says_nothing() {
    let history = History::new();
    let store = Store::new();
    let source = || git(history.repository.path(), &[], None);
    assert_eq!(store.track(source()).len(), 1);
    for _ in 0..2 {
        assert_eq!(store.track(source()).len(), 0);
    }
    let searcher = store.searcher();
    let receipts = searcher.reader().catalogue().receipts().unwrap();
    assert_eq!(receipts.len(), 1, "and leaves no receipt");
    assert_eq!(searcher.reader().with_archive(|archive| archive.versions().len()), 1, "and no version");
}

/// The file that stands at a hundred paths: two functions.
const SHARED: &str = "/// Turns the wheel.\nfn turn_wheel(wheel: &mut Wheel) {\n    wheel.turn(quicksilver());\n    wheel.oil();\n    wheel.count += 1;\n}\n\n/// Stops the wheel.\nfn stop_wheel(wheel: &mut Wheel) {\n    wheel.stop();\n}\n";

fn hundred(folders: usize) -> Tree {
    (0..100).map(|n| (format!("folder{}/file{n}.rs", n % folders).into_bytes(), SHARED.as_bytes().to_vec())).collect()
}

#[test]
fn one_content_at_a_hundred_paths_is_computed_once() {
    for folders in [1, 4, 100] {
        let repository = Repository::new();
        let store = Store::new();
        let commit = repository.commit(&hundred(folders));
        let published = store.track(git(repository.path(), &[], None));
        let [cleaned, chunked, embedded, inserted, retracted] = work(&published[0]);
        let rules = Rules::built_in();
        let pieces = chunk(rules.rule(rules.for_path(&"a.rs".into())), SHARED).len();
        assert_eq!([cleaned, chunked], [1, 1], "{folders} folders");
        // The card names the folder, so each folder's card is an input of its own.
        assert_eq!(embedded, (pieces * folders) as u64, "{folders} folders");
        assert_eq!([inserted, retracted], [(pieces * 100) as u64, 0], "{folders} folders");
        assert_eq!(Seen::new().see(&repository, commit), [cleaned, chunked, embedded]);
    }
}

#[test]
fn deleting_ninety_nine_of_a_hundred_leaves_the_last_findable() {
    let repository = Repository::new();
    let store = Store::new();
    let all = hundred(4);
    let full = repository.commit(&all);
    store.track(git(repository.path(), &[], None));
    let last: Tree = all.into_iter().filter(|(path, _)| path == b"folder2/file42.rs").collect();
    repository.commit(&last);
    let published = store.track(git(repository.path(), &[], None));
    let [cleaned, chunked, embedded, inserted, retracted] = work(&published[0]);
    assert_eq!([cleaned, chunked, embedded, inserted], [0; 4], "a deletion computes nothing");
    assert_eq!(published[0].receipt.removed, 99);
    assert_eq!(retracted, published[0].version.statistics.live_entries * 99);
    let searcher = store.searcher();
    for mode in [Mode::Bm25, Mode::Vector, Mode::Hybrid] {
        let request = Request { mode, ..Request::new("turn the wheel quicksilver") };
        let hits = searcher.search(&request).unwrap().hits;
        assert!(!hits.is_empty(), "{mode:?}");
        assert!(hits.iter().all(|hit| hit.path == DocumentPath::from("folder2/file42.rs")), "{mode:?}");
        let before = Request { at: Some(full.to_string()), k: 500, ..request };
        let paths: BTreeSet<_> = searcher.search(&before).unwrap().hits.into_iter().map(|hit| hit.path).collect();
        assert_eq!(paths.len(), 100, "{mode:?}: the snapshot before still has them all");
    }
}

#[test]
fn a_second_branch_at_a_known_commit_costs_nothing() {
    let repository = Repository::new();
    let store = Store::new();
    let first = repository.commit(&tree([("a.rs", SHARED), ("b.md", "# Wheel\n\nIt turns.\n")]));
    store.track(git(repository.path(), &["*"], None));
    repository.point("refs/heads/other", first);
    repository.point("refs/tags/v1", first);
    let published = store.track(git(repository.path(), &["*"], None));
    let mut views: Vec<_> = published.iter().map(|line| line.view.clone().unwrap()).collect();
    views.sort();
    assert_eq!(views, ["other", "v1"], "each says where it stands");
    assert!(published.iter().all(|line| work(line) == [0; 5] && line.version.commit == first));
    let searcher = store.searcher();
    assert_eq!(searcher.reader().with_archive(|archive| archive.versions().len()), 1, "they share one version");
}

#[test]
fn a_branch_goes_on_where_it_stood_when_a_tag_takes_its_name_or_gives_it_back() {
    let repository = Repository::new();
    let store = Store::new();
    let commit = |number: usize| repository.commit(&tree([("a.rs", format!("{SHARED}// {number}\n").as_str())]));
    let track = |expected: [CommitId; 2], view: &str| {
        let published = store.track(git(repository.path(), &[], None));
        assert_eq!(published.iter().map(|line| line.version.commit).collect::<Vec<_>>(), expected);
        assert!(published.iter().all(|line| line.view.as_deref() == Some(view)), "the view is called {view}");
        assert!(published.iter().all(|line| line.receipt.changed == 1 && line.receipt.added == 0));
    };
    let first = commit(0);
    assert_eq!(store.track(git(repository.path(), &[], None)).len(), 1);
    repository.point("refs/tags/main", first);
    track([commit(1), commit(2)], "heads/main");
    repository.remove("refs/tags/main");
    track([commit(3), commit(4)], "main");
}

//! *Incremental equals rebuilt*, and *a commit's snapshot answers as that commit did*.
//!
//! A tracker that is occasionally restarted tracks random histories of a real repository. Afterwards, as of every commit with a
//! snapshot, all answers of the store are compared with a fresh store that was built from scratch at that commit, and with the
//! reference, which uses neither graph nor store.
//!
//! `TIDEMILL_HEAVY=1` runs thirty times as many histories, different ones in every run.

use crate::support::{self, History, Picture, Repository, Step, Store, Tree, content_id, files, git, steps};
use dataflows::data::{ContentId, EntryId};
use dataflows::memo::{Content, Contents, ReadError};
use dataflows::reference::{self, Reference};
use dataflows::rules::Rules;
use proptest::prelude::*;
use snapshots::{CommitId, Digest, Introduced, Ordinal, VersionId};
use std::collections::{BTreeMap, BTreeSet};
use tidemill::search::Searcher;

proptest! {
    #![proptest_config(support::cases(12))]

    #[test]
    fn after_any_history_every_commit_answers_as_if_built_from_nothing(
        steps in steps(8..28),
        slice in prop::option::of(1..4_usize),
    ) {
        follow_and_compare(&steps, slice);
    }
}

#[test]
fn pictures_of_different_trees_differ_in_every_part() {
    // Otherwise the comparison above would prove nothing.
    let mut history = History::new();
    let first = *history.trees.keys().next().unwrap();
    let pictures = [Step::Empty, Step::Line(0, 9, 3)].map(|step| {
        history.take(step);
        build_fresh(&history.repository, history.head())
    });
    assert_eq!(pictures[0], build_fresh(&history.repository, first), "an empty commit changes nothing");
    let [one, other] = pictures;
    assert_ne!(one.digest, other.digest);
    assert_ne!(one.statistics, other.statistics);
    assert_ne!(one.documents, other.documents);
    assert_ne!(one.entries, other.entries);
    let differing = one.answers.iter().zip(&other.answers).filter(|(one, other)| one != other).count();
    assert!(differing > one.answers.len() / 2, "{differing} of {} answers differ", one.answers.len());
    assert!(one.answers.iter().filter(|answer| answer.2.len() > 3).count() > 9, "most questions have answers");
}

fn follow_and_compare(steps: &[Step], slice: Option<usize>) {
    let mut history = History::new();
    let store = Store::in_slices(slice);
    let source = || git(history.repository.path(), &["*"], None);
    let mut running = store.open(source());
    for &step in steps {
        match step {
            Step::Sync => {
                running.catch_up();
                history.synced();
            }
            Step::Restart => {
                drop(running);
                running = store.open(git(history.repository.path(), &["*"], None));
            }
            step => history.take(step),
        }
    }
    running.catch_up();
    history.synced();
    drop(running);

    let searcher = store.searcher();
    let known: BTreeSet<CommitId> =
        searcher.reader().with_archive(|archive| archive.versions().iter().map(|version| version.commit).collect());
    assert_eq!(known, history.expected, "the commits that have a snapshot");
    let mut rebuilt = BTreeMap::new();
    for &commit in &known {
        let tree = &history.trees[&commit];
        let (fresh, reference) =
            rebuilt.entry(tree).or_insert_with(|| (build_fresh(&history.repository, commit), from_scratch(tree)));
        let picture = Picture::of(&searcher, Some(&commit.to_string()));
        equals_reference(&picture, reference, commit);
        picture.assert_equals(fresh, commit);
        introductions_hold(&searcher, &history, commit);
    }
}

/// Builds a store with an empty memo that knows this commit only.
fn build_fresh(repository: &Repository, commit: CommitId) -> Picture {
    let alone = repository.at(commit);
    let store = Store::new();
    let published = store.track(git(alone.path(), &[], None));
    assert_eq!(published.len(), 1);
    Picture::of(&store.searcher(), None)
}

/// The contents of one tree.
struct Shelf(BTreeMap<ContentId, Vec<u8>>);

impl Contents for Shelf {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        let bytes = &self.0[&content];
        let length = bytes.len() as u64;
        Ok(if length > max_bytes { Content::TooLarge(length) } else { Content::Bytes(bytes.clone()) })
    }
}

fn from_scratch(tree: &Tree) -> Reference {
    let shelf = Shelf(tree.values().map(|bytes| (content_id(bytes), bytes.clone())).collect());
    reference::build(&files(tree), &Rules::built_in(), &shelf)
}

fn equals_reference(picture: &Picture, reference: &Reference, commit: CommitId) {
    assert_eq!(picture.documents, reference.documents, "documents at {commit}");
    let found = picture.entries.iter().map(|line| (line.path.clone(), line.lines, line.id, line.text.clone()));
    let expected = reference.entries.iter().map(|entry| {
        let placed = &entry.placed;
        (placed.entry.path.to_string(), placed.lines, placed.entry.id(), entry.text.clone())
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), expected.collect::<BTreeSet<_>>(), "entries at {commit}");
    let identities: Vec<[u8; 16]> = reference.entries.iter().map(|entry| entry.placed.entry.id().to_bytes()).collect();
    assert_eq!(picture.digest, Digest::of(&identities), "digest at {commit}");
    assert_eq!(picture.statistics.live_entries, identities.len() as u64, "live entries at {commit}");
}

/// Checks `introduced_in` against the trees along the line of first parents.
fn introductions_hold(searcher: &Searcher, history: &History, commit: CommitId) {
    let reader = searcher.reader();
    let (ordinals, introduced, versions) = reader.with_archive(|archive| {
        let source = archive.versions()[0].source;
        let version = archive.by_commit(source, commit).unwrap();
        let ordinals: Vec<Ordinal> = archive.bitmaps(version).unwrap().entries.iter().map(Ordinal::new).collect();
        let introduced = archive.introduced(version, &ordinals).unwrap();
        let named = introduced.into_iter().map(|introduced| match introduced {
            Introduced::At(version) => (archive.version(version).unwrap().commit, true),
            Introduced::Before(version) => (archive.version(version).unwrap().commit, false),
            other => panic!("{other:?} at {commit}"),
        });
        let named: Vec<(CommitId, bool)> = named.collect();
        let versions: BTreeMap<CommitId, VersionId> =
            archive.versions().iter().map(|version| (version.commit, version.id)).collect();
        (ordinals, named, versions)
    });
    let mut known: BTreeMap<CommitId, BTreeSet<EntryId>> = BTreeMap::new();
    for (record, (introduced, exactly)) in
        reader.catalogue().entries(ordinals.into_iter()).unwrap().iter().zip(introduced)
    {
        let id = record.entry.id();
        let mut holds = |at: CommitId| {
            let entries = known.entry(at).or_insert_with(|| {
                from_scratch(&history.trees[&at]).entries.iter().map(|entry| entry.placed.entry.id()).collect()
            });
            entries.contains(&id)
        };
        let mut line = history.line(commit);
        let since = line.by_ref().take_while(|at| *at != introduced).collect::<Vec<_>>();
        assert!(
            since.into_iter().all(&mut holds) && holds(introduced),
            "{:?} was there since {introduced}",
            record.entry
        );
        match line.next() {
            Some(parent) if exactly => {
                assert!(!holds(parent), "{:?} is older than {introduced}", record.entry);
            }
            Some(parent) => {
                // A parent may get its snapshot later, when a branch goes back to it.
                let reaches = versions.get(&parent).is_some_and(|parent| *parent < versions[&introduced]);
                assert!(!reaches, "the log reaches behind {introduced}");
            }
            None => assert!(exactly, "{introduced} is a root"),
        }
    }
}

//! Promise: `introduced` names the commit that introduced an entry, or says how far back the log reaches.

use crate::model::{Link, Model};
use snapshots::*;

/// A version: base, link, fresh entries, revived and retracted ones.
type Step<'a> = (Option<u32>, Link, u32, &'a [u32], &'a [u32]);

/// Appends versions and returns the archive.
fn archive(folder: &std::path::Path, versions: &[Step<'_>]) -> Archive {
    let mut archive = Archive::create_or_open_writer(folder).expect("an empty folder opens");
    let mut model = Model::default();
    for &(base, link, fresh, revived, retracted) in versions {
        let version = model.version(base.map(VersionId::new), link, fresh, revived, retracted);
        archive.append(&[Record::Version(version)]).expect("the version may follow");
    }
    archive
}

fn check(versions: &[Step<'_>], asked: u32, expected: &[(u32, Introduced)]) {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let archive = archive(folder.path(), versions);
    let ordinals: Vec<Ordinal> = expected.iter().map(|&(ordinal, _)| Ordinal::new(ordinal)).collect();
    let answers = archive.introduced(VersionId::new(asked), &ordinals).expect("the version is there");
    assert_eq!(answers, expected.iter().map(|&(_, answer)| answer).collect::<Vec<_>>());
}

const fn at(version: u32) -> Introduced {
    Introduced::At(VersionId::new(version))
}

const fn before(version: u32) -> Introduced {
    Introduced::Before(VersionId::new(version))
}

#[test]
fn a_line_of_commits_from_the_root_knows_every_commit() {
    let line: &[Step<'_>] = &[
        (None, Link::Parent, 2, &[], &[]),
        (Some(0), Link::Parent, 1, &[], &[0]),
        (Some(1), Link::Parent, 0, &[0], &[1]),
    ];
    // 0 was retracted and inserted again; the answers keep the order and repeats of the question.
    check(line, 2, &[(2, at(1)), (0, at(2)), (1, Introduced::Absent), (2, at(1)), (9, Introduced::Absent)]);
    check(line, 1, &[(1, at(0)), (0, Introduced::Absent)]);
}

#[test]
fn a_head_without_history_knows_only_that_it_was_there() {
    check(&[(None, Link::Gap, 2, &[], &[]), (Some(0), Link::Parent, 1, &[], &[])], 1, &[(0, before(0)), (2, at(1))]);
}

#[test]
fn versions_of_commits_that_need_not_be_ancestors_are_never_named() {
    // Version 2 replaces version 1 after a force-push; its parent has no snapshot.
    let pushed: &[Step<'_>] = &[
        (None, Link::Parent, 1, &[], &[]),
        (Some(0), Link::Parent, 1, &[], &[]),
        (Some(1), Link::Gap, 1, &[], &[]),
        (Some(2), Link::Parent, 1, &[], &[]),
    ];
    check(pushed, 3, &[(0, before(2)), (1, before(2)), (2, before(2)), (3, at(3))]);
}

#[test]
fn the_same_commit_under_other_rules_hides_only_what_the_rules_changed() {
    let again: &[Step<'_>] = &[
        (None, Link::Parent, 2, &[], &[]),
        (Some(0), Link::Parent, 1, &[], &[]),
        (Some(1), Link::Again, 1, &[], &[0]),
    ];
    check(again, 2, &[(1, at(0)), (2, at(1)), (3, before(2))]);
}

#[test]
fn a_commit_without_a_parent_brought_all_that_it_holds() {
    // Version 1 starts an orphan branch; its base is the view's earlier version.
    let orphan: &[Step<'_>] =
        &[(None, Link::Parent, 2, &[], &[]), (Some(0), Link::Root, 1, &[], &[0]), (Some(1), Link::Parent, 1, &[], &[])];
    check(orphan, 2, &[(1, at(1)), (2, at(1)), (3, at(2))]);
}

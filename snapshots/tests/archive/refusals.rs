//! Promise: the log accepts no contradictory record, and a refused group leaves no trace.

use crate::model::{Link, Model, commit};
use snapshots::*;
use std::fs;

/// An archive of two versions, where the second retracted entry 0.
fn two_versions(folder: &std::path::Path) -> (Archive, Model) {
    let mut archive = Archive::create_or_open_writer(folder).expect("an empty folder opens");
    let mut model = Model::default();
    let first = model.version(None, Link::Parent, 4, &[], &[]);
    let second = model.version(Some(VersionId::new(0)), Link::Parent, 1, &[], &[0]);
    archive.append(&[Record::Version(first), Record::Version(second)]).expect("the group may follow");
    (archive, model)
}

#[test]
fn a_group_with_one_wrong_record_is_refused_whole() {
    type Spoil = fn(&mut NewVersion);
    let cases: &[(&str, Spoil, Refusal)] = &[
        ("inserts what lives", |new| _ = new.changes.entries.inserted.insert(1), Refusal::Inexact),
        ("retracts what is dead", |new| _ = new.changes.entries.retracted.insert(0), Refusal::Inexact),
        ("retracts what never was", |new| _ = new.changes.documents.retracted.insert(99), Refusal::Inexact),
        (
            "inserts and retracts the same",
            |new| {
                new.changes.entries.inserted.insert(77);
                new.changes.entries.retracted.insert(77);
            },
            Refusal::Inexact,
        ),
        (
            "goes back in time",
            |new| new.epoch = Epoch::new(1),
            Refusal::EpochGoesBack { epoch: Epoch::new(1), last: Epoch::new(3) },
        ),
        (
            "rests on a version to come",
            |new| new.base = Some(VersionId::new(3)),
            Refusal::NoSuchVersion { version: VersionId::new(3) },
        ),
        ("claims another parent", |new| new.parent = Some(commit(99)), Refusal::BaseIsNotParent),
        ("claims a parent under other rules", |new| new.fingerprint = [9; 16], Refusal::BaseIsNotParent),
        ("claims to be a root with a parent", |new| new.base = None, Refusal::BaseIsNotParent),
    ];
    let folder = tempfile::tempdir().expect("a folder of its own");
    let (mut archive, model) = two_versions(folder.path());
    let log = fs::read(folder.path().join("versions.log")).expect("the log is there");
    for (what, spoil, expected) in cases {
        let mut ahead = model.clone();
        let good = ahead.version(Some(VersionId::new(1)), Link::Parent, 2, &[], &[2]);
        let mut bad = ahead.version(Some(VersionId::new(1)), Link::Parent, 1, &[], &[]);
        spoil(&mut bad);
        match archive.append(&[Record::Version(good), Record::Version(bad)]) {
            Err(ArchiveError::Refused { position: 1, refusal }) => assert_eq!(refusal, *expected, "{what}"),
            outcome => panic!("{what}: {outcome:?}"),
        }
        model.check(&archive);
    }
    assert_eq!(fs::read(folder.path().join("versions.log")).ok(), Some(log));
    // Another version gets the number of the refused ones and is not mistaken for them.
    let mut model = model;
    let other = model.version(Some(VersionId::new(1)), Link::Parent, 3, &[0], &[3]);
    archive.append(&[Record::Version(other)]).expect("the version may follow");
    model.check(&archive);
}

#[test]
fn one_writer_at_a_time_and_readers_write_nothing() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    assert!(matches!(Archive::open_reader(folder.path()), Err(ArchiveError::Missing { .. })));
    let (writer, model) = two_versions(folder.path());
    assert!(matches!(Archive::create_or_open_writer(folder.path()), Err(ArchiveError::Busy { .. })));
    let mut reader = Archive::open_reader(folder.path()).expect("a reader opens beside the writer");
    model.check(&reader);
    let gone = Record::ViewGone { epoch: reader.next_epoch(), view: ViewId::new(0), time: None };
    assert!(matches!(reader.append(&[gone]), Err(ArchiveError::ReadOnly { .. })));
    assert!(matches!(reader.checkpoint(VersionId::new(0)), Err(ArchiveError::ReadOnly { .. })));
    drop(writer);
    assert!(Archive::create_or_open_writer(folder.path()).is_ok(), "the lock goes with its holder");
}

#[test]
fn a_version_that_is_not_there_is_an_error_and_not_empty() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let (archive, _) = two_versions(folder.path());
    let error = archive.bitmaps(VersionId::new(2)).expect_err("there are two versions");
    assert_eq!(error.to_string(), "the archive has no version 2; it knows 2");
    assert!(archive.changes(VersionId::new(u32::MAX)).is_err());
    assert!(archive.introduced(VersionId::new(2), &[]).is_err());
}

#[test]
fn short_hashes_find_every_commit_that_begins_so() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let (archive, _) = two_versions(folder.path());
    let hash = commit(1).to_string();
    assert_eq!(archive.find_commits(&hash[..7]), [(SourceId::new(0), VersionId::new(1))]);
    assert_eq!(archive.find_commits(&hash), archive.find_commits(&hash.to_uppercase()));
    assert!(archive.find_commits("").is_empty());
    assert!(archive.find_commits("main").is_empty());
}

#[test]
fn a_head_is_never_dropped_and_what_was_dropped_is_no_head_again() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut archive = Archive::create_or_open_writer(folder.path()).expect("an empty folder opens");
    let mut model = Model::default();
    for base in [None, Some(VersionId::new(0))] {
        let version = model.version(base, Link::Parent, 2, &[], &[]);
        archive.append(&[Record::Version(version)]).expect("the version may follow");
    }
    let [first, second] = [0, 1].map(VersionId::new);
    let view = |version| Record::View { epoch: Epoch::new(9), view: ViewId::new(0), version, time: Some(5) };
    let dropped = |versions: &[u32]| Record::Dropped { epoch: Epoch::new(9), versions: versions.iter().collect() };
    archive.append(&[view(second)]).expect("the view may follow");
    let refusals = [
        (vec![dropped(&[0, 1])], Refusal::InUse { version: second, view: ViewId::new(0) }),
        (vec![view(first), dropped(&[0])], Refusal::InUse { version: first, view: ViewId::new(0) }),
        (vec![dropped(&[0, 2])], Refusal::NoSuchVersion { version: VersionId::new(2) }),
        (vec![dropped(&[0]), view(first)], Refusal::Dropped { version: first }),
        (vec![dropped(&[0]), dropped(&[0])], Refusal::Dropped { version: first }),
    ];
    for (records, expected) in refusals {
        match archive.append(&records) {
            Err(ArchiveError::Refused { refusal, .. }) => assert_eq!(refusal, expected),
            outcome => panic!("{outcome:?} instead of {expected}"),
        }
        assert_eq!(archive.dropped().count(), 0, "a refused group drops nothing");
    }
    archive.append(&[view(first), dropped(&[1])]).expect("a version that lost its view may go");
    assert!(archive.is_dropped(second));
}

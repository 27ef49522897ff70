//! Promise: `verify` computes everything again, names each damage where it begins, and finds none in a sound archive.

use crate::model::{Link, Model, identity, tokens};
use snapshots::*;
use std::fs;

/// An archive of six versions, the third of which `spoil` may change before it is recorded.
fn six_versions(folder: &std::path::Path, spoil: impl Fn(&mut NewVersion)) -> Archive {
    let mut archive = Archive::create_or_open_writer(folder).expect("an empty folder opens");
    let mut model = Model::default();
    for number in 0..6u32 {
        let mut version =
            model.version(number.checked_sub(1).map(VersionId::new), Link::Parent, 3, &[0], &[number, number + 1]);
        if number == 2 {
            spoil(&mut version);
        }
        archive.append(&[Record::Version(version)]).expect("the version may follow");
    }
    archive
}

#[test]
fn a_sound_archive_has_no_damage_and_each_entry_is_looked_up_once_a_move() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut archive = six_versions(folder.path(), |_| {});
    archive.checkpoint(VersionId::new(3)).expect("a checkpoint can be written");
    let calls = std::cell::Cell::new(0);
    let counted = |ordinal| {
        calls.set(calls.get() + 1);
        identity(ordinal)
    };
    assert_eq!(archive.verify(&counted, &tokens), []);
    let moved: u64 =
        archive.versions().iter().map(|version| version.entries.inserted + version.entries.retracted).sum();
    assert_eq!(calls.get(), moved);
}

#[test]
fn a_wrong_record_is_named_where_it_begins_and_where_it_ends() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let archive = six_versions(folder.path(), |version| {
        version.digest.add(&[1; 16]);
        version.live_tokens.add([0, 1]);
    });
    // The version after goes wrong the other way, since its own digest and tokens are right.
    let named: Vec<(u32, bool)> = archive
        .verify(&identity, &tokens)
        .iter()
        .map(|damage| match damage {
            Damage::Digest { version, .. } => (version.get(), true),
            Damage::Tokens { version, .. } => (version.get(), false),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(named, [(2, true), (2, false), (3, true), (3, false)]);
}

#[test]
fn an_entry_that_the_store_lost_is_named() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let archive = six_versions(folder.path(), |_| {});
    let lost = Ordinal::new(7);
    let damage = archive.verify(&|ordinal| identity(ordinal).filter(|_| ordinal != lost), &tokens);
    assert_eq!(damage, [Damage::UnknownEntry { version: VersionId::new(2), ordinal: lost }]);
}

#[test]
fn spoilt_checkpoints_and_logs_are_named() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut archive = six_versions(folder.path(), |_| {});
    for version in [1, 4] {
        archive.checkpoint(VersionId::new(version)).expect("a checkpoint can be written");
    }
    let checkpoints = folder.path().join("checkpoints");
    fs::write(checkpoints.join("1"), "no checkpoint").expect("the checkpoint can be spoilt");
    fs::copy(checkpoints.join("4"), checkpoints.join("40")).expect("a stray can be put there");
    fs::copy(checkpoints.join("4"), checkpoints.join("5")).expect("a checkpoint can pass for another");
    let log = folder.path().join("versions.log");
    let mut bytes = fs::read(&log).expect("the log is there");
    let reader = Archive::open_reader(folder.path()).expect("a sound log opens");
    bytes[40] ^= 1;
    fs::write(&log, bytes).expect("the log can be spoilt");
    let log_name = log.display().to_string();
    let told: String = reader
        .verify(&identity, &tokens)
        .iter()
        .map(|damage| format!("{damage}\n").replace(&log_name, "LOG"))
        .collect();
    expect_test::expect![[r#"
        the version log: LOG is damaged at byte 16: no whole group is there, but one follows at byte 132; restore it from a backup, or build the store again
        the checkpoint of version 1: its bytes do not match their sum
        the checkpoint of version 5: it is of another format, or of another version or log
        the checkpoint of version 40: the log has no such version
    "#]].assert_eq(&told);
}

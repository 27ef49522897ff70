//! Promise: a crash at any byte of the last write loses only that write; other damage is reported and never truncated.

use crate::model::{Link, Model};
use snapshots::*;
use std::fs;
use std::path::Path;

/// Writes three groups; returns where each ends, and the model after each.
fn three_groups(folder: &Path) -> Vec<(usize, Model)> {
    let mut archive = Archive::create_or_open_writer(folder).expect("an empty folder opens");
    let mut model = Model::default();
    let mut stages = vec![(archive.bytes().0 as usize, model.clone())];
    for number in 0..3u32 {
        let base = number.checked_sub(1).map(VersionId::new);
        let version = model.version(base, Link::Parent, 5, &[], &[number, number * 3]);
        let view = model.view(ViewId::new(0), Some(VersionId::new(number)));
        archive.append(&[Record::Version(version), view]).expect("the group may follow");
        stages.push((archive.bytes().0 as usize, model.clone()));
    }
    stages
}

#[test]
fn a_log_cut_at_any_byte_answers_as_of_the_last_whole_group() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let stages = three_groups(folder.path());
    let log = folder.path().join("versions.log");
    let whole = fs::read(&log).expect("the log is there");
    for length in stages[0].0..=whole.len() {
        fs::write(&log, &whole[..length]).expect("the log can be cut");
        let (end, model) = stages.iter().rfind(|(end, _)| *end <= length).expect("a stage ends there");
        let reader = Archive::open_reader(folder.path()).expect("a torn log reads");
        assert_eq!(reader.tail_bytes() as usize, length - end);
        model.check(&reader);
        assert_eq!(fs::metadata(&log).map(|log| log.len() as usize).ok(), Some(length), "readers never write");
        let mut writer = Archive::create_or_open_writer(folder.path()).expect("a torn log opens");
        assert_eq!(writer.tail_bytes() as usize, length - end);
        assert_eq!(fs::metadata(&log).map(|log| log.len() as usize).ok(), Some(*end), "the writer cuts the tail");
        let mut model = model.clone();
        let base = model.versions.len().checked_sub(1).map(|at| VersionId::new(at as u32));
        let version = model.version(base, Link::Parent, 2, &[], &[1]);
        writer.append(&[Record::Version(version)]).expect("the log goes on");
        model.check(&writer);
        model.check(&Archive::open_reader(folder.path()).expect("the log reads"));
    }
}

#[test]
fn a_flipped_bit_in_the_last_group_loses_it_and_anywhere_before_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let stages = three_groups(folder.path());
    let log = folder.path().join("versions.log");
    let whole = fs::read(&log).expect("the log is there");
    let (header, last) = (stages[0].0, stages[2].0);
    for at in 0..whole.len() {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 1 << (at % 8);
        fs::write(&log, &spoilt).expect("the log can be spoilt");
        let opened = Archive::create_or_open_writer(folder.path());
        match opened {
            Ok(archive) => {
                assert!(at >= last, "byte {at} lies in front of the last group and must not be cut");
                stages[2].1.check(&archive);
            }
            Err(ArchiveError::Foreign { .. }) => assert!(at < header, "byte {at}"),
            Err(ArchiveError::Damaged { offset, .. }) => {
                let begins = stages.iter().rfind(|(end, _)| *end <= at).map(|(end, _)| *end);
                assert_eq!(Some(offset as usize), begins, "byte {at}");
                assert!(at < last, "byte {at}");
                assert_eq!(fs::read(&log).ok(), Some(spoilt), "a damaged log is left as it is");
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
}

#[test]
fn zeros_behind_the_last_group_are_a_torn_write() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let stages = three_groups(folder.path());
    let log = folder.path().join("versions.log");
    let mut bytes = fs::read(&log).expect("the log is there");
    bytes.resize(bytes.len() + 100_000, 0);
    fs::write(&log, bytes).expect("zeros can be added");
    let archive = Archive::create_or_open_writer(folder.path()).expect("a log that grew by zeros opens");
    assert_eq!(archive.tail_bytes(), 100_000);
    stages[3].1.check(&archive);
}

#[test]
fn a_checkpoint_of_a_lost_version_is_not_taken_for_the_one_that_got_its_number() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let stages = three_groups(folder.path());
    let (log, checkpoint) = (folder.path().join("versions.log"), folder.path().join("checkpoints/2"));
    Archive::create_or_open_writer(folder.path())
        .and_then(|mut archive| archive.checkpoint(VersionId::new(2)))
        .expect("a checkpoint can be written");
    let stale = fs::read(&checkpoint).expect("the checkpoint is there");
    let whole = fs::read(&log).expect("the log is there");
    fs::write(&log, &whole[..stages[3].0 - 1]).expect("the log can be cut");
    let mut archive = Archive::create_or_open_writer(folder.path()).expect("a torn log opens");
    assert!(!checkpoint.exists(), "the writer clears what the log does not have");
    let mut model = stages[2].1.clone();
    let version = model.version(Some(VersionId::new(1)), Link::Parent, 1, &[], &[0, 4]);
    archive.append(&[Record::Version(version)]).expect("the log goes on");
    drop(archive);
    // Had it stayed, its chain would give it away.
    fs::write(&checkpoint, stale).expect("the checkpoint can be put back");
    model.check(&Archive::open_reader(folder.path()).expect("the log reads"));
}

#[test]
fn a_made_up_tail_that_would_take_for_ever_to_search_is_refused_and_not_cut() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    three_groups(folder.path());
    let log = folder.path().join("versions.log");
    let mut bytes = fs::read(&log).expect("the log is there");
    // Every sixth byte begins the header of a frame of half a megabyte.
    let length = 500_000u32.to_le_bytes();
    let check = blake3::hash(&length);
    let header: Vec<u8> = length.into_iter().chain(check.as_bytes()[..2].iter().copied()).collect();
    bytes.extend(header.iter().cycle().take(1_000_000));
    fs::write(&log, &bytes).expect("a tail can be made up");
    assert!(matches!(Archive::create_or_open_writer(folder.path()), Err(ArchiveError::Damaged { .. })));
    assert_eq!(fs::metadata(&log).map(|log| log.len() as usize).ok(), Some(bytes.len()));
}

//! Promise: an archive of an earlier release keeps opening; one of an unknown format is refused by name.

use crate::model::{Link, Model, identity, other_tokens, tokens, tokens_of_three_fields};
use snapshots::*;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/format-{format}"))
}

/// A version: base, link, fresh entries, revived and retracted ones.
type Step<'a> = (u32, Link, u32, &'a [u32], &'a [u32]);

/// Writes the history that the fixture holds: two lines, a gap, a commit under two rules, views that come and go.
fn write_with(times: bool, folder: &Path) -> Model {
    let mut archive = Archive::create_or_open_writer(folder).expect("an empty folder opens");
    let mut model = Model::default();
    model.times = times;
    let first = model.version(None, Link::Parent, 300, &[], &[]);
    let main = model.view(ViewId::new(0), Some(VersionId::new(0)));
    archive.append(&[Record::Version(first), main]).expect("the group may follow");
    let steps: [Step<'_>; 5] = [
        (0, Link::Parent, 12, &[], &[3, 4, 5, 200]),
        (1, Link::Parent, 0, &[4], &[300]),
        (0, Link::Sideways, 2, &[], &[0, 299]),
        (2, Link::Again, 7, &[], &[10, 11, 12, 13]),
        (4, Link::Gap, 1, &[], &[]),
    ];
    for (base, link, fresh, revived, retracted) in steps {
        let version = model.version(Some(VersionId::new(base)), link, fresh, revived, retracted);
        let newest = archive.next_version();
        let view = model.view(ViewId::new(u32::from(link == Link::Sideways)), Some(newest));
        archive.append(&[Record::Version(version), view]).expect("the group may follow");
    }
    let gone = model.view(ViewId::new(1), None);
    archive.append(&[gone]).expect("the group may follow");
    archive.checkpoint(VersionId::new(2)).expect("a checkpoint can be written");
    model
}

fn write(folder: &Path) -> Model {
    write_with(false, folder)
}

/// Writes the same history, and drops some of its versions.
fn write_and_drop(folder: &Path) -> Model {
    drop_some(folder, write(folder))
}

/// Writes the same history with the times of its moves, and drops some of its versions.
fn write_timed(folder: &Path) -> Model {
    drop_some(folder, write_with(true, folder))
}

fn drop_some(folder: &Path, mut model: Model) -> Model {
    let mut archive = Archive::create_or_open_writer(folder).expect("the archive opens again");
    let dropped = model.drop([0, 1, 4, 5].map(VersionId::new).into_iter()).expect("no view points at some of them");
    archive.append(&[dropped]).expect("the drop may follow");
    model
}

/// Writes the same, recounts its tokens as another analyzer does, and continues.
fn write_and_recount(folder: &Path) -> Model {
    recount_and_go_on(folder, write_timed(folder), other_tokens)
}

/// Writes the same, counts its tokens as an analyzer does that knows a third field, and goes on from there.
fn write_with_three_fields(folder: &Path) -> Model {
    recount_and_go_on(folder, write_and_recount(folder), tokens_of_three_fields)
}

fn recount_and_go_on(folder: &Path, mut model: Model, tokens_of: fn(Ordinal) -> Option<Tokens<u32>>) -> Model {
    let mut archive = Archive::create_or_open_writer(folder).expect("the archive opens again");
    model.recount(tokens_of);
    assert!(archive.recount(&tokens_of).expect("the recount may follow"));
    let newest = archive.next_version();
    let version = model.version(Some(VersionId::new(3)), Link::Parent, 5, &[3], &[7]);
    let view = model.view(ViewId::new(0), Some(newest));
    archive.append(&[Record::Version(version), view]).expect("the group may follow");
    model
}

#[test]
#[ignore = "writes the fixture anew; run it only when a new format gets its own folder"]
fn write_fixture() {
    fs::remove_dir_all(fixture(FORMAT)).ok();
    write_with_three_fields(&fixture(FORMAT));
    fs::remove_file(fixture(FORMAT).join("versions.lock")).expect("the lock is there");
}

/// Fails unless a fixture opens, answers as the model does, and equals today's bytes.
fn check(format: u32, write: impl Fn(&Path) -> Model, tokens: TokensOf<'_>) {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let model = write(folder.path());
    let archive = Archive::open_reader(&fixture(format)).expect("the fixture opens");
    model.check(&archive);
    assert_eq!(archive.verify(&identity, tokens), []);
    for file in ["versions.log", "checkpoints/2"] {
        let (kept, written) = (fs::read(fixture(format).join(file)), fs::read(folder.path().join(file)));
        assert!(kept.is_ok_and(|kept| written.is_ok_and(|written| kept == written)), "{file} changed its bytes");
    }
}

#[test]
fn what_format_1_wrote_keeps_opening_and_is_still_what_we_write() {
    check(1, write, &tokens);
}

#[test]
fn what_format_2_wrote_keeps_opening_and_is_still_what_we_write() {
    check(2, write_and_drop, &tokens);
}

#[test]
fn what_format_4_wrote_keeps_opening_and_is_still_what_we_write() {
    check(4, write_and_recount, &other_tokens);
}

#[test]
fn what_format_5_wrote_keeps_opening_and_is_still_what_we_write() {
    check(5, write_with_three_fields, &tokens_of_three_fields);
}

#[test]
fn a_log_rises_to_format_5_with_its_first_tokens_in_a_third_field() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut model = write(folder.path());
    let format = || fs::read(folder.path().join("versions.log")).expect("the log is there")[8];
    let mut writer = Archive::create_or_open_writer(folder.path()).expect("a log of format 1 opens");
    let mut version = model.version(Some(VersionId::new(5)), Link::Parent, 1, &[], &[]);
    assert_eq!(format(), 1);
    version.live_tokens.add([0, 0, 4]);
    let stated = version.live_tokens;
    writer.append(&[Record::Version(version)]).expect("the version may follow");
    assert_eq!(format(), 5);
    for archive in [&writer, &Archive::open_reader(folder.path()).expect("format 5 opens")] {
        let read = archive.versions().last().expect("it was just written").statistics.live_tokens;
        assert_eq!(read.first::<3>(), stated.first::<3>());
    }
    // One that leans on it and has no tokens there any more.
    let next = model.version(Some(VersionId::new(6)), Link::Parent, 0, &[], &[]);
    writer.append(&[Record::Version(next.clone())]).expect("the version may follow");
    for archive in [&writer, &Archive::open_reader(folder.path()).expect("format 5 opens")] {
        let read = archive.versions().last().expect("it was just written").statistics.live_tokens;
        assert_eq!(read, next.live_tokens);
        assert_eq!(read.first::<3>()[2], 0);
    }
}

#[test]
fn tokens_are_counted_again_in_one_group_and_nothing_else_of_a_version_changes() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut model = write_and_drop(folder.path());
    let mut writer = Archive::create_or_open_writer(folder.path()).expect("the archive opens again");
    let mut beside = Archive::open_reader(folder.path()).expect("a reader opens beside it");
    let bytes = writer.log_bytes();
    assert!(!writer.recount(&tokens).expect("every entry is known"), "they are counted so already");
    assert!(writer.recount(&|_| None).is_err(), "without its entries nothing can be counted");
    assert_eq!(writer.log_bytes(), bytes);
    assert!(writer.recount(&other_tokens).expect("every entry is known"));
    assert!(!writer.recount(&other_tokens).expect("every entry is known"), "once is enough");
    model.recount(other_tokens);
    beside.refresh().expect("an open reader reads on");
    for archive in [&beside, &writer, &Archive::open_reader(folder.path()).expect("format 4 opens")] {
        model.check(archive);
        assert_eq!(archive.verify(&identity, &other_tokens), []);
    }
    let version = model.version(Some(VersionId::new(3)), Link::Parent, 1, &[], &[]);
    let (epoch, version) = (version.epoch, Record::Version(version));
    let recount = |versions: usize| Record::Recounted { epoch, live_tokens: vec![[1, 1].into(); versions] };
    let known = writer.versions().len();
    let groups = [vec![recount(known), version.clone()], vec![version.clone(), recount(known + 1)], vec![recount(1)]];
    for group in groups {
        let refused = writer.append(&group);
        assert!(matches!(refused, Err(ArchiveError::Refused { refusal: Refusal::Recount, .. })), "{refused:?}");
    }
    writer.append(&[version]).expect("what leans on counted versions may follow");
    model.check(&writer);
    assert_eq!(writer.verify(&identity, &other_tokens), []);
}

#[test]
fn what_format_3_wrote_keeps_opening_and_is_still_what_we_write() {
    check(3, write_timed, &tokens);
}

#[test]
fn a_log_rises_to_format_3_with_the_first_time_of_a_move_and_what_it_held_before_stays() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut model = write_and_drop(folder.path());
    let log = || fs::read(folder.path().join("versions.log")).expect("the log is there");
    let before = log();
    assert_eq!(before[8], 2);
    let mut writer = Archive::create_or_open_writer(folder.path()).expect("a log of format 2 opens");
    model.times = true;
    let moved = model.view(ViewId::new(2), Some(VersionId::new(2)));
    writer.append(&[moved]).expect("the move may follow");
    assert_eq!(log()[8], 3);
    assert_eq!(log()[16..before.len()], before[16..], "only the header is written again");
    for archive in [&writer, &Archive::open_reader(folder.path()).expect("format 3 opens")] {
        model.check(archive);
    }
}

#[test]
fn a_log_rises_to_format_2_with_its_first_drop_and_readers_of_format_1_go_on() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut model = write(folder.path());
    let mut writer = Archive::create_or_open_writer(folder.path()).expect("the archive opens again");
    let mut beside = Archive::open_reader(folder.path()).expect("a reader opens beside it");
    let format = || fs::read(folder.path().join("versions.log")).expect("the log is there")[8];
    assert_eq!(format(), 1);
    let dropped = model.drop([0, 1, 4, 5].map(VersionId::new).into_iter()).expect("no view points at some of them");
    writer.append(&[dropped]).expect("the drop may follow");
    assert_eq!(format(), 2);
    beside.refresh().expect("an open reader reads on");
    for archive in [&beside, &writer, &Archive::open_reader(folder.path()).expect("format 2 opens")] {
        model.check(archive);
        assert_eq!(archive.verify(&identity, &tokens), []);
    }
    // A crash between the two writes leaves a log of format 2 in which nothing is dropped: it opens like any other.
    let torn = tempfile::tempdir().expect("a folder of its own");
    let model = write(torn.path());
    let path = torn.path().join("versions.log");
    let mut bytes = fs::read(&path).expect("the log is there");
    bytes[..16].copy_from_slice(&fs::read(folder.path().join("versions.log")).expect("the log is there")[..16]);
    fs::write(&path, bytes).expect("the log can be changed");
    model.check(&Archive::create_or_open_writer(torn.path()).expect("format 2 opens"));
}

#[test]
fn another_format_is_refused_by_name_with_the_next_step() {
    for (format, message) in [
        (6u32, "cannot open LOG: the log is format 6, this build reads format 5; install a newer release"),
        (0, "cannot open LOG: the log is format 0, this build reads format 5; build the store again with this release"),
    ] {
        let folder = tempfile::tempdir().expect("a folder of its own");
        let log = folder.path().join("versions.log");
        let mut bytes = b"tidemlog".to_vec();
        bytes.extend_from_slice(&format.to_le_bytes());
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(&sum.as_bytes()[..4]);
        bytes.extend_from_slice(b"whatever that format holds");
        fs::write(&log, &bytes).expect("a log can be made up");
        for opened in [Archive::open_reader(folder.path()), Archive::create_or_open_writer(folder.path())] {
            let error = opened.expect_err("another format must not open");
            assert_eq!(error.to_string().replace(&log.display().to_string(), "LOG"), message);
        }
        assert_eq!(fs::read(&log).ok(), Some(bytes), "a refused log is left as it is");
    }
}

#[test]
fn a_file_that_is_no_log_is_refused_and_left_alone() {
    for bytes in [&b""[..], b"tidemlog", b"SQLite format 3\0 and so on"] {
        let folder = tempfile::tempdir().expect("a folder of its own");
        let log = folder.path().join("versions.log");
        fs::write(&log, bytes).expect("a file can be put there");
        assert!(matches!(Archive::create_or_open_writer(folder.path()), Err(ArchiveError::Foreign { .. })));
        assert_eq!(fs::read(&log).expect("the file is there"), bytes);
    }
}

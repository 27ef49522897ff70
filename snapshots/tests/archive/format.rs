//! Promise: an archive that a release wrote keeps opening; one of another format is refused by name.

use crate::model::{Link, Model, identity, tokens};
use snapshots::*;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

/// A version: base, link, fresh entries, revived and retracted ones.
type Step<'a> = (u32, Link, u32, &'a [u32], &'a [u32]);

/// Writes the history that the fixture holds: two lines, a gap, a commit under two rules, views that come and go.
fn write(folder: &Path) -> Model {
    let mut archive = Archive::create_or_open_writer(folder).expect("an empty folder opens");
    let mut model = Model::default();
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

#[test]
#[ignore = "writes the fixture anew; run it only when a new format gets its own folder"]
fn write_fixture() {
    fs::remove_dir_all(fixture()).ok();
    write(&fixture());
    fs::remove_file(fixture().join("versions.lock")).expect("the lock is there");
}

#[test]
fn what_format_1_wrote_keeps_opening_and_is_still_what_we_write() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let model = write(folder.path());
    let archive = Archive::open_reader(&fixture()).expect("the fixture opens");
    model.check(&archive);
    assert_eq!(archive.verify(&identity, &tokens), []);
    for file in ["versions.log", "checkpoints/2"] {
        let (kept, written) = (fs::read(fixture().join(file)), fs::read(folder.path().join(file)));
        assert!(kept.is_ok_and(|kept| written.is_ok_and(|written| kept == written)), "{file} changed its bytes");
    }
}

#[test]
fn another_format_is_refused_by_name_with_the_next_step() {
    for (format, message) in [
        (2u32, "cannot open LOG: the log is format 2, this build reads format 1; install a newer release"),
        (0, "cannot open LOG: the log is format 0, this build reads format 1; build the store again with this release"),
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

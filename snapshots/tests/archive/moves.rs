//! Promise: the target of a view as of a time follows from the moves seen by then, even if a view comes back to a version; and a
//! line of parents ends although states repeat.

use crate::model::{Link, Model, commit};
use snapshots::*;

const VIEW: ViewId = ViewId::new(0);

/// A view that points at A, B, A and C, one second after the other.
fn there_and_back(times: bool, folder: &std::path::Path) -> Archive {
    let mut archive = Archive::create_or_open_writer(folder).expect("an empty folder opens");
    let mut model = Model::default();
    let mut second = 0;
    let mut stand = |archive: &mut Archive, new: Option<NewVersion>, version: u32| {
        second += 1;
        let (epoch, version) = (Epoch::new(second), VersionId::new(version));
        let time = times.then_some(second as i64 * 1000);
        let brought = new.map(|new| Record::Version(NewVersion { epoch, time: second as i64, ..new }));
        let moved = Record::View { epoch, view: VIEW, version, time };
        archive.append(&brought.into_iter().chain([moved]).collect::<Vec<_>>()).expect("the group may follow");
    };
    let state = |model: &mut Model, base| model.version(base, Link::Parent, 1, &[], &[]);
    let (a, b) = (state(&mut model, None), state(&mut model, Some(VersionId::new(0))));
    stand(&mut archive, Some(a), 0);
    stand(&mut archive, Some(b), 1);
    stand(&mut archive, None, 0);
    let c = state(&mut model, Some(VersionId::new(0)));
    stand(&mut archive, Some(c), 2);
    archive
}

fn stood(archive: &Archive, milliseconds: i64) -> Option<u32> {
    archive.last_move(VIEW, milliseconds).and_then(|moved| moved.version).map(VersionId::get)
}

#[test]
fn a_view_that_comes_back_is_told_by_when_it_moved() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let archive = there_and_back(true, folder.path());
    let reader = Archive::open_reader(folder.path()).expect("the log reads");
    for archive in [&archive, &reader] {
        let at = [999, 1000, 1999, 2000, 2999, 3000, 3999, 4000].map(|time| stood(archive, time));
        assert_eq!(at, [None, Some(0), Some(0), Some(1), Some(1), Some(0), Some(0), Some(2)]);
    }
}

#[test]
fn a_move_back_whose_time_is_not_known_answers_for_no_other_time() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let archive = there_and_back(false, folder.path());
    let at = [0, 1500, 2500, 3500, 4500].map(|time| stood(&archive, time));
    assert_eq!(at, [None, Some(0), Some(1), Some(1), Some(2)]);
}

#[test]
fn the_order_is_that_of_the_log_whatever_the_clock_said() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut archive = Archive::create_or_open_writer(folder.path()).expect("an empty folder opens");
    let mut model = Model::default();
    for base in [None, Some(0), Some(1)] {
        let version = model.version(base.map(VersionId::new), Link::Parent, 1, &[], &[]);
        archive.append(&[Record::Version(version)]).expect("the version may follow");
    }
    // The clock was a minute ahead until it was set; the last step is before 1970.
    for (epoch, version, time) in [(7, 0, 61_000), (8, 1, 2_000), (9, 2, -5_000)] {
        let view =
            Record::View { epoch: Epoch::new(epoch), view: VIEW, version: VersionId::new(version), time: Some(time) };
        archive.append(&[view]).expect("the move may follow");
    }
    assert_eq!(
        [-5_001, -5_000, 1_999, 2_000, 99_000].map(|time| stood(&archive, time)),
        [None, Some(2), Some(2), Some(2), Some(2)]
    );
    let gone = Record::ViewGone { epoch: Epoch::new(10), view: VIEW, time: Some(70_000) };
    archive.append(&[gone]).expect("the view may go");
    assert_eq!(
        [69_999, 70_000].map(|time| archive.last_move(VIEW, time).and_then(|moved| moved.version)),
        [Some(VersionId::new(2)), None]
    );
    assert_eq!(archive.moves(VIEW).len(), 4);
    assert!(archive.moves(ViewId::new(1)).is_empty());
}

#[test]
fn a_line_of_parents_ends_where_states_repeat() {
    let folder = tempfile::tempdir().expect("a folder of its own");
    let mut archive = Archive::create_or_open_writer(folder.path()).expect("an empty folder opens");
    let mut model = Model::default();
    let first = model.version(None, Link::Parent, 1, &[], &[]);
    let second = model.version(Some(VersionId::new(0)), Link::Parent, 1, &[], &[]);
    // The first state again, under other rules, and as a child of the second.
    let mut again = model.version(Some(VersionId::new(1)), Link::Again, 1, &[], &[]);
    again.commit = commit(0);
    again.parent = Some(commit(1));
    again.base_is_parent = false;
    archive.append(&[first, second, again].map(Record::Version)).expect("the versions may follow");
    let line: Vec<u32> = archive.first_parents(VersionId::new(2)).map(|version| version.id.get()).collect();
    assert_eq!(line, [2, 1]);
    let line: Vec<u32> = archive.first_parents(VersionId::new(1)).map(|version| version.id.get()).collect();
    assert_eq!(line, [1, 2], "the newest version of a commit stands for it");
    assert_eq!(archive.first_parents(VersionId::new(3)).count(), 0);
}

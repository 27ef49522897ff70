//! Promise: after any events in any order, the archive answers as plain sets would, to its writer, to a concurrent reader, and to
//! a later reader, with or without its checkpoints.

use crate::model::{Link, Model, identity, tokens};
use proptest::prelude::*;
use snapshots::*;
use std::fs;

/// One event.
#[derive(Clone, Debug)]
enum Step {
    /// A group of versions, each on a base picked by its number, with a view that follows.
    Append(Vec<Commit>),
    MoveView(u32, usize),
    DropView(u32),
    /// Retention drops every version whose number has this remainder, unless a view points at it.
    Drop(u32, u32),
    Reopen,
    Refresh,
    Checkpoint(usize),
    /// One byte of every checkpoint is flipped.
    SpoilCheckpoints(usize),
    /// The last bytes of the log are lost, as if the machine had stopped in the middle of the last write.
    Tear(usize),
}

#[derive(Clone, Debug)]
struct Commit {
    base: Option<usize>,
    link: Link,
    fresh: u32,
    revived: Vec<u32>,
    retracted: Vec<u32>,
    view: Option<u32>,
}

fn commits() -> impl Strategy<Value = Commit> {
    let link = prop_oneof![
        5 => Just(Link::Parent),
        1 => Just(Link::Gap),
        1 => Just(Link::Again),
        1 => Just(Link::Sideways),
        1 => Just(Link::Root),
    ];
    let ordinals = || proptest::collection::vec(0..60u32, 0..6);
    (proptest::option::weighted(0.95, 0..4usize), link, 0..6u32, ordinals(), ordinals(), proptest::option::of(0..3u32))
        .prop_map(|(base, link, fresh, revived, retracted, view)| Commit {
            base,
            link,
            fresh,
            revived,
            retracted,
            view,
        })
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => proptest::collection::vec(commits(), 1..4).prop_map(Step::Append),
        2 => (0..3u32, 0..9usize).prop_map(|(view, version)| Step::MoveView(view, version)),
        1 => (0..3u32).prop_map(Step::DropView),
        2 => (1..4u32, 0..4u32).prop_map(|(of, rest)| Step::Drop(of, rest)),
        2 => Just(Step::Reopen),
        2 => Just(Step::Refresh),
        3 => (0..4usize).prop_map(Step::Checkpoint),
        1 => (0..400usize).prop_map(Step::SpoilCheckpoints),
        2 => (0..400usize).prop_map(Step::Tear),
    ]
}

/// Returns the version `back` steps before the newest, if there is one.
fn pick(model: &Model, back: usize) -> Option<VersionId> {
    model.versions.len().checked_sub(back + 1).map(|at| VersionId::new(at as u32))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_answered_as_plain_sets_would(
        steps in proptest::collection::vec(steps(), 1..16),
        timed_from in 0..16usize,
    ) {
        let folder = tempfile::tempdir().expect("a folder of its own");
        let mut writer = Archive::create_or_open_writer(folder.path()).expect("an empty folder opens");
        let mut reader = Archive::open_reader(folder.path()).expect("a reader opens beside the writer");
        let mut model = Model::default();
        // The model before the last group, and the start of that group, until it is torn.
        let mut last_group = None;
        for (number, step) in steps.into_iter().enumerate() {
            // A log of an earlier build, in which later moves have times.
            model.times = number >= timed_from;
            let mut records = Vec::new();
            let started = (model.clone(), writer.bytes().0);
            match step {
                Step::Append(commits) => {
                    for commit in commits {
                        let base = commit.base.and_then(|back| pick(&model, back));
                        let version = model.version(base, commit.link, commit.fresh, &commit.revived, &commit.retracted);
                        records.push(Record::Version(version));
                        if let Some(view) = commit.view {
                            let newest = pick(&model, 0);
                            records.push(model.view(ViewId::new(view), newest));
                        }
                    }
                }
                Step::MoveView(view, back) => {
                    if let Some(version) = pick(&model, back).filter(|version| !model.dropped.contains(version)) {
                        records.push(model.view(ViewId::new(view), Some(version)));
                    }
                }
                Step::DropView(view) => records.push(model.view(ViewId::new(view), None)),
                Step::Drop(of, rest) => {
                    let numbers = (0..model.versions.len() as u32).filter(|number| number % of == rest);
                    records.extend(model.drop(numbers.map(VersionId::new)));
                }
                Step::Reopen => {
                    drop(writer);
                    writer = Archive::create_or_open_writer(folder.path()).expect("a whole log opens");
                    prop_assert_eq!(writer.tail_bytes(), 0);
                }
                Step::Refresh => {
                    reader.refresh().expect("a whole log reads on");
                    model.check(&reader);
                }
                Step::Checkpoint(back) => {
                    if let Some(version) = pick(&model, back) {
                        writer.checkpoint(version).expect("a checkpoint can be written");
                        writer.maybe_checkpoint(version).expect("a checkpoint can be considered");
                    }
                }
                Step::SpoilCheckpoints(at) => {
                    for file in fs::read_dir(folder.path().join("checkpoints")).into_iter().flatten().flatten() {
                        let mut bytes = fs::read(file.path()).expect("the checkpoint is there");
                        let at = at % bytes.len();
                        bytes[at] ^= 4;
                        fs::write(file.path(), bytes).expect("the checkpoint can be spoilt");
                    }
                }
                Step::Tear(lost) => {
                    let end = writer.bytes().0;
                    drop(writer);
                    drop(reader);
                    if let Some((model_before, start)) = last_group.take() {
                        let left = start + lost as u64 % (end - start);
                        let log = fs::File::options().write(true).open(folder.path().join("versions.log"));
                        log.and_then(|log| log.set_len(left)).expect("the log can be torn");
                        model = model_before;
                        let torn = Archive::open_reader(folder.path()).expect("a torn log reads");
                        prop_assert_eq!(torn.tail_bytes(), left - start);
                        model.check(&torn);
                    }
                    writer = Archive::create_or_open_writer(folder.path()).expect("a torn log opens");
                    reader = Archive::open_reader(folder.path()).expect("a healed log opens");
                    prop_assert_eq!(reader.tail_bytes(), 0);
                }
            }
            if !records.is_empty() {
                writer.append(&records).expect("the group may follow");
                last_group = Some(started);
            }
            model.check(&writer);
        }
        // All damage is reported, and nothing else.
        let is_checkpoint = |damage: &Damage| matches!(damage, Damage::Checkpoint { .. });
        // Entries that only dropped versions held are not looked up: they may be gone.
        let reached = model.reached();
        let identity = |ordinal: Ordinal| identity(ordinal).filter(|_| reached.contains(&ordinal.get()));
        let damage = writer.verify(&identity, &tokens);
        prop_assert!(damage.iter().all(is_checkpoint), "{damage:?}");
        drop(writer);
        model.check(&Archive::open_reader(folder.path()).expect("a whole log opens"));
        let _ = fs::remove_dir_all(folder.path().join("checkpoints"));
        model.check(&Archive::open_reader(folder.path()).expect("a log opens without its checkpoints"));
    }
}

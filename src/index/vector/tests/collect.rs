//! Removed rows: every reader finds the remaining ones, wherever the removal stops.

use super::*;
use crate::index::{Tended, Urgency};

#[derive(Clone, Debug)]
enum Step {
    Append(u32),
    /// Removes every n-th remaining row, and may stop before a step.
    Remove(u32, Option<usize>),
    /// Sorts rows by whether every n-th of them is hot, and is killed before the new files are in place, or before the old ones
    /// are removed, or not at all.
    Tend(u32, Kill),
    /// Removes every n-th remaining row, beside appends; killed at the same places.
    Forget(u32, Kill),
    Reopen,
    Refresh,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kill {
    BeforeRenaming,
    BeforeRemoving,
    Not,
}

/// Puts back the files that are in `copy` and not in `directory`.
fn put_back(copy: &Path, directory: &Path) {
    for entry in fs::read_dir(copy).unwrap() {
        let name = entry.unwrap().file_name();
        if name.to_str().unwrap().starts_with("seg-") && !directory.join(&name).exists() {
            fs::copy(copy.join(&name), directory.join(&name)).unwrap();
        }
    }
}

fn copy_of(directory: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name();
        fs::copy(directory.join(&name), copy.path().join(&name)).unwrap();
    }
    copy
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kill = prop::sample::select(vec![Kill::BeforeRenaming, Kill::BeforeRemoving, Kill::Not, Kill::Not]);
    let step = prop_oneof![
        5 => (1u32..80).prop_map(Step::Append),
        4 => (1u32..5, prop::option::of(0usize..6)).prop_map(|(every, stop)| Step::Remove(every, stop)),
        3 => (1u32..9, kill.clone()).prop_map(|(every, kill)| Step::Tend(every, kill)),
        3 => (1u32..5, kill).prop_map(|(every, kill)| Step::Forget(every, kill)),
        1 => Just(Step::Reopen),
        2 => Just(Step::Refresh),
    ];
    prop::collection::vec(step, 2..24)
}

/// Fails unless a set holds all of the rows, and possibly more.
fn holds(set: &VectorSet, model: &Model) {
    let wanted: RoaringBitmap = model.keys().copied().collect();
    assert!(wanted.is_subset(set.has()), "{:?} are missing", set.missing(&wanted));
    for (&ordinal, vector) in model {
        assert_eq!(set.vector_of(Ordinal::new(ordinal)).unwrap().unwrap(), vector.components());
    }
    assert_eq!(set.len() as u64, set.has().len(), "no row is there twice");
}

proptest! {
    #![proptest_config(crate::index::cases(64))]

    #[test]
    fn what_stays_is_found_wherever_a_removal_or_upkeep_breaks_off(
        steps in steps(),
        backend in prop::sample::select(backends()),
    ) {
        let directory = TempDir::new().unwrap();
        let directory = directory.path();
        let mut writer = writer(directory, backend);
        // It refreshes rarely, and may be many removals behind.
        let mut reader = VectorReader::open_with(directory, SHAPE, backend).unwrap();
        let mut model = Model::new();
        let mut next = 0;
        for step in steps {
            match step {
                Step::Append(rows) => {
                    let batch: Vec<_> =
                        (next..next + rows).map(|ordinal| (Ordinal::new(ordinal), vector(ordinal / 2))).collect();
                    next += rows;
                    writer.append(&batch).unwrap();
                    model.extend(batch.into_iter().map(|(ordinal, vector)| (ordinal.get(), vector)));
                }
                Step::Remove(every, stop) => {
                    let mut number = 0;
                    model.retain(|_, _| {
                        number += 1;
                        number % every != 0
                    });
                    let alive: RoaringBitmap = model.keys().copied().collect();
                    let mut asked = 0;
                    let mut go_on = || {
                        asked += 1;
                        stop.is_none_or(|stop| asked <= stop)
                    };
                    let dead = writer.held() - &alive;
                    writer.remove(&dead, &mut go_on).unwrap();
                    if stop.is_some() {
                        // As if it had been killed there.
                        drop(writer);
                        writer = self::writer(directory, backend);
                        prop_assert_eq!(writer.healed(), &Healed::default());
                    } else {
                        prop_assert_eq!(writer.held(), &alive);
                        let fresh = VectorReader::open_with(directory, SHAPE, backend).unwrap();
                        let set = fresh.set();
                        prop_assert_eq!(set.has(), &alive);
                    }
                }
                Step::Tend(every, kill) | Step::Forget(every, kill) => {
                    let hot: RoaringBitmap = model.keys().copied().filter(|ordinal| ordinal % every == 0).collect();
                    let forgets = matches!(step, Step::Forget(..));
                    if forgets {
                        model.retain(|ordinal, _| !hot.contains(*ordinal));
                    }
                    let alive: RoaringBitmap = model.keys().copied().collect();
                    loop {
                        let before = (kill == Kill::BeforeRemoving).then(|| copy_of(directory));
                        let dead = writer.held() - &alive;
                        let tended = if forgets { writer.forget(&dead) } else { writer.tend(&hot, Urgency::Awaited) }.unwrap();
                        match kill {
                            Kill::BeforeRenaming => {
                                drop(writer);
                                writer = self::writer(directory, backend);
                                break;
                            }
                            _ if tended == Tended::Idle => {
                                prop_assert!(!forgets || writer.held() == &alive);
                                break;
                            }
                            Kill::BeforeRemoving => {
                                writer.finish_upkeep().unwrap();
                                drop(writer);
                                put_back(before.as_ref().unwrap().path(), directory);
                                reader.refresh().unwrap();
                                holds(&reader.set(), &model);
                                writer = self::writer(directory, backend);
                                break;
                            }
                            // Maintenance threads have low priority, even against a thread that only waits for them.
                            Kill::Not => std::thread::sleep(std::time::Duration::from_millis(1)),
                        }
                    }
                }
                Step::Reopen => {
                    drop(writer);
                    writer = self::writer(directory, backend);
                }
                Step::Refresh => {
                    reader.refresh().unwrap();
                    holds(&reader.set(), &model);
                }
            }
            holds(&writer.set(), &model);
            let set = writer.set();
            prop_assert_eq!(writer.held(), set.has());
            holds(&VectorReader::open_with(directory, SHAPE, backend).unwrap().set(), &model);
            let checked = super::check::check_folder(directory, SHAPE, &mut |_, _| {}).unwrap();
            prop_assert!(checked.damaged.is_empty());
            prop_assert_eq!(&checked.ordinals, set.has());
        }
    }
}

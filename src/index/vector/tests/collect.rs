//! Rows that are removed: what stays is found by everybody, wherever the removal breaks off.

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Append(u32),
    /// Removes every so-manieth row that is left, and breaks off before a step, if it does.
    Remove(u32, Option<usize>),
    Reopen,
    Refresh,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (1u32..15).prop_map(Step::Append),
        4 => (1u32..5, prop::option::of(0usize..6)).prop_map(|(every, stop)| Step::Remove(every, stop)),
        1 => Just(Step::Reopen),
        2 => Just(Step::Refresh),
    ];
    prop::collection::vec(step, 2..24)
}

/// Fails unless a set holds all of the rows, whatever else it holds.
fn holds(set: &VectorSet, model: &Model) {
    let wanted: RoaringBitmap = model.keys().copied().collect();
    assert!(wanted.is_subset(&set.ordinals()), "{:?} are missing", set.missing(&wanted));
    for (&ordinal, vector) in model {
        assert_eq!(set.vector_of(Ordinal::new(ordinal)).unwrap().unwrap(), vector.components());
    }
    assert_eq!(set.len() as u64, set.ordinals().len(), "no row is there twice");
}

proptest! {
    #![proptest_config(crate::index::cases(64))]

    #[test]
    fn what_stays_is_found_wherever_a_removal_breaks_off(steps in steps()) {
        let directory = TempDir::new().unwrap();
        let directory = directory.path();
        let mut writer = writer(directory, Backend::Flat);
        // It looks now and then, and may be many removals behind.
        let mut reader = VectorReader::open_with(directory, SHAPE, Backend::Flat).unwrap();
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
                        writer = self::writer(directory, Backend::Flat);
                        prop_assert_eq!(writer.healed(), &Healed::default());
                    } else {
                        prop_assert_eq!(writer.held(), &alive);
                        let fresh = VectorReader::open_with(directory, SHAPE, Backend::Flat).unwrap();
                        prop_assert_eq!(fresh.set().ordinals(), alive);
                    }
                }
                Step::Reopen => {
                    drop(writer);
                    writer = self::writer(directory, Backend::Flat);
                }
                Step::Refresh => {
                    reader.refresh().unwrap();
                    holds(&reader.set(), &model);
                }
            }
            holds(&writer.set(), &model);
            prop_assert_eq!(writer.held(), &writer.set().ordinals());
            holds(&VectorReader::open_with(directory, SHAPE, Backend::Flat).unwrap().set(), &model);
            let checked = check(directory, SHAPE, &mut |_, _| {}).unwrap();
            prop_assert!(checked.damaged.is_empty());
            prop_assert_eq!(&checked.ordinals, &writer.set().ordinals());
        }
    }
}

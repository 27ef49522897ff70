//! The law of the lexical index: incremental equals rebuilt, for every version.

use super::*;

/// Answers from a fresh index of only these entries.
pub(super) fn answers_from_nothing(index: &Index) -> Vec<Ranks> {
    let mut items: Vec<&Item> = index.alive.iter().map(|ordinal| &index.items[ordinal as usize]).collect();
    items.sort_by_key(|item| scatter(item.identity.0, 9));
    let mut fresh = Index::new();
    for item in items {
        fresh.add(Item { identity: item.identity, text: item.text.clone(), name: item.name.clone() });
    }
    fresh.commit();
    let count = fresh.items.len() as u32;
    fresh.advance((0..count).collect());
    ask(&fresh.view, &fresh.items)
}

#[derive(Clone, Debug)]
enum Step {
    /// Adds some entries, retracts every so-manieth and revives every so-manieth of the dead.
    Commit {
        inserted: u8,
        retract: u64,
        revive: u64,
    },
    Merge,
    /// Moves up to so many live documents, and so many times.
    Relocate {
        limit: usize,
        times: u8,
    },
    Reopen,
    /// Stops with so many uncommitted entries.
    Crash {
        lost: u8,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..90, 1u64..9, 1u64..9).prop_map(|(inserted, retract, revive)| Step::Commit { inserted, retract, revive }),
        2 => Just(Step::Merge),
        4 => (1usize..60, 1u8..9).prop_map(|(limit, times)| Step::Relocate { limit, times }),
        1 => Just(Step::Reopen),
        1 => (1u8..40).prop_map(|lost| Step::Crash { lost }),
    ];
    prop::collection::vec(step, 3..8)
}

proptest! {
    #![proptest_config(crate::index::cases(8))]

    /// Incremental equals rebuilt, score for score, for the newest version and for every earlier one.
    #[test]
    fn ranks_do_not_depend_on_history(steps in steps(), seed in 0u64..1000) {
        let mut index = Index::new();
        let mut versions = Vec::new();
        for (at, step) in (0u64..).zip(steps) {
            match step {
                Step::Commit { inserted, retract, revive } => {
                    let first = index.items.len() as u32;
                    for _ in 0..inserted {
                        index.add(item(seed * 10_000 + index.items.len() as u64));
                    }
                    index.commit();
                    let kept = |ordinal: &u32| !scatter(u64::from(*ordinal), at).is_multiple_of(retract + 1);
                    let revived = |ordinal: &u32| scatter(u64::from(*ordinal), at) % (4 * revive) == 1;
                    let mut alive: RoaringBitmap = index.alive.iter().filter(kept).collect();
                    alive |= (0..first).filter(|ordinal| !index.alive.contains(*ordinal)).filter(revived).collect::<RoaringBitmap>();
                    alive.insert_range(first..index.items.len() as u32);
                    index.advance(alive);
                    let expected = answers_from_nothing(&index);
                    prop_assert_eq!(&ask(&index.view, &index.items), &expected);
                    versions.push((index.alive.clone(), index.statistics(), expected));
                }
                Step::Merge => index.writer().merge_all().expect("it merges"),
                Step::Relocate { limit, times } => {
                    for _ in 0..times {
                        index.relocate(limit);
                        // The same version, with its documents at their new places.
                        index.advance(index.alive.clone());
                    }
                    if let Some((_, _, expected)) = versions.last() {
                        prop_assert_eq!(&ask(&index.view, &index.items), expected);
                    }
                }
                Step::Reopen => index.reopen(),
                Step::Crash { lost } => {
                    for number in 0..u64::from(lost) {
                        let Item { text, name, .. } = item(number);
                        let ordinal = Ordinal::new(index.items.len() as u32 + number as u32);
                        index.writer().add(ordinal, &text, &name).expect("it is added");
                    }
                    index.reopen();
                }
            }
        }
        for (alive, statistics, expected) in versions {
            let searcher = index.reader.reload().expect("it loads");
            let view = LexicalView::new(searcher, &index.maps, &alive, statistics).expect("the index holds the version");
            prop_assert_eq!(ask(&view, &index.items), expected);
        }
    }
}

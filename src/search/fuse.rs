//! Fusion of ranked lists.
//!
//! In: ranked lists, however many, read to one depth and then deeper. Out: one list, piece by piece.
//!
//! Down to the first depth the score is the sum of reciprocal ranks (Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion
//! outperforms Condorcet and individual rank learning methods", SIGIR 2009): Σ 1 / (60 + rank). A deeper entry counts by its
//! better rank alone, because the sum of two deep ranks may exceed the score of one near rank, so that the entry would belong
//! before earlier output.
//!
//! **Invariant:** scores never rise from one entry to the next, however many pieces there are (except those of one approximate
//! list, which are the index's own). The result depends on the lists and on the depths to which they were read; ties are ordered
//! by the order of ties, never by ordinal.

use super::hits::Found;
use super::ranked::{Ranked, RankedList};
use crate::index::{TieOrder, TopK};
use rustc_hash::{FxHashMap, FxHashSet};
use snapshots::Ordinal;

/// The constant of the method, as in its paper.
const K: f32 = 60.0;

/// Lists that are read deeper and deeper, and the entries already returned.
#[derive(Default)]
pub(super) struct Fusion {
    given: FxHashSet<Ordinal>,
    depth: usize,
}

impl Fusion {
    /// Returns what the lists, read to `depth`, add to what was given before, best first. Where there is one list, the scores are
    /// its own.
    pub(super) fn deepen(&mut self, depth: usize, lists: &[RankedList], ties: &dyn TieOrder) -> Vec<Found> {
        let before = std::mem::replace(&mut self.depth, depth);
        let found = match lists {
            [list] => self.single(before, list),
            lists => self.fuse(before, lists, ties),
        };
        self.given.extend(found.iter().map(|found| found.ordinal));
        found
    }

    /// Notes entries that were returned beside those of the lists.
    pub(super) fn give(&mut self, found: &[Found]) {
        self.given.extend(found.iter().map(|found| found.ordinal));
    }

    /// Returns the new entries of a list after the first `before`, with their ranks. Late entries of an approximate list come
    /// after them as well.
    fn fresh(&self, before: usize, list: &RankedList) -> impl Iterator<Item = (Ordinal, Ranked)> {
        (1..)
            .zip(&list.hits)
            .filter(|(_, (ordinal, _))| !self.given.contains(ordinal))
            .map(move |(rank, &(ordinal, score))| (ordinal, Ranked { rank: rank.max(before + 1), score }))
    }

    fn single(&self, before: usize, list: &RankedList) -> Vec<Found> {
        let found = self.fresh(before, list).map(|(ordinal, ranked)| {
            let mut found = Found { score: ranked.score, ..Found::new(ordinal) };
            found.ranks.push(&list.name, ranked);
            found
        });
        found.collect()
    }

    fn fuse(&self, before: usize, lists: &[RankedList], ties: &dyn TieOrder) -> Vec<Found> {
        let mut fused: FxHashMap<Ordinal, Found> = FxHashMap::default();
        for list in lists {
            for (ordinal, ranked) in self.fresh(before, list) {
                fused.entry(ordinal).or_insert_with(|| Found::new(ordinal)).ranks.push(&list.name, ranked);
            }
        }
        let mut best = TopK::new(fused.len(), ties);
        for found in fused.values_mut() {
            if before > 0 {
                // Whether the other rank is known depends on how deep its list was read.
                found.ranks.keep_best();
            }
            let ranks = found.ranks.iter().map(|(_, ranked)| ranked);
            found.score = if before > 0 { ranks.map(worth).fold(0.0, f32::max) } else { ranks.map(worth).sum() };
            best.push(found.ordinal, found.score);
        }
        best.into_ranked().into_iter().filter_map(|(ordinal, _)| fused.remove(&ordinal)).collect()
    }
}

fn worth(ranked: Ranked) -> f32 {
    1.0 / (K + ranked.rank as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::ranked::ListName;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    struct ByNumber;

    impl TieOrder for ByNumber {
        fn compare(&self, left: Ordinal, right: Ordinal) -> Ordering {
            left.cmp(&right)
        }
    }

    fn list(ordinals: &[u32]) -> Vec<(Ordinal, f32)> {
        let last = ordinals.len() as f32;
        (0_u16..).zip(ordinals).map(|(at, &ordinal)| (Ordinal::new(ordinal), last - f32::from(at))).collect()
    }

    fn both(words: &[(Ordinal, f32)], vectors: &[(Ordinal, f32)]) -> [RankedList; 2] {
        let list = |name, hits: &[(Ordinal, f32)]| RankedList { name, hits: hits.to_vec() };
        [list(ListName::BM25, words), list(ListName::VECTOR, vectors)]
    }

    #[test]
    fn a_third_list_counts_as_the_others_do() {
        let mut lists = both(&list(&[1, 2]), &list(&[2, 3])).to_vec();
        lists.push(RankedList { name: ListName::VECTOR, hits: list(&[3, 1, 4]) });
        let fused = Fusion::default().deepen(200, &lists, &ByNumber);
        let order: Vec<u32> = fused.iter().map(|found| found.ordinal.get()).collect();
        assert_eq!(order, [1, 2, 3, 4]);
        assert_eq!(fused[2].score, 1.0 / 62.0 + 1.0 / 61.0);
    }

    #[test]
    fn what_both_lists_name_comes_first_and_ties_are_ordered() {
        let (words, vectors) = (list(&[5, 9, 7]), list(&[9, 3]));
        let fused = Fusion::default().deepen(200, &both(&words, &vectors), &ByNumber);
        let order: Vec<u32> = fused.iter().map(|found| found.ordinal.get()).collect();
        assert_eq!(order, [9, 5, 3, 7]);
        assert_eq!(fused[0].score, 1.0 / 62.0 + 1.0 / 61.0);
    }

    #[test]
    fn two_deep_ranks_stand_behind_a_near_one() {
        let (words, vectors) = (list(&[1, 2, 8, 9]), list(&[3, 4, 8, 7]));
        let mut fusion = Fusion::default();
        let near = fusion.deepen(2, &both(&words[..2], &vectors[..2]), &ByNumber);
        let deep = fusion.deepen(4, &both(&words, &vectors), &ByNumber);
        let order: Vec<u32> = near.iter().chain(&deep).map(|found| found.ordinal.get()).collect();
        assert_eq!(order, [1, 3, 2, 4, 8, 7, 9]);
        assert_eq!((deep[0].score, deep[1].score), (1.0 / 63.0, 1.0 / 64.0));
    }

    /// Two orders of the same numbers, so that every entry is in both lists somewhere.
    fn orders() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        (1_usize..120).prop_flat_map(|count| {
            let numbers: Vec<u32> = (0..).take(count).collect();
            let part = (0..=count).prop_flat_map({
                let numbers = numbers.clone();
                move |kept| Just(numbers.clone()).prop_shuffle().prop_map(move |order| order[..kept].to_vec())
            });
            (part, Just(numbers).prop_shuffle())
        })
    }

    proptest! {
        #![proptest_config(crate::index::cases(128))]

        #[test]
        fn scores_never_rise_and_everything_is_given_once((words, vectors) in orders(), first in 1_usize..40, times in 2_usize..4) {
            let (words, vectors) = (list(&words), list(&vectors));
            let mut fusion = Fusion::default();
            let (mut depth, mut all) = (first, Vec::new());
            loop {
                let cut = |list: &Vec<(Ordinal, f32)>| list[..depth.min(list.len())].to_vec();
                all.extend(fusion.deepen(depth, &both(&cut(&words), &cut(&vectors)), &ByNumber));
                if depth > words.len().max(vectors.len()) {
                    break;
                }
                depth *= times;
            }
            prop_assert!(all.is_sorted_by(|left, right| left.score >= right.score), "{:?}", all);
            prop_assert!(all.is_sorted_by(|left, right| left.score > right.score || left.ordinal < right.ordinal), "ties");
            let given: FxHashSet<Ordinal> = all.iter().map(|found| found.ordinal).collect();
            prop_assert_eq!((given.len(), all.len()), (vectors.len(), vectors.len()));
            // A reported rank is the true one, and the score follows from the reported ranks.
            for found in &all {
                for (list, name) in [(&words, ListName::BM25), (&vectors, ListName::VECTOR)] {
                    if let Some(ranked) = found.ranks.of(&name) {
                        prop_assert_eq!(list[ranked.rank - 1].0, found.ordinal);
                    }
                }
            }
        }
    }
}

//! Fusion of ranked lists.
//!
//! In: the ranked list of each index, read to one depth and then deeper. Out: one list, piece by piece.
//!
//! Down to the first depth the score is the sum of reciprocal ranks (Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion
//! outperforms Condorcet and individual rank learning methods", SIGIR 2009): Σ 1 / (60 + rank). A deeper entry counts by its
//! better rank alone, because the sum of two deep ranks may exceed the score of one near rank, so that the entry would belong
//! before earlier output.
//!
//! **Invariant:** scores never rise from one entry to the next, however many pieces there are (except those of one approximate
//! list, which are the index's own). The result depends on the lists and on the depths to which they were read; ties are ordered
//! by the order of ties, never by ordinal.

use super::hits::{Found, Ranked};
use crate::index::{TieOrder, TopK};
use rustc_hash::{FxHashMap, FxHashSet};
use snapshots::Ordinal;
use std::collections::hash_map::Entry;

/// The constant of the method, as in its paper.
const K: f32 = 60.0;

/// A ranked list, best first.
pub(super) type List = [(Ordinal, f32)];

/// Lists that are read deeper and deeper, and the entries already returned.
#[derive(Default)]
pub(super) struct Fusion {
    given: FxHashSet<Ordinal>,
    depth: usize,
}

impl Fusion {
    /// Returns the entries that the BM25 and the vector list, read to `depth`, add to the earlier ones, best first. One list may
    /// be missing; then the scores are those of the other.
    pub(super) fn deepen(
        &mut self,
        depth: usize,
        bm25: Option<&List>,
        near: Option<&List>,
        ties: &dyn TieOrder,
    ) -> Vec<Found> {
        let before = std::mem::replace(&mut self.depth, depth);
        let found = match (bm25, near) {
            (Some(bm25), Some(near)) => self.fuse(before, bm25, near, ties),
            (Some(list), None) => self.single(before, list, |found, ranked| found.bm25 = Some(ranked)),
            (None, Some(list)) => self.single(before, list, |found, ranked| found.vector = Some(ranked)),
            (None, None) => Vec::new(),
        };
        self.given.extend(found.iter().map(|found| found.ordinal));
        found
    }

    /// Returns the new entries of a list after the first `before`, with their ranks. Late entries of an approximate list come
    /// after them as well.
    fn fresh(&self, before: usize, list: &List) -> impl Iterator<Item = (Ordinal, Ranked)> {
        (1..)
            .zip(list)
            .filter(|(_, (ordinal, _))| !self.given.contains(ordinal))
            .map(move |(rank, &(ordinal, score))| (ordinal, Ranked { rank: rank.max(before + 1), score }))
    }

    fn single(&self, before: usize, list: &List, place: impl Fn(&mut Found, Ranked)) -> Vec<Found> {
        let found = self.fresh(before, list).map(|(ordinal, ranked)| {
            let mut found = Found { score: ranked.score, ..Found::new(ordinal) };
            place(&mut found, ranked);
            found
        });
        found.collect()
    }

    fn fuse(&self, before: usize, bm25: &List, near: &List, ties: &dyn TieOrder) -> Vec<Found> {
        let mut fused: FxHashMap<Ordinal, Found> = FxHashMap::default();
        for (ordinal, ranked) in self.fresh(before, bm25) {
            fused.insert(ordinal, Found { bm25: Some(ranked), ..Found::new(ordinal) });
        }
        for (ordinal, ranked) in self.fresh(before, near) {
            match fused.entry(ordinal) {
                Entry::Occupied(mut both) => both.get_mut().vector = Some(ranked),
                Entry::Vacant(alone) => {
                    alone.insert(Found { vector: Some(ranked), ..Found::new(ordinal) });
                }
            }
        }
        let mut best = TopK::new(fused.len(), ties);
        for found in fused.values_mut() {
            if before > 0 {
                keep_better(found);
            }
            let ranks = [found.bm25, found.vector].into_iter().flatten();
            found.score = if before > 0 { ranks.map(worth).fold(0.0, f32::max) } else { ranks.map(worth).sum() };
            best.push(found.ordinal, found.score);
        }
        best.into_ranked().into_iter().filter_map(|(ordinal, _)| fused.remove(&ordinal)).collect()
    }
}

/// Removes the rank that does not count: whether it is known depends on the depth of the other list.
fn keep_better(found: &mut Found) {
    if let (Some(bm25), Some(vector)) = (found.bm25, found.vector) {
        found.bm25 = Some(bm25).filter(|bm25| bm25.rank <= vector.rank);
        found.vector = Some(vector).filter(|vector| vector.rank <= bm25.rank);
    }
}

fn worth(ranked: Ranked) -> f32 {
    1.0 / (K + ranked.rank as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn what_both_lists_name_comes_first_and_ties_are_ordered() {
        let (words, vectors) = (list(&[5, 9, 7]), list(&[9, 3]));
        let fused = Fusion::default().deepen(200, Some(&words), Some(&vectors), &ByNumber);
        let order: Vec<u32> = fused.iter().map(|found| found.ordinal.get()).collect();
        assert_eq!(order, [9, 5, 3, 7]);
        assert_eq!(fused[0].score, 1.0 / 62.0 + 1.0 / 61.0);
    }

    #[test]
    fn two_deep_ranks_stand_behind_a_near_one() {
        let (words, vectors) = (list(&[1, 2, 8, 9]), list(&[3, 4, 8, 7]));
        let mut fusion = Fusion::default();
        let near = fusion.deepen(2, Some(&words[..2]), Some(&vectors[..2]), &ByNumber);
        let deep = fusion.deepen(4, Some(&words), Some(&vectors), &ByNumber);
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
                all.extend(fusion.deepen(depth, Some(&cut(&words)), Some(&cut(&vectors)), &ByNumber));
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
                for (list, ranked) in [(&words, found.bm25), (&vectors, found.vector)] {
                    if let Some(ranked) = ranked {
                        prop_assert_eq!(list[ranked.rank - 1].0, found.ordinal);
                    }
                }
            }
        }
    }
}

//! Fusion of ranked lists.
//!
//! In: ranked lists of ordinals. Out: one list, by reciprocal rank (Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion
//! outperforms Condorcet and individual rank learning methods", SIGIR 2009): score = Σ 1 / (60 + rank).
//!
//! **Invariant:** the fused order depends on the lists alone; ties go by the order of ties, never by ordinal.

use crate::index::{TieOrder, TopK};
use rustc_hash::FxHashMap;
use snapshots::Ordinal;

/// The constant of the method, as in its paper.
const K: f32 = 60.0;

/// Returns all ordinals of the lists, best first.
pub(super) fn reciprocal_ranks(lists: &[&[(Ordinal, f32)]], ties: &dyn TieOrder) -> Vec<(Ordinal, f32)> {
    let mut scores: FxHashMap<Ordinal, f32> = FxHashMap::default();
    for list in lists {
        for (rank, (ordinal, _)) in (1_u32..).zip(*list) {
            *scores.entry(*ordinal).or_default() += 1.0 / (K + rank as f32);
        }
    }
    let mut best = TopK::new(scores.len(), ties);
    for (ordinal, score) in scores {
        best.push(ordinal, score);
    }
    best.into_ranked()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    struct ByNumber;

    impl TieOrder for ByNumber {
        fn compare(&self, left: Ordinal, right: Ordinal) -> Ordering {
            left.cmp(&right)
        }
    }

    #[test]
    fn what_both_lists_name_comes_first_and_ties_are_ordered() {
        let list = |ordinals: &[u32]| -> Vec<(Ordinal, f32)> {
            ordinals.iter().map(|&ordinal| (Ordinal::new(ordinal), 1.0)).collect()
        };
        let (words, vectors) = (list(&[5, 9, 7]), list(&[9, 3]));
        let fused = reciprocal_ranks(&[&words, &vectors], &ByNumber);
        let order: Vec<u32> = fused.iter().map(|(ordinal, _)| ordinal.get()).collect();
        assert_eq!(order, [9, 5, 3, 7]);
        assert_eq!(fused[0].1, 1.0 / 62.0 + 1.0 / 61.0);
    }
}

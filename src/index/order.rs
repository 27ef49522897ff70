//! The one order of ranked lists: score, then the order of ties.
//!
//! In: scored ordinals in any sequence. Out: the best of them, best first.
//!
//! **Invariant:** the result depends on the set of offered entries and not on their sequence, so the layout of segments has no
//! effect. Ordinals depend on history, so they never break a tie between entries that [`TieOrder`] can distinguish. That order
//! (path, then entry identity) costs a look-up and is used for equal score bits only.

use snapshots::Ordinal;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Orders entries whose scores are equal; the lesser comes first.
///
/// The order must be total and must not depend on history: (path, entry identity).
pub trait TieOrder: Sync {
    /// Compares two live entries.
    fn compare(&self, left: Ordinal, right: Ordinal) -> Ordering;
}

/// Keeps the best `limit` entries under (score descending, [`TieOrder`]).
///
/// Memory grows with the kept entries and never beyond `limit`, however large that is.
///
/// ```
/// use snapshots::Ordinal;
/// use std::cmp::Ordering;
/// use tidemill::index::{TieOrder, TopK};
///
/// struct ByNumber;
/// impl TieOrder for ByNumber {
///     fn compare(&self, left: Ordinal, right: Ordinal) -> Ordering {
///         left.cmp(&right)
///     }
/// }
///
/// let mut best = TopK::new(2, &ByNumber);
/// for (number, score) in [(7, 1.0), (3, 2.0), (5, 2.0)] {
///     best.push(Ordinal::new(number), score);
/// }
/// assert_eq!(best.into_ranked(), [(Ordinal::new(3), 2.0), (Ordinal::new(5), 2.0)]);
/// ```
pub struct TopK<'a> {
    limit: usize,
    ties: &'a dyn TieOrder,
    /// The worst kept entry is on top.
    heap: BinaryHeap<Ranked<'a>>,
}

struct Ranked<'a> {
    score: f32,
    ordinal: Ordinal,
    ties: &'a dyn TieOrder,
}

impl Ord for Ranked<'_> {
    /// Less is better.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| {
            if self.ordinal == other.ordinal {
                return Ordering::Equal;
            }
            // The ordinal decides only if a tie order is not total; a heap needs some answer.
            self.ties.compare(self.ordinal, other.ordinal).then(self.ordinal.cmp(&other.ordinal))
        })
    }
}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked<'_> {}

impl<'a> TopK<'a> {
    /// Starts with nothing kept.
    #[must_use]
    pub fn new(limit: usize, ties: &'a dyn TieOrder) -> Self {
        Self { limit, ties, heap: BinaryHeap::new() }
    }

    /// Returns whether an entry of this score could still be kept; does not use the tie order.
    #[inline]
    #[must_use]
    pub fn admits(&self, score: f32) -> bool {
        self.heap.len() < self.limit || self.heap.peek().is_some_and(|worst| score.total_cmp(&worst.score).is_ge())
    }

    /// Returns the least score that can still be kept: lower ones need not be offered.
    #[inline]
    #[must_use]
    pub fn bar(&self) -> f32 {
        if self.heap.len() < self.limit {
            f32::NEG_INFINITY
        } else {
            self.heap.peek().map_or(f32::INFINITY, |worst| worst.score)
        }
    }

    /// Offers one entry.
    pub fn push(&mut self, ordinal: Ordinal, score: f32) {
        let offered = Ranked { score, ordinal, ties: self.ties };
        if self.heap.len() < self.limit {
            self.heap.push(offered);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && offered < *worst
        {
            *worst = offered;
        }
    }

    /// Returns the kept entries, best first.
    #[must_use]
    pub fn into_ranked(self) -> Vec<(Ordinal, f32)> {
        self.heap.into_sorted_vec().into_iter().map(|kept| (kept.ordinal, kept.score)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Ranks ordinals by a scrambled key and counts its calls.
    #[derive(Default)]
    struct Scrambled(AtomicUsize);

    fn key(ordinal: Ordinal) -> u32 {
        ordinal.get().wrapping_mul(0x9e37_79b1)
    }

    impl TieOrder for Scrambled {
        fn compare(&self, left: Ordinal, right: Ordinal) -> Ordering {
            self.0.fetch_add(1, Relaxed);
            key(left).cmp(&key(right))
        }
    }

    proptest! {
        #![proptest_config(crate::index::cases(64))]
        #[test]
        fn keeps_what_a_full_sort_puts_first(scores in prop::collection::vec(0u8..6, 0..60), limit in 0usize..20) {
            let ties = Scrambled::default();
            let mut best = TopK::new(limit, &ties);
            let mut all = Vec::new();
            for (number, score) in (0u32..).zip(scores) {
                let (ordinal, score) = (Ordinal::new(number), f32::from(score));
                if best.admits(score) {
                    best.push(ordinal, score);
                }
                all.push((ordinal, score));
            }
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(key(a.0).cmp(&key(b.0))));
            all.truncate(limit);
            prop_assert_eq!(best.into_ranked(), all);
        }
    }

    #[test]
    fn a_tie_order_is_asked_on_equal_scores_only() {
        let ties = Scrambled::default();
        let mut best = TopK::new(3, &ties);
        for number in 0u32..100 {
            best.push(Ordinal::new(number), number as f32);
        }
        assert_eq!(best.into_ranked().len(), 3);
        assert_eq!(ties.0.load(Relaxed), 0);
    }

    #[test]
    fn a_huge_limit_reserves_nothing() {
        let ties = Scrambled::default();
        let mut best = TopK::new(usize::MAX, &ties);
        best.push(Ordinal::new(1), 1.0);
        assert_eq!(best.into_ranked(), [(Ordinal::new(1), 1.0)]);
    }
}

//! The merge policy: few enough segments to search, large enough to store terms rarely.
//!
//! In: the documents of each committed segment. Out: those that are merged into one.
//!
//! ```text
//! smallest ► 23 23 23 23 23 23 23 161 │ 5000 │ 48000        the first eight are merged; the 5000 are more than
//!            └──── eight, each at most eight times ────┘     eight times the sum before them, and are left alone
//!                  the sum before it
//! ```
//!
//! **Invariant:** when nothing is left to merge, of eight segments that are adjacent by size the last has more than eight times
//! the documents of the first, and more than [`SMALL`]; so there are never more than some forty. A document is rewritten some
//! eight times on each of the few levels that it passes.
//!
//! Each segment has its own dictionary, and commits bring few new words: `docs/decisions/0012-numbers.md` has the sizes.
//! tantivy's own policy leaves segments of more than ten thousand documents alone until there are eight of about one size. After
//! a first load and its commits, that is mostly never.

use tantivy::index::SegmentMeta;
use tantivy::indexer::{MergeCandidate, MergePolicy};

/// A segment of up to so many documents is always small.
const SMALL: u64 = 1000;

/// The policy of the lexical writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByShare {
    /// Least number of segments that are worth a merge.
    fewest: usize,
    /// A segment is merged once the smaller ones have one part in so many of its documents.
    factor: u64,
    /// Segments of more documents are left alone.
    max_documents: u32,
}

/// Segments of more documents are not merged further: such a merge takes minutes and saves a search little.
pub(super) const MAX_DOCUMENTS: u32 = 1_000_000;
/// Segments of more documents wait until commits pause.
const MAX_SMALL: u32 = if cfg!(test) { 64 } else { 8192 };
/// During commits.
pub(super) const STEADY: ByShare = ByShare { fewest: 8, factor: 8, max_documents: MAX_DOCUMENTS };
/// When a writer that has seen commits is closed: the rest is merged if that takes seconds.
pub(super) const CLOSING: ByShare = ByShare { fewest: 2, factor: 32, max_documents: 100_000 };

impl ByShare {
    /// Returns the policy for small segments only: such merges take a fraction of a second.
    pub(super) const fn small(self) -> Self {
        Self { max_documents: MAX_SMALL, ..self }
    }
}

impl MergePolicy for ByShare {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let mut sorted: Vec<_> = segments.iter().filter(|segment| segment.num_docs() <= self.max_documents).collect();
        sorted.sort_by_key(|segment| segment.num_docs());
        let sizes: Vec<u32> = sorted.iter().map(|segment| segment.num_docs()).collect();
        let together = &sorted[..self.together(&sizes)];
        if together.is_empty() {
            return Vec::new();
        }
        vec![MergeCandidate(together.iter().map(|segment| segment.id()).collect())]
    }
}

impl ByShare {
    /// Returns how many of the smallest segments are merged into one; `sizes` ascend.
    fn together(self, sizes: &[u32]) -> usize {
        for start in 0..sizes.len() {
            let mut documents = 0;
            let fits = |size: &u32| {
                let size = u64::from(*size);
                let fits = documents == 0 || size <= SMALL.max(self.factor * documents);
                documents += size;
                fits
            };
            let count = sizes[start..].iter().copied().take_while(fits).count();
            if count >= self.fewest {
                return start + count;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Adds segments one by one and merges by the policy; returns the most segments, and how many documents merges wrote.
    fn check(commits: impl IntoIterator<Item = u32>, mut sizes: Vec<u32>) -> (usize, u64) {
        let (mut most, mut written) = (0, 0);
        for commit in commits {
            sizes.push(commit);
            sizes.sort_unstable();
            most = most.max(sizes.len());
            let count = STEADY.together(&sizes);
            if count > 0 {
                let merged = sizes.drain(..count).sum();
                written += u64::from(merged);
                sizes.push(merged);
                sizes.sort_unstable();
                assert_eq!(STEADY.together(&sizes), 0, "one merge is enough for one more segment: {sizes:?}");
            }
        }
        (most, written)
    }

    #[test]
    fn commits_join_the_first_load_and_are_written_a_bounded_number_of_times() {
        let (most, written) = check(std::iter::repeat_n(23, 2000), vec![21_000, 22_000]);
        assert!(most <= 20, "{most} segments");
        assert!(written <= 40 * 23 * 2000, "{written} documents written for {}", 23 * 2000);
        // The first load's own segments are not merged by themselves, because a load waits for merges.
        assert_eq!(STEADY.together(&[20_000, 20_000, 21_000]), 0);
    }

    #[test]
    fn a_large_segment_waits_until_it_is_worth_it() {
        let small = [23; 7];
        assert_eq!(STEADY.together(&[&small[..], &[161, 5000, 48_000]].concat()), 8);
        assert_eq!(STEADY.together(&[&small[..], &[1288 + 8 * 161, 48_000]].concat()), 0);
        assert_eq!(STEADY.together(&[&[700; 7][..], &[700, 48_000]].concat()), 8);
        assert_eq!(STEADY.together(&[&[750; 7][..], &[751, 48_000]].concat()), 9);
    }

    #[test]
    fn closing_puts_together_what_is_left_over_and_not_a_few_commits() {
        assert_eq!(CLOSING.together(&[23, 23, 48_000]), 2);
        assert_eq!(CLOSING.together(&[23, 48_000]), 0);
        assert_eq!(CLOSING.together(&[1500, 48_000]), 2);
        assert_eq!(CLOSING.together(&[161, 1288, 5000, 48_000]), 4);
    }

    proptest! {
        #![proptest_config(crate::index::cases(64))]
        #[test]
        fn segments_stay_few_whatever_commits_bring(
            commits in prop::collection::vec(prop_oneof![1u32..5, 1u32..300, 1u32..40_000], 0..400),
            load in prop::collection::vec(1u32..60_000, 0..8),
        ) {
            let (most, _) = check(commits, load);
            prop_assert!(most <= 45, "{} segments", most);
        }
    }
}

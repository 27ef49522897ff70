//! Decides where a stretch that is too long for one chunk is cut.
//!
//! In: a range of the text, and the borders inside it with their ranks. Out: the borders that become cuts.
//!
//! A border is a cut if no better one is near: measure from the nearest border of at least its rank on the left to the
//! nearest on the right; if more than `whole` bytes lie between, a piece without a cut here would be too large.
//!
//! ```text
//!  rank      9                 4     7            5          9
//!  border ───┼─────────────────┼─────┼────────────┼──────────┼──
//!            │◄──── 7: from 9 to 9: longer than `whole` ────►│   cut
//!            │◄─── 4 ─────────────►│                             shorter: no cut
//! ```
//!
//! **Invariant:** whether a border is a cut depends on the text within `whole` bytes of it (plus [`apart`] for borders close to a
//! better one, plus the ends of the stretch), never on the distance to the stretch's start. So an edit moves only the cuts beside
//! it. No piece is longer than [`HARD_CAP`].
//!
//! The rule is the Cartesian tree of the ranks (Vuillemin 1980, "A unifying look at data structures"), cut where a subtree spans
//! more than `whole`; with random ranks a piece has half of `whole` on average. Bjørner, Blass and Gurevich 2010,
//! "Content-dependent chunking for differential compression, the local maximum approach", cut at local maxima. The tree also
//! bounds the largest piece, and lets classes of borders (blank line before word) be ranks.
//!
//! Repetitive text gives equal ranks and no cut. Only there, cuts are made at the best border within reach of the previous one.
//! Repetitive text offers the same best border again and again, so these cuts are stable too.

use crate::data::SplitMix;
use crate::rules::LARGEST_WHOLE;
use std::ops::Range;

/// Most bytes of any chunk.
pub(super) const HARD_CAP: usize = LARGEST_WHOLE;

/// A position at which the text may be cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Border {
    /// The byte before which the cut would be.
    pub(super) at: usize,
    /// Its rank: the class in the highest byte, a hash of the content beside it below.
    pub(super) rank: u64,
}

/// Returns the least distance in bytes between two cuts, if there is a choice.
const fn apart(whole: usize) -> usize {
    whole / 8
}

/// Returns the positions inside `range` to cut at, in order; none if it has at most `whole` bytes.
///
/// `borders` are in order. Without one within reach the cut is at the last character border that keeps the size.
pub(super) fn cut(text: &str, range: Range<usize>, borders: &[Border], whole: usize) -> Vec<usize> {
    if range.len() <= whole {
        return Vec::new();
    }
    let apart = apart(whole);
    let inner = range.start + apart..range.end.saturating_sub(apart);
    let candidates: Vec<Border> = borders.iter().filter(|border| inner.contains(&border.at)).copied().collect();
    let spanning = spanning(&range, &candidates, whole);
    let kept = keep_apart(&spanning, apart);
    cap(text, &range, &candidates, &kept, whole)
}

/// Returns the borders with more than `whole` bytes between their better neighbours.
fn spanning(range: &Range<usize>, borders: &[Border], whole: usize) -> Vec<Border> {
    // Left bounds first, then right bounds, each by a stack of borders that no later one has outranked.
    let mut lefts = Vec::with_capacity(borders.len());
    let mut stack: Vec<Border> = Vec::new();
    for border in borders {
        while stack.last().is_some_and(|top| top.rank < border.rank) {
            stack.pop();
        }
        lefts.push(stack.last().map_or(range.start, |top| top.at));
        stack.push(*border);
    }
    stack.clear();
    let mut cuts = Vec::new();
    for (border, left) in borders.iter().zip(lefts).rev() {
        while stack.last().is_some_and(|top| top.rank < border.rank) {
            stack.pop();
        }
        let right = stack.last().map_or(range.end, |top| top.at);
        if right - left > whole {
            cuts.push(*border);
        }
        stack.push(*border);
    }
    cuts.reverse();
    cuts
}

/// Drops each cut that is closer than `apart` to a better one.
fn keep_apart(cuts: &[Border], apart: usize) -> Vec<usize> {
    let outranked = |index: usize| {
        let cut = cuts[index];
        let before = cuts[..index].iter().rev().take_while(|other| cut.at - other.at < apart);
        let behind = cuts[index + 1..].iter().take_while(|other| other.at - cut.at < apart);
        before.into_iter().any(|other| other.rank >= cut.rank) || behind.into_iter().any(|other| other.rank > cut.rank)
    };
    (0..cuts.len()).filter(|&index| !outranked(index)).map(|index| cuts[index].at).collect()
}

/// Adds cuts where a piece would exceed [`HARD_CAP`].
fn cap(text: &str, range: &Range<usize>, borders: &[Border], cuts: &[usize], whole: usize) -> Vec<usize> {
    let mut capped = Vec::with_capacity(cuts.len());
    let mut from = range.start;
    let mut next_border = 0;
    for &end in cuts.iter().chain([&range.end]) {
        while end - from > HARD_CAP {
            let reach = from + apart(whole)..=(from + whole).min(end - apart(whole));
            while borders.get(next_border).is_some_and(|border| border.at < *reach.start()) {
                next_border += 1;
            }
            let near = borders[next_border..].iter().take_while(|border| border.at <= *reach.end());
            // Of equals the last: it makes the fewest pieces.
            from = near.max_by_key(|border| border.rank).map_or_else(|| floor(text, *reach.end()), |border| border.at);
            capped.push(from);
        }
        if end < range.end {
            capped.push(end);
            from = end;
        }
    }
    capped
}

/// Returns the last character border at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Returns a 64-bit hash of `bytes`: FNV-1a with the finaliser of SplitMix64, whose high bits are good.
///
/// FNV: <https://datatracker.ietf.org/doc/html/rfc9923>. SplitMix64: Steele, Lea and Flood 2014, figure 15. Chunk borders depend
/// on it, so it must never change with a dependency. It need not resist an attacker, because [`cap`] bounds the effect of ranks.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    SplitMix::mix(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ranks: &[(usize, u64)], length: usize, whole: usize) -> Vec<usize> {
        let borders: Vec<Border> = ranks.iter().map(|&(at, rank)| Border { at, rank }).collect();
        cut(&"x".repeat(length), 0..length, &borders, whole)
    }

    #[test]
    fn the_best_border_is_cut_and_worse_ones_only_where_a_piece_stays_too_long() {
        assert_eq!(check(&[(30, 1), (50, 9), (70, 2)], 100, 100), [0_usize; 0]);
        assert_eq!(check(&[(30, 1), (50, 9), (70, 2)], 100, 60), [50]);
        assert_eq!(check(&[(30, 1), (50, 9), (70, 2)], 100, 45), [30, 50, 70]);
    }

    #[test]
    fn close_cuts_give_way_to_the_better_one() {
        assert_eq!(check(&[(500, 3), (510, 9), (520, 2)], 1_000, 400), [510]);
    }

    #[test]
    fn no_piece_exceeds_the_cap_with_or_without_borders() {
        let equal: Vec<(usize, u64)> = (1..10_000).map(|at| (at * 5, 7)).collect();
        for ranks in [&equal[..], &[]] {
            let mut ends = check(ranks, 50_000, 1_000);
            ends.push(50_000);
            let mut from = 0;
            for end in ends {
                assert!(end - from <= HARD_CAP && end > from);
                from = end;
            }
        }
        let wide = "ä".repeat(5_000);
        assert!(cut(&wide, 0..wide.len(), &[], 999).iter().all(|&at| wide.is_char_boundary(at)));
    }
}

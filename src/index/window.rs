//! The part of a version's bitmap between a segment's least and greatest ordinal, as plain bits.
//!
//! In: a bitmap, and the ordinals' bounds and number. Out: whether an ordinal is in the bitmap, in a nanosecond.
//!
//! **Invariant:** within its bounds it equals the bitmap. If ordinals are so sparse that plain bits cost more than they save, the
//! bitmap itself is used.

use roaring::RoaringBitmap;

/// If ordinals are more sparse than this within their bounds, each is looked up in the bitmap.
const DENSE_SPREAD: u64 = 64;

/// A bitmap between two bounds.
pub(in crate::index) enum Window {
    Bits { least: u32, words: Vec<u64> },
    Sparse(RoaringBitmap),
}

impl Default for Window {
    fn default() -> Self {
        Self::Sparse(RoaringBitmap::new())
    }
}

impl Window {
    /// Prepares `entries` from `least` to `greatest`, for `count` look-ups.
    pub(in crate::index) fn new(entries: &RoaringBitmap, least: u32, greatest: u32, count: usize) -> Self {
        if u64::from(greatest - least) > DENSE_SPREAD * count as u64 {
            let mut within = entries.clone();
            within.remove_range(..least);
            if let Some(behind) = greatest.checked_add(1) {
                within.remove_range(behind..);
            }
            return Self::Sparse(within);
        }
        let mut words = vec![0_u64; (greatest - least) as usize / 64 + 1];
        let mut ranges = entries.iter();
        ranges.advance_to(least);
        while let Some(range) = ranges.next_range().filter(|range| *range.start() <= greatest) {
            let (first, last) = (range.start().max(&least) - least, range.end().min(&greatest) - least);
            let (first_word, last_word) = (first as usize / 64, last as usize / 64);
            for (at, word) in words[first_word..=last_word].iter_mut().enumerate() {
                let from = if at == 0 { first % 64 } else { 0 };
                let to = if first_word + at == last_word { last % 64 } else { 63 };
                *word |= (u64::MAX >> (63 - to)) & (u64::MAX << from);
            }
        }
        Self::Bits { least, words }
    }

    /// Returns whether the bitmap has `ordinal`, which lies within the bounds.
    #[inline]
    pub(in crate::index) fn contains(&self, ordinal: u32) -> bool {
        match self {
            Self::Bits { least, words } => {
                let at = ordinal - least;
                words[at as usize / 64] >> (at % 64) & 1 == 1
            }
            Self::Sparse(entries) => entries.contains(ordinal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::index::cases(128))]

        #[test]
        fn a_window_holds_what_the_bitmap_holds(
            ranges in prop::collection::vec((0_u32..400, 0_u32..150), 0..8),
            least in 0_u32..300,
            span in 0_u32..300,
            count in 0_usize..8,
        ) {
            let mut entries = RoaringBitmap::from([u32::MAX]);
            for (start, length) in ranges {
                entries.insert_range(start..start + length);
            }
            let window = Window::new(&entries, least, least + span, count);
            for ordinal in least..=least + span {
                prop_assert_eq!(window.contains(ordinal), entries.contains(ordinal));
            }
        }
    }
}

//! Numbers that look random and follow from a seed, the same on every machine.
//!
//! In: a seed. Out: a stream of numbers. **Invariant:** it is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
//! generators", OOPSLA 2014, figure 17); chunk borders, codes of vectors and generated traces hang on it, so it never changes.

/// A stream of numbers.
///
/// ```
/// use dataflows::data::SplitMix;
/// let mut numbers = SplitMix::new(0);
/// assert_eq!(numbers.next(), 0xe220_a839_7b1d_cdaf);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The distance between two states: 2⁶⁴ by the golden ratio.
    pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Begins the stream that follows from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        Self::mix(self.0)
    }

    /// Returns a number below `end`, which is not 0.
    pub const fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns a word whose every bit hangs on every bit of `word`: the stream's finaliser.
    #[must_use]
    pub const fn mix(mut word: u64) -> u64 {
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

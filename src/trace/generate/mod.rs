//! Histories that nobody wrote: traces of generated trees, the same for the same seed on every machine.
//!
//! In: a scenario, its size and a seed. Out: a trace without digests: what must come of it follows from
//! [`Bound`](super::bound::Bound).
//!
//! **Invariant:** every byte of the trace follows from scenario, settings and the code version below; no clock, no
//! randomness of the machine. A file's text is made again from a few numbers whenever it is needed, so a tree of a million
//! files takes the memory of its paths.

mod scenario;
mod text;
mod tree;

pub use scenario::{Scenario, Settings, generate};

/// Counted up whenever the same settings give other bytes.
pub const GENERATOR: u32 = 2;

/// A stream of numbers that follows from a seed: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", OOPSLA 2014, figure 17).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    /// Begins a stream that follows from two numbers.
    pub(crate) const fn of(seed: u64, part: u64) -> Self {
        let mut numbers = Self(seed);
        let mixed = numbers.next();
        Self(mixed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub(crate) const fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

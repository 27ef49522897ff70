//! Generated histories: traces of generated trees, the same for the same seed on every machine.
//!
//! In: a scenario, its size and a seed. Out: a trace without digests, which [`Bound`](super::bound::Bound) computes.
//!
//! **Invariant:** scenario, settings and the code version below determine every byte of the trace; no clock, no randomness of the
//! machine. A file's text is regenerated from a few numbers when it is needed, so a tree of a million files takes the memory of
//! its paths.

mod scenario;
mod text;
mod tree;

pub use scenario::{Scenario, Settings, generate};

use dataflows::data::SplitMix;

/// Incremented whenever the same settings give other bytes.
pub const GENERATOR: u32 = 2;

/// A stream of numbers that follows from a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers(SplitMix);

impl Numbers {
    /// Begins a stream that follows from two numbers.
    pub(crate) const fn of(seed: u64, part: u64) -> Self {
        let mixed = SplitMix::new(seed).next();
        Self(SplitMix::new(mixed ^ part.wrapping_mul(SplitMix::STEP)))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Returns a number below `end`, which is not 0.
    pub(crate) const fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }
}

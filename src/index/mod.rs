//! The two indexes under one ordinal, and publishing to them.
//!
//! In: epochs of the graph. Out: versions that can be searched.
//!
//! **Invariant:** entry *n* is document *n* of the lexical index and vector *n* of the vector index. Nothing is overwritten, and
//! nothing is removed that a kept version or a living reader needs. A version is a bitmap of live ordinals, and both indexes
//! answer through it, for the newest version as for any other.
//!
//! In the order of the flow: [`lexical`] and [`vector`] (the indexes), [`apply`] (from an epoch to a published version),
//! [`IndexReader`] (any version, ready to be searched), [`audit`] (consistency checks), [`collect`] (garbage collection).

pub mod apply;
pub mod audit;
pub(crate) mod background;
pub mod collect;
pub mod copy;
pub mod lexical;
mod order;
mod reader;
pub mod vector;
mod window;

pub use background::{Tended, Urgency};
pub use order::{TieOrder, TopK};
pub use reader::{IndexReader, IndexView, ReaderError};

/// Returns the settings of a property test: so many cases, the same in every run.
#[cfg(test)]
pub(crate) fn cases(cases: u32) -> proptest::prelude::ProptestConfig {
    use proptest::test_runner::{Config, RngSeed};
    Config { cases, rng_seed: RngSeed::Fixed(17), failure_persistence: None, ..Config::default() }
}

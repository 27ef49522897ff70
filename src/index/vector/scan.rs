//! The contract of a segment's search engine, and the choice of engine for this machine.
//!
//! In: a block of vectors, once; then questions and the live positions. Out: the best positions with their inner products.
//!
//! **Invariant:** exact over the live positions. A score depends on the two vectors only, so neither the block's other rows nor
//! other live ones change a bit of it.

use super::clustered::ClusterRows;
#[cfg(feature = "faiss")]
use super::faiss::FaissScan;
use super::flat::FlatScan;
use super::{VectorError, rows::Rows};
use crate::index::background::Unwanted;
use half::f16;
use std::sync::OnceLock;

/// An immutable block of vectors that can be searched; a vector is identified by its position.
pub(super) trait Scan: Send + Sync {
    /// Returns the `count` best live positions with their scores, best first; fewer only if fewer are alive.
    ///
    /// Of several equal scores at the border, any may be returned.
    fn best(&self, question: &[f32], alive: &Alive, count: usize) -> Result<Vec<(u32, f32)>, VectorError>;

    /// Returns the components of `count` vectors from `start` on, bit for bit.
    fn components(&self, start: usize, count: usize) -> Result<Vec<f16>, VectorError>;
}

/// The live positions of a segment in a version.
pub(super) struct Alive {
    /// One bit per position, the lowest first; `None`: every position.
    bits: Option<Box<[u8]>>,
    count: usize,
}

impl Alive {
    /// Every one of `count` positions.
    pub(super) const fn all(count: usize) -> Self {
        Self { bits: None, count }
    }

    /// Those of `len` positions that `runs` of positions (start, end) cover; the runs do not overlap.
    pub(super) fn from_runs(len: usize, runs: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut bits = vec![0_u8; len.div_ceil(8)];
        let mut count = 0;
        for (start, end) in runs {
            count += end - start;
            let (first, last) = (start / 8, end.div_ceil(8));
            for (byte, bits) in bits.iter_mut().enumerate().take(last).skip(first) {
                let low = start.saturating_sub(byte * 8);
                let high = (end - byte * 8).min(8);
                *bits |= (0xff_u8 << low) & (0xff_u8 >> (8 - high));
            }
        }
        if count == len { Self::all(len) } else { Self { bits: Some(bits.into()), count } }
    }

    /// Those of `len` positions for which `bits` has `true`, which yields as many.
    pub(super) fn from_bits(len: usize, bits: impl Iterator<Item = bool>) -> Self {
        let mut bytes = vec![0_u8; len.div_ceil(8)];
        let mut count = 0;
        for (at, alive) in bits.take(len).enumerate() {
            bytes[at / 8] |= u8::from(alive) << (at % 8);
            count += usize::from(alive);
        }
        if count == len { Self::all(len) } else { Self { bits: Some(bytes.into()), count } }
    }

    pub(super) fn contains(&self, position: usize) -> bool {
        self.bits.as_ref().is_none_or(|bits| bits[position / 8] >> (position % 8) & 1 == 1)
    }

    /// Returns the bits, or `None` if every position is alive.
    #[cfg(feature = "faiss")]
    pub(super) fn bits(&self) -> Option<&[u8]> {
        self.bits.as_deref()
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }
}

/// Which engine searches the segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// FAISS; needs the feature `faiss`, and AVX2 on x86-64.
    #[cfg(feature = "faiss")]
    Faiss,
    /// A scan in plain Rust.
    Flat,
}

impl Backend {
    /// Returns the fastest engine on this machine; logs once if the processor is too old for FAISS.
    #[must_use]
    pub fn of_this_machine() -> Self {
        static CHOICE: OnceLock<Backend> = OnceLock::new();
        *CHOICE.get_or_init(|| {
            #[cfg(feature = "faiss")]
            {
                if super::faiss::processor_is_able() {
                    return Self::Faiss;
                }
                tracing::warn!(
                    "this processor lacks AVX2, FMA, F16C or POPCNT, which FAISS was built for; vectors are searched \
                     in plain Rust, several times slower"
                );
            }
            Self::Flat
        })
    }

    /// Returns whether it can make IVF lists.
    pub(super) const fn makes_lists(self) -> bool {
        !matches!(self, Self::Flat)
    }

    /// Distributes rows to at most so many IVF lists, if the engine can.
    pub(super) fn deal_out(
        self,
        rows: &Rows,
        lists: usize,
        unwanted: &Unwanted,
    ) -> Result<Option<ClusterRows>, VectorError> {
        match self {
            #[cfg(feature = "faiss")]
            Self::Faiss => super::faiss::deal_out(rows, lists, unwanted).map(Some),
            Self::Flat => {
                let _ = (rows, lists, unwanted);
                Ok(None)
            }
        }
    }

    /// Builds the engine over components that are finite, so many a vector.
    pub(super) fn build(self, dimensions: usize, components: &[f16]) -> Result<Box<dyn Scan>, VectorError> {
        Ok(match self {
            #[cfg(feature = "faiss")]
            Self::Faiss => Box::new(FaissScan::build(dimensions, components)?),
            Self::Flat => Box::new(FlatScan::build(dimensions, components)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_set_exactly_their_bits() {
        for (start, end) in [(0, 1), (7, 9), (3, 5), (8, 16), (0, 19), (18, 20), (1, 20)] {
            let alive = Alive::from_runs(20, [(start, end)].into_iter());
            assert_eq!(alive.count(), end - start);
            for position in 0..20 {
                assert_eq!(alive.contains(position), (start..end).contains(&position), "{start}..{end} {position}");
            }
        }
        assert!(Alive::from_runs(20, [(0, 8), (8, 20)].into_iter()).bits.is_none());
    }
}

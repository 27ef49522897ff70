//! Ordinals: the permanent numbers of entries and of document rows.
//!
//! In: how many were assigned before. Out: the next ones, in order. **Invariant:** an ordinal is assigned once, so a bit in any
//! version's bitmap always means the same entry. Entries and document rows have separate counters. `u32` because roaring bitmaps
//! and both indexes use it. The indexes and the log remember how many were assigned: resume after the largest that any of them
//! has seen.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// The number that an entry, or a row of a document, gets when it is first inserted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Ordinal(u32);

impl Ordinal {
    /// Wraps the number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Every ordinal is assigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{used} ordinals are used and {wanted} more do not fit into 32 bits; build a new store from the sources")]
pub struct OrdinalsExhausted {
    /// How many were assigned before.
    used: u32,
    /// How many were requested.
    wanted: u32,
}

/// Assigns ordinals in order, each once.
///
/// ```
/// use snapshots::{Ordinal, OrdinalCounter};
/// let mut counter = OrdinalCounter::resume(41);
/// assert_eq!(counter.next()?, Ordinal::new(41));
/// assert_eq!(counter.take(3)?, 42..45);
/// assert_eq!(counter.used(), 45);
/// # Ok::<(), snapshots::OrdinalsExhausted>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OrdinalCounter {
    /// The next ordinal; `u32::MAX` itself is never assigned, so that the count fits into 32 bits.
    next: u32,
}

impl OrdinalCounter {
    /// Continues after the first `used` ordinals.
    #[must_use]
    pub const fn resume(used: u32) -> Self {
        Self { next: used }
    }

    /// Returns how many are assigned: all below this number, and none from it on.
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.next
    }

    /// Assigns one ordinal.
    #[expect(clippy::should_implement_trait, reason = "an iterator would end in silence where this must fail")]
    pub fn next(&mut self) -> Result<Ordinal, OrdinalsExhausted> {
        self.take(1).map(|taken| Ordinal(taken.start))
    }

    /// Assigns `count` consecutive ordinals; none if they do not all fit.
    pub fn take(&mut self, count: u32) -> Result<Range<u32>, OrdinalsExhausted> {
        let start = self.next;
        let end = start.checked_add(count).ok_or(OrdinalsExhausted { used: start, wanted: count })?;
        self.next = end;
        Ok(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ordinal_is_given_out_once_and_then_an_error() {
        let mut counter = OrdinalCounter::resume(u32::MAX - 2);
        assert!(counter.take(3).is_err());
        assert_eq!(counter.take(2), Ok(u32::MAX - 2..u32::MAX));
        assert_eq!(counter.next(), Err(OrdinalsExhausted { used: u32::MAX, wanted: 1 }));
        assert_eq!(counter.take(0), Ok(u32::MAX..u32::MAX));
    }
}

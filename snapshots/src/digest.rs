//! The digest of a version: a hash over the multiset of its entries' identities.
//!
//! In: 16-byte identities, added and removed in any order. Out: 256 bits.
//! **Invariant:** the digest is a function of the multiset alone, independent of the order and of removed entries.
//!
//! It is MSet-Add-Hash of Clarke, Devadas, van Dijk, Gassend and Suh, "Incremental Multiset Hash Functions and Their
//! Application to Memory Integrity Checking", ASIACRYPT 2003, section 5: the sum of the hashes of the elements modulo
//! 2^256, here without key or nonce and with BLAKE3 as the hash. Adding or removing costs one hash and one addition,
//! so a commit pays for its delta.
//!
//! Two honestly built indexes have equal digests exactly when they hold equal entries, except with probability of about 2^-256 a
//! pair. It does not protect against forgery: without a key, an attacker who can choose many identities finds two sets of equal
//! sum much faster than 2^128 (generalised birthday: Wagner, CRYPTO 2002). It detects mistakes; BLAKE3 checksums cover the files.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A hash over a multiset of entry identities, updated by addition and subtraction.
///
/// ```
/// use snapshots::Digest;
/// let mut digest = Digest::EMPTY;
/// digest.add(&[1; 16]);
/// digest.add(&[2; 16]);
/// digest.remove(&[1; 16]);
/// assert_eq!(digest, Digest::of([&[2; 16]]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest([u64; 4]);

impl Digest {
    /// The digest of no entries.
    pub const EMPTY: Self = Self([0; 4]);

    /// Returns the digest of the entries with these identities.
    pub fn of<'a>(identities: impl IntoIterator<Item = &'a [u8; 16]>) -> Self {
        identities.into_iter().fold(Self::EMPTY, |mut digest, identity| {
            digest.add(identity);
            digest
        })
    }

    /// Adds one entry.
    pub fn add(&mut self, identity: &[u8; 16]) {
        self.add_all(Self(Self::term(identity)));
    }

    /// Adds the entries of another digest.
    pub fn add_all(&mut self, other: Self) {
        let mut carry = false;
        for (word, term) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = word.overflowing_add(term);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, first || second);
        }
    }

    /// Removes one entry.
    pub fn remove(&mut self, identity: &[u8; 16]) {
        let mut borrow = false;
        for (word, term) in self.0.iter_mut().zip(Self::term(identity)) {
            let (rest, first) = word.overflowing_sub(term);
            let (rest, second) = rest.overflowing_sub(u64::from(borrow));
            (*word, borrow) = (rest, first || second);
        }
    }

    /// Returns the number as 32 bytes, the lowest first.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the digest of bytes from [`Self::to_bytes`].
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(words(&bytes))
    }

    /// Returns the term of one entry: the BLAKE3-256 of its identity as a number, the lowest byte first.
    fn term(identity: &[u8; 16]) -> [u64; 4] {
        words(blake3::hash(identity).as_bytes())
    }
}

/// Reads 32 bytes as four words, the lowest first.
fn words(bytes: &[u8; 32]) -> [u64; 4] {
    std::array::from_fn(|at| {
        u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("a quarter of 32 bytes is eight"))
    })
}

impl Default for Digest {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn order_and_detours_leave_no_trace(
            kept in proptest::collection::vec(any::<[u8; 16]>(), 0..20),
            detour in proptest::collection::vec(any::<[u8; 16]>(), 0..20),
        ) {
            let mut digest = Digest::EMPTY;
            detour.iter().for_each(|identity| digest.remove(identity));
            kept.iter().rev().for_each(|identity| digest.add(identity));
            detour.iter().rev().for_each(|identity| digest.add(identity));
            prop_assert_eq!(digest, Digest::of(&kept));
            prop_assert_eq!(Digest::from_bytes(digest.to_bytes()), digest);
        }
    }

    #[test]
    fn the_same_entry_twice_is_not_the_same_as_once_or_never() {
        let twice = Digest::of([&[7; 16], &[7; 16]]);
        assert_ne!(twice, Digest::of([&[7; 16]]));
        assert_ne!(twice, Digest::EMPTY);
    }

    #[test]
    fn digests_written_by_format_1_stay_what_they_are() {
        expect_test::expect!["a8fae45de0f60b13fab2f91ac84d143be5ac8836eeb245972a612c6310e83833"]
            .assert_eq(&Digest::of([&[0; 16], &[255; 16]]).to_string());
    }

    #[test]
    fn carries_and_borrows_cross_every_word() {
        // Twenty removals from nothing wrap below zero; bringing the entries back ends at nothing again.
        let identities: Vec<[u8; 16]> = (0..20).map(|seed| [seed; 16]).collect();
        let mut digest = Digest::EMPTY;
        identities.iter().for_each(|identity| digest.remove(identity));
        identities.iter().for_each(|identity| digest.add(identity));
        assert_eq!(digest, Digest::EMPTY);
    }
}

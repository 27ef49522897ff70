//! Identities in the archive: sources, views, versions, epochs and commits.
//!
//! In: numbers that the caller assigns, and git object ids. Out: one type each, so that they cannot be confused. **Invariant:** a
//! value names one thing for the life of an archive and is never used twice.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Declares a number with a type of its own.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        pub struct $name($inner);

        impl $name {
            /// Wraps the number.
            #[must_use]
            pub const fn new(number: $inner) -> Self {
                Self(number)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Identifies a source; the caller knows its meaning.
    SourceId(u32)
}
number! {
    /// Identifies a view; the caller knows its meaning.
    ViewId(u32)
}
number! {
    /// Identifies a version by its position in the log, from 0.
    VersionId(u32)
}
number! {
    /// The only clock inside: one commit, or one settled batch of file events, is one epoch.
    Epoch(u64)
}

impl VersionId {
    /// Returns the position in the log's list of versions.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The id of a git commit, or the git tree hash of a directory's content: the public name of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct CommitId([u8; 20]);

impl CommitId {
    /// Wraps the twenty bytes of a git object id.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// Returns the twenty bytes of the git object id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Returns whether the id, in hexadecimal, begins with the digits of `prefix`.
    pub(crate) fn begins_with(&self, prefix: &HexPrefix) -> bool {
        prefix.digits.iter().zip(self.digits()).all(|(wanted, digit)| *wanted == digit)
    }

    /// Returns the forty hexadecimal digits, each as a number below 16.
    fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().flat_map(|byte| [byte >> 4, byte & 15])
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitId({self})")
    }
}

/// Reason why text is no full commit hash.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is no full commit hash; give 40 hexadecimal digits")]
pub struct NotACommitId {
    /// The text, or its first 64 characters.
    text: String,
}

impl FromStr for CommitId {
    type Err = NotACommitId;

    /// Parses 40 hexadecimal digits, in either case.
    fn from_str(text: &str) -> Result<Self, NotACommitId> {
        let refused = || NotACommitId { text: text.chars().take(64).collect() };
        let prefix = HexPrefix::parse(text).filter(|prefix| prefix.digits.len() == 40).ok_or_else(refused)?;
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(prefix.digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Self(bytes))
    }
}

/// The first digits of a commit hash.
pub(crate) struct HexPrefix {
    /// At most forty numbers below 16.
    digits: Vec<u8>,
}

impl HexPrefix {
    /// Parses 1 to 40 hexadecimal digits, in either case; returns nothing for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > 40 {
            return None;
        }
        let digits = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
        Some(Self { digits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_hash_reads_back_and_nothing_else_passes_for_one() {
        let commit = CommitId::from_bytes(std::array::from_fn(|at| at as u8 * 13));
        assert_eq!(commit.to_string().parse(), Ok(commit));
        assert_eq!(commit.to_string().to_uppercase().parse(), Ok(commit));
        for text in ["", "00", "zz", &"0".repeat(39), &"0".repeat(41), &"g".repeat(40), &"é".repeat(20)] {
            assert!(text.parse::<CommitId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_prefix_may_have_an_odd_number_of_digits() {
        let mut bytes = [0; 20];
        bytes[..2].copy_from_slice(&[0xab, 0xc4]);
        let begins = |prefix| HexPrefix::parse(prefix).map(|prefix| CommitId::from_bytes(bytes).begins_with(&prefix));
        assert_eq!(begins("aBc"), Some(true));
        assert_eq!(begins("abd"), Some(false));
        assert_eq!(begins("ab-"), None);
        assert_eq!(begins(""), None);
    }
}

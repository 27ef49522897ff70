//! The name of a snapshot: a git commit hash, or the git tree hash of a directory.
//!
//! In: twenty bytes, or their forty hexadecimal digits. Out: a value that orders, hashes and prints.
//! **Invariant:** equal names are equal bytes; the printed form is forty lower-case digits and parses back.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Names one commit, and so one version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
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

    /// Returns the id that forty hexadecimal digits name, in either case.
    ///
    /// ```
    /// use snapshots::CommitId;
    /// let id = CommitId::from_bytes([0xab; 20]);
    /// assert_eq!(CommitId::parse_hex(&id.to_string()), Some(id));
    /// ```
    #[must_use]
    pub fn parse_hex(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        if digits.len() != 40 {
            return None;
        }
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: u8| char::from(at).to_digit(16).and_then(|value| u8::try_from(value).ok());
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
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

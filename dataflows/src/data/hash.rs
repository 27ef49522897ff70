//! Identities of values: 128-bit hashes of content, with a type for each kind.
//!
//! In: bytes. Out: identities that flow through the graph in place of the bytes.
//!
//! **Invariant:** a hash is a function only of the bytes and of its domain string. So a value has the same identity on every
//! machine, and two kinds of value never share one by accident.
//!
//! BLAKE3 truncated to 128 bits (<https://github.com/BLAKE3-team/BLAKE3-specs>, section 2.6: any prefix of the output is itself a
//! hash): a collision takes some 2⁶⁴ tries, and half the bytes halve the memory of every arrangement. Two `u64` and not a `u128`,
//! whose alignment of 16 would pad each row.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Feeds length-prefixed parts to BLAKE3, so that `("ab", "c")` and `("a", "bc")` differ.
///
/// ```
/// use dataflows::data::Hasher;
/// assert_ne!(
///     Hasher::new("test").part(b"ab").part(b"c").finish(),
///     Hasher::new("test").part(b"a").part(b"bc").finish(),
/// );
/// ```
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// Starts a hash in the domain `context`.
    #[must_use]
    pub fn new(context: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(context.len() as u64).to_le_bytes());
        hasher.update(context.as_bytes());
        Self(hasher)
    }

    /// Adds one part, after its length.
    #[must_use]
    pub fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Returns the first 128 bits of the hash.
    #[must_use]
    pub fn finish(self) -> [u64; 2] {
        let hash = self.0.finalize();
        let (low, high) = hash.as_bytes()[..16].split_at(8);
        let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("half of sixteen bytes is eight"));
        [word(low), word(high)]
    }
}

/// Declares a 128-bit identity: a type with a private field, its bytes, and its hexadecimal form.
macro_rules! identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
        pub struct $name([u64; 2]);

        impl $name {
            /// Wraps the two words of a finished [`Hasher`].
            #[must_use]
            pub const fn from_words(words: [u64; 2]) -> Self {
                Self(words)
            }

            /// Returns the sixteen bytes of this identity on disk.
            #[must_use]
            pub fn to_bytes(self) -> [u8; 16] {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&self.0[0].to_le_bytes());
                bytes[8..].copy_from_slice(&self.0[1].to_le_bytes());
                bytes
            }

            /// Returns the identity of bytes from [`Self::to_bytes`].
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                let words = u128::from_le_bytes(bytes);
                Self([words as u64, (words >> 64) as u64])
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
}

identity! {
    /// Identifies a text: the cleaned text of a document, or the text of a chunk.
    TextHash
}
identity! {
    /// Identifies a [`Card`](super::Card).
    CardHash
}
identity! {
    /// Names what a model embeds: a chunk's text and what its card puts around it ([`Frame`](super::Frame)).
    EmbedInput
}
identity! {
    /// Names one content under one way of cleaning it: the distinct input of the clean stage.
    DocumentId
}
identity! {
    /// Identifies one cleaned text under one way of cutting it: the distinct input of the chunk stage.
    ChunkingId
}
identity! {
    /// Identifies one entry: (path, card, text, n-th occurrence), and nothing of a source, view, commit or time.
    EntryId
}
identity! {
    /// Identifies every setting, grammar and code version that can change a stage's output.
    Fingerprint
}
identity! {
    /// Names a model: everything that can change a bit of a vector, as its files, its preparation of texts and its code.
    ModelId
}

impl TextHash {
    /// Returns the hash of `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::from_words(Hasher::new("text").part(text.as_bytes()).finish())
    }
}

/// The git blob id of a file's bytes, for directories as well: the public id of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct ContentId([u8; 20]);

impl ContentId {
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
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

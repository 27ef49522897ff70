//! The encoding of a file, as a row of the graph carries it.
//!
//! In: a label. Out: an encoding of the Encoding Standard that decodes something.
//!
//! **Invariant:** equal charsets are one encoding, in memory and on disk: an encoding is named by its one name, whatever label it
//! was asked for by.

use encoding_rs::Encoding;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;

/// An encoding that something besides the bytes says a file has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Charset(&'static Encoding);

impl Charset {
    /// What every file has that nothing is said of.
    pub const UTF_8: Self = Self(encoding_rs::UTF_8);

    /// Returns the encoding that a label of the Encoding Standard stands for (`gbk`, `latin1`, `windows-1252`).
    ///
    /// ```
    /// use dataflows::data::Charset;
    /// assert_eq!(Charset::from_label("latin1").map(Charset::name), Some("windows-1252"));
    /// assert_eq!(Charset::from_label("klingon"), None);
    /// ```
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        // The replacement encoding decodes nothing.
        Encoding::for_label_no_replacement(label.as_bytes()).map(Self)
    }

    /// Returns the encoding's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns what decodes.
    pub(crate) fn encoding(self) -> &'static Encoding {
        self.0
    }
}

impl PartialOrd for Charset {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Charset {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl fmt::Debug for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Charset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Charset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_label(&name).ok_or_else(|| serde::de::Error::custom(format!("no encoding is called {name}")))
    }
}

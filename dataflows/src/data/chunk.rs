//! The results of cleaning and chunking: a document's outcome, and the chunks of its text.
//!
//! In: nothing; these are the values that the clean and chunk stages put out and the memo keeps.
//! **Invariant:** they are functions of (content, rule, charset of the tree) and (cleaned text, rule) alone: no path, view, commit or time.

use super::TextHash;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

/// The result of cleaning one content.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Cleaned {
    /// The content is a document: the hash of its text as UTF-8, and that text's size in bytes.
    Text {
        /// Names the cleaned text in the content-addressed store.
        text: TextHash,
        /// Bytes of the cleaned text.
        bytes: u64,
    },
    /// The content is no document here, and is counted under this reason.
    Skipped(SkipReason),
    /// Cleaning failed; the sentence says what and why.
    Fault(String),
    /// As [`Self::Text`], for a content that was not UTF-8.
    Converted {
        /// Names the cleaned text in the content-addressed store.
        text: TextHash,
        /// Bytes of the cleaned text.
        bytes: u64,
        /// The original encoding.
        from: Conversion,
    },
}

impl Cleaned {
    /// Returns the hash of the cleaned text, if the content is a document.
    #[must_use]
    pub const fn text(&self) -> Option<TextHash> {
        match self {
            Self::Text { text, .. } | Self::Converted { text, .. } => Some(*text),
            Self::Skipped(_) | Self::Fault(_) => None,
        }
    }
}

/// The encoding of a content, and the evidence for it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Conversion {
    /// The encoding, by its name in the Encoding Standard, in lower case.
    pub encoding: String,
    /// The evidence.
    pub by: Evidence,
}

/// The evidence for the encoding of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Evidence {
    /// A byte order mark.
    Mark,
    /// The rule.
    Rule,
    /// The positions of its NULs.
    Nulls,
    /// The detector, from many characters beyond ASCII.
    Guess,
    /// The detector, from few characters beyond ASCII: it may be wrong.
    Unsure,
    /// An `.editorconfig` beside or above the file.
    Editor,
}

impl Evidence {
    /// Returns the text for `explain`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mark => "its byte order mark says so",
            Self::Rule => "the rule says so",
            Self::Nulls => "its NULs lie so",
            Self::Guess => "guessed from its characters",
            Self::Unsure => "guessed from few characters, and may be wrong",
            Self::Editor => "an .editorconfig says so",
        }
    }
}

/// Why a file is not a document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SkipReason {
    /// A NUL among the first 8,000 bytes that no detected encoding explains.
    Binary,
    /// More bytes than the rule allows.
    TooLarge,
    /// No encoding turns the bytes into text.
    Undecodable,
    /// A symbolic link, which is never followed.
    Symlink,
    /// A submodule: a commit of another repository.
    Submodule,
    /// A rule excludes it.
    Excluded,
    /// A Git LFS pointer whose object is not in the local store.
    LfsMissing,
}

impl SkipReason {
    /// Returns the word under which `status` counts the reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::TooLarge => "too-large",
            Self::Undecodable => "undecodable",
            Self::Symlink => "symlink",
            Self::Submodule => "submodule",
            Self::Excluded => "excluded",
            Self::LfsMissing => "lfs-missing",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reason why a text in a language with a grammar was cut without its syntax: at blank lines and by indentation.
///
/// Every reason except a crash follows from counts, so it is the same on every machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NoSyntax {
    /// There is no grammar for the language.
    Grammar,
    /// The parser took too many steps for what it had read.
    Steps,
    /// The parser read the text too often.
    Read,
    /// The parser met too many errors.
    Errors,
    /// The names of the items take too many bytes.
    Names,
    /// The parser crashed, twice, the second time in a new process.
    Crash,
    /// Too many tokens were unfinished.
    Open,
}

impl NoSyntax {
    /// Every reason, in the order of its code in stores.
    const ALL: [Self; 7] = [Self::Grammar, Self::Steps, Self::Read, Self::Errors, Self::Names, Self::Crash, Self::Open];

    /// Returns the word under which `status` counts the reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grammar => "grammar",
            Self::Steps => "steps",
            Self::Read => "read",
            Self::Errors => "errors",
            Self::Names => "names",
            Self::Crash => "crash",
            Self::Open => "open",
        }
    }

    /// Returns the code of the reason in a store.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the reason of a code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for NoSyntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grammar => "there is no grammar for its language",
            Self::Steps => "the parser's budget of steps was spent",
            Self::Read => "the parser's budget of bytes read was spent",
            Self::Errors => "the parser's budget of errors was spent",
            Self::Names => "the budget of bytes for the names of its items was spent",
            Self::Crash => "the parser crashed on it",
            Self::Open => "the parser's budget of open tokens was spent",
        })
    }
}

/// The kind of text that a chunk belongs to; it is the `kind` of a hit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ChunkKind {
    /// Source code.
    Code,
    /// A document written for people.
    Document,
    /// Configuration and data kept as text.
    Data,
    /// Any other text.
    Text,
}

impl ChunkKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Code, Self::Document, Self::Data, Self::Text];

    /// Returns the name of the kind in JSON and in rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Document => "document",
            Self::Data => "data",
            Self::Text => "text",
        }
    }
}

/// One piece of a cleaned text: an item of code, a section of a document, a run of paragraphs.
///
/// `text` and the fields before it are part of the entry's identity; `lines` is not.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Chunk {
    /// The kind of text that it belongs to.
    pub kind: ChunkKind,
    /// The language, in lower case (`rust`, `cpp`, `markdown`), or empty where none is known.
    pub language: String,
    /// The qualified name of the item (`World::spawn`), or empty.
    pub symbol: String,
    /// The declaration of an item or the heading path of a section; may be empty. It is a search field of its own and comes first
    /// in the embedded text.
    pub name: String,
    /// Names the chunk's text in the content-addressed store.
    pub text: TextHash,
    /// First and last line of the text in the cleaned document, counted from 1.
    pub lines: Lines,
}

/// First and last line, both counted from 1 and both part of the range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Lines {
    /// The first line.
    pub first: u32,
    /// The last line.
    pub last: u32,
}

impl From<RangeInclusive<u32>> for Lines {
    fn from(range: RangeInclusive<u32>) -> Self {
        Self { first: *range.start(), last: *range.end() }
    }
}

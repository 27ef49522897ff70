//! The row of one file: indexed, skipped or at fault.
//!
//! **Invariant:** a row holds all inputs of [`place`](super::place). So the entries of a document and their lines follow from its
//! row and the memo at any later time, for any version.

use super::{Charset, ChunkingId, ContentId, DocumentPath, SkipReason};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A file of a view, with its outcome.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Document {
    /// Its path.
    pub path: DocumentPath,
    /// The object at that path.
    pub content: ContentId,
    /// Its outcome.
    pub outcome: Outcome,
    /// The encoding that the tree gives it, where a setting of the tree does: its cleaned text is named by it too.
    pub charset: Option<Charset>,
}

/// The outcome of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// It is a document, cut into the chunks that `chunking` names.
    Indexed {
        /// Names the document's chunk list in the memo.
        chunking: ChunkingId,
        /// The module that the nearest manifest names, or empty.
        module: String,
        /// The labels that the rules give the path.
        labels: Vec<(String, String)>,
    },
    /// It is no document, for this reason.
    Skipped(SkipReason),
    /// A stage failed on it.
    Fault {
        /// The stage that failed.
        stage: StageName,
        /// The failed attempt and its reason, in one line.
        error: String,
    },
}

/// The expensive stages: they run once per distinct input, and the memo keeps their results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum StageName {
    /// From content to cleaned text.
    Clean,
    /// From cleaned text to chunks.
    Chunk,
    /// From what a model embeds to a vector.
    Embed,
}

impl StageName {
    /// Returns the name of the stage in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Chunk => "chunk",
            Self::Embed => "embed",
        }
    }
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

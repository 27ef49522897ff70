//! What became of one file: a row that says it is indexed, skipped or at fault.
//!
//! **Invariant:** a row holds all that [`place`](super::place) needs, so the entries of a document, and the lines they
//! stand on, follow from its row and the memo at any later time, for any version.

use super::{Charset, ChunkingId, ContentId, DocumentPath, SkipReason};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A file of a view, and what became of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Document {
    /// Where it stands.
    pub path: DocumentPath,
    /// The object at that path.
    pub content: ContentId,
    /// What became of it.
    pub outcome: Outcome,
    /// The encoding that the tree gives it, where a setting of the tree does: its cleaned text is named by it too.
    pub charset: Option<Charset>,
}

/// What became of a file.
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
    /// A stage could not do its work on it.
    Fault {
        /// The stage that failed.
        stage: StageName,
        /// What was tried and why it failed, in one line.
        error: String,
    },
}

/// The expensive stages: those that run once per distinct input, with the memo behind them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum StageName {
    /// From content to cleaned text.
    Clean,
    /// From cleaned text to chunks.
    Chunk,
    /// From card and text to a vector.
    Embed,
}

impl StageName {
    /// Returns the word that stands for the stage in JSON.
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

//! The lines of `explain`.
//!
//! In: an explanation. Out: its shape.

use super::{WirePath, non_empty};
use crate::search::{ExplainedChunk, Explanation};
use dataflows::data::Outcome;
use serde::Serialize;

/// A line of `explain`.
#[derive(Debug, Serialize)]
pub struct ExplanationLine {
    /// The source's name.
    pub source: String,
    /// The view that points at it, or was requested.
    pub view: Option<String>,
    /// The commit.
    pub commit: String,
    /// The path inside the source.
    #[serde(flatten)]
    pub path: WirePath,
    /// How the path was read: `source`, `folder` or `absolute`.
    pub taken: &'static str,
    /// The object at the path.
    pub content: Option<String>,
    /// `indexed`, `skipped`, `fault` or `absent`.
    pub outcome: &'static str,
    /// The reason why it is not indexed.
    pub reason: Option<String>,
    /// Similar paths, if there is no document.
    pub near: Vec<WirePath>,
    /// The rule that matches the path.
    pub rule: String,
    /// Its cleaner.
    pub cleaner: String,
    /// The encoding of its bytes.
    pub encoding: Option<String>,
    /// The evidence for it.
    pub encoding_because: Option<&'static str>,
    /// Its chunker.
    pub chunker: String,
    /// The reason why code was cut without its syntax, if it was.
    pub without_syntax: Option<String>,
    /// The name in the nearest manifest.
    pub module: Option<String>,
    /// Its chunks.
    pub chunks: Vec<ChunkLine>,
}

/// A chunk of a document.
#[derive(Debug, Serialize)]
pub struct ChunkLine {
    /// First and last line.
    pub lines: [u32; 2],
    /// The qualified name.
    pub symbol: Option<String>,
    /// The declaration or heading path.
    pub name: Option<String>,
    /// Whether it has a vector.
    pub vector: &'static str,
    /// The commit that inserted it.
    pub introduced_in: Option<String>,
}

impl From<Explanation> for ExplanationLine {
    fn from(explanation: Explanation) -> Self {
        let (outcome, reason) = explanation.outcome();
        let Explanation { at, path, taken, document, near, rule: [rule, cleaner, chunker], .. } = explanation;
        let Explanation { without_syntax, encoding, chunks, .. } = explanation;
        let (encoding, encoding_because) = encoding.unzip();
        let module = match document.as_ref().map(|document| &document.outcome) {
            Some(Outcome::Indexed { module, .. }) => non_empty(module),
            _ => None,
        };
        Self {
            source: at.source_name,
            view: at.view,
            commit: at.commit.to_string(),
            path: WirePath::from(&path),
            taken: taken.as_str(),
            content: document.map(|document| document.content.to_string()),
            outcome,
            reason,
            near: near.iter().map(WirePath::from).collect(),
            rule,
            cleaner,
            encoding,
            encoding_because,
            chunker,
            without_syntax: without_syntax.map(|why| why.to_string()),
            module,
            chunks: chunks.into_iter().map(ChunkLine::from).collect(),
        }
    }
}

impl From<ExplainedChunk> for ChunkLine {
    fn from(chunk: ExplainedChunk) -> Self {
        Self {
            lines: [chunk.lines.first, chunk.lines.last],
            symbol: non_empty(&chunk.card.symbol),
            name: non_empty(&chunk.card.name),
            vector: chunk.vector,
            introduced_in: chunk.introduced_in.map(|introduced| introduced.to_string()),
        }
    }
}

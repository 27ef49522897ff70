//! The line of `record`. That of `replay` is the [`Report`](crate::replay::Report) itself.

use crate::trace::Written;
use serde::Serialize;

/// The line of `record --json`.
#[derive(Debug, Serialize)]
pub struct RecordLine {
    epochs: u64,
    contents: u64,
    content_bytes: u64,
    bytes: u64,
    corpus: String,
    /// `store`, `tracker` or `trees`.
    digests: &'static str,
    redacted: bool,
}

impl RecordLine {
    /// Returns the line of a trace that was written.
    #[must_use]
    pub fn new(written: &Written, digests: &'static str, redacted: bool) -> Self {
        Self {
            epochs: written.epochs,
            contents: written.contents,
            content_bytes: written.content_bytes,
            bytes: written.bytes,
            corpus: written.corpus.iter().map(|byte| format!("{byte:02x}")).collect(),
            digests,
            redacted,
        }
    }
}

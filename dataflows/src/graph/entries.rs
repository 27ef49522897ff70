//! Places the chunks of documents as entries at their paths.
//!
//! In: documents that know their module. Out: entries with their cards; the chunks that an edit left alone cancel in the consolidation
//! behind this step.

use crate::data::{CardedEntry, ChunkingId, Document, DocumentPath, Outcome, View, place};
use crate::memo::{Chunked, Memo};
use crate::stage::Time;
use differential_dataflow::VecCollection;
use std::sync::Arc;

/// Places the chunks of every document.
pub(super) fn place_all(
    documents: VecCollection<'_, Time, (View, Document)>,
    memo: Arc<dyn Memo>,
) -> VecCollection<'_, Time, (View, CardedEntry)> {
    // The content is dropped first: an edit that left the cleaned text as it was cancels before its chunks are read.
    let placed = documents.flat_map(|(view, document)| match document.outcome {
        Outcome::Indexed { chunking, module, labels } => Some((view, document.path, chunking, module, labels)),
        Outcome::Skipped(_) | Outcome::Fault { .. } => None,
    });
    placed.consolidate().flat_map(move |(view, path, chunking, module, labels)| {
        entries_of(&*memo, &path, chunking, &module, &labels).into_iter().map(move |entry| (view, entry))
    })
}

/// Returns the entries of one document, each with its card.
fn entries_of(
    memo: &dyn Memo,
    path: &DocumentPath,
    chunking: ChunkingId,
    module: &str,
    labels: &[(String, String)],
) -> Vec<CardedEntry> {
    let list = memo.chunks(chunking);
    match list.as_deref() {
        Some(Chunked::Chunks(chunks) | Chunked::WithoutSyntax(chunks, _)) => place(path, module, labels, chunks)
            .map(|placed| CardedEntry { entry: placed.entry, card: Arc::new(placed.card) })
            .collect(),
        Some(Chunked::Fault(_)) => Vec::new(),
        // Returning no entries would be a silent loss: once the list is found again, the retraction would take back rows that
        // were never inserted.
        None => {
            memo.lost(format!("the chunk list {chunking} of {path}"));
            Vec::new()
        }
    }
}

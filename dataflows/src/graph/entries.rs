//! Places the chunks of documents as entries at their paths.
//!
//! In: documents with their module. Out: entries. The consolidation after this step cancels the chunks that an edit did not
//! change.

use crate::data::{ChunkingId, Document, DocumentPath, Entry, Outcome, View, place};
use crate::memo::{Chunked, Memo};
use crate::stage::Time;
use differential_dataflow::VecCollection;
use std::sync::Arc;

/// Places the chunks of every document and stores their cards.
pub(super) fn place_all(
    documents: VecCollection<'_, Time, (View, Document)>,
    memo: Arc<dyn Memo>,
) -> VecCollection<'_, Time, (View, Entry)> {
    // The content is dropped first: an edit without a change of the cleaned text cancels before its chunks are read.
    let placed = documents.flat_map(|(view, document)| match document.outcome {
        Outcome::Indexed { chunking, module, labels } => Some((view, document.path, chunking, module, labels)),
        Outcome::Skipped(_) | Outcome::Fault { .. } => None,
    });
    placed.consolidate().flat_map(move |(view, path, chunking, module, labels)| {
        entries_of(&*memo, &path, chunking, &module, &labels).into_iter().map(move |entry| (view, entry))
    })
}

/// Returns the entries of one document. A card is stored under its own hash, so storing it twice changes nothing.
fn entries_of(
    memo: &dyn Memo,
    path: &DocumentPath,
    chunking: ChunkingId,
    module: &str,
    labels: &[(String, String)],
) -> Vec<Entry> {
    let list = memo.chunks(chunking);
    match list.as_deref() {
        Some(Chunked::Chunks(chunks) | Chunked::WithoutSyntax(chunks, _)) => place(path, module, labels, chunks)
            .map(|placed| {
                memo.put_card(placed.entry.card, &placed.card);
                placed.entry
            })
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

//! The lines of an entry, in the searched version.
//!
//! In: a version's documents and an entry. Out: the document that holds it, and its lines there.
//!
//! **Invariant:** lines are never part of an entry. They come from the chunk list of the one document at the entry's path in that
//! version, through the same function that placed the entry.

use crate::index::{IndexReader, ReaderError};
use dataflows::data::{Document, DocumentPath, Entry, Lines, Outcome, PlacedEntry, place};
use dataflows::memo::{Chunked, Memo};
use roaring::RoaringBitmap;
use snapshots::Ordinal;

/// A document of a version, with its ordinal.
#[derive(Clone, Debug)]
pub struct PlacedDocument {
    /// The ordinal of its row.
    pub ordinal: Ordinal,
    /// The row.
    pub document: Document,
}

/// Returns the document at a path in a version with these live document rows.
///
/// # Errors
/// If the store cannot be read.
pub fn document_of(
    reader: &IndexReader,
    documents: &RoaringBitmap,
    path: &DocumentPath,
) -> Result<Option<PlacedDocument>, ReaderError> {
    for ordinal in reader.catalogue().documents_at(path)? {
        if documents.contains(ordinal.get()) {
            let document = reader.catalogue().document(ordinal)?;
            // The rows of a path are found by its hash; the path itself decides.
            if document.path == *path {
                return Ok(Some(PlacedDocument { ordinal, document }));
            }
        }
    }
    Ok(None)
}

/// Returns the entries of a document in order, with their cards and lines.
///
/// # Errors
/// If the store cannot be read.
pub fn placed_entries(reader: &IndexReader, document: &Document) -> Result<Vec<PlacedEntry>, ReaderError> {
    let Outcome::Indexed { chunking, module, labels } = &document.outcome else { return Ok(Vec::new()) };
    let list = reader.memo().chunks(*chunking);
    let chunks = list.as_deref().and_then(Chunked::chunks).unwrap_or_default();
    Ok(place(&document.path, module, labels, chunks).collect())
}

/// Returns the lines of an entry in its document.
///
/// Only chunks with the entry's text are placed: the number of earlier equal cards and texts depends on those alone.
///
/// # Errors
/// If the store cannot be read.
pub(super) fn lines_of(reader: &IndexReader, document: &Document, entry: &Entry) -> Result<Option<Lines>, ReaderError> {
    let Outcome::Indexed { chunking, module, labels } = &document.outcome else { return Ok(None) };
    let chunks = reader.memo().chunks_with_text(*chunking, entry.text)?;
    let found = place(&document.path, module, labels, &chunks).find(|placed| placed.entry == *entry);
    Ok(found.map(|placed| placed.lines))
}

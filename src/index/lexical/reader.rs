//! Opens the newest committed segments, beside the writer or in another process.
//!
//! In: a directory. Out: a [`Searcher`] over the segments of the last commit.
//!
//! **Invariant:** a searcher never changes: it keeps its segments open while the writer commits, merges and removes files.
//! Segments are loaded only on request, so a caller that loads both can match a version with its searcher.

use super::error::LexicalError;
use super::writer;
use std::path::Path;
use tantivy::{IndexReader, ReloadPolicy, Searcher, TantivyError};

/// The entry point for readers of a lexical index.
pub struct LexicalReader {
    reader: IndexReader,
}

impl LexicalReader {
    /// Opens the index in `dir`.
    ///
    /// # Errors
    /// [`LexicalError::Open`] if there is none; [`LexicalError::Schema`], [`LexicalError::Analyzer`] or
    /// [`LexicalError::Payload`] if it was made differently.
    pub fn open(dir: &Path) -> Result<Self, LexicalError> {
        let (index, _) = writer::open(dir)?;
        let failed = |source: TantivyError| LexicalError::Open { path: dir.to_owned(), source: source.into() };
        // Nothing is stored, so the smallest cache of stored documents is enough.
        let builder = index.reader_builder().reload_policy(ReloadPolicy::Manual).doc_store_cache_num_blocks(1);
        Ok(Self { reader: builder.try_into().map_err(failed)? })
    }

    /// Loads the segments of the last commit and returns a searcher over them.
    ///
    /// # Errors
    /// [`LexicalError::Load`] if a segment cannot be opened; earlier searchers do not change.
    pub fn reload(&self) -> Result<Searcher, LexicalError> {
        self.reader.reload().map_err(|source| LexicalError::Load(source.into()))?;
        Ok(self.reader.searcher())
    }

    /// Returns a searcher over the last loaded segments.
    #[must_use]
    pub fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }
}

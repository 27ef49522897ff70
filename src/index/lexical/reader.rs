//! Opens the newest committed segments, beside the writer or in another process.
//!
//! In: a directory. Out: a [`Searcher`] over the segments of the last commit.
//!
//! **Invariant:** a searcher never changes: it keeps its segments open while the writer commits, merges and removes
//! files. Nothing is loaded unless it is asked for, so a version and its searcher can be matched by whoever loads both.

use super::error::LexicalError;
use super::writer;
use std::path::Path;
use tantivy::{IndexReader, ReloadPolicy, Searcher, TantivyError};

/// The door for readers of a lexical index.
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
        // Nothing is stored, so the smallest cache of stored documents does.
        let builder = index.reader_builder().reload_policy(ReloadPolicy::Manual).doc_store_cache_num_blocks(1);
        Ok(Self { reader: builder.try_into().map_err(failed)? })
    }

    /// Loads the segments of the last commit and returns a searcher over them.
    ///
    /// # Errors
    /// [`LexicalError::Load`] if a segment cannot be opened; searchers given before stay as they were.
    pub fn reload(&self) -> Result<Searcher, LexicalError> {
        self.reader.reload().map_err(|source| LexicalError::Load(source.into()))?;
        Ok(self.reader.searcher())
    }

    /// Returns a searcher over the segments that were loaded last.
    #[must_use]
    pub fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }
}

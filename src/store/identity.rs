//! The identity of a source beside its name and location: the first commits of its history.
//!
//! In and out: commit ids. **Invariant:** it is a separate row, so that stores without it open unchanged in either direction. A
//! source without it was registered by an earlier build, or its history does not identify it.

use super::{Database, StoreError, WriteTransaction};
use serde::{Deserialize, Serialize};
use snapshots::{CommitId, SourceId};

/// The first commits of a source's history.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SourceRoots {
    roots: Vec<[u8; 20]>,
    /// Whether they were searched; a history may be too long, or truncated.
    pub is_known: bool,
}

impl SourceRoots {
    /// Wraps root commits that were found by a search.
    #[must_use]
    pub fn new(roots: &[CommitId]) -> Self {
        Self { roots: roots.iter().map(|root| *root.as_bytes()).collect(), is_known: true }
    }

    /// Returns the root commits.
    pub fn roots(&self) -> impl Iterator<Item = CommitId> {
        self.roots.iter().map(|root| CommitId::from_bytes(*root))
    }
}

/// The key of a source's row in the table of marks.
fn key(source: SourceId) -> Vec<u8> {
    [b"source ".as_slice(), &source.get().to_be_bytes()].concat()
}

impl Database {
    /// Returns the roots of a source's history, if a build that searches them has registered it.
    ///
    /// # Errors
    /// If the database fails.
    pub fn source_roots(&self, source: SourceId) -> Result<Option<SourceRoots>, StoreError> {
        let tables = self.mapped.tables()?;
        tables.marks.get(&*tables.read()?, &key(source))
    }

    /// Writes the roots of a source's history.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn put_source_roots(
        &self,
        to: &mut WriteTransaction<'_>,
        source: SourceId,
        roots: &SourceRoots,
    ) -> Result<(), StoreError> {
        to.1.marks.put(&mut to.0, &key(source), roots)
    }
}

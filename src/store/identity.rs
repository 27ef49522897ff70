//! What a source is beside its name and place: the commits with which its history begins.
//!
//! In and out: commit ids. **Invariant:** it is a row of its own, so that stores without it open unchanged in either direction;
//! a source that has none was registered by an earlier build, or is not to be told apart by its history.

use super::{Database, StoreError, WriteTransaction};
use serde::{Deserialize, Serialize};
use snapshots::{CommitId, SourceId};

/// What the history of a source begins with.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SourceRoots {
    roots: Vec<[u8; 20]>,
    /// Whether they were looked for; a history may be too long, or cut off.
    pub is_known: bool,
}

impl SourceRoots {
    /// Notes root commits that were looked for.
    #[must_use]
    pub fn new(roots: &[CommitId]) -> Self {
        Self { roots: roots.iter().map(|root| *root.as_bytes()).collect(), is_known: true }
    }

    /// Returns the root commits.
    pub fn roots(&self) -> impl Iterator<Item = CommitId> {
        self.roots.iter().map(|root| CommitId::from_bytes(*root))
    }
}

/// Names the row of a source in the table of marks.
fn key(source: SourceId) -> Vec<u8> {
    [b"source ".as_slice(), &source.get().to_be_bytes()].concat()
}

impl Database {
    /// Returns what the history of a source begins with, if a build that asks has registered it.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn source_roots(&self, source: SourceId) -> Result<Option<SourceRoots>, StoreError> {
        let tables = self.mapped.tables()?;
        tables.marks.get(&*tables.read()?, &key(source))
    }

    /// Notes what the history of a source begins with.
    ///
    /// # Errors
    /// Where the disk is full.
    pub fn put_source_roots(
        &self,
        to: &mut WriteTransaction<'_>,
        source: SourceId,
        roots: &SourceRoots,
    ) -> Result<(), StoreError> {
        to.1.marks.put(&mut to.0, &key(source), roots)
    }
}

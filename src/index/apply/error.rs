//! Reasons why a publish fails.

use crate::index::lexical::LexicalError;
use crate::index::vector::VectorError;
use crate::store::StoreError;
use dataflows::data::DocumentPath;
use snapshots::{ArchiveError, OrdinalsExhausted};
use std::path::PathBuf;

/// Reason why a batch of epochs was not published; nothing of it is visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The database failed.
    #[error("cannot publish: the store failed")]
    Store(#[from] StoreError),
    /// The lexical index failed.
    #[error("cannot publish: the lexical index failed")]
    Lexical(#[from] LexicalError),
    /// The vector index failed.
    #[error("cannot publish: the vector index failed")]
    Vector(#[from] VectorError),
    /// The version log failed.
    #[error("cannot publish: the version log failed")]
    Archive(#[from] ArchiveError),
    /// All ordinals are used.
    #[error("cannot publish")]
    Ordinals(#[from] OrdinalsExhausted),
    /// The graph and the store disagree on the live entries.
    #[error(
        "cannot publish: the graph moved a {what} of {path} by {change}, which does not fit what is alive; start again to rebuild the graph from the last version"
    )]
    Inexact {
        /// Entry or document.
        what: &'static str,
        /// Its path.
        path: DocumentPath,
        /// The requested change of its count.
        change: isize,
    },
    /// The version log is shorter than at the last write of the database.
    #[error(
        "{} is gone or shorter than what was published; restore it from a backup, or track again into a new folder",
        path.display()
    )]
    LogGone {
        /// The log.
        path: PathBuf,
    },
    /// The catalogue lacks rows of entries or documents that versions hold.
    #[error(
        "the database lacks {missing} rows that its versions name; restore it from a backup, or track again into a new folder"
    )]
    RowsGone {
        /// Their number, at least.
        missing: u64,
    },
    /// A text or vector that an index needs is missing from the database.
    #[error(
        "cannot mend the indexes: the database has no {what} of an entry of {path}; restore it from a backup, or track again into a new folder"
    )]
    ResultGone {
        /// The missing thing.
        what: &'static str,
        /// The path of the entry.
        path: DocumentPath,
    },
    /// A broken invariant.
    #[error("cannot publish: {0}; start again to rebuild the graph from the last version")]
    Unexpected(&'static str),
}

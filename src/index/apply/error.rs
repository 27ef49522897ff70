//! What stops a publish.

use crate::index::lexical::LexicalError;
use crate::index::vector::VectorError;
use crate::store::StoreError;
use dataflows::data::DocumentPath;
use snapshots::{ArchiveError, OrdinalsExhausted};

/// Why a batch of epochs was not published; nothing of it is visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The database refused.
    #[error("cannot publish: the store failed")]
    Store(#[from] StoreError),
    /// The lexical index refused.
    #[error("cannot publish: the lexical index failed")]
    Lexical(#[from] LexicalError),
    /// The vector index refused.
    #[error("cannot publish: the vector index failed")]
    Vector(#[from] VectorError),
    /// The version log refused.
    #[error("cannot publish: the version log failed")]
    Archive(#[from] ArchiveError),
    /// All ordinals are used.
    #[error("cannot publish")]
    Ordinals(#[from] OrdinalsExhausted),
    /// The graph and the store disagree on what is alive.
    #[error(
        "cannot publish: the graph moved a {what} of {path} by {change}, which does not fit what is alive; start again to rebuild the graph from the last version"
    )]
    Inexact {
        /// Entry or document.
        what: &'static str,
        /// Where it stands.
        path: DocumentPath,
        /// By how much it was to change.
        change: isize,
    },
    /// Something that cannot be, by what other parts promise.
    #[error("cannot publish: {0}; start again to rebuild the graph from the last version")]
    Unexpected(&'static str),
}

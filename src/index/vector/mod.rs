//! Vectors under their ordinals, on disk and in memory, and the nearest of them for any version.
//!
//! In: (ordinal, vector) rows, appended once per physical commit. Out: for a version's bitmap and a question's vector, the exact
//! nearest entries with their cosines.
//!
//! **Invariant:** an ordinal has at most one vector, which never changes, and a score depends on the two vectors only: the same
//! bits in any segments. So a ranked list is a function of version and question, not of history.
//!
//! ```text
//! VectorWriter ── append ──► tail file ── full ──► sealed file        one process, holds the store's lock
//!      │                        │                      │
//!      ▼                        ▼                      ▼
//! VectorSet = immutable segments ◄──────────── VectorReader::refresh   any number of processes
//!      │
//!      └─ search(bitmap, question, k, order of ties)
//! ```
//!
//! Each append makes a tiny immutable segment; small ones are merged geometrically, so there are never more than some fifteen,
//! and a [`VectorSet`] in use by a search never changes. Retracting an entry clears its bit in the version's bitmap; rows are
//! removed only when no kept version needs them. An entry without a vector is in no segment.
//!
//! A segment uses FAISS (`SQfp16`, inner product) or, without the feature or without AVX2, a scan in plain Rust; both are exact.
//! Other modules make vectors, assign ordinals and own the commit point.

mod check;
mod clustered;
mod codes;
mod collect;
mod earlier;
#[cfg(feature = "faiss")]
mod faiss;
mod files;
mod flat;
mod folder;
mod format;
mod lost;
mod near;
mod reader;
mod rows;
mod scan;
mod sealed;
mod search;
mod segment;
mod set;
mod stored;
mod tiers;
mod upkeep;
mod writer;

#[cfg(test)]
mod tests;

pub use check::{VectorCheck, check};
#[cfg(feature = "faiss")]
pub(crate) use faiss::end_at_once;
pub use format::Shape;
pub use reader::VectorReader;
pub use scan::Backend;
pub use search::{Nearest, Reach};
pub use set::VectorSet;
pub use writer::{Healed, VectorWriter};

use dataflows::data::ModelId;
use snapshots::Ordinal;
use std::io;
use std::path::PathBuf;

/// Errors of the vector index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The file system failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The attempted operation, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The content of a file is not what was written.
    #[error(
        "`{}` is damaged: {reason}; start `tidemill track` on this store: it sets the file aside and makes its vectors \
         again from the texts", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The finding.
        reason: String,
    },
    /// A file in a format that this build does not know.
    #[error(
        "`{}` is vector format {found}, this build reads formats 1 to {}; use the release that wrote it, or build the \
         store again", path.display(), format::STORED
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A file with the vectors of another model.
    #[error(
        "`{}` holds vectors of model {found_model} with {found_dimensions} components, and {} with {} is configured; \
         go back to that model, or build the store again", path.display(), expected.model, expected.dimensions
    )]
    OtherModel {
        /// The file.
        path: PathBuf,
        /// Its model's fingerprint.
        found_model: ModelId,
        /// Its number of components.
        found_dimensions: u32,
        /// The caller's properties.
        expected: Shape,
    },
    /// A vector or question of another model than the set's.
    #[error("a vector has {found} components where {expected} are expected; embed it with the store's model")]
    OtherDimensions {
        /// Its number of components.
        found: usize,
        /// The set's.
        expected: usize,
    },
    /// A question without a direction.
    #[error("the question's vector {reason}, so it is near to nothing; search by words instead")]
    Query {
        /// The problem.
        reason: &'static str,
    },
    /// An ordinal that already has another vector.
    #[error(
        "ordinal {ordinal} has another vector already; ordinals are never reused, so check the store with `tidemill snapshots verify`"
    )]
    Conflict {
        /// The ordinal.
        ordinal: Ordinal,
    },
    /// An earlier write failed, and the content of the file is unknown.
    #[error("an earlier write to `{}` failed; open the store again, which mends it", path.display())]
    Interrupted {
        /// The directory of the vectors.
        path: PathBuf,
    },
    /// Files could not be rewritten.
    #[error("vectors cannot be rearranged: {reason}; they are searched as they lie")]
    Upkeep {
        /// The failure.
        reason: &'static str,
    },
    /// FAISS failed.
    #[error("FAISS cannot {action}: {message}")]
    Faiss {
        /// The attempted operation, as a verb.
        action: &'static str,
        /// Its own message.
        message: String,
    },
}

impl VectorError {
    /// Names the attempt and the path of a failed call of the file system.
    fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    fn damaged(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), reason: reason.into() }
    }
}

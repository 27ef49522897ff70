//! Vectors under their ordinals, on disk and in memory, and the nearest of them for any version.
//!
//! In: (ordinal, vector) rows, appended once a physical commit. Out: for a version's bitmap and a question's vector, the
//! exact nearest entries with their cosines.
//!
//! **Invariant:** an ordinal has at most one vector, which is never changed, and a score depends on the two vectors
//! only: the same bits whatever segments the rows happen to lie in. So a ranked list is a function of version and
//! question, not of history.
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
//! Each append makes a tiny immutable segment; small ones are merged geometrically, so there are never more than some
//! fifteen, and a [`VectorSet`] that is being searched is never touched. To retract an entry is to clear its bit in the
//! version's bitmap; rows go only when no version that is kept needs them. An entry without a vector is in no segment.
//!
//! Behind a segment stands FAISS (`SQfp16`, inner product) or, where the feature is off or the processor lacks AVX2, a
//! scan in plain Rust; both are exact. Making vectors, allotting ordinals and the commit point are left to others.

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

/// What went wrong with the vectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The file system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file does not hold what was written to it.
    #[error(
        "`{}` is damaged: {reason}; start `tidemill track` on this store: it sets the file aside and makes its vectors \
         again from the texts", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A file of a release that this one does not know.
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
        /// What the caller works with.
        expected: Shape,
    },
    /// A vector or question that is not of the set's model.
    #[error("a vector has {found} components where {expected} are expected; embed it with the store's model")]
    OtherDimensions {
        /// Its number of components.
        found: usize,
        /// The set's.
        expected: usize,
    },
    /// A question that has no direction.
    #[error("the question's vector {reason}, so it is near to nothing; search by words instead")]
    Query {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An ordinal that has another vector already.
    #[error(
        "ordinal {ordinal} has another vector already; ordinals are never reused, so check the store with `tidemill snapshots verify`"
    )]
    Conflict {
        /// The ordinal.
        ordinal: Ordinal,
    },
    /// An earlier write failed, and what the file holds is not known.
    #[error("an earlier write to `{}` failed; open the store again, which mends it", path.display())]
    Interrupted {
        /// The directory of the vectors.
        path: PathBuf,
    },
    /// Files could not be written anew.
    #[error("vectors cannot be rearranged: {reason}; they are searched as they lie")]
    Upkeep {
        /// What happened.
        reason: &'static str,
    },
    /// FAISS refused.
    #[error("FAISS cannot {action}: {message}")]
    Faiss {
        /// What was attempted, as a verb.
        action: &'static str,
        /// Its own words.
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

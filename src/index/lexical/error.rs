//! What can go wrong in the lexical index.
//!
//! **Invariant:** each variant names what was attempted; the cause prints once, from the chain.

use dataflows::data::Fingerprint;
use snapshots::Ordinal;
use std::path::PathBuf;
use tantivy::TantivyError;

/// What went wrong in the lexical index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LexicalError {
    /// The directory cannot be opened, or another writer holds it.
    #[error("cannot open the lexical index in {}", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: Box<TantivyError>,
    },
    /// The index was made with other fields.
    #[error("the lexical index in {} has other fields than this build knows; index the store again", path.display())]
    Schema {
        /// The directory.
        path: PathBuf,
    },
    /// The index was made by another analyzer, under which the same query has other terms.
    #[error(
        "the lexical index in {} was made by analyzer {found} and this build has {built}; index the store again",
        path.display()
    )]
    Analyzer {
        /// The directory.
        path: PathBuf,
        /// The analyzer that the index names.
        found: String,
        /// The analyzer of this build.
        built: Fingerprint,
    },
    /// The last commit does not say what the next ordinal is.
    #[error("the last commit of the lexical index in {} names no next ordinal; index the store again", path.display())]
    Payload {
        /// The directory.
        path: PathBuf,
    },
    /// An entry could not be added.
    #[error("cannot add entry {} to the lexical index", ordinal.get())]
    Add {
        /// The entry.
        ordinal: Ordinal,
        /// Why.
        source: Box<TantivyError>,
    },
    /// What was added could not be made durable.
    #[error("cannot commit the lexical index")]
    Commit(#[source] Box<TantivyError>),
    /// Segments could not be merged.
    #[error("cannot merge the segments of the lexical index")]
    Merge(#[source] Box<TantivyError>),
    /// The newest segments could not be opened.
    #[error("cannot load the segments of the lexical index")]
    Load(#[source] Box<TantivyError>),
    /// A segment does not give every document one ordinal.
    #[error("segment {segment} of the lexical index is damaged: {what}; verify the store")]
    Segment {
        /// The segment.
        segment: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The segments do not hold the version's entries.
    #[error("the lexical index holds {found} of the version's {expected} entries; load it again, or verify the store")]
    Entries {
        /// Entries of the version.
        expected: u64,
        /// Those among them that the segments hold.
        found: u64,
    },
    /// The statistics are not those of the version.
    #[error("the statistics count {counted} live entries and the version has {expected}; verify the store")]
    Statistics {
        /// Entries of the version.
        expected: u64,
        /// Entries that the statistics count.
        counted: u64,
    },
    /// The index could not be read while it was searched.
    #[error("cannot search the lexical index")]
    Search(#[source] Box<TantivyError>),
}

//! Errors of the lexical index.
//!
//! **Invariant:** each variant names what was attempted; the cause prints once, from the chain.

use dataflows::data::Fingerprint;
use snapshots::Ordinal;
use std::io;
use std::path::PathBuf;
use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError, OpenWriteError};

/// tantivy's error in one phrase: its own text names a file by its last part, and repeats the system's message three times.
#[derive(Debug, thiserror::Error)]
#[error("{}", said(.0))]
pub struct Refused(Box<TantivyError>);

impl<E: Into<TantivyError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

/// Returns the system's error if that is the cause, and else tantivy's.
fn said(error: &TantivyError) -> String {
    let open = |file: &PathBuf, error: &io::Error| format!("{}: {error}", file.display());
    match error {
        TantivyError::IoError(error) => error.to_string(),
        TantivyError::LockFailure(LockError::IoError(error), _) => error.to_string(),
        TantivyError::LockFailure(LockError::LockBusy, _) => "another process writes to it".to_owned(),
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath }) => open(filepath, io_error),
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(file)) => format!("{} is missing", file.display()),
        TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, filepath }) => open(filepath, io_error),
        TantivyError::OpenDirectoryError(OpenDirectoryError::IoError { io_error, directory_path }) => {
            open(directory_path, io_error)
        }
        other => other.to_string(),
    }
}

/// Reason why an operation on the lexical index failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LexicalError {
    /// The directory cannot be opened, or another writer holds it.
    #[error("cannot open the lexical index in {}", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: Refused,
    },
    /// The index was made with other fields.
    #[error("the lexical index in {} has other fields than this build knows; index the store again", path.display())]
    Schema {
        /// The directory.
        path: PathBuf,
    },
    /// Another analyzer made the index, under which the same query has other terms.
    #[error(
        "cannot search the words in {}: analyzer {found} found them, this build has {built}; start `tidemill track` on the \
         store once, which indexes its texts again",
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
    /// The last commit does not contain the next ordinal.
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
        source: Refused,
    },
    /// Added entries could not be made durable.
    #[error("cannot commit the lexical index")]
    Commit(#[source] Refused),
    /// Segments could not be merged.
    #[error("cannot merge the segments of the lexical index")]
    Merge(#[source] Refused),
    /// The newest segments could not be opened.
    #[error("cannot load the segments of the lexical index")]
    Load(#[source] Refused),
    /// A segment does not map every document to one ordinal.
    #[error("segment {segment} of the lexical index is damaged: {what}; verify the store")]
    Segment {
        /// The segment.
        segment: String,
        /// The contradiction.
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
    Search(#[source] Refused),
}

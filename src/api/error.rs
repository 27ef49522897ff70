//! Why there is no answer, and what kind of failure that is.
//!
//! In: errors of the modules below. Out: one type for every door.
//!
//! **Invariant:** a door decides by [`Kind`] alone, so the same failure ends with the same status whichever way it was asked.

use crate::engine::EngineError;
use crate::index::ReaderError;
use crate::index::copy::CopyError;
use crate::search::{BisectError, RevisionError, SearchError};
use crate::store::StoreError;
use snapshots::ArchiveError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The search failed, or what it was asked for is unknown.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The rules cannot be read, or the engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// There is nothing to bisect.
    #[error(transparent)]
    Bisect(#[from] BisectError),
    /// A snapshot cannot be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The path is in none of the sources that were asked.
    #[error("{path} lies in no source that was asked: {sources}; give a path from the root of one")]
    Elsewhere {
        /// The path as it was asked for.
        path: String,
        /// The sources and their locations.
        sources: String,
    },
    /// The source is no repository.
    #[error("{source_name} is a {kind} and has no commits to record; name a git repository")]
    NoCommits {
        /// The source as it was asked for.
        source_name: String,
        /// What it is.
        kind: &'static str,
    },
    /// A row that the version needs is not in the store.
    #[error("{what} is missing from the store; run `tidemill snapshots verify`")]
    Missing {
        /// What is missing, and of what.
        what: String,
    },
}

/// What a part of the store fails with is an error of the search that reads it.
macro_rules! of_search {
    ($($error:ty),*) => { $(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::Search(error.into())
            }
        }
    )* };
}
of_search!(ReaderError, StoreError, ArchiveError);

/// What kind of failure an [`ApiError`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The request is out of bounds, ambiguous, or cannot be read.
    Invalid,
    /// What it names is not there.
    NotFound,
    /// There is no store yet, or nothing was published.
    NotReady,
    /// Another process holds what is needed; trying again later helps.
    Busy,
    /// The store is damaged, or the system refused.
    Failed,
}

impl Kind {
    /// Returns the exit status of a command that fails so. All failures share one: status 2 is kept for arguments that the
    /// command line cannot read at all.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        1
    }

    /// Returns the HTTP status of a request that fails so (RFC 9110, section 15).
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::NotFound => 404,
            Self::Busy | Self::NotReady => 503,
            Self::Failed => 500,
        }
    }
}

impl ApiError {
    /// Returns what kind of failure it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Search(error) => of_search(error),
            Self::Bisect(BisectError::Search(error)) => of_search(error),
            Self::Bisect(_) => Kind::Invalid,
            Self::Elsewhere { .. } => Kind::NotFound,
            Self::NoCommits { .. } => Kind::Invalid,
            Self::Engine(_) | Self::Copy(_) | Self::Missing { .. } => Kind::Failed,
        }
    }
}

const fn of_search(error: &SearchError) -> Kind {
    match error {
        SearchError::Reader(error) => of_reader(error),
        SearchError::Store(error) => of_store(error),
        SearchError::Revision(error) => of_revision(error),
        SearchError::Filter(_)
        | SearchError::EmptyQuery
        | SearchError::LongQuery { .. }
        | SearchError::Hits { .. }
        | SearchError::NoneOfDocument => Kind::Invalid,
        SearchError::Archive(_) | SearchError::Lexical(_) | SearchError::Vector(_) | SearchError::Embed(_) => {
            Kind::Failed
        }
    }
}

const fn of_reader(error: &ReaderError) -> Kind {
    match error {
        ReaderError::Empty => Kind::NotReady,
        ReaderError::Store(error) => of_store(error),
        _ => Kind::Failed,
    }
}

const fn of_store(error: &StoreError) -> Kind {
    match error {
        StoreError::Missing { .. } => Kind::NotReady,
        StoreError::Locked { .. } | StoreError::InUse { .. } => Kind::Busy,
        _ => Kind::Failed,
    }
}

const fn of_revision(error: &RevisionError) -> Kind {
    match error {
        RevisionError::SeveralSources { .. }
        | RevisionError::SeveralCommits { .. }
        | RevisionError::Ambiguous { .. } => Kind::Invalid,
        _ => Kind::NotFound,
    }
}

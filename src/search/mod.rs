//! Search: from a question to ranked hits, in any version.
//!
//! In: a request. Out: hits with text, path, lines, symbol, the snapshot's commit and the commit that introduced them.
//!
//! ```text
//!  request ─► revision (which versions) ─► filter (one more bitmap) ─┬─► BM25    ─┐
//!                                                                    └─► vectors ─┴─► fuse ─► at most m a document ─► hits
//! ```
//!
//! **Invariant:** a search reads one version a source from beginning to end, and needs no tracker: everything comes from
//! the store. The repository is only asked what a name or a time means.

mod bisect;
mod doubt;
mod explain;
mod filter;
mod fuse;
mod hits;
mod lines;
mod ranked;
mod request;
mod rescore;
mod retrieve;
mod revision;
mod thin;

pub use bisect::{BisectError, BisectStep, Bisection, bisect, snapshots_between};
pub use explain::{ExplainedChunk, Explanation, Taken, explain};
pub use filter::{Filter, FilterError, Passing};
pub use hits::IntroducedIn;
pub(crate) use hits::introduced;
pub use hits::{Found, Hit};
pub use lines::{PlacedDocument, document_of, placed_entries};
pub use ranked::{ListName, Ranked, RankedList, Ranks};
pub use request::{Answer, FusionMethod, MAX_HITS, Mode, Request};
pub use retrieve::Searcher;
pub(crate) use revision::show_time;
pub use revision::{RevisionError, Revisions, Selected};

use crate::index::ReaderError;
use crate::index::lexical::LexicalError;
use crate::index::vector::VectorError;
use crate::store::StoreError;
use dataflows::embed::EmbedError;
use snapshots::ArchiveError;

/// Reason why a search gives no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The store cannot be read.
    #[error(transparent)]
    Reader(#[from] ReaderError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The version log failed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The lexical index failed.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The vector index failed.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// The model failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The revision, view or source is unknown.
    #[error(transparent)]
    Revision(#[from] RevisionError),
    /// The filter cannot be parsed.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The query is empty.
    #[error("the query is empty; give some words")]
    EmptyQuery,
    /// The query is too long.
    #[error("the query has {bytes} bytes, and at most {most} are read; give fewer words")]
    LongQuery {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// The number of hits is out of bounds.
    #[error("{asked} hits were asked for; -k is a number from 1 to {most}")]
    Hits {
        /// How many were asked for.
        asked: usize,
        /// How many there may be.
        most: usize,
    },
    /// The limit per document is 0.
    #[error("no document may give a hit; --per-doc must be at least 1")]
    NoneOfDocument,
}

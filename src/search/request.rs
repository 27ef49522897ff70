//! Requests and answers.
//!
//! In: from the command line and other callers. Out: values, with their defaults and bounds.
//!
//! **Invariant:** a request out of bounds is refused by name, and never answered partly.

use super::SearchError;
use super::filter::Filter;
use super::hits::Hit;
use super::revision::Selected;
use crate::index::lexical::MAX_QUERY_BYTES;
use std::time::Duration;

/// The most hits of one request.
pub const MAX_HITS: usize = 10_000;
/// Which index answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Mode {
    /// Both, fused.
    #[default]
    Hybrid,
    /// BM25 only: exactly the entries with at least one term of the query.
    Bm25,
    /// Vectors only.
    Vector,
}

/// How the two lists of a hybrid search become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum FusionMethod {
    /// By the ranks in both lists: reciprocal rank fusion.
    Rrf,
    /// By what each of the best entries has in common with the question.
    #[default]
    Linear,
}

impl Mode {
    /// Returns the name of the mode in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Bm25 => "bm25",
            Self::Vector => "vector",
        }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The question.
    pub query: String,
    /// Which index answers.
    pub mode: Mode,
    /// The number of hits.
    pub k: usize,
    /// Only this source.
    pub source: Option<String>,
    /// This view instead of the default one.
    pub view: Option<String>,
    /// As of this revision.
    pub at: Option<String>,
    /// Only entries that pass.
    pub filter: Option<Filter>,
    /// At most this many entries of one document.
    pub per_document: usize,
    /// Whether identical text at several paths is deduplicated into one hit, which counts once.
    pub fold: bool,
    /// How the two lists of a hybrid search become one.
    pub fusion: FusionMethod,
    /// Whether every living vector is scored, however many there are.
    pub exact: bool,
}

impl Request {
    /// Returns a request with the defaults: hybrid, ten hits, two a document.
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            mode: Mode::Hybrid,
            k: 10,
            source: None,
            view: None,
            at: None,
            filter: None,
            per_document: 2,
            fold: false,
            exact: false,
            fusion: FusionMethod::default(),
        }
    }

    /// Refuses values out of bounds.
    pub(super) fn check(&self) -> Result<(), SearchError> {
        if self.query.trim().is_empty() {
            return Err(SearchError::EmptyQuery);
        }
        if self.query.len() > MAX_QUERY_BYTES {
            return Err(SearchError::LongQuery { bytes: self.query.len(), most: MAX_QUERY_BYTES });
        }
        if !(1..=MAX_HITS).contains(&self.k) {
            return Err(SearchError::Hits { asked: self.k, most: MAX_HITS });
        }
        if self.per_document == 0 {
            return Err(SearchError::NoneOfDocument);
        }
        Ok(())
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The versions that were searched.
    pub at: Vec<Selected>,
    /// Whether the vectors' ranks are those of an exact scan.
    pub exact: bool,
    /// How many entries are owed a vector, where vectors were asked for: what is near may be among them.
    pub without_vector: u64,
    /// From the parsed query to the hits.
    pub took: Duration,
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// The number of words of the query.
    pub terms: usize,
    /// Those of them that occur nowhere in the searched versions, as typed.
    pub unknown_terms: Vec<String>,
    /// The number of terms that were dropped because a query may have only so many.
    pub dropped_terms: usize,
    /// If no entry passes the filter: its terms that match none, or all of it if each matches some, as typed.
    pub empty_filters: Vec<String>,
}

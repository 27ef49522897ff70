//! What is asked, and what is answered.
//!
//! In: from the command line and other doors. Out: values, with their defaults and bounds.
//!
//! **Invariant:** a request beyond its bounds is refused by name, and never answered with less.

use super::SearchError;
use super::filter::Filter;
use super::hits::Hit;
use super::revision::Selected;
use crate::index::lexical::MAX_QUERY_BYTES;
use std::time::Duration;

/// How many hits one request may ask for.
pub const MAX_HITS: usize = 10_000;
/// Which index answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Mode {
    /// Both, fused.
    #[default]
    Hybrid,
    /// Words only: exactly the entries that hold at least one of the query's terms.
    Bm25,
    /// Vectors only.
    Vector,
}

impl Mode {
    /// Returns the word that stands for the mode in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Bm25 => "bm25",
            Self::Vector => "vector",
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The question.
    pub query: String,
    /// Which index answers.
    pub mode: Mode,
    /// How many hits.
    pub k: usize,
    /// Only this source.
    pub source: Option<String>,
    /// This view instead of the default one.
    pub view: Option<String>,
    /// As of this revision.
    pub at: Option<String>,
    /// Only what passes.
    pub filter: Option<Filter>,
    /// At most this many entries of one document.
    pub per_document: usize,
    /// Whether identical text at several paths is one hit, which counts once.
    pub fold: bool,
    /// Whether every living vector is looked at, however many there are.
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
        }
    }

    /// Refuses what is out of bounds.
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
    /// How many words of the query were asked for.
    pub terms: usize,
    /// Those of them that stand nowhere in the versions searched, as they were typed.
    pub unknown_terms: Vec<String>,
    /// How many terms were left out, since a query has only so many.
    pub dropped_terms: usize,
    /// Where no entry passes the filter: its terms that let none pass, or all of it where each lets some, as they were typed.
    pub empty_filters: Vec<String>,
}

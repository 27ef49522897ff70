//! The answer of `search`.
//!
//! In: an answer. Out: its shape, hit by hit.

use super::{WirePath, non_empty};
use crate::search::{Answer, Hit, Ranked, Selected};
use serde::Serialize;
use std::collections::BTreeMap;

/// A version that was searched.
#[derive(Debug, Serialize)]
pub struct At {
    /// The source's name.
    pub source: String,
    /// The view that stands there, or was asked about.
    pub view: Option<String>,
    /// The commit.
    pub commit: String,
    /// When it was published.
    pub epoch: u64,
    /// For how many milliseconds the source has had a commit that the version does not have.
    pub lag_ms: u64,
}

impl At {
    /// Returns the shape of a selected version that is `lag_ms` behind its source.
    #[must_use]
    pub fn new(selected: &Selected, lag_ms: u64) -> Self {
        Self {
            source: selected.source_name.clone(),
            view: selected.view.clone(),
            commit: selected.commit.to_string(),
            epoch: selected.epoch,
            lag_ms,
        }
    }
}

/// The answer of `search`.
#[derive(Debug, Serialize)]
pub struct SearchAnswer {
    /// The question.
    pub query: String,
    /// Which index answered.
    pub mode: &'static str,
    /// The versions that were searched.
    pub at: Vec<At>,
    /// Whether the vectors' ranks are those of an exact scan.
    pub exact: bool,
    /// How many entries should have a vector and have none yet.
    pub without_vector: u64,
    /// Words of the question that stand nowhere in what was searched, as they were typed.
    pub unknown_terms: Vec<String>,
    /// How many terms were left out, since a query has only so many.
    pub dropped_terms: usize,
    /// Where no entry passes the filter: its terms that let none pass.
    pub empty_filters: Vec<String>,
    /// From the parsed query to the hits.
    pub took_ms: f64,
    /// The hits, best first.
    pub hits: Vec<WireHit>,
    /// How many words of the question were asked for.
    #[serde(skip)]
    pub terms: usize,
}

/// One hit.
#[derive(Debug, Serialize)]
pub struct WireHit {
    /// From 1.
    pub rank: usize,
    /// The score that it is ranked by.
    pub score: f32,
    /// The source's name.
    pub source: String,
    /// Where it stands.
    #[serde(flatten)]
    pub path: WirePath,
    /// With `--fold`: every path at which the same text stands, this one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// First and last line.
    pub lines: Option<[u32; 2]>,
    /// What kind of thing it is part of.
    pub kind: &'static str,
    /// The language.
    pub language: Option<String>,
    /// The qualified name.
    pub symbol: Option<String>,
    /// The declaration or heading path.
    #[serde(skip)]
    pub name: String,
    /// The labels of its path.
    pub labels: BTreeMap<String, String>,
    /// The commit that brought it.
    pub introduced_in: Option<String>,
    /// Whether it has no word of the question, and is no nearer to it than chance brings entries.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub weak: bool,
    /// What the score is made of, each part with its points; empty where the score follows from the ranks alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(&'static str, f32)>,
    /// The text.
    pub text: String,
    /// Its place in each list that was fused, by the name of what produced the list.
    pub from: BTreeMap<String, WireRank>,
}

/// A place in one list.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WireRank {
    /// From 1.
    pub rank: usize,
    /// BM25 or cosine.
    pub score: f32,
}

impl From<Ranked> for WireRank {
    fn from(Ranked { rank, score }: Ranked) -> Self {
        Self { rank, score }
    }
}

impl WireHit {
    fn new(hit: Hit) -> Self {
        Self {
            rank: hit.rank,
            score: hit.score,
            source: hit.source,
            path: WirePath::from(&hit.path),
            paths: hit.paths.iter().map(|path| path.display().into_owned()).collect(),
            lines: hit.lines.map(|lines| [lines.first, lines.last]),
            kind: hit.kind.as_str(),
            language: non_empty(&hit.card.language),
            symbol: non_empty(&hit.card.symbol),
            name: hit.card.name,
            labels: hit.card.labels.into_iter().collect(),
            introduced_in: hit.introduced_in.map(|introduced| introduced.to_string()),
            weak: hit.weak,
            points: hit.points,
            text: hit.text,
            from: hit.ranks.iter().map(|(list, ranked)| (list.as_str().to_owned(), ranked.into())).collect(),
        }
    }
}

impl SearchAnswer {
    /// Returns the shape of an answer.
    #[must_use]
    pub fn new(query: &str, mode: &'static str, answer: Answer, at: Vec<At>) -> Self {
        Self {
            query: query.to_owned(),
            mode,
            at,
            exact: answer.exact,
            without_vector: answer.without_vector,
            unknown_terms: answer.unknown_terms,
            dropped_terms: answer.dropped_terms,
            empty_filters: answer.empty_filters,
            took_ms: rounded(answer.took.as_secs_f64() * 1000.0),
            hits: answer.hits.into_iter().map(WireHit::new).collect(),
            terms: answer.terms,
        }
    }
}

/// Returns milliseconds to three decimals: what is behind them is noise.
fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 1000.0).round() / 1000.0
}

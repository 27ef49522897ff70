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
    source: String,
    view: Option<String>,
    commit: String,
    epoch: u64,
    lag_ms: u64,
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
    query: String,
    mode: &'static str,
    at: Vec<At>,
    exact: bool,
    unknown_terms: Vec<String>,
    dropped_terms: usize,
    empty_filters: Vec<String>,
    took_ms: f64,
    hits: Vec<WireHit>,
}

#[derive(Debug, Serialize)]
struct WireHit {
    rank: usize,
    score: f32,
    source: String,
    #[serde(flatten)]
    path: WirePath,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    lines: Option<[u32; 2]>,
    kind: &'static str,
    language: Option<String>,
    symbol: Option<String>,
    labels: BTreeMap<String, String>,
    introduced_in: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    weak: bool,
    text: String,
    from: BTreeMap<String, WireRank>,
}

#[derive(Debug, Serialize)]
struct WireRank {
    rank: usize,
    score: f32,
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
            labels: hit.card.labels.into_iter().collect(),
            introduced_in: hit.introduced_in.map(|introduced| introduced.to_string()),
            weak: hit.weak,
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
            unknown_terms: answer.unknown_terms,
            dropped_terms: answer.dropped_terms,
            empty_filters: answer.empty_filters,
            took_ms: rounded(answer.took.as_secs_f64() * 1000.0),
            hits: answer.hits.into_iter().map(WireHit::new).collect(),
        }
    }
}

/// Returns milliseconds to three decimals: further digits are noise.
fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 1000.0).round() / 1000.0
}

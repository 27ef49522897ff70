//! Re-scoring: the best entries of all lists, ranked by what each shares with the question.
//!
//! In: a question, and the entries that the lists found down to one depth. Out: the same entries with a new score, best first.
//!
//! ```text
//!  lists ─► pool (union, ranks, cosines) ─┬─► words: how much of the question stands in text, name and path; which neighbours
//!                                         ├─► rows: which tokens come near those of the question (late interaction)
//!                                         └─► weights: a linear sum of these; where the vectors know nothing, a sum of ranks
//! ```
//!
//! **Invariant:** a score is a function of the question, the version and the pool, which never depends on how many hits are
//! asked for. Sums are added in `f64` in a fixed order, so they are the same bits on every machine. A model without rows of
//! tokens ranks by the other terms.
//!
//! The form and its constants: `docs/decisions/0045-linear-scores.md`.

mod exact;
mod pool;
mod rows;
mod weights;
mod words;

pub(super) use exact::ExactName;

use super::SearchError;
use super::hits::Found;
use crate::index::vector::VectorSet;
use crate::index::{IndexReader, IndexView, TieOrder};
use dataflows::embed::Embedder;
use pool::Pool;
use std::cmp::Ordering;

/// What a question is compared by.
pub(super) struct Question<'a> {
    /// As it was typed.
    pub(super) text: &'a str,
    /// Its vector, of length 1.
    pub(super) vector: Option<&'a [f32]>,
}

/// What is looked at beside the question.
pub(super) struct Corpus<'a> {
    pub(super) reader: &'a IndexReader,
    pub(super) view: &'a IndexView,
    pub(super) vectors: Option<&'a VectorSet>,
    pub(super) model: &'a dyn Embedder,
}

/// What an entry has in common with a question, each part in its own unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Features {
    /// The cosine of entry and question; 0 for an entry without a vector.
    pub(super) cosine: f64,
    /// The share of the question's terms that stand in text, name or path, by their rarity.
    pub(super) coverage: f64,
    /// The share of the question's parts that stand in the text, by their rarity.
    pub(super) text_coverage: f64,
    /// The share of the question's neighbouring parts that are neighbours in the text.
    pub(super) neighbours: f64,
    /// How near the tokens of symbol and name come to those of the question.
    pub(super) head: f64,
    /// Credit for tokens that come near to those of the question and are not the same.
    pub(super) soft: f64,
    /// How much of the last part of the symbol the question explains.
    pub(super) explained: f64,
    /// How near the tokens come, where a frequent token is weak evidence for a rare one.
    pub(super) weighed: f64,
    /// Its rank among the vectors' entries, from 1.
    pub(super) vector_rank: Option<usize>,
    /// Its rank among the words' entries, from 1.
    pub(super) word_rank: Option<usize>,
}

/// What an entry's own name, typed as the question, is worth: more than all else together.
const EXACT: f64 = 100.0;

/// Ranks the entries of a pool anew; each comes back with its score. Entries whose name the question is come first.
pub(super) fn rescore(
    question: &Question<'_>,
    name: Option<&ExactName>,
    corpus: &Corpus<'_>,
    found: Vec<Found>,
) -> Result<Vec<Found>, SearchError> {
    let pool = Pool::read(question, corpus, &found)?;
    let mut features = words::features(question, corpus, &pool)?;
    if let Some(model) = corpus.model.token_rows() {
        rows::add(question, model, &pool, &mut features)?;
    }
    let mut scored = found;
    for ((found, points), candidate) in scored.iter_mut().zip(weights::points(&features)).zip(&pool.0) {
        let named = name.map_or(0.0, |name| EXACT * name.meets(&candidate.card));
        let score: f64 = points.iter().map(|(_, points)| points).sum();
        found.score = (score + named) as f32;
        found.points = points.into_iter().map(|(part, points)| (part, points as f32)).collect();
        if named > 0.0 {
            found.points.push(("its own name", named as f32));
        }
    }
    scored.sort_by(|left, right| by_score(left, right, corpus.reader));
    Ok(scored)
}

/// Puts the entries whose name the question is in front; the others keep their order and scores.
pub(super) fn names_first(
    name: Option<&ExactName>,
    corpus: &Corpus<'_>,
    found: Vec<Found>,
) -> Result<Vec<Found>, SearchError> {
    let Some(name) = name else { return Ok(found) };
    let records = corpus.reader.catalogue().entries_with_cards(found.iter().map(|found| found.ordinal))?;
    let mut found = found;
    for (found, (_, card)) in found.iter_mut().zip(records) {
        let named = (EXACT * name.meets(&card)) as f32;
        if named > 0.0 {
            found.points = vec![("lists", found.score), ("its own name", named)];
            found.score += named;
        }
    }
    found.sort_by(|left, right| by_score(left, right, corpus.reader));
    Ok(found)
}

fn by_score(left: &Found, right: &Found, ties: &dyn TieOrder) -> Ordering {
    right.score.total_cmp(&left.score).then_with(|| ties.compare(left.ordinal, right.ordinal))
}

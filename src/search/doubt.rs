//! Marks weak hits.
//!
//! In: hits, and the query. Out: the same, with a mark on hits without any word of the query and with a low cosine.
//!
//! **Invariant:** a mark changes no rank and no score. A hit with a word of the query never has one.

use super::SearchError;
use super::hits::Found;
use crate::embedders::StaticModel;
use crate::index::lexical::Asked;
use crate::index::{IndexReader, IndexView};
use roaring::RoaringBitmap;

// Measured by `benches/chance.rs` for the built-in model: `docs/decisions/0036-weak-hits.md`.

/// One in a thousand entries has at least this cosine with an unrelated question.
const CHANCE: f32 = 0.32;
/// For one in a hundred questions of random letters, the nearest entry of a store has at least this cosine.
const CHANCE_OF_LETTERS: f32 = 0.55;
/// The model splits a question into letters if its words have fewer bytes per token.
const LETTERS: f32 = 2.6;

/// Marks what is weak.
pub(super) fn mark(
    found: &mut [Found],
    (query, asked): (&str, &Asked),
    model: &StaticModel,
    view: &IndexView,
    reader: &IndexReader,
) -> Result<(), SearchError> {
    let below = |bound: f32| -> RoaringBitmap {
        let is_far = |found: &&Found| found.bm25.is_none() && found.vector.is_some_and(|vector| vector.score < bound);
        found.iter().filter(is_far).map(|found| found.ordinal.get()).collect()
    };
    let mut far = below(CHANCE_OF_LETTERS);
    if far.is_empty() {
        return Ok(());
    }
    if model.bytes_a_token(query)?.is_none_or(|bytes| bytes >= LETTERS) {
        far = below(CHANCE);
    }
    // An entry outside of the BM25 candidates may still hold a word.
    let words = asked.query.without_phrases();
    let met = view.lexical.search(&words, found.len(), Some(&far), reader)?;
    let met: RoaringBitmap = met.iter().map(|(ordinal, _)| ordinal.get()).collect();
    let weak = far - met;
    found.iter_mut().for_each(|found| found.weak = weak.contains(found.ordinal.get()));
    Ok(())
}

//! Which hits are no better than chance.
//!
//! In: what was found, and the query. Out: the same, with a mark on what has no word of the query and is hardly near to it.
//!
//! **Invariant:** a mark changes no rank and no score. A hit with a word of the query never has one.

use super::SearchError;
use super::hits::Found;
use super::ranked::ListName;
use crate::embedders::StaticModel;
use crate::index::lexical::Asked;
use crate::index::{IndexReader, IndexView};
use roaring::RoaringBitmap;

// Measured by `benches/chance.rs` for the built-in model: `docs/decisions/0036-weak-hits.md`.

/// One in a thousand entries comes as near as this to a question that it has nothing to do with.
const CHANCE: f32 = 0.32;
/// And this near comes the nearest of a store to one in a hundred questions of letters in no order.
const CHANCE_OF_LETTERS: f32 = 0.55;
/// A question whose words have fewer bytes a token is read by the model as letters in no order.
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
        let is_far = |found: &&Found| {
            let ranks = &found.ranks;
            ranks.of(&ListName::BM25).is_none()
                && ranks.of(&ListName::VECTOR).is_some_and(|vector| vector.score < bound)
        };
        found.iter().filter(is_far).map(|found| found.ordinal.get()).collect()
    };
    let mut far = below(CHANCE_OF_LETTERS);
    if far.is_empty() {
        return Ok(());
    }
    if model.bytes_a_token(query)?.is_none_or(|bytes| bytes >= LETTERS) {
        far = below(CHANCE);
    }
    // What is not among the candidates of the words may hold one all the same.
    let words = asked.query.without_phrases();
    let met = view.lexical.search(&words, found.len(), Some(&far), reader)?;
    let met: RoaringBitmap = met.iter().map(|(ordinal, _)| ordinal.get()).collect();
    let weak = far - met;
    found.iter_mut().for_each(|found| found.weak = weak.contains(found.ordinal.get()));
    Ok(())
}

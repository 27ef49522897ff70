//! Which hits are no better than chance.
//!
//! In: what was found, and the query. Out: the same, with a mark on what has no word of the query and is hardly near to it.
//!
//! **Invariant:** a mark changes no rank and no score. A hit with a word of the query never has one.

use super::SearchError;
use super::hits::Found;
use crate::index::lexical::Asked;
use crate::index::{IndexReader, IndexView};
use roaring::RoaringBitmap;

/// The nearest of a store's entries reach this cosine to hardly any question that means nothing: measured by `benches/chance.rs`
/// (`docs/decisions/0036-weak-hits.md`). It belongs to the built-in model.
const CHANCE: f32 = 0.40;

/// Marks what is weak.
pub(super) fn mark(
    found: &mut [Found],
    asked: &Asked,
    view: &IndexView,
    reader: &IndexReader,
) -> Result<(), SearchError> {
    let is_far = |found: &&Found| found.bm25.is_none() && found.vector.is_some_and(|vector| vector.score < CHANCE);
    let far: RoaringBitmap = found.iter().filter(is_far).map(|found| found.ordinal.get()).collect();
    if far.is_empty() {
        return Ok(());
    }
    // What is not among the candidates of the words may hold one all the same.
    let query = asked.query.without_phrases();
    let met = view.lexical.search(&query, found.len(), Some(&far), reader)?;
    let met: RoaringBitmap = met.iter().map(|(ordinal, _)| ordinal.get()).collect();
    let weak = far - met;
    found.iter_mut().for_each(|found| found.weak = weak.contains(found.ordinal.get()));
    Ok(())
}

//! Marks weak hits.
//!
//! In: hits, and the query. Out: the same, with a mark on hits without any word of the query and with a low cosine.
//!
//! **Invariant:** a mark changes no rank and no score. A hit with a word of the query never has one.

use super::SearchError;
use super::hits::Found;
use super::ranked::ListName;
use crate::index::lexical::Asked;
use crate::index::{IndexReader, IndexView};
use dataflows::embed::Embedder;
use roaring::RoaringBitmap;

/// Marks what is weak.
pub(super) fn mark(
    found: &mut [Found],
    (query, asked): (&str, &Asked),
    model: &dyn Embedder,
    view: &IndexView,
    reader: &IndexReader,
) -> Result<(), SearchError> {
    let by_vector_alone = |found: &&Found| found.ranks.of(&ListName::BM25).is_none();
    if found.iter().filter(by_vector_alone).all(|found| found.ranks.of(&ListName::VECTOR).is_none()) {
        return Ok(());
    }
    let Some(bound) = model.chance(query)? else { return Ok(()) };
    let is_far = |found: &&Found| found.ranks.of(&ListName::VECTOR).is_some_and(|vector| vector.score < bound);
    let far = found.iter().filter(by_vector_alone).filter(is_far);
    let far: RoaringBitmap = far.map(|found| found.ordinal.get()).collect();
    if far.is_empty() {
        return Ok(());
    }
    // An entry outside of the BM25 candidates may still hold a word.
    let words = asked.query.without_phrases();
    let met = view.lexical.search(&words, found.len(), Some(&far), reader)?;
    let met: RoaringBitmap = met.iter().map(|(ordinal, _)| ordinal.get()).collect();
    let weak = far - met;
    found.iter_mut().for_each(|found| found.weak = weak.contains(found.ordinal.get()));
    Ok(())
}

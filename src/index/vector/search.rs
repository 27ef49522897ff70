//! The exact nearest entries of one version.
//!
//! In: segments, the version's bitmap (and-ed with a filter, where there is one), a question's vector, k, and the order
//! of ties. Out: at most k (ordinal, cosine) pairs, best first.
//!
//! **Invariant:** the result is the first k of all living entries under (score descending, order of ties), whatever
//! segments they lie in.
//!
//! Many entries share one vector (4 % of a large repository, 47 in the largest group), and an engine leaves open which
//! of several equal scores at its border it returns. So a segment is asked again for twice as many while the last score
//! it returned could still belong to the first k.

use super::VectorError;
use super::segment::VectorSegment;
use crate::index::{TieOrder, TopK};
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::sync::Arc;

/// How many more than k a segment is asked for at first, so that short runs of equal scores need no second scan.
const MARGIN: usize = 6;

/// A question's vector, scaled to length 1, so that scores are cosines and no product overflows.
pub(super) struct Question(Vec<f32>);

impl Question {
    pub(super) fn new(components: &[f32], dimensions: usize) -> Result<Self, VectorError> {
        if components.len() != dimensions {
            return Err(VectorError::OtherDimensions { found: components.len(), expected: dimensions });
        }
        if components.iter().any(|component| !component.is_finite()) {
            return Err(VectorError::Query { reason: "is not finite" });
        }
        let squares: f64 = components.iter().map(|&component| f64::from(component) * f64::from(component)).sum();
        if squares == 0.0 {
            return Err(VectorError::Query { reason: "is zero" });
        }
        let length = squares.sqrt();
        Ok(Self(components.iter().map(|&component| (f64::from(component) / length) as f32).collect()))
    }

    pub(super) fn components(&self) -> &[f32] {
        &self.0
    }
}

/// Returns the best `k` of `entries` with their cosines, best first.
pub(super) fn search(
    segments: &[Arc<VectorSegment>],
    entries: &RoaringBitmap,
    question: &Question,
    k: usize,
    order: &dyn TieOrder,
) -> Result<Vec<(Ordinal, f32)>, VectorError> {
    let mut best = TopK::new(k, order);
    if k == 0 {
        return Ok(Vec::new());
    }
    for segment in segments {
        let alive = segment.alive(entries);
        let mut count = k.saturating_add(MARGIN).min(alive.count());
        while count > 0 {
            let found = segment.best(question, &alive, count)?;
            let settled = count == alive.count()
                || found.last().is_none_or(|&(_, last)| {
                    !best.admits(last) || found.get(k - 1).is_some_and(|&(_, border)| last < border)
                });
            if settled {
                for (ordinal, score) in found {
                    best.push(ordinal, score);
                }
                break;
            }
            count = count.saturating_mul(2).min(alive.count());
        }
    }
    Ok(best.into_ranked())
}

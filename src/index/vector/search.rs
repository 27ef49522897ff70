//! The nearest entries of one version.
//!
//! In: segments, the version's bitmap (intersected with a filter, if any), a question's vector, k, and the order of ties. Out: at
//! most k (ordinal, cosine) pairs, best first, and whether every live row was scored.
//!
//! **Invariant:** the result is the first k of all scored live entries, under (score descending, order of ties), for any segments
//! and any number of threads. It is exact unless it says otherwise.
//!
//! ```text
//! flat segments ──────────────────────────────────── all ─┐
//! clustered: few living in all of them ── all of their lists ─┼─► scans, on all threads ─► TopK
//!            many living ── the rows that codes let pass ─────┘
//! ```
//!
//! Many entries share one vector (4 % of a large repository, 47 in the largest group), and an engine may return any of several
//! equal scores at its border. So a segment is asked again for twice as many while its last score could still belong to the first
//! k.

use super::VectorError;
use super::near::parts_of;
use super::scan::{Alive, Backend};
use super::segment::{Gathered, VectorSegment};
use super::set::Blocks;
use crate::index::{TieOrder, TopK};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use snapshots::Ordinal;

/// How many more than k are requested of a segment at first, so that short runs of equal scores need no second scan.
const MARGIN: usize = 6;
/// How many are requested once k are known: most segments add few.
const FEW: usize = 16;
/// For fewer rows a second thread takes longer to wake than it saves.
const PARALLEL_ROWS: usize = 16_384;
/// So many rows of segments without an engine are looked at together: their memory, of a megabyte or two, is used again and again.
const GATHERED_ROWS: usize = if cfg!(test) { 64 } else { 1024 };

/// The extent of a search.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Reach {
    /// In large segments with many live entries, only the promising rows of near lists.
    #[default]
    Near,
    /// Every living row.
    All,
}

/// The result of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct Nearest {
    /// The best, best first, with their cosines.
    pub ranked: Vec<(Ordinal, f32)>,
    /// Whether every live row was scored, so that none is missing.
    pub exact: bool,
}

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

/// Rows to score: a segment, or a list of one, with its live positions.
pub(super) struct Part<'a> {
    pub(super) segment: &'a VectorSegment,
    pub(super) alive: Alive,
}

/// Returns the best `k` of `entries` with their cosines, best first.
pub(super) fn search(
    blocks: &Blocks,
    entries: &RoaringBitmap,
    question: &Question,
    k: usize,
    reach: Reach,
    order: &dyn TieOrder,
) -> Result<Nearest, VectorError> {
    if k == 0 {
        return Ok(Nearest { ranked: Vec::new(), exact: true });
    }
    let (mut parts, exact) = parts_of(&blocks.clustered, entries, question, k, reach)?;
    parts.extend(blocks.flat.iter().map(|segment| Part { segment, alive: segment.alive(entries) }));
    parts.retain(|part| part.alive.count() > 0);
    let rows: usize = parts.iter().map(|part| part.segment.len()).sum();
    let threads = if rows < PARALLEL_ROWS { 1 } else { rayon::current_num_threads() };
    // Dealt in turn, so that each thread gets near lists first.
    let look = |thread: usize| {
        let (mut best, mut gathered) = (TopK::new(k, order), Gathered::default());
        for part in parts.iter().skip(thread).step_by(threads) {
            if part.segment.is_ready()? {
                let find = |count| part.segment.best(question, &part.alive, count);
                look_at(part.alive.count(), k, &mut best, find)?;
                continue;
            }
            part.segment.gather(&part.alive, &mut gathered)?;
            if gathered.len() >= GATHERED_ROWS {
                look_at_gathered(&mut gathered, part.segment.backend(), question, k, &mut best)?;
            }
        }
        if let Some(part) = parts.first().filter(|_| gathered.len() > 0) {
            look_at_gathered(&mut gathered, part.segment.backend(), question, k, &mut best)?;
        }
        Ok(best)
    };
    let ranked = if threads == 1 {
        look(0)?.into_ranked()
    } else {
        let found = (0..threads).into_par_iter().map(look).collect::<Result<Vec<_>, VectorError>>()?;
        let mut best = TopK::new(k, order);
        for (ordinal, score) in found.into_iter().flat_map(TopK::into_ranked) {
            best.push(ordinal, score);
        }
        best.into_ranked()
    };
    Ok(Nearest { ranked, exact })
}

/// Offers the best of gathered rows to those found before.
fn look_at_gathered(
    gathered: &mut Gathered,
    backend: Backend,
    question: &Question,
    k: usize,
    best: &mut TopK<'_>,
) -> Result<(), VectorError> {
    let scan = gathered.take(backend, question.components().len())?;
    look_at(scan.len(), k, best, |count| scan.best(question, count))
}

/// Offers the best of so many living rows to those found before; `find` returns so many of the best.
fn look_at(
    living: usize,
    k: usize,
    best: &mut TopK<'_>,
    find: impl Fn(usize) -> Result<Vec<(Ordinal, f32)>, VectorError>,
) -> Result<(), VectorError> {
    // A score below all others is admitted only while fewer than k are known.
    let at_first = if best.admits(f32::NEG_INFINITY) { k.saturating_add(MARGIN) } else { FEW };
    let mut count = at_first.min(living);
    while count > 0 {
        let found = find(count)?;
        let settled = count == living
            || found.last().is_none_or(|&(_, last)| {
                !best.admits(last) || found.get(k - 1).is_some_and(|&(_, border)| last < border)
            });
        if settled {
            for (ordinal, score) in found {
                best.push(ordinal, score);
            }
            break;
        }
        count = count.saturating_mul(2).min(living);
    }
    Ok(())
}

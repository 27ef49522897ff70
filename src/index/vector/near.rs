//! Selects the rows of clustered segments that a search scores.
//!
//! In: segments, the version's bitmap, a question. Out: the positions of each visited list to score, and whether those are all
//! live ones.
//!
//! ```text
//!  few live rows in all of them ── every live row of every list
//!  many live rows ── the nearest lists until they hold a share of the live rows ── of their rows those with the best estimates
//! ```
//!
//! **Invariant:** only live rows are scored, and the selection follows from rows, lists, bitmap and question, not from the number
//! of threads.

use super::VectorError;
use super::clustered::ClusteredSegment;
use super::codes::CodedQuestion;
use super::scan::Alive;
use super::search::{Part, Question, Reach};
use crate::index::window::Window;
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::cmp::Ordering;
use std::sync::Arc;

/// Up to so many live rows of clustered segments, all of their lists are visited: an exact search is affordable.
const EXHAUSTIVE_ROWS: u64 = 131_072;
/// The codes of one in so many live rows are read when lists are selected (`docs/decisions/0017-short-codes.md`).
const SHARE: u64 = 4;
/// Scored rows per k (`docs/decisions/0017-short-codes.md`).
const ROWS_FOR_EACH: usize = 8;
/// Least number of scored rows for any k.
const FEWEST_ROWS: usize = 1024;
/// So many lists are visited by nearness, so that a good bar is known early. The rest is visited in memory order, because memory
/// limits the reading of codes.
const NEAREST_FIRST: usize = 64;
/// If at most one in so many rows of a segment is dead, all of them count when lists are selected.
const NEARLY_ALL: u64 = 16;

/// A segment with live rows.
struct Met<'a> {
    segment: &'a ClusteredSegment,
    living: Window,
    /// Whether hardly any row is dead.
    is_alive: bool,
}

impl Met<'_> {
    /// Returns how many rows of a list are alive, approximately.
    fn living_in(&self, list: u32) -> u64 {
        let list = self.segment.list(list);
        if self.is_alive {
            list.len() as u64
        } else {
            list.ordinals().filter(|&ordinal| self.living.contains(ordinal)).count() as u64
        }
    }
}

/// A list that is visited.
struct Visit<'a, 'm> {
    met: &'m Met<'a>,
    /// The index of its `met`.
    at: usize,
    list: u32,
    /// The inner product of the list's centroid with the question.
    nearness: f32,
}

/// Returns the rows to score, and whether those are all live rows.
pub(super) fn parts_of<'a>(
    clustered: &'a [Arc<ClusteredSegment>],
    entries: &RoaringBitmap,
    question: &Question,
    k: usize,
    reach: Reach,
) -> Result<(Vec<Part<'a>>, bool), VectorError> {
    let mut living = 0;
    let mut met = Vec::new();
    for segment in clustered {
        let here = segment.bitmap().intersection_len(entries);
        if here > 0 {
            living += here;
            let is_alive = (segment.len() as u64 - here) * NEARLY_ALL <= segment.len() as u64;
            met.push(Met { segment, living: segment.window(entries), is_alive });
        }
    }
    let limit = k.saturating_mul(ROWS_FOR_EACH).max(FEWEST_ROWS);
    if reach == Reach::All || living <= EXHAUSTIVE_ROWS.max(limit as u64) {
        let every = met.iter().flat_map(|met| (0..met.segment.lists()).map(move |list| (met, list)));
        let parts = every.map(|(met, list)| {
            let segment = met.segment.list(list);
            Part { segment, alive: segment.alive_in(&met.living) }
        });
        return Ok((parts.collect(), true));
    }
    let visits = nearest(&met, question, (living / SHARE).max(limit as u64))?;
    let mut positions: Vec<Vec<usize>> = vec![Vec::new(); visits.len()];
    for candidate in candidates(&visits, question, limit)? {
        positions[candidate.visit as usize].push(candidate.position as usize);
    }
    let parts =
        visits.iter().zip(positions).filter(|(_, positions)| !positions.is_empty()).map(|(visit, mut positions)| {
            positions.sort_unstable();
            let segment = visit.met.segment.list(visit.list);
            Part { segment, alive: Alive::from_runs(segment.len(), positions.into_iter().map(|at| (at, at + 1))) }
        });
    Ok((parts.collect(), false))
}

/// Returns the nearest lists that together hold `wanted` live rows.
fn nearest<'a, 'm>(met: &'m [Met<'a>], question: &Question, wanted: u64) -> Result<Vec<Visit<'a, 'm>>, VectorError> {
    let nearest = |(at, met): (usize, &Met<'_>)| -> Result<Vec<(f32, usize, u32)>, VectorError> {
        let lists = met.segment.nearest_lists(question)?;
        Ok(lists.into_iter().map(|(list, nearness)| (nearness, at, list)).collect())
    };
    let mut lists = met.par_iter().enumerate().map(nearest).collect::<Result<Vec<_>, VectorError>>()?.concat();
    lists.par_sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut visits = Vec::new();
    let mut seen = 0;
    for (nearness, at, list) in lists {
        if seen >= wanted {
            break;
        }
        let met = &met[at];
        seen += met.living_in(list);
        visits.push(Visit { met, at, list, nearness });
    }
    if let Some(others) = visits.get_mut(NEAREST_FIRST..) {
        others.sort_unstable_by_key(|visit| (visit.at, visit.list));
    }
    Ok(visits)
}

/// A row that may be among the best.
#[derive(Clone, Copy)]
struct Candidate {
    estimate: f32,
    visit: u32,
    position: u32,
}

impl Candidate {
    /// The better one is less.
    fn compare(&self, other: &Self) -> Ordering {
        let place = |candidate: &Self| (candidate.visit, candidate.position);
        other.estimate.total_cmp(&self.estimate).then_with(|| place(self).cmp(&place(other)))
    }
}

/// Keeps the best `limit`, at least one, of the offered rows.
struct Shortlist {
    limit: usize,
    /// Rows with a worse estimate are not among them.
    bar: f32,
    kept: Vec<Candidate>,
}

impl Shortlist {
    const fn new(limit: usize) -> Self {
        Self { limit, bar: f32::NEG_INFINITY, kept: Vec::new() }
    }

    fn offer(&mut self, candidate: Candidate) {
        self.kept.push(candidate);
        if self.kept.len() >= self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.limit {
            let (_, worst, _) = self.kept.select_nth_unstable_by(self.limit - 1, Candidate::compare);
            self.bar = worst.estimate;
            self.kept.truncate(self.limit);
        }
    }

    fn into_best(mut self) -> Vec<Candidate> {
        self.cut();
        self.kept
    }
}

/// Returns the live rows of the visited lists with the best estimates, at most `limit` of them.
fn candidates(visits: &[Visit<'_, '_>], question: &Question, limit: usize) -> Result<Vec<Candidate>, VectorError> {
    let coded = CodedQuestion::new(question);
    let threads = rayon::current_num_threads();
    // Dealt in turn, so that each thread gets near lists first.
    let shortlist = |thread: usize| {
        let mut best = Shortlist::new(limit);
        for (number, visit) in visits.iter().enumerate().skip(thread).step_by(threads) {
            let list = visit.met.segment.list(visit.list);
            visit.met.segment.guide()?.estimate(visit.list, visit.nearness, &coded, |position, estimate| {
                if estimate >= best.bar && visit.met.living.contains(list.ordinal(position)) {
                    best.offer(Candidate { estimate, visit: number as u32, position: position as u32 });
                }
            });
        }
        Ok(best.into_best())
    };
    let kept = (0..threads).into_par_iter().map(shortlist).collect::<Result<Vec<_>, VectorError>>()?.concat();
    Ok(Shortlist { kept, ..Shortlist::new(limit) }.into_best())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::index::cases(128))]

        #[test]
        fn a_shortlist_is_the_front_of_a_full_sort_however_its_candidates_are_dealt_out(
            estimates in prop::collection::vec(0_u8..12, 0..80),
            limit in 1_usize..20,
            threads in 1_usize..4,
        ) {
            let all: Vec<Candidate> = (0..).zip(&estimates).map(|(place, &estimate)| {
                Candidate { estimate: f32::from(estimate), visit: place / 7, position: place % 7 }
            }).collect();
            let mut kept = Vec::new();
            for thread in 0..threads {
                let mut best = Shortlist::new(limit);
                for candidate in all.iter().skip(thread).step_by(threads).filter(|candidate| candidate.visit != 3) {
                    if candidate.estimate >= best.bar {
                        best.offer(*candidate);
                    }
                }
                kept.extend(best.into_best());
            }
            let mut found = Shortlist { kept, ..Shortlist::new(limit) }.into_best();
            found.sort_by(Candidate::compare);
            let mut expected: Vec<Candidate> = all.into_iter().filter(|candidate| candidate.visit != 3).collect();
            expected.sort_by(Candidate::compare);
            expected.truncate(limit);
            let places = |candidates: &[Candidate]| -> Vec<(u32, u32)> {
                candidates.iter().map(|candidate| (candidate.visit, candidate.position)).collect()
            };
            prop_assert_eq!(places(&found), places(&expected));
        }
    }
}

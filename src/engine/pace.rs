//! How long what is under way takes, so that one source does not fill the graph for long where others share it.
//!
//! In: what was fed, and when it was published. Out: how many changes of a head are worked on in about half a second.
//!
//! | what is known of a head | its next slice |
//! |---|---|
//! | nothing | a few files: they may be hostile |
//! | the time of its last slices | as many as take half a second at that pace, at most four times as many as before |
//!
//! **Invariant:** this decides how a step is cut and never what comes of it: versions, digests and receipts do not depend on the cuts
//! ([0016](../../docs/decisions/0016-slices.md)). A head that slows down is believed at once, one that speeds up by halves.

use dataflows::data::View;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A head of the graph, and whether it only restores what the store holds, which is much faster than what is new.
pub(super) type Head = (View, bool);

/// How long one slice should take.
const SLICE: Duration = Duration::from_millis(400);
/// How long all that is under way should take.
const OPEN: Duration = Duration::from_millis(1_000);
/// Changes in the first slice of a head.
const FIRST: usize = 16;
/// How many times larger than the last one a slice may be.
const GROWTH: usize = 4;
/// Seconds that a change is taken for to need while nothing is known.
const GUESS: f64 = 0.02;
/// Heads that are remembered; tags and past commits pass on one.
const MAX_HEADS: usize = 4_096;

/// An epoch that is under way.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) head: Head,
    pub(super) changes: usize,
    pub(super) at: Instant,
}

#[derive(Clone, Copy)]
struct Pace {
    /// Seconds a change.
    seconds: f64,
    /// Changes of the last slice.
    slice: usize,
}

/// The paces of all heads, and what is under way.
#[derive(Default)]
pub(super) struct Paces {
    heads: FxHashMap<Head, Pace>,
    open: VecDeque<Open>,
    last: Option<Instant>,
}

impl Paces {
    /// Notes that an epoch was fed.
    pub(super) fn fed(&mut self, open: Open) {
        self.open.push_back(open);
    }

    /// Notes that so many epochs were published, in the order in which they were fed.
    pub(super) fn published(&mut self, number: usize) {
        let now = Instant::now();
        let number = number.min(self.open.len());
        let published: Vec<Open> = self.open.drain(..number).collect();
        let changes: usize = published.iter().map(|open| open.changes).sum();
        // The first of them was worked on once what was before it was done.
        let begun = published.first().map(|open| self.last.map_or(open.at, |last| last.max(open.at)));
        self.last = Some(now);
        let (Some(begun), true) = (begun, changes > 0) else { return };
        let seconds = now.saturating_duration_since(begun).as_secs_f64() / changes as f64;
        if self.heads.len() > MAX_HEADS {
            self.heads.clear();
        }
        for open in published {
            // A commit of a few files says more of what a publish costs than of a file.
            if open.changes < FIRST && seconds < GUESS * 10.0 && !self.heads.contains_key(&open.head) {
                continue;
            }
            let pace = self.heads.entry(open.head).or_insert(Pace { seconds, slice: open.changes });
            pace.seconds = if seconds > pace.seconds { seconds } else { f64::midpoint(seconds, pace.seconds) };
            pace.slice = open.changes;
        }
    }

    /// Returns how many changes of a head are worked on in about half a second.
    pub(super) fn slice(&self, head: Head) -> usize {
        let Some(pace) = self.heads.get(&head) else { return FIRST };
        let fitting = SLICE.as_secs_f64() / pace.seconds.max(1e-9);
        // A number that is too large for a slice is cut by the growth.
        (fitting as usize).clamp(1, pace.slice.max(FIRST).saturating_mul(GROWTH))
    }

    /// Returns whether what is under way, with so many changes more, takes too long.
    pub(super) fn is_too_much(&self, head: Head, changes: usize) -> bool {
        let seconds =
            |head: Head, changes: usize| self.heads.get(&head).map_or(GUESS, |pace| pace.seconds) * changes as f64;
        let open: f64 = self.open.iter().map(|open| seconds(open.head, open.changes)).sum();
        open + seconds(head, changes) > OPEN.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = (View(1), false);

    /// Publishes a slice that took so many milliseconds, as far as can be told.
    fn publish(paces: &mut Paces, changes: usize, milliseconds: u64) {
        let at = Instant::now() - Duration::from_millis(milliseconds);
        paces.last = None;
        paces.fed(Open { head: HEAD, changes, at });
        paces.published(1);
    }

    #[test]
    fn slices_grow_to_half_a_second_and_shrink_at_once_where_files_are_slow() {
        let mut paces = Paces::default();
        assert_eq!(paces.slice(HEAD), FIRST);
        let mut sizes = Vec::new();
        for _ in 0..6 {
            let size = paces.slice(HEAD);
            sizes.push(size);
            publish(&mut paces, size, size as u64);
        }
        assert_eq!(sizes[..3], [16, 64, 256]);
        assert!(sizes[3..].iter().all(|size| (300..=400).contains(size)), "a millisecond a change: {sizes:?}");
        publish(&mut paces, 390, 390 * 40);
        assert!((9..=10).contains(&paces.slice(HEAD)), "{}", paces.slice(HEAD));
        assert_eq!(paces.slice((View(2), false)), FIRST, "another head is not slow");
    }

    #[test]
    fn about_a_second_of_work_is_under_way_at_the_most() {
        let mut paces = Paces::default();
        publish(&mut paces, 100, 200);
        assert!(!paces.is_too_much(HEAD, 450) && paces.is_too_much(HEAD, 600));
        paces.fed(Open { head: HEAD, changes: 400, at: Instant::now() });
        assert!(paces.is_too_much(HEAD, 150) && !paces.is_too_much((View(2), false), 5));
    }
}

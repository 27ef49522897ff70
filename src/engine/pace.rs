//! Measures the speed of heads, so that one source does not fill the graph for long if several share it.
//!
//! In: fed epochs, with their publishing times. Out: how many changes of a head take about half a second.
//!
//! | known of a head | its next slice |
//! |---|---|
//! | nothing | a few files: they may be hostile |
//! | the time of its last slices | as many as take half a second at that speed, at most four times as many as before |
//!
//! **Invariant:** this decides how a step is cut and never its result: versions, digests and receipts do not depend on the cuts
//! ([0016](../../docs/decisions/0016-slices.md)). A slower measurement counts at once, a faster one by half.

use dataflows::data::View;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A head of the graph, and whether it only restores stored content, which is much faster than new content.
pub(super) type Head = (View, bool);

/// Target time of one slice.
const SLICE: Duration = Duration::from_millis(400);
/// Target time of all work in progress.
const OPEN: Duration = Duration::from_millis(1_000);
/// Changes in the first slice of a head.
const FIRST: usize = 16;
/// How many times larger than the last one a slice may be.
const GROWTH: usize = 4;
/// Assumed seconds per change without measurements.
const GUESS: f64 = 0.02;
/// Most remembered heads; tags and past commits share one.
const MAX_HEADS: usize = 4_096;

/// An epoch in progress.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) head: Head,
    pub(super) changes: usize,
    pub(super) at: Instant,
}

#[derive(Clone, Copy)]
struct Pace {
    /// Seconds per change.
    seconds: f64,
    /// Changes of the last slice.
    slice: usize,
}

/// The speeds of all heads, and the work in progress.
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
        // Work on the first of them began once everything before it was done.
        let begun = published.first().map(|open| self.last.map_or(open.at, |last| last.max(open.at)));
        self.last = Some(now);
        let (Some(begun), true) = (begun, changes > 0) else { return };
        let seconds = now.saturating_duration_since(begun).as_secs_f64() / changes as f64;
        if self.heads.len() > MAX_HEADS {
            self.heads.clear();
        }
        for open in published {
            // For a commit of a few files the time is mostly that of a publish.
            if open.changes < FIRST && seconds < GUESS * 10.0 && !self.heads.contains_key(&open.head) {
                continue;
            }
            let pace = self.heads.entry(open.head).or_insert(Pace { seconds, slice: open.changes });
            pace.seconds = if seconds > pace.seconds { seconds } else { f64::midpoint(seconds, pace.seconds) };
            pace.slice = open.changes;
        }
    }

    /// Returns how many changes of a head take about half a second.
    pub(super) fn slice(&self, head: Head) -> usize {
        let Some(pace) = self.heads.get(&head) else { return FIRST };
        let fitting = SLICE.as_secs_f64() / pace.seconds.max(1e-9);
        // The growth limits a number that is too large for a slice.
        (fitting as usize).clamp(1, pace.slice.max(FIRST).saturating_mul(GROWTH))
    }

    /// Returns whether the work in progress, with so many more changes, takes too long.
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

    /// Publishes a slice that took so many milliseconds.
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

//! Finds the best entries of one segment without scoring all matches: MaxScore, made exact.
//!
//! In: a query's clauses, and the best entries so far. Out: the list of best entries that scoring every match gives.
//!
//! ```text
//!  clauses, dear to miss first          a window of documents at a time
//!  ├ camera   ┐ essential: all of their postings are read; their documents are candidates
//!  ├ spawn    ┘
//!  ├ a        ┐ the rest: their bounds together stay below the k-th score, so a document that only they match cannot
//!  └ to       ┘ be kept; one after the other they are scanned or looked up for the candidates that are left
//! ```
//!
//! **Invariant:** a document is skipped only if a bound on its score is below the least kept score; bounds hold for the sums of
//! rounded numbers too ([`Slack`]). A kept document has its clauses added in the order of the query, so its score has the bits of
//! a sum over all clauses.
//!
//! The idea is of Howard Turtle and James Flood, *Query evaluation: strategies and optimizations*, 1995; the windows are
//! Lucene's. The bounds come from [`clause`](super::clause) and hold under the statistics of any version.

use super::alive::{AliveSegment, ones};
use super::clause::{Clause, Matches};
use super::cursor::Cursor;
use crate::index::TopK;
use roaring::RoaringBitmap;
use std::cmp::Ordering;
use tantivy::index::SegmentReader;
use tantivy::{DocId, TERMINATED};

/// Documents of one window; their sums fit the processor's first cache.
const WINDOW: u32 = 4096;
const WORDS: usize = WINDOW as usize / 64;
/// Looking up a document in a clause takes as long as reading so many postings.
const ASK_COST: u64 = 8;
/// Finding the document of an ordinal takes as long as reading so many postings.
const FIND_COST: u64 = 32;

/// One clause in a segment.
struct Lane {
    bound: f32,
    /// The number of its postings.
    cost: u64,
    cursor: Cursor,
    /// The documents of the window that are known to match, and their partial scores.
    met: [u64; WORDS],
    scores: Vec<f32>,
}

impl Lane {
    /// Reads on through a window; live documents become candidates.
    fn gather(&mut self, window: &mut Window, segment: &AliveSegment) {
        let Self { cursor, met, scores, .. } = self;
        let Window { start, end, left, sums } = window;
        cursor.each_between(
            *start,
            *end,
            |document| segment.is_alive(document),
            |document, score| {
                let at = (document - *start) as usize;
                let (word, bit) = (at / 64, 1 << (at % 64));
                sums[at] = if left[word] & bit == 0 { score } else { sums[at] + score };
                left[word] |= bit;
                met[word] |= bit;
                scores[at] = score;
            },
        );
    }

    /// Adds to the sums of the remaining candidates.
    fn add(&mut self, window: &mut Window, postings: u64, candidates: u64) {
        let Self { cursor, met, scores, .. } = self;
        let Window { start, end, left, sums } = window;
        let mut add = |document: DocId, score: f32| {
            let at = (document - *start) as usize;
            sums[at] += score;
            met[at / 64] |= 1 << (at % 64);
            scores[at] = score;
        };
        if candidates * ASK_COST < postings {
            for document in ones(left, *start) {
                if let Some(score) = cursor.score_of(document) {
                    add(document, score);
                }
            }
        } else {
            let is_left = |document: DocId| {
                let at = (document - *start) as usize;
                left[at / 64] >> (at % 64) & 1 == 1
            };
            cursor.each_between(*start, *end, is_left, add);
        }
    }
}

/// The documents of one window.
struct Window {
    start: DocId,
    end: DocId,
    /// The remaining candidates, and the sums of their known partial scores.
    left: [u64; WORDS],
    sums: Vec<f32>,
}

impl Window {
    fn new(documents: u32) -> Self {
        Self { start: 0, end: 0, left: [0; WORDS], sums: vec![0.0; size(documents)] }
    }

    /// Starts over at the word of `document`.
    fn begin(&mut self, document: DocId) {
        self.start = document / 64 * 64;
        self.end = (self.start + WINDOW).min(TERMINATED);
        self.left.fill(0);
    }

    fn count(&self) -> u64 {
        self.left.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Keeps the documents for which `stays` is true, given their known partial scores.
    fn retain(&mut self, stays: impl Fn(f32) -> bool) {
        for (word, sums) in self.left.iter_mut().zip(self.sums.chunks_exact(64)) {
            let mut rest = *word;
            while rest != 0 {
                let at = rest.trailing_zeros();
                *word &= !(u64::from(!stays(sums[at as usize])) << at);
                rest &= rest - 1;
            }
        }
    }
}

/// The clauses with matches in a segment, ordered by bound per cost of reading.
struct Lanes {
    lanes: Vec<Lane>,
    /// At each position, the sum of the bounds from there on.
    rest: Vec<f32>,
    /// The lanes before this are essential.
    essential: usize,
    /// The lanes in the order of the query.
    in_order: Vec<usize>,
    slack: Slack,
    documents: u32,
}

/// Offers the segment's entries to `best`, at least those that belong there.
pub(super) fn search_segment(
    reader: &SegmentReader,
    segment: &AliveSegment,
    clauses: &[Clause],
    filter: Option<&RoaringBitmap>,
    best: &mut TopK<'_>,
) -> tantivy::Result<()> {
    let mut matches = Vec::with_capacity(clauses.len());
    for clause in clauses {
        matches.extend(clause.matches(reader)?.map(|found| (clause.bound(), found)));
    }
    let slack = Slack::of(clauses.len());
    if !slack.could_reach(best.bar(), matches.iter().map(|(bound, _)| bound).sum()) {
        return Ok(());
    }
    let mut lanes = Lanes::new(reader, matches, slack)?;
    let passes = |document| filter.is_none_or(|filter| filter.contains(segment.ordinal(document).get()));
    let asked = lanes.lanes.len() as u64 * ASK_COST;
    let postings: u64 = lanes.lanes.iter().map(|lane| lane.cost).sum();
    let few = |count: u64, cost: u64| count.saturating_mul(asked + cost) < postings;
    match filter {
        Some(filter) if few(filter.len(), FIND_COST) => {
            lanes.look_at(&segment.documents_of(filter), segment, best);
        }
        _ if few(u64::from(segment.count()), 0) => {
            let documents: Vec<DocId> = segment.documents().filter(|&document| passes(document)).collect();
            lanes.look_at(&documents, segment, best);
        }
        _ => lanes.read(segment, &passes, best),
    }
    Ok(())
}

/// Returns how many documents a window of a segment has at the most, in whole words.
fn size(documents: u32) -> usize {
    documents.next_multiple_of(64).min(WINDOW) as usize
}

/// The rounding error of a sum.
#[derive(Clone, Copy)]
struct Slack(f32);

impl Slack {
    /// Each of n additions of non-negative numbers is off by at most one part in 2^24. A score, its known partial sum and the
    /// bound of the rest are sums of at most n.
    fn of(clauses: usize) -> Self {
        Self(1.0 + (2 * clauses + 4) as f32 * f32::EPSILON)
    }

    /// Tells whether a sum, added in any order, may stand for a score that reaches the bar.
    #[inline]
    fn could_reach(self, bar: f32, sum: f32) -> bool {
        (sum * self.0).partial_cmp(&bar) != Some(Ordering::Less)
    }
}

impl Lanes {
    fn new(reader: &SegmentReader, matches: Vec<(f32, Matches<'_>)>, slack: Slack) -> tantivy::Result<Self> {
        let mut lanes = Vec::with_capacity(matches.len());
        for (place, (bound, matches)) in matches.into_iter().enumerate() {
            let (cost, cursor) = (matches.cost(), matches.open()?);
            lanes.push((
                place,
                Lane { bound, cost, cursor, met: [0; WORDS], scores: vec![0.0; size(reader.max_doc())] },
            ));
        }
        let worth = |lane: &Lane| lane.bound / (lane.cost as f32 + 1.0);
        lanes.sort_by(|(_, left), (_, right)| worth(right).total_cmp(&worth(left)));
        let mut in_order: Vec<usize> = (0..lanes.len()).collect();
        in_order.sort_by_key(|&at| lanes[at].0);
        let lanes: Vec<Lane> = lanes.into_iter().map(|(_, lane)| lane).collect();
        let mut rest = vec![0.0; lanes.len() + 1];
        for (at, lane) in lanes.iter().enumerate().rev() {
            rest[at] = rest[at + 1] + lane.bound;
        }
        let (essential, documents) = (lanes.len(), reader.max_doc());
        Ok(Self { lanes, rest, essential, in_order, slack, documents })
    }

    /// Reads the essential lanes to the end.
    fn read(&mut self, segment: &AliveSegment, passes: &dyn Fn(DocId) -> bool, best: &mut TopK<'_>) {
        let mut window = Window::new(self.documents);
        loop {
            while self.essential > 0 && !self.slack.could_reach(best.bar(), self.rest[self.essential - 1]) {
                self.essential -= 1;
            }
            let essential = &self.lanes[..self.essential];
            let Some(first) = essential.iter().map(|lane| lane.cursor.document()).min() else { return };
            if first == TERMINATED {
                return;
            }
            window.begin(first);
            for &at in self.in_order.iter().filter(|&&at| at < self.essential) {
                self.lanes[at].gather(&mut window, segment);
            }
            self.finish(&mut window, segment, passes, best);
        }
    }

    /// Scores single documents, which ascend.
    fn look_at(&mut self, documents: &[DocId], segment: &AliveSegment, best: &mut TopK<'_>) {
        self.essential = 0;
        let mut window = Window::new(self.documents);
        let mut documents = documents.iter().copied().peekable();
        while let Some(first) = documents.peek() {
            window.begin(*first);
            while let Some(document) = documents.next_if(|&document| document < window.end) {
                let at = (document - window.start) as usize;
                window.left[at / 64] |= 1 << (at % 64);
                window.sums[at] = 0.0;
            }
            self.finish(&mut window, segment, &|_| true, best);
        }
    }

    /// Offers the remaining documents of a window, after all other lanes have been added.
    fn finish(
        &mut self,
        window: &mut Window,
        segment: &AliveSegment,
        passes: &dyn Fn(DocId) -> bool,
        best: &mut TopK<'_>,
    ) {
        let bar = best.bar();
        for at in self.essential..=self.lanes.len() {
            let (rest, slack) = (self.rest[at], self.slack);
            window.retain(|sum| slack.could_reach(bar, sum + rest));
            let left = window.count();
            if left == 0 {
                break;
            }
            let Some(lane) = self.lanes.get_mut(at) else { break };
            let postings = lane.cost * u64::from(WINDOW) / u64::from(self.documents.max(1));
            lane.add(window, postings, left);
        }
        for document in ones(&window.left, window.start) {
            let at = (document - window.start) as usize;
            if !passes(document) {
                continue;
            }
            let mut score = None;
            for lane in self.in_order.iter().map(|&lane| &self.lanes[lane]) {
                if lane.met[at / 64] >> (at % 64) & 1 == 1 {
                    score = Some(score.unwrap_or(0.0) + lane.scores[at]);
                }
            }
            if let Some(score) = score.filter(|score| best.admits(*score)) {
                best.push(segment.ordinal(document), score);
            }
        }
        for lane in &mut self.lanes {
            lane.met.fill(0);
        }
    }
}

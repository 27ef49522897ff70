//! Selects hits from the ranked entries: a limited number per document, and with `fold` each text once.
//!
//! In: entries, best first. Out: the first k that count.
//!
//! **Invariant:** the selection follows from the entries offered so far, in their order; so a larger k only adds to the selection
//! of a smaller one. An entry that is deduplicated into a hit, or exceeds its document's limit, counts neither towards k nor for
//! its document.

use super::hits::Found;
use rustc_hash::{FxHashMap, FxHashSet};

/// A ranked entry, with the numbers of its path and text.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) found: Found,
    /// Its document's path.
    pub(super) path: u32,
    /// Its text, if identical texts are deduplicated.
    pub(super) text: Option<u32>,
}

/// The hits so far.
pub(super) struct Thinning {
    k: usize,
    per_document: usize,
    of_document: FxHashMap<u32, usize>,
    texts: FxHashSet<u32>,
    kept: Vec<Found>,
}

impl Thinning {
    pub(super) fn new(k: usize, per_document: usize) -> Self {
        let (of_document, texts, kept) = (FxHashMap::default(), FxHashSet::default(), Vec::new());
        Self { k, per_document, of_document, texts, kept }
    }

    /// Whether k entries are kept.
    pub(super) const fn is_full(&self) -> bool {
        self.kept.len() >= self.k
    }

    /// Offers the next best entry.
    pub(super) fn offer(&mut self, candidate: Candidate) {
        let Candidate { found, path, text } = candidate;
        if self.is_full() || text.is_some_and(|text| self.texts.contains(&text)) {
            return;
        }
        let of_document = self.of_document.entry(path).or_default();
        if *of_document < self.per_document {
            *of_document += 1;
            self.texts.extend(text);
            self.kept.push(found);
        }
    }

    /// Returns the kept entries, best first.
    pub(super) fn into_kept(self) -> Vec<Found> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use snapshots::Ordinal;

    /// A simple specification: an entry is a hit if no earlier hit has its text, and fewer than so many have its path.
    fn plainly(ranked: &[(u32, u32)], per_document: usize, fold: bool) -> Vec<usize> {
        let mut hits: Vec<usize> = Vec::new();
        for (at, (path, text)) in ranked.iter().enumerate() {
            let is_double = fold && hits.iter().any(|&hit| ranked[hit].1 == *text);
            let of_document = hits.iter().filter(|&&hit| ranked[hit].0 == *path).count();
            if !is_double && of_document < per_document {
                hits.push(at);
            }
        }
        hits
    }

    proptest! {
        #![proptest_config(crate::index::cases(128))]

        #[test]
        fn the_first_k_of_what_a_plain_look_at_the_whole_list_keeps(
            ranked in prop::collection::vec((0_u32..12, 0_u32..12), 0..80),
            per_document in 1_usize..4,
            fold: bool,
            k in 1_usize..40,
        ) {
            let mut thinning = Thinning::new(k, per_document);
            for (at, (path, text)) in (0..).zip(&ranked) {
                let found = Found::new(Ordinal::new(at));
                thinning.offer(Candidate { found, path: *path, text: fold.then_some(*text) });
            }
            let mut expected = plainly(&ranked, per_document, fold);
            expected.truncate(k);
            let kept: Vec<usize> = thinning.into_kept().iter().map(|found| found.ordinal.get() as usize).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}

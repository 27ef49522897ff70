//! Ranked lists, each with the name of what produced it.
//!
//! In: ordinals with scores. Out: values that fusion, hits and JSON share, however many producers there are.
//!
//! **Invariant:** a name is what JSON calls the list (`from` of a hit), and no two lists of a search have the same.

use snapshots::Ordinal;
use std::borrow::Cow;

/// What produced a ranked list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListName(Cow<'static, str>);

impl ListName {
    /// The words' list: BM25.
    pub const BM25: Self = Self(Cow::Borrowed("bm25"));
    /// The list of the store's vector set: cosines.
    pub const VECTOR: Self = Self(Cow::Borrowed("vector"));

    /// Returns the name as JSON has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What one producer found, best first.
#[derive(Clone, Debug)]
pub struct RankedList {
    /// The producer.
    pub name: ListName,
    /// Entries with their scores.
    pub hits: Vec<(Ordinal, f32)>,
}

/// Rank and score of an entry in one of the lists.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ranked {
    /// From 1.
    pub rank: usize,
    /// BM25 or cosine.
    pub score: f32,
}

/// The places of an entry in the lists that count towards its score, in the order of the lists.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ranks(Vec<(ListName, Ranked)>);

impl Ranks {
    /// Adds the place in one more list.
    pub(super) fn push(&mut self, list: &ListName, ranked: Ranked) {
        self.0.push((list.clone(), ranked));
    }

    /// Keeps the places of the best rank alone.
    pub(super) fn keep_best(&mut self) {
        let best = self.iter().map(|(_, ranked)| ranked.rank).min();
        self.0.retain(|(_, ranked)| Some(ranked.rank) == best);
    }

    /// Returns the place in a list, where it counts.
    #[must_use]
    pub fn of(&self, list: &ListName) -> Option<Ranked> {
        self.iter().find(|(name, _)| *name == list).map(|(_, ranked)| ranked)
    }

    /// Returns every place.
    pub fn iter(&self) -> impl Iterator<Item = (&ListName, Ranked)> {
        self.0.iter().map(|(name, ranked)| (name, *ranked))
    }
}

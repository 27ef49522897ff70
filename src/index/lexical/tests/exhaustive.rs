//! The law of pruning: the hits are those of scoring every match, bit for bit.

use super::*;
use crate::index::TopK;
use tantivy::Searcher;
use tantivy::query::{BooleanQuery, BoostQuery, EnableScoring, Occur, PhraseQuery, Query, TermQuery, Weight};
use tantivy::schema::IndexRecordOption;

/// Returns the query as tantivy scores it: all clauses of every match, added in their order.
pub(super) fn weight(view: &LexicalView, searcher: &Searcher, query: &LexicalQuery) -> Box<dyn Weight> {
    let clause = |(terms, boost): (Vec<(usize, tantivy::Term)>, f32)| -> (Occur, Box<dyn Query>) {
        let query: Box<dyn Query> = match terms.as_slice() {
            [(_, term)] => Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs)),
            _ => Box::new(PhraseQuery::new_with_offset(terms)),
        };
        (Occur::Should, Box::new(BoostQuery::new(query, boost)))
    };
    let scoring = EnableScoring::enabled_from_statistics_provider(view, searcher);
    BooleanQuery::new(query.over(view.fields()).map(clause).collect())
        .weight(scoring)
        .expect("the query is well formed")
}

/// Scores every match.
fn search(index: &Index, query: &LexicalQuery, limit: usize, filter: Option<&RoaringBitmap>) -> Vec<(Ordinal, f32)> {
    let ties = ByIdentity(&index.items);
    let mut best = TopK::new(limit, &ties);
    if query.is_empty() || index.alive.is_empty() {
        return Vec::new();
    }
    let weight = weight(&index.view, &index.reader.searcher(), query);
    for (reader, segment) in index.view.segments() {
        let mut offer = |document, score| {
            let ordinal = segment.ordinal(document);
            if segment.is_alive(document) && filter.is_none_or(|filter| filter.contains(ordinal.get())) {
                best.push(ordinal, score);
            }
        };
        weight.for_each(reader, &mut offer).expect("it is searched");
    }
    best.into_ranked()
}

/// Compares the two, for lists of several lengths under filters of several widths.
fn check(index: &Index, queries: impl IntoIterator<Item = String>) {
    let bits =
        |hits: Vec<(Ordinal, f32)>| hits.into_iter().map(|(at, score)| (at, score.to_bits())).collect::<Vec<_>>();
    for typed in queries {
        let query = LexicalQuery::parse(&typed);
        for share in [1, 2, 40, 3000] {
            let filter: RoaringBitmap =
                (0..index.items.len() as u32).filter(|n| scatter(u64::from(*n), share).is_multiple_of(share)).collect();
            let filter = (share > 1).then_some(&filter);
            for limit in [1, 10, 200, usize::MAX] {
                let found = index.view.search(&query, limit, filter, &ByIdentity(&index.items)).expect("it is whole");
                let expected = search(index, &query, limit, filter);
                assert_eq!(bits(found), bits(expected), "{typed:?}, {limit}, one in {share}");
            }
        }
    }
}

/// A query of up to `most` words, some of them phrases.
fn question(seed: u64, most: u64) -> String {
    let word = |at| WORDS[(scatter(at, seed) % WORDS.len() as u64) as usize];
    let clause = |at: u64| match scatter(at, seed + 1) % 4 {
        0 => format!("\"{} {}\"", word(at), word(at + 100)),
        _ => word(at).to_owned(),
    };
    (0..=scatter(seed, 2) % most).map(clause).collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(crate::index::cases(12))]
    #[test]
    fn what_is_found_is_what_scoring_every_match_finds(
        batches in prop::collection::vec(1u64..300, 1..5),
        share in prop_oneof![Just(0u64), 2u64..12],
        seed in 0u64..1000,
    ) {
        let mut index = Index::new();
        for batch in batches {
            for _ in 0..batch {
                index.add(item(seed * 10_000 + index.items.len() as u64 / 2));
            }
            index.commit();
        }
        let is_alive = |n: &u32| share == 0 || scatter(u64::from(*n), seed).is_multiple_of(share);
        index.advance((0..index.items.len() as u32).filter(is_alive).collect());
        check(&index, (0..6).map(|at| question(seed + at, 6)).chain(["the the the".to_owned()]));
    }
}

/// More documents than a window has, in several windows: with all alive, most, and few.
#[test]
fn pruning_is_exact_over_many_windows() {
    let mut index = Index::new();
    for (number, most) in (0u64..).zip([6; 9000].into_iter().chain([30; 800])) {
        // Each text comes twice, far apart, so that there are ties at every border.
        let number = if number % 7 == 0 { number / 2 } else { number };
        index.add(Item {
            identity: Identity(scatter(index.items.len() as u64, 5)),
            text: words(number, most),
            name: words(number + 1_000_000, 3),
        });
    }
    index.commit();
    index.writer().merge_all().expect("it merges");
    let queries =
        || ["rare", "rare camera", "the rare", "spawn camera light the", "\"spawn camera\" the rare", "nowhere vec3"];
    for share in [1, 10, 700] {
        let is_alive = |n: &u32| share == 1 || scatter(u64::from(*n), 3).is_multiple_of(share) == (share > 10);
        index.advance((0..index.items.len() as u32).filter(is_alive).collect());
        check(&index, queries().map(str::to_owned));
    }
}

//! The promise of the lexical index: ranks follow from the version, whatever the history.

mod exhaustive;
mod history;
mod temperature;

use super::*;
use crate::index::{Tended, TieOrder, Urgency};
use proptest::prelude::*;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use tempfile::TempDir;

/// The identity of an entry in every index, independent of its ordinal there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Identity(u64);

/// Scatters numbers, so that identities are not in the order of insertion.
fn scatter(number: u64, seed: u64) -> u64 {
    let mixed = (number ^ seed.rotate_left(17)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 3
}

const WORDS: [&str; 12] = [
    "camera",
    "spawn_camera",
    "SpawnCamera",
    "the",
    "the",
    "the",
    "light",
    "queries",
    "相机系统",
    "Vec3",
    "shader",
    "rare",
];

/// A text of up to `most` words: few of them rare, and its length anything.
fn words(seed: u64, most: u64) -> String {
    let count = scatter(seed, 1) % (most + 1);
    let word = |at| WORDS[((scatter(at, seed) % 144) as f64).sqrt() as usize];
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

struct Item {
    identity: Identity,
    text: String,
    name: String,
}

fn item(number: u64) -> Item {
    Item { identity: Identity(scatter(number, 5)), text: words(number, 70), name: words(number + 1_000_000, 4) }
}

struct ByIdentity<'a>(&'a [Item]);

impl TieOrder for ByIdentity<'_> {
    fn compare(&self, left: Ordinal, right: Ordinal) -> Ordering {
        let identity = |ordinal: Ordinal| self.0[ordinal.get() as usize].identity;
        identity(left).cmp(&identity(right))
    }
}

type Ranks = Vec<(Identity, u32)>;

const QUERIES: [&str; 9] = [
    "the",
    "rare",
    "camera",
    "spawn camera light",
    "\"spawn camera\"",
    "the \"the the\" rare",
    "\"spawn_camera\" 系统 vec3",
    "query shader nowhere",
    "nowhere",
];

/// Runs everything: each query, in full and cut short, with a filter and without.
fn ask(view: &LexicalView, items: &[Item]) -> Vec<Ranks> {
    let filter: RoaringBitmap =
        (0u32..).zip(items).filter(|(_, item)| item.identity.0 % 3 == 0).map(|(ordinal, _)| ordinal).collect();
    let mut answers = Vec::new();
    for query in QUERIES.map(LexicalQuery::parse) {
        for (limit, filter) in [(7, None), (7, Some(&filter)), (usize::MAX, None)] {
            let hits = view.search(&query, limit, filter, &ByIdentity(items)).expect("the index is whole");
            answers.push(
                hits.into_iter()
                    .map(|(ordinal, score)| (items[ordinal.get() as usize].identity, score.to_bits()))
                    .collect(),
            );
        }
    }
    answers
}

fn statistics<'a>(tokens: impl Iterator<Item = &'a [u32; 2]>) -> LiveStatistics {
    tokens.fold(LiveStatistics::default(), |sum, [text, name]| LiveStatistics {
        entries: sum.entries + 1,
        tokens: [sum.tokens[0] + u64::from(*text), sum.tokens[1] + u64::from(*name)],
    })
}

/// An index with a history.
struct Index {
    dir: TempDir,
    writer: Option<LexicalWriter>,
    reader: LexicalReader,
    maps: OrdinalMaps,
    items: Vec<Item>,
    tokens: Vec<[u32; 2]>,
    alive: RoaringBitmap,
    view: LexicalView,
}

impl Index {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let writer = LexicalWriter::open_or_create(dir.path()).expect("a new index");
        let reader = LexicalReader::open(dir.path()).expect("the new index");
        let maps = OrdinalMaps::new();
        let alive = RoaringBitmap::new();
        let view =
            LexicalView::new(reader.searcher(), &maps, &alive, LiveStatistics::default()).expect("an empty view");
        Self { dir, writer: Some(writer), reader, maps, items: Vec::new(), tokens: Vec::new(), alive, view }
    }

    fn writer(&mut self) -> &mut LexicalWriter {
        self.writer.as_mut().expect("the writer is open")
    }

    fn statistics(&self) -> LiveStatistics {
        statistics(self.alive.iter().map(|ordinal| &self.tokens[ordinal as usize]))
    }

    fn add(&mut self, item: Item) {
        let ordinal = Ordinal::new(self.items.len() as u32);
        let tokens = self.writer().add(ordinal, &item.text, &item.name).expect("it is added");
        self.tokens.push(tokens);
        self.items.push(item);
    }

    fn commit(&mut self) {
        let next = self.items.len() as u32;
        self.writer().commit(next).expect("it is committed");
    }

    fn advance(&mut self, alive: RoaringBitmap) {
        let (inserted, retracted) = (&alive - &self.alive, &self.alive - &alive);
        self.alive = alive;
        let searcher = self.reader.reload().expect("it loads");
        self.view = self
            .view
            .advance(searcher, &self.alive, &inserted, &retracted, self.statistics())
            .expect("the index holds the version");
    }

    /// Moves some live documents; returns how many, none once nothing is left to do.
    fn relocate(&mut self, limit: usize) -> u64 {
        let Self { alive, writer, .. } = self;
        let writer = writer.as_mut().expect("the writer is open");
        loop {
            let step =
                writer.tend_at_most(alive, limit, Urgency::Awaited, &|| true).expect("what is to be moved is moved");
            assert!(step.moved == 0 || step.tended == Tended::Busy, "what was moved may leave more to move");
            if step.moved > 0 || step.tended == Tended::Idle {
                return step.moved;
            }
            std::thread::yield_now();
        }
    }

    /// Runs maintenance until a copy is done and waits for adoption.
    fn copied(&mut self, limit: usize) {
        let Self { alive, writer, .. } = self;
        let writer = writer.as_mut().expect("the writer is open");
        // A publish has priority, all the time.
        while !writer.is_copied() {
            let step = writer.tend_at_most(alive, limit, Urgency::Awaited, &|| false).expect("nothing goes wrong");
            assert!(step.moved == 0 && step.tended != Tended::Idle);
        }
    }

    fn segments(&mut self) -> usize {
        self.writer().segments().expect("they are listed").len()
    }

    fn reopen(&mut self) {
        self.writer = None;
        self.writer = Some(LexicalWriter::open_or_create(self.dir.path()).expect("it opens again"));
        let next = self.items.len() as u32;
        assert_eq!(self.writer().next_ordinal(), next);
    }
}

proptest! {
    #![proptest_config(crate::index::cases(24))]

    #[test]
    fn exactly_what_holds_a_term_is_found(seed in 0u64..1000, query in "(camera|light|相机|VEC3|shader|nope| ){1,4}") {
        let mut index = Index::new();
        for number in 0..60 {
            index.add(item(seed * 100 + number));
        }
        index.commit();
        index.advance((0..60).filter(|ordinal| ordinal % 5 != 2).collect());
        let asked: BTreeSet<String> = analyze(&query).into_iter().map(|token| token.text).collect();
        let holds = |text: &str| analyze(text).iter().any(|token| asked.contains(&token.text));
        let expected: BTreeSet<u32> = index.alive.iter().filter(|&ordinal| {
            let Item { text, name, .. } = &index.items[ordinal as usize];
            holds(text) || holds(name)
        }).collect();
        let hits = index.view.search(&LexicalQuery::parse(&query), usize::MAX, None, &ByIdentity(&index.items)).expect("it is whole");
        prop_assert_eq!(hits.iter().map(|(ordinal, _)| ordinal.get()).collect::<BTreeSet<_>>(), expected);
    }
}

/// An index of (text, name), all alive but those whose text is empty.
fn index_of(entries: &[(&str, &str)]) -> Index {
    let mut index = Index::new();
    for (number, (text, name)) in (0u64..).zip(entries) {
        index.add(Item { identity: Identity(number), text: (*text).to_owned(), name: (*name).to_owned() });
    }
    index.commit();
    let alive = (0u32..).zip(entries).filter(|(_, (text, _))| !text.is_empty()).map(|(ordinal, _)| ordinal).collect();
    index.advance(alive);
    index
}

fn hits(index: &Index, query: &str) -> Vec<(u32, f32)> {
    let found =
        index.view.search(&LexicalQuery::parse(query), 100, None, &ByIdentity(&index.items)).expect("it is whole");
    found.into_iter().map(|(ordinal, score)| (ordinal.get(), score)).collect()
}

#[test]
fn phrases_ask_for_words_side_by_side() {
    let index = index_of(&[
        ("fn spawn_camera()", ""),
        ("SpawnCamera", ""),
        ("camera, spawn", ""),
        ("spawn a camera", ""),
        ("other", "spawn camera"),
    ]);
    let found = |query| hits(&index, query).into_iter().map(|(ordinal, _)| ordinal).collect::<BTreeSet<_>>();
    assert_eq!(found("\"spawn camera\""), BTreeSet::from([0, 1, 4]));
    assert_eq!(found("\"spawn_camera\""), BTreeSet::from([0]));
    assert_eq!(found("\"camera spawn\""), BTreeSet::from([2]));
    assert_eq!(found("spawn camera"), BTreeSet::from([0, 1, 2, 3, 4]));
}

/// Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*, 2009, with k1 = 1.2 and b = 0.75.
#[test]
fn scores_are_bm25_over_both_fields() {
    let index = index_of(&[("light light shader", "light"), ("shader", "red light"), ("shader shader", "")]);
    let term = |frequency: f32, length: f32, mean: f32, holders: f32| {
        let inverse = (1.0 + (3.0 - holders + 0.5) / (holders + 0.5)).ln();
        inverse * 2.2 * frequency / (frequency + 1.2 * (0.25 + 0.75 * length / mean))
    };
    let found = hits(&index, "light");
    let expected = [
        (0, term(2.0, 3.0, 2.0, 1.0) + NAME_BOOST * term(1.0, 1.0, 1.0, 2.0)),
        (1, NAME_BOOST * term(1.0, 2.0, 1.0, 2.0)),
    ];
    assert_eq!(found.len(), expected.len());
    for ((ordinal, score), (expected_ordinal, expected_score)) in found.into_iter().zip(expected) {
        assert_eq!(ordinal, expected_ordinal);
        assert!((score - expected_score).abs() < 1e-5, "{score} for {expected_score}");
    }
}

/// Why we need our own bounds: under the version's average length, tantivy's pruning loses the true first hit.
#[test]
fn pruning_by_block_would_lose_the_first_hit() {
    let times = |word: &str, count: usize| vec![word; count].join(" ");
    let (second, first) =
        (format!("{} {}", times("t", 2), times("y", 18)), format!("{} {}", times("t", 10), times("y", 190)));
    let (long, longer) = (times("z", 200), times("w", 200));
    let mut entries: Vec<(&str, bool)> = vec![("t y", false); 256];
    entries[5] = (&second, true);
    entries[200] = (&first, true);
    entries.extend([(long.as_str(), true); 20]);
    entries.extend([(longer.as_str(), true); 3]);
    entries.extend([("z", false); 3000]);
    let mut index = Index::new();
    for (number, (text, _)) in (0u64..).zip(&entries) {
        index.add(Item { identity: Identity(number), text: (*text).to_owned(), name: String::new() });
    }
    index.commit();
    index.advance((0u32..).zip(&entries).filter(|(_, (_, alive))| *alive).map(|(ordinal, _)| ordinal).collect());
    assert_eq!(hits(&index, "t").first().map(|(ordinal, _)| *ordinal), Some(200));

    let view = &index.view;
    let weight = exhaustive::weight(view, &index.reader.searcher(), &LexicalQuery::parse("t"));
    let mut best = (None, f32::MIN);
    for (reader, segment) in view.segments() {
        let mut offer = |document, score| {
            if segment.is_alive(document) && score > best.1 {
                best = (Some(segment.ordinal(document).get()), score);
            }
            best.1
        };
        #[expect(clippy::disallowed_methods, reason = "it shows why the method is barred")]
        weight.for_each_pruning(f32::MIN, reader, &mut offer).expect("it is searched");
    }
    assert_eq!(best.0, Some(5), "tantivy's pruning has become exact: search.rs may reconsider it");
}

#[test]
fn ties_follow_their_order_and_not_the_segments() {
    let mut index = Index::new();
    for batch in [[4, 9, 1], [7, 2, 8]] {
        for identity in batch {
            index.add(Item { identity: Identity(identity), text: "same text".to_owned(), name: String::new() });
        }
        index.commit();
    }
    index.advance((0..6).collect());
    let order = |index: &Index| {
        hits(index, "text").into_iter().map(|(at, _)| index.items[at as usize].identity.0).collect::<Vec<_>>()
    };
    assert_eq!(order(&index), [1, 2, 4, 7, 8, 9]);
    index.writer().merge_all().expect("it merges");
    index.advance((0..6).collect());
    assert_eq!(order(&index), [1, 2, 4, 7, 8, 9]);
}

#[test]
fn token_counts_are_those_that_tantivy_indexes() {
    let mut index = Index::new();
    for number in 0..200 {
        index.add(item(number));
    }
    index.commit();
    let counted = statistics(index.tokens.iter()).tokens;
    let searcher = index.reader.reload().expect("it loads");
    for (field, counted) in index.view.fields().texts.into_iter().zip(counted) {
        let indexed =
            |reader: &tantivy::SegmentReader| reader.inverted_index(field).expect("it is read").total_num_tokens();
        assert_eq!(searcher.segment_readers().iter().map(indexed).sum::<u64>(), counted);
    }
}

#[test]
fn what_was_not_committed_vanishes_and_may_be_added_again() {
    let mut index = index_of(&[("kept", "")]);
    for _ in 0..2 {
        index.writer().add(Ordinal::new(1), "lost", "").expect("it is added");
        index.reopen();
        assert_eq!(index.reader.reload().expect("it loads").num_docs(), 1);
    }
    index.add(Item { identity: Identity(1), text: "found".to_owned(), name: String::new() });
    index.commit();
    index.advance((0..2).collect());
    assert_eq!(hits(&index, "lost").len(), 0);
    assert_eq!(hits(&index, "found").first().map(|(ordinal, _)| *ordinal), Some(1));
}

#[test]
fn the_next_ordinal_survives_merges() {
    let mut index = index_of(&[("one", "")]);
    index.add(item(1));
    index.writer().commit(77).expect("it is committed");
    index.writer().merge_all().expect("it merges");
    index.writer.take().expect("the writer is open").close().expect("it closes");
    assert_eq!(LexicalWriter::open_or_create(index.dir.path()).expect("it opens").next_ordinal(), 77);
}

#[test]
fn removed_entries_are_gone_and_no_others() {
    let mut index = index_of(&[("camera one", ""), ("camera two", ""), ("camera three", "")]);
    for number in 0..4 {
        index.add(item(number));
        index.commit();
    }
    let removed: RoaringBitmap = [0, 2, 4, 5, 6, 900].into_iter().collect();
    index.writer().remove(&removed).expect("they are removed");
    index.writer().merge_all().expect("it merges");
    let searcher = index.reader.reload().expect("it loads");
    let ordinals: RoaringBitmap = searcher
        .segment_readers()
        .iter()
        .flat_map(|reader| {
            let column = reader.fast_fields().u64(super::schema::ORDINAL).expect("it is there").values;
            reader.doc_ids_alive().map(move |document| column.get_val(document) as u32).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(ordinals, [1, 3].into_iter().collect());
    assert_eq!(index.writer().next_ordinal(), 7);
}

#[test]
fn a_removal_that_was_killed_before_its_commit_is_done_by_the_next() {
    let mut index = index_of(&[("camera one", ""), ("camera two", ""), ("camera three", "")]);
    let before = std::fs::read(index.dir.path().join("meta.json")).expect("it is there");
    // Both deletions begin in a freshly opened writer, so they count the same operations.
    index.reopen();
    let removed: RoaringBitmap = [1].into_iter().collect();
    index.writer().remove(&removed).expect("it is removed");
    // As if the process had ended before the last step: the files exist, and no list names them.
    drop(index.writer.take());
    std::fs::write(index.dir.path().join("meta.json"), before).expect("it is written");
    index.reopen();
    index.writer().remove(&removed).expect("it is removed by the next");
    assert_eq!(index.reader.reload().expect("it loads").num_docs(), 2);
}

#[test]
fn an_older_view_answers_while_the_writer_merges_its_segments_away() {
    let mut index = index_of(&[("camera", ""), ("light", "")]);
    let other = LexicalReader::open(index.dir.path()).expect("a second door");
    let held =
        LexicalView::new(other.searcher(), &OrdinalMaps::new(), &index.alive, index.statistics()).expect("a view");
    let before = ask(&held, &index.items);
    for number in 0..6 {
        index.add(item(number));
        index.commit();
    }
    index.writer().merge_all().expect("it merges");
    assert_eq!(ask(&held, &index.items), before);
    assert_eq!(other.reload().expect("it loads").num_docs(), 8);
    assert_eq!(ask(&held, &index.items), before);
}

#[test]
fn versions_share_the_segments_in_which_they_do_not_differ() {
    let mut index = index_of(&[("camera", ""), ("light", "")]);
    index.add(item(1));
    index.commit();
    index.advance((0..3).collect());
    let address =
        |view: &LexicalView| view.segments().map(|(_, segment)| std::ptr::from_ref(segment)).collect::<Vec<_>>();
    let before = address(&index.view);
    index.advance((1..3).collect());
    let shared = before.iter().zip(address(&index.view)).filter(|(before, after)| *before == after).count();
    assert_eq!((before.len(), shared), (2, 1));
}

#[test]
fn a_view_that_would_score_wrongly_is_refused() {
    let index = index_of(&[("camera", ""), ("light", "")]);
    let view = |entries: RoaringBitmap, counted| {
        let statistics = LiveStatistics { entries: counted, tokens: [2, 0] };
        LexicalView::new(index.reader.searcher(), &index.maps, &entries, statistics).map(|_| ())
    };
    assert!(view((0..2).collect(), 2).is_ok());
    assert!(matches!(view((0..3).collect(), 3), Err(LexicalError::Entries { expected: 3, found: 2 })));
    assert!(matches!(view((0..2).collect(), 5), Err(LexicalError::Statistics { expected: 2, counted: 5 })));
}

#[test]
fn an_index_of_another_kind_is_refused_by_name() {
    let index = index_of(&[("camera", "")]);
    assert!(matches!(LexicalWriter::open_or_create(index.dir.path()), Err(LexicalError::Open { .. })), "two writers");

    let metas = index.dir.path().join("meta.json");
    let text = std::fs::read_to_string(&metas).expect("it is there");
    drop(index.writer);
    let other = text.replace(&fingerprint().to_string(), "00");
    std::fs::write(&metas, other).expect("it is written");
    assert!(matches!(LexicalReader::open(index.dir.path()), Err(LexicalError::Analyzer { .. })));
    assert!(matches!(LexicalWriter::open_or_create(index.dir.path()), Err(LexicalError::Analyzer { .. })));

    let nowhere = index.dir.path().join("nowhere");
    assert!(matches!(LexicalReader::open(&nowhere), Err(LexicalError::Open { .. })));
}

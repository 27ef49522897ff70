//! Promises of the memo: the first answer stays, across lost flushes and process ends.

mod wholes;

use super::*;
use crate::store::packing::cases;
use crate::store::{Database, Layout, Needed, Portion};
use dataflows::data::{ChunkKind, Entry, Lines};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn chunked(n: usize) -> Chunked {
    Chunked::Fault(format!("fault {n}"))
}

fn id(n: u64) -> ChunkingId {
    ChunkingId::from_words([n, 0])
}

/// Makes an empty database in a folder of its own.
fn database() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::new(folder.path());
    layout.create().unwrap();
    let database = Database::open_writer(&layout).unwrap();
    (folder, database)
}

#[test]
fn the_first_answer_stays_before_while_and_after_it_is_written() {
    let (_folder, database) = database();
    let memo = database.memo(ModelId::default());
    memo.put_chunks(id(1), None, chunked(1), vec![], Keep::Durable);
    memo.put_chunks(id(1), None, chunked(2), vec![], Keep::Durable);
    let answer = |memo: &StoreMemo| memo.chunks(id(1)).as_deref().cloned();
    assert_eq!(answer(&memo), Some(chunked(1)));
    let mapping = database.mapping().unwrap();
    let mut transaction = mapping.write().unwrap();
    let flush = memo.flush(&mut transaction, &FxHashMap::default()).unwrap();
    assert_eq!(answer(&memo), Some(chunked(1)));
    transaction.commit().unwrap();
    memo.flushed(flush);
    memo.put_chunks(id(1), None, chunked(3), vec![], Keep::Durable);
    assert_eq!(answer(&memo), Some(chunked(1)));
    assert_eq!(answer(&database.memo(ModelId::default())), Some(chunked(1)));
}

#[test]
fn a_flush_that_begins_before_the_one_before_is_forgotten_keeps_its_results_in_sight() {
    let (_folder, database) = database();
    let memo = database.memo(ModelId::default());
    memo.put_chunks(id(1), None, chunked(1), vec![], Keep::Durable);
    let mapping = database.mapping().unwrap();
    let mut first = mapping.write().unwrap();
    let first_flush = memo.flush(&mut first, &FxHashMap::default()).unwrap();
    first.commit().unwrap();
    memo.put_chunks(id(2), None, chunked(2), vec![], Keep::Durable);
    let mapping = database.mapping().unwrap();
    let mut second = mapping.write().unwrap();
    let second_flush = memo.flush(&mut second, &FxHashMap::default()).unwrap();
    memo.flushed(first_flush);
    assert_eq!(memo.chunks(id(1)).as_deref(), Some(&chunked(1)));
    assert_eq!(memo.chunks(id(2)).as_deref(), Some(&chunked(2)), "it is not in the database yet");
    second.commit().unwrap();
    memo.flushed(second_flush);
    assert_eq!(memo.chunks(id(2)).as_deref(), Some(&chunked(2)));
}

#[test]
fn a_flush_whose_transaction_is_lost_is_written_by_the_next() {
    let (_folder, database) = database();
    let memo = database.memo(ModelId::default());
    memo.put_chunks(id(1), None, chunked(1), vec![], Keep::Durable);
    let mapping = database.mapping().unwrap();
    let mut lost = mapping.write().unwrap();
    let _ = memo.flush(&mut lost, &FxHashMap::default()).unwrap();
    drop(lost);
    memo.put_chunks(id(2), None, chunked(2), vec![], Keep::WhileRunning);
    let mapping = database.mapping().unwrap();
    let mut kept = mapping.write().unwrap();
    let flush = memo.flush(&mut kept, &FxHashMap::default()).unwrap();
    kept.commit().unwrap();
    memo.flushed(flush);
    let fresh = database.memo(ModelId::default());
    assert_eq!(fresh.chunks(id(1)).as_deref(), Some(&chunked(1)));
    assert_eq!(fresh.chunks(id(2)), None, "kept only while running");
    assert_eq!(memo.chunks(id(2)).as_deref(), Some(&chunked(2)));
}

/// A list of few heads and texts in any order, and the texts.
fn list(parts: &[(u8, u8, u32)]) -> (Chunked, Vec<(TextHash, String)>) {
    let text = |n: u8| format!("text {n} {}", "x".repeat(usize::from(n)));
    let chunk = |&(head, n, first): &(u8, u8, u32)| Chunk {
        kind: if head % 2 == 0 { ChunkKind::Code } else { ChunkKind::Document },
        language: "rust".to_owned(),
        symbol: format!("Module::item_{head}"),
        name: format!("pub fn item_{head}()"),
        text: TextHash::of(&text(n)),
        lines: Lines { first, last: first.wrapping_add(u32::from(n)) },
    };
    let texts = parts.iter().map(|(_, n, _)| (TextHash::of(&text(*n)), text(*n))).collect();
    (Chunked::Chunks(parts.iter().map(chunk).collect()), texts)
}

/// An operation on a memo.
#[derive(Clone, Debug)]
enum Step {
    Put(u64, Vec<(u8, u8, u32)>),
    Flush,
    LoseFlush,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let parts = prop::collection::vec((0u8..6, 0u8..12, prop_oneof![0u32..50, any::<u32>()]), 0..12);
    prop_oneof![
        4 => (0u64..8, parts).prop_map(|(id, parts)| Step::Put(id, parts)),
        2 => Just(Step::Flush),
        1 => Just(Step::LoseFlush),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(cases(48))]
    #[test]
    fn lists_and_texts_come_back_whatever_is_flushed_lost_and_opened_again(
        steps in prop::collection::vec(step(), 1..24),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let mut database = Database::open_writer(&layout).unwrap();
        let mut memo = database.memo(ModelId::default());
        // The first values, and the durable ones among them.
        let (mut put, mut durable) = (BTreeMap::new(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Put(n, parts) => {
                    let (chunked, texts) = list(&parts);
                    memo.put_chunks(id(n), None, chunked.clone(), texts.clone(), Keep::Durable);
                    put.entry(n).or_insert((chunked, texts));
                }
                Step::Flush => {
                    let mapping = database.mapping().unwrap();
                    let mut transaction = mapping.write().unwrap();
                    let flush = memo.flush(&mut transaction, &FxHashMap::default()).unwrap();
                    transaction.commit().unwrap();
                    memo.flushed(flush);
                    durable = put.clone();
                }
                Step::LoseFlush => {
                    let mapping = database.mapping().unwrap();
                    let mut transaction = mapping.write().unwrap();
                    let _ = memo.flush(&mut transaction, &FxHashMap::default()).unwrap();
                }
                Step::Restart => {
                    drop((memo, database));
                    database = Database::open_writer(&layout).unwrap();
                    memo = database.memo(ModelId::default());
                    put = durable.clone();
                }
            }
            for (n, (chunked, texts)) in &put {
                prop_assert!(memo.chunks(id(*n)).as_deref() == Some(chunked), "list {n}");
                for (hash, text) in texts {
                    prop_assert!(memo.text(*hash).as_ref() == Some(text), "{text:?}");
                }
            }
            for (n, (chunked, texts)) in &durable {
                let Chunked::Chunks(chunks) = chunked else { continue };
                for hash in texts.iter().map(|(hash, _)| *hash).chain([TextHash::of("a text that no list holds")]) {
                    let expected: Vec<Chunk> = chunks.iter().filter(|chunk| chunk.text == hash).cloned().collect();
                    prop_assert_eq!(memo.chunks_with_text(id(*n), hash).unwrap(), expected);
                }
            }
            prop_assert_eq!(database.lost_numbers().unwrap(), []);
            prop_assert!(memo.check().is_ok());
        }
    }
}

fn vector(n: u8) -> Vector {
    Vector::new(&[1.0, f32::from(n) / 8.0]).unwrap()
}

fn input(n: u8) -> EmbedInput {
    EmbedInput::from_words([u64::from(n), 1])
}

#[test]
fn what_two_made_at_once_is_stored_once() {
    let (_folder, database) = database();
    let model = ModelId::default();
    let (chunked, texts) = list(&[(0, 1, 1), (1, 2, 9)]);
    // Each looks whether it is stored before the other has stored it.
    let memos = [database.memo(model), database.memo(model)];
    for memo in &memos {
        memo.put_chunks(id(1), None, chunked.clone(), texts.clone(), Keep::Durable);
        memo.put_embedded(vec![(input(1), Embedded::Vector(vector(1)))], Keep::Durable);
    }
    memos.iter().for_each(StoreMemo::save);
    let fresh = database.memo(model);
    assert_eq!(fresh.chunks(id(1)).as_deref(), Some(&chunked));
    assert_eq!(fresh.kept(input(1)).unwrap(), Some(Kept::Vector(vector(1))));
    assert_eq!(database.lost_numbers().unwrap(), []);
    let tables = database.mapped.tables().unwrap();
    let txn = tables.read().unwrap();
    let rows = [tables.texts.rows, tables.vectors.parked].map(|table| table.len(&txn).unwrap());
    assert_eq!(rows, [2, 1]);
}

/// What is done with vectors.
#[derive(Clone, Debug)]
enum Does {
    /// The model answers for an input: with a vector, that there is none, or with a fault.
    Answer(u8, u8),
    /// An epoch is published whose entries need these inputs.
    Publish(Vec<u8>),
    LosePublish(Vec<u8>),
    /// What is pending has grown too much.
    Park,
    Restart,
}

fn does() -> impl Strategy<Value = Does> {
    let inputs = || prop::collection::vec(0u8..10, 0..6);
    prop_oneof![
        6 => (0u8..10, 0u8..5).prop_map(|(n, kind)| Does::Answer(n, kind)),
        3 => inputs().prop_map(Does::Publish),
        1 => inputs().prop_map(Does::LosePublish),
        1 => Just(Does::Park),
        1 => Just(Does::Restart),
    ]
}

proptest! {
    #![proptest_config(cases(48))]
    /// A vector waits in memory or is parked until an entry has it, and is named by that entry from then on; nothing that the
    /// model answered is ever another.
    #[test]
    fn a_vector_is_in_one_place_from_its_making_to_its_publish(steps in prop::collection::vec(does(), 1..30)) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let mut database = Database::open_writer(&layout).unwrap();
        let mut memo = database.memo(ModelId::default());
        let (mut known, mut durable): (BTreeMap<u8, Kept>, BTreeMap<u8, Kept>) = Default::default();
        let mut next = 0_u32;
        for step in steps {
            match step {
                Does::Answer(n, kind) => {
                    let (answer, keep, kept) = match kind {
                        0 => (Embedded::NoVector, Keep::Durable, Kept::NoVector),
                        1 => (Embedded::Fault("no".to_owned()), Keep::WhileRunning, Kept::Fault("no".to_owned())),
                        _ => (Embedded::Vector(vector(n)), Keep::Durable, Kept::Vector(vector(n))),
                    };
                    memo.put_embedded(vec![(input(n), answer)], keep);
                    known.entry(n).or_insert(kept);
                }
                Does::Publish(inputs) | Does::LosePublish(inputs) if inputs.is_empty() => {}
                Does::Publish(ref inputs) | Does::LosePublish(ref inputs) => {
                    let placed: BTreeMap<u8, u32> = inputs
                        .iter()
                        .filter(|n| matches!(known.get(n), Some(Kept::Vector(_))))
                        .map(|n| { next += 1; (*n, next) })
                        .collect();
                    let rows = placed.iter().map(|(n, at)| (input(*n), Ordinal::new(*at))).collect();
                    let mapping = database.mapping().unwrap();
                    let mut transaction = mapping.write().unwrap();
                    let flush = memo.flush(&mut transaction, &rows).unwrap();
                    if matches!(step, Does::LosePublish(_)) {
                        continue;
                    }
                    transaction.commit().unwrap();
                    memo.flushed(flush);
                    known.extend(placed.into_iter().map(|(n, at)| (n, Kept::At(Ordinal::new(at)))));
                    durable.extend(known.iter().filter(|(_, kept)| matches!(kept, Kept::At(_) | Kept::NoVector)).map(|(n, kept)| (*n, kept.clone())));
                }
                Does::Park => {
                    memo.save();
                    durable = known.iter().filter(|(_, kept)| !matches!(kept, Kept::Fault(_))).map(|(n, kept)| (*n, kept.clone())).collect();
                }
                Does::Restart => {
                    drop((memo, database));
                    database = Database::open_writer(&layout).unwrap();
                    memo = database.memo(ModelId::default());
                    known = durable.clone();
                }
            }
            for n in 0..10 {
                prop_assert_eq!(memo.kept(input(n)).unwrap(), known.get(&n).cloned(), "{}", n);
                prop_assert_eq!(memo.has_embedded(input(n)), known.contains_key(&n));
            }
            prop_assert_eq!(database.lost_numbers().unwrap(), []);
        }
    }
}

#[test]
fn what_no_entry_needs_is_swept_and_what_stays_is_named_by_an_entry_that_stays() {
    let (_folder, database) = database();
    let memo = database.memo(ModelId::default());
    let given = (0..4).map(|n| (input(n), if n == 3 { Embedded::NoVector } else { Embedded::Vector(vector(n)) }));
    memo.put_embedded(given.collect(), Keep::Durable);
    memo.put_embedded(vec![(input(7), Embedded::Vector(vector(7)))], Keep::Durable);
    let placed = (0..3).map(|n| (input(n), Ordinal::new(u32::from(n)))).collect();
    let mapping = database.mapping().unwrap();
    let mut transaction = mapping.write().unwrap();
    let flush = memo.flush(&mut transaction, &placed).unwrap();
    transaction.commit().unwrap();
    memo.flushed(flush);
    memo.save();
    // Entry 0 goes, and 9 has its input; 1 stays; 2 goes, and comes back as 12 while rows are removed.
    let entry = |text: &str| Entry {
        path: "a".into(),
        card: dataflows::data::CardHash::default(),
        text: TextHash::of(text),
        occurrence: 0,
    };
    let mut needed = Needed::default();
    needed.rows(&[1, 9, 10].into());
    for (ordinal, n) in [(9, 0), (1, 1), (10, 3)] {
        needed.entry(Ordinal::new(ordinal), &entry("text"), input(n));
    }
    let mut superfluous = database.superfluous(&needed, &mut || true).unwrap().unwrap();
    assert_eq!(superfluous.count().vectors, 2, "an input, and a vector that was parked");
    let mut since = Needed::default();
    since.entry(Ordinal::new(12), &entry("text"), input(2));
    database.keep(&mut superfluous, &since).unwrap();
    while !superfluous.is_empty() {
        database.remove(&mut superfluous, Portion::LARGE, &mut || true).unwrap();
    }
    let kept = |n: u8| memo.kept(input(n)).unwrap();
    let at = |ordinal: u32| Some(Kept::At(Ordinal::new(ordinal)));
    assert_eq!([0, 1, 2].map(kept), [at(9), at(1), at(12)]);
    assert_eq!([3, 7].map(kept), [Some(Kept::NoVector), None]);
    assert_eq!(database.lost_numbers().unwrap(), []);
}

#[test]
fn a_list_whose_text_was_never_told_stops_the_publish_that_would_store_it() {
    let (_folder, database) = database();
    let memo = database.memo(ModelId::default());
    memo.put_chunks(id(1), None, list(&[(0, 1, 1)]).0, Vec::new(), Keep::Durable);
    let mapping = database.mapping().unwrap();
    let mut transaction = mapping.write().unwrap();
    assert!(matches!(
        memo.flush(&mut transaction, &FxHashMap::default()),
        Err(StoreError::Lost { table: "text_rows", .. })
    ));
}

#[test]
fn what_was_swept_comes_back_under_a_new_number_and_no_number_comes_again() {
    let (_folder, database) = database();
    let put = |n: u64, parts: &[(u8, u8, u32)]| {
        let memo = database.memo(ModelId::default());
        let (chunked, texts) = list(parts);
        memo.put_chunks(id(n), None, chunked, texts, Keep::Durable);
        let mapping = database.mapping().unwrap();
        let mut transaction = mapping.write().unwrap();
        let flush = memo.flush(&mut transaction, &FxHashMap::default()).unwrap();
        transaction.commit().unwrap();
        memo.flushed(flush);
    };
    let numbers = || {
        let tables = database.mapped.tables().unwrap();
        let txn = tables.read().unwrap();
        let last = |row: Option<(&[u8], &[u8])>| row.map(|(key, _)| key.to_vec());
        (tables.texts.next(&txn).unwrap(), last(tables.heads.values.last(&txn).unwrap()))
    };
    put(1, &[(0, 1, 1), (1, 2, 9), (2, 3, 20)]);
    put(2, &[(0, 1, 1), (3, 4, 9)]);
    let before = numbers();
    // Only the second list is needed: the first one's texts and heads are removed, except those that the second refers to.
    let mut needed = Needed::default();
    needed.chunks(id(2));
    let sweep = |needed: &Needed| {
        let mut superfluous = database.superfluous(needed, &mut || true).unwrap().unwrap();
        let counted = superfluous.count();
        let swept = database.remove(&mut superfluous, Portion::LARGE, &mut || true).unwrap();
        assert_eq!((swept, superfluous.is_empty()), (counted, true));
        swept
    };
    let swept = sweep(&needed);
    assert_eq!((swept.chunks, swept.texts, swept.heads), (1, 2, 2));
    assert_eq!(sweep(&Needed::default()).chunks, 1);
    assert_eq!(numbers(), before, "the last row of a numbered table stays");
    assert_eq!(database.lost_numbers().unwrap(), []);
    put(1, &[(0, 1, 1), (1, 2, 9), (2, 3, 20)]);
    assert_eq!(numbers().0, before.0 + 3, "what came back has new numbers");
    assert_eq!(
        database.memo(ModelId::default()).chunks(id(1)).as_deref(),
        Some(&list(&[(0, 1, 1), (1, 2, 9), (2, 3, 20)]).0)
    );
    assert_eq!(database.lost_numbers().unwrap(), []);
}

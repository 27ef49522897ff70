//! Promises of the memo: the first answer stays, across lost flushes and process ends.

mod wholes;

use super::*;
use crate::store::packing::cases;
use crate::store::{Database, Layout, Needed, Portion};
use dataflows::data::{ChunkKind, Lines};
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
    let flush = memo.flush(&mut transaction).unwrap();
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
    let first_flush = memo.flush(&mut first).unwrap();
    first.commit().unwrap();
    memo.put_chunks(id(2), None, chunked(2), vec![], Keep::Durable);
    let mapping = database.mapping().unwrap();
    let mut second = mapping.write().unwrap();
    let second_flush = memo.flush(&mut second).unwrap();
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
    let _ = memo.flush(&mut lost).unwrap();
    drop(lost);
    memo.put_chunks(id(2), None, chunked(2), vec![], Keep::WhileRunning);
    let mapping = database.mapping().unwrap();
    let mut kept = mapping.write().unwrap();
    let flush = memo.flush(&mut kept).unwrap();
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
                    let flush = memo.flush(&mut transaction).unwrap();
                    transaction.commit().unwrap();
                    memo.flushed(flush);
                    durable = put.clone();
                }
                Step::LoseFlush => {
                    let mapping = database.mapping().unwrap();
                    let mut transaction = mapping.write().unwrap();
                    let _ = memo.flush(&mut transaction).unwrap();
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

#[test]
fn what_two_made_at_once_is_stored_once() {
    let (_folder, database) = database();
    let model = ModelId::default();
    let (chunked, texts) = list(&[(0, 1, 1), (1, 2, 9)]);
    let embed = EmbedId { card: card("once").hash(), text: texts[0].0 };
    let vector = Embedded::Vector(Vector::from_components(vec![f16::ONE, f16::ZERO]).unwrap());
    // Each checks whether it is stored before the other has stored it.
    let memos = [database.memo(model), database.memo(model)];
    for memo in &memos {
        memo.put_chunks(id(1), None, chunked.clone(), texts.clone(), Keep::Durable);
        memo.put_embedded(vec![(embed, vector.clone())], Keep::Durable);
    }
    for memo in &memos {
        let mapping = database.mapping().unwrap();
        let mut transaction = mapping.write().unwrap();
        let flush = memo.flush(&mut transaction).unwrap();
        transaction.commit().unwrap();
        memo.flushed(flush);
    }
    let fresh = database.memo(model);
    assert_eq!(fresh.chunks(id(1)).as_deref(), Some(&chunked));
    assert_eq!(fresh.embedded(embed), Some(vector));
    assert_eq!(database.lost_numbers().unwrap(), []);
    let tables = database.mapped.tables().unwrap();
    let txn = tables.read().unwrap();
    let rows = [tables.texts.rows, tables.vectors.rows].map(|table| table.len(&txn).unwrap());
    assert_eq!(rows, [2, 1]);
}

#[test]
fn a_list_whose_text_was_never_told_stops_the_publish_that_would_store_it() {
    let (_folder, database) = database();
    let memo = database.memo(ModelId::default());
    memo.put_chunks(id(1), None, list(&[(0, 1, 1)]).0, Vec::new(), Keep::Durable);
    let mapping = database.mapping().unwrap();
    let mut transaction = mapping.write().unwrap();
    assert!(matches!(memo.flush(&mut transaction), Err(StoreError::Lost { table: "text_rows", .. })));
}

#[test]
fn cards_are_known_until_they_are_forgotten_and_again_once_they_are_told() {
    let (_folder, database) = database();
    let memo = database.memo(ModelId::default());
    let card = card("World::spawn");
    for _ in 0..2 {
        assert_eq!(memo.card(card.hash()), None);
        memo.put_card(card.hash(), &card);
        assert_eq!(memo.card(card.hash()), Some(card.clone()));
        memo.forget_cards();
    }
}

fn card(symbol: &str) -> Card {
    Card {
        kind: ChunkKind::Code,
        language: "rust".to_owned(),
        symbol: symbol.to_owned(),
        name: "pub fn spawn(&mut self) -> Entity".to_owned(),
        folder: "src".to_owned(),
        module: "bevy_ecs".to_owned(),
        labels: vec![("version".to_owned(), "0.16".to_owned())],
    }
}

#[test]
fn a_card_outlives_one_turn_after_it_was_last_told() {
    let (_folder, database) = database();
    let memo = database.memo(ModelId::default());
    let (once, again) = (card("once"), card("again"));
    let known = || [&once, &again].map(|card| memo.card(card.hash()).is_some());
    memo.put_card(once.hash(), &once);
    memo.put_card(again.hash(), &again);
    memo.turn_cards();
    assert_eq!(known(), [true, true]);
    memo.put_card(again.hash(), &again);
    memo.turn_cards();
    assert_eq!(known(), [false, true], "what was told before the turn before this one is gone");
    memo.turn_cards();
    assert_eq!(known(), [false, false]);
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
        let flush = memo.flush(&mut transaction).unwrap();
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

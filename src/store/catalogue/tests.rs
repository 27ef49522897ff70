//! Promises of the catalogue: rows come back unchanged, by ordinal and by identity, and orphans are removed.

use super::*;
use crate::store::packing::cases;
use crate::store::{Columns, Database, Layout};
use dataflows::data::{
    Charset, ChunkKind, ChunkingId, ContentId, Entry, ModelId, Outcome, SkipReason, StageName, TextHash,
};
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

fn path(n: u8) -> DocumentPath {
    match n % 4 {
        0 => DocumentPath::from("README.md"),
        1 => DocumentPath::new(*b"crates/\xff/\xfe.rs"),
        n => DocumentPath::from(format!("crates/{}/{n}.rs", "deep/".repeat(usize::from(n) * 60)).as_str()),
    }
}

fn card(n: u8, of: &DocumentPath) -> Card {
    Card {
        kind: [ChunkKind::Code, ChunkKind::Text][usize::from(n % 2)],
        language: String::new(),
        symbol: format!("S{}", n / 2),
        name: "x".repeat(usize::from(n) * 300),
        folder: String::from_utf8_lossy(of.folder()).into_owned(),
        module: ["", "ecs"][usize::from(n % 2)].to_owned(),
        labels: (0..n % 3).map(|n| (n.to_string(), "value".to_owned())).collect(),
    }
}

fn document(n: u8) -> Document {
    let outcome = match n % 5 {
        0 => Outcome::Skipped(SkipReason::Binary),
        1 => Outcome::Fault { stage: StageName::Chunk, error: format!("error {n}") },
        _ => Outcome::Indexed {
            chunking: ChunkingId::from_words([u64::from(n), u64::MAX]),
            module: ["", "ecs"][usize::from(n % 2)].to_owned(),
            labels: (0..n % 3).map(|n| (n.to_string(), "value".to_owned())).collect(),
        },
    };
    let charset = Charset::from_label(["gbk", "latin1", "none"][usize::from(n % 3)]);
    Document { path: path(n), content: ContentId::from_bytes([n; 20]), outcome, charset }
}

fn record(path_of: u8, card_of: u8, text: u8, occurrence: u32) -> (EntryRecord, Card) {
    let card = card(card_of, &path(path_of));
    let text = TextHash::of(&text.to_string());
    let entry = Entry { path: path(path_of), card: card.hash(), text, occurrence };
    let tokens = [occurrence.wrapping_mul(3), u32::from(card_of)];
    (EntryRecord { entry, tokens: tokens.into() }, card)
}

proptest! {
    #![proptest_config(cases(32))]
    #[test]
    fn rows_come_back_by_ordinal_and_by_identity_and_orphans_leave_nothing(
        batches in prop::collection::vec(
            (
                prop::collection::vec((0u8..8, 0u8..8, 0u8..8, prop_oneof![0u32..3, any::<u32>()]), 0..12),
                prop::collection::vec(0u8..40, 0..6),
                any::<bool>(),
            ),
            1..6,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let database = Database::open_writer(&layout).unwrap();
        let (memo, catalogue) = (database.memo(ModelId::default()), database.catalogue());
        (0..8u8).for_each(|text| memo.put_text(TextHash::of(&text.to_string()), &text.to_string()));
        let mut entries: BTreeMap<u32, (EntryRecord, Card)> = BTreeMap::new();
        let mut documents: BTreeMap<u32, Document> = BTreeMap::new();
        for (of_entries, of_documents, is_orphaned) in batches {
            let (before_entries, before_documents) = (entries.clone(), documents.clone());
            let (entries_from, documents_from) = (catalogue.next_entry().unwrap(), catalogue.next_document().unwrap());
            for (path, card, text, occurrence) in of_entries {
                let new = record(path, card, text, occurrence);
                if entries.values().all(|(known, _)| known.entry != new.0.entry) {
                    entries.insert(entries.len() as u32, new);
                }
            }
            for n in of_documents {
                let new = document(n);
                if documents.values().all(|known| *known != new) {
                    documents.insert(documents.len() as u32, new);
                }
            }
            let mapping = database.mapping().unwrap();
            let mut to = mapping.write().unwrap();
            let flush = memo.flush(&mut to, &FxHashMap::default()).unwrap();
            let rows = entries.range(entries_from..).map(|(n, (record, card))| (Ordinal::new(*n), record, card));
            catalogue.put_entries(&mut to, rows).unwrap();
            let rows = documents.range(documents_from..).map(|(n, document)| (Ordinal::new(*n), document));
            catalogue.put_documents(&mut to, rows).unwrap();
            to.commit().unwrap();
            memo.flushed(flush);
            let mut gone = Vec::new();
            if is_orphaned {
                let orphans: RoaringBitmap = (entries_from..catalogue.next_entry().unwrap()).collect();
                let mapping = database.mapping().unwrap();
                let mut to = mapping.write().unwrap();
                let of_entries = orphans.iter().map(Ordinal::new);
                let of_documents = (documents_from..catalogue.next_document().unwrap()).map(Ordinal::new);
                let (of_entries, of_documents) = catalogue.remove(&mut to, of_entries, of_documents).unwrap();
                to.commit().unwrap();
                prop_assert_eq!((of_entries + of_documents) as usize, entries.range(entries_from..).count() + documents.range(documents_from..).count());
                gone = documents.split_off(&documents_from).into_values().collect();
                for (_, (record, _)) in entries.split_off(&entries_from) {
                    prop_assert_eq!(catalogue.entry_ordinal(record.entry.id()).unwrap(), None);
                }
                prop_assert_eq!((&entries, &documents), (&before_entries, &before_documents));
            }
            let found = catalogue.entries_with_cards(entries.keys().map(|n| Ordinal::new(*n))).unwrap();
            prop_assert_eq!(&found, &entries.values().cloned().collect::<Vec<_>>());
            for (ordinal, (record, _)) in &entries {
                prop_assert_eq!(catalogue.entry_ordinal(record.entry.id()).unwrap(), Some(Ordinal::new(*ordinal)));
            }
            // An orphan may have been overwritten since.
            let columns = Columns::default();
            let key = |(record, _): &(EntryRecord, Card)| (record.entry.path.clone(), record.entry.id());
            for (left, of_left) in &entries {
                for (right, of_right) in &entries {
                    let order = catalogue.compare(Ordinal::new(*left), Ordinal::new(*right)).unwrap();
                    prop_assert_eq!(order, key(of_left).cmp(&key(of_right)));
                    let [left, right] = [*left, *right].map(Ordinal::new);
                    prop_assert_eq!(columns.compare(&catalogue, left, right).unwrap(), order);
                    let of = |ordinal| columns.path_number(&catalogue, ordinal).unwrap();
                    prop_assert_eq!(of(left) == of(right), of_left.0.entry.path == of_right.0.entry.path);
                }
            }
            let found = catalogue.documents(documents.keys().map(|n| Ordinal::new(*n))).unwrap();
            prop_assert_eq!(&found, &documents.values().cloned().collect::<Vec<_>>());
            for (ordinal, document) in &documents {
                prop_assert_eq!(catalogue.document_ordinal(document).unwrap(), Some(Ordinal::new(*ordinal)));
            }
            for document in gone {
                prop_assert_eq!(catalogue.document_ordinal(&document).unwrap(), None);
            }
            for n in 0..8 {
                let at: Vec<Ordinal> =
                    documents.iter().filter(|(_, row)| row.path == path(n)).map(|(n, _)| Ordinal::new(*n)).collect();
                prop_assert_eq!(catalogue.documents_at(&path(n)).unwrap(), at);
            }
            prop_assert_eq!(catalogue.counts().unwrap(), (entries.len() as u64, documents.len() as u64));
            prop_assert_eq!(database.lost_numbers().unwrap(), []);
            prop_assert_eq!(database.odd_columns().unwrap(), 0);
        }
    }
}

#[test]
fn an_entry_whose_text_is_not_stored_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::new(folder.path());
    layout.create().unwrap();
    let database = Database::open_writer(&layout).unwrap();
    let (record, card) = record(1, 2, 3, 0);
    let mapping = database.mapping().unwrap();
    let mut to = mapping.write().unwrap();
    let put = database.catalogue().put_entries(&mut to, std::iter::once((Ordinal::new(0), &record, &card)));
    assert!(matches!(put, Err(StoreError::Lost { table: "text_rows", .. })));
}

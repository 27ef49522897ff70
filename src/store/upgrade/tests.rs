//! Every step: what an older format held is held, however often the work is killed, and in the same form.

use super::super::packing::{
    Head, NumberedChunk, NumberedList, PackedCleaned, cases, is_composition, pack_list, pack_text,
};
use super::*;
use dataflows::data::{Lines, ModelId, TextHash};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

fn text(n: u32) -> String {
    format!("text {n} {}", "lorem ".repeat(n as usize))
}

fn hash(n: u32) -> TextHash {
    TextHash::of(&text(n))
}

/// The row of a vector that no entry has.
fn vector(n: u8) -> ([u8; 48], Vec<u8>) {
    ([n; 48], vec![n; usize::from(n % 3) * 8])
}

/// What a test store of format 2 holds.
#[derive(Clone, Debug)]
struct Held {
    /// A text for each number; every fifth one was removed.
    numbers: Vec<u32>,
    vectors: u8,
}

impl Held {
    /// Fills a database as format 2 had it: texts under numbers of which some lead to what was removed or has another one now.
    fn fill(&self, layout: &Layout, tables: &Tables) {
        let [texts, rows] = [rows::TEXTS, inputs::BY_KEY].map(|name| tables.make_other(name));
        let mut txn = tables.write().unwrap();
        let hashes = &tables.texts.hashes;
        let mut first = 0_u32;
        for run in self.numbers.chunks(5) {
            let bytes: Vec<u8> = run.iter().flat_map(|n| hash(*n).to_bytes()).collect();
            hashes.put_bytes(&mut txn, &first.to_be_bytes(), &bytes).unwrap();
            first += run.len() as u32;
        }
        for (number, n) in (0_u32..).zip(&self.numbers).filter(|(_, n)| *n % 5 != 0) {
            let row = [&number.to_le_bytes()[..], &pack_text(&text(*n), None)].concat();
            texts.put(&mut txn, &hash(*n).to_bytes(), &row).unwrap();
        }
        for (key, components) in (0..self.vectors).map(vector) {
            rows.put(&mut txn, &key, &components).unwrap();
        }
        txn.commit().unwrap();
        fs::write(layout.root().join("FORMAT"), "tidemill store format 2\n").unwrap();
    }

    fn check(&self, tables: &Tables) {
        let txn = tables.read().unwrap();
        let mut stored = 0;
        for n in 0..40 {
            let number = self.numbers.iter().rposition(|known| *known == n && n % 5 != 0).map(|number| number as u32);
            assert_eq!(tables.texts.number(&txn, hash(n)).unwrap(), number);
            assert_eq!(tables.texts.text(&txn, hash(n)).unwrap(), number.map(|_| text(n)));
            stored += u64::from(number.is_some());
        }
        // No list names them, so they are cleaned texts.
        assert_eq!([tables.texts.rows, tables.texts.cleaned].map(|table| table.len(&txn).unwrap()), [0, stored]);
        assert_eq!(tables.texts.count_lost(&txn).unwrap(), 0);
        assert_eq!(tables.vectors.count_lost(&txn).unwrap(), 0);
    }
}

/// A store, its database open.
struct Store {
    _folder: tempfile::TempDir,
    layout: Layout,
    tables: Tables,
}

impl Store {
    fn new(fill: impl FnOnce(&Layout, &Tables)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let tables = Tables::open(&layout.memo(), true).unwrap();
        fill(&layout, &tables);
        Self { _folder: folder, layout, tables }
    }

    fn of(held: &Held) -> Self {
        Self::new(|layout, tables| held.fill(layout, tables))
    }

    /// Upgrades with some kills on the way, and fails unless the outcome is that of an upgrade without.
    fn upgrade_as(&self, whole: &Self, format: u32, kills: &[usize]) {
        assert!(whole.upgrade(STEPS, usize::MAX));
        for transactions in kills {
            if self.upgrade(STEPS, *transactions) {
                // One that came to its end does nothing when it is begun again.
                let says = format!("tidemill store format {format} to {STORE_FORMAT}\n");
                fs::write(self.layout.root().join("FORMAT"), says).unwrap();
            } else {
                self.layout.check().unwrap_err();
            }
        }
        assert!(self.upgrade(STEPS, usize::MAX));
        assert_eq!(self.rows(), whole.rows());
        self.layout.check().unwrap();
        assert!(upgrade(&self.layout, &self.tables).unwrap().is_none());
        let txn = self.tables.read().unwrap();
        assert!(STEPS.iter().all(|step| self.tables.marks.bytes(&txn, &step.mark()).unwrap().is_none()));
    }

    /// Upgrades until so many transactions are committed; returns whether it came to its end.
    fn upgrade(&self, steps: &[Step], mut transactions: usize) -> bool {
        let mut committed = || {
            transactions = transactions.saturating_sub(1);
            if transactions == 0 { Err(StoreError::Missing { path: "killed".into() }) } else { Ok(()) }
        };
        match upgrade_by(steps, &self.layout, &self.tables, &mut committed) {
            Ok(gate) => {
                finish(&self.layout, gate.unwrap()).unwrap();
                true
            }
            Err(StoreError::Missing { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns every row of every table.
    fn rows(&self) -> BTreeMap<(&'static str, Vec<u8>), Vec<u8>> {
        let txn = self.tables.read().unwrap();
        let mut rows = BTreeMap::new();
        for table in self.tables.all() {
            table
                .each(&txn, |key, bytes| {
                    rows.insert((table.name(), key.to_vec()), bytes.to_vec());
                    Ok(true)
                })
                .unwrap();
        }
        rows
    }
}

fn held() -> impl Strategy<Value = Held> {
    (prop::collection::vec(0u32..40, 0..60), 0u8..40).prop_map(|(numbers, vectors)| Held { numbers, vectors })
}

proptest! {
    #![proptest_config(cases(16))]
    #[test]
    fn what_format_2_held_is_held_and_where_the_work_is_killed_does_not_matter(
        held in held(),
        kills in prop::collection::vec(1usize..12, 0..6),
    ) {
        let store = Store::of(&held);
        store.upgrade_as(&Store::of(&held), 2, &kills);
        held.check(&store.tables);
        for name in OLD_TABLES {
            let old = store.tables.make_other(name);
            prop_assert!(old.is_empty(&store.tables.read().unwrap()).unwrap());
        }
    }
}

/// A document of format 3: its chunks, each behind so many line ends or something else, and whether a line end stands last.
type Document = (Vec<(u8, u8)>, bool);

fn chunk_text(n: u8) -> String {
    let number = u32::from(n).wrapping_mul(2_654_435_761);
    format!("pub fn item_{number:x}(commands: &mut Commands) {{\n    commands.spawn({number}); // {n}\n}}")
}

fn between(n: u8) -> &'static str {
    ["\n", "\n\n", "\n\n\n", " \n", "\n// left out\n"][usize::from(n)]
}

/// Returns a document's text, and whether it is told by its list: nothing but line ends lies between its chunks.
fn document((parts, has_end): &Document) -> (String, Vec<(u8, Lines)>, bool) {
    let (mut text, mut chunks) = (String::new(), Vec::new());
    for (n, gap) in parts {
        if !chunks.is_empty() {
            text.push_str(between(*gap));
        }
        let first = 1 + text.matches('\n').count() as u32;
        chunks.push((*n, Lines { first, last: first + 2 }));
        text.push_str(&chunk_text(*n));
    }
    text.push_str(if *has_end { "\n" } else { "" });
    (text, chunks, parts.iter().skip(1).all(|(_, gap)| *gap < 3))
}

/// Fills a database as format 3 had it: every text by itself, chunks' beside cleaned ones.
fn fill_format_3(documents: &[Document], layout: &Layout, tables: &Tables) {
    let texts = &tables.texts;
    let mut txn = tables.write().unwrap();
    let head = dataflows::data::Chunk {
        kind: dataflows::data::ChunkKind::Code,
        language: String::new(),
        symbol: String::new(),
        name: String::new(),
        text: TextHash::of(""),
        lines: Lines { first: 1, last: 1 },
    };
    let head = tables.heads.number(&mut txn, &super::super::encode(&Head::from(&head))).unwrap();
    let number = |txn: &mut RwTxn<'_>, text: &str| {
        let hash = TextHash::of(text);
        texts.number(txn, hash).unwrap().unwrap_or_else(|| {
            let number = texts.next(txn).unwrap();
            texts.name(txn, &[hash]).unwrap();
            texts.rows.put_bytes(txn, &number.to_be_bytes(), &pack_text(text, None)).unwrap();
            number
        })
    };
    for (n, (text, chunks, _)) in documents.iter().map(document).enumerate() {
        let chunk =
            |(n, lines): &(u8, Lines)| NumberedChunk { head, text: number(&mut txn, &chunk_text(*n)), lines: *lines };
        let list = NumberedList::Chunks(chunks.iter().map(chunk).collect(), None);
        let cleaned = PackedCleaned::Text { text: number(&mut txn, &text), bytes: text.len() as u64 };
        tables.chunks.put_bytes(&mut txn, &[n as u8; 16], &pack_list(&list)).unwrap();
        tables.cleaned.put(&mut txn, &[n as u8; 16], &cleaned).unwrap();
    }
    txn.commit().unwrap();
    fs::write(layout.root().join("FORMAT"), "tidemill store format 3\n").unwrap();
}

proptest! {
    #![proptest_config(cases(24))]
    #[test]
    fn what_format_3_held_is_held_and_where_the_work_is_killed_does_not_matter(
        documents in prop::collection::vec(
            (prop::collection::vec((0u8..60, prop_oneof![6 => 0u8..3, 1 => 3u8..5]), 0..10), prop::bool::weighted(0.8)),
            0..20,
        ),
        kills in prop::collection::vec(1usize..12, 0..6),
    ) {
        let new = || Store::new(|layout, tables| fill_format_3(&documents, layout, tables));
        let store = new();
        store.upgrade_as(&new(), 3, &kills);
        let (tables, texts) = (&store.tables, &store.tables.texts);
        let txn = tables.read().unwrap();
        let mut of_chunks = BTreeSet::new();
        for (text, chunks, _) in documents.iter().map(document) {
            prop_assert_eq!(texts.text(&txn, TextHash::of(&text)).unwrap(), Some(text));
            for text in chunks.iter().map(|(n, _)| chunk_text(*n)) {
                of_chunks.insert(texts.number(&txn, TextHash::of(&text)).unwrap().unwrap());
                prop_assert_eq!(texts.text(&txn, TextHash::of(&text)).unwrap(), Some(text));
            }
        }
        for (text, chunks, is_told) in documents.iter().map(document) {
            let number = texts.number(&txn, TextHash::of(&text)).unwrap().unwrap();
            let packed = texts.cleaned.bytes(&txn, &number.to_be_bytes()).unwrap();
            if is_told && !chunks.is_empty() && !of_chunks.contains(&number) {
                prop_assert!(packed.is_some_and(is_composition), "{text:?}");
            }
            prop_assert_eq!(packed.is_none(), of_chunks.contains(&number));
        }
        prop_assert_eq!(texts.rows.len(&txn).unwrap(), of_chunks.len() as u64);
        prop_assert_eq!(texts.count_lost(&txn).unwrap(), 0);
    }
}

#[test]
fn a_store_takes_the_steps_that_its_format_needs_and_no_others() {
    fn note(old: &Old<'_>, txn: &mut RwTxn<'_>, name: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let taken = old.tables.marks.get::<u32>(txn, name)?.unwrap_or_default();
        old.tables.marks.put(txn, name, &(taken + 1))?;
        Ok((taken < 2).then(|| b"place".to_vec()))
    }
    let steps = [
        Step { name: "first", until: 2, portion: |old, txn, _| note(old, txn, b"first") },
        Step { name: "second", until: 3, portion: |old, txn, _| note(old, txn, b"second") },
    ];
    for (format, first, kills) in [(2, Some(3), 4), (3, None, 2)] {
        let store = Store::of(&Held { numbers: Vec::new(), vectors: 0 });
        fs::write(store.layout.root().join("FORMAT"), format!("tidemill store format {format}\n")).unwrap();
        for _ in 0..kills {
            assert!(!store.upgrade(&steps, 2), "the first transaction of each run is the one that FORMAT takes");
        }
        assert!(store.upgrade(&steps, usize::MAX));
        let txn = store.tables.read().unwrap();
        assert_eq!(store.tables.marks.get::<u32>(&txn, b"first").unwrap(), first);
        assert_eq!(store.tables.marks.get::<u32>(&txn, b"second").unwrap(), Some(3));
    }
}

#[test]
fn vector_files_stand_in_the_folder_of_their_set_wherever_the_move_was_broken_off() {
    let model = ModelId::from_words([3, 4]);
    let names = ["seg-00000000.tmv", "seg-00000001.tmv.damaged", "tail-00000002.tmv"];
    for moved in 0..=names.len() {
        let store = Store::of(&Held { numbers: Vec::new(), vectors: 0 });
        let (vectors, set) = (store.layout.vectors(), store.layout.vector_set(model));
        let content = |name: &str| [b"TMVSEAL1", &[0; 8][..], &model.to_bytes(), name.as_bytes()].concat();
        fs::write(vectors.join(names[0]), content(names[0])).unwrap();
        // Cut too short to say whose it is.
        fs::write(vectors.join(names[1]), b"TMV").unwrap();
        fs::write(vectors.join(names[2]), content(names[2])).unwrap();
        for name in &names[..moved] {
            fs::create_dir_all(&set).unwrap();
            fs::rename(vectors.join(name), set.join(name)).unwrap();
        }
        fs::write(store.layout.root().join("FORMAT"), "tidemill store format 3 to 4\n").unwrap();
        assert!(store.upgrade(STEPS, usize::MAX));
        let mut found: Vec<_> = fs::read_dir(&set).unwrap().map(|file| file.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, names);
        assert_eq!(fs::read(set.join(names[2])).unwrap(), content(names[2]));
        assert_eq!(fs::read_dir(vectors).unwrap().count(), 1);
    }
}

//! Every step: what an older format held is held, however often the work is killed, and in the same form.

use super::super::packing::{cases, pack_text};
use super::super::vectors::{KEY_BYTES, VectorKey};
use super::*;
use dataflows::data::{ModelId, TextHash};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;

fn text(n: u32) -> String {
    format!("text {n} {}", "lorem ".repeat(n as usize))
}

fn hash(n: u32) -> TextHash {
    TextHash::of(&text(n))
}

fn vector(n: u8) -> (VectorKey, Vec<u8>) {
    ([n; KEY_BYTES], vec![n; usize::from(n % 3) * 8])
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
        let [texts, rows] = [rows::TEXTS, rows::VECTORS].map(|name| tables.make_other(name));
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
        assert_eq!(tables.texts.rows.len(&txn).unwrap(), stored);
        assert_eq!(tables.texts.count_lost(&txn).unwrap(), 0);
        for (key, components) in (0..self.vectors).map(vector) {
            assert_eq!(tables.vectors.components(&txn, &key).unwrap(), Some(components.as_slice()));
        }
        assert_eq!(tables.vectors.rows.len(&txn).unwrap(), u64::from(self.vectors));
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
    fn new(held: &Held) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let tables = Tables::open(&layout.memo(), true).unwrap();
        held.fill(&layout, &tables);
        Self { _folder: folder, layout, tables }
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
        let (whole, store) = (Store::new(&held), Store::new(&held));
        prop_assert!(whole.upgrade(STEPS, usize::MAX));
        for transactions in kills {
            if store.upgrade(STEPS, transactions) {
                // One that came to its end is not begun again.
                fs::write(store.layout.root().join("FORMAT"), "tidemill store format 2 to 4\n").unwrap();
            } else {
                store.layout.check().unwrap_err();
            }
        }
        prop_assert!(store.upgrade(STEPS, usize::MAX));
        prop_assert_eq!(store.rows(), whole.rows());
        store.layout.check().unwrap();
        held.check(&store.tables);
        for name in OLD_TABLES {
            let old = store.tables.make_other(name);
            prop_assert!(old.is_empty(&store.tables.read().unwrap()).unwrap());
        }
        prop_assert!(upgrade(&store.layout, &store.tables).unwrap().is_none());
        let txn = store.tables.read().unwrap();
        prop_assert!(STEPS.iter().all(|step| store.tables.marks.bytes(&txn, &step.mark()).unwrap().is_none()));
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
        let store = Store::new(&Held { numbers: Vec::new(), vectors: 0 });
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
        let store = Store::new(&Held { numbers: Vec::new(), vectors: 0 });
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

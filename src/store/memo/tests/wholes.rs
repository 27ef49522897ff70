//! Cleaned texts come back byte for byte, whenever they are cut, flushed, lost or swept, and are composed where they can be.

use super::*;
use crate::store::packing::is_composition;
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::time::Duration;

/// A document: its chunks, of few distinct texts, each behind what lies in front of it, and its end.
#[derive(Clone, Debug)]
struct Doc {
    parts: Vec<(u8, u8)>,
    tail: u8,
    /// Whether something was left out of the text of one chunk, so that it is no slice.
    is_marked: bool,
}

fn doc() -> impl Strategy<Value = Doc> {
    let parts = prop::collection::vec((0u8..9, prop_oneof![5 => 0u8..2, 1 => 2u8..6]), 0..8);
    (parts, 0u8..6, prop::bool::weighted(0.2)).prop_map(|(parts, tail, is_marked)| Doc { parts, tail, is_marked })
}

fn chunk_text(n: u8) -> String {
    format!("{}fn item_{n}() {{\n\n    {}\n}}", " ".repeat(usize::from(n % 3)), "x".repeat(usize::from(n) * 9))
}

fn between(n: u8) -> &'static str {
    ["\n\n", "\n", "\n\n\n", " \n\t\n", "\n// 世界 \n\n", ""][usize::from(n)]
}

impl Doc {
    /// Returns the cleaned text, the list of its chunks, and their texts.
    fn made(&self) -> (String, Chunked, Vec<(TextHash, String)>) {
        let (mut text, mut chunks, mut texts) = (String::new(), Vec::new(), Vec::new());
        for (at, (n, gap)) in self.parts.iter().enumerate() {
            text.push_str(between(*gap));
            let first = 1 + text.matches('\n').count() as u32;
            let whole = chunk_text(*n);
            text.push_str(&whole);
            let told = if self.is_marked && at == 0 { whole.replace("item", "(9 lines)") } else { whole };
            let (hash, last) = (TextHash::of(&told), first + 3);
            let lines = Lines { first, last };
            let [language, symbol, name] = ["rust", "item", "fn item()"].map(str::to_owned);
            chunks.push(Chunk { kind: ChunkKind::Code, language, symbol, name, text: hash, lines });
            texts.push((hash, told));
        }
        text.push_str(between(self.tail));
        (text, Chunked::Chunks(chunks), texts)
    }

    fn hash(&self) -> TextHash {
        TextHash::of(&self.made().0)
    }
}

/// What is done to a store of some documents.
#[derive(Clone, Debug)]
enum Step {
    Clean(Index),
    Cut(Index),
    Flush,
    LoseFlush,
    Restart,
    /// Keeps what cleaning made of some, and the lists of others; breaks off, while one comes back.
    Sweep {
        cleaned: BTreeSet<usize>,
        lists: BTreeSet<usize>,
        rows: usize,
        back: Index,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let some = || prop::collection::btree_set(0usize..6, 0..5);
    let sweep = (some(), some(), 0usize..12, any::<Index>());
    prop_oneof![
        5 => any::<Index>().prop_map(Step::Clean),
        5 => any::<Index>().prop_map(Step::Cut),
        3 => Just(Step::Flush),
        1 => Just(Step::LoseFlush),
        1 => Just(Step::Restart),
        1 => sweep.prop_map(|(cleaned, lists, rows, back)| Step::Sweep { cleaned, lists, rows, back }),
    ]
}

/// Which documents were cleaned, and which cut.
type Known = [BTreeSet<usize>; 2];

struct Store<'d> {
    docs: &'d [Doc],
    layout: Layout,
    open: Option<(Database, StoreMemo)>,
}

impl Store<'_> {
    fn database(&self) -> &Database {
        &self.open.as_ref().unwrap().0
    }

    fn memo(&self) -> &StoreMemo {
        &self.open.as_ref().unwrap().1
    }

    fn restart(&mut self) {
        self.open = None;
        let database = Database::open_writer(&self.layout).unwrap();
        let memo = database.memo(ModelId::default());
        self.open = Some((database, memo));
    }

    fn clean(&self, n: usize) {
        let (text, ..) = self.docs[n].made();
        let cleaned = Cleaned::Text { text: TextHash::of(&text), bytes: text.len() as u64 };
        self.memo().put_cleaned(DocumentId::from_words([n as u64, 1]), &cleaned, Some(&text), Keep::Durable);
    }

    fn cut(&self, n: usize) {
        let (text, chunked, texts) = self.docs[n].made();
        let of = Some((TextHash::of(&text), text.as_str()));
        self.memo().put_chunks(id(n as u64), of, chunked, texts, Keep::Durable);
    }

    fn flush(&self, is_lost: bool) {
        let mapping = self.database().mapping().unwrap();
        let mut transaction = mapping.write().unwrap();
        let flush = self.memo().flush(&mut transaction, &FxHashMap::default()).unwrap();
        if !is_lost {
            transaction.commit().unwrap();
            self.memo().flushed(flush);
        }
    }

    /// Keeps what is named, breaks off after so many rows, while a document comes back, and ends.
    fn sweep(&mut self, [cleaned, lists]: &Known, rows: usize, back: usize) {
        self.flush(false);
        self.restart();
        let needed = |cleaned: &BTreeSet<usize>, lists: &BTreeSet<usize>| {
            let mut needed = Needed::default();
            needed.cleaned(cleaned.iter().map(|n| DocumentId::from_words([*n as u64, 1])));
            lists.iter().for_each(|n| needed.chunks(id(*n as u64)));
            needed
        };
        let mut superfluous = self.database().superfluous(&needed(cleaned, lists), &mut || true).unwrap().unwrap();
        let portion = Portion { rows, time: Duration::MAX };
        self.database().remove(&mut superfluous, portion, &mut || true).unwrap();
        self.clean(back);
        self.cut(back);
        self.flush(false);
        let again = BTreeSet::from([back]);
        self.database().keep(&mut superfluous, &needed(&again, &again)).unwrap();
        while !superfluous.is_empty() {
            self.database().remove(&mut superfluous, Portion::LARGE, &mut || true).unwrap();
        }
        self.restart();
    }

    fn check(&self, [cleaned, cut]: &Known) {
        for (n, doc) in self.docs.iter().enumerate() {
            let (text, chunked, texts) = doc.made();
            let found = self.memo().text(TextHash::of(&text));
            assert!(found.as_ref().is_none_or(|found| *found == text), "{n}: {found:?}");
            assert!(found.is_some() || !cleaned.contains(&n), "{n} is lost");
            if cut.contains(&n) {
                assert!(self.memo().chunks(id(n as u64)).as_deref() == Some(&chunked), "list {n}");
                for (hash, text) in texts {
                    assert_eq!(self.memo().text(hash), Some(text));
                }
            }
        }
        assert_eq!(self.database().lost_numbers().unwrap(), []);
        self.memo().check().unwrap();
    }

    /// Fails unless every document that was cut is composed, if it is made of its chunks.
    fn check_composed(&self, [cleaned, cut]: &Known) {
        let tables = self.database().mapped.tables().unwrap();
        let txn = tables.read().unwrap();
        for n in cleaned.intersection(cut) {
            let doc = &self.docs[*n];
            let number = tables.texts.number(&txn, doc.hash()).unwrap().unwrap();
            let is_chunk = tables.texts.is_of_chunk(&txn, doc.hash()).unwrap();
            // The first cut of a text counts.
            let is_marked = self.docs.iter().any(|other| other.is_marked && other.hash() == doc.hash());
            if !is_marked && !doc.parts.is_empty() && !is_chunk {
                let packed = tables.texts.cleaned.bytes(&txn, &number.to_be_bytes()).unwrap().unwrap();
                assert!(is_composition(packed), "{n}: {doc:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(64))]
    #[test]
    fn cleaned_texts_come_back_byte_for_byte_whenever_they_are_cut_flushed_lost_and_swept(
        docs in prop::collection::vec(doc(), 6),
        steps in prop::collection::vec(step(), 1..24),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let mut store = Store { docs: &docs, layout, open: None };
        store.restart();
        let (mut known, mut durable) = (Known::default(), Known::default());
        for step in steps {
            match step {
                Step::Clean(n) => {
                    let n = n.index(6);
                    store.clean(n);
                    known[0].insert(n);
                }
                Step::Cut(n) => {
                    // A text is cut once it is there.
                    let n = n.index(6);
                    if known[0].contains(&n) {
                        store.cut(n);
                        known[1].insert(n);
                    }
                }
                Step::Flush => {
                    store.flush(false);
                    durable = known.clone();
                    store.check_composed(&durable);
                }
                Step::LoseFlush => store.flush(true),
                Step::Restart => {
                    store.restart();
                    known = durable.clone();
                }
                Step::Sweep { cleaned, lists, rows, back } => {
                    let back = back.index(6);
                    store.sweep(&[cleaned.clone(), lists.clone()], rows, back);
                    known[0].retain(|n| cleaned.contains(n));
                    // A text that comes back while its list stayed is not cut again.
                    known[1].retain(|n| lists.contains(n) && cleaned.contains(n));
                    known.iter_mut().for_each(|known| known.extend([back]));
                    durable = known.clone();
                }
            }
            store.check(&known);
        }
    }
}

#[test]
fn a_text_that_is_one_chunk_or_a_chunk_of_another_is_stored_as_that() {
    let one = Doc { parts: vec![(3, 5)], tail: 5, is_marked: false };
    let two = Doc { parts: vec![(3, 5), (4, 0)], tail: 1, is_marked: false };
    for order in [[0, 1], [1, 0]] {
        let (folder, docs) = (tempfile::tempdir().unwrap(), [one.clone(), two.clone()]);
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let mut store = Store { docs: &docs, layout, open: None };
        store.restart();
        for n in order {
            store.clean(n);
            store.flush(false);
            store.cut(n);
            store.flush(false);
        }
        let known = [BTreeSet::from([0, 1]), BTreeSet::from([0, 1])];
        store.check(&known);
        store.check_composed(&known);
        let tables = store.database().mapped.tables().unwrap();
        let txn = tables.read().unwrap();
        assert_eq!(tables.texts.rows.len(&txn).unwrap(), 2, "each chunk once");
    }
}

//! The graph against the reference: after any sequence of edits, in any number of views and workers, the graph holds what the
//! reference computes from scratch, and the calls are the distinct new inputs.

use dataflows::code::InProcess;
use dataflows::data::{
    ContentId, Document, DocumentPath, Entry, Epoch, FileChange, FileMode, FileState, Hasher, Outcome, StageName, View,
};
use dataflows::embed::HashEmbedder;
use dataflows::memo::{Content, Contents, Memo, MemoryMemo, ReadError};
use dataflows::reference::{self, Inputs};
use dataflows::rules::Rules;
use dataflows::run::{EpochDone, Mill, MillParts, MillThreads};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, mpsc};

/// Contents that were written once and stay readable, except those that are declared missing.
#[derive(Default)]
struct Shelf(Mutex<BTreeMap<ContentId, Option<Vec<u8>>>>);

impl Shelf {
    fn write(&self, bytes: &[u8]) -> FileState {
        let content = content_id(bytes);
        self.0.lock().unwrap().insert(content, Some(bytes.to_vec()));
        FileState { content, mode: FileMode::Regular }
    }

    fn lose(&self, state: FileState) {
        self.0.lock().unwrap().insert(state.content, None);
    }
}

fn content_id(bytes: &[u8]) -> ContentId {
    let words = Hasher::new("content").part(bytes).finish();
    let mut id = [0; 20];
    id[..8].copy_from_slice(&words[0].to_le_bytes());
    id[8..16].copy_from_slice(&words[1].to_le_bytes());
    ContentId::from_bytes(id)
}

impl Contents for Shelf {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        match self.0.lock().unwrap().get(&content).cloned().flatten() {
            Some(bytes) if bytes.len() as u64 > max_bytes => Ok(Content::TooLarge(bytes.len() as u64)),
            Some(bytes) => Ok(Content::Bytes(bytes)),
            None => Err(ReadError::Missing { content, reason: "not on the shelf".to_owned() }),
        }
    }
}

type Tree = BTreeMap<DocumentPath, FileState>;

/// A mill with its services, and its output so far.
struct Bench {
    mill: Option<Mill>,
    finished: mpsc::Receiver<EpochDone>,
    shelf: Arc<Shelf>,
    rules: Arc<Rules>,
    trees: BTreeMap<View, Tree>,
    entries: BTreeMap<View, BTreeSet<Entry>>,
    documents: BTreeMap<View, BTreeSet<Document>>,
    seen: Inputs,
    epoch: u64,
}

impl Bench {
    fn new(workers: usize) -> Self {
        Self::with_memo(workers, Arc::new(MemoryMemo::default()))
    }

    fn with_memo(workers: usize, memo: Arc<dyn Memo>) -> Self {
        let (shelf, rules) = (Arc::new(Shelf::default()), Arc::new(Rules::built_in()));
        let embedder = Arc::new(HashEmbedder::new(32));
        let parts =
            MillParts { rules: rules.clone(), memo, contents: shelf.clone(), embedder, outliner: Arc::new(InProcess) };
        let mut mill = Mill::start(parts, MillThreads { workers, pool: 2 }).unwrap();
        let finished = mill.finished().unwrap();
        Self {
            mill: Some(mill),
            finished,
            shelf,
            rules,
            trees: BTreeMap::new(),
            entries: BTreeMap::new(),
            documents: BTreeMap::new(),
            seen: Inputs::default(),
            epoch: 0,
        }
    }

    /// Feeds the step to `tree` in `view` without waiting for it.
    fn feed(&mut self, view: View, tree: Tree) {
        let before = self.trees.insert(view, tree.clone()).unwrap_or_default();
        let paths: BTreeSet<&DocumentPath> = before.keys().chain(tree.keys()).collect();
        let changes = paths
            .into_iter()
            .map(|path| FileChange {
                path: path.clone(),
                before: before.get(path).copied(),
                after: tree.get(path).copied(),
            })
            .filter(|change| change.before != change.after)
            .collect();
        self.epoch += 1;
        self.mill.as_ref().unwrap().feed(Epoch(self.epoch), view, changes).unwrap();
    }

    /// Waits for the next epoch and adds it up.
    fn collect(&mut self) -> EpochDone {
        let done = self.finished.recv().unwrap();
        for (view, carded, change) in &done.entries {
            let entry = &carded.entry;
            assert_eq!(carded.card.hash(), entry.card, "an entry comes with its own card");
            let known = self.entries.entry(*view).or_default();
            let moved = if *change > 0 { known.insert(entry.clone()) } else { known.remove(entry) };
            assert!(moved && change.abs() == 1, "{change} of {entry:?}");
        }
        for (view, document, change) in &done.documents {
            let known = self.documents.entry(*view).or_default();
            let moved = if *change > 0 { known.insert(document.clone()) } else { known.remove(document) };
            assert!(moved && change.abs() == 1, "{change} of {document:?}");
        }
        done
    }

    fn step(&mut self, view: View, tree: Tree) -> EpochDone {
        self.feed(view, tree);
        self.collect()
    }

    /// Compares a view with the reference, and the calls of the step with the inputs that were new.
    fn check(&mut self, view: View, done: &EpochDone) {
        let expected = reference::build(&self.trees[&view], &self.rules, &*self.shelf);
        let entries = expected.entries.iter().map(|entry| entry.placed.entry.clone()).collect::<BTreeSet<_>>();
        assert_eq!(self.entries.get(&view).cloned().unwrap_or_default(), entries);
        let documents = expected.documents.into_iter().collect::<BTreeSet<_>>();
        assert_eq!(self.documents.get(&view).cloned().unwrap_or_default(), documents);
        let calls = (done.work.clean.calls, done.work.chunk.calls, done.work.embed.calls);
        let new = |now: usize, known: usize| (now - known) as u64;
        let before = (self.seen.clean.len(), self.seen.chunk.len(), self.seen.embed.len());
        self.seen.clean.extend(expected.inputs.clean);
        self.seen.chunk.extend(expected.inputs.chunk);
        self.seen.embed.extend(expected.inputs.embed);
        let expected_calls = (
            new(self.seen.clean.len(), before.0),
            new(self.seen.chunk.len(), before.1),
            new(self.seen.embed.len(), before.2),
        );
        assert_eq!(calls, expected_calls, "calls of (clean, chunk, embed) against distinct new inputs");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(mill) = self.mill.take() {
            mill.stop().unwrap();
        }
    }
}

#[derive(Clone, Debug)]
enum Edit {
    Write(usize, usize),
    Delete(usize),
    Rename(usize, usize),
    Revert,
    Branch,
}

const PATHS: [&str; 12] = [
    "src/a.rs",
    "src/b.rs",
    "src/inner/c.rs",
    "docs/guide.md",
    "Cargo.toml",
    "src/Cargo.toml",
    "notes.txt",
    "src/d.rs",
    ".editorconfig",
    "src/.editorconfig",
    "src/inner/e.txt",
    "docs/Cargo.toml",
];

fn content(number: usize) -> Vec<u8> {
    let text = match number % 10 {
        6 => "root = true\n[*.rs]\nindent_size = 4\n".to_owned(),
        7 => format!("[*.{{txt,toml}}]\ncharset = {}\n", ["latin1", "windows-1251", "utf-8"][number % 3]),
        8 => "[inner/*]\ncharset = koi8-r\n[*.md]\ncharset = latin1\n".to_owned(),
        9 => return b"[package]\nname = \"gr\xFC\xDFe\"\n".to_vec(),
        0 => "fn one() -> u32 {\n    1\n}\n\nfn two() -> u32 {\n    2\n}\n".to_owned(),
        1 => "[package]\nname = \"alpha\"\n".to_owned(),
        2 => "[package]\nname = \"beta\"\nversion = \"1.0.0\"\n".to_owned(),
        3 => "# Guide\n\nFirst words.\n\n## Part\n\nMore words.\n".to_owned(),
        4 => format!("words that differ {number}\n\nwords that stay\n"),
        _ => "fn one() -> u32 {\n    1\n}\n\nfn one() -> u32 {\n    1\n}\n".to_owned(),
    };
    text.into_bytes()
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let path = 0..PATHS.len();
    let edit = prop_oneof![
        5 => (path.clone(), 0..30usize).prop_map(|(path, number)| Edit::Write(path, number)),
        2 => path.clone().prop_map(Edit::Delete),
        2 => (path.clone(), path).prop_map(|(from, to)| Edit::Rename(from, to)),
        1 => Just(Edit::Revert),
        1 => Just(Edit::Branch),
    ];
    prop::collection::vec(edit, 1..16)
}

fn apply(edit: &Edit, shelf: &Shelf, tree: &mut Tree) {
    match edit {
        Edit::Write(path, number) => {
            tree.insert(PATHS[*path].into(), shelf.write(&content(*number)));
        }
        Edit::Delete(path) => {
            tree.remove(&DocumentPath::from(PATHS[*path]));
        }
        Edit::Rename(from, to) => {
            if let Some(state) = tree.remove(&DocumentPath::from(PATHS[*from])) {
                tree.insert(PATHS[*to].into(), state);
            }
        }
        Edit::Revert | Edit::Branch => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn incremental_equals_rebuilt_and_calls_equal_new_inputs(edits in edits(), workers in 1..3usize) {
        let mut bench = Bench::new(workers);
        let mut history = vec![Tree::new()];
        let mut view = View(0);
        for edit in &edits {
            let mut tree = bench.trees.get(&view).cloned().unwrap_or_default();
            match edit {
                Edit::Revert => tree = history[history.len() / 2].clone(),
                Edit::Branch => view = View(1 - view.0),
                _ => apply(edit, &bench.shelf, &mut tree),
            }
            history.push(tree.clone());
            let done = bench.step(view, tree);
            bench.check(view, &done);
        }
    }

    #[test]
    fn epochs_fed_at_once_come_out_one_by_one_and_complete(edits in edits()) {
        let mut bench = Bench::new(1);
        let mut tree = Tree::new();
        let mut trees = Vec::new();
        for edit in &edits {
            apply(edit, &bench.shelf, &mut tree);
            trees.push(tree.clone());
            bench.feed(View(0), tree.clone());
        }
        for (number, tree) in trees.into_iter().enumerate() {
            let done = bench.collect();
            prop_assert_eq!(done.epoch, Epoch(number as u64 + 1));
            let expected = reference::build(&tree, &bench.rules, &*bench.shelf);
            let entries = expected.entries.into_iter().map(|entry| entry.placed.entry).collect::<BTreeSet<_>>();
            prop_assert_eq!(bench.entries.get(&View(0)).cloned().unwrap_or_default(), entries);
        }
    }
}

#[test]
fn one_content_at_a_hundred_paths_is_worked_on_once() {
    let mut bench = Bench::new(1);
    let state = bench.shelf.write(&content(0));
    let tree: Tree = (0..100).map(|n| (DocumentPath::from(format!("src/f{n}.rs").as_str()), state)).collect();
    let done = bench.step(View(0), tree.clone());
    bench.check(View(0), &done);
    assert_eq!((done.work.clean.calls, done.work.chunk.calls), (1, 1));
    let kept = tree.into_iter().take(1).collect();
    let done = bench.step(View(0), kept);
    bench.check(View(0), &done);
    assert_eq!(done.work.clean.calls + done.work.chunk.calls + done.work.embed.calls, 0);
}

#[test]
fn a_second_mill_over_the_same_memo_computes_nothing() {
    let memo: Arc<MemoryMemo> = Arc::default();
    let mut first = Bench::with_memo(1, memo.clone());
    let tree: Tree = (0..6).map(|n| (DocumentPath::from(PATHS[n]), first.shelf.write(&content(n)))).collect();
    first.step(View(0), tree.clone());
    let mut second = Bench::with_memo(1, memo);
    let done = second.step(View(0), tree);
    assert_eq!(second.entries, first.entries);
    assert_eq!(done.work.clean.calls + done.work.chunk.calls + done.work.embed.calls, 0);
    assert!(done.work.cache_hits() > 0);
}

#[test]
fn a_missing_object_is_a_fault_of_its_document_only() {
    let mut bench = Bench::new(1);
    let lost = bench.shelf.write(b"gone");
    let kept = bench.shelf.write(&content(0));
    bench.shelf.lose(lost);
    let done = bench.step(View(0), Tree::from([("lost.txt".into(), lost), ("kept.rs".into(), kept)]));
    bench.check(View(0), &done);
    assert_eq!(done.work.clean.faults, 1);
    let fault = bench.documents[&View(0)].iter().find(|document| document.path.as_bytes() == b"lost.txt").unwrap();
    assert!(matches!(&fault.outcome, Outcome::Fault { stage: StageName::Clean, error } if error.contains("missing")));
    let done = bench.step(View(0), Tree::from([("kept.rs".into(), kept)]));
    bench.check(View(0), &done);
    assert!(bench.documents[&View(0)].iter().all(|document| matches!(document.outcome, Outcome::Indexed { .. })));
}

#[test]
fn a_changed_editorconfig_cleans_the_files_again_that_it_governs_and_no_others() {
    let mut bench = Bench::new(1);
    let cyrillic = bench.shelf.write(b"\xCF\xF0\xE8\xE2\xE5\xF2, \xEC\xE8\xF0\n");
    let latin = bench.shelf.write(b"Gr\xFC\xDFe aus K\xF6ln\n");
    let says = |bench: &Bench, text: &str| bench.shelf.write(text.as_bytes());
    let mut tree: Tree = (0..20).map(|n| (format!("src/f{n}.txt").as_str().into(), latin)).collect();
    tree.insert("ru/a.txt".into(), cyrillic);
    tree.insert(".editorconfig".into(), says(&bench, "root = true\n[*]\nindent_style = tab\n"));
    let done = bench.step(View(0), tree.clone());
    bench.check(View(0), &done);
    let step = |bench: &mut Bench, tree: &Tree| {
        let done = bench.step(View(0), tree.clone());
        bench.check(View(0), &done);
        let moved: BTreeSet<String> =
            done.documents.iter().map(|(_, document, _)| document.path.display().into_owned()).collect();
        (done.work.clean.calls, moved.into_iter().collect::<Vec<_>>())
    };
    tree.insert(".editorconfig".into(), says(&bench, "root = true\n[ru/*]\ncharset = windows-1251\n"));
    assert_eq!(step(&mut bench, &tree), (2, vec![".editorconfig".to_owned(), "ru/a.txt".to_owned()]));
    let texts: BTreeSet<String> =
        reference::build(&tree, &bench.rules, &*bench.shelf).entries.into_iter().map(|entry| entry.text).collect();
    assert!(texts.iter().any(|text| text.contains("Привет, мир")), "{texts:?}");
    tree.insert(
        ".editorconfig".into(),
        says(&bench, "root = true\n[ru/*]\ncharset = windows-1251\n[*]\nindent_size = 2\n"),
    );
    assert_eq!(step(&mut bench, &tree), (1, vec![".editorconfig".to_owned()]));
    tree.insert("ru/.editorconfig".into(), says(&bench, "[*]\ncharset = unset\n"));
    assert_eq!(step(&mut bench, &tree).1, ["ru/.editorconfig", "ru/a.txt"]);
    tree.remove(&DocumentPath::from("ru/.editorconfig"));
    assert_eq!(step(&mut bench, &tree), (0, vec!["ru/.editorconfig".to_owned(), "ru/a.txt".to_owned()]));
}

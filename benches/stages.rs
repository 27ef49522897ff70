//! What does each stage cost alone: cleaning, cutting, embedding, the graph, publishing, a question?
//!
//! `cargo bench --bench stages` measures; `cargo bench --bench stages -- --test` runs everything once, as a smoke test. The texts
//! are those of a generated tree (`tidemill bench steady` with seed 1), so two machines measure the same bytes.

use dataflows::chunk::chunk;
use dataflows::clean::clean;
use dataflows::code::InProcess;
use dataflows::data::{ContentId, Epoch, FileChange, View};
use dataflows::embed::Embedder;
use dataflows::memo::{Content, Contents, MemoryMemo, ReadError};
use dataflows::rules::Rules;
use dataflows::run::{EpochDone, Mill, MillParts, MillThreads};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;
use tidemill::embedders::StaticModel;
use tidemill::replay::{Knobs, replay};
use tidemill::search::{Mode, Request, Searcher};
use tidemill::store::Layout;
use tidemill::trace::generate::{Scenario, Settings, generate};
use tidemill::trace::{EpochRecord, Stored, Trace};

/// Files of the generated tree: ten modules.
const FILES: u64 = 640;

/// The generated tree, with its folder.
static CORPUS: LazyLock<(TempDir, Arc<Trace>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder for temporary files can be made");
    let path = folder.path().join("steady.tmtrace");
    generate(&path, Scenario::Steady, Settings { files: FILES, epochs: 41, seed: 1 }).expect("it can be written");
    let trace = Arc::new(Trace::open(&path).expect("it was just written"));
    (folder, trace)
});

/// A store that was filled from the tree.
static STORE: LazyLock<Layout> = LazyLock::new(|| {
    let (folder, trace) = &*CORPUS;
    let store = folder.path().join("store");
    let knobs = Knobs { data: Some(store.clone()), check_work: false, ..Knobs::default() };
    replay(trace, &knobs, Box::new(|_| {})).expect("a generated trace can be replayed");
    Layout::new(store)
});

fn main() {
    divan::main();
}

fn epoch(number: usize) -> EpochRecord {
    CORPUS.1.epoch(number).expect("the trace has it")
}

/// Returns up to forty files with this ending, as bytes.
fn files(ending: &str) -> Vec<Vec<u8>> {
    let named = epoch(0).changes.into_iter().filter(|change| change.path.as_bytes().ends_with(ending.as_bytes()));
    let contents = named.filter_map(|change| CORPUS.1.content(change.after?.content).ok().flatten());
    let whole = contents.filter_map(|stored| if let Stored::Whole(bytes) = stored { Some(bytes) } else { None });
    whole.take(40).collect()
}

fn bytes(files: &[Vec<u8>]) -> BytesCount {
    BytesCount::new(files.iter().map(Vec::len).sum::<usize>())
}

#[divan::bench(args = [".h", ".cpp", ".md"])]
fn clean_files(bencher: Bencher<'_, '_>, ending: &str) {
    let (rules, files) = (Rules::built_in(), files(ending));
    let rule = rules.rule(rules.for_path(&format!("a{ending}").as_str().into()));
    bencher.counter(bytes(&files)).bench(|| files.iter().filter_map(|bytes| clean(rule, bytes).ok()).count());
}

#[divan::bench(args = [".h", ".cpp", ".rs", ".py", ".usf", ".md", ".ini"])]
fn chunk_files(bencher: Bencher<'_, '_>, ending: &str) {
    let (rules, files) = (Rules::built_in(), files(ending));
    let rule = rules.rule(rules.for_path(&format!("a{ending}").as_str().into()));
    let texts: Vec<String> = files.iter().filter_map(|bytes| clean(rule, bytes).ok()).collect();
    bencher.counter(bytes(&files)).bench(|| texts.iter().map(|text| chunk(rule, text).len()).sum::<usize>());
}

#[divan::bench(args = [".cpp", ".md"])]
fn embed_texts(bencher: Bencher<'_, '_>, ending: &str) {
    let (rules, model) = (Rules::built_in(), StaticModel::new());
    let rule = rules.rule(rules.for_path(&format!("a{ending}").as_str().into()));
    let texts: Vec<String> = files(ending)
        .iter()
        .filter_map(|bytes| clean(rule, bytes).ok())
        .flat_map(|text| chunk(rule, &text).into_iter().map(|piece| piece.text))
        .take(256)
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    bencher
        .counter(ItemsCount::new(texts.len()))
        .bench(|| model.embed_documents(&texts).expect("the built-in model runs").len());
}

/// The contents of the trace, for the graph.
struct FromTrace;

impl Contents for FromTrace {
    fn read(&self, content: ContentId, _max_bytes: u64) -> Result<Content, ReadError> {
        match CORPUS.1.content(content) {
            Ok(Some(Stored::Whole(bytes))) => Ok(Content::Bytes(bytes)),
            _ => Err(ReadError::Missing { content, reason: "it is not in the trace".to_owned() }),
        }
    }
}

/// A graph that holds the tree.
struct Graph {
    mill: Mill,
    finished: Receiver<EpochDone>,
    next: u64,
}

impl Graph {
    fn holding_the_tree() -> Self {
        let parts = MillParts {
            rules: Arc::new(Rules::built_in()),
            memo: Arc::new(MemoryMemo::default()),
            contents: Arc::new(FromTrace),
            embedder: Arc::new(StaticModel::new()),
            outliner: Arc::new(InProcess),
        };
        let mut mill = Mill::start(parts, MillThreads { workers: 1, pool: 2 }).expect("threads can be had");
        let finished = mill.finished().expect("it is asked for once");
        let mut graph = Self { mill, finished, next: 1 };
        graph.take(epoch(0).changes);
        graph
    }

    fn take(&mut self, changes: Vec<FileChange>) -> usize {
        self.mill.feed(Epoch(self.next), View(0), changes).expect("the graph runs");
        self.next += 1;
        self.finished.recv().expect("the graph runs").entries.len()
    }
}

/// A commit of five files and its revert, over a memo that has both.
#[divan::bench]
fn graph_there_and_back(bencher: Bencher<'_, '_>) {
    let mut graph = Graph::holding_the_tree();
    let there = epoch(1).changes;
    let turn =
        |change: &FileChange| FileChange { path: change.path.clone(), before: change.after, after: change.before };
    let back: Vec<FileChange> = there.iter().map(turn).collect();
    bencher.counter(ItemsCount::new(2_usize)).bench_local(|| graph.take(there.clone()) + graph.take(back.clone()));
}

/// Forty commits of five files, published one by one after a first load: everything, from an empty store.
#[divan::bench(args = [1, 64], sample_count = 3, sample_size = 1)]
fn publish_forty_commits(bencher: Bencher<'_, '_>, batch: usize) {
    let knobs = Knobs { batch, check_work: false, ..Knobs::default() };
    let trace = &CORPUS.1;
    bencher.bench(|| replay(trace, &knobs, Box::new(|_| {})).expect("a generated trace can be replayed").epochs);
}

#[divan::bench(args = ["bm25", "vector", "hybrid"])]
fn search(bencher: Bencher<'_, '_>, mode: &str) {
    let searcher = Searcher::open(&STORE).expect("the store was just filled");
    let mode = match mode {
        "bm25" => Mode::Bm25,
        "vector" => Mode::Vector,
        _ => Mode::Hybrid,
    };
    let request = Request { mode, ..Request::new("camera that renders the shadow of a mesh") };
    bencher.bench(|| searcher.search(&request).expect("the question can be answered").hits.len());
}

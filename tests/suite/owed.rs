//! *What a model refuses is owed, and comes*: a model that fails at random times costs only the vectors that it refused, which
//! every answer counts and `status` shows; they come without a restart, or with one, and no text is embedded more often than it
//! was refused. And *what is embedded names its vector*: a label on every rule embeds nothing.
//!
//! **Invariant:** what is compared with is built from nothing by a model that never fails.

use crate::support::{History, Picture, Repository, Running, Step, Store, git, steps, tree};
use dataflows::data::ModelId;
use dataflows::embed::{EmbedError, Embedder, Vector};
use dataflows::rules::Rules;
use proptest::prelude::*;
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidemill::embedders::StaticModel;
use tidemill::index::audit::audit;
use tidemill::search::{Mode, Request, Searcher};

/// How a model does.
const FINE: u8 = 0;
/// It refuses everything.
const OFF: u8 = 1;
/// It refuses a batch with a text whose length is a multiple of three.
const PICKY: u8 = 2;

/// The built-in model behind a line that fails.
struct Flaky {
    model: StaticModel,
    mood: AtomicU8,
    given: AtomicU64,
    seen: Mutex<BTreeSet<String>>,
}

impl Flaky {
    fn new() -> Arc<Self> {
        Arc::new(Self { model: StaticModel::new(), mood: AtomicU8::new(FINE), given: 0.into(), seen: Mutex::default() })
    }
}

impl Embedder for Flaky {
    fn fingerprint(&self) -> ModelId {
        self.model.fingerprint()
    }

    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn embed_documents(&self, texts: &[&str]) -> Result<Vec<Option<Vector>>, EmbedError> {
        self.given.fetch_add(texts.len() as u64, Ordering::Relaxed);
        self.seen.lock().unwrap().extend(texts.iter().map(|text| (*text).to_owned()));
        let is_refused = match self.mood.load(Ordering::Relaxed) {
            OFF => true,
            PICKY => texts.iter().any(|text| text.len().is_multiple_of(3)),
            _ => false,
        };
        if is_refused {
            return Err(EmbedError::Model { model: "flaky".to_owned(), source: "the line is cut".into() });
        }
        self.model.embed_documents(texts)
    }

    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        self.model.embed_query(text)
    }
}

/// Returns how many entries of all heads are owed a vector.
fn owed(searcher: &Searcher) -> usize {
    let selected = searcher.revisions().select(searcher.reader(), None, None, None).unwrap();
    let owed = selected.iter().map(|selected| {
        let alive = searcher.reader().with_archive(|archive| archive.bitmaps(selected.version)).unwrap();
        let owed = searcher.reader().owed_entries(&alive.entries).unwrap();
        assert!(owed.iter().all(|(_, reason)| !reason.is_empty()));
        owed.len()
    });
    owed.sum()
}

struct World {
    history: History,
    store: Store,
    model: Arc<Flaky>,
    running: Option<Running>,
    truths: BTreeMap<CommitId, Picture>,
}

impl World {
    fn new() -> Self {
        let model = Flaky::new();
        let store = Store::with_model(model.clone());
        Self { history: History::new(), store, model, running: None, truths: BTreeMap::new() }
    }

    fn take(&mut self, step: Step, mood: u8) {
        self.history.take(step);
        match step {
            Step::Sync => {
                self.model.mood.store(mood, Ordering::Relaxed);
                self.sync();
                // Nothing is asked between the looks below.
                self.answers_say_what_is_owed();
            }
            Step::Restart => self.running = None,
            _ => {}
        }
    }

    fn sync(&mut self) {
        let source = git(self.history.repository.path(), &["*"], None);
        let running = self.running.get_or_insert_with(|| self.store.open(source));
        running.catch_up();
        self.history.synced();
    }

    /// Compares what answers say with what is owed. Vectors may come meanwhile.
    fn answers_say_what_is_owed(&self) {
        let searcher = self.store.searcher();
        let before = owed(&searcher) as u64;
        let answer = searcher.search(&Request { mode: Mode::Vector, ..Request::new("camera") }).unwrap();
        assert!(answer.without_vector <= before, "{} {before}", answer.without_vector);
        assert_eq!(answer.exact, answer.without_vector == 0);
        let words = searcher.search(&Request { mode: Mode::Bm25, ..Request::new("camera") }).unwrap();
        assert!(words.exact, "words are found whatever the model does");
        let checked = audit(&self.store.layout(), self.model.fingerprint(), 256).unwrap();
        assert_eq!(checked.findings, []);
    }

    /// Waits until nothing is owed, and compares everything.
    fn end(mut self) {
        self.model.mood.store(FINE, Ordering::Relaxed);
        self.sync();
        let patience = Instant::now() + Duration::from_secs(60);
        let reasons =
            |searcher: Searcher| searcher.reader().database().coverage(self.model.fingerprint()).owed().unwrap();
        while !reasons(self.store.searcher()).is_empty() {
            assert!(Instant::now() < patience, "what is owed comes without a restart");
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(self.running.take());
        let searcher = self.store.searcher();
        let heads: BTreeSet<CommitId> = self.history.heads().collect();
        for head in heads {
            let truth = self.truths.entry(head).or_insert_with(|| {
                let (alone, store) = (self.history.repository.at(head), Store::new());
                store.track(git(alone.path(), &["main"], None));
                Picture::of(&store.searcher(), Some(&head.to_string()))
            });
            Picture::of(&searcher, Some(&head.to_string())).assert_equals(truth, head);
        }
        let checked = audit(&self.store.layout(), self.model.fingerprint(), 256).unwrap();
        assert_eq!((checked.findings, checked.owed), (Vec::new(), 0));
        let receipts = searcher.reader().catalogue().receipts().unwrap();
        let embedded: u64 = receipts.iter().map(|receipt| receipt.embedded).sum();
        let retried: u64 = receipts.iter().map(|receipt| receipt.retried).sum();
        assert_eq!(
            embedded,
            self.model.seen.lock().unwrap().len() as u64,
            "each distinct input counts as embedded once"
        );
        assert_eq!(embedded + retried, self.model.given.load(Ordering::Relaxed), "every other call is a retry");
    }
}

fn moods() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![2 => Just(FINE), 2 => Just(OFF), 3 => Just(PICKY)], 8)
}

proptest! {
    #![proptest_config(crate::support::cases(8))]

    #[test]
    fn what_a_model_refuses_is_owed_and_comes(steps in steps(8..28), moods in moods()) {
        let mut world = World::new();
        let mut moods = moods.into_iter().cycle();
        for step in steps {
            world.take(step, moods.next().unwrap());
        }
        world.end();
    }
}

#[test]
fn a_model_that_comes_back_heals_a_tracker_that_runs_and_a_start_heals_what_was_left() {
    for restarts in [false, true] {
        let mut world = World::new();
        world.take(Step::Sync, OFF);
        let searcher = world.store.searcher();
        let owed = owed(&searcher);
        assert!(owed > 0);
        let answer = searcher.search(&Request { mode: Mode::Hybrid, ..Request::new("camera") }).unwrap();
        assert_eq!((answer.without_vector, answer.exact), (owed as u64, false));
        assert!(!answer.hits.is_empty(), "its words are found");
        let published = world.store.searcher().reader().catalogue().receipts().unwrap();
        assert!(published.iter().any(|receipt| receipt.faults > 0));
        if restarts {
            world.running = None;
        }
        world.end();
    }
}

/// A test of labels: what is embedded holds none, so nothing is embedded for one.
#[test]
fn a_label_on_every_rule_embeds_nothing() {
    let repository = Repository::new();
    let files = [
        ("Cargo.toml", "[package]\nname = \"mill\"\n"),
        ("src/wheel.rs", "/// Turns.\npub fn turn_wheel() {\n    turn();\n}\n"),
        ("docs/guide.md", "# Guide\n\nThe wheel turns at high water.\n"),
    ];
    repository.commit(&tree(files));
    let store = Store::new();
    let all = ["", "labels = { part = \"all\" }\n"].map(|labels| {
        let rules = format!("[[rule]]\nname = \"all\"\nmatch = [\"**\"]\nkind = \"text\"\ncleaner = \"plain\"\nchunker = \"line\"\n{labels}");
        Arc::new(Rules::parse(&rules).unwrap())
    });
    let mut receipts = Vec::new();
    for rules in all {
        let mut running = store.open_under(git(repository.path(), &["main"], None), rules);
        receipts.push(running.catch_up().pop().unwrap().receipt);
    }
    assert!(receipts[0].embedded > 0);
    let [_, labelled] = &receipts[..] else { panic!("{receipts:?}") };
    assert_eq!((labelled.embedded, labelled.retried), (0, 0));
    assert_eq!(labelled.inserted, receipts[0].inserted, "every entry is another one");
    let searcher = store.searcher();
    let answer = searcher.search(&Request { mode: Mode::Vector, ..Request::new("high water") }).unwrap();
    assert_eq!((answer.without_vector, answer.hits[0].path.to_string().as_str()), (0, "docs/guide.md"));
    assert_eq!(answer.hits[0].card.labels, [("part".to_owned(), "all".to_owned())]);
    assert_eq!(audit(&store.layout(), StaticModel::new().fingerprint(), 256).unwrap().findings, []);
}

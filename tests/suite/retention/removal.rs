//! *Entries that come back during a removal stay*: epochs are published between the steps of a removal, and bring back rows on
//! its lists, in all orders. The store is consistent after every step, and equal trees have equal digests.
//!
//! Here the graph and the writer are driven one step at a time, so that each order is deliberate.

use super::check;
use crate::support::{cases, content_id};
use dataflows::code::InProcess;
use dataflows::data::{ContentId, Document, DocumentPath, Epoch, FileMode, FileState, View};
use dataflows::embed::Embedder;
use dataflows::memo::{Content, Contents, ReadError};
use dataflows::rules::Rules;
use dataflows::run::{EpochDone, Mill, MillParts, MillThreads};
use proptest::prelude::*;
use snapshots::{Archive, CommitId, Digest, SourceId, VersionId, ViewId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tidemill::embedders::StaticModel;
use tidemill::engine::fingerprint;
use tidemill::index::apply::{CommitTarget, IndexWriter, Purpose, Target, heal};
use tidemill::index::collect::{Progress, Removal, drop_beside, step, survey};
use tidemill::index::vector::{Shape, VectorWriter};
use tidemill::store::{Database, Layout, SourceKind, SourceRecord, ViewRecord};
use tidemill::watch::changes;

const PATHS: [&str; 4] = ["src/camera.rs", "src/light.rs", "docs/guide.md", "Cargo.toml"];
const VIEW: View = View(0);

/// An event of a store. A commit puts contents at paths, or nothing.
#[derive(Clone, Debug)]
enum Happens {
    Commit(Vec<(usize, Option<usize>)>),
    /// All but so many of the newest versions are dropped.
    Drop(usize),
    Survey,
    /// A step of the removal, if one is in progress: a short one, or a whole portion.
    Step(bool),
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let file = (0..PATHS.len(), prop::option::weighted(0.8, 0..CONTENTS));
    let happens = prop_oneof![
        5 => prop::collection::vec(file, 1..4).prop_map(Happens::Commit),
        1 => (1..4usize).prop_map(Happens::Drop),
        2 => Just(Happens::Survey),
        8 => any::<bool>().prop_map(Happens::Step),
    ];
    prop::collection::vec(happens, 12..40)
}

/// Contents share the texts and names of their items: one of two for each of four.
const CONTENTS: usize = 16;

fn text(content: usize) -> String {
    let item = |item: usize| {
        let version = content >> item & 1;
        format!(
            "/// Turns wheel {item} of the mill, {version}.\npub fn wheel_{item}_{version}() {{\n    turn({item}, {version});\n}}\n\n"
        )
    };
    (0..4).map(item).collect()
}

/// The contents there are, by their ids.
struct Pool(BTreeMap<ContentId, Vec<u8>>);

impl Contents for Pool {
    fn read(&self, content: ContentId, _: u64) -> Result<Content, ReadError> {
        let missing = || ReadError::Missing { content, reason: "it is none of these".to_owned() };
        self.0.get(&content).cloned().map(Content::Bytes).ok_or_else(missing)
    }
}

type Tree = BTreeMap<DocumentPath, FileState>;

struct World {
    // Ended in this order.
    mill: Mill,
    finished: Receiver<EpochDone>,
    writer: IndexWriter,
    removal: Option<Removal>,
    database: Database,
    rules: Arc<Rules>,
    layout: Layout,
    tree: Tree,
    digests: BTreeMap<Vec<(DocumentPath, ContentId)>, Digest>,
    commits: u8,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path().join("store"));
        let model: Arc<dyn Embedder> = Arc::new(StaticModel::new());
        layout.create().unwrap();
        let database = Database::open_writer(&layout).unwrap();
        let memo = database.memo(model.fingerprint());
        let mut archive = Archive::create_or_open_writer(&layout.versions()).unwrap();
        let shape = Shape { dimensions: u32::try_from(model.dimensions()).unwrap(), model: model.fingerprint() };
        let mut vectors = VectorWriter::open(&layout.vectors(), shape).unwrap();
        let lexical = heal(&layout, &database, &memo, &mut archive, &mut vectors, &model).unwrap();
        let catalogue = database.catalogue();
        let mapping = database.mapping().unwrap();
        let mut transaction = mapping.write().unwrap();
        let record = SourceRecord { name: "engine".to_owned(), kind: SourceKind::Git, location: Vec::new() };
        catalogue.put_source(&mut transaction, SourceId::new(0), &record).unwrap();
        let record = ViewRecord { source: SourceId::new(0), name: "main".to_owned() };
        catalogue.put_view(&mut transaction, ViewId::new(0), &record).unwrap();
        transaction.commit().unwrap();
        let rules = Arc::new(Rules::built_in());
        let name = fingerprint(&rules);
        let writer = IndexWriter::new(database.clone(), memo.clone(), archive, lexical, vectors, name, model.clone());
        let pool = (0..CONTENTS).map(|content| {
            let bytes = text(content).into_bytes();
            (content_id(&bytes), bytes)
        });
        let parts = MillParts {
            rules: rules.clone(),
            memo: Arc::new(memo),
            contents: Arc::new(Pool(pool.collect())),
            embedder: model,
            outliner: Arc::new(InProcess),
        };
        let mut mill = Mill::start(parts, MillThreads { workers: 1, pool: 1 }).unwrap();
        let finished = mill.finished().unwrap();
        let (tree, digests) = Default::default();
        let mut world = Self {
            mill,
            finished,
            writer: writer.unwrap(),
            removal: None,
            database,
            rules,
            layout,
            tree,
            digests,
            commits: 0,
            _folder: folder,
        };
        world.commit(&[(0, Some(0)), (1, Some(5)), (2, Some(3))]);
        world
    }

    fn take(&mut self, happens: &Happens) {
        match happens {
            Happens::Commit(files) => self.commit(files),
            Happens::Drop(newest) => {
                let kept: Vec<VersionId> = self.writer.archive().kept().map(|version| version.id).collect();
                let old = &kept[..kept.len().saturating_sub(*newest)];
                let old = old.iter().map(|version| version.get()).collect();
                drop_beside(&mut self.writer, old).unwrap().unwrap();
            }
            Happens::Survey => self.survey(),
            Happens::Step(is_short) => {
                self.step(*is_short);
                assert_eq!(check(&self.layout).findings, []);
            }
        }
    }

    fn commit(&mut self, files: &[(usize, Option<usize>)]) {
        let mut tree = self.tree.clone();
        for (path, content) in files {
            let path = DocumentPath::from(PATHS[*path]);
            match content {
                Some(content) => {
                    let content = content_id(text(*content).as_bytes());
                    tree.insert(path, FileState { content, mode: FileMode::Regular });
                }
                None => drop(tree.remove(&path)),
            }
        }
        self.commits += 1;
        self.mill.feed(Epoch(u64::from(self.commits)), VIEW, changes(&self.tree, &tree)).unwrap();
        let done = self.finished.recv_timeout(Duration::from_secs(60)).unwrap();
        let commit = |number: u8| CommitId::from_bytes([number; 20]);
        let target = CommitTarget {
            source: SourceId::new(0),
            commit: commit(self.commits),
            parent: (self.commits > 1).then(|| commit(self.commits - 1)),
            time: i64::from(self.commits),
            view: Some(ViewId::new(0)),
        };
        let purpose = Purpose::Commit(target);
        let target = Target { graph_view: VIEW, purpose, begun: Instant::now(), diff: Duration::ZERO, seen: 0 };
        let published = self.writer.publish(vec![(target, done)]).unwrap();
        self.tree = tree;
        let key = self.tree.iter().map(|(path, state)| (path.clone(), state.content)).collect();
        let digest = published[0].version.digest;
        assert_eq!(*self.digests.entry(key).or_insert(digest), digest, "one tree, one digest");
    }

    fn survey(&mut self) {
        let archive = Archive::open_reader(&self.layout.versions()).unwrap();
        let (graph, rules) = (self.writer.in_graph().unwrap(), self.rules.clone());
        let cleaned = |document: &Document| rules.document_id(document);
        let found = survey(&self.layout, &self.database, &archive, &graph, Some(&cleaned), &mut || true);
        self.removal = found.unwrap().map(Removal::begin);
    }

    fn step(&mut self, is_short: bool) {
        let (rules, Some(removal)) = (self.rules.clone(), &mut self.removal) else { return };
        let cleaned = |document: &Document| rules.document_id(document);
        let progress = loop {
            match step(&mut self.writer, removal, &cleaned, &mut || !is_short).unwrap() {
                Progress::Waits => std::thread::sleep(Duration::from_millis(1)),
                progress => break progress,
            }
        };
        if progress == Progress::Done {
            assert!(removal.collected.is_complete);
            self.removal = None;
        }
    }

    /// Keeps the newest version only, and removes everything that it does not need.
    fn end(mut self) {
        self.take(&Happens::Drop(1));
        self.survey();
        while self.removal.is_some() {
            self.step(false);
        }
        let checked = check(&self.layout);
        assert_eq!((checked.findings, checked.garbage, checked.orphans), (Vec::new(), 0, 0));
        // Everything that the graph holds can still be retracted, and all of it comes back.
        let files = self.tree.clone();
        self.commit(&[(0, None), (1, None), (2, None), (3, None)]);
        let again: Vec<(usize, Option<usize>)> = files
            .iter()
            .map(|(path, state)| {
                let content = (0..CONTENTS).find(|content| content_id(text(*content).as_bytes()) == state.content);
                (PATHS.iter().position(|known| DocumentPath::from(*known) == *path).unwrap(), content)
            })
            .collect();
        self.commit(&again);
        assert_eq!(check(&self.layout).findings, []);
    }
}

proptest! {
    #![proptest_config(cases(10))]

    #[test]
    fn what_comes_back_while_it_is_being_removed_stays(happenings in happenings()) {
        let mut world = World::new();
        for happens in &happenings {
            world.take(happens);
        }
        world.end();
    }
}

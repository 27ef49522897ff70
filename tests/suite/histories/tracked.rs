//! A store that tracks a repository, started and stopped at will, and what it holds.
//!
//! In: a repository. Out: views, documents and hits as of any version.

use dataflows::data::{Outcome, SkipReason};
use snapshots::{CommitId, Ordinal};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tidemill::config::{Config, SourceConfig};
use tidemill::engine::{EngineError, Stop, Tracker, TrackerOptions};
use tidemill::search::{Mode, Request, Searcher};
use tidemill::store::Layout;

/// What a version says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// It is a document, or no text.
    File,
    /// A symbolic link.
    Link,
    /// A submodule.
    Module,
    /// It could not be read.
    Fault,
}

/// A store and, while it runs, its tracker.
pub(super) struct Tracked {
    layout: Layout,
    source: SourceConfig,
    tracker: Option<Tracker>,
    searcher: Option<Searcher>,
}

impl Tracked {
    /// Names a store in `folder` for every ref of a repository; nothing runs yet.
    pub(super) fn new(repository: &Path, folder: &Path) -> Self {
        let source = SourceConfig {
            path: repository.to_string_lossy().into_owned(),
            refs: vec!["*".to_owned()],
            ..SourceConfig::default()
        };
        Self { layout: Layout::new(folder), source, tracker: None, searcher: None }
    }

    /// Starts the tracker if need be, and brings the store in step.
    pub(super) fn catch_up(&mut self) -> Result<(), EngineError> {
        let config = Config { sources: vec![self.source.clone()], pool: Some(2), ..Config::default() };
        let options = TrackerOptions {
            layout: self.layout.clone(),
            config,
            on_published: Box::new(|_| {}),
            stop: Stop::default(),
        };
        let tracker = self.tracker.get_or_insert_with(|| Tracker::open(options).unwrap());
        tracker.catch_up()
    }

    /// Stops the tracker.
    pub(super) fn stop(&mut self) {
        self.tracker = None;
    }

    /// Reads the store on from where it was last read.
    pub(super) fn refresh(&mut self) {
        match &mut self.searcher {
            Some(searcher) => {
                searcher.refresh().unwrap();
            }
            None => self.searcher = Some(Searcher::open(&self.layout).unwrap()),
        }
    }

    fn searcher(&self) -> &Searcher {
        self.searcher.as_ref().expect("the store was read")
    }

    /// Returns every view with the commit that it stands at.
    pub(super) fn views(&self) -> BTreeMap<String, String> {
        let searcher = self.searcher();
        let (id, _) = searcher.revisions().sources()[0];
        let names: BTreeMap<_, _> = searcher.revisions().views_of(id).collect();
        searcher.reader().with_archive(|archive| {
            let commit = |(view, head): (_, snapshots::ViewHead)| {
                (names[&view].to_owned(), archive.version(head.version).unwrap().commit.to_string())
            };
            archive.views().map(commit).collect()
        })
    }

    /// Returns every commit that has a snapshot.
    pub(super) fn commits(&self) -> BTreeSet<String> {
        let versions = |archive: &snapshots::Archive| {
            archive.versions().iter().map(|version| version.commit.to_string()).collect()
        };
        self.searcher().reader().with_archive(versions)
    }

    /// Returns what the snapshot of a commit says of every file: its object's id, and what became of it.
    pub(super) fn documents(&self, commit: &str) -> BTreeMap<Vec<u8>, (String, Fate)> {
        let searcher = self.searcher();
        let (id, _) = searcher.revisions().sources()[0];
        let commit: CommitId = commit.parse().unwrap();
        let alive = searcher.reader().with_archive(|archive| {
            archive.bitmaps(archive.by_commit(id, commit).unwrap()).unwrap()
        });
        let rows = searcher.reader().catalogue().documents(alive.documents.iter().map(Ordinal::new)).unwrap();
        let number = rows.len();
        let row = |row: dataflows::data::Document| {
            let fate = match row.outcome {
                Outcome::Skipped(SkipReason::Symlink) => Fate::Link,
                Outcome::Skipped(SkipReason::Submodule) => Fate::Module,
                Outcome::Fault { .. } => Fate::Fault,
                _ => Fate::File,
            };
            (row.path.as_bytes().to_vec(), (row.content.to_string(), fate))
        };
        let documents: BTreeMap<_, _> = rows.into_iter().map(row).collect();
        assert_eq!(documents.len(), number, "a path has two rows at {commit}");
        documents
    }

    /// Returns the paths whose text holds a word, as of a commit.
    pub(super) fn paths_with(&self, word: &str, commit: &str) -> BTreeSet<Vec<u8>> {
        let request = Request {
            mode: Mode::Bm25,
            k: 1_000,
            per_document: 1_000,
            at: Some(commit.to_owned()),
            ..Request::new(word)
        };
        let answer = self.searcher().search(&request).unwrap();
        answer.hits.into_iter().map(|hit| hit.path.as_bytes().to_vec()).collect()
    }
}

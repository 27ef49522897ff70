//! A store that tracks a repository, started and stopped at will, with its content.
//!
//! In: a repository. Out: views, documents and hits as of any version.

use dataflows::data::{Outcome, SkipReason};
use snapshots::{CommitId, Ordinal};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidemill::config::{Config, SourceConfig};
use tidemill::engine::{EngineError, Stop, Tracker, TrackerOptions};
use tidemill::index::apply::Published;
use tidemill::search::{Mode, Request, RevisionError, SearchError, Searcher};
use tidemill::store::Layout;

/// The outcome of a file in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// A document, or a file without text.
    File,
    /// A symbolic link.
    Link,
    /// A submodule.
    Module,
    /// A pointer to a missing object.
    LfsMissing,
    /// An unreadable file.
    Fault,
}

/// A store and, while it runs, its tracker.
pub(crate) struct Tracked {
    pub(crate) layout: Layout,
    pub(crate) config: Config,
    tracker: Option<Tracker>,
    searcher: Option<Searcher>,
    published: Arc<Mutex<Vec<Published>>>,
}

impl Tracked {
    /// Names a store in `folder` for every ref of a repository; nothing runs yet.
    pub(crate) fn new(repository: &Path, folder: &Path) -> Self {
        Self::of(vec![SourceConfig { refs: vec!["*".to_owned()], ..source(repository) }], folder)
    }

    /// Names a store in `folder` for these sources; nothing runs yet.
    pub(crate) fn of(sources: Vec<SourceConfig>, folder: &Path) -> Self {
        let config = Config { sources, pool: Some(2), ..Config::default() };
        Self { layout: Layout::new(folder), config, tracker: None, searcher: None, published: Arc::default() }
    }

    fn open(&self, stop: Stop) -> Result<Tracker, EngineError> {
        let published = self.published.clone();
        let on_published = Box::new(move |line: &Published| published.lock().unwrap().push(line.clone()));
        Tracker::open(TrackerOptions { layout: self.layout.clone(), config: self.config.clone(), on_published, stop })
    }

    /// Starts the tracker if need be, and brings the store in step.
    pub(crate) fn catch_up(&mut self) -> Result<(), EngineError> {
        if self.tracker.is_none() {
            self.tracker = Some(self.open(Stop::default())?);
        }
        self.tracker.as_mut().expect("it was started above").catch_up()
    }

    /// As [`Self::catch_up`], and refreshes the reader; returns what was published meanwhile.
    pub(crate) fn step(&mut self) -> Vec<Published> {
        self.catch_up().unwrap();
        self.refresh();
        std::mem::take(&mut *self.published.lock().unwrap())
    }

    /// Tracks the sources on a thread while `meanwhile` runs, and stops afterwards.
    pub(crate) fn follow(&mut self, meanwhile: impl FnOnce(&mut Self)) {
        let stop = Stop::default();
        let mut tracker = self.open(stop.clone()).unwrap();
        tracker.catch_up().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move { tokio::spawn(async move { tracker.follow().await }).await.unwrap() })
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| meanwhile(self)));
        stop.ask();
        thread.join().unwrap().unwrap();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }

    /// Refreshes the reader repeatedly until `holds`, for ten seconds at most; returns the time.
    pub(crate) fn wait(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) -> Duration {
        let started = Instant::now();
        loop {
            self.refresh();
            if holds(self) {
                return started.elapsed();
            }
            assert!(started.elapsed() < Duration::from_secs(10), "in vain: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops the tracker.
    pub(crate) fn stop(&mut self) {
        self.tracker = None;
    }

    /// Refreshes the reader.
    pub(crate) fn refresh(&mut self) {
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

    /// Returns every view with its commit; with several sources, of all of them.
    pub(crate) fn views(&self) -> BTreeMap<String, String> {
        let searcher = self.searcher();
        let sources = searcher.revisions().sources().iter();
        let names: BTreeMap<_, _> = sources.flat_map(|(id, _)| searcher.revisions().views_of(*id)).collect();
        searcher.reader().with_archive(|archive| {
            let commit = |(view, head): (_, snapshots::ViewHead)| {
                (names[&view].to_owned(), archive.version(head.version).unwrap().commit.to_string())
            };
            archive.views().map(commit).collect()
        })
    }

    /// Returns every commit that has a snapshot.
    pub(crate) fn commits(&self) -> BTreeSet<String> {
        let versions = |archive: &snapshots::Archive| {
            archive.versions().iter().map(|version| version.commit.to_string()).collect()
        };
        self.searcher().reader().with_archive(versions)
    }

    /// Returns every file of a commit's snapshot: its object's id, and its outcome.
    pub(crate) fn documents(&self, commit: &str) -> BTreeMap<Vec<u8>, (String, Fate)> {
        let searcher = self.searcher();
        let (id, _) = searcher.revisions().sources()[0];
        let commit: CommitId = commit.parse().unwrap();
        let alive =
            searcher.reader().with_archive(|archive| archive.bitmaps(archive.by_commit(id, commit).unwrap()).unwrap());
        let rows = searcher.reader().catalogue().documents(alive.documents.iter().map(Ordinal::new)).unwrap();
        let number = rows.len();
        let row = |row: dataflows::data::Document| {
            let fate = match row.outcome {
                Outcome::Skipped(SkipReason::Symlink) => Fate::Link,
                Outcome::Skipped(SkipReason::Submodule) => Fate::Module,
                Outcome::Skipped(SkipReason::LfsMissing) => Fate::LfsMissing,
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
    pub(crate) fn paths_with(&self, word: &str, commit: &str) -> BTreeSet<Vec<u8>> {
        self.paths(Request { at: Some(commit.to_owned()), ..Request::new(word) })
    }

    /// Returns the paths whose text holds a word, in a view as it is now.
    pub(crate) fn paths_in(&self, word: &str, view: &str) -> BTreeSet<Vec<u8>> {
        self.paths(Request { view: Some(view.to_owned()), ..Request::new(word) })
    }

    fn paths(&self, request: Request) -> BTreeSet<Vec<u8>> {
        let request = Request { mode: Mode::Bm25, k: 1_000, per_document: 1_000, ..request };
        let hits = match self.searcher().search(&request) {
            Ok(answer) => answer.hits,
            Err(SearchError::Revision(RevisionError::View { .. })) => Vec::new(),
            Err(error) => panic!("{error}"),
        };
        hits.into_iter().map(|hit| hit.path.as_bytes().to_vec()).collect()
    }
}

/// Names a source at a path.
pub(crate) fn source(path: &Path) -> SourceConfig {
    SourceConfig { path: path.to_string_lossy().into_owned(), ..SourceConfig::default() }
}

//! A store in a separate folder, with a tracker in process that keeps it in step.
//!
//! In: sources. Out: what was published, in order.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use tidemill::config::{Backfill, Config, SourceConfig};
use tidemill::engine::{EngineError, Extras, Stop, Tracker, TrackerOptions};
use tidemill::index::apply::Published;
use tidemill::search::Searcher;
use tidemill::store::Layout;

/// A store that is deleted with its value.
pub(crate) struct Store {
    folder: TempDir,
    /// Most files of a slice of a step, if not the default.
    slice: Option<usize>,
}

/// A tracker that is open, and what it has published since it was last asked.
pub(crate) struct Running {
    pub(crate) tracker: Tracker,
    published: Arc<Mutex<Vec<Published>>>,
}

impl Store {
    /// Makes an empty folder; the first tracker makes the store.
    pub(crate) fn new() -> Self {
        Self::in_slices(None)
    }

    /// As [`Self::new`], with trackers that cut every step into slices of so many files.
    pub(crate) fn in_slices(slice: Option<usize>) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), slice }
    }

    /// Returns the store's folders.
    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.folder.path().join("store"))
    }

    /// Opens a tracker on one source.
    pub(crate) fn open(&self, source: SourceConfig) -> Running {
        self.try_open(source, Stop::default()).unwrap()
    }

    /// As [`Self::open`], for a tracker that may be refused or asked to stop.
    pub(crate) fn try_open(&self, source: SourceConfig, stop: Stop) -> Result<Running, EngineError> {
        let published: Arc<Mutex<Vec<Published>>> = Arc::default();
        let sink = published.clone();
        let options = TrackerOptions {
            layout: self.layout(),
            config: Config { sources: vec![source], pool: Some(2), ..Config::default() },
            on_published: Box::new(move |line| {
                sink.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
            }),
            stop,
        };
        let extras = Extras { max_slice: self.slice, ..Extras::default() };
        Ok(Running { tracker: Tracker::open_with(options, extras)?, published })
    }

    /// Catches up with one source and returns what was published, as `track --once` does.
    pub(crate) fn track(&self, source: SourceConfig) -> Vec<Published> {
        self.open(source).catch_up()
    }

    /// Opens the store for questions.
    pub(crate) fn searcher(&self) -> Searcher {
        Searcher::open(&self.layout()).unwrap()
    }
}

impl Running {
    /// Catches up and returns what was published.
    pub(crate) fn catch_up(&mut self) -> Vec<Published> {
        self.tracker.catch_up().unwrap();
        self.take()
    }

    /// Returns what was published since the last time.
    pub(crate) fn take(&self) -> Vec<Published> {
        std::mem::take(&mut self.published.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Names a git repository as a source: its refs, and which past commits get snapshots.
pub(crate) fn git(path: &Path, refs: &[&str], backfill: Option<Backfill>) -> SourceConfig {
    SourceConfig {
        path: path.to_str().unwrap().to_owned(),
        name: Some("engine".to_owned()),
        refs: refs.iter().map(|&glob| glob.to_owned()).collect(),
        backfill,
        ..SourceConfig::default()
    }
}

/// Returns the work of an epoch: contents cleaned, texts cut, texts embedded, entries inserted and retracted.
pub(crate) fn work(published: &Published) -> [u64; 5] {
    let receipt = &published.receipt;
    [receipt.cleaned, receipt.chunked, receipt.embedded, receipt.inserted, receipt.retracted]
}

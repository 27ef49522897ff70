//! The tracker itself: opens a store and its sources, feeds the graph, and waits for the next movement.
//!
//! In: options. Out: published versions, through the callback.
//!
//! **Invariant:** a step is announced to the publisher before it is fed, and both in one order. Between two steps the
//! tracker may stop; what is under way then is still published.

use super::board::Board;
use super::collect::{drop_and_collect, measure};
use super::collector::{Collector, Planning};
use super::contents::AllContents;
use super::directory::DirectoryTracker;
use super::fetching::Fetching;
use super::git::GitTracker;
use super::open::{Opened, fingerprint, load_rules, restores};
use super::publisher::{MAX_BATCH, OnPublished, Publisher};
use super::recover::Registry;
use super::retry::Attempts;
use super::slices::{OPEN_SLICES, SLICE_CHANGES};
use super::store::OpenStore;
use super::trace::{TraceFeed, TraceTracker};
use super::{EngineError, follow};
use crate::config::Config;
use crate::embedders::StaticModel;
use crate::index::apply::{IndexWriter, Purpose};
use crate::index::collect::CollectParts;
use crate::store::{Layout, StoreMemo, WriterLock};
use crate::trace::TraceContents;
use crate::trace::live::LiveRecorder;
use dataflows::data::View;
use dataflows::embed::Embedder;
use dataflows::rules::Rules;
use dataflows::run::{Mill, MillParts, MillThreads};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks a tracker to stop after the step in hand; clones share the wish.
#[derive(Clone, Default, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether anybody asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a tracker is made from.
pub struct TrackerOptions {
    /// The store.
    pub layout: Layout,
    /// Rules, threads and sources.
    pub config: Config,
    /// Called for every published version, on the publishing thread.
    pub on_published: OnPublished,
    /// Asked to end the work early.
    pub stop: Stop,
}

/// What a replay gives a tracker beside its options.
#[derive(Default)]
pub struct Extras {
    /// Traces that are sources as well; they may be the only ones.
    pub traces: Vec<TraceFeed>,
    /// Rules in place of those of the configuration.
    pub rules: Option<Arc<Rules>>,
    /// A model in place of the built-in one.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// How many epochs share one publish at the most.
    pub max_batch: Option<usize>,
    /// How many files one slice of a large step changes at the most.
    pub max_slice: Option<usize>,
    /// Records what arrives.
    pub recorder: Option<LiveRecorder>,
}

/// A store that is kept in step with its sources.
pub struct Tracker {
    // In the order in which they must go: no epoch is fed any more, what is under way is published, the lock is given back.
    pub(super) mill: Mill,
    pub(super) publisher: Publisher,
    pub(super) registry: Registry,
    pub(super) memo: StoreMemo,
    pub(super) contents: AllContents,
    pub(super) rules: Arc<Rules>,
    pub(super) layout: Layout,
    pub(super) sources: Vec<Source>,
    pub(super) stop: Stop,
    pub(super) board: Board,
    pub(super) recorder: Option<LiveRecorder>,
    pub(super) planning: Planning,
    /// Contents that could not be read, and when they are tried again.
    pub(super) attempts: Attempts,
    /// How many files the graph holds of each head, once what was fed is through.
    pub(super) files: BTreeMap<View, usize>,
    pub(super) max_slice: usize,
    /// Changes that are under way at the most, but for an epoch that alone has more.
    pub(super) max_changes: usize,
    /// Changes that were fed since the memo last turned its cards.
    pub(super) since_turn: usize,
    pub(super) next_epoch: u64,
    _lock: WriterLock,
}

/// A source of any kind.
pub(super) enum Source {
    Git(Box<GitTracker>, Duration),
    Directory(Box<DirectoryTracker>, Duration),
    Trace(Box<TraceTracker>),
}

impl Tracker {
    /// Opens the store for writing, making it if need be, and everything it works with.
    ///
    /// # Errors
    /// Where another process writes to the store, a part of it is damaged or of another format, or a source cannot be
    /// opened. Nothing is changed then.
    pub fn open(options: TrackerOptions) -> Result<Self, EngineError> {
        Self::open_with(options, Extras::default())
    }

    /// As [`Self::open`], with what a replay adds.
    ///
    /// # Errors
    /// As [`Self::open`], and where the store was filled from another trace.
    pub fn open_with(options: TrackerOptions, extras: Extras) -> Result<Self, EngineError> {
        let TrackerOptions { layout, config, on_published, stop } = options;
        if config.sources.is_empty() && extras.traces.is_empty() {
            return Err(EngineError::NoSource);
        }
        // Sources first: a mistyped path must not leave an empty store behind.
        let opened =
            config.sources.iter().map(|source| Opened::open(source, &layout)).collect::<Result<Vec<_>, _>>()?;
        for (index, source) in opened.iter().enumerate() {
            if opened[..index].iter().any(|other| other.name == source.name) {
                return Err(EngineError::SameName { source_name: source.name.clone() });
            }
        }
        let rules = match extras.rules {
            Some(rules) => rules,
            None => Arc::new(load_rules(config.rules.as_deref())?),
        };
        let embedder: Arc<dyn Embedder> = extras.embedder.unwrap_or_else(|| Arc::new(StaticModel::new()));
        let OpenStore { lock, model, database, memo, mut archive, mut lexical, mut vectors } =
            OpenStore::open(&layout, &*embedder)?;
        if config.collects_at_start() {
            let before = measure(&layout, &database)?;
            let (layout, archive) = (&layout, &mut archive);
            let (lexical, vectors) = (&mut lexical, &mut vectors);
            let mut parts = CollectParts { layout, database: &database, archive, lexical, vectors };
            let done = drop_and_collect(&mut parts, &config, &rules, &mut || !stop.is_asked())?;
            if done.collected.is_complete {
                done.clone().measured(&before, &measure(layout, &database)?).note(&database)?;
            }
            tracing::info!("dropped {} snapshots and removed {} entries", done.dropped, done.collected.entries);
        }

        let contents = AllContents::default();
        let mut registry = Registry::open(&database)?;
        let mut removed = Vec::new();
        if config.is_complete {
            registry.rename(&opened.iter().map(Opened::record).collect::<Vec<_>>())?;
            let names: Vec<String> = opened.iter().map(|source| source.name.clone()).collect();
            removed = registry.views_beside(&names);
            removed.retain(|view| archive.view(*view).is_some());
        }
        let mut sources = Vec::with_capacity(opened.len());
        for source in opened {
            sources.extend(source.register(&mut registry, &archive, &contents, fingerprint(&rules))?);
        }
        for feed in extras.traces {
            contents.add(Arc::new(TraceContents(feed.trace.clone())));
            sources.push(Source::Trace(Box::new(TraceTracker::register(feed, &mut registry, &archive)?)));
        }
        let restores = restores(&mut sources, &mut registry, &archive, &database, &contents)?;

        let fingerprint = fingerprint(&rules);
        let planning = Planning::default();
        let collector = Collector::new(
            layout.clone(),
            config.clone(),
            rules.clone(),
            database.clone(),
            planning.clone(),
            stop.clone(),
        )?;
        let writer = IndexWriter::new(database, memo.clone(), archive, lexical, vectors, fingerprint, model)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = MillThreads { workers: config.workers.unwrap_or(1), pool: config.pool.unwrap_or(processors) };
        let parts = MillParts {
            rules: rules.clone(),
            memo: Arc::new(memo.clone()),
            contents: Arc::new(contents.clone()),
            embedder,
        };
        let mut mill = Mill::start(parts, threads)?;
        let finished = mill.finished().ok_or(EngineError::PublisherStopped)?;
        let max_slice = extras.max_slice.unwrap_or(SLICE_CHANGES).max(1);
        let (max_batch, max_changes) = (extras.max_batch.unwrap_or(MAX_BATCH).max(1), max_slice * OPEN_SLICES);
        let publisher = Publisher::start(writer, collector, finished, on_published, max_batch, max_changes)?;
        let mut tracker = Self {
            mill,
            publisher,
            registry,
            memo,
            contents,
            rules,
            layout,
            sources,
            stop,
            board: Board::new(),
            recorder: extras.recorder,
            planning,
            attempts: Attempts::default(),
            files: BTreeMap::new(),
            max_slice,
            max_changes,
            since_turn: 0,
            next_epoch: 1,
            _lock: lock,
        };
        for view in removed {
            let gone = Purpose::Leave { view: Some(view) };
            tracker.feed(View(view.get()), gone, Vec::new(), Instant::now(), Duration::ZERO)?;
        }
        for (graph_view, purpose, changes) in restores {
            tracker.feed(graph_view, purpose, changes, Instant::now(), Duration::ZERO)?;
        }
        Ok(tracker)
    }

    /// Brings the index in step with every source, and returns once all of it is published, or a stop was asked for.
    ///
    /// Sources that are fetched are fetched first; where that fails, what is here already is taken.
    ///
    /// # Errors
    /// Where a source cannot be read or the store cannot be written.
    pub fn catch_up(&mut self) -> Result<(), EngineError> {
        for fetching in self.fetchings() {
            fetching.once(&mut 0);
        }
        self.look()
    }

    /// Returns the sources that are fetched.
    pub(super) fn fetchings(&self) -> Vec<Fetching> {
        let fetching = |source: &Source| match source {
            Source::Git(git, _) => Some(Fetching {
                name: git.name.clone(),
                source: git.source.clone(),
                every: git.fetch?,
                board: self.board.clone(),
                stop: self.stop.clone(),
            }),
            Source::Directory(..) | Source::Trace(_) => None,
        };
        self.sources.iter().filter_map(fetching).collect()
    }

    /// Waits until what keeps searches quick is done as well, for who starts no tracker soon after.
    pub fn tidy(&self) {
        self.publisher.tidy(&self.stop);
    }

    /// Looks at every source as it is here, and returns once all of it is published.
    pub(super) fn look(&mut self) -> Result<(), EngineError> {
        for index in 0..self.sources.len() {
            match &self.sources[index] {
                Source::Git(..) => self.catch_up_git(index)?,
                Source::Directory(..) => self.scan_directory(index)?,
                Source::Trace(_) => self.take_trace(index)?,
            }
        }
        self.publisher.settle()?;
        self.retry()?;
        self.report();
        Ok(())
    }

    /// Writes how the sources are doing for `status` to read.
    pub(super) fn report(&self) {
        for source in &self.sources {
            if let Source::Git(git, _) = source {
                let (skipped_tags, broken_refs) = git.left_out();
                self.board.note(&git.name, |state| {
                    state.skipped_tags = skipped_tags;
                    state.broken_refs = broken_refs;
                });
            }
        }
        self.board.write(&self.layout);
    }

    /// Keeps the index in step until a stop is asked for, then publishes what is under way.
    ///
    /// # Errors
    /// Where the store cannot be written. A source that cannot be read is reported and tried again.
    pub async fn follow(&mut self) -> Result<(), EngineError> {
        follow::follow(self).await
    }

    /// Waits until everything that was fed is published.
    pub(super) fn settle(&self) -> Result<(), EngineError> {
        self.publisher.settle()
    }
}

/// A head of the graph that holds nothing: for steps that only move a view.
pub(super) const NOWHERE: View = View(u32::MAX);

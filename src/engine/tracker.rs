//! The tracker itself: opens a store and its sources, feeds the graph, and waits for the next movement.
//!
//! In: options. Out: published versions, through the callback.
//!
//! **Invariant:** a step is announced to the publisher before it is fed, and both in one order. After a stop request, work in
//! progress is still published if that takes at most [`GRACE`], except a partly fed step; otherwise it is dropped, and the
//! results of its stages are kept.
//!
//! Sources fail independently: the problem of one is noted in its [`Slot`], shown by `status`, and tried again
//! ([`trouble`](super::trouble)); the rest is tracked.

use super::beside::Beside;
use super::board::Board;
use super::collect::{drop_and_collect, measure};
use super::collector::{Collector, Planning};
use super::contents::AllContents;
use super::feeding::Progress;
use super::fetching::Fetching;
use super::missing::first_failure;
use super::open::{Opened, fingerprint, load_rules, open_all};
use super::publisher::{MAX_BATCH, OnPublished, Publisher, Room};
use super::recover::Registry;
use super::retry::Attempts;
use super::slices::{OPEN_SLICES, SLICE_CHANGES};
use super::slot::{Missing, Slot, Source};
use super::store::OpenStore;
use super::trace::{TraceFeed, TraceTracker};
use super::trouble::Trouble;
use super::{EngineError, follow};
use crate::config::Config;
use crate::embedders;
use crate::index::apply::{IndexWriter, Purpose};
use crate::index::collect::CollectParts;
use crate::store::{Layout, LookBook, StoreError, StoreMemo, WriterLock};
use crate::trace::TraceContents;
use crate::trace::live::LiveRecorder;
use crate::workers::Parsing;
use dataflows::data::View;
use dataflows::embed::Embedder;
use dataflows::rules::Rules;
use dataflows::run::{Mill, MillParts, MillThreads};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long work in progress may take after a stop request.
const GRACE: Duration = Duration::from_millis(600);

/// How long a source that does not answer is waited for once all others are through, and how often it is looked for.
const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(10);

/// Requests a tracker to stop, within a second or so; clones share the request.
#[derive(Clone, Default, Debug)]
pub struct Stop(Arc<OnceLock<Instant>>);

impl Stop {
    /// Requests it.
    pub fn ask(&self) {
        // The first request starts the remaining time.
        let _ = self.0.set(Instant::now());
    }

    /// Returns whether a stop is requested.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns whether the remaining time is over.
    pub(super) fn is_over(&self) -> bool {
        self.0.get().is_some_and(|asked| asked.elapsed() >= GRACE)
    }
}

/// The options of a tracker.
pub struct TrackerOptions {
    /// The store.
    pub layout: Layout,
    /// Rules, threads and sources.
    pub config: Config,
    /// Called for every published version, on the publishing thread.
    pub on_published: OnPublished,
    /// The request to end the work early.
    pub stop: Stop,
}

/// Further options, from the program and a replay.
#[derive(Default)]
pub struct Extras {
    /// Traces as additional sources; they may be the only ones.
    pub traces: Vec<TraceFeed>,
    /// Rules in place of those of the configuration.
    pub rules: Option<Arc<Rules>>,
    /// A model in place of the built-in one.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Most epochs that share one publish.
    pub max_batch: Option<usize>,
    /// Most files of one slice of a large step.
    pub max_slice: Option<usize>,
    /// The recorder.
    pub recorder: Option<LiveRecorder>,
    /// Whether the sources will be followed: then problems are logged as they begin and end, and a repository without a commit is
    /// waited for.
    pub follows: bool,
    /// Where texts are parsed.
    pub parsing: Parsing,
}

/// A store that is kept in step with its sources.
pub struct Tracker {
    // In drop order: feeding stops, work in progress is published, the lock is released.
    pub(super) mill: Mill,
    pub(super) publisher: Publisher,
    pub(super) registry: Registry,
    pub(super) memo: StoreMemo,
    pub(super) contents: AllContents,
    pub(super) rules: Arc<Rules>,
    pub(super) layout: Layout,
    pub(super) slots: Vec<Slot>,
    /// The slot whose turn is next.
    pub(super) turn: usize,
    /// Whether problems are logged.
    pub(super) follows: bool,
    pub(super) looks: LookBook,
    pub(super) stop: Stop,
    pub(super) board: Board,
    pub(super) recorder: Option<LiveRecorder>,
    pub(super) planning: Planning,
    /// Contents that could not be read, with the times of their next tries.
    pub(super) attempts: Attempts,
    /// The number of files of each head in the graph, once all fed epochs are through.
    pub(super) files: BTreeMap<View, usize>,
    pub(super) max_slice: usize,
    pub(super) next_epoch: u64,
    _lock: WriterLock,
}

impl Tracker {
    /// Opens the store for writing, which it creates if needed, and everything it works with.
    ///
    /// # Errors
    /// If another process writes to the store, a part of it is damaged or of another format, or no source can be opened and the
    /// store has none of them. Then nothing is changed.
    pub fn open(options: TrackerOptions) -> Result<Self, EngineError> {
        Self::open_with(options, Extras::default())
    }

    /// As [`Self::open`], with further options for a replay.
    ///
    /// # Errors
    /// As [`Self::open`], and where the store was filled from another trace.
    pub fn open_with(options: TrackerOptions, extras: Extras) -> Result<Self, EngineError> {
        let TrackerOptions { layout, config, on_published, stop } = options;
        if config.sources.is_empty() && extras.traces.is_empty() {
            return Err(EngineError::NoSource);
        }
        // Sources first: a mistyped path must not leave an empty store behind.
        let mut openings = open_all(&config.sources, &layout);
        for (index, source) in openings.iter().enumerate() {
            if let Some(one) = openings[..index].iter().find(|other| other.name == source.name) {
                let (source_name, one, other) = (source.name.clone(), one.place(), source.place());
                return Err(EngineError::SameName { source_name, one, other });
            }
        }
        let is_new = matches!(layout.check_for_writer(), Err(StoreError::Missing { .. }));
        let is_awaited = |error: &EngineError| extras.follows && matches!(error, EngineError::Unborn { .. });
        let has_failed = |error: &EngineError| !is_awaited(error);
        let none_is_there =
            extras.traces.is_empty() && openings.iter().all(|one| one.failure().is_some_and(has_failed));
        if is_new && none_is_there {
            return Err(first_failure(&mut openings));
        }
        let rules = match extras.rules {
            Some(rules) => rules,
            None => Arc::new(load_rules(config.rules.as_deref())?),
        };
        let outliner = extras.parsing.outliner()?;
        let embedder: Arc<dyn Embedder> = extras.embedder.unwrap_or_else(embedders::configured);
        let OpenStore { lock, database, memo, mut archive, mut lexical, mut vectors } =
            OpenStore::open(&layout, &embedder)?;
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
        let is_known = |name: &str| registry.named(name).is_some();
        if none_is_there && !openings.iter().any(|opening| is_known(&opening.name)) {
            return Err(first_failure(&mut openings));
        }
        if config.is_complete {
            registry.rename(&openings.iter().map(|opening| opening.record()).collect::<Vec<_>>())?;
            let names: Vec<String> = openings.iter().map(|source| source.name.clone()).collect();
            removed = registry.views_beside(&names);
            removed.retain(|view| archive.view(*view).is_some());
        }
        let mut slots = Vec::with_capacity(openings.len());
        let is_only_one = openings.len() + extras.traces.len() == 1;
        for opening in openings {
            let registered = opening
                .opened
                .and_then(|opened| opened.register(&mut registry, &archive, &contents, fingerprint(&rules)));
            match registered {
                Ok(sources) => slots.extend(sources.into_iter().map(|source| Slot::new(opening.name.clone(), source))),
                // A name that the store has for something else is a mistake in the settings.
                Err(error) if is_only_one && error.is_of_name() => return Err(error),
                Err(error) if error.is_of_source() => {
                    let missing = Missing { config: opening.config, opening: opening.late };
                    let mut slot = Slot::new(opening.name, Source::Missing(Box::new(missing)));
                    slot.fails_with(&error, extras.follows);
                    slots.push(slot);
                }
                Err(error) => return Err(error),
            }
        }
        let mut restores = Vec::new();
        for feed in extras.traces {
            contents.add(Arc::new(TraceContents(feed.trace.clone())), Beside::new());
            let name = feed.name.clone();
            let trace = TraceTracker::register(feed, &mut registry, &archive)?;
            restores.extend(trace.restores(&mut registry, &archive, &database.catalogue())?);
            slots.push(Slot::new(name, Source::Trace(Box::new(trace))));
        }

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
        let writer =
            IndexWriter::new(database, memo.clone(), archive, lexical, vectors, fingerprint, embedder.clone())?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = MillThreads { workers: config.workers.unwrap_or(1), pool: config.pool.unwrap_or(processors) };
        let parts = MillParts {
            rules: rules.clone(),
            memo: Arc::new(memo.clone()),
            contents: Arc::new(contents.clone()),
            embedder,
            outliner,
        };
        let mut mill = Mill::start(parts, threads)?;
        let finished = mill.finished().ok_or(EngineError::PublisherStopped)?;
        let max_slice = extras.max_slice.unwrap_or(SLICE_CHANGES).max(1);
        let (max_batch, max_changes) = (extras.max_batch.unwrap_or(MAX_BATCH).max(1), max_slice * OPEN_SLICES);
        let room = Room { max_batch, max_changes, stop: stop.clone() };
        let publisher = Publisher::start(writer, collector, finished, on_published, room)?;
        let mut tracker = Self {
            mill,
            publisher,
            registry,
            memo,
            contents,
            rules,
            slots,
            turn: 0,
            follows: extras.follows,
            looks: LookBook::read(&layout),
            layout,
            stop,
            board: Board::new(),
            recorder: extras.recorder,
            planning,
            attempts: Attempts::default(),
            files: BTreeMap::new(),
            max_slice,
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

    /// Brings the index in step with every source, and returns once all of it is published, or a stop was requested.
    ///
    /// Sources with a fetch interval are fetched first; if that fails, the objects that are already here are used. A failing
    /// source is left out, and so are heads and commits that cannot be indexed: [`Self::left_out`] names them.
    ///
    /// # Errors
    /// If every source fails, or the store cannot be written.
    pub fn catch_up(&mut self) -> Result<(), EngineError> {
        for fetching in self.fetchings() {
            fetching.once(&mut Default::default());
        }
        unless_interrupted(self.look())
    }

    /// Returns what is left out so far, a line each: sources, heads and commits, and losses that are held back.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for slot in &self.slots {
            let name = &slot.name;
            if let Some(trouble) = &slot.trouble {
                lines.push(format!("{name} is left out: {}", trouble.what));
            }
            if let Some(held) = &slot.held {
                lines.push(format!("{name}: {}", held.what));
            }
            if let Source::Git(git, _) = &slot.source {
                lines.extend(git.omitted.all().map(|left_out| format!("{name}: {}", left_out.line())));
            }
        }
        lines
    }

    /// Returns the sources with a fetch interval.
    pub(super) fn fetchings(&self) -> Vec<Fetching> {
        self.slots.iter().filter_map(|slot| self.fetching(slot)).collect()
    }

    /// Returns the fetcher of a source, if it has a fetch interval.
    pub(super) fn fetching(&self, slot: &Slot) -> Option<Fetching> {
        match &slot.source {
            Source::Git(git, _) => Some(Fetching {
                name: git.name.clone(),
                source: git.source.clone(),
                every: git.fetch?,
                board: self.board.clone(),
                stop: self.stop.clone(),
            }),
            Source::Directory(..) | Source::Trace(_) | Source::Missing(_) => None,
        }
    }

    /// Waits until maintenance is done as well, for callers that start no tracker soon after.
    pub fn tidy(&self) {
        self.publisher.tidy(&self.stop);
    }

    /// Looks at every source once, and returns when all of it is published.
    fn look(&mut self) -> Result<(), EngineError> {
        let mut failure = None;
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            slot.is_wanted = true;
            let Source::Missing(missing) = &slot.source else {
                slot.trouble = None;
                continue;
            };
            // Missing sources are not searched again immediately after the start.
            if slot.trouble.as_ref().is_none_or(Trouble::is_due) {
                let opened = Opened::open(&missing.config, &self.layout);
                self.take_up(index, opened)?;
            }
        }
        let mut awaited: Option<Instant> = None;
        while !self.stop.is_asked() {
            match self.advance()? {
                Progress::Nothing => break,
                // The others are through. What hangs stays left out, and says so.
                Progress::Awaited if awaited.get_or_insert_with(Instant::now).elapsed() >= PATIENCE => break,
                Progress::Awaited => std::thread::sleep(TICK),
                Progress::Taken => awaited = None,
                Progress::Failed(error) => failure = Some(error),
            }
        }
        self.publisher.settle()?;
        self.retry()?;
        self.report();
        let all_failed = !self.slots.is_empty() && self.slots.iter().all(|slot| slot.has_failed());
        match failure {
            Some(error) if all_failed => Err(error),
            _ if all_failed => {
                let what = self.slots.iter().find_map(|slot| slot.trouble.as_ref()).map(|trouble| trouble.what.clone());
                Err(EngineError::LeftOut { what: what.unwrap_or_default() })
            }
            _ => Ok(()),
        }
    }

    /// Writes how the sources are doing for `status` to read.
    pub(super) fn report(&self) {
        self.board.note_troubles(&self.slots);
        self.board.write(&self.layout);
    }

    /// Keeps the index in step until a stop is requested, then publishes what can still be published.
    ///
    /// # Errors
    /// If the store cannot be written. A source that cannot be read is reported and tried again.
    pub async fn follow(&mut self) -> Result<(), EngineError> {
        self.follows = true;
        unless_interrupted(follow::follow(self).await)
    }

    /// Waits until everything that was fed is published.
    pub(super) fn settle(&self) -> Result<(), EngineError> {
        self.publisher.settle()
    }
}

/// A stop before all is published is no failure: the next start continues.
fn unless_interrupted(ended: Result<(), EngineError>) -> Result<(), EngineError> {
    match ended {
        Err(EngineError::Interrupted) => Ok(()),
        ended => ended,
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        if self.stop.is_asked() && !self.publisher.is_idle() {
            self.mill.halt();
            // The next start finds the cleaned, cut and embedded results there.
            self.memo.save();
        }
    }
}

/// A head of the graph that holds nothing: for steps that only move a view.
pub(super) const NOWHERE: View = View(u32::MAX);

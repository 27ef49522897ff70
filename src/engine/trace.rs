//! A trace as a source: its epochs are fed as recorded, at any speed.
//!
//! In: a trace, and the store's state of it. Out: the epochs to feed, in order.
//!
//! **Invariant:** a store that was filled from a trace is at some whole number of its epochs, and continues from there: the first
//! position at which every commit with a version was passed and every view points where the store has it. So a killed replay
//! continues, and ends with the same versions.

use super::EngineError;
use super::git::ViewNumbers;
use super::open::Restore;
use super::recover::{Registry, arrivals, files_of};
use super::tracker::NOWHERE;
use crate::index::apply::{CommitTarget, Purpose};
use crate::store::{Catalogue, SourceKind, SourceRecord, SourceRoots};
use crate::trace::{EpochRecord, Trace, TraceError, TraceStep};
use dataflows::data::View;
use snapshots::{Archive, CommitId, SourceId};
use std::collections::{BTreeMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A trace to feed.
#[derive(Clone)]
pub struct TraceFeed {
    /// The name of the source.
    pub name: String,
    /// The trace, for its contents.
    pub trace: Arc<Trace>,
    /// The epochs to feed in place of its own.
    pub epochs: Option<Vec<EpochRecord>>,
    /// The speed relative to the recording; as fast as possible without it.
    pub pace: Option<f64>,
}

impl TraceFeed {
    fn epoch(&self, number: usize) -> Result<Option<EpochRecord>, TraceError> {
        match &self.epochs {
            Some(epochs) => Ok(epochs.get(number).cloned()),
            None if number < self.trace.len() => self.trace.epoch(number).map(Some),
            None => Ok(None),
        }
    }
}

/// A trace that is being fed.
pub(super) struct TraceTracker {
    pub(super) id: SourceId,
    feed: TraceFeed,
    /// The next epoch.
    next: usize,
    /// The commit of each head that the graph must hold before that, by the name of its view.
    heads: BTreeMap<Option<String>, CommitId>,
    /// The time when the first epoch was fed, and its recorded time.
    began: Option<(Instant, u64)>,
}

impl TraceTracker {
    /// Assigns the trace's number and finds the store's position.
    pub(super) fn register(feed: TraceFeed, registry: &mut Registry, archive: &Archive) -> Result<Self, EngineError> {
        let location = feed.trace.path().canonicalize().unwrap_or_else(|_| feed.trace.path().to_owned());
        let location = location.as_os_str().as_bytes().to_vec();
        let id = registry.source(
            SourceRecord { name: feed.name.clone(), kind: SourceKind::Trace, location },
            &SourceRoots::default(),
        )?;
        let mut tracker = Self { id, feed, next: 0, heads: BTreeMap::new(), began: None };
        tracker.resume(registry, archive)?;
        Ok(tracker)
    }

    fn resume(&mut self, registry: &Registry, archive: &Archive) -> Result<(), EngineError> {
        let ours = archive.versions().iter().filter(|version| version.source == self.id);
        let known: HashSet<CommitId> = ours.map(|version| version.commit).collect();
        if known.is_empty() {
            return Ok(());
        }
        let commit = |view| archive.version(archive.view(view)?).map(|version| version.commit);
        let standing: BTreeMap<String, CommitId> =
            registry.views_of(self.id).filter_map(|(view, name)| Some((name.to_owned(), commit(view)?))).collect();
        let mut views: BTreeMap<String, CommitId> = BTreeMap::new();
        let mut met = HashSet::new();
        for number in 0.. {
            let Some(record) = self.feed.epoch(number)? else { break };
            let head = record.head().map(str::to_owned);
            match record.step {
                TraceStep::Commit { view, commit, .. } => {
                    met.insert(commit);
                    self.heads.insert(head, commit);
                    views.extend(view.map(|view| (view, commit)));
                }
                TraceStep::Point { view, commit } => {
                    views.insert(view, commit);
                }
                TraceStep::Leave { view } => {
                    self.heads.remove(&head);
                    view.map(|view| views.remove(&view));
                }
            }
            if views == standing && known.is_subset(&met) {
                self.next = number + 1;
                return Ok(());
            }
        }
        Err(EngineError::OtherTrace { source_name: self.feed.name.clone() })
    }

    /// Returns what the graph gets first: the stored files of every head.
    pub(super) fn restores(
        &self,
        registry: &mut Registry,
        archive: &Archive,
        catalogue: &Catalogue,
    ) -> Result<Vec<Restore>, EngineError> {
        let mut restores = Vec::new();
        for (head, commit) in &self.heads {
            let Some(version) = archive.by_commit(self.id, *commit) else { continue };
            let Some(known) = archive.version(version) else { continue };
            let view = head.as_deref().map(|name| registry.view(self.id, name)).transpose()?;
            let again = CommitTarget { source: self.id, commit: *commit, parent: known.parent, time: known.time, view };
            let graph_view = view.map_or(self.passing(), |view| View(view.get()));
            let files = arrivals(files_of(archive, catalogue, version)?);
            restores.push((graph_view, Purpose::Restore { version, again }, files));
        }
        Ok(restores)
    }

    /// The head for passing commits; a git source of this number would have the same.
    const fn passing(&self) -> View {
        View(u32::MAX - self.id.get())
    }

    /// Returns the next epoch, and its due time, if it is not due at once.
    pub(super) fn next(&mut self) -> Result<Option<(EpochRecord, Option<Instant>)>, EngineError> {
        let Some(record) = self.feed.epoch(self.next)? else { return Ok(None) };
        // Time starts after the first load; otherwise the next epochs would be late before they begin.
        let pace = self.feed.pace.filter(|pace| *pace > 0.0 && self.next > 0);
        let due = pace.and_then(|pace| {
            let (began, first) = *self.began.get_or_insert_with(|| (Instant::now(), record.arrived));
            let after = record.arrived.saturating_sub(first) as f64 / 1000.0 / pace;
            // A due time beyond the representable range never comes, so it counts as due at once.
            Duration::try_from_secs_f64(after).ok().and_then(|after| began.checked_add(after))
        });
        Ok(Some((record, due)))
    }

    /// Notes that the epoch was fed; returns whether it was the first of the trace.
    pub(super) const fn took(&mut self) -> bool {
        self.next += 1;
        self.next == 1
    }

    /// Returns the head of the graph that an epoch moves, and its purpose.
    pub(super) fn purpose(
        &self,
        record: &EpochRecord,
        numbers: &mut dyn ViewNumbers,
    ) -> Result<(View, Purpose), EngineError> {
        let source = self.id;
        Ok(match &record.step {
            TraceStep::Commit { view, passes, commit, parent, time, .. } => {
                let view = view.as_deref().map(|name| numbers.view(source, name)).transpose()?;
                let graph_view = view.filter(|_| !passes).map_or(self.passing(), |view| View(view.get()));
                let target = CommitTarget { source, commit: *commit, parent: *parent, time: *time, view };
                (graph_view, Purpose::Commit(target))
            }
            TraceStep::Point { view, commit } => {
                let view = numbers.view(source, view)?;
                (NOWHERE, Purpose::Point { view, source, commit: *commit })
            }
            TraceStep::Leave { view } => {
                let view = view.as_deref().map(|name| numbers.view(source, name)).transpose()?;
                (view.map_or(self.passing(), |view| View(view.get())), Purpose::Leave { view })
            }
        })
    }
}

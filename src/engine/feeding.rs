//! From the steps of sources to epochs of the graph.
//!
//! In: what the plan of a repository, a scan of a directory or a trace says is next. Out: changes, fed to the graph as one epoch or in
//! slices, each announced to the publisher first.
//!
//! **Invariant:** one thread feeds, in the order of the steps; what changed in a step is found when it is taken. Cards are forgotten
//! only where nothing is under way that may need them.

use super::EngineError;
use super::directory::DirectoryState;
use super::recover::{departures, files_of};
use super::slices::slices;
use super::step::Step;
use super::tracker::{NOWHERE, Source, Tracker};
use crate::index::apply::{CommitTarget, Purpose, Target};
use crate::watch::git::GitSource;
use dataflows::data::{DocumentPath, Epoch, FileChange, FileState, View};
use snapshots::{Archive, CommitId, SourceId};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often the wish to stop is looked for while an epoch is not due yet.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

impl Tracker {
    /// Plans and takes the steps of a repository.
    pub(super) fn catch_up_git(&mut self, index: usize) -> Result<(), EngineError> {
        let begun = Instant::now();
        let planning = self.planning.clone();
        // Held until all steps are fed: a snapshot that a plan rests on is not dropped meanwhile.
        let mut gone = planning.begin();
        for (source, commit) in gone.drain(..) {
            for other in &mut self.sources {
                if let Source::Git(git, _) = other
                    && git.id == source
                {
                    git.dropped(commit);
                }
            }
        }
        let Some(Source::Git(git, _)) = self.sources.get_mut(index) else { return Ok(()) };
        let steps = git.plan(&mut self.registry)?;
        let (source, repository) = (git.id, git.source.clone());
        let mut begun = begun;
        for step in steps {
            if self.stop.is_asked() {
                return Ok(());
            }
            self.take(source, &repository, &step, begun)?;
            if let Some(Source::Git(git, _)) = self.sources.get_mut(index) {
                git.took(&step);
            }
            begun = Instant::now();
        }
        if let Some(Source::Git(git, _)) = self.sources.get_mut(index) {
            git.caught_up();
            self.board.note_watch(&git.name, "refs", &git.events, true);
        }
        Ok(())
    }

    fn take(
        &mut self,
        source: SourceId,
        repository: &GitSource,
        step: &Step,
        begun: Instant,
    ) -> Result<(), EngineError> {
        let (graph_view, purpose, changes) = match *step {
            Step::Move { graph_view, from, to, view } => {
                let changes = match repository.diff(from, to.id) {
                    Ok(changes) => changes,
                    Err(error) => match from {
                        None => return Err(error.into()),
                        // After a rewrite the old commit may be gone from the repository; the store still knows it.
                        Some(from) => {
                            let known = self.files_at(source, from)?.ok_or(error)?;
                            crate::watch::changes(&known, &repository.files(to.id)?.into_iter().collect())
                        }
                    },
                };
                let target = CommitTarget { source, commit: to.id, parent: to.first_parent, time: to.time, view };
                (graph_view, Purpose::Commit(target), changes)
            }
            Step::Point { view, commit } => (NOWHERE, Purpose::Point { view, source, commit }, Vec::new()),
            Step::Leave { graph_view, at, view } => {
                let files = at.map(|at| self.files_at(source, at)).transpose()?.flatten();
                let files = match (files, at) {
                    (Some(files), _) => files,
                    (None, Some(at)) => repository.files(at)?.into_iter().collect(),
                    (None, None) => Default::default(),
                };
                (graph_view, Purpose::Leave { view }, departures(files))
            }
        };
        let diff = begun.elapsed();
        self.feed(graph_view, purpose, changes, begun, diff)
    }

    /// Returns the files of a commit as the store knows them, once everything under way is published.
    fn files_at(
        &self,
        source: SourceId,
        commit: CommitId,
    ) -> Result<Option<BTreeMap<DocumentPath, FileState>>, EngineError> {
        self.publisher.settle()?;
        let archive = Archive::open_reader(&self.layout.versions())?;
        let version = archive.by_commit(source, commit);
        version.map(|version| files_of(&archive, &self.registry.catalogue(), version)).transpose()
    }

    /// Feeds what is left of a trace, each epoch when it is due.
    pub(super) fn take_trace(&mut self, index: usize) -> Result<(), EngineError> {
        loop {
            let begun = Instant::now();
            let Some(Source::Trace(trace)) = self.sources.get_mut(index) else { return Ok(()) };
            let Some((record, due)) = trace.next()? else { return Ok(()) };
            let (graph_view, purpose) = trace.purpose(&record, &mut self.registry)?;
            let diff = begun.elapsed();
            while let Some(left) = due.and_then(|due| due.checked_duration_since(Instant::now())) {
                if self.stop.is_asked() {
                    break;
                }
                std::thread::sleep(left.min(STOP_INTERVAL));
            }
            if self.stop.is_asked() {
                return Ok(());
            }
            self.feed(graph_view, purpose, record.changes, due.unwrap_or(begun), diff)?;
            let Some(Source::Trace(trace)) = self.sources.get_mut(index) else { return Ok(()) };
            if trace.took() {
                // The first load is published before anything follows, so that both can be measured apart.
                self.publisher.settle()?;
            }
        }
    }

    /// Looks at the whole of a directory.
    pub(super) fn scan_directory(&mut self, index: usize) -> Result<(), EngineError> {
        let begun = Instant::now();
        let Some(Source::Directory(directory, _)) = self.sources.get_mut(index) else { return Ok(()) };
        let Some(watcher) = &mut directory.watcher else { return Ok(()) };
        let state = watcher.look()?;
        self.board.note_watch(&directory.name, watcher.what(), &watcher.state(), state.is_reconciled);
        self.move_directory(index, state, begun)
    }

    /// Feeds a new state of a directory, if it is one.
    pub(super) fn move_directory(
        &mut self,
        index: usize,
        state: DirectoryState,
        begun: Instant,
    ) -> Result<(), EngineError> {
        let Some(Source::Directory(directory, _)) = self.sources.get_mut(index) else { return Ok(()) };
        for (path, why) in &state.unreadable {
            tracing::warn!("{}: cannot read {path}: {why}; it is tried again at the next look", directory.name);
        }
        let (commit, parent, time) = state.commit(directory.at);
        if directory.at == Some(commit) && state.changes.is_empty() {
            return Ok(());
        }
        let target = CommitTarget { source: directory.id, commit, parent, time, view: Some(directory.view) };
        directory.at = Some(commit);
        let graph_view = directory.graph_view();
        let diff = begun.elapsed();
        self.feed(graph_view, Purpose::Commit(target), state.changes, begun, diff)
    }

    /// Feeds a step: as one epoch of the graph, or in slices of which the last one has its purpose.
    pub(super) fn feed(
        &mut self,
        graph_view: View,
        purpose: Purpose,
        changes: Vec<FileChange>,
        begun: Instant,
        diff: Duration,
    ) -> Result<(), EngineError> {
        self.record(graph_view, &purpose, &changes)?;
        let seen = jiff::Timestamp::now().as_millisecond();
        let standing = self.standing(graph_view, &changes)?;
        let came = changes.iter().filter(|change| change.before.is_none() && change.after.is_some()).count();
        let went = changes.iter().filter(|change| change.before.is_some() && change.after.is_none()).count();
        let files = self.files.entry(graph_view).or_default();
        *files = (*files + came).saturating_sub(went);
        let (parts, last) = slices(changes, standing, self.max_slice);
        for part in parts {
            self.feed_slice(Target { graph_view, purpose: Purpose::Part, begun, diff, seen }, part)?;
        }
        self.feed_slice(Target { graph_view, purpose, begun, diff, seen }, last)
    }

    /// Feeds one epoch of the graph, once there is room for it.
    fn feed_slice(&mut self, target: Target, changes: Vec<FileChange>) -> Result<(), EngineError> {
        self.publisher.make_room(changes.len())?;
        // Only this thread feeds the graph, so nothing comes under way meanwhile.
        if self.publisher.is_idle() {
            self.memo.forget_cards();
            self.since_turn = 0;
        } else if self.since_turn >= self.max_changes {
            // More was fed since the last turn than can be under way: whatever was fed before it is published.
            self.memo.turn_cards();
            self.since_turn = 0;
        }
        self.since_turn += changes.len();
        let graph_view = target.graph_view;
        self.publisher.announce(target, changes.len())?;
        self.mill.feed(Epoch(self.next_epoch), graph_view, changes)?;
        self.next_epoch += 1;
        Ok(())
    }
}

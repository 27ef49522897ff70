//! The turn of a source: it plans, takes the next act of its plan, and finds the changes of that act.
//!
//! In: a slot. Out: its job, and for each act the changes to feed.
//!
//! **Invariant:** the changes of a step are computed when it is taken, from its head's current version. So a step that is left
//! out only moves the start of the next one. The graph gets the stored state of a source before any of its moves.

use super::EngineError;
use super::beside::Beside;
use super::directory::{DirectoryState, Found, Watcher};
use super::job::{Act, Cut, Job};
use super::open::restore;
use super::recover::{arrivals, departures, files_of};
use super::slot::{Slot, Source};
use super::step::{Diff, Step};
use super::tracker::{NOWHERE, Tracker};
use super::trouble::Trouble;
use crate::index::apply::{CommitTarget, Purpose};
use crate::watch::directory::Pace;
use crate::watch::git::GitError;
use dataflows::data::{DocumentPath, FileState};
use snapshots::{Archive, CommitId, SourceId};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the answer of a source is waited for before others get their turn.
const AT_ONCE: Duration = Duration::from_millis(500);
/// For how long it may be out before that is said.
const HANGS: Duration = Duration::from_secs(2);

impl Tracker {
    /// Determines the work of a source.
    pub(super) fn begin(&mut self, index: usize) -> Result<(), EngineError> {
        match &self.slots[index].source {
            Source::Git(git, _) => {
                if self.is_shared() {
                    let copy = git.clone();
                    let asked = self.slots[index].rehearsal.take().map_or_else(|| copy.rehearse(), Ok)?;
                    if let Err(asked) = asked.wait(AT_ONCE) {
                        self.slots[index].rehearsal = Some(asked);
                        return Ok(());
                    }
                }
                self.plan(index)
            }
            Source::Directory(..) => self.begin_files(index),
            Source::Trace(_) => {
                self.slots[index].is_wanted = false;
                self.take_trace(index)
            }
            Source::Missing(_) => Ok(()),
        }
    }

    /// Plans the steps of a repository.
    fn plan(&mut self, index: usize) -> Result<(), EngineError> {
        let begun = Instant::now();
        let (planned, gone) = self.planning.begin();
        for (source, commit) in gone {
            for other in &mut self.slots {
                if let Source::Git(git, _) = &mut other.source
                    && git.id == source
                {
                    git.dropped(commit);
                }
            }
        }
        let slot = &mut self.slots[index];
        let Source::Git(git, _) = &mut slot.source else { return Ok(()) };
        let mut acts = Vec::new();
        if !slot.is_restored {
            let archive = Archive::open_reader(&self.layout.versions())?;
            let heads = match git.heads() {
                // The first plan removes the remaining views, if any; it also reports the problem.
                Err(EngineError::NoRefs { .. } | EngineError::Unborn { .. }) => Vec::new(),
                heads => heads?,
            };
            for head in heads.into_iter().filter(|head| !head.is_tag) {
                let Some(view) = git.view(&head.view).copied() else { continue };
                let Some(version) = archive.view(view.id) else { continue };
                acts.push(Act::Restore(view.id, version));
                git.restored(&head.view);
            }
            slot.is_restored = true;
        }
        slot.is_wanted = false;
        match git.plan(&mut self.registry) {
            Ok(steps) => acts.extend(steps.into_iter().map(Act::Step)),
            // Versions to restore were already noted as restored.
            Err(error) if !acts.is_empty() && error.is_of_source() => slot.fails_with(&error, self.follows),
            Err(error) => return Err(error),
        }
        slot.job = Some(Job::new(acts, begun, Some(planned)));
        Ok(())
    }

    /// Takes the next state of a directory; at first, its stored state is restored and its watcher started.
    fn begin_files(&mut self, index: usize) -> Result<(), EngineError> {
        let begun = Instant::now();
        let slot = &mut self.slots[index];
        let Source::Directory(directory, poll) = &mut slot.source else { return Ok(()) };
        let mut acts = Vec::new();
        if !slot.is_restored {
            let archive = Archive::open_reader(&self.layout.versions())?;
            let version = archive.view(directory.view);
            let known = version.map(|version| files_of(&archive, &self.registry.catalogue(), version)).transpose()?;
            let pace = Pace { poll: *poll, ..Default::default() };
            let looks = self.looks.of(directory.view.get());
            let known = known.unwrap_or_default();
            let watcher = Watcher::start(&directory.files, known, pace, looks, directory.accepts, &self.rules)?;
            self.contents.add(watcher.contents(&directory.files), Beside::new());
            directory.watcher = Some(watcher);
            acts.extend(version.map(|version| Act::Restore(directory.view, version)));
            slot.is_restored = true;
        }
        match slot.found.pop_front() {
            Some(found) => acts.push(Act::Found(Box::new(found))),
            None => {
                slot.is_wanted = false;
                // A separate task looks at a tracked directory.
                if !self.follows && directory.watcher.is_some() {
                    acts.push(Act::Look);
                }
            }
        }
        slot.job = Some(Job::new(acts, begun, None));
        Ok(())
    }

    /// Takes the next act of a source, or ends its job.
    pub(super) fn act(&mut self, index: usize) -> Result<(), EngineError> {
        let Some(job) = &mut self.slots[index].job else { return Ok(()) };
        let begun = job.begun;
        if job.looking.is_some() {
            return self.go_on(index);
        }
        let Some(act) = job.acts.pop_front() else {
            self.slots[index].job = None;
            self.end_job(index);
            return Ok(());
        };
        let cut = match act {
            Act::Restore(view, version) => {
                let archive = Archive::open_reader(&self.layout.versions())?;
                let files = files_of(&archive, &self.registry.catalogue(), version)?;
                let restored = restore(&archive, version, view, arrivals(files));
                restored
                    .map(|(head, purpose, changes)| self.cut(head, purpose, changes, [begun, Instant::now()], None))
                    .transpose()?
            }
            Act::Step(step) => match self.take(index, step, begun)? {
                Some(cut) => cut,
                None => return self.go_on(index),
            },
            Act::Look => {
                let Source::Directory(directory, _) = &mut self.slots[index].source else { return Ok(()) };
                let Some(watcher) = &mut directory.watcher else { return Ok(()) };
                let looked = watcher.look();
                let is_reconciled = looked.as_ref().is_ok_and(|state| state.is_reconciled);
                self.board.note_watch(&directory.name, watcher.what(), &watcher.state(), is_reconciled);
                self.board.note_left_out(&directory.name, watcher.what(), watcher.left_out());
                self.find(index, Found { state: looked?, begun, _permit: None })?
            }
            Act::Found(found) => self.find(index, *found)?,
        };
        if let Some(job) = &mut self.slots[index].job {
            job.cut = cut;
            job.begun = Instant::now();
        }
        Ok(())
    }

    /// Notes that a source has no more work.
    fn end_job(&mut self, index: usize) {
        let follows = self.follows;
        let slot = &mut self.slots[index];
        if let Source::Git(git, _) = &mut slot.source
            // If only the known state could be restored, it still has a problem.
            && !slot.is_wanted
        {
            git.caught_up();
            self.board.note_watch(&git.name, "refs", &git.events, true);
            slot.works(follows);
        }
    }

    /// Finds out what a step of a repository changes; nothing where that is being looked for.
    fn take(&mut self, index: usize, step: Step, begun: Instant) -> Result<Option<Option<Cut>>, EngineError> {
        let is_shared = self.is_shared();
        let Slot { source: Source::Git(git, _), job: Some(job), .. } = &mut self.slots[index] else {
            return Ok(Some(None));
        };
        let (graph_view, purpose, changes) = match step {
            Step::Move { graph_view, to, .. } => {
                let (repository, from) = (git.source.clone(), git.stands(graph_view));
                let compare = move || Diff::of(&repository, from, to.id);
                if is_shared {
                    job.looking = Some((step, git.beside.begin(compare)?));
                    return Ok(None);
                }
                return self.moved(index, step, begun, compare()).map(Some);
            }
            // Its commit should have got its snapshot on the way, and was left out.
            Step::Point { commit, .. } if !git.has(commit) => return Ok(Some(None)),
            Step::Point { view, commit } => (NOWHERE, Purpose::Point { view, source: git.id, commit }, Vec::new()),
            Step::Leave { graph_view, view } => {
                let at = git.stands(graph_view);
                if at.is_none() && view.is_none() {
                    return Ok(Some(None));
                }
                let (source, repository) = (git.id, git.source.clone());
                let files = at.map(|at| self.files_at(source, at)).transpose()?.flatten();
                let files = match (files, at) {
                    (Some(files), _) => files,
                    (None, Some(at)) => repository.files(at)?.into_iter().collect(),
                    (None, None) => Default::default(),
                };
                (graph_view, Purpose::Leave { view }, departures(files))
            }
        };
        self.cut(graph_view, purpose, changes, [begun, Instant::now()], Some(step)).map(Some).map(Some)
    }

    /// Goes on with a step whose changes are being looked for, if they are found.
    fn go_on(&mut self, index: usize) -> Result<(), EngineError> {
        let Some(job) = &mut self.slots[index].job else { return Ok(()) };
        let Some((step, diff)) = job.looking.take() else { return Ok(()) };
        match diff.wait(AT_ONCE) {
            Ok(diff) => {
                let begun = job.begun;
                let cut = self.moved(index, step, begun, diff)?;
                if let Some(job) = &mut self.slots[index].job {
                    job.cut = cut;
                    job.begun = Instant::now();
                }
            }
            Err(diff) => job.looking = Some((step, diff)),
        }
        Ok(())
    }

    /// Begins to feed a step that moves a head to a commit; nothing comes of a commit that cannot be indexed.
    fn moved(
        &mut self,
        index: usize,
        step: Step,
        begun: Instant,
        diff: Result<Diff, GitError>,
    ) -> Result<Option<Cut>, EngineError> {
        let (Step::Move { graph_view, to, view }, Source::Git(git, _)) = (&step, &self.slots[index].source) else {
            return Ok(None);
        };
        let (graph_view, source) = (*graph_view, git.id);
        let changes = match (diff.map_err(EngineError::from), git.stands(graph_view)) {
            (Ok(Diff::Changes(changes)), _) => Ok(changes),
            (Ok(Diff::Files(files, error)), Some(from)) => match self.files_at(source, from)? {
                Some(known) => Ok(crate::watch::changes(&known, &files)),
                None => Err(error.into()),
            },
            (Ok(Diff::Files(_, error)), None) => Err(error.into()),
            (Err(error), _) => Err(error),
        };
        let changes = match changes {
            Err(error) if error.is_of_commit() => {
                if let Source::Git(git, _) = &mut self.slots[index].source {
                    git.refuse(&step, &error);
                }
                return Ok(None);
            }
            changes => changes?,
        };
        let target = CommitTarget { source, commit: to.id, parent: to.first_parent, time: to.time, view: *view };
        self.cut(graph_view, Purpose::Commit(target), changes, [begun, Instant::now()], Some(step)).map(Some)
    }

    /// Says of which sources the file system does not answer; returns whether one is waited for.
    pub(super) fn note_hanging(&mut self) -> bool {
        let mut is_awaited = false;
        for slot in &mut self.slots {
            let Some(since) = slot.awaited_since() else { continue };
            is_awaited = true;
            if since.elapsed() >= HANGS && slot.trouble.is_none() {
                let (path, seconds) = (slot.name.clone(), HANGS.as_secs());
                slot.fails_with(&EngineError::Unanswered { path, seconds }, self.follows);
            }
        }
        is_awaited
    }

    /// Returns the files of a commit as stored, once all work in progress is published.
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

    /// Accepts a state of a directory, if it is new.
    fn find(&mut self, index: usize, found: Found) -> Result<Option<Cut>, EngineError> {
        let Found { mut state, begun, .. } = found;
        let follows = self.follows;
        let slot = &mut self.slots[index];
        let Source::Directory(directory, _) = &mut slot.source else { return Ok(None) };
        let name = &slot.name;
        if let Some(line) = directory.note_unreadable(std::mem::take(&mut state.unreadable)) {
            tracing::warn!("{name}: {line}");
        }
        if let Some(what) = &state.taken_over {
            tracing::warn!("{name}: {what}; it was seen again, or accepted, and is taken over now");
        }
        match &state.looks.doubt {
            Some(doubt) => {
                let seconds = Pace::default().second_look.as_secs();
                let what = format!(
                    "{}; what was indexed of them stays until the same is seen {seconds} s later, or `tidemill track` runs with --accept-loss",
                    doubt.what
                );
                let wait = state.next.saturating_duration_since(Instant::now());
                if Trouble::note(&mut slot.held, what, Some(wait)) && follows {
                    tracing::warn!("{name}: {}", slot.held.as_ref().map_or("", |held| &held.what));
                }
                slot.held = slot.held.take().map(|held| held.since(doubt.since));
            }
            None => {
                if slot.held.take().is_some() && state.taken_over.is_none() && follows {
                    tracing::warn!("{name}: what seemed to be gone is there again");
                }
            }
        }
        let looks = std::mem::take(&mut state.looks);
        if let Err(error) = self.looks.put(&self.layout, directory.view.get(), &looks) {
            tracing::warn!("{error}");
        }
        let (commit, parent, time) = state.commit(directory.at);
        let is_known = directory.at == Some(commit) && state.changes.is_empty();
        let purpose =
            Purpose::Commit(CommitTarget { source: directory.id, commit, parent, time, view: Some(directory.view) });
        directory.at = Some(commit);
        let graph_view = directory.graph_view();
        slot.works(follows);
        if is_known {
            return Ok(None);
        }
        let DirectoryState { changes, .. } = state;
        self.cut(graph_view, purpose, changes, [begun, Instant::now()], None).map(Some)
    }
}

//! A tracked git repository: plans the steps that bring the index to its refs.
//!
//! In: the current refs, and which commits have snapshots. Out: steps.
//!
//! **Invariant:** planning decides by commits and never by an event. Planning twice without a change in between gives no step. A
//! known view gets every first-parent commit that its last one does not reach, oldest first; a new view gets its head, and the
//! commits that `--backfill` asks for.
//!
//! A head or a commit that cannot be read or indexed is left out, and the rest is tracked: a commit in the middle of a line is
//! skipped, and the next one is compared with the last that was taken. A tree that is too large is tried again when its ref
//! moves. A missing or unreadable object is also tried again at growing intervals, because a fetch may bring it.
//!
//! Only branches stay in the graph. A tag, and a past commit on request, passes through on a separate head, which leaves the
//! graph at the end of the plan.

use super::EngineError;
use super::beside::{Awaited, Beside};
use super::directory::WORKTREE_VIEW;
use super::omitted::Omitted;
use super::step::Step;
use crate::config::Backfill;
use crate::resources::chain;
use crate::watch::EventState;
use crate::watch::git::{Commit, GitError, GitSource, Head, HeadState, Heads, RefPattern};
use dataflows::data::View;
use snapshots::{CommitId, SourceId, ViewId};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// A tracked git repository.
#[derive(Clone)]
pub(super) struct GitTracker {
    pub(super) id: SourceId,
    pub(super) name: String,
    pub(super) source: GitSource,
    /// Where it is read, if there are other sources.
    pub(super) beside: Arc<Beside>,
    patterns: Vec<RefPattern>,
    backfill: Option<Backfill>,
    /// Commits with a snapshot under today's rules, or with one in progress.
    snapshots: HashSet<CommitId>,
    /// Commits whose snapshot was dropped, which backfill skips.
    let_go: HashSet<CommitId>,
    views: BTreeMap<String, GitView>,
    /// The head on which past commits and tags pass through the graph.
    passing: View,
    /// The current commit of that head.
    passing_at: Option<CommitId>,
    /// How often to fetch before looking.
    pub(super) fetch: Option<Duration>,
    /// Whether the name of the work tree's view is taken.
    has_worktree: bool,
    /// How file events arrive, as reported by the watcher.
    pub(super) events: EventState,
    /// Matched tags that are no commits, at the last listing of the heads.
    pub(super) skipped_tags: usize,
    /// Heads and commits that are left out.
    pub(super) omitted: Omitted,
}

/// One view of the repository, stored or new.
#[derive(Clone, Copy, Debug)]
pub(super) struct GitView {
    pub(super) id: ViewId,
    /// The view's commit.
    pub(super) at: Option<CommitId>,
    /// Whether the graph holds it.
    pub(super) in_graph: bool,
}

/// Assigns numbers to new views.
pub(super) trait ViewNumbers {
    /// Returns the number of a view, a new one if it has none.
    fn view(&mut self, source: SourceId, name: &str) -> Result<ViewId, EngineError>;
}

impl GitTracker {
    pub(super) fn new(
        id: SourceId,
        name: String,
        source: GitSource,
        patterns: Vec<RefPattern>,
        backfill: Option<Backfill>,
        fetch: Option<Duration>,
        has_worktree: bool,
    ) -> Self {
        let passing = View(u32::MAX - id.get());
        Self {
            id,
            name,
            source,
            beside: Beside::new(),
            patterns,
            backfill,
            snapshots: HashSet::new(),
            let_go: HashSet::new(),
            views: BTreeMap::new(),
            passing,
            passing_at: None,
            fetch,
            has_worktree,
            events: EventState::default(),
            skipped_tags: 0,
            omitted: Omitted::default(),
        }
    }

    /// Leaves out a commit that cannot be indexed.
    pub(super) fn refuse(&mut self, step: &Step, error: &EngineError) {
        let Step::Move { to, view, .. } = step else { return };
        let view = view.and_then(|view| name_of(&self.views, view));
        self.omitted.refuse(to.id, view, error);
    }

    /// Returns the commit of a head of the graph, if it has one.
    pub(super) fn stands(&self, graph_view: View) -> Option<CommitId> {
        if graph_view == self.passing {
            return self.passing_at;
        }
        let view = self.views.values().find(|view| view.in_graph && View(view.id.get()) == graph_view);
        view.and_then(|view| view.at)
    }

    /// Returns whether a commit has its snapshot, or one is in progress.
    pub(super) fn has(&self, commit: CommitId) -> bool {
        self.snapshots.contains(&commit)
    }

    /// Adds a commit that has a snapshot.
    pub(super) fn knows(&mut self, commit: CommitId) {
        self.snapshots.insert(commit);
    }

    /// Adds a commit whose snapshot was dropped: backfill does not make it again.
    pub(super) fn let_go(&mut self, commit: CommitId) {
        self.let_go.insert(commit);
    }

    /// Notes a commit whose snapshot was dropped just now.
    pub(super) fn dropped(&mut self, commit: CommitId) {
        self.snapshots.remove(&commit);
        self.let_go(commit);
    }

    /// Adds a view of the store.
    pub(super) fn knows_view(&mut self, name: String, view: GitView) {
        if !(self.has_worktree && name == WORKTREE_VIEW) {
            self.views.insert(name, view);
        }
    }

    /// Returns the view of this name, if it is known.
    pub(super) fn view(&self, name: &str) -> Option<&GitView> {
        self.views.get(name)
    }

    /// Notes that the graph holds a view again; missing parts of its version are tried again with it.
    pub(super) fn restored(&mut self, name: &str) {
        if let Some(view) = self.views.get_mut(name) {
            view.in_graph = true;
            self.snapshots.extend(view.at);
        }
    }

    /// Returns the heads that are tracked, as [`heads_of`] does.
    pub(super) fn heads(&mut self) -> Result<Vec<Head>, EngineError> {
        let Heads { mut heads, skipped_tags, mut broken } = heads_of(&self.source, &self.patterns, &self.name)?;
        self.skipped_tags = skipped_tags;
        if self.has_worktree && heads.iter().any(|head| head.view == WORKTREE_VIEW) {
            let taken = "it is called like the view of --worktree".to_owned();
            broken.extend(
                heads.extract_if(.., |head| head.view == WORKTREE_VIEW).map(|head| (head.reference, taken.clone())),
            );
        }
        self.omitted.note_refs(broken);
        Ok(heads)
    }

    /// Begins to read beside, by a copy of the tracker, what [`Self::plan`] reads, which then finds it in memory or fails as fast.
    ///
    /// What hangs does so there: a plan is made where all sources are fed.
    pub(super) fn rehearse(mut self) -> Result<Awaited<()>, EngineError> {
        /// Numbers of no store.
        struct Nowhere;
        impl ViewNumbers for Nowhere {
            fn view(&mut self, _: SourceId, _: &str) -> Result<ViewId, EngineError> {
                Ok(ViewId::new(u32::MAX))
            }
        }
        // What is wrong is said by the plan itself.
        self.beside.clone().begin(move || drop(self.plan(&mut Nowhere)))
    }

    /// Plans all steps from the current state to the refs.
    pub(super) fn plan(&mut self, numbers: &mut dyn ViewNumbers) -> Result<Vec<Step>, EngineError> {
        let gone = self.gone()?;
        self.omitted.begin_plan();
        let heads = match self.heads() {
            // Missing refs must be removed before an error says that nothing is left.
            Err(EngineError::NoRefs { .. } | EngineError::Unborn { .. }) if !gone.is_empty() => Vec::new(),
            heads => heads?,
        };
        let mut plan = Plan { steps: Vec::new(), passing_at: self.passing_at, commits: HashSet::new() };
        let mut unplanned = Vec::new();
        for head in &heads {
            let view = match self.views.get(&head.view) {
                Some(view) => *view,
                None => {
                    let at = self.earlier_name(head, &heads).and_then(|view| view.at);
                    let view = GitView { id: numbers.view(self.id, &head.view)?, at, in_graph: false };
                    self.views.insert(head.view.clone(), view);
                    view
                }
            };
            let planned = if head.is_tag {
                self.plan_tag(head, view, &mut plan);
                Ok(())
            } else {
                self.plan_branch(head, view, &mut plan)
            };
            match planned.and_then(|()| self.plan_backfill(head, &mut plan)) {
                Err(error) if error.is_of_source() => unplanned.push((head.view.clone(), chain(&error))),
                planned => planned?,
            }
        }
        self.omitted.note_heads(unplanned);
        for view in gone {
            plan.steps.push(Step::Leave { graph_view: View(view.id.get()), view: Some(view.id) });
        }
        if plan.passing_at.is_some() {
            plan.steps.push(Step::Leave { graph_view: self.passing, view: None });
        }
        Ok(plan.steps)
    }

    /// Notes that a step was fed. Only taken steps count, so an interrupted plan is continued.
    pub(super) fn took(&mut self, step: &Step) {
        match *step {
            Step::Move { graph_view, to, view } => {
                self.omitted.took(to.id, view.and_then(|view| name_of(&self.views, view)));
                self.snapshots.insert(to.id);
                if graph_view == self.passing {
                    self.passing_at = Some(to.id);
                }
                if let Some(known) = self.views.values_mut().find(|known| Some(known.id) == view) {
                    known.at = Some(to.id);
                    known.in_graph = graph_view == View(known.id.get());
                }
            }
            Step::Point { view, commit } => {
                if let Some((name, known)) = self.views.iter_mut().find(|(_, known)| known.id == view) {
                    known.at = Some(commit);
                    self.omitted.moved_on(name);
                }
            }
            Step::Leave { graph_view, view } => {
                if graph_view == self.passing {
                    self.passing_at = None;
                }
                if let Some(name) = view.and_then(|view| name_of(&self.views, view)).map(str::to_owned) {
                    self.omitted.moved_on(&name);
                    self.views.remove(&name);
                }
            }
        }
    }

    /// Notes that a whole plan was taken: the backfill is done, and from now on the refs alone decide.
    pub(super) fn caught_up(&mut self) {
        if !self.omitted.has_heads() {
            self.backfill = None;
            self.omitted.has_no_past();
        }
    }

    /// Returns the earlier name of a branch's view. A tag with the branch's name, added or removed, renames the view. The branch
    /// continues from the old view's commit, so that none of its commits is skipped.
    fn earlier_name(&self, head: &Head, heads: &[Head]) -> Option<&GitView> {
        let short = head.reference.strip_prefix("refs/heads/")?;
        let full = format!("heads/{short}");
        let is_free = |name: &&str| heads.iter().all(|other| other.view != *name);
        [short, full.as_str()].into_iter().filter(is_free).find_map(|name| self.views.get(name))
    }

    fn plan_branch(&mut self, head: &Head, view: GitView, plan: &mut Plan) -> Result<(), EngineError> {
        let mut commits = match view.at {
            Some(at) if at == head.commit.id && view.in_graph => Vec::new(),
            // A view under a new name: its commit is right, but neither the log nor the graph knows it by that name.
            Some(at) if at == head.commit.id => vec![head.commit],
            Some(at) => match self.source.new_commits(at, head.commit.id) {
                // A reset to an earlier commit of the view: nothing is new, but the head moves.
                Ok(commits) if commits.is_empty() => vec![head.commit],
                Ok(commits) => commits,
                // History was replaced, and what stood there is gone: nothing of the new one is left out.
                Err(GitError::MissingObject { id, .. }) if id == at => {
                    tracing::warn!(
                        "{}: the commit {at} of {} is gone from the repository; only its head is taken",
                        self.name,
                        head.view
                    );
                    vec![head.commit]
                }
                Err(error) => {
                    if !self.omitted.is_refused(head.commit.id) {
                        let why = chain(&error);
                        let what = format!("its commits since {at} cannot be listed ({why}); only its head is taken");
                        self.omitted.pass(&head.view, what);
                    }
                    vec![head.commit]
                }
            },
            None => self.backfilled(head)?,
        };
        self.omitted.waits_for(&head.view, commits.iter().map(|commit| commit.id));
        commits.retain(|commit| !self.omitted.is_refused(commit.id));
        let graph_view = View(view.id.get());
        for commit in commits {
            plan.steps.push(Step::Move { graph_view, to: commit, view: Some(view.id) });
            plan.commits.insert(commit.id);
        }
        Ok(())
    }

    /// Returns whether a commit has its snapshot, or will have it when the plan so far is done.
    fn has_snapshot(&self, commit: CommitId, plan: &Plan) -> bool {
        self.snapshots.contains(&commit) || plan.commits.contains(&commit)
    }

    fn plan_tag(&mut self, head: &Head, view: GitView, plan: &mut Plan) {
        self.omitted.waits_for(&head.view, std::iter::once(head.commit.id));
        if view.at != Some(head.commit.id) && !self.omitted.is_refused(head.commit.id) {
            if self.has_snapshot(head.commit.id, plan) {
                plan.steps.push(Step::Point { view: view.id, commit: head.commit.id });
            } else {
                self.pass(head.commit, Some(view.id), plan);
            }
        }
    }

    /// Plans snapshots of past commits of a head that have none.
    fn plan_backfill(&self, head: &Head, plan: &mut Plan) -> Result<(), EngineError> {
        if self.backfill.is_some() {
            for commit in self.backfilled(head)? {
                let is_left_out = self.let_go.contains(&commit.id) || self.omitted.is_refused(commit.id);
                if !self.has_snapshot(commit.id, plan) && !is_left_out {
                    self.pass(commit, None, plan);
                }
            }
        }
        Ok(())
    }

    /// Passes a commit through the graph.
    fn pass(&self, commit: Commit, view: Option<ViewId>, plan: &mut Plan) {
        plan.passing_at = Some(commit.id);
        plan.steps.push(Step::Move { graph_view: self.passing, to: commit, view });
        plan.commits.insert(commit.id);
    }

    /// Returns the commits of a head that need snapshots, oldest first, the head itself last.
    fn backfilled(&self, head: &Head) -> Result<Vec<Commit>, EngineError> {
        let from = head.commit.id;
        let commits = match &self.backfill {
            None => vec![head.commit],
            Some(Backfill::Commits(number)) => {
                self.source.first_parents(from, |_| false, Some(number.saturating_add(1)))?
            }
            Some(Backfill::All) => self.source.first_parents(from, |_| false, None)?,
            Some(Backfill::From(revision)) => from_revision(&self.source, head, revision)?,
        };
        Ok(commits)
    }

    /// Returns the views whose ref is deleted, or no longer leads to a commit.
    ///
    /// An unreadable ref still exists: its indexed state stays.
    fn gone(&self) -> Result<Vec<GitView>, EngineError> {
        let known: Vec<&str> = self.views.keys().map(String::as_str).collect();
        let standing = self.source.standing(&known)?;
        Ok(self.views.iter().filter(|(name, _)| !standing.contains(*name)).map(|(_, view)| *view).collect())
    }
}

/// Returns the commits of a head from a revision on, oldest first, the head itself last.
///
/// # Errors
/// If the revision is unknown, or no first-parent ancestor of the head.
pub(super) fn from_revision(source: &GitSource, head: &Head, revision: &str) -> Result<Vec<Commit>, EngineError> {
    let start = source.resolve(revision)?;
    let from = head.commit.id;
    let mut commits = source.first_parents(from, |commit| *commit == start, None)?;
    let first = commits.first().map_or(head.commit.first_parent, |first| first.first_parent);
    if from != start && first != Some(start) {
        return Err(EngineError::NotOnLine { revision: revision.to_owned(), view: head.view.clone() });
    }
    commits.insert(0, source.commit(start)?);
    Ok(commits)
}

/// Returns the heads that patterns match: the branch that HEAD names first, then other branches, then tags.
pub(super) fn heads_of(source: &GitSource, patterns: &[RefPattern], name: &str) -> Result<Heads, EngineError> {
    let mut heads = source.heads(patterns)?;
    let first = source.head_branch()?;
    heads.heads.sort_by_key(|head| (head.is_tag, Some(&head.reference) != first.as_ref(), head.reference.clone()));
    if heads.heads.is_empty() && heads.broken.is_empty() {
        return match source.head()? {
            HeadState::Unborn(branch) if patterns.is_empty() => {
                Err(EngineError::Unborn { source_name: name.to_owned(), branch })
            }
            _ if patterns.is_empty() => Ok(heads),
            _ => Err(EngineError::NoRefs { source_name: name.to_owned() }),
        };
    }
    Ok(heads)
}

/// Returns what a view is called.
fn name_of(views: &BTreeMap<String, GitView>, view: ViewId) -> Option<&str> {
    views.iter().find(|(_, known)| known.id == view).map(|(name, _)| name.as_str())
}

/// A plan under construction.
struct Plan {
    steps: Vec<Step>,
    passing_at: Option<CommitId>,
    /// Commits that get their snapshot by the steps so far.
    commits: HashSet<CommitId>,
}

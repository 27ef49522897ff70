//! A tracked git repository: from where its refs are to the steps that bring the index there.
//!
//! In: the refs as they stand, and which commits have snapshots. Out: steps.
//!
//! **Invariant:** planning decides by commits and never by what an event said; planning twice without a change in between
//! gives no step. A known view gets every first-parent commit that its last one does not reach, oldest first; a view first
//! seen gets its head, and what `--backfill` asks for.
//!
//! Only branches stay in the graph. A tag, and a past commit that was asked for later, passes through on a head of its
//! own, which leaves the graph at the end of the plan.

use super::EngineError;
use super::directory::WORKTREE_VIEW;
use super::step::Step;
use crate::config::Backfill;
use crate::watch::EventState;
use crate::watch::git::{Commit, GitSource, Head, HeadState, RefPattern};
use dataflows::data::View;
use snapshots::{CommitId, SourceId, ViewId};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// A git repository that is tracked.
pub(super) struct GitTracker {
    pub(super) id: SourceId,
    pub(super) name: String,
    pub(super) source: GitSource,
    patterns: Vec<RefPattern>,
    backfill: Option<Backfill>,
    /// Commits that have a snapshot under today's rules, or are on their way to one.
    snapshots: HashSet<CommitId>,
    /// Commits whose snapshot was dropped, and that backfill passes over.
    let_go: HashSet<CommitId>,
    views: BTreeMap<String, GitView>,
    /// The head on which past commits and tags pass through the graph.
    passing: View,
    /// Where that head stands.
    passing_at: Option<CommitId>,
    /// How often to fetch before looking.
    pub(super) fetch: Option<Duration>,
    /// Whether the name of the work tree's view is taken.
    has_worktree: bool,
    /// How file events arrive, as far as the watcher has told.
    pub(super) events: EventState,
}

/// One view of the repository, known to the store or new.
#[derive(Clone, Copy, Debug)]
pub(super) struct GitView {
    pub(super) id: ViewId,
    /// Where the view stands.
    pub(super) at: Option<CommitId>,
    /// Whether the graph holds it.
    pub(super) in_graph: bool,
}

/// Gives out numbers for views that are seen for the first time.
pub(super) trait ViewNumbers {
    /// Returns the number of a view, a new one where it has none.
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
        }
    }

    /// Returns how many matched tags are no commits, and how many matched refs cannot be read.
    pub(super) fn left_out(&self) -> (u64, u64) {
        let heads = self.source.heads(&self.patterns).unwrap_or_default();
        (heads.skipped_tags as u64, heads.broken.len() as u64)
    }

    /// Tells the tracker of a commit that has a snapshot.
    pub(super) fn knows(&mut self, commit: CommitId) {
        self.snapshots.insert(commit);
    }

    /// Tells the tracker of a commit whose snapshot was dropped: backfill does not make it again.
    pub(super) fn let_go(&mut self, commit: CommitId) {
        self.let_go.insert(commit);
    }

    /// Tells the tracker of a commit whose snapshot was dropped just now.
    pub(super) fn dropped(&mut self, commit: CommitId) {
        self.snapshots.remove(&commit);
        self.let_go(commit);
    }

    /// Tells the tracker of a view that the store has.
    pub(super) fn knows_view(&mut self, name: String, view: GitView) {
        if !(self.has_worktree && name == WORKTREE_VIEW) {
            self.views.insert(name, view);
        }
    }

    /// Returns the view of this name, if it is known.
    pub(super) fn view(&self, name: &str) -> Option<&GitView> {
        self.views.get(name)
    }

    /// Notes that the graph holds a view again; what was missing of its version is looked at again with it.
    pub(super) fn restored(&mut self, name: &str) {
        if let Some(view) = self.views.get_mut(name) {
            view.in_graph = true;
            self.snapshots.extend(view.at);
        }
    }

    /// Returns the heads that are tracked, as [`heads_of`] does.
    pub(super) fn heads(&self) -> Result<Vec<Head>, EngineError> {
        let mut heads = heads_of(&self.source, &self.patterns, &self.name)?;
        if self.has_worktree && heads.iter().any(|head| head.view == WORKTREE_VIEW) {
            tracing::warn!(
                "{}: a ref is called `{WORKTREE_VIEW}` like the view of --worktree; it is left out",
                self.name
            );
            heads.retain(|head| head.view != WORKTREE_VIEW);
        }
        Ok(heads)
    }

    /// Plans everything that leads from what was taken so far to where the refs stand.
    pub(super) fn plan(&mut self, numbers: &mut dyn ViewNumbers) -> Result<Vec<Step>, EngineError> {
        let gone = self.gone()?;
        let heads = match self.heads() {
            // What is gone must go before anybody is told that nothing is left.
            Err(EngineError::NoRefs { .. } | EngineError::Unborn { .. }) if !gone.is_empty() => Vec::new(),
            heads => heads?,
        };
        let mut plan = Plan { steps: Vec::new(), passing_at: self.passing_at, commits: HashSet::new() };
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
            if head.is_tag {
                self.plan_tag(head, view, &mut plan);
            } else {
                self.plan_branch(head, view, &mut plan)?;
            }
            self.plan_backfill(head, &mut plan)?;
        }
        for view in gone {
            let at = view.at.filter(|_| view.in_graph);
            plan.steps.push(Step::Leave { graph_view: View(view.id.get()), at, view: Some(view.id) });
        }
        if plan.passing_at.is_some() {
            plan.steps.push(Step::Leave { graph_view: self.passing, at: plan.passing_at, view: None });
        }
        Ok(plan.steps)
    }

    /// Notes that a step was fed: only what was taken counts, so a plan that breaks off is taken up where it ended.
    pub(super) fn took(&mut self, step: &Step) {
        match *step {
            Step::Move { graph_view, to, view, .. } => {
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
                if let Some(known) = self.views.values_mut().find(|known| known.id == view) {
                    known.at = Some(commit);
                }
            }
            Step::Leave { graph_view, view, .. } => {
                if graph_view == self.passing {
                    self.passing_at = None;
                }
                self.views.retain(|_, known| Some(known.id) != view);
            }
        }
    }

    /// Notes that a whole plan was taken: what `--backfill` asked for is there, from now on the refs alone decide.
    pub(super) fn caught_up(&mut self) {
        self.backfill = None;
    }

    /// Returns the view under which a branch was known before a tag of its name came or went, which renames the view:
    /// the branch goes on from where that one stood, so that none of its commits is passed over.
    fn earlier_name(&self, head: &Head, heads: &[Head]) -> Option<&GitView> {
        let short = head.reference.strip_prefix("refs/heads/")?;
        let full = format!("heads/{short}");
        let is_free = |name: &&str| heads.iter().all(|other| other.view != *name);
        [short, full.as_str()].into_iter().filter(is_free).find_map(|name| self.views.get(name))
    }

    fn plan_branch(&self, head: &Head, mut view: GitView, plan: &mut Plan) -> Result<(), EngineError> {
        let commits = match view.at {
            Some(at) if at == head.commit.id && view.in_graph => Vec::new(),
            // A view under a new name: it stands where it should, but neither the log nor the graph knows it by that name.
            Some(at) if at == head.commit.id => vec![head.commit],
            Some(at) => match self.source.new_commits(at, head.commit.id) {
                // A reset to a commit that the view has passed: nothing is new, the head still moves.
                Ok(commits) if commits.is_empty() => vec![head.commit],
                Ok(commits) => commits,
                Err(error) => {
                    tracing::warn!(
                        "{}: {} was rewritten and its last commit {at} is gone ({error}); only its head is taken",
                        self.name,
                        head.view
                    );
                    vec![head.commit]
                }
            },
            None => self.backfilled(head)?,
        };
        let graph_view = View(view.id.get());
        for commit in commits {
            let from = view.at.filter(|_| view.in_graph);
            plan.steps.push(Step::Move { graph_view, from, to: commit, view: Some(view.id) });
            plan.commits.insert(commit.id);
            view.at = Some(commit.id);
            view.in_graph = true;
        }
        Ok(())
    }

    /// Returns whether a commit has its snapshot, or will have it when the plan so far is taken.
    fn has_snapshot(&self, commit: CommitId, plan: &Plan) -> bool {
        self.snapshots.contains(&commit) || plan.commits.contains(&commit)
    }

    fn plan_tag(&self, head: &Head, view: GitView, plan: &mut Plan) {
        if view.at != Some(head.commit.id) {
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
                if !self.has_snapshot(commit.id, plan) && !self.let_go.contains(&commit.id) {
                    self.pass(commit, None, plan);
                }
            }
        }
        Ok(())
    }

    /// Lets a commit pass through the graph.
    fn pass(&self, commit: Commit, view: Option<ViewId>, plan: &mut Plan) {
        let from = plan.passing_at.replace(commit.id);
        plan.steps.push(Step::Move { graph_view: self.passing, from, to: commit, view });
        plan.commits.insert(commit.id);
    }

    /// Returns the commits of a head that are to have snapshots, oldest first, the head itself last.
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

    /// Returns the views whose ref is no more, or no longer leads to a commit.
    ///
    /// A ref that cannot be read at present is there: what was indexed of it stays.
    fn gone(&self) -> Result<Vec<GitView>, EngineError> {
        let known: Vec<&str> = self.views.keys().map(String::as_str).collect();
        let standing = self.source.standing(&known)?;
        Ok(self.views.iter().filter(|(name, _)| !standing.contains(*name)).map(|(_, view)| *view).collect())
    }
}

/// Returns the commits of a head from a revision on, oldest first, the head itself last.
///
/// # Errors
/// Where the revision is unknown, or no first-parent ancestor of the head.
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
pub(super) fn heads_of(source: &GitSource, patterns: &[RefPattern], name: &str) -> Result<Vec<Head>, EngineError> {
    let mut heads = source.heads(patterns)?;
    for (reference, why) in &heads.broken {
        tracing::warn!("{name}: cannot read {reference}: {why}");
    }
    let first = source.head_branch()?;
    heads.heads.sort_by_key(|head| (head.is_tag, Some(&head.reference) != first.as_ref(), head.reference.clone()));
    if heads.heads.is_empty() {
        return match source.head()? {
            HeadState::Unborn(branch) if patterns.is_empty() => {
                Err(EngineError::Unborn { source_name: name.to_owned(), branch })
            }
            _ if patterns.is_empty() => Ok(Vec::new()),
            _ => Err(EngineError::NoRefs { source_name: name.to_owned() }),
        };
    }
    Ok(heads.heads)
}

/// A plan in the making.
struct Plan {
    steps: Vec<Step>,
    passing_at: Option<CommitId>,
    /// Commits that get their snapshot by the steps so far.
    commits: HashSet<CommitId>,
}

//! The parts of a repository that are left out while the rest is tracked: refs, heads and commits.
//!
//! In: parts that could not be read or indexed, and those that work again. Out: the parts to skip for now, log lines, and data
//! for `status`.
//!
//! | state of a commit | event | then |
//! |---|---|---|
//! | none | it cannot be indexed | left out: said, shown |
//! | left out | it is taken | none: said |
//! | left out | its view takes another commit, stands elsewhere or is gone | passed: shown until the next plan |
//! | passed | the next plan begins | none |
//!
//! **Invariant:** what is shown is what some head still waits for, and what the last plan passed over. Each of them is said once when it
//! begins, and once when it ends. A tree that is too large is never tried again by itself, since a commit never changes; what is missing
//! or cannot be read is, later and later, since a fetch may bring it.

use super::EngineError;
use super::trouble::{LeftOut, Trouble};
use crate::resources::chain;
use crate::watch::git::GitError;
use snapshots::CommitId;
use std::collections::{BTreeMap, HashSet};

/// Whose the commits are that `--backfill` asked for.
const PAST: &str = "the past";

/// Most remembered commits; beyond that number all are found again.
const MAX_REFUSED: usize = 10_000;

/// The omitted parts of one repository.
#[derive(Clone, Default)]
pub(super) struct Omitted {
    /// Matched refs that cannot be read.
    refs: BTreeMap<String, LeftOut>,
    /// Heads whose commits cannot be listed.
    heads: BTreeMap<String, LeftOut>,
    /// Commits that cannot be indexed, and that a head waits for.
    commits: BTreeMap<CommitId, LeftOut>,
    /// Commits that no head waits for any more, since the last plan began.
    passed: Vec<LeftOut>,
    news: Vec<String>,
}

impl Omitted {
    /// Returns all of it.
    pub(super) fn all(&self) -> impl Iterator<Item = &LeftOut> {
        self.refs.values().chain(self.heads.values()).chain(self.commits.values()).chain(&self.passed)
    }

    /// Begins a plan: what the one before passed over was shown.
    pub(super) fn begin_plan(&mut self) {
        self.passed.clear();
    }

    /// Returns how many matched refs cannot be read.
    pub(super) fn refs(&self) -> usize {
        self.refs.len()
    }

    /// Returns whether there are heads whose commits cannot be listed.
    pub(super) fn has_heads(&self) -> bool {
        !self.heads.is_empty()
    }

    /// Notes that commits of a view are passed over, which cannot be named.
    pub(super) fn pass(&mut self, view: &str, what: String) {
        let mut trouble = None;
        Trouble::note(&mut trouble, what, None);
        let left_out =
            trouble.map(|trouble| LeftOut { view: view.to_owned(), commit: None, trouble: trouble.for_good() });
        self.news.extend(left_out.as_ref().map(LeftOut::line));
        self.passed.extend(left_out);
    }

    /// Returns the lines that were not logged yet.
    pub(super) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Sets the currently unreadable refs, with reasons.
    pub(super) fn note_refs(&mut self, broken: Vec<(String, String)>) {
        note(&mut self.news, &mut self.refs, broken);
    }

    /// Sets the heads whose commits cannot be listed now, with reasons.
    pub(super) fn note_heads(&mut self, unplanned: Vec<(String, String)>) {
        note(&mut self.news, &mut self.heads, unplanned);
    }

    /// Leaves a commit out.
    pub(super) fn refuse(&mut self, commit: CommitId, view: Option<&str>, error: &EngineError) {
        let view = view.unwrap_or(PAST);
        let is_final =
            matches!(error, EngineError::Git(GitError::TreeTooLarge { .. } | GitError::FolderTooLarge { .. }));
        let mut trouble = self.commits.remove(&commit).map(|known| known.trouble);
        let is_new = Trouble::note(&mut trouble, chain(error), None);
        if self.commits.len() >= MAX_REFUSED {
            self.commits.clear();
        }
        let Some(trouble) = trouble else { return };
        let trouble = if is_final { trouble.for_good() } else { trouble };
        let left_out = LeftOut { view: view.to_owned(), commit: Some(commit), trouble };
        if is_new {
            self.news.push(left_out.line());
        }
        self.commits.insert(commit, left_out);
    }

    /// Returns whether a commit is left out for now.
    pub(super) fn is_refused(&self, commit: CommitId) -> bool {
        self.commits.get(&commit).is_some_and(|left_out| !left_out.trouble.is_due())
    }

    /// Notes that a commit was taken, by this view if it is one's.
    pub(super) fn took(&mut self, commit: CommitId, view: Option<&str>) {
        if let Some(left_out) = self.commits.remove(&commit) {
            self.news.push(format!("commit {commit} of {} is indexed now", left_out.view));
        }
        if let Some(view) = view {
            self.moved_on(view);
        }
    }

    /// Notes that a view has moved on or is gone: it waits for none of the commits that were left out of it.
    pub(super) fn moved_on(&mut self, view: &str) {
        self.waits_for(view, std::iter::empty());
    }

    /// Notes which commits a view still has to take, or could.
    pub(super) fn waits_for(&mut self, view: &str, commits: impl Iterator<Item = CommitId>) {
        if self.commits.is_empty() {
            return;
        }
        let (waited_for, passed) = (commits.collect::<HashSet<_>>(), &mut self.passed);
        self.commits.retain(|commit, left_out| {
            let is_passed = left_out.view == view && !waited_for.contains(commit);
            if is_passed && passed.len() < MAX_REFUSED {
                passed.push(LeftOut { trouble: left_out.trouble.clone().for_good(), ..left_out.clone() });
            }
            !is_passed
        });
    }

    /// Notes that no past commits are asked for any more.
    pub(super) fn has_no_past(&mut self) {
        self.moved_on(PAST);
    }

    /// Makes commits that lacked an object or could not be read due again: a fetch brought something.
    pub(super) fn hurry(&mut self) {
        self.commits.values_mut().for_each(|left_out| left_out.trouble.hurry());
    }
}

/// Sets the current omissions, by name.
fn note(news: &mut Vec<String>, known: &mut BTreeMap<String, LeftOut>, now: Vec<(String, String)>) {
    let mut before = std::mem::take(known);
    for (name, what) in now {
        let mut trouble = before.remove(&name).map(|left_out| left_out.trouble);
        let is_new = Trouble::note(&mut trouble, what, None);
        let Some(trouble) = trouble else { continue };
        let left_out = LeftOut { view: name.clone(), commit: None, trouble };
        if is_new {
            news.push(left_out.line());
        }
        known.insert(name, left_out);
    }
    news.extend(before.into_keys().map(|name| format!("{name} is tracked again")));
}

//! The meaning of a revision in one source: names first, then hashes, then times, then expressions.
//!
//! In: a revision. Out: one version.
//!
//! ```text
//! a view, or a ref of the repository ──► its commit      a name with two meanings, or that is another commit's hash
//! the hash of a snapshot, or its start ► the commit      as well, is refused with both
//! a time ──────────────────────────────► `time.rs`
//! main~3 v1^{} HEAD@{1} :/text ────────► as git reads it, starting at the view's commit
//! ```
//!
//! **Invariant:** the store answers what it can: names of views, hashes of snapshots, and `~N` as far as the log knows the line of
//! first parents. The repository is asked for what remains, and whether a name is unambiguous. It may be gone.

use super::error::RevisionError;
use super::{Revisions, Selected, open};
use crate::store::{SourceKind, SourceRecord};
use crate::watch::git::{GitError, GitSource, is_abbreviation, parse_time, split_revision};
use snapshots::{Archive, CommitId, SourceId, Version, VersionId, ViewId};
use std::cell::OnceCell;

/// Digits of a full hash.
const FULL_HASH: usize = 40;
/// Most candidates in an error.
const MOST_CANDIDATES: usize = 8;

/// One source under a revision.
pub(super) struct Look<'a> {
    pub(super) revisions: &'a Revisions,
    pub(super) archive: &'a Archive,
    pub(super) id: SourceId,
    pub(super) record: &'a SourceRecord,
    repository: OnceCell<Option<Result<GitSource, GitError>>>,
}

/// The meaning of a name.
struct Meaning<'a> {
    /// An unambiguous form of it.
    said: String,
    commit: CommitId,
    /// The view of this name.
    view: Option<(ViewId, &'a str)>,
}

impl<'a> Look<'a> {
    pub(super) const fn new(
        revisions: &'a Revisions,
        archive: &'a Archive,
        id: SourceId,
        record: &'a SourceRecord,
    ) -> Self {
        Self { revisions, archive, id, record, repository: OnceCell::new() }
    }

    /// Returns the source's repository, if it is one and still exists.
    pub(super) fn repository(&self) -> Option<&GitSource> {
        self.repository.get_or_init(|| open(self.record)).as_ref()?.as_ref().ok()
    }

    /// Returns the newest version of a view: of the named one, else of the branch that HEAD names, else of the view that moved
    /// last.
    pub(super) fn newest(&self, view: Option<&str>) -> Option<Selected> {
        let (id, name) = self.view(view)?;
        let version = self.archive.view(id).and_then(|version| self.archive.version(version));
        version.map(|version| self.selected(version, Some(name), true))
    }

    pub(super) fn view(&self, wanted: Option<&str>) -> Option<(ViewId, &'a str)> {
        if let Some(wanted) = wanted {
            return self.views().find(|(_, name)| is_called(name, wanted));
        }
        let mut all = self.views();
        match (all.next(), all.next()) {
            (only, None) => only,
            _ => {
                let head = self.repository().and_then(|git| git.head_branch().ok()).flatten();
                let head = head.as_deref().map(|full| full.strip_prefix("refs/heads/").unwrap_or(full));
                let named = head.and_then(|head| self.views().find(|(_, name)| is_called(name, head)));
                let epoch = |view: ViewId| self.archive.views().find(|(id, _)| *id == view).map(|(_, head)| head.epoch);
                named.or_else(|| self.views().max_by_key(|(id, _)| epoch(*id)))
            }
        }
    }

    /// Returns the views that have a version.
    pub(super) fn views(&self) -> impl Iterator<Item = (ViewId, &'a str)> + use<'a> {
        let archive = self.archive;
        self.revisions.views_of(self.id).filter(move |(id, _)| archive.view(*id).is_some())
    }

    pub(super) fn selected(&self, version: &Version, view: Option<&str>, is_head: bool) -> Selected {
        Selected {
            source: self.id,
            source_name: self.record.name.clone(),
            view: view.map(str::to_owned),
            version: version.id,
            commit: version.commit,
            epoch: version.epoch.get(),
            is_head,
        }
    }

    /// Returns the version of a revision in this source; nothing if the source has no view of the given name.
    pub(super) fn at(&self, rev: &str, view: Option<&str>) -> Result<Option<Selected>, RevisionError> {
        if view.is_some() && self.view(view).is_none() {
            return Ok(None);
        }
        if let Some(meaning) = self.name(rev)? {
            return match meaning.view.filter(|_| view.is_none()) {
                Some((_, name)) => self.of_commit(meaning.commit, Some(name)).map(Some),
                None => self.of_commit(meaning.commit, view).map(Some),
            };
        }
        if let Some(commit) = self.hash(rev)? {
            return self.of_commit(commit, view).map(Some);
        }
        if let Some(time) = parse_time(rev) {
            return self.at_time(rev, time, view).map(Some);
        }
        let commit = self.counted(rev)?;
        self.of_commit(commit, view).map(Some)
    }

    /// Returns the snapshot of a commit, with the requested view, or one that points at it.
    fn of_commit(&self, commit: CommitId, view: Option<&str>) -> Result<Selected, RevisionError> {
        let version = self.archive.by_commit(self.id, commit).and_then(|version| self.archive.version(version));
        let version = version.ok_or_else(|| self.without(commit))?;
        let standing = self.views().find(|(id, _)| self.archive.view(*id) == Some(version.id));
        let name = view.or(standing.map(|(_, name)| name)).or_else(|| self.view(None).map(|(_, name)| name));
        Ok(self.selected(version, name, standing.is_some()))
    }

    /// Returns the error of a commit without a snapshot, or with a dropped one.
    pub(super) fn without(&self, commit: CommitId) -> RevisionError {
        let hint = self.hint(commit);
        match self.archive.last_of_commit(self.id, commit) {
            Some(_) => RevisionError::Dropped { commit, hint },
            None => RevisionError::NoSnapshot { commit, hint },
        }
    }

    pub(super) fn unknown(&self, rev: &str) -> RevisionError {
        let name = &self.record.name;
        let place = match self.repository.get_or_init(|| open(self.record)) {
            Some(Err(error)) => format!("{name} (its repository cannot be asked: {error})"),
            None if self.record.kind == SourceKind::Directory => {
                format!("{name}, a directory, which has hashes, times and its view `.`")
            }
            _ => name.clone(),
        };
        RevisionError::Unknown { rev: rev.to_owned(), place }
    }

    fn ambiguous(rev: &str, mut candidates: Vec<String>) -> RevisionError {
        candidates.truncate(MOST_CANDIDATES);
        RevisionError::Ambiguous { rev: rev.to_owned(), candidates: candidates.join(", ") }
    }

    /// Translates the repository's error.
    fn refused(&self, rev: &str, error: GitError) -> RevisionError {
        match error {
            GitError::NoRevision { .. } => self.unknown(rev),
            GitError::AmbiguousRevision { candidates, .. } => Self::ambiguous(rev, candidates),
            GitError::SeveralCommits { rev } => RevisionError::SeveralCommits { rev },
            error => RevisionError::Unknown { rev: rev.to_owned(), place: format!("{} ({error})", self.record.name) },
        }
    }

    /// Returns the meaning of a name: a view, or a ref of the repository. An ambiguous name is refused.
    fn name(&self, rev: &str) -> Result<Option<Meaning<'a>>, RevisionError> {
        // A full hash is a hash, as in git.
        if rev.len() == FULL_HASH && rev.parse::<CommitId>().is_ok() {
            return Ok(None);
        }
        let head = |view: ViewId| Some(self.archive.version(self.archive.view(view)?)?.commit);
        let view = self.views().find(|(_, name)| is_called(name, rev));
        let mut meanings: Vec<Meaning<'a>> = Vec::new();
        let refs = match self.repository() {
            Some(git) => git.refs_called(rev).map_err(|error| self.refused(rev, error))?,
            None => Vec::new(),
        };
        // A view means its stored version, whatever its ref did since.
        let is_one = refs.iter().all(|(_, commit)| *commit == refs[0].1);
        match view.and_then(|view| Some((view, head(view.0)?))).filter(|_| is_one) {
            Some(((id, name), commit)) => {
                let said = refs.first().map_or_else(|| name.to_owned(), |(reference, _)| reference.clone());
                meanings.push(Meaning { said, commit, view: Some((id, name)) });
            }
            None => meanings.extend(refs.into_iter().map(|(said, commit)| Meaning { said, commit, view: None })),
        }
        if meanings.is_empty() {
            // The store's own names of a branch and a tag with the same name.
            let kinds =
                self.views().filter(|(_, name)| matches!(name.split_once('/'), Some((_, short)) if short == rev));
            let kinds = kinds.filter(|_| self.repository().is_none());
            meanings.extend(
                kinds.filter_map(|view| {
                    Some(Meaning { said: view.1.to_owned(), commit: head(view.0)?, view: Some(view) })
                }),
            );
        }
        if !meanings.is_empty() && is_abbreviation(rev) {
            let snapshots = self.archive.find_commits(rev).into_iter().filter(|(source, _)| *source == self.id);
            let commits =
                snapshots.filter_map(|(_, version)| self.archive.version(version)).map(|version| version.commit);
            meanings.extend(commits.map(|commit| Meaning { said: commit.to_string(), commit, view: None }));
        }
        if meanings.iter().any(|meaning| meaning.commit != meanings[0].commit) {
            let say = |meaning: &Meaning<'_>| {
                let commit = meaning.commit.to_string();
                if meaning.said == commit { commit } else { format!("{} ({commit})", meaning.said) }
            };
            return Err(Self::ambiguous(rev, meanings.iter().map(say).collect()));
        }
        Ok(meanings.into_iter().next())
    }

    /// Returns the commit of the one snapshot whose hash begins so, including dropped ones.
    fn hash(&self, rev: &str) -> Result<Option<CommitId>, RevisionError> {
        let is_number = rev.len() < 7 && rev.bytes().all(|byte| byte.is_ascii_digit());
        if rev.len() < 4 || rev.len() > FULL_HASH || is_number {
            return Ok(None);
        }
        let ours = |found: Vec<(SourceId, VersionId)>| -> Vec<CommitId> {
            let found = found.into_iter().filter(|(source, _)| *source == self.id);
            found.filter_map(|(_, version)| self.archive.version(version)).map(|version| version.commit).collect()
        };
        let found = ours(self.archive.find_commits(rev));
        match found[..] {
            // A dropped snapshot's commit may be missing from the repository, or the repository itself.
            [] => match ours(self.archive.find_dropped(rev))[..] {
                [only] => Ok(Some(only)),
                _ => Ok(None),
            },
            [only] => Ok(Some(only)),
            _ => Err(Self::ambiguous(rev, found.iter().map(ToString::to_string).collect())),
        }
    }

    /// Returns the commit of an expression: starting at its view's version, else as the repository reads it.
    fn counted(&self, rev: &str) -> Result<CommitId, RevisionError> {
        let (name, rest) = split_revision(rev);
        let Some(git) = self.repository() else { return self.ancestor(name, rest)?.ok_or_else(|| self.unknown(rev)) };
        let read = |rev: &str| git.resolve(rev);
        // A reflog belongs to the ref and not to the commit, and a revision of several commits is refused as written.
        let whole = |rest: &str| rest.is_empty() || rest.starts_with('@') || name.is_empty() || rev.contains("..");
        let meaning = self.name(name)?.filter(|_| !whole(rest));
        if let Some(commit) = meaning.as_ref().and_then(|meaning| self.along_log(meaning.commit, rest)) {
            return Ok(commit);
        }
        let resolved = match meaning {
            Some(Meaning { commit, view: Some(_), .. }) => read(&format!("{commit}{rest}")),
            _ => read(rev),
        };
        resolved.map_err(|error| match error {
            GitError::BeforeHistory { length, .. } => {
                self.refused(rev, GitError::BeforeHistory { rev: rev.to_owned(), base: name.to_owned(), length })
            }
            GitError::SeveralCommits { .. } => RevisionError::SeveralCommits { rev: rev.to_owned() },
            error => self.refused(rev, error),
        })
    }

    /// Returns the commit of `VIEW~N` along the log, for a missing repository, and for a trace.
    fn ancestor(&self, name: &str, rest: &str) -> Result<Option<CommitId>, RevisionError> {
        if self.record.kind == SourceKind::Directory {
            return Ok(None);
        }
        Ok(self.name(name)?.and_then(|meaning| self.along_log(meaning.commit, rest)))
    }

    /// Returns the commit that `~N` leads to from a commit, if the log knows the line so far: the parents that it holds are those of
    /// the commits, and a look at each is some hundred times cheaper than at the repository's.
    fn along_log(&self, commit: CommitId, rest: &str) -> Option<CommitId> {
        let number = rest.strip_prefix('~')?;
        let generations = if number.is_empty() { 1 } else { number.parse::<usize>().ok()? };
        let from = self.archive.last_of_commit(self.id, commit)?;
        self.archive.first_parents(from).nth(generations).map(|version| version.commit)
    }
}

/// Whether a view of this name matches: by its name, or with the kind of ref before it.
pub(super) fn is_called(name: &str, wanted: &str) -> bool {
    let short = |name: &str| -> String {
        let name = name.strip_prefix("refs/").unwrap_or(name);
        name.strip_prefix("heads/").or_else(|| name.strip_prefix("tags/")).unwrap_or(name).to_owned()
    };
    name == wanted || (wanted.contains('/') && short(wanted) == name)
}

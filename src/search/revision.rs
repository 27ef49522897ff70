//! What a revision means: from a name, a hash or a time to one version a source.
//!
//! In: `--source`, `--view` and `--at`. Out: the versions that are searched, each with its source and view.
//!
//! **Invariant:** a revision is answered with exactly the commit that it names, or with an error that says which commits
//! come near; never with another version instead. Without a revision, the answer is the newest version of the view.
//!
//! The store answers what it can: hashes of snapshots, names of views. What remains (`main~3`, a tag that is no view, a
//! time) is asked of the repository, which may be gone; then the version log's own parents serve.

use super::SearchError;
use crate::index::IndexReader;
use crate::store::{SourceKind, SourceRecord, ViewRecord};
use crate::watch::git::{GitSource, parse_time};
use snapshots::{Archive, CommitId, SourceId, Version, VersionId, ViewId};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Why a revision gives no version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionError {
    /// No source has this name.
    #[error("there is no source `{name}`; the store has {known}")]
    Source {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No source has a view of this name.
    #[error("there is no view `{name}`; the store has {known}")]
    View {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A short hash that several commits begin with.
    #[error("`{rev}` is ambiguous: it may be {candidates}; give more digits")]
    Ambiguous {
        /// What was asked for.
        rev: String,
        /// The commits that begin with it.
        candidates: String,
    },
    /// A commit that has no snapshot.
    #[error("commit {commit} has no snapshot; {hint}")]
    NoSnapshot {
        /// The commit.
        commit: CommitId,
        /// The nearest commits that have one, and how to make this one's.
        hint: String,
    },
    /// A commit whose snapshot was dropped.
    #[error("the snapshot of commit {commit} was dropped by retention; {hint}")]
    Dropped {
        /// The commit.
        commit: CommitId,
        /// The nearest commits that have one, and how to make this one's again.
        hint: String,
    },
    /// A time before the first snapshot.
    #[error("no snapshot is as old as {rev}; the oldest is {oldest}; `--backfill` makes older ones")]
    TooOld {
        /// What was asked for.
        rev: String,
        /// The oldest commit with a snapshot, and its time.
        oldest: String,
    },
    /// Nothing of this name.
    #[error("cannot find the revision `{rev}` in {place}; `tidemill snapshots list` shows what there is")]
    Unknown {
        /// What was asked for.
        rev: String,
        /// Where it was looked for.
        place: String,
    },
}

/// One version of one source.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The source.
    pub source: SourceId,
    /// Its name.
    pub source_name: String,
    /// The view that stands there, or was asked about.
    pub view: Option<String>,
    /// The version.
    pub version: VersionId,
    /// Its commit.
    pub commit: CommitId,
    /// Its epoch.
    pub epoch: u64,
    /// Whether it is the newest version of the view.
    pub is_head: bool,
}

/// The sources and views of a store, by name.
pub struct Revisions {
    sources: Vec<(SourceId, SourceRecord)>,
    views: Vec<(ViewId, ViewRecord)>,
}

impl Revisions {
    /// Reads the names of a store.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn new(reader: &IndexReader) -> Result<Self, SearchError> {
        let mut sources = reader.catalogue().sources()?;
        // A source whose first version is not published yet is not there.
        reader.with_archive(|archive| {
            sources.retain(|(id, _)| archive.kept().any(|version| version.source == *id));
        });
        Ok(Self { sources, views: reader.catalogue().views()? })
    }

    /// Returns every source.
    #[must_use]
    pub fn sources(&self) -> &[(SourceId, SourceRecord)] {
        &self.sources
    }

    /// Returns the views of a source.
    pub fn views_of(&self, source: SourceId) -> impl Iterator<Item = (ViewId, &str)> {
        self.views.iter().filter(move |(_, view)| view.source == source).map(|(id, view)| (*id, view.name.as_str()))
    }

    /// Returns the repository of a source, if it is one and still there.
    #[must_use]
    pub fn repository(&self, source: &SourceRecord) -> Option<GitSource> {
        match source.kind {
            // An imported source that was never tracked here.
            _ if source.location.is_empty() => None,
            SourceKind::Git => GitSource::open(Path::new(OsStr::from_bytes(&source.location))).ok(),
            SourceKind::Directory | SourceKind::Trace => None,
        }
    }

    /// Returns the versions that a request means: at most one a source, at least one in all.
    ///
    /// With a revision, sources that do not have it take no part.
    ///
    /// # Errors
    /// Where nothing answers, which the error explains.
    pub fn select(
        &self,
        reader: &IndexReader,
        source: Option<&str>,
        view: Option<&str>,
        at: Option<&str>,
    ) -> Result<Vec<Selected>, SearchError> {
        let wanted: Vec<&(SourceId, SourceRecord)> =
            self.sources.iter().filter(|(_, record)| source.is_none_or(|name| record.name == name)).collect();
        if let (Some(name), true) = (source, wanted.is_empty()) {
            let known = names(self.sources.iter().map(|(_, record)| record.name.as_str()));
            return Err(RevisionError::Source { name: name.to_owned(), known }.into());
        }
        reader.with_archive(|archive| {
            let mut selected = Vec::new();
            let mut failure = None;
            for (id, record) in wanted {
                let look = Look { revisions: self, archive, id: *id, record };
                match at.map_or_else(|| look.newest(view), |rev| look.at(rev, view)) {
                    Ok(found) => selected.extend(found),
                    Err(error) => {
                        failure.get_or_insert(error);
                    }
                }
            }
            match (selected.is_empty(), failure, view) {
                (false, _, _) => Ok(selected),
                (true, Some(error), _) => Err(error.into()),
                (true, None, Some(name)) => {
                    let known = names(self.views.iter().map(|(_, view)| view.name.as_str()));
                    Err(RevisionError::View { name: name.to_owned(), known }.into())
                }
                (true, None, None) => Err(crate::index::ReaderError::Empty.into()),
            }
        })
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// One source under a revision.
struct Look<'a> {
    revisions: &'a Revisions,
    archive: &'a Archive,
    id: SourceId,
    record: &'a SourceRecord,
}

impl Look<'_> {
    /// Returns the newest version of a view: of the one named, else of the branch that HEAD names, else of the view that
    /// moved last.
    fn newest(&self, view: Option<&str>) -> Result<Option<Selected>, RevisionError> {
        let Some((id, name)) = self.view(view) else { return Ok(None) };
        let version = self.archive.view(id).and_then(|version| self.archive.version(version));
        Ok(version.map(|version| self.selected(version, Some(name), true)))
    }

    fn view(&self, wanted: Option<&str>) -> Option<(ViewId, &str)> {
        let standing = |id: ViewId| self.archive.views().find(|(view, _)| *view == id).map(|(_, head)| head.epoch);
        let views = || self.revisions.views_of(self.id).filter(|(id, _)| standing(*id).is_some());
        if let Some(wanted) = wanted {
            return views().find(|(_, name)| is_called(name, wanted));
        }
        let mut all = views();
        match (all.next(), all.next()) {
            (only, None) => only,
            _ => {
                let head = self.revisions.repository(self.record).and_then(|git| git.head_branch().ok()).flatten();
                let head = head.as_deref().map(|full| full.strip_prefix("refs/heads/").unwrap_or(full));
                let named = head.and_then(|head| views().find(|(_, name)| is_called(name, head)));
                named.or_else(|| views().max_by_key(|(id, _)| standing(*id)))
            }
        }
    }

    fn selected(&self, version: &Version, view: Option<&str>, is_head: bool) -> Selected {
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

    /// Returns the version that a revision names in this source.
    fn at(&self, rev: &str, view: Option<&str>) -> Result<Option<Selected>, RevisionError> {
        let is_short_number = rev.len() < 7 && rev.bytes().all(|byte| byte.is_ascii_digit());
        if !is_short_number && let Some(version) = self.by_hash(rev)? {
            return Ok(Some(self.passed(version, view)));
        }
        if let Some((id, name)) = self.revisions.views_of(self.id).find(|(_, name)| is_called(name, rev))
            && let Some(version) = self.archive.view(id).and_then(|version| self.archive.version(version))
        {
            return Ok(Some(self.selected(version, Some(name), true)));
        }
        if let Some(time) = parse_time(rev) {
            return self.at_time(rev, time, view).map(Some);
        }
        let repository = self.revisions.repository(self.record);
        let commit = match &repository {
            Some(git) => git.resolve(rev).map_err(|error| match error {
                crate::watch::git::GitError::NoRevision { .. } => self.unknown(rev),
                error => {
                    RevisionError::Unknown { rev: rev.to_owned(), place: format!("{} ({error})", self.record.name) }
                }
            })?,
            None => self.ancestor(rev).ok_or_else(|| self.unknown(rev))?,
        };
        match self.archive.by_commit(self.id, commit).and_then(|version| self.archive.version(version)) {
            Some(version) => Ok(Some(self.passed(version, view))),
            None => Err(self.without(repository.as_ref(), commit)),
        }
    }

    /// Says that a commit has no snapshot, or has none any more.
    fn without(&self, repository: Option<&GitSource>, commit: CommitId) -> RevisionError {
        let hint = self.hint(repository, commit);
        match self.archive.last_of_commit(self.id, commit) {
            Some(_) => RevisionError::Dropped { commit, hint },
            None => RevisionError::NoSnapshot { commit, hint },
        }
    }

    fn unknown(&self, rev: &str) -> RevisionError {
        RevisionError::Unknown { rev: rev.to_owned(), place: self.record.name.clone() }
    }

    /// A version of the past: it belongs to the view that was asked for, or to the one that stands there.
    fn passed(&self, version: &Version, view: Option<&str>) -> Selected {
        let standing = self.revisions.views_of(self.id).find(|(id, _)| self.archive.view(*id) == Some(version.id));
        let is_head = standing.is_some();
        let name = view.or(standing.map(|(_, name)| name)).or_else(|| self.view(None).map(|(_, name)| name));
        self.selected(version, name, is_head)
    }

    fn by_hash(&self, rev: &str) -> Result<Option<&Version>, RevisionError> {
        if rev.len() < 4 || rev.len() > 40 {
            return Ok(None);
        }
        let mut found: Vec<&Version> = self
            .archive
            .find_commits(rev)
            .into_iter()
            .filter(|(source, _)| *source == self.id)
            .filter_map(|(_, version)| self.archive.version(version))
            .collect();
        match found.len() {
            // What was dropped may be no commit of the repository, or of none that is still there.
            0 => match self.dropped_by_hash(rev) {
                Some(commit) => Err(self.without(self.revisions.repository(self.record).as_ref(), commit)),
                None => Ok(None),
            },
            1 => Ok(found.pop()),
            _ => {
                let candidates = found.iter().take(8).map(|version| version.commit.to_string()).collect::<Vec<_>>();
                Err(RevisionError::Ambiguous { rev: rev.to_owned(), candidates: candidates.join(", ") })
            }
        }
    }

    /// Returns the one commit of this source that begins so and whose snapshot was dropped.
    fn dropped_by_hash(&self, rev: &str) -> Option<CommitId> {
        let found = self.archive.find_dropped(rev).into_iter().filter(|(source, _)| *source == self.id);
        let found: Vec<VersionId> = found.map(|(_, version)| version).collect();
        if let [only] = found[..] { self.archive.version(only).map(|version| version.commit) } else { None }
    }

    /// Returns the last snapshot on a view's line of first parents whose time is not after `time`.
    fn at_time(&self, rev: &str, time: i64, view: Option<&str>) -> Result<Selected, RevisionError> {
        let (id, name) = self.view(view).ok_or_else(|| self.unknown(rev))?;
        let head = self.archive.view(id).and_then(|version| self.archive.version(version));
        let head = head.ok_or_else(|| self.unknown(rev))?;
        if let Some(git) = self.revisions.repository(self.record)
            && let Ok(Some(commit)) = git.first_parent_at(head.commit, time)
        {
            return match self.archive.by_commit(self.id, commit.id).and_then(|found| self.archive.version(found)) {
                Some(version) => Ok(self.selected(version, Some(name), version.id == head.id)),
                None => Err(self.without(Some(&git), commit.id)),
            };
        }
        let mut oldest = head;
        for version in self.line(head) {
            if version.time <= time {
                return match self.archive.by_commit(self.id, version.commit) {
                    Some(_) => Ok(self.selected(version, Some(name), version.id == head.id)),
                    None => Err(self.without(None, version.commit)),
                };
            }
            oldest = version;
        }
        let oldest = format!("{} of {}", oldest.commit, show_time(oldest.time));
        Err(RevisionError::TooOld { rev: rev.to_owned(), oldest })
    }

    /// Returns a version and its first parents, newest first, as far as they have or had snapshots.
    fn line<'b>(&'b self, head: &'b Version) -> impl Iterator<Item = &'b Version> {
        let parent = |version: &&'b Version| {
            let parent = version.parent?;
            self.archive.version(self.archive.last_of_commit(self.id, parent)?)
        };
        std::iter::successors(Some(head), parent)
    }

    /// Resolves `VIEW~N` along the log, for a repository that is gone.
    fn ancestor(&self, rev: &str) -> Option<CommitId> {
        let (name, generations) = rev.rsplit_once('~')?;
        let generations: usize = if generations.is_empty() { 1 } else { generations.parse().ok()? };
        let (id, _) = self.revisions.views_of(self.id).find(|(_, known)| is_called(known, name))?;
        let head = self.archive.version(self.archive.view(id)?)?;
        self.line(head).nth(generations).map(|version| version.commit)
    }

    /// Says which snapshots are near a commit that has none, and how to get one.
    fn hint(&self, repository: Option<&GitSource>, commit: CommitId) -> String {
        let has = |commit: &CommitId| self.archive.by_commit(self.id, *commit).is_some();
        let Some(git) = repository else { return "`tidemill snapshots list` shows which commits have one".to_owned() };
        let mut near = Vec::new();
        if let Ok(before) = git.first_parents(commit, has, Some(10_000))
            && let Some(parent) = before.first().and_then(|oldest| oldest.first_parent).filter(has)
        {
            near.push(format!("{parent} before it"));
        }
        let mut backfill = None;
        if let Some((id, _)) = self.view(None) {
            let head = self.archive.view(id).and_then(|version| self.archive.version(version));
            if let Some(Ok(after)) = head.map(|head| git.first_parents(head.commit, |id| *id == commit, None))
                && after.first().and_then(|first| first.first_parent) == Some(commit)
            {
                backfill = Some(after.len());
                near.extend(after.iter().find(|after| has(&after.id)).map(|after| format!("{} after it", after.id)));
            }
        }
        let near = if near.is_empty() { String::new() } else { format!("the nearest are {}; ", near.join(" and ")) };
        let number = backfill.map_or_else(|| commit.to_string(), |number| number.to_string());
        format!("{near}`tidemill track PATH --backfill {number}` makes it")
    }
}

/// Whether a view of this name may be called so: by its name, or with the kind of ref in front.
fn is_called(name: &str, wanted: &str) -> bool {
    let short = |name: &str| -> String {
        let name = name.strip_prefix("refs/").unwrap_or(name);
        name.strip_prefix("heads/").or_else(|| name.strip_prefix("tags/")).unwrap_or(name).to_owned()
    };
    name == wanted || (wanted.contains('/') && short(wanted) == name)
}

/// Shows seconds since 1970 as a time.
pub(crate) fn show_time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

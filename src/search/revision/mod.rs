//! Revisions: a name, a hash or a time gives one version per source.
//!
//! In: `--source`, `--view` and `--at`. Out: the versions to search, each with its source and view.
//!
//! **Invariant:** a revision gives exactly its commit, or an error that names the nearest commits; never another version instead.
//! Without a revision, the answer is the newest version of the view. If one source must answer, several are an error that lists
//! them.
//!
//! | file | it answers |
//! |---|---|
//! | `meaning.rs` | names, hashes and expressions, of one source |
//! | `time.rs` | as of a time |
//! | `hint.rs` | the command that makes a missing snapshot |

mod error;
mod hint;
mod meaning;
mod time;

pub use error::RevisionError;
pub(crate) use time::show_time;

use super::SearchError;
use crate::index::IndexReader;
use crate::store::{SourceKind, SourceRecord, ViewRecord};
use crate::watch::git::{GitError, GitSource};
use meaning::Look;
use snapshots::{Archive, CommitId, SourceId, Version, VersionId, ViewId};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One version of one source.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The source.
    pub source: SourceId,
    /// Its name.
    pub source_name: String,
    /// The view that points at it, or was requested.
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
    /// The store's folder, as given.
    store: PathBuf,
}

impl Revisions {
    /// Reads the names of a store.
    ///
    /// # Errors
    /// If the database fails.
    pub fn new(reader: &IndexReader) -> Result<Self, SearchError> {
        let mut sources = reader.catalogue().sources()?;
        // A source without a published version is not visible.
        reader.with_archive(|archive| {
            sources.retain(|(id, _)| archive.kept().any(|version| version.source == *id));
        });
        let store = reader.layout().root().to_owned();
        Ok(Self { sources, views: reader.catalogue().views()?, store })
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

    /// Returns the repository of a source, if it is one and still exists.
    #[must_use]
    pub fn repository(&self, source: &SourceRecord) -> Option<GitSource> {
        open(source).and_then(Result::ok)
    }

    /// Returns the versions of a request: at most one per source, at least one in all.
    ///
    /// With a revision, sources without it are left out.
    ///
    /// # Errors
    /// If no source has it, with an explanation; if the revision is ambiguous in one of the sources.
    pub fn select(
        &self,
        reader: &IndexReader,
        source: Option<&str>,
        view: Option<&str>,
        at: Option<&str>,
    ) -> Result<Vec<Selected>, SearchError> {
        let wanted = self.wanted(source)?;
        reader.with_archive(|archive| {
            let (mut selected, mut failures) = (Vec::new(), Vec::new());
            for (id, record) in wanted {
                let look = Look::new(self, archive, *id, record);
                match at.map_or_else(|| Ok(look.newest(view)), |rev| look.at(rev, view)) {
                    Ok(found) => selected.extend(found),
                    Err(error) if error.may_be_passed_over() => failures.push(error),
                    Err(error) => return Err(error.into()),
                }
            }
            if !selected.is_empty() {
                return Ok(selected);
            }
            match (failure(failures), view) {
                (Some(error), _) => Err(error.into()),
                (None, Some(name)) => {
                    let known = names(self.views.iter().map(|(_, view)| view.name.as_str()));
                    Err(RevisionError::View { name: name.to_owned(), known }.into())
                }
                (None, None) => Err(crate::index::ReaderError::Empty.into()),
            }
        })
    }

    /// Returns the one version of a revision.
    ///
    /// # Errors
    /// As [`Self::select`], and if several sources have the revision, which the error lists.
    pub fn one(
        &self,
        reader: &IndexReader,
        source: Option<&str>,
        view: Option<&str>,
        at: &str,
    ) -> Result<Selected, SearchError> {
        only(self.select(reader, source, view, Some(at))?, at)
    }

    /// Returns the versions of two revisions, of one source; of two sources, if each revision exists in one source only.
    ///
    /// # Errors
    /// As [`Self::one`].
    pub fn pair(
        &self,
        reader: &IndexReader,
        source: Option<&str>,
        view: Option<&str>,
        [a, b]: [&str; 2],
    ) -> Result<[Selected; 2], SearchError> {
        let [mut from, mut to] =
            [self.select(reader, source, view, Some(a))?, self.select(reader, source, view, Some(b))?];
        let of = |selected: &[Selected]| selected.iter().map(|selected| selected.source).collect::<HashSet<_>>();
        let (of_from, of_to) = (of(&from), of(&to));
        if !of_from.is_disjoint(&of_to) {
            from.retain(|selected| of_to.contains(&selected.source));
            to.retain(|selected| of_from.contains(&selected.source));
        }
        Ok([only(from, a)?, only(to, b)?])
    }

    /// Returns the kept snapshots of a source and a view, in the order of their epochs: for a view its earlier and current
    /// targets, and those of the commits on its first-parent line. Without a name, those of every source, and of every view.
    ///
    /// # Errors
    /// If there is no such source or view.
    pub fn snapshots(
        &self,
        reader: &IndexReader,
        source: Option<&str>,
        view: Option<&str>,
    ) -> Result<Vec<VersionId>, SearchError> {
        let wanted: HashSet<SourceId> = self.wanted(source)?.iter().map(|(id, _)| *id).collect();
        let views = self.views.iter().filter(|(_, record)| wanted.contains(&record.source));
        let views =
            view.map(|name| views.filter(|(_, record)| meaning::is_called(&record.name, name)).collect::<Vec<_>>());
        if let (Some(views), Some(name)) = (&views, view)
            && views.is_empty()
        {
            let known = names(self.views.iter().map(|(_, view)| view.name.as_str()));
            return Err(RevisionError::View { name: name.to_owned(), known }.into());
        }
        Ok(reader.with_archive(|archive| {
            let newest = |version: &&Version| archive.by_commit(version.source, version.commit) == Some(version.id);
            let on_line = views.map(|views| {
                let lines = views.iter().map(|(id, record)| self.line_of(archive, *id, record.source));
                lines.fold(HashSet::new(), |mut all, line| {
                    all.extend(line);
                    all
                })
            });
            let is_wanted = |version: &&Version| {
                wanted.contains(&version.source)
                    && on_line.as_ref().is_none_or(|line| line.contains(&(version.source, version.commit)))
            };
            archive.versions().iter().filter(newest).filter(is_wanted).map(|version| version.id).collect()
        }))
    }

    /// Returns the commits that a view has pointed at, and those on its first-parent line.
    fn line_of(&self, archive: &Archive, view: ViewId, source: SourceId) -> HashSet<(SourceId, CommitId)> {
        let commit = |version: VersionId| archive.version(version).map(|version| version.commit);
        let mut commits: HashSet<CommitId> =
            archive.moves(view).iter().filter_map(|moved| commit(moved.version?)).collect();
        if let Some(head) = archive.view(view) {
            commits.extend(archive.first_parents(head).map(|version| version.commit));
            // A commit without a snapshot interrupts the log's line; the repository still has it.
            let record = self.sources.iter().find(|(id, _)| *id == source).map(|(_, record)| record);
            let git = record.and_then(|record| self.repository(record));
            if let (Some(git), Some(head)) = (git, commit(head)) {
                let line = git.first_parents(head, |_| false, None).unwrap_or_default();
                commits.extend(line.into_iter().map(|commit| commit.id));
            }
        }
        commits.into_iter().map(|commit| (source, commit)).collect()
    }

    /// Returns the sources of a request.
    fn wanted(&self, source: Option<&str>) -> Result<Vec<&(SourceId, SourceRecord)>, RevisionError> {
        let wanted: Vec<_> =
            self.sources.iter().filter(|(_, record)| source.is_none_or(|name| record.name == name)).collect();
        match source {
            Some(name) if wanted.is_empty() => {
                let known = names(self.sources.iter().map(|(_, record)| record.name.as_str()));
                Err(RevisionError::Source { name: name.to_owned(), known })
            }
            _ => Ok(wanted),
        }
    }
}

/// Opens the repository of a source, if it is one that was tracked here.
fn open(source: &SourceRecord) -> Option<Result<GitSource, GitError>> {
    match source.kind {
        // An imported source that was never tracked here.
        _ if source.location.is_empty() => None,
        SourceKind::Git => Some(GitSource::open(Path::new(OsStr::from_bytes(&source.location)))),
        SourceKind::Directory | SourceKind::Trace => None,
    }
}

/// Returns the one version among those of several sources.
fn only(selected: Vec<Selected>, rev: &str) -> Result<Selected, SearchError> {
    let sources = names(selected.iter().map(|selected| selected.source_name.as_str()));
    let several = || RevisionError::SeveralSources { rev: rev.to_owned(), sources };
    let [only] = <[Selected; 1]>::try_from(selected).map_err(|_| several())?;
    Ok(only)
}

/// Returns the most informative of several sources' errors; an error that all share names all of them.
fn failure(failures: Vec<RevisionError>) -> Option<RevisionError> {
    let places = failures.iter().filter_map(|error| match error {
        RevisionError::Unknown { place, .. } => Some(place.as_str()),
        _ => None,
    });
    let place = places.collect::<Vec<_>>().join(", ");
    let mut failures = failures.into_iter();
    let first = failures.next()?;
    Some(match std::iter::once(first).chain(failures).min_by_key(RevisionError::is_unknown)? {
        RevisionError::Unknown { rev, .. } => RevisionError::Unknown { rev, place },
        error => error,
    })
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

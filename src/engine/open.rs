//! Opening: from what the configuration says to sources that know what the store knows of them.
//!
//! In: configured sources and an open archive. Out: tracked sources, and what the graph must be told first.
//!
//! **Invariant:** nothing is written before every source was found, and the refs that are wanted in it, so a mistyped
//! path or pattern leaves no empty store behind.

use super::EngineError;
use super::contents::AllContents;
use super::directory::{DIRECTORY_VIEW, DirectoryTracker, Files, WORKTREE_VIEW, Watcher};
use super::git::{GitTracker, GitView, ViewNumbers, from_revision, heads_of};
use super::recover::{Registry, arrivals, files_of, source_record};
use super::tracker::Source;
use super::transient::mendable;
use crate::config::{Backfill, SourceConfig};
use crate::index::apply::{CommitTarget, Purpose};
use crate::index::lexical;
use crate::store::{Database, Layout, SourceKind, SourceRecord};
use crate::watch::directory::{DirectoryOptions, DirectorySource, Pace};
use crate::watch::git::{GitSource, RefPattern};
use dataflows::data::{FileChange, Fingerprint, Hasher, View};
use dataflows::rules::Rules;
use roaring::RoaringBitmap;
use snapshots::{Archive, VersionId, ViewId};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often a source is looked at where no event comes, unless the configuration says otherwise.
const POLL: Duration = Duration::from_secs(2);

/// Returns the name of everything but the model that can change a version.
#[must_use]
pub fn fingerprint(rules: &Rules) -> Fingerprint {
    let parts = Hasher::new("version").part(&rules.fingerprint().to_bytes()).part(&lexical::fingerprint().to_bytes());
    Fingerprint::from_words(parts.finish())
}

/// Returns the rules of a file in front of the built-in ones, or these alone.
///
/// # Errors
/// Where the file cannot be read or is none.
pub fn load_rules(path: Option<&Path>) -> Result<Rules, EngineError> {
    let Some(path) = path else { return Ok(Rules::built_in()) };
    let text = std::fs::read_to_string(path).map_err(|source| EngineError::Read { path: path.to_owned(), source })?;
    Rules::parse(&text).map_err(|source| EngineError::Rules { path: path.to_owned(), source })
}

/// Returns what a configured source is called, found or not.
pub(super) fn source_name(config: &SourceConfig) -> String {
    let path = Path::new(config.path.strip_prefix("dir:").unwrap_or(&config.path));
    let named = config.name.clone();
    named.unwrap_or_else(|| name_of(&path.canonicalize().unwrap_or_else(|_| path.to_owned())))
}

/// Returns the last part of a path, without `.git` at its end.
fn name_of(location: &Path) -> String {
    let last = location.file_name().map_or_else(|| "source".into(), |name| name.to_string_lossy());
    match last.strip_suffix(".git") {
        Some(stem) if !stem.is_empty() => stem.to_owned(),
        _ => last.into_owned(),
    }
}

/// A source that was found where the configuration says.
pub(super) struct Opened {
    pub(super) name: String,
    poll: Duration,
    location: PathBuf,
    kind: OpenedKind,
}

enum OpenedKind {
    Git(OpenedGit),
    Directory(Box<DirectorySource>),
}

struct OpenedGit {
    source: GitSource,
    patterns: Vec<RefPattern>,
    backfill: Option<Backfill>,
    /// Whether snapshots that were dropped are asked for again.
    asks_again: bool,
    fetch: Option<Duration>,
    /// The store's folder, which may lie in the work tree, if that is to be tracked.
    worktree: Option<PathBuf>,
}

impl Opened {
    pub(super) fn open(config: &SourceConfig, layout: &Layout) -> Result<Self, EngineError> {
        let duration = |seconds: Option<f64>| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let (kind, location) = match config.path.strip_prefix("dir:") {
            Some(path) => {
                let options = DirectoryOptions { store: Some(layout.root().to_owned()), ..DirectoryOptions::default() };
                let source = DirectorySource::open(Path::new(path), &options)?;
                let location = source.root().to_owned();
                (OpenedKind::Directory(Box::new(source)), location)
            }
            None => {
                let path = Path::new(&config.path);
                let git = OpenedGit {
                    source: GitSource::open(path)?,
                    patterns: config.refs.iter().map(|glob| RefPattern::parse(glob)).collect::<Result<_, _>>()?,
                    backfill: config.backfill.clone(),
                    asks_again: config.asks_again,
                    fetch: duration(config.fetch_seconds),
                    worktree: config.worktree.then(|| layout.root().to_owned()),
                };
                if git.worktree.is_some() {
                    git.source.work_tree()?;
                }
                (OpenedKind::Git(git), path.canonicalize().unwrap_or_else(|_| path.to_owned()))
            }
        };
        let name = config.name.clone().unwrap_or_else(|| name_of(&location));
        if let OpenedKind::Git(git) = &kind {
            // A store may know views that are gone by now, and a fetch may bring the first commit.
            if git.fetch.is_none() && layout.check().is_err() {
                let heads = heads_of(&git.source, &git.patterns, &name)?;
                if let Some(Backfill::From(revision)) = &git.backfill {
                    heads.iter().try_for_each(|head| from_revision(&git.source, head, revision).map(drop))?;
                }
            }
        }
        Ok(Self { name, poll: duration(config.poll_seconds).unwrap_or(POLL), location, kind })
    }

    /// Returns the source's row in the catalogue.
    pub(super) fn record(&self) -> SourceRecord {
        let kind = match self.kind {
            OpenedKind::Git(_) => SourceKind::Git,
            OpenedKind::Directory(_) => SourceKind::Directory,
        };
        source_record(&self.name, kind, &self.location)
    }

    /// Gives the source its number and tells it what the store knows of it; a work tree is a source of its own here.
    pub(super) fn register(
        self,
        registry: &mut Registry,
        archive: &Archive,
        contents: &AllContents,
        fingerprint: Fingerprint,
    ) -> Result<Vec<Source>, EngineError> {
        let id = registry.source(self.record())?;
        let commit_of = |version: VersionId| archive.version(version).map(|version| version.commit);
        let mut files = |name: String, files: Files, view: &str| {
            let view = registry.view(id, view)?;
            let at = archive.view(view).and_then(commit_of);
            let directory = DirectoryTracker { id, name, files, view, at, watcher: None };
            Ok::<_, EngineError>(Source::Directory(Box::new(directory), self.poll))
        };
        let OpenedGit { source, patterns, backfill, asks_again, fetch, worktree } = match self.kind {
            OpenedKind::Directory(source) => {
                return Ok(vec![files(self.name, Files::Directory(source), DIRECTORY_VIEW)?]);
            }
            OpenedKind::Git(git) => git,
        };
        contents.add(Arc::new(source.contents()));
        let has_worktree = worktree.is_some();
        let worktree = worktree
            .map(|store| files(self.name.clone(), Files::Worktree(source.clone(), store), WORKTREE_VIEW))
            .transpose()?;
        // Whoever asks for past commits gets those again whose objects were missing then and are there now.
        let mendable = match backfill {
            Some(_) => mendable(&registry.catalogue(), contents)?,
            None => RoaringBitmap::new(),
        };
        let mut git = GitTracker::new(id, self.name, source, patterns, backfill, fetch, has_worktree);
        for version in archive.kept().filter(|version| version.source == id) {
            let is_mendable = !mendable.is_empty()
                && archive.by_commit(id, version.commit) == Some(version.id)
                && !archive.bitmaps(version.id)?.documents.is_disjoint(&mendable);
            if version.fingerprint == fingerprint.to_bytes() && !is_mendable {
                git.knows(version.commit);
            }
        }
        for (version, _) in archive.dropped().filter(|_| !asks_again) {
            let known = archive.version(version).filter(|version| version.source == id);
            if let Some(version) = known.filter(|version| archive.by_commit(id, version.commit).is_none()) {
                git.let_go(version.commit);
            }
        }
        for (view, name) in registry.views_of(id) {
            if let Some(at) = archive.view(view).and_then(commit_of) {
                git.knows_view(name.to_owned(), GitView { id: view, at: Some(at), in_graph: false });
            }
        }
        Ok([Source::Git(Box::new(git), self.poll)].into_iter().chain(worktree).collect())
    }
}

pub(super) type Restore = (View, Purpose, Vec<FileChange>);

/// Returns what the graph is told first: the files of every tracked head's version.
pub(super) fn restores(
    sources: &mut [Source],
    registry: &mut Registry,
    archive: &Archive,
    database: &Database,
    contents: &AllContents,
) -> Result<Vec<Restore>, EngineError> {
    let catalogue = database.catalogue();
    let mut restores = Vec::new();
    for source in sources {
        match source {
            Source::Trace(trace) => restores.extend(trace.restores(registry, archive, &catalogue)?),
            Source::Git(git, _) => {
                let heads = match git.heads() {
                    // The views that are left, if any, are let go by the first plan; it also says what is wrong.
                    Err(EngineError::NoRefs { .. } | EngineError::Unborn { .. }) => Vec::new(),
                    heads => heads?,
                };
                for head in heads.into_iter().filter(|head| !head.is_tag) {
                    let Some(view) = git.view(&head.view).copied() else { continue };
                    let Some(version) = archive.view(view.id) else { continue };
                    let files = files_of(archive, &catalogue, version)?;
                    restores.extend(restore(archive, version, view.id, arrivals(files)));
                    git.restored(&head.view);
                }
            }
            Source::Directory(directory, poll) => {
                let known = match archive.view(directory.view) {
                    Some(version) => {
                        let files = files_of(archive, &catalogue, version)?;
                        restores.extend(restore(archive, version, directory.view, arrivals(files.clone())));
                        files
                    }
                    None => Default::default(),
                };
                let pace = Pace { poll: *poll, ..Default::default() };
                let watcher = Watcher::start(&directory.files, known, pace)?;
                contents.add(watcher.contents(&directory.files));
                directory.watcher = Some(watcher);
            }
        }
    }
    Ok(restores)
}

/// Returns what tells the graph what a version holds, or some of it again.
pub(super) fn restore(
    archive: &Archive,
    version: VersionId,
    view: ViewId,
    changes: Vec<FileChange>,
) -> Option<Restore> {
    let known = archive.version(version)?;
    let again = CommitTarget {
        source: known.source,
        commit: known.commit,
        parent: known.parent,
        time: known.time,
        view: Some(view),
    };
    Some((View(view.get()), Purpose::Restore { version, again }, changes))
}

//! Opens the configured sources and adds their stored state.
//!
//! In: configured sources and an open archive. Out: tracked sources, and the versions that the graph must get first.
//!
//! **Invariant:** nothing is written before at least one source and its wanted refs were found, so a mistyped path or pattern
//! leaves no empty store behind. A source that was not found beside other ones is missing: it is searched again, and keeps its
//! views.
//!
//! Each source is opened on a separate thread, with a time limit: a hanging network file system makes its source a missing one.

use super::EngineError;
use super::contents::AllContents;
use super::directory::{DIRECTORY_VIEW, DirectoryTracker, Files, WORKTREE_VIEW};
use super::git::{GitTracker, GitView, ViewNumbers, from_revision, heads_of};
use super::identity::Claim;
use super::place::{source_name, source_place};
use super::recover::{Registry, source_record};
use super::slot::Source;
use super::transient::mendable;
use crate::config::{Backfill, SourceConfig};
use crate::index::apply::{CommitTarget, Purpose};
use crate::store::{Layout, SourceKind, SourceRecord};
use crate::watch::directory::{DirectoryOptions, DirectorySource};
use crate::watch::git::{GitSource, RefPattern};
use dataflows::data::{FileChange, Fingerprint, Hasher, View};
use dataflows::rules::Rules;
use roaring::RoaringBitmap;
use snapshots::{Archive, VersionId, ViewId};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Poll interval of a source without events, unless the configuration sets one.
const POLL: Duration = Duration::from_secs(2);
/// How long a start waits for a source to open.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the fingerprint of everything except the model that can change the content of a version. The analyzer is not part of
/// it: it is the same for all versions of a store, and the lexical index names it.
#[must_use]
pub fn fingerprint(rules: &Rules) -> Fingerprint {
    Fingerprint::from_words(Hasher::new("version").part(&rules.fingerprint().to_bytes()).finish())
}

/// Returns the rules of a file followed by the built-in ones, or these alone.
///
/// # Errors
/// If the file cannot be read or parsed.
pub fn load_rules(path: Option<&Path>) -> Result<Rules, EngineError> {
    let Some(path) = path else { return Ok(Rules::built_in()) };
    let text = std::fs::read_to_string(path).map_err(|source| EngineError::Read { path: path.to_owned(), source })?;
    Rules::parse(&text).map_err(|source| EngineError::Rules { path: path.to_owned(), source })
}

/// A configured source, found or not.
pub(super) struct Opening {
    pub(super) config: SourceConfig,
    pub(super) name: String,
    pub(super) opened: Result<Opened, EngineError>,
    /// The thread that is still searching for it.
    pub(super) late: Option<Receiver<Result<Opened, EngineError>>>,
}

impl Opening {
    /// Returns the source's row in the catalogue, as far as it is known without the source.
    pub(super) fn record(&self) -> SourceRecord {
        match &self.opened {
            Ok(opened) => opened.record(),
            Err(_) => source_record(&self.name, kind_of(&self.config), &self.place()),
        }
    }

    /// Returns the location of the path, as given.
    pub(super) fn place(&self) -> PathBuf {
        source_place(&self.config)
    }

    /// Returns the reason why the source cannot be tracked yet, if there is one.
    pub(super) fn failure(&self) -> Option<&EngineError> {
        match &self.opened {
            Ok(opened) => opened.doubt.as_ref(),
            Err(error) => Some(error),
        }
    }
}

fn kind_of(config: &SourceConfig) -> SourceKind {
    if config.path.starts_with("dir:") { SourceKind::Directory } else { SourceKind::Git }
}

/// Opens every source at once, and waits a while for slow ones.
pub(super) fn open_all(configs: &[SourceConfig], layout: &Layout) -> Vec<Opening> {
    let begun: Vec<_> = configs.iter().map(|config| (config, open_beside(config, layout))).collect();
    let due = Instant::now() + PATIENCE;
    let opening = |(config, receiver): (&SourceConfig, Receiver<Result<Opened, EngineError>>)| {
        let name = source_name(config);
        let (opened, late) = match receiver.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(opened) => (opened, None),
            Err(error) => {
                let late = (error == RecvTimeoutError::Timeout).then_some(receiver);
                (Err(EngineError::Unanswered { path: config.path.clone(), seconds: PATIENCE.as_secs() }), late)
            }
        };
        Opening { config: config.clone(), name, opened, late }
    };
    begun.into_iter().map(opening).collect()
}

/// Opens a source on a separate thread.
pub(super) fn open_beside(config: &SourceConfig, layout: &Layout) -> Receiver<Result<Opened, EngineError>> {
    let (sender, receiver) = channel();
    let (owned, store, told) = (config.clone(), layout.clone(), sender.clone());
    let work = move || {
        // This fails only if the tracker has ended.
        let _ = told.send(Opened::open(&owned, &store));
    };
    if let Err(source) = std::thread::Builder::new().name("tidemill-open".to_owned()).spawn(work) {
        let _ = sender.send(Err(EngineError::Thread { source }));
    }
    receiver
}

/// A source that was found at its configured path.
pub(super) struct Opened {
    pub(super) name: String,
    is_named: bool,
    moved_from: Option<PathBuf>,
    poll: Duration,
    place: PathBuf,
    kind: OpenedKind,
    /// The reason why nothing of it can be tracked yet, needed if the store is new.
    pub(super) doubt: Option<EngineError>,
    accepts: bool,
}

enum OpenedKind {
    Git(OpenedGit),
    Directory(Box<DirectorySource>),
}

struct OpenedGit {
    source: GitSource,
    patterns: Vec<RefPattern>,
    backfill: Option<Backfill>,
    /// Whether dropped snapshots are requested again.
    asks_again: bool,
    fetch: Option<Duration>,
    /// The store's folder, which may be inside the work tree, if that is tracked.
    worktree: Option<PathBuf>,
}

impl Opened {
    pub(super) fn open(config: &SourceConfig, layout: &Layout) -> Result<Self, EngineError> {
        let duration = |seconds: Option<f64>| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let kind = match config.path.strip_prefix("dir:") {
            Some(path) => {
                let options = DirectoryOptions { store: Some(layout.root().to_owned()), ..DirectoryOptions::default() };
                OpenedKind::Directory(Box::new(DirectorySource::open(Path::new(path), &options)?))
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
                OpenedKind::Git(git)
            }
        };
        let (name, place) = (source_name(config), source_place(config));
        let doubt = match &kind {
            // A store may have views that are gone by now, and a fetch may bring the first commit.
            OpenedKind::Git(git) if git.fetch.is_none() && layout.check().is_err() => git.lacks(&name).err(),
            _ => None,
        };
        let poll = duration(config.poll_seconds).unwrap_or(POLL);
        let (is_named, moved_from, accepts) = (config.name.is_some(), config.moved_from.clone(), config.accepts_loss);
        Ok(Self { name, is_named, moved_from, poll, place, kind, doubt, accepts })
    }

    /// Returns the source's row in the catalogue.
    pub(super) fn record(&self) -> SourceRecord {
        let kind = match self.kind {
            OpenedKind::Git(_) => SourceKind::Git,
            OpenedKind::Directory(_) => SourceKind::Directory,
        };
        source_record(&self.name, kind, &self.place)
    }

    /// Assigns the source's number and adds its stored state; a work tree is a separate source here.
    pub(super) fn register(
        self,
        registry: &mut Registry,
        archive: &Archive,
        contents: &AllContents,
        fingerprint: Fingerprint,
    ) -> Result<Vec<Source>, EngineError> {
        let git = match &self.kind {
            OpenedKind::Git(git) => Some((&git.source, git.patterns.as_slice())),
            OpenedKind::Directory(_) => None,
        };
        let (record, moved_from) = (self.record(), self.moved_from.as_deref());
        let id = registry.claim(&Claim { record, is_named: self.is_named, moved_from, git }, archive)?;
        let commit_of = |version: VersionId| archive.version(version).map(|version| version.commit);
        let mut files = |name: String, files: Files, view: &str| {
            let view = registry.view(id, view)?;
            let at = archive.view(view).and_then(commit_of);
            let (accepts, unreadable) = (self.accepts, Default::default());
            let directory = DirectoryTracker { id, name, files, view, at, watcher: None, accepts, unreadable };
            Ok::<_, EngineError>(Source::Directory(Box::new(directory), self.poll))
        };
        let OpenedGit { source, patterns, backfill, asks_again, fetch, worktree } = match self.kind {
            OpenedKind::Directory(source) => {
                return Ok(vec![files(self.name, Files::Directory(source), DIRECTORY_VIEW)?]);
            }
            OpenedKind::Git(git) => git,
        };
        let has_worktree = worktree.is_some();
        let worktree = worktree
            .map(|store| files(self.name.clone(), Files::Worktree(source.clone(), store), WORKTREE_VIEW))
            .transpose()?;
        let asks_for_past = backfill.is_some();
        let mut git = GitTracker::new(id, self.name, source, patterns, backfill, fetch, has_worktree);
        contents.add(Arc::new(git.source.contents()), git.beside.clone());
        // A backfill takes past commits again whose objects were missing then and are there now.
        let mendable = match asks_for_past {
            true => mendable(&registry.catalogue(), contents)?,
            false => RoaringBitmap::new(),
        };
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

impl OpenedGit {
    /// Fails if no wanted ref exists, or the requested past belongs to none of them.
    fn lacks(&self, name: &str) -> Result<(), EngineError> {
        let heads = heads_of(&self.source, &self.patterns, name)?.heads;
        match &self.backfill {
            Some(Backfill::From(revision)) => {
                heads.iter().try_for_each(|head| from_revision(&self.source, head, revision).map(drop))
            }
            _ => Ok(()),
        }
    }
}

pub(super) type Restore = (View, Purpose, Vec<FileChange>);

/// Returns the purpose that feeds a version's content to the graph, or some of it again.
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

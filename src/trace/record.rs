//! Recording: from a range of commits to a trace.
//!
//! In: a repository, its commits in order, and the digests that a store has for them, if it has. Out: a trace with every
//! content that they name.
//!
//! **Invariant:** the first epoch brings all files of the first commit, each later one what its commit changed; a digest is
//! that of the store where one was given for every commit, else the one that follows from the commit's tree alone
//! ([`Bound`]). Where words are replaced, it is that of the replaced words.

use super::bound::Bound;
use super::format::{About, BINARY_HEAD, EpochRecord, MAX_CONTENT_BYTES, Stored, TraceError, TraceStep};
use super::read::read_at;
use super::redact::Redactor;
use super::write::{TraceWriter, Written};
use crate::watch::git::{Commit, GitSource};
use crate::watch::{Content, Contents, FileMode, ReadError};
use dataflows::clean::clean;
use dataflows::data::{ContentId, DocumentPath, FileChange, FileState, SkipReason};
use dataflows::rules::Rules;
use rustc_hash::FxHashMap;
use snapshots::{CommitId, Digest};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is recorded, and how.
pub struct Recording<'a> {
    /// The repository.
    pub source: GitSource,
    /// The commits, oldest first.
    pub commits: Vec<Commit>,
    /// What the view is called.
    pub view: String,
    /// What the trace says of itself; its corpus is filled in.
    pub about: About,
    /// The rules for which the digests hold.
    pub rules: Arc<Rules>,
    /// The digests of a store, for every commit or for none.
    pub digests: Option<FxHashMap<CommitId, Digest>>,
    /// What replaces words, if they are to be replaced.
    pub redactor: Option<Redactor>,
    /// Told after every epoch how many there were.
    pub progress: &'a mut dyn FnMut(u64),
    /// Asked after every epoch; recording stops where it answers yes.
    pub stop: &'a dyn Fn() -> bool,
}

/// Returns the commits from one to another on the line of first parents, oldest first.
///
/// # Errors
/// Where one is no commit, or the line from the last does not pass the first.
pub fn line(source: &GitSource, from: &str, to: &str) -> Result<Vec<Commit>, TraceError> {
    let (first, last) = (source.resolve(from)?, source.resolve(to)?);
    let mut commits = source.first_parents(last, |commit| *commit == first, None)?;
    let reached = if first == last { Some(first) } else { commits.first().and_then(|commit| commit.first_parent) };
    if reached != Some(first) {
        return Err(TraceError::NoLine { from: from.to_owned(), to: to.to_owned() });
    }
    commits.insert(0, source.commit(first)?);
    Ok(commits)
}

/// Records a range into a file; returns nothing if it was stopped, and the file keeps the name of an unfinished one then.
///
/// # Errors
/// Where the repository cannot be read or the file not be written.
pub fn record(path: &Path, recording: Recording<'_>) -> Result<Option<Written>, TraceError> {
    let Recording { source, commits, view, about, rules, digests, mut redactor, progress, stop } = recording;
    let digests = digests.filter(|_| redactor.is_none());
    let view = redactor.as_mut().map_or(view.clone(), |redactor| redactor.name(&view));
    let contents = source.contents();
    let most = rules.ids().map(|id| rules.rule(id).max_bytes()).max().unwrap_or(0).min(MAX_CONTENT_BYTES);
    let mut writer = TraceWriter::create(path, about)?;
    let recorded = Recorded::of(writer.partial())?;
    let mut bound = digests.is_none().then(|| Bound::new(rules.clone(), Arc::new(recorded.clone())));
    let mut renamed: FxHashMap<ContentId, ContentId> = FxHashMap::default();
    let started = commits.first().map_or(0, |commit| commit.time);
    let mut arrived = 0;
    let mut before = None;
    for commit in commits {
        let mut changes = source.diff(before, commit.id)?;
        for change in &mut changes {
            for state in [&mut change.before, &mut change.after].into_iter().flatten() {
                if state.mode != FileMode::Regular {
                    // The target of a link and the commit of a submodule are never looked at.
                    state.content = redactor.as_ref().map_or(state.content, |redactor| redactor.id(state.content));
                    continue;
                }
                if let Some(known) = renamed.get(&state.content) {
                    state.content = *known;
                    continue;
                }
                let read = |id| contents.read(id, most).map_err(|error| error.to_string());
                let stored = stored(read, state.content, &change.path, &rules);
                let (id, stored) = match &mut redactor {
                    Some(redactor) => redactor.content(state.content, stored),
                    None => (state.content, stored),
                };
                renamed.insert(state.content, id);
                state.content = id;
                if let Some(at) = writer.content(id, &stored)? {
                    recorded.put(id, stored, at);
                }
            }
            if let Some(redactor) = &mut redactor {
                change.path = redactor.path(&change.path);
            }
        }
        if redactor.is_some() {
            changes = settled(changes);
        }
        // Committers' clocks differ, and epochs come in order all the same.
        arrived = arrived.max(u64::try_from(commit.time - started).unwrap_or(0) * 1000);
        let id = |id: CommitId| redactor.as_ref().map_or(id, |redactor| redactor.commit(id));
        let mut epoch = EpochRecord {
            arrived,
            step: TraceStep::Commit {
                view: Some(view.clone()),
                passes: false,
                commit: id(commit.id),
                parent: commit.first_parent.map(id),
                time: commit.time,
                digest: digests.as_ref().and_then(|digests| digests.get(&commit.id).copied()),
            },
            changes,
        };
        if let Some(bound) = &mut bound {
            let least = bound.take(&epoch);
            if let TraceStep::Commit { digest, .. } = &mut epoch.step {
                *digest = least.digest;
            }
        }
        writer.epoch(&epoch)?;
        writer.flush()?;
        recorded.clear();
        progress(writer.epochs());
        before = Some(commit.id);
        if stop() {
            return Ok(None);
        }
    }
    writer.finish().map(Some)
}

/// Puts changes in the order of their paths again; two paths never become one, so nothing is joined.
fn settled(mut changes: Vec<FileChange>) -> Vec<FileChange> {
    changes.retain(|change| change.before != change.after);
    changes.sort_unstable();
    changes
}

/// Returns what a source answers for a content, as far as anybody will ask.
pub(super) fn stored(
    read: impl Fn(ContentId) -> Result<Content, String>,
    id: ContentId,
    path: &DocumentPath,
    rules: &Rules,
) -> Stored {
    match read(id) {
        Ok(Content::Bytes(bytes)) => {
            let rule = rules.rule(rules.for_path(path));
            let head = &bytes[..bytes.len().min(BINARY_HEAD)];
            let is_binary = |bytes: &[u8]| clean(rule, bytes) == Err(SkipReason::Binary);
            if bytes.len() > BINARY_HEAD && is_binary(head) && is_binary(&bytes) {
                Stored::Head(bytes.len() as u64, head.to_vec())
            } else {
                Stored::Whole(bytes)
            }
        }
        Ok(Content::TooLarge(size)) => Stored::TooLarge(size),
        Ok(Content::Absent(reason)) => Stored::Absent(reason),
        Err(reason) => Stored::Missing(reason),
    }
}

/// Contents that were written so far: those of the epoch in hand from memory, earlier ones from the file.
#[derive(Clone)]
struct Recorded(Arc<Mutex<Known>>);

struct Known {
    file: File,
    fresh: FxHashMap<ContentId, Stored>,
    places: FxHashMap<ContentId, u64>,
}

impl Recorded {
    fn of(path: &Path) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(TraceError::io("open", path))?;
        Ok(Self(Arc::new(Mutex::new(Known { file, fresh: FxHashMap::default(), places: FxHashMap::default() }))))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, id: ContentId, stored: Stored, at: u64) {
        let mut known = self.known();
        known.fresh.insert(id, stored);
        known.places.insert(id, at);
    }

    /// Forgets the contents that are in the file by now.
    fn clear(&self) {
        self.known().fresh.clear();
    }
}

impl Contents for Recorded {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        let known = self.known();
        if let Some(stored) = known.fresh.get(&content) {
            return stored.clone().answer(content, max_bytes);
        }
        let at = *known.places.get(&content).ok_or(ReadError::Missing(content))?;
        read_at(&known.file, at).map_err(|_| ReadError::Missing(content))?.answer(content, max_bytes)
    }
}

/// Returns the files of a commit as changes that bring them into an empty head.
#[must_use]
pub fn arrivals(files: impl IntoIterator<Item = (DocumentPath, FileState)>) -> Vec<FileChange> {
    files.into_iter().map(|(path, state)| FileChange { path, before: None, after: Some(state) }).collect()
}

//! Records a range of commits as a trace.
//!
//! In: a repository, its commits in order, and the store's digests for them, if it has them. Out: a trace with every content that
//! they name.
//!
//! **Invariant:** the first epoch inserts all files of the first commit, each later one has its commit's changes. Digests are
//! those of the store if it has one for every commit, else those that follow from the commits' trees alone
//! ([`Bound`](super::bound::Bound)). In a redacted trace they are those of the replaced words.

use super::format::{About, BINARY_HEAD, EpochRecord, MAX_CONTENT_BYTES, Stored, TraceError, TraceStep};
use super::recorder::{Digests, Recorder};
use super::redact::Redactor;
use super::write::Written;
use crate::watch::git::{Commit, GitSource};
use crate::watch::{Content, Contents, FileMode};
use dataflows::clean::clean;
use dataflows::data::{ContentId, DocumentPath, FileChange, FileState, SkipReason};
use dataflows::rules::Rules;
use rustc_hash::FxHashMap;
use snapshots::{CommitId, Digest};
use std::path::Path;
use std::sync::Arc;

/// The parameters of a recording.
pub struct Recording<'a> {
    /// The repository.
    pub source: GitSource,
    /// The commits, oldest first.
    pub commits: Vec<Commit>,
    /// The name of the view.
    pub view: String,
    /// The trace's description; its corpus is filled in.
    pub about: About,
    /// The rules for which the digests hold.
    pub rules: Arc<Rules>,
    /// The digests of a store, for every commit or for none.
    pub digests: Option<FxHashMap<CommitId, Digest>>,
    /// The redactor, if words are to be replaced.
    pub redactor: Option<Redactor>,
    /// Called after every epoch with the number so far.
    pub progress: &'a mut dyn FnMut(u64),
    /// Called after every epoch; recording stops if it returns true.
    pub stop: &'a dyn Fn() -> bool,
}

/// Returns the commits from one to another on the line of first parents, oldest first.
///
/// # Errors
/// If one is no commit, or the line from the last does not contain the first.
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

/// Records a range into a file. Returns nothing if it was stopped; the file then keeps the name of an unfinished one.
///
/// # Errors
/// If the repository cannot be read or the file not be written.
pub fn record(path: &Path, recording: Recording<'_>) -> Result<Option<Written>, TraceError> {
    let Recording { source, commits, view, about, rules, digests, redactor, progress, stop } = recording;
    let contents = source.contents();
    let most = rules.ids().map(|id| rules.rule(id).max_bytes()).max().unwrap_or(0).min(MAX_CONTENT_BYTES);
    let whence = if digests.is_some() { Digests::Given } else { Digests::Reckoned(rules.clone()) };
    let mut recorder = Recorder::begin(path, about, redactor, whence)?;
    let started = commits.first().map_or(0, |commit| commit.time);
    let mut arrived = 0;
    let mut before = None;
    for commit in commits {
        let changes = source.diff(before, commit.id)?;
        for change in &changes {
            for state in [change.before, change.after].into_iter().flatten() {
                if state.mode == FileMode::Regular && !recorder.has(state.content) {
                    let read = |id| contents.read(id, most).map_err(|error| error.to_string());
                    recorder.content(state.content, stored(read, state.content, &change.path, &rules))?;
                }
            }
        }
        // Committers' clocks differ, but epochs are in order.
        arrived = arrived.max(u64::try_from(commit.time - started).unwrap_or(0) * 1000);
        let step = TraceStep::Commit {
            view: Some(view.clone()),
            passes: false,
            commit: commit.id,
            parent: commit.first_parent,
            time: commit.time,
            digest: digests.as_ref().and_then(|digests| digests.get(&commit.id).copied()),
        };
        recorder.epoch(EpochRecord { arrived, step, changes }, true)?;
        progress(recorder.epochs());
        before = Some(commit.id);
        if stop() {
            return Ok(None);
        }
    }
    recorder.finish().map(Some)
}

/// Returns a source's answer for a content, up to the largest size that a rule allows.
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

/// Returns the files of a commit as changes that insert them into an empty head.
#[must_use]
pub fn arrivals(files: impl IntoIterator<Item = (DocumentPath, FileState)>) -> Vec<FileChange> {
    files.into_iter().map(|(path, state)| FileChange { path, before: None, after: Some(state) }).collect()
}

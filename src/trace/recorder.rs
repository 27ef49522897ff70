//! The recorder: writes contents and epochs as they are, or redacted.
//!
//! In: contents, each before the first epoch that names it, and epochs, both under the source's names. Out: the same in a trace,
//! possibly under other names, with digests that are true of its content.
//!
//! ```text
//!  contents, epochs ──► (words replaced) ──► (digests by what is written) ──► write
//! ```
//!
//! **Invariant:** things are equal under the trace's names exactly if they are equal under the source's. In a redacted trace no
//! name, path or id of the source is written, and every digest follows from the redacted content.

use super::About;
use super::bound::Bound;
use super::format::{EpochRecord, Stored, TraceError, TraceStep};
use super::read::read_at;
use super::redact::Redactor;
use super::write::{TraceWriter, Written};
use crate::watch::{Content, Contents, FileMode, ReadError};
use dataflows::data::{ContentId, FileChange};
use dataflows::rules::Rules;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A trace that is being recorded.
pub(super) struct Recorder {
    writer: TraceWriter,
    redactor: Option<Redactor>,
    /// The trace's names of contents, if they differ from the source's.
    named: FxHashMap<ContentId, ContentId>,
    /// Computes digests that no store provides.
    reckoned: Option<(Bound, Recorded)>,
}

/// The origin of digests.
pub(super) enum Digests {
    /// They come with the epochs.
    Given,
    /// They are computed from the written content, under these rules.
    Reckoned(Arc<Rules>),
}

impl Recorder {
    /// Begins a trace that will be called `path`. With redaction, digests that come with the epochs are ignored.
    pub(super) fn begin(
        path: &Path,
        about: About,
        redactor: Option<Redactor>,
        digests: Digests,
    ) -> Result<Self, TraceError> {
        let writer = TraceWriter::create(path, about)?;
        let reckoned = match (digests, &redactor) {
            (Digests::Given, None) => None,
            (Digests::Given, Some(_)) => Some(Arc::new(Rules::built_in())),
            (Digests::Reckoned(rules), _) => Some(rules),
        };
        let reckoned = match reckoned {
            Some(rules) => {
                let recorded = Recorded::of(writer.partial())?;
                Some((Bound::new(rules, Arc::new(recorded.clone())), recorded))
            }
            None => None,
        };
        Ok(Self { writer, redactor, named: FxHashMap::default(), reckoned })
    }

    /// Returns whether a content was already passed.
    pub(super) fn has(&self, content: ContentId) -> bool {
        self.named.contains_key(&content) || self.writer.has(content)
    }

    /// Returns the number of epochs so far.
    pub(super) fn epochs(&self) -> u64 {
        self.writer.epochs()
    }

    /// Takes a content.
    pub(super) fn content(&mut self, content: ContentId, stored: Stored) -> Result<(), TraceError> {
        let (name, stored) = match &mut self.redactor {
            Some(redactor) => redactor.content(content, stored),
            None => (content, stored),
        };
        if self.redactor.is_some() {
            self.named.insert(content, name);
        }
        if let (Some(at), Some((_, recorded))) = (self.writer.content(name, &stored)?, &self.reckoned) {
            recorded.put(name, stored, at);
        }
        Ok(())
    }

    /// Takes an epoch whose contents were passed; `is_sure` says whether its digest can be true of the written content. A reader
    /// in another process finds the epoch in the file afterwards.
    pub(super) fn epoch(&mut self, epoch: EpochRecord, is_sure: bool) -> Result<(), TraceError> {
        let mut epoch = self.renamed(epoch);
        let reckoned = self.reckoned.as_mut().map(|(bound, _)| bound.take(&epoch).digest);
        if let TraceStep::Commit { digest, .. } = &mut epoch.step {
            *digest = reckoned.unwrap_or_else(|| digest.filter(|_| is_sure));
        }
        self.writer.epoch(&epoch)?;
        self.writer.flush()?;
        if let Some((_, recorded)) = &self.reckoned {
            recorded.clear();
        }
        Ok(())
    }

    /// Removes what was written.
    pub(super) fn discard(self) -> Result<(), TraceError> {
        let partial = self.writer.partial();
        std::fs::remove_file(partial).map_err(TraceError::io("remove", partial))
    }

    /// Ends the trace and gives the file its name.
    pub(super) fn finish(self) -> Result<Written, TraceError> {
        self.writer.finish()
    }

    /// Returns an epoch under the trace's names.
    fn renamed(&mut self, mut epoch: EpochRecord) -> EpochRecord {
        let Some(redactor) = &mut self.redactor else { return epoch };
        for change in &mut epoch.changes {
            for state in [&mut change.before, &mut change.after].into_iter().flatten() {
                // The target of a link and the commit of a submodule are never read, so they were not passed.
                let named = self.named.get(&state.content).filter(|_| state.mode == FileMode::Regular);
                state.content = named.copied().unwrap_or_else(|| redactor.id(state.content));
            }
            change.path = redactor.path(&change.path);
        }
        epoch.changes = settled(epoch.changes);
        epoch.step = match epoch.step {
            TraceStep::Commit { view, passes, commit, parent, time, digest } => TraceStep::Commit {
                view: view.map(|view| redactor.name(&view)),
                passes,
                commit: redactor.commit(commit),
                parent: parent.map(|parent| redactor.commit(parent)),
                time,
                digest,
            },
            TraceStep::Point { view, commit } => {
                TraceStep::Point { view: redactor.name(&view), commit: redactor.commit(commit) }
            }
            TraceStep::Leave { view } => TraceStep::Leave { view: view.map(|view| redactor.name(&view)) },
        };
        epoch
    }
}

/// Sorts changes by path again; two paths never become one, so nothing is merged.
fn settled(mut changes: Vec<FileChange>) -> Vec<FileChange> {
    changes.retain(|change| change.before != change.after);
    changes.sort_unstable();
    changes
}

/// Contents that were written so far: those of the current epoch from memory, earlier ones from the file.
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

    /// Drops the contents that are in the file now.
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

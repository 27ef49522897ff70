//! Records while a source is tracked: each step, its arrival time, and the digest once it is published.
//!
//! In: from the engine, every step before it is fed, and every published version. Out: a trace, epoch by epoch.
//!
//! ```text
//!  feeding thread ─ announce: contents, then the step without a digest ─► waiting ─► epochs, in order
//!  publishing thread ─ published: the digest ────────────────────────────►┘
//! ```
//!
//! **Invariant:** contents are read before the graph may ask for them, and an epoch is written once its digest is known. After
//! the first content that could not be read, no digest is written: the graph may have read it, or may still. Steps that are not
//! published when the recording ends are not in the trace.

use super::format::{About, EpochRecord, MAX_CONTENT_BYTES, Stored, TraceError, TraceStep};
use super::record::stored;
use super::recorder::{Digests, Recorder};
use super::redact::Redactor;
use super::write::Written;
use crate::watch::Content;
use dataflows::data::{ContentId, FileChange, FileMode};
use dataflows::rules::Rules;
use snapshots::{CommitId, Digest};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A trace that is written while its source is tracked; clones share it.
#[derive(Clone)]
pub struct LiveRecorder(Arc<Mutex<Live>>);

struct Live {
    recorder: Option<Recorder>,
    rules: Arc<Rules>,
    /// The most bytes that any rule takes.
    most: u64,
    waiting: VecDeque<Waiting>,
    began: Option<Instant>,
    /// Whether a content could not be read.
    unsure: bool,
    /// Whether a document was set aside for a later retry.
    aside: bool,
    failure: Option<TraceError>,
}

/// A fed epoch; its digest is known, or it has none.
struct Waiting {
    record: EpochRecord,
    is_ready: bool,
}

impl LiveRecorder {
    /// Begins a trace that will be called `path`, with redaction if a redactor is given.
    ///
    /// # Errors
    /// If there is a file of that name, or none can be made.
    pub fn begin(path: &Path, about: About, rules: Arc<Rules>, redactor: Option<Redactor>) -> Result<Self, TraceError> {
        let most = rules.ids().map(|id| rules.rule(id).max_bytes()).max().unwrap_or(0).min(MAX_CONTENT_BYTES);
        Ok(Self(Arc::new(Mutex::new(Live {
            recorder: Some(Recorder::begin(path, about, redactor, Digests::Given)?),
            rules,
            most,
            waiting: VecDeque::new(),
            began: None,
            unsure: false,
            aside: false,
            failure: None,
        }))))
    }

    /// Takes a step that is about to be fed. A step to a commit without a digest waits until that is published.
    pub(crate) fn announce(
        &self,
        step: TraceStep,
        changes: &[FileChange],
        read: &dyn Fn(ContentId, u64) -> Result<Content, String>,
    ) {
        let mut live = self.live();
        let began = *live.began.get_or_insert_with(Instant::now);
        for change in changes {
            for state in [change.before, change.after].into_iter().flatten() {
                let is_known = live.recorder.as_ref().is_none_or(|recorder| recorder.has(state.content));
                if state.mode != FileMode::Regular || is_known {
                    continue;
                }
                let stored = stored(|content| read(content, live.most), state.content, &change.path, &live.rules);
                live.unsure |= matches!(stored, Stored::Missing(_) | Stored::Absent(_));
                live.write(|recorder| recorder.content(state.content, stored));
            }
        }
        let is_ready = !matches!(step, TraceStep::Commit { digest: None, .. });
        let arrived = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record = EpochRecord { arrived, step, changes: changes.to_vec() };
        live.waiting.push_back(Waiting { record, is_ready });
        live.settle();
    }

    /// Notes that an unreadable document was set aside for a later retry, which a trace cannot express.
    pub(crate) fn doubt(&self) {
        let mut live = self.live();
        (live.unsure, live.aside) = (true, true);
    }

    /// Returns whether a document was set aside.
    pub(crate) fn was_aside(&self) -> bool {
        self.live().aside
    }

    /// Takes the digest of a published version.
    pub fn published(&self, published: CommitId, of: Digest) {
        let mut live = self.live();
        let waiting = live.waiting.iter_mut().find(|waiting| !waiting.is_ready);
        if let Some(Waiting { record, is_ready }) = waiting
            && let TraceStep::Commit { commit, digest, .. } = &mut record.step
            && *commit == published
        {
            (*digest, *is_ready) = (Some(of), true);
        }
        live.settle();
    }

    /// Ends the trace with the published epochs; without any there is no trace.
    ///
    /// # Errors
    /// If something could not be written, now or before.
    pub fn finish(&self) -> Result<Option<Written>, TraceError> {
        let mut live = self.live();
        match (live.failure.take(), live.recorder.take()) {
            (Some(failure), _) => Err(failure),
            // Nothing was ever published, for example because the source does not exist.
            (None, Some(recorder)) if recorder.epochs() == 0 => recorder.discard().map(|()| None),
            (None, Some(recorder)) => recorder.finish().map(Some),
            (None, None) => Ok(None),
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// Writes the epochs that are next in order.
    fn settle(&mut self) {
        while self.waiting.front().is_some_and(|waiting| waiting.is_ready) {
            let Some(Waiting { record, .. }) = self.waiting.pop_front() else { return };
            let is_sure = !self.unsure;
            self.write(|recorder| recorder.epoch(record, is_sure));
        }
    }

    /// Writes, unless an earlier write failed: tracking continues, and the end reports the error.
    fn write(&mut self, write: impl FnOnce(&mut Recorder) -> Result<(), TraceError>) {
        if self.failure.is_none()
            && let Some(recorder) = &mut self.recorder
            && let Err(failure) = write(recorder)
        {
            tracing::error!("{failure}; nothing more is recorded");
            self.failure = Some(failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use dataflows::data::{FileState, Fingerprint};

    fn about() -> About {
        let fingerprint = Fingerprint::default().to_bytes();
        About {
            source: String::new(),
            range: "live".to_owned(),
            fingerprint,
            model: fingerprint,
            rules: String::new(),
            redacted: false,
            corpus: [0; 32],
        }
    }

    /// Records a commit of one file that cannot be read, and returns whether its digest is in the trace.
    fn has_digest(redactor: Option<Redactor>) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tmtrace");
        let recorder = LiveRecorder::begin(&path, about(), Arc::new(Rules::built_in()), redactor).unwrap();
        let commit = CommitId::from_bytes([7; 20]);
        let after = Some(FileState { content: ContentId::from_bytes([1; 20]), mode: FileMode::Regular });
        let changes = [FileChange { path: "src/lost.rs".into(), before: None, after }];
        let view = Some("main".to_owned());
        let step = TraceStep::Commit { view, passes: false, commit, parent: None, time: 0, digest: None };
        recorder.announce(step, &changes, &|_, _| Err("it is not there".to_owned()));
        recorder.published(commit, Digest::default());
        recorder.finish().unwrap().unwrap();
        let epoch = Trace::open(&path).unwrap().epoch(0).unwrap();
        epoch.digest().is_some()
    }

    #[test]
    fn what_could_not_be_read_leaves_no_doubt_where_digests_follow_from_what_is_written() {
        assert!(!has_digest(None), "the graph may have read it");
        assert!(has_digest(Some(Redactor::new([3; 32]))));
    }

    #[test]
    fn where_nothing_was_published_no_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tmtrace");
        let recorder = LiveRecorder::begin(&path, about(), Arc::new(Rules::built_in()), None).unwrap();
        assert!(recorder.finish().unwrap().is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

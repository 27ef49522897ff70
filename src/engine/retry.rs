//! Tries transiently failed documents again, without moving anything else.
//!
//! In: documents in the graph with a transient fault. Out: those that can be read now, removed and inserted again.
//!
//! ```text
//!  missing, damaged ──readable now──► out (Aside) ──settled──► its result is forgotten ──► back (Restore) ──► repaired version
//! ```
//!
//! **Invariant:** a result is forgotten only while no head of the graph holds it, so a retraction takes back exactly what its
//! insertion added. Nothing is published in between: a reader sees the version before, then the one after.
//!
//! A missing content is looked up each time. A content that exists and cannot be read is damaged or unchanged: it is reported
//! once, and tried again at growing intervals, up to a quarter of an hour; at once if its source was rewritten, or a fetch has
//! brought something.

use super::EngineError;
use super::contents::Look;
use super::fetching::wait;
use super::job::Job;
use super::open::restore;
use super::recover::{arrivals, departures};
use super::tracker::Tracker;
use crate::index::apply::Purpose;
use dataflows::data::{ContentId, Document, DocumentPath, FileMode, FileState, View};
use snapshots::{Archive, ViewId};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// The earliest first retry of an unreadable content.
const SOONEST: Duration = Duration::from_secs(5);

/// Contents that exist and could not be read, each with the time of its next try.
#[derive(Default)]
pub(super) struct Attempts(BTreeMap<ContentId, Attempt>);

struct Attempt {
    failures: u32,
    due: Instant,
    stamp: u64,
}

impl Attempts {
    /// Removes all contents except these.
    fn keep(&mut self, contents: &HashSet<ContentId>) {
        self.0.retain(|content, _| contents.contains(content));
    }

    /// Makes every content due at once.
    pub(super) fn hurry(&mut self) {
        self.0.values_mut().for_each(|attempt| attempt.due = Instant::now());
    }

    /// Returns whether a content is to be tried now.
    fn is_due(&self, content: ContentId, stamp: impl FnOnce() -> u64, now: Instant) -> bool {
        self.0.get(&content).is_none_or(|attempt| attempt.due <= now || attempt.stamp != stamp())
    }

    /// Notes that a content could not be read; returns whether that is new.
    fn failed(&mut self, content: ContentId, stamp: u64, now: Instant) -> bool {
        let attempt = self.0.entry(content).or_insert(Attempt { failures: 0, due: now, stamp });
        let is_new = attempt.failures == 0;
        attempt.failures = attempt.failures.saturating_add(1);
        (attempt.due, attempt.stamp) = (now + wait(SOONEST, attempt.failures), stamp);
        is_new
    }
}

impl Tracker {
    /// Tries unreadable documents again, and inserts those that can be read now.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(super) fn retry(&mut self) -> Result<(), EngineError> {
        // Taken aside and brought back, documents must not meet a step of their head that is half fed. One that a source does not
        // answer for is not fed at all.
        let may_be_half_fed = |job: &Job| job.looking.is_none();
        if self.slots.iter().any(|slot| slot.job.as_ref().is_some_and(may_be_half_fed)) {
            return Ok(());
        }
        let known = self.publisher.transient();
        if known.is_empty() {
            return Ok(());
        }
        let contents: HashSet<ContentId> = known.iter().map(|(_, document)| document.content).collect();
        self.attempts.keep(&contents);
        let mut readable = HashSet::new();
        for content in contents {
            if !self.attempts.is_due(content, || self.contents.stamp(content), Instant::now()) {
                continue;
            }
            match self.contents.look(content) {
                Look::Readable => {
                    readable.insert(content);
                }
                Look::Missing => {}
                Look::Damaged(reason) => {
                    if self.attempts.failed(content, self.contents.stamp(content), Instant::now()) {
                        let is_of = |known: &&(View, Document)| known.1.content == content;
                        let path = known.iter().find(is_of).map(|(_, document)| document.path.display());
                        tracing::warn!(
                            "{}: {reason}; the document is a fault until the repository holds it whole: `git fsck` names what is damaged",
                            path.unwrap_or_default()
                        );
                    }
                }
            }
        }
        if readable.is_empty() {
            return Ok(());
        }
        // Work in progress may hold some of them too.
        self.publisher.settle()?;
        let mut heads: BTreeMap<View, BTreeMap<DocumentPath, FileState>> = BTreeMap::new();
        let mut results = Vec::new();
        for (view, document) in self.publisher.transient() {
            if readable.contains(&document.content) {
                results.push(self.rules.document_id(&document));
                let state = FileState { content: document.content, mode: FileMode::Regular };
                heads.entry(view).or_default().insert(document.path, state);
            }
        }
        for (view, files) in &heads {
            self.feed(*view, Purpose::Aside, departures(files.clone()), Instant::now(), Duration::ZERO)?;
        }
        self.publisher.settle()?;
        self.memo.forget_transient(results);
        let archive = Archive::open_reader(&self.layout.versions())?;
        for (view, files) in heads {
            let id = ViewId::new(view.0);
            let version = archive.view(id);
            let again = version.and_then(|version| restore(&archive, version, id, arrivals(files)));
            // A head without a version passed through, and has left by now.
            if let Some((view, purpose, changes)) = again {
                self.feed(view, purpose, changes, Instant::now(), Duration::ZERO)?;
            }
        }
        self.publisher.settle()?;
        // Documents that are still unreadable are not removed and inserted repeatedly.
        for content in self.publisher.transient().into_iter().map(|(_, document)| document.content) {
            if readable.contains(&content) {
                self.attempts.failed(content, self.contents.stamp(content), Instant::now());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_tried_later_each_time_and_at_once_when_it_was_written_anew() {
        let (content, now) = (ContentId::from_bytes([1; 20]), Instant::now());
        let mut attempts = Attempts::default();
        let is_due = |attempts: &Attempts, stamp: u64, seconds: u64| {
            attempts.is_due(content, || stamp, now + Duration::from_secs(seconds))
        };
        assert!(is_due(&attempts, 7, 0), "it was never tried");
        assert!(attempts.failed(content, 7, now), "it is told once");
        assert_eq!([9, 10].map(|seconds| is_due(&attempts, 7, seconds)), [false, true]);
        assert!(!attempts.failed(content, 7, now), "and no more");
        assert_eq!([19, 20].map(|seconds| is_due(&attempts, 7, seconds)), [false, true]);
        (0..20).for_each(|_| assert!(!attempts.failed(content, 7, now)));
        assert_eq!([899, 900].map(|seconds| is_due(&attempts, 7, seconds)), [false, true]);
        assert!(is_due(&attempts, 8, 0), "what holds it was written anew");
        attempts.hurry();
        assert!(is_due(&attempts, 7, 1), "a fetch has brought something");
        attempts.keep(&HashSet::new());
        assert!(attempts.failed(content, 7, now), "it was whole, or not wanted, in between");
    }
}

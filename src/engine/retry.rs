//! Another look at documents whose fate was owed to the moment, without moving anything else.
//!
//! In: documents that stand in the graph with a transient fault. Out: those that can be read now, taken out and brought
//! back.
//!
//! ```text
//!   missing ──can be read now──► out (Aside) ──settled──► its result is forgotten ──► back (Restore) ──► repaired version
//! ```
//!
//! **Invariant:** a result is forgotten only while no head of the graph holds it, so what a retraction takes back is what
//! its insertion brought. In between nothing is published: a reader sees the version before, then the one after.

use super::EngineError;
use super::open::restore;
use super::recover::{arrivals, departures};
use super::tracker::Tracker;
use crate::index::apply::Purpose;
use dataflows::data::{ContentId, DocumentPath, FileMode, FileState, View};
use snapshots::{Archive, ViewId};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

impl Tracker {
    /// Looks again at what could not be read, and brings in what can be read by now.
    ///
    /// # Errors
    /// Where the store cannot be written.
    pub(super) fn retry(&mut self) -> Result<(), EngineError> {
        let known = self.publisher.transient();
        if known.is_empty() {
            return Ok(());
        }
        let contents: HashSet<ContentId> = known.into_iter().map(|(.., content)| content).collect();
        let readable: HashSet<ContentId> = contents.into_iter().filter(|content| self.contents.has(*content)).collect();
        if readable.is_empty() {
            return Ok(());
        }
        // Whatever is under way may hold some of them too.
        self.publisher.settle()?;
        let mut heads: BTreeMap<View, BTreeMap<DocumentPath, FileState>> = BTreeMap::new();
        let mut results = Vec::new();
        for (view, path, content) in self.publisher.transient() {
            if readable.contains(&content) {
                results.push(self.rules.rule(self.rules.for_path(&path)).document_id(content));
                heads.entry(view).or_default().insert(path, FileState { content, mode: FileMode::Regular });
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
        self.publisher.settle()
    }
}

//! The lines of `track`, and the work of epochs.
//!
//! In: published epochs and receipts. Out: one line per epoch, and a summary.

use crate::index::apply::Published;
use crate::search::show_time;
use serde::Serialize;

/// A line of `track`: one published epoch.
#[derive(Debug, Serialize)]
pub struct EpochLine {
    epoch: u64,
    source: String,
    view: Option<String>,
    commit: String,
    parent: Option<String>,
    time: String,
    documents: DocumentCounts,
    work: WorkCounts,
    live_entries: u64,
    digest: String,
    ms: Milliseconds,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repaired: bool,
}

#[derive(Debug, Serialize)]
struct DocumentCounts {
    added: u64,
    changed: u64,
    removed: u64,
}

/// The work of an epoch, or of all of them.
#[derive(Debug, Default, Serialize)]
pub struct WorkCounts {
    /// Contents that were cleaned.
    pub cleaned: u64,
    /// Texts that were cut.
    pub chunked: u64,
    /// Texts that the model embedded.
    pub embedded: u64,
    /// Texts that were given to it once more, since it had failed or their vectors were lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub retried: u64,
    /// Entries that came to life.
    pub inserted: u64,
    /// Retracted entries.
    pub retracted: u64,
    /// Inputs that the memo answered.
    pub cache_hits: u64,
    /// Inputs that ended as a fault.
    pub faults: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl WorkCounts {
    /// Adds a receipt.
    pub fn add(&mut self, receipt: &crate::store::Receipt) {
        self.cleaned += receipt.cleaned;
        self.chunked += receipt.chunked;
        self.embedded += receipt.embedded;
        self.retried += receipt.retried;
        self.inserted += receipt.inserted;
        self.retracted += receipt.retracted;
        self.cache_hits += receipt.cache_hits;
        self.faults += receipt.faults;
    }
}

#[derive(Debug, Serialize)]
struct Milliseconds {
    diff: f32,
    clean: f32,
    chunk: f32,
    embed: f32,
    apply: f32,
    /// From the first look at the epoch's changes to its version.
    total: f32,
    /// The part of that spent on earlier epochs and on others of its batch.
    waited: f32,
}

impl EpochLine {
    /// Returns the line of a published epoch.
    #[must_use]
    pub fn new(published: &Published) -> Self {
        let (version, receipt) = (&published.version, &published.receipt);
        let mut work = WorkCounts::default();
        work.add(receipt);
        let [diff, clean, chunk, embed, apply, total] = receipt.ms;
        Self {
            epoch: published.epoch.get(),
            source: published.source.clone(),
            view: published.view.clone(),
            commit: version.commit.to_string(),
            parent: version.parent.map(|parent| parent.to_string()),
            time: show_time(version.time),
            documents: DocumentCounts { added: receipt.added, changed: receipt.changed, removed: receipt.removed },
            work,
            live_entries: version.statistics.live_entries,
            digest: version.digest.to_string(),
            ms: Milliseconds {
                diff,
                clean,
                chunk,
                embed,
                apply,
                total,
                waited: published.waited.as_secs_f32() * 1000.0,
            },
            repaired: published.repaired,
        }
    }
}

/// The last line of `track --once`.
#[derive(Debug, Serialize)]
pub struct SummaryLine {
    /// The sums.
    pub summary: Summary,
}

/// The work of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// Lines printed.
    pub epochs: u64,
    /// Inserted entries.
    pub inserted: u64,
    /// Retracted entries.
    pub retracted: u64,
    /// Texts that the model embedded.
    pub embedded: u64,
    /// From start to end.
    pub seconds: f64,
}

//! The result of a replay: rates, latencies, stages, work against its bound, memory, trends.
//!
//! In: nothing; `reckon` fills it in. Out: a [`Report`], the one source of terminal output, JSON and page.
//!
//! **Invariant:** a report holds figures and names, and none of the replayed texts.

use super::sample::Sample;
use serde::Serialize;

/// The result of a replay.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The trace.
    pub trace: TraceFacts,
    /// Machine and settings.
    pub setting: Setting,
    /// The comparison of digests.
    pub proof: ProofReport,
    /// The epoch that brought the whole tree, if it was replayed.
    pub first_load: Option<FirstLoad>,
    /// Commits that were replayed after it.
    pub epochs: u64,
    /// Seconds for all of it, the first load included.
    pub seconds: f64,
    /// Seconds to finish merges and close the store.
    pub closing_seconds: f64,
    /// Commits a second, the first load left out.
    pub epochs_per_second: f64,
    /// Milliseconds of processor time a commit, over all threads, without the first load. Beside other work this is steadier than
    /// wall time.
    pub processor_ms_per_epoch: f64,
    /// Contents cleaned a second, the first load left out.
    pub documents_per_second: f64,
    /// Millions of bytes of new contents a second, the first load left out.
    pub megabytes_per_second: f64,
    /// Entries inserted and retracted, without the first load.
    pub entries_moved: [u64; 2],
    /// From fed (or due, where there is a pace) to published, the first load left out.
    pub latency_ms: Option<Histogram>,
    /// Milliseconds of each stage, summed over threads, the first load left out.
    pub stages_ms: StageTimes,
    /// Work against the lower bound.
    pub work: Option<WorkReport>,
    /// Inputs that the memo answered.
    pub cache_hits: u64,
    /// Bytes that the process wrote, as the system counts them.
    pub written_bytes: u64,
    /// Bytes on the disk at the end.
    pub store_bytes: u64,
    /// Peak resident memory over all epochs, and resident memory at the last.
    pub memory_bytes: [u64; 2],
    /// How the cost of a commit depends on its number and its size.
    pub trend: Option<Trend>,
    /// Epochs that were rebuilt from scratch.
    pub rebuilds: Vec<RebuildRow>,
    /// The mean commit against the mean rebuild.
    pub against_rebuild: Option<AgainstRebuild>,
    /// Every epoch; for the page and not for JSON.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// The trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceFacts {
    pub(super) path: String,
    pub(super) source: String,
    pub(super) range: String,
    pub(super) corpus: String,
    pub(super) redacted: bool,
    /// Whole epochs in the trace.
    pub epochs: u64,
    /// Contents in it.
    pub contents: u64,
    /// Bytes of those.
    pub content_bytes: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes after the last whole epoch of a truncated trace.
    pub cut: Option<u64>,
}

/// Machine and settings.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    pub(super) version: &'static str,
    pub(super) processor: String,
    pub(super) cores: u64,
    pub(super) workers: u64,
    pub(super) pool: u64,
    pub(super) batch: u64,
    pub(super) pace: Option<f64>,
    pub(super) index: bool,
    pub(super) embedder: &'static str,
    pub(super) warm: bool,
}

/// Numbers of compared digests by reference, and the differences.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProofReport {
    /// Epochs whose digest was compared with at least one reference.
    pub compared: u64,
    /// Epochs that were compared with the recorded digest.
    pub recorded: u64,
    /// Epochs compared with the digest that follows from the trace alone.
    pub computed: u64,
    /// Epochs of the trace that were not replayed: the store had them, or the replay was stopped.
    pub left_out: u64,
    /// Whether the trace was recorded under other rules than this build's, so that no recorded digest was compared.
    pub other_rules: bool,
    /// How many differ.
    pub differ: u64,
    /// The first of those.
    pub differing: Vec<Differing>,
}

/// An epoch with a wrong digest.
#[derive(Clone, Debug, Serialize)]
pub struct Differing {
    /// Its number in the trace, from 0.
    pub epoch: u64,
    /// Its commit.
    pub commit: String,
    /// `recorded` or `computed`.
    pub against: &'static str,
    /// The expected digest.
    pub expected: String,
    /// The digest of the replay.
    pub found: String,
}

/// The cost of the first epoch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FirstLoad {
    /// Seconds from the start to its publishing.
    pub seconds: f64,
    /// Files.
    pub files: u64,
    /// Millions of bytes of contents a second.
    pub megabytes_per_second: f64,
    /// Entries.
    pub entries: u64,
}

/// A distribution.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it, in milliseconds")]
pub struct Histogram {
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
    pub mean: f64,
}

/// Milliseconds by stage.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the names are those of the stages")]
pub struct StageTimes {
    pub diff: f64,
    pub clean: f64,
    pub chunk: f64,
    pub embed: f64,
    pub apply: f64,
}

impl StageTimes {
    /// Returns the stages by name.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("diff", self.diff),
            ("clean", self.clean),
            ("chunk", self.chunk),
            ("embed", self.embed),
            ("apply", self.apply),
        ]
    }
}

/// A counted number and its lower bound.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    /// What the engine counted.
    pub did: u64,
    /// The lower bound from the trace.
    pub least: u64,
    /// The ratio; 1 if both are 0.
    pub ratio: f64,
}

/// Work against its bound, over all epochs that were replayed, the first load included.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WorkReport {
    /// Contents cleaned.
    pub cleaned: Ratio,
    /// Texts cut.
    pub chunked: Ratio,
    /// Texts embedded.
    pub embedded: Ratio,
    /// Inserted entries; nothing if no version was published.
    pub inserted: Option<Ratio>,
    /// Retracted entries.
    pub retracted: Option<Ratio>,
    /// Epochs in which a number is not exactly its lower bound.
    pub epochs_off: u64,
}

/// How the cost of a commit, in milliseconds summed over threads, depends on its size and its number.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Trend {
    /// The cost of a commit without changes.
    pub base_ms: f64,
    /// The cost of each million bytes of changed contents.
    pub ms_per_megabyte: f64,
    /// How well the line fits: 1 is exact.
    pub correlation: f64,
    /// The cost of the last commits against the first, at equal sizes: each divided by the line's value for it.
    pub last_against_first: f64,
    /// The number of commits at each end.
    pub ends: u64,
}

/// One epoch that was rebuilt from scratch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RebuildRow {
    /// Its number in the trace.
    pub epoch: usize,
    /// Seconds.
    pub seconds: f64,
    /// Texts embedded.
    pub embedded: u64,
    /// Entries.
    pub inserted: u64,
    /// Whether its digest is the replay's.
    pub agrees: bool,
}

/// The mean commit as a share of the mean rebuild.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AgainstRebuild {
    /// Of its time.
    pub time: f64,
    /// Of the texts embedded.
    pub embedded: f64,
    /// Of the entries moved.
    pub moved: f64,
}

impl Report {
    /// Returns whether every compared digest is right.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.proof.differ == 0 && self.rebuilds.iter().all(|row| row.agrees)
    }
}

impl TraceFacts {
    /// Returns one line that names the trace.
    #[must_use]
    pub fn line(&self) -> String {
        let redacted = if self.redacted { ", words replaced" } else { "" };
        format!("{} {}{redacted}; corpus {}", self.source, self.range, self.corpus.get(..16).unwrap_or_default())
    }
}

impl Setting {
    /// Returns whether epochs waited for their due time.
    #[must_use]
    pub const fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Returns one line that names machine and knobs.
    #[must_use]
    pub fn line(&self) -> String {
        let pace = self.pace.map_or_else(|| "flat out".to_owned(), |pace| format!("pace {pace}"));
        let memo = if self.warm { ", memo warm" } else { "" };
        format!(
            "tidemill {}; {}, {} cores; {pace}, {} workers, pool {}, batches of {}, index {}, embedder {}{memo}",
            self.version,
            self.processor,
            self.cores,
            self.workers,
            self.pool,
            self.batch,
            if self.index { "on" } else { "off" },
            self.embedder
        )
    }
}

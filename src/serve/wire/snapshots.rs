//! The lines of `snapshots` and `bisect`.
//!
//! In: versions and what lies between them. Out: one line each.

use super::WirePath;
use serde::Serialize;

/// A line of `snapshots list`.
#[derive(Debug, Serialize)]
pub struct SnapshotLine {
    /// The commit.
    pub commit: String,
    /// The source's name.
    pub source: String,
    /// The views that stand at it.
    pub views: Vec<String>,
    /// When it was published.
    pub epoch: u64,
    /// The committer's time.
    pub time: String,
    /// The first parent.
    pub parent: Option<String>,
    /// Entries alive in it.
    pub live_entries: u64,
    /// Entries that came to life against its base.
    pub inserted: u64,
    /// Entries that died against its base.
    pub retracted: u64,
    /// The digest.
    pub digest: String,
    /// Bytes in the version log.
    pub bytes: u64,
}

/// A line of `snapshots diff`.
#[derive(Clone, Debug, Serialize)]
pub struct DiffLine {
    /// `+` or `-`.
    pub op: &'static str,
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// What kind of thing.
    pub kind: &'static str,
    /// The qualified name.
    pub symbol: Option<String>,
    /// The text.
    pub text: String,
}

/// The answer of `snapshots export` and `snapshots import`.
#[derive(Debug, Serialize)]
pub struct CopyLine {
    /// The commit.
    pub commit: String,
    /// The source's name.
    pub source: String,
    /// Entries of the snapshot.
    pub live_entries: u64,
    /// Its digest.
    pub digest: String,
    /// Bytes that were written, of an export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether the store had the snapshot already, of an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<bool>,
}

/// A line of `bisect` while it searches.
#[derive(Debug, Serialize)]
pub struct BisectStepLine {
    /// From 1.
    pub step: usize,
    /// The snapshot that was searched.
    pub commit: String,
    /// The best rank of the expected document, if it is among the first k.
    pub rank: Option<usize>,
}

/// What `bisect` found.
#[derive(Debug, Serialize)]
pub struct BisectAnswer {
    /// The first snapshot whose answer has the document no more.
    pub first_bad: String,
    /// The one before it.
    pub last_good: String,
    /// The source's name.
    pub source: String,
    /// When the first bad one was published.
    pub epoch: u64,
    /// Its committer's time.
    pub time: String,
    /// Snapshots on the line, both ends included.
    pub snapshots: usize,
    /// How many searches it took.
    pub searches: usize,
}

/// A line of `bisect` about an entry of the expected document that came or went, or an entry that overtook it.
#[derive(Debug, Serialize)]
pub struct BisectChange {
    /// The entry; `=` where it was there before.
    #[serde(flatten)]
    pub change: DiffLine,
    /// Its rank in the first bad snapshot, if it was not in front before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overtook_at: Option<usize>,
}

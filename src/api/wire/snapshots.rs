//! The lines of `snapshots` and `bisect`.
//!
//! In: versions and their differences. Out: one line each.

use super::WirePath;
use serde::Serialize;
use std::collections::BTreeMap;

/// A line of `snapshots list`.
#[derive(Debug, Serialize)]
pub struct SnapshotLine {
    /// The commit.
    pub commit: String,
    /// The source's name.
    pub source: String,
    /// The views that point at it.
    pub views: Vec<String>,
    /// When it was published.
    pub epoch: u64,
    /// The committer's time.
    pub time: String,
    /// The first parent.
    pub parent: Option<String>,
    /// Entries alive in it.
    pub live_entries: u64,
    /// Entries inserted against its base.
    pub inserted: u64,
    /// Entries retracted against its base.
    pub retracted: u64,
    /// The digest.
    pub digest: String,
    /// Bytes in the version log.
    pub bytes: u64,
}

/// A line of `snapshots diff`.
#[derive(Clone, Debug, Serialize)]
pub struct DiffLine {
    /// The source's name.
    pub source: String,
    /// The view that points at its version, or was requested.
    pub view: Option<String>,
    /// `+` or `-`.
    pub op: &'static str,
    /// Its path.
    #[serde(flatten)]
    pub path: WirePath,
    /// The kind of text.
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
    /// Bytes written by an export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether the store had the snapshot before the import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<bool>,
}

/// The answer of `snapshots gc`.
#[derive(Debug, Serialize)]
pub struct CollectionLine {
    /// Whether it only says what would be done.
    pub dry_run: bool,
    /// Whether all of it was done, without an interruption.
    pub complete: bool,
    /// Snapshots dropped, by this run.
    pub dropped: u64,
    /// Snapshots kept.
    pub kept: u64,
    /// Rows of entries removed.
    pub entries: u64,
    /// Rows of documents removed.
    pub documents: u64,
    /// Documents removed from the lexical index.
    pub words: u64,
    /// Rows removed from the vector files.
    pub vectors: u64,
    /// Texts removed from the database.
    pub texts: u64,
    /// Chunk lists removed.
    pub chunk_lists: u64,
    /// Results of cleaning removed.
    pub cleaned: u64,
    /// Heads removed: cards without their location.
    pub heads: u64,
    /// Vectors removed from the database.
    pub stored_vectors: u64,
    /// Entries that only living readers hold back.
    pub held_back: u64,
    /// Processes that read the store.
    pub readers: u64,
    /// Bytes by part.
    pub bytes: BTreeMap<String, StoredBytes>,
    /// Free bytes of the database's file, which are reused before it grows.
    pub free_bytes: u64,
    /// Bytes that were freed, in removed files or for reuse.
    pub given_back_bytes: u64,
    /// From start to end.
    pub seconds: f64,
}

/// The bytes of a part of a store.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StoredBytes {
    /// Before the run.
    pub before: u64,
    /// After the run.
    pub after: u64,
}

/// A line of `bisect` while it searches.
#[derive(Debug, Serialize)]
pub struct BisectStepLine {
    /// From 1.
    pub step: usize,
    /// The source's name.
    pub source: String,
    /// The view that was requested, or points at it.
    pub view: Option<String>,
    /// The snapshot that was searched.
    pub commit: String,
    /// The best rank of the expected document, if it is among the first k.
    pub rank: Option<usize>,
}

/// The result of `bisect`.
#[derive(Debug, Serialize)]
pub struct BisectAnswer {
    /// The first snapshot whose answer lacks the document.
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

/// A line of `bisect` about an inserted or retracted entry of the expected document, or an entry that overtook it.
#[derive(Debug, Serialize)]
pub struct BisectChange {
    /// The entry; `=` if it was there before.
    #[serde(flatten)]
    pub change: DiffLine,
    /// Its rank in the first bad snapshot, if it was not before the document earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overtook_at: Option<usize>,
}

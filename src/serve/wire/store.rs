//! What `dump` and `status` say of a store.
//!
//! In: entries, sources, views and faults. Out: one line an entry, one object a store.

use super::{WirePath, WorkCounts};
use serde::Serialize;
use std::collections::BTreeMap;

/// A line of `dump`.
#[derive(Debug, Serialize)]
pub struct DumpLine {
    /// The source's name.
    pub source: String,
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// What kind of thing.
    pub kind: &'static str,
    /// The qualified name.
    pub symbol: Option<String>,
    /// On which lines.
    pub lines: Option<[u32; 2]>,
    /// Names the text.
    pub text_hash: String,
    /// Names the vector's bits, nothing for an entry without a vector.
    pub vector_hash: Option<String>,
    /// The commit that brought it.
    pub introduced_in: Option<String>,
}

/// The answer of `status`.
#[derive(Debug, Serialize)]
pub struct StatusAnswer {
    /// Every source.
    pub sources: Vec<SourceStatus>,
    /// Entries that are stored, alive or not.
    pub entries: u64,
    /// Bytes on disk by part.
    pub bytes: BTreeMap<&'static str, u64>,
    /// All work since the store was made.
    pub work: WorkCounts,
}

/// One source in `status`.
#[derive(Debug, Serialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// `git` or `directory`.
    pub kind: &'static str,
    /// Its views.
    pub views: Vec<ViewStatus>,
    /// Documents of the newest version.
    pub documents: u64,
    /// Files that are no documents, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// What went wrong with which document.
    pub faults: Vec<FaultStatus>,
}

/// One view in `status`.
#[derive(Debug, Serialize)]
pub struct ViewStatus {
    /// Its name.
    pub name: String,
    /// The commit that it stands at.
    pub commit: String,
    /// When it moved there.
    pub epoch: u64,
    /// First-parent commits of the ref that have no snapshot yet; nothing where the source cannot be asked.
    pub behind: Option<u64>,
    /// Entries alive in it.
    pub live_entries: u64,
}

/// One fault in `status`.
#[derive(Debug, Serialize)]
pub struct FaultStatus {
    /// Where.
    #[serde(flatten)]
    pub path: WirePath,
    /// Which stage failed.
    pub stage: &'static str,
    /// What was tried and why it failed.
    pub error: String,
    /// The commit since which it is so.
    pub since: Option<String>,
}

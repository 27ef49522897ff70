//! The lines of `snapshots verify`.
//!
//! In: inconsistencies. Out: one line per finding, and a summary.

use crate::index::audit::Finding;
use serde::Serialize;

/// A line of `snapshots verify`: an inconsistency.
#[derive(Debug, Serialize)]
pub struct FindingLine {
    /// The part of the store.
    pub part: &'static str,
    /// The problem.
    pub problem: String,
    /// The damaged file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The commit of the version where it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How many entries or documents are affected.
    pub count: u64,
    /// The first of their paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The advice.
    pub next: &'static str,
}

impl FindingLine {
    /// Returns the shape of a finding that begins at a commit.
    #[must_use]
    pub fn new(finding: &Finding, commit: Option<String>) -> Self {
        Self {
            part: finding.part,
            problem: finding.problem.clone(),
            file: finding.file.as_ref().map(|file| file.display().to_string()),
            commit,
            count: finding.count,
            paths: finding.paths.iter().map(|path| path.display().into_owned()).collect(),
            next: finding.next,
        }
    }
}

/// The last line of `snapshots verify`.
#[derive(Debug, Serialize)]
pub struct VerifySummaryLine {
    /// The counts.
    pub summary: VerifySummary,
}

/// The scope of `snapshots verify`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct VerifySummary {
    /// Lines printed.
    pub findings: u64,
    /// Versions whose digest and counts were computed again.
    pub versions: u64,
    /// Entries that some version reaches.
    pub entries: u64,
    /// Rows of documents that some version reaches.
    pub documents: u64,
    /// Vectors of entries that some version reaches.
    pub vectors: u64,
    /// Files whose checksums were computed again.
    pub files: u64,
    /// Entries in an index that no version ever reached.
    pub orphans: u64,
    /// Entries of dropped snapshots that are still stored.
    pub garbage: u64,
    /// Entries that no kept snapshot reaches and that an index lacks; a publish that names one rebuilds it.
    pub incomplete: u64,
    /// Entries that the model refused: they are owed their vectors.
    pub without_vector: u64,
    /// From start to end.
    pub seconds: f64,
}

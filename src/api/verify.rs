//! `snapshots verify`: whether the store is what it says.
//!
//! In: a layout, also beside a running tracker. Out: findings and a summary.
//!
//! A store that cannot be searched can still be checked as a whole, so this needs no [`Service`](super::Service). Of one source
//! or view, findings in snapshots of others are left out; all of the store is looked at.

use super::wire::{FindingLine, VerifySummary};
use super::{ApiError, Place};
use crate::embedders;
use crate::index::audit::{Audit, audit};
use crate::search::Searcher;
use crate::store::Layout;
use snapshots::{Archive, VersionId};
use std::time::Instant;

/// Checks a store.
///
/// Reads all of it; takes seconds for a million entries.
///
/// # Errors
/// Where there is no store, it is of another format, or the source or view is unknown.
pub fn verify(layout: &Layout, place: &Place) -> Result<(Vec<FindingLine>, VerifySummary), ApiError> {
    let started = Instant::now();
    let model = embedders::configured();
    let dimensions = u32::try_from(model.dimensions()).unwrap_or(u32::MAX);
    let asked = match (place.source(), place.view()) {
        (None, None) => None,
        (source, view) => {
            let searcher = Searcher::open(layout)?;
            Some(searcher.revisions().snapshots(searcher.reader(), source, view)?)
        }
    };
    let mut audit = audit(layout, model.fingerprint(), dimensions)?;
    if let Some(asked) = &asked {
        audit.findings.retain(|finding| finding.version.is_none_or(|version| asked.contains(&version)));
    }
    let archive = Archive::open_reader(&layout.versions()).ok();
    let commit = |version: VersionId| Some(archive.as_ref()?.version(version)?.commit.to_string());
    let Audit { versions, entries, documents, vectors, files, orphans, garbage, incomplete, owed, findings } = audit;
    let lines: Vec<_> =
        findings.iter().map(|finding| FindingLine::new(finding, finding.version.and_then(commit))).collect();
    let summary = VerifySummary {
        findings: lines.len() as u64,
        versions,
        entries,
        documents,
        vectors,
        files,
        orphans,
        garbage,
        incomplete,
        without_vector: owed,
        seconds: started.elapsed().as_secs_f64(),
    };
    Ok((lines, summary))
}

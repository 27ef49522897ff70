//! `snapshots verify`: checks whether the store is consistent.
//!
//! In: a store, also beside a running tracker. Out: one line for each finding and a summary; exit status 3 with findings. For one
//! source or view, findings in other snapshots are left out; the whole store is still checked.

use super::output::{json_line, line, short};
use super::{Global, Outcome, Place};
use crate::embedders;
use crate::index::audit::{Audit, audit};
use crate::search::Searcher;
use crate::serve::wire::{FindingLine, VerifySummary, VerifySummaryLine};
use anyhow::Result;
use snapshots::{Archive, VersionId};
use std::time::Instant;

/// Runs `snapshots verify`.
pub(super) fn run(global: &Global, place: &Place) -> Result<Outcome> {
    let started = Instant::now();
    let (layout, model) = (global.layout(), embedders::configured());
    let dimensions = u32::try_from(model.dimensions()).unwrap_or(u32::MAX);
    // A store that cannot be searched can still be checked as a whole.
    let asked = match (place.source(), place.view()) {
        (None, None) => None,
        (source, view) => {
            let searcher = Searcher::open(&layout)?;
            Some(searcher.revisions().snapshots(searcher.reader(), source, view)?)
        }
    };
    let mut audit = audit(&layout, model.fingerprint(), dimensions)?;
    if let Some(asked) = &asked {
        audit.findings.retain(|finding| finding.version.is_none_or(|version| asked.contains(&version)));
    }
    let archive = Archive::open_reader(&layout.versions()).ok();
    let commit = |version: VersionId| Some(archive.as_ref()?.version(version)?.commit.to_string());
    for finding in &audit.findings {
        let finding = FindingLine::new(finding, finding.version.and_then(commit));
        if global.json { json_line(&finding)? } else { show(&finding)? }
    }
    let Audit { versions, entries, documents, vectors, files, orphans, garbage, incomplete, ref findings } = audit;
    let seconds = started.elapsed().as_secs_f64();
    let summary = VerifySummary {
        findings: findings.len() as u64,
        versions,
        entries,
        documents,
        vectors,
        files,
        orphans,
        garbage,
        incomplete,
        seconds,
    };
    if global.json {
        json_line(&VerifySummaryLine { summary })?;
    } else {
        let well = match findings.len() {
            0 => "all is well".to_owned(),
            number => format!("{number} findings"),
        };
        line(format!(
            "{well}: {versions} versions, {entries} entries, {vectors} vectors and {files} files checked in {seconds:.1} s"
        ))?;
        if garbage > 0 {
            line(format!(
                "{garbage} entries of dropped snapshots are still stored; `tidemill snapshots gc` removes them"
            ))?;
        }
        if incomplete > 0 {
            line(format!(
                "{incomplete} entries that no snapshot holds any more are not whole, since files were lost; one that a commit brings back is made whole first, and `tidemill snapshots gc` removes those of dropped snapshots"
            ))?;
        }
    }
    Ok(if findings.is_empty() { Outcome::Done } else { Outcome::NotAllWell })
}

fn show(finding: &FindingLine) -> Result<()> {
    let mut text = format!("{}: {}", finding.part, finding.problem);
    if let Some(file) = &finding.file {
        text += &format!(" ({file})");
    }
    if let Some(commit) = &finding.commit {
        text += &format!(", from {} on", short(commit));
    }
    if finding.count > 1 || !finding.paths.is_empty() {
        text += &format!(" ({} of them", finding.count);
        for path in &finding.paths {
            text += &format!(", {path}");
        }
        text += ")";
    }
    line(format!("{text}; {}", finding.next))
}

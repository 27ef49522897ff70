//! `snapshots verify`: whether the store is what it says.
//!
//! In: a store, also beside a running tracker. Out: one line for each finding and a summary; exit status 3 with findings.
//! Of one source or view, findings in snapshots of others are left out; all of the store is looked at.

use super::output::{json_line, line, short};
use super::{Global, Outcome};
use crate::api::wire::{FindingLine, VerifySummary, VerifySummaryLine};
use crate::api::{Place, verify};
use anyhow::Result;

/// Runs `snapshots verify`.
pub(super) fn run(global: &Global, place: &Place) -> Result<Outcome> {
    let (findings, summary) = verify(&global.layout(), place)?;
    for finding in &findings {
        if global.json { json_line(finding)? } else { show(finding)? }
    }
    if global.json {
        json_line(&VerifySummaryLine { summary })?;
    } else {
        let VerifySummary { versions, entries, vectors, files, garbage, incomplete, seconds, .. } = summary;
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

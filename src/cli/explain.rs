//! `explain`: how a document got, or did not get, into the index.
//!
//! In: a path. Out: how it was read, its rule, its outcome, its chunks with the commits that inserted them; a line or block for
//! each source that may have the path.

use super::output::{json_line, line, short};
use super::search::shorten;
use super::{Global, Outcome, Place};
use crate::engine::load_rules;
use crate::search::{Searcher, explain};
use crate::serve::wire::ExplanationLine;
use anyhow::Result;
use clap::Args;
use std::ffi::OsString;
use std::sync::Arc;

#[derive(Args, Debug)]
pub(super) struct ExplainArgs {
    /// The document: from its source's root, from the current folder, or absolute.
    path: OsString,
    /// As of a commit, tag, branch, BRANCH~N or time.
    #[arg(long, value_name = "REV")]
    at: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Runs `explain`.
pub(super) fn run(global: &Global, args: &ExplainArgs) -> Result<Outcome> {
    let searcher = Searcher::open(&global.layout())?;
    let rules = Arc::new(load_rules(global.config()?.rules.as_deref())?);
    let folder = std::env::current_dir()?;
    let revisions = searcher.revisions();
    let selected = revisions.select(searcher.reader(), args.place.source(), args.place.view(), args.at.as_deref())?;
    let mut explanations = Vec::new();
    for selected in &selected {
        explanations.extend(explain(&searcher, &rules, selected, &args.path, &folder)?);
    }
    if explanations.is_empty() {
        let of = |name: &str| {
            let (_, record) = revisions.sources().iter().find(|(_, record)| record.name == name)?;
            Some(format!("{name} ({})", String::from_utf8_lossy(&record.location)))
        };
        let sources: Vec<String> = selected.iter().filter_map(|selected| of(&selected.source_name)).collect();
        anyhow::bail!(
            "{} lies in no source that was asked: {}; give a path from the root of one",
            args.path.display(),
            sources.join(", ")
        );
    }
    // Several sources are asked, and usually only one has the path.
    if explanations.iter().any(|explanation| explanation.document.is_some()) {
        explanations.retain(|explanation| explanation.document.is_some());
    }
    for explanation in explanations {
        let explanation = ExplanationLine::from(explanation);
        if global.json { json_line(&explanation)? } else { show(&explanation)? }
    }
    Ok(Outcome::Done)
}

fn show(explanation: &ExplanationLine) -> Result<()> {
    let ExplanationLine { source, commit, path, outcome, reason, rule, cleaner, chunker, .. } = explanation;
    let ExplanationLine { without_syntax, module, chunks, .. } = explanation;
    line(format!("{} in {source} as of {}: {outcome}", path.path, short(commit)))?;
    match explanation.taken {
        "folder" => line("  the path was taken from the current folder")?,
        "absolute" => line("  the path was taken as absolute")?,
        _ => {}
    }
    if let Some(reason) = reason {
        line(format!("  because: {reason}"))?;
    }
    for near in &explanation.near {
        line(format!("  near: {}", near.path))?;
    }
    line(format!("  rule {rule}: cleaned as {cleaner}, cut by {chunker}"))?;
    if let Some(why) = without_syntax {
        line(format!("  cut without its syntax: {why}"))?;
    }
    if let (Some(encoding), Some(because)) = (&explanation.encoding, explanation.encoding_because) {
        line(format!("  encoding {encoding}: {because}"))?;
    }
    if let Some(module) = module {
        line(format!("  module {module}"))?;
    }
    for chunk in chunks {
        let what = chunk.symbol.as_deref().or(chunk.name.as_deref()).unwrap_or("");
        let what = if what.is_empty() { String::new() } else { format!("  {what}") };
        let since = chunk.introduced_in.as_deref().map_or_else(|| "unknown".to_owned(), shorten);
        line(format!("  lines {}-{}{what}  vector {}  since {since}", chunk.lines[0], chunk.lines[1], chunk.vector))?;
    }
    Ok(())
}

//! `explain`: how a document got, or did not get, into the index.
//!
//! In: a path. Out: what it was taken for, its rule, what became of it, its chunks with the commits that brought them; a line
//! or block for each source in which the path may stand.

use super::output::{json_line, line, short};
use super::search::shorten;
use super::{Global, Outcome, Place};
use crate::api::ExplainRequest;
use crate::api::wire::ExplanationLine;
use anyhow::Result;
use clap::Args;
use std::ffi::OsString;

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
    let request = ExplainRequest {
        path: args.path.clone(),
        folder: std::env::current_dir()?,
        at: args.at.clone(),
        place: args.place.clone().into(),
    };
    for explanation in global.service()?.explain(&request)? {
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

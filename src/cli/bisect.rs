//! `bisect`: the first snapshot whose first k hits lack the answer, and what changed there.
//!
//! In: a question, the expected path, a snapshot that has it and one that has not. Out: a line per search, the snapshot, and the
//! entries that were inserted, retracted and that overtook it.

use super::output::{count, json_line, line, short, text_line};
use super::search::{hits_from_one, number_from_one};
use super::{Global, Outcome, Place};
use crate::api::wire::{BisectAnswer, BisectChange, BisectStepLine};
use crate::search::{Mode, Request};
use anyhow::Result;
use clap::Args;
use dataflows::data::DocumentPath;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

#[derive(Args, Debug)]
pub(super) struct BisectArgs {
    /// What to look for.
    query: String,
    /// The document that the answer should have.
    #[arg(long, value_name = "PATH")]
    expect: OsString,
    /// A snapshot whose answer has it.
    #[arg(long, value_name = "REV")]
    good: String,
    /// A later snapshot whose answer no longer has it.
    #[arg(long, value_name = "REV")]
    bad: String,
    /// Among how many hits, at most 10,000.
    #[arg(short, default_value_t = 10, value_name = "N", value_parser = hits_from_one())]
    k: usize,
    /// Which index answers.
    #[arg(long, value_enum, default_value_t = Mode::Hybrid)]
    mode: Mode,
    #[command(flatten)]
    place: Place,
    /// At most so many hits of one document.
    #[arg(long = "per-doc", default_value_t = 2, value_name = "M", value_parser = number_from_one())]
    per_document: usize,
}

/// Runs `bisect`.
pub(super) fn run(global: &Global, args: &BisectArgs) -> Result<Outcome> {
    let request = Request {
        mode: args.mode,
        k: args.k,
        source: args.place.source.clone(),
        view: args.place.view.clone(),
        per_document: args.per_document,
        // The result must not depend on which vectors were scored.
        exact: true,
        ..Request::new(&args.query)
    };
    let path = DocumentPath::new(args.expect.clone().into_vec());
    let mut told = Ok(());
    let (found, changes) = global.service()?.bisect(&request, &path, [&args.good, &args.bad], |step| {
        let printed = if global.json { json_line(&step) } else { show_step(&step) };
        told = std::mem::replace(&mut told, Ok(())).and(printed);
    })?;
    told?;
    if global.json {
        json_line(&found)?;
        changes.iter().try_for_each(json_line)?;
    } else {
        show(&path, &found, &changes)?;
    }
    Ok(Outcome::Done)
}

fn show_step(BisectStepLine { step, commit, rank, .. }: &BisectStepLine) -> Result<()> {
    let rank = rank.map_or_else(|| "not among them".to_owned(), |rank| format!("rank {rank}"));
    line(format!("{step:>3}. {}  {rank}", short(commit)))
}

fn show(path: &DocumentPath, found: &BisectAnswer, changes: &[BisectChange]) -> Result<()> {
    let BisectAnswer { first_bad, last_good, source, time, snapshots, searches, .. } = found;
    line("")?;
    line(format!("{first_bad} of {time} is the first without {path} ({source})"))?;
    line(format!(
        "{last_good} is the last with it; {} over {}",
        count(*searches, "search", "searches"),
        count(*snapshots, "snapshot", "snapshots")
    ))?;
    for BisectChange { change, overtook_at } in changes {
        let first = change.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
        let rank = overtook_at.map_or_else(String::new, |rank| format!("  overtook it, now at rank {rank}"));
        let symbol = change.symbol.as_deref().unwrap_or("");
        text_line(format!("{} {}{rank}  ", change.op, change.path.path), &format!("{symbol}  {first}"))?;
    }
    Ok(())
}

//! `bisect`: the first snapshot whose first k hits lack the answer, and what changed there.
//!
//! In: a question, the expected path, a snapshot that has it and one that has not. Out: a line per search, the snapshot, and the
//! entries that were inserted, retracted and that overtook it.

use super::output::{count, json_line, line, short, text_line};
use super::search::{hits_from_one, number_from_one};
use super::snapshots::changes;
use super::{Global, Outcome, Place};
use crate::search::{Bisection, Mode, Request, Searcher, bisect, show_time};
use crate::serve::wire::{BisectAnswer, BisectChange, BisectStepLine, DiffLine, non_empty};
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
    crate::resources::start_pool();
    let searcher = Searcher::open(&global.layout())?;
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
    let mut failure = None;
    let mut number = 0;
    let found = bisect(&searcher, &request, &path, &args.good, &args.bad, &mut |step| {
        number += 1;
        let told = if global.json {
            let (source, view) = (step.at.source_name.clone(), step.at.view.clone());
            json_line(&BisectStepLine {
                step: number,
                source,
                view,
                commit: step.at.commit.to_string(),
                rank: step.rank,
            })
        } else {
            let rank = step.rank.map_or_else(|| "not among them".to_owned(), |rank| format!("rank {rank}"));
            line(format!("{number:>3}. {}  {rank}", short(&step.at.commit)))
        };
        if let Err(error) = told {
            failure.get_or_insert(error);
        }
    })?;
    failure.map_or(Ok(()), Err)?;
    show(global, &searcher, &path, &found)?;
    Ok(Outcome::Done)
}

fn show(global: &Global, searcher: &Searcher, path: &DocumentPath, found: &Bisection) -> Result<()> {
    let (from, to) = (&found.last_good.0, &found.first_bad.0);
    let (delta, time) = searcher.reader().with_archive(|archive| {
        let time = archive.version(to.version).map_or(0, |version| version.time);
        archive.diff(from.version, to.version).map(|delta| (delta, show_time(time)))
    })?;
    if global.json {
        json_line(&BisectAnswer {
            first_bad: to.commit.to_string(),
            last_good: from.commit.to_string(),
            source: to.source_name.clone(),
            epoch: to.epoch,
            time,
            snapshots: found.snapshots,
            searches: found.searches,
        })?;
    } else {
        line("")?;
        line(format!("{} of {time} is the first without {path} ({})", to.commit, to.source_name))?;
        line(format!(
            "{} is the last with it; {} over {}",
            from.commit,
            count(found.searches, "search", "searches"),
            count(found.snapshots, "snapshot", "snapshots")
        ))?;
    }
    let came = changes(searcher, to, &delta.inserted, "+")?;
    let went = changes(searcher, to, &delta.retracted, "-")?;
    let own = path.display();
    let mut lines: Vec<BisectChange> = went
        .into_iter()
        .chain(came.iter().cloned())
        .filter(|change| change.path.path == own)
        .map(|change| BisectChange { change, overtook_at: None })
        .collect();
    for hit in found.overtook(path) {
        let is_new = came.iter().any(|change| change.path.path == hit.path.display() && change.text == hit.text);
        let change = DiffLine {
            source: to.source_name.clone(),
            view: to.view.clone(),
            op: if is_new { "+" } else { "=" },
            path: (&hit.path).into(),
            kind: hit.kind.as_str(),
            symbol: non_empty(&hit.card.symbol),
            text: hit.text.clone(),
        };
        lines.push(BisectChange { change, overtook_at: Some(hit.rank) });
    }
    for moved in &lines {
        if global.json {
            json_line(moved)?;
            continue;
        }
        let BisectChange { change, overtook_at } = moved;
        let first = change.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
        let rank = overtook_at.map_or_else(String::new, |rank| format!("  overtook it, now at rank {rank}"));
        let symbol = change.symbol.as_deref().unwrap_or("");
        text_line(format!("{} {}{rank}  ", change.op, change.path.path), &format!("{symbol}  {first}"))?;
    }
    Ok(())
}

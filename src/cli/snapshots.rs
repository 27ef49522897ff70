//! `snapshots`: the index of every commit, listed, shown and compared.
//!
//! In: revisions. Out: lines, oldest first.

use super::output::{bytes, count, json_line, line, short, text_line};
use super::{Global, Outcome, Place};
use crate::api;
use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct SnapshotsArgs {
    #[command(subcommand)]
    command: Option<SnapshotsCommand>,
    #[command(flatten)]
    place: Place,
}

#[derive(Subcommand, Debug)]
enum SnapshotsCommand {
    /// Every snapshot, oldest first.
    List(Place),
    /// One snapshot, with the work that it took.
    Show {
        /// A commit, tag, branch, BRANCH~N or time.
        rev: String,
        #[command(flatten)]
        place: Place,
    },
    /// The entries that came (+) and went (-) from one snapshot to another.
    Diff {
        /// From here.
        a: String,
        /// To here.
        b: String,
        #[command(flatten)]
        place: Place,
    },
    /// Write a copy of one snapshot into a folder, for another machine.
    Export {
        /// A commit, tag, branch, BRANCH~N or time.
        rev: String,
        /// A folder that is not there yet.
        folder: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Publish a copy that was exported: tracking onwards embeds only what is new.
    Import {
        /// The folder.
        folder: PathBuf,
        /// What the source is called here.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Drop the snapshots that the retention of the settings does not keep, and give back what only they held.
    Gc(super::gc::GcArgs),
    /// Check that log, catalogue, results and both indexes fit together; exit status 3 if they do not.
    ///
    /// Sources share the catalogue and both indexes, so all of the store is checked in any case; with --source or --view, findings
    /// in snapshots of others are left out.
    Verify(Place),
}

/// Runs `snapshots`.
pub(super) fn run(global: &Global, args: &SnapshotsArgs) -> Result<Outcome> {
    let list_all = SnapshotsCommand::List(Place::default());
    let of = |place: &Place| place.or(&args.place).into();
    match args.command.as_ref().unwrap_or(&list_all) {
        SnapshotsCommand::List(place) => list(global, &of(place))?,
        SnapshotsCommand::Show { rev, place } => show(global, rev, &of(place))?,
        SnapshotsCommand::Diff { a, b, place } => diff(global, [a, b], &of(place))?,
        SnapshotsCommand::Export { rev, folder, place } => super::copy::export(global, rev, folder, &of(place))?,
        // A store that cannot be searched can still be checked, and one that is not there can be filled.
        SnapshotsCommand::Verify(place) => return super::verify::run(global, &of(place)),
        SnapshotsCommand::Gc(args) => return super::gc::run(global, args),
        SnapshotsCommand::Import { folder, name } => super::copy::import(global, folder, name.as_deref())?,
    }
    Ok(Outcome::Done)
}

fn list(global: &Global, place: &api::Place) -> Result<()> {
    for snapshot in &global.service()?.snapshots(place)? {
        if global.json {
            json_line(snapshot)?;
            continue;
        }
        line(format!(
            "{:>6}  {}  {}  {} {}  {} (+{} -{})",
            snapshot.epoch,
            short(&snapshot.commit),
            snapshot.time,
            snapshot.source,
            snapshot.views.join(","),
            count(snapshot.live_entries, "entry", "entries"),
            snapshot.inserted,
            snapshot.retracted,
        ))?;
    }
    Ok(())
}

fn show(global: &Global, rev: &str, place: &api::Place) -> Result<()> {
    let (snapshot, receipt) = global.service()?.snapshot(place, rev)?;
    if global.json {
        return json_line(&snapshot);
    }
    line(format!("commit    {}", snapshot.commit))?;
    line(format!("parent    {}", snapshot.parent.as_deref().unwrap_or("none")))?;
    line(format!("time      {}", snapshot.time))?;
    line(format!("source    {} {}", snapshot.source, snapshot.views.join(", ")))?;
    line(format!("epoch     {}", snapshot.epoch))?;
    line(format!(
        "entries   {} alive, {} came, {} went",
        snapshot.live_entries, snapshot.inserted, snapshot.retracted
    ))?;
    line(format!("digest    {}", snapshot.digest))?;
    line(format!("in log    {}", bytes(snapshot.bytes)))?;
    if let Some(receipt) = receipt {
        line(format!(
            "receipt   {} cleaned, {} chunked, {} embedded, {} from the memo, {}; published {:.1} ms after the look that found it",
            receipt.cleaned,
            receipt.chunked,
            receipt.embedded,
            receipt.cache_hits,
            count(receipt.faults, "fault", "faults"),
            receipt.ms[5]
        ))?;
    }
    Ok(())
}

fn diff(global: &Global, revisions: [&str; 2], place: &api::Place) -> Result<()> {
    for change in &global.service()?.diff(place, revisions)? {
        if global.json {
            json_line(change)?;
        } else {
            let first = change.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
            let symbol = change.symbol.as_deref().unwrap_or("");
            text_line(format!("{} {}  ", change.op, change.path.path), &format!("{symbol}  {}", first.trim()))?;
        }
    }
    Ok(())
}

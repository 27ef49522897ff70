//! `snapshots`: the index of every commit, listed, shown and compared.
//!
//! In: revisions. Out: lines, oldest first.

use super::output::{bytes, count, json_line, line, short, text_line};
use super::{Global, Outcome, Place};
use crate::search::{Revisions, Searcher, Selected};
use crate::serve::wire::{DiffLine, SnapshotLine, WirePath, non_empty};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use dataflows::memo::Memo;
use roaring::RoaringBitmap;
use snapshots::{Archive, Ordinal, Version};
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
    /// One snapshot, with the work of its publish.
    Show {
        /// A commit, tag, branch, BRANCH~N or time.
        rev: String,
        #[command(flatten)]
        place: Place,
    },
    /// The entries that were inserted (+) and retracted (-) from one snapshot to another.
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
        /// A folder that does not exist yet.
        folder: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Publish an exported copy; later tracking embeds only what is new.
    Import {
        /// The folder.
        folder: PathBuf,
        /// The source's name in this store.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Drop the snapshots that retention does not keep, and remove the data that only they needed.
    Gc(super::gc::GcArgs),
    /// Check that log, catalogue, results and both indexes are consistent; exit status 3 if they are not.
    ///
    /// Sources share the catalogue and both indexes, so all of the store is checked in any case; with --source or --view, findings
    /// in snapshots of others are left out.
    Verify(Place),
}

/// Runs `snapshots`.
pub(super) fn run(global: &Global, args: &SnapshotsArgs) -> Result<Outcome> {
    let open = || Searcher::open(&global.layout());
    let list_all = SnapshotsCommand::List(Place::default());
    let of = |place: &Place| place.or(&args.place);
    match args.command.as_ref().unwrap_or(&list_all) {
        SnapshotsCommand::List(place) => list(global, &open()?, &of(place))?,
        SnapshotsCommand::Show { rev, place } => show(global, &open()?, rev, &of(place))?,
        SnapshotsCommand::Diff { a, b, place } => diff(global, &open()?, [a, b], &of(place))?,
        SnapshotsCommand::Export { rev, folder, place } => {
            super::copy::export(global, &open()?, rev, folder, &of(place))?
        }
        // A store that cannot be searched can still be checked, and a missing one can be filled.
        SnapshotsCommand::Verify(place) => return super::verify::run(global, &of(place)),
        SnapshotsCommand::Gc(args) => return super::gc::run(global, args),
        SnapshotsCommand::Import { folder, name } => super::copy::import(global, folder, name.as_deref())?,
    }
    Ok(Outcome::Done)
}

fn snapshot_line(archive: &Archive, revisions: &Revisions, version: &Version) -> SnapshotLine {
    let source = revisions.sources().iter().find(|(id, _)| *id == version.source);
    let views = revisions.views_of(version.source).filter(|(id, _)| archive.view(*id) == Some(version.id));
    SnapshotLine {
        commit: version.commit.to_string(),
        source: source.map(|(_, record)| record.name.clone()).unwrap_or_default(),
        views: views.map(|(_, name)| name.to_owned()).collect(),
        epoch: version.epoch.get(),
        time: crate::search::show_time(version.time),
        parent: version.parent.map(|parent| parent.to_string()),
        live_entries: version.statistics.live_entries,
        inserted: version.entries.inserted,
        retracted: version.entries.retracted,
        digest: version.digest.to_string(),
        bytes: version.bytes,
    }
}

fn list(global: &Global, searcher: &Searcher, place: &Place) -> Result<()> {
    let listed = searcher.revisions().snapshots(searcher.reader(), place.source(), place.view())?;
    let lines: Vec<SnapshotLine> = searcher.reader().with_archive(|archive| {
        let versions = listed.iter().filter_map(|version| archive.version(*version));
        versions.map(|version| snapshot_line(archive, searcher.revisions(), version)).collect()
    });
    for snapshot in &lines {
        if global.json {
            json_line(snapshot)?;
        } else {
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
    }
    Ok(())
}

fn show(global: &Global, searcher: &Searcher, rev: &str, place: &Place) -> Result<()> {
    let selected = searcher.revisions().one(searcher.reader(), place.source(), place.view(), rev)?;
    let (snapshot, version) = searcher.reader().with_archive(|archive| {
        let version = archive.version(selected.version).cloned().context("the version is not in the log")?;
        Ok::<_, anyhow::Error>((snapshot_line(archive, searcher.revisions(), &version), version))
    })?;
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
    if let Some(receipt) = searcher.reader().catalogue().receipt(version.epoch)? {
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

fn diff(global: &Global, searcher: &Searcher, revisions: [&str; 2], place: &Place) -> Result<()> {
    let [from, to] = searcher.revisions().pair(searcher.reader(), place.source(), place.view(), revisions)?;
    let delta = searcher.reader().with_archive(|archive| archive.diff(from.version, to.version))?;
    let mut lines = changes(searcher, &from, &delta.retracted, "-")?;
    lines.extend(changes(searcher, &to, &delta.inserted, "+")?);
    lines.sort_by(|left, right| {
        (&left.path.path, &left.symbol, right.op).cmp(&(&right.path.path, &right.symbol, left.op))
    });
    for change in &lines {
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

/// Returns the lines of inserted or retracted entries, as entries of a version.
pub(super) fn changes(
    searcher: &Searcher,
    of: &Selected,
    ordinals: &RoaringBitmap,
    op: &'static str,
) -> Result<Vec<DiffLine>> {
    let reader = searcher.reader();
    let records = reader.catalogue().entries_with_cards(ordinals.iter().map(Ordinal::new))?;
    records
        .into_iter()
        .map(|(record, card)| {
            let entry = record.entry;
            let text = reader.memo().text(entry.text).context("a text is missing from the store")?;
            let symbol = non_empty(&card.symbol);
            let (source, view) = (of.source_name.clone(), of.view.clone());
            Ok(DiffLine { source, view, op, path: WirePath::from(&entry.path), kind: card.kind.as_str(), symbol, text })
        })
        .collect()
}

//! `demo`: the whole main job on this repository's own history, nothing to prepare.
//!
//! In: the repository that the program is run in. Out: its history tracked, a question answered now and as of an older
//! commit, and the receipt of the work. Run again, it continues where it was.

use super::output::{line, short};
use super::track::{Report, track};
use super::{Global, Outcome};
use crate::config::{Backfill, Config, SourceConfig};
use crate::search::{Request, Searcher};
use crate::serve::wire::WorkCounts;
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;

/// How many commits before the head get snapshots.
const COMMITS: usize = 50;

#[derive(Args, Debug)]
pub(super) struct DemoArgs {
    /// Another repository to show it on.
    #[arg(default_value = ".", value_name = "PATH")]
    repository: PathBuf,
    /// Another question to ask.
    #[arg(long, default_value = "which entries are alive in a version", value_name = "QUESTION")]
    query: String,
}

/// Runs `demo`.
pub(super) fn run(global: &Global, args: &DemoArgs) -> Result<Outcome> {
    let repository = args.repository.to_string_lossy().into_owned();
    line(format!("1. track {repository}: its head and {COMMITS} commits before it, a snapshot each"))?;
    let source = SourceConfig {
        path: repository,
        name: Some("demo".to_owned()),
        refs: Vec::new(),
        backfill: Some(Backfill::Commits(COMMITS)),
        poll_seconds: None,
    };
    let config = Config { sources: vec![source], ..global.config()? };
    let report = Report::new(global, true);
    let summary = track(global.layout(), config, report.clone(), true)?;
    report.finish();
    line(format!("   {} epochs published in {:.1} s", summary.epochs, summary.seconds))?;

    let searcher = Searcher::open(&global.layout())?;
    let versions = searcher.reader().with_archive(|archive| archive.versions().to_vec());
    let newest = searcher.revisions().select(searcher.reader(), Some("demo"), None, None)?;
    let newest = newest.first().context("the demo's repository has no version")?;
    line("")?;
    line(format!("2. search \"{}\" as of now, {}", args.query, short(&newest.commit)))?;
    let request = Request { source: Some("demo".to_owned()), k: 3, ..Request::new(&args.query) };
    super::search::show(&searcher.search(&request)?, false)?;

    let older =
        versions.iter().filter(|version| version.source == newest.source && version.statistics.live_entries > 0);
    let older: Vec<_> = older.collect();
    let older = older.get(older.len() / 2).context("the demo's repository has no older version")?;
    line("")?;
    line(format!(
        "3. the same question as of an older commit, {}: --at {}",
        short(&older.commit),
        short(&older.commit)
    ))?;
    let request = Request { at: Some(older.commit.to_string()), ..request };
    super::search::show(&searcher.search(&request)?, false)?;

    line("")?;
    line("4. the receipt of the work")?;
    let mut work = WorkCounts::default();
    searcher.reader().catalogue().receipts()?.iter().for_each(|receipt| work.add(receipt));
    line(format!(
        "   this run: {} epochs, {} texts embedded, {} entries inserted, {} retracted",
        summary.epochs, summary.embedded, summary.inserted, summary.retracted
    ))?;
    line(format!(
        "   in all: {} snapshots; {} contents cleaned, {} texts cut, {} embedded, {} answers from the memo",
        versions.len(),
        work.cleaned,
        work.chunked,
        work.embedded,
        work.cache_hits
    ))?;
    line("   run it again: an unchanged head costs no work")?;
    Ok(Outcome::Done)
}

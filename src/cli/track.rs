//! `track`: keeps the indexes in step with the sources.
//!
//! In: sources. Out: a line per epoch, and with `--once` a summary.

use super::interrupt::{self, Patience};
use super::output::{self, count, json_line, line, short};
use super::{Global, Outcome};
use crate::api::wire::{EpochLine, Summary, SummaryLine};
use crate::config::{Backfill, SourceConfig};
use crate::engine::{EngineError, Extras, OnPublished, Tracker, TrackerOptions};
use crate::index::apply::Published;
use crate::store::Layout;
use crate::telemetry::plain;
use crate::trace::live::LiveRecorder;
use crate::workers::Parsing;
use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most lines about what was left out.
const MAX_LEFT_OUT: usize = 20;

#[derive(Args, Debug, Clone, Default)]
pub(super) struct TrackArgs {
    /// Git repositories, or directories as `dir:PATH`; those of the configuration by default.
    #[arg(value_name = "SOURCE")]
    pub(super) sources: Vec<String>,
    /// Catch up, print a summary and exit.
    #[arg(long)]
    pub(super) once: bool,
    /// Branches and tags that are views; the branch that HEAD names by default.
    #[arg(long = "ref", value_name = "GLOB")]
    pub(super) refs: Vec<String>,
    /// Give past commits snapshots too: a number of them, a revision to begin with, or `all`.
    #[arg(long, value_name = "N|REV|all")]
    pub(super) backfill: Option<String>,
    /// The source's name.
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The source's old path, if it was moved since it was last tracked.
    #[arg(long, value_name = "PATH")]
    pub(super) moved_from: Option<PathBuf>,
    /// How often to look if no file event comes, as in `2s` or `500ms`.
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub(super) poll: Option<Duration>,
    /// How often to fetch from the remote of a repository, as in `1m`; without it nothing is fetched.
    #[arg(long, value_name = "EVERY", value_parser = parse_duration)]
    pub(super) fetch: Option<Duration>,
    /// Accept at once that files are missing which may be gone with their disk; otherwise they are held back for a minute.
    #[arg(long)]
    pub(super) accept_loss: bool,
    /// Also track the uncommitted state of a repository's work tree, as the view `worktree`.
    #[arg(long)]
    pub(super) worktree: bool,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("`{text}` is no duration; write it as in `2s`, `500ms` or `1m`");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| expected())?;
    let unit = match &text[digits..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(expected()),
    };
    Duration::try_from_secs_f64(number * unit).map_err(|_| expected())
}

/// Runs `track`.
pub(super) fn run(global: &Global, args: TrackArgs) -> Result<Outcome> {
    let mut config = global.config()?;
    let TrackArgs { sources, once, refs, backfill, name, moved_from, poll, fetch, accept_loss, worktree } = args;
    anyhow::ensure!(name.is_none() || sources.len() < 2, "--name names one source, and {} are given", sources.len());
    anyhow::ensure!(
        moved_from.is_none() || sources.len() == 1,
        "--moved-from says where one source was, and {} are given; name that one alone",
        sources.len()
    );
    let backfill: Option<Backfill> = backfill.map(|text| text.parse()).transpose()?;
    if !sources.is_empty() {
        let source = |path| SourceConfig {
            path,
            name: name.clone(),
            moved_from: moved_from.clone(),
            refs: refs.clone(),
            backfill: backfill.clone(),
            poll_seconds: poll.map(|poll| poll.as_secs_f64()),
            fetch_seconds: fetch.map(|fetch| fetch.as_secs_f64()),
            worktree,
            asks_again: backfill.is_some(),
            accepts_loss: false,
            retention: None,
        };
        config.is_complete = false;
        config.sources = sources.into_iter().map(source).collect();
    }
    config.sources.iter_mut().for_each(|source| source.accepts_loss = accept_loss);
    let report = Report::new(global, once);
    let summary = track(global.layout(), config, report.clone(), once)?;
    report.finish();
    if once {
        if global.json {
            json_line(&SummaryLine { summary })?;
        } else {
            let Summary { epochs, inserted, retracted, embedded, seconds } = summary;
            line(format!(
                "{} in {seconds:.1} s: {} inserted, {retracted} retracted, {} embedded",
                count(epochs, "epoch", "epochs"),
                count(inserted, "entry", "entries"),
                count(embedded, "text", "texts"),
            ))?;
        }
    }
    Ok(if once && report.is_anything_left_out() { Outcome::NotAllWell } else { Outcome::Done })
}

/// Tracks until all is caught up, or until interrupted; returns the work. Standard error names what was left out.
pub(super) fn track(layout: Layout, config: crate::config::Config, report: Report, once: bool) -> Result<Summary> {
    track_with(layout, config, report, once, None)
}

/// As [`track`], recording what arrives.
pub(super) fn track_with(
    layout: Layout,
    config: crate::config::Config,
    report: Report,
    once: bool,
    recorder: Option<LiveRecorder>,
) -> Result<Summary> {
    let started = Instant::now();
    let (runtime, stop) = interrupt::listening(2, Patience::End)?;
    let mut print = report.on_published();
    let told = recorder.clone();
    let on_published: OnPublished = Box::new(move |published| {
        if let Some(recorder) = &told {
            recorder.published(published.version.commit, published.version.digest);
        }
        print(published);
    });
    let options = TrackerOptions { layout, config, on_published, stop };
    let parsing = Parsing::of_this_program();
    let extras = Extras { recorder, parsing, follows: !once, ..Extras::default() };
    runtime.block_on(async {
        let mut tracker = match tokio::task::block_in_place(|| Tracker::open_with(options, extras)) {
            Ok(tracker) => tracker,
            Err(EngineError::Interrupted) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if once {
            tokio::task::block_in_place(|| {
                tracker.catch_up()?;
                report.leave_out(&tracker.left_out());
                tracker.tidy();
                Ok::<(), EngineError>(())
            })?
        } else {
            tracker.follow().await?
        }
        tokio::task::block_in_place(|| drop(tracker));
        Ok::<(), anyhow::Error>(())
    })?;
    report.failure()?;
    Ok(Summary { seconds: started.elapsed().as_secs_f64(), ..report.summary() })
}

/// Prints published versions, and adds up their work.
#[derive(Clone)]
pub(super) struct Report(Arc<Shared>);

struct Shared {
    json: bool,
    quiet: bool,
    summary: Mutex<Summary>,
    failure: Mutex<Option<anyhow::Error>>,
    is_anything_left_out: AtomicBool,
    progress: Option<ProgressBar>,
}

impl Report {
    /// Shows a line per epoch; on a terminal, if the work has an end, its progress.
    pub(super) fn new(global: &Global, once: bool) -> Self {
        Self::with(global.json, global.quiet, progress(global, once))
    }

    /// Shows no line per epoch except in JSON, for a command that reports published versions in its own way.
    pub(super) fn of_progress(global: &Global) -> Self {
        Self::with(global.json, true, progress(global, true))
    }

    /// Shows no line an epoch at all, for a command whose result is another.
    pub(super) fn quietly(global: &Global) -> Self {
        Self::with(false, true, progress(global, true))
    }

    fn with(json: bool, quiet: bool, progress: Option<ProgressBar>) -> Self {
        let (summary, failure, is_anything_left_out) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Shared { json, quiet, summary, failure, is_anything_left_out, progress }))
    }

    fn on_published(&self) -> OnPublished {
        let report = self.clone();
        Box::new(move |published| {
            if let Err(error) = report.publish(published) {
                report.0.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        })
    }

    fn publish(&self, published: &Published) -> Result<()> {
        {
            let mut summary = self.0.summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.epochs += 1;
            summary.inserted += published.receipt.inserted;
            summary.retracted += published.receipt.retracted;
            summary.embedded += published.receipt.embedded;
        }
        if self.0.json {
            return json_line(&EpochLine::new(published));
        }
        let (version, receipt) = (&published.version, &published.receipt);
        let text = format!(
            "{:>6}  {}  {} {}  documents +{} ~{} -{}  entries +{} -{}  embedded {}  {}",
            published.epoch,
            short(&version.commit),
            published.source,
            published.view.as_deref().unwrap_or("(past)"),
            receipt.added,
            receipt.changed,
            receipt.removed,
            receipt.inserted,
            receipt.retracted,
            receipt.embedded,
            times(published),
        );
        match &self.0.progress {
            Some(bar) => {
                bar.set_message(plain(&text).into_owned());
                Ok(())
            }
            None if self.0.quiet => Ok(()),
            None => line(text),
        }
    }

    /// Prints what was left out, a line each.
    fn leave_out(&self, lines: &[String]) {
        for line in lines.iter().take(MAX_LEFT_OUT) {
            tracing::error!("{}", line);
        }
        if lines.len() > MAX_LEFT_OUT {
            tracing::error!("and {} more are left out; `tidemill status` lists them", lines.len() - MAX_LEFT_OUT);
        }
        self.0.is_anything_left_out.store(!lines.is_empty(), Ordering::Relaxed);
    }

    fn is_anything_left_out(&self) -> bool {
        self.0.is_anything_left_out.load(Ordering::Relaxed)
    }

    fn summary(&self) -> Summary {
        *self.0.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error of printing, if there was one.
    fn failure(&self) -> Result<()> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.0.progress {
            bar.finish_and_clear();
        }
    }
}

/// Returns the time of an epoch's own work, and how long it waited for other epochs.
fn times(published: &Published) -> String {
    let waited = published.waited.as_secs_f32() * 1000.0;
    let own = (published.receipt.ms[5] - waited).max(0.0);
    if waited < 1.0 { format!("{own:.0} ms") } else { format!("{own:.0} ms, waited {waited:.0} ms") }
}

/// Returns the progress display of a terminal for work with an end.
fn progress(global: &Global, once: bool) -> Option<ProgressBar> {
    // It is drawn by a separate thread, and would panic if there is none.
    let wanted =
        once && !global.quiet && !global.json && output::is_terminal() && crate::resources::can_start(1).is_ok();
    wanted.then(|| {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::default_spinner());
        bar.enable_steady_tick(Duration::from_millis(120));
        bar.set_message("reading");
        bar
    })
}

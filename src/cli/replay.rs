//! `replay` and `bench`: a recorded or generated trace goes through the engine, every digest is compared, and the run is
//! measured.
//!
//! In: a trace and settings, or a scenario. Out: a report on the terminal, as JSON, as a page.
//!
//! A wrong digest gives exit status 3, and standard error names the first epochs that differ.

use super::output::{self, json_line, line};
use super::{Global, Outcome, interrupt};
use crate::engine::Stop;
use crate::replay::{Knobs, Model, Report, Sample, page, plot_files, replay};
use crate::trace::Trace;
use crate::trace::generate::{Scenario, Settings, generate};
use crate::workers::Parsing;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Args, Debug)]
pub(super) struct ReplayArgs {
    /// The trace.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    knobs: KnobArgs,
}

#[derive(Args, Debug)]
pub(super) struct BenchArgs {
    /// The scenario: steady, growth, hot-file, mass-rename, branch-storm, format-sweep, burst or revert.
    #[arg(value_name = "SCENARIO")]
    scenario: Scenario,
    /// Files of the generated tree.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    files: u64,
    /// Epochs, including the first load.
    #[arg(long, value_name = "N", default_value_t = 101)]
    epochs: usize,
    /// The seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep the generated trace in this file.
    #[arg(long, value_name = "TRACE")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    knobs: KnobArgs,
}

#[derive(Args, Debug)]
struct KnobArgs {
    /// Threads of the dataflow.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Threads on which contents are cleaned, cut and embedded; the number of processors by default.
    #[arg(long, value_name = "N")]
    pool: Option<usize>,
    /// Most epochs that share one publish.
    #[arg(long, value_name = "N", default_value_t = 64)]
    batch: usize,
    /// Most files of one slice of a large step.
    #[arg(long, value_name = "N")]
    slice: Option<usize>,
    /// How many times faster than recorded epochs are fed; without it as fast as the engine accepts them.
    #[arg(long, value_name = "X")]
    pace: Option<f64>,
    /// Feed epochs as fast as the engine accepts them, which is the default.
    #[arg(long, conflicts_with = "pace")]
    flat_out: bool,
    /// Also build some epochs again from scratch.
    #[arg(long, value_name = "WHAT")]
    against: Option<Against>,
    /// How many epochs are built again.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "against")]
    rebuilds: usize,
    /// Write both indexes and publish; `off` runs the graph alone.
    #[arg(long, value_name = "WHETHER", default_value = "on")]
    index: Switch,
    /// The model that embeds.
    #[arg(long, value_name = "WHICH", default_value = "built-in")]
    embedder: ModelName,
    /// With --index off: run twice, and measure the second run, with a warm memo.
    #[arg(long)]
    warm: bool,
    /// Compare the work, and every digest, with the results that follow from the trace without the engine.
    #[arg(long, value_name = "WHETHER", default_value = "on")]
    check_work: Switch,
    /// Fill this store, or continue it, in place of a temporary one.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Write the report as a page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the report's plots as SVG files into this folder.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Against {
    Rebuild,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ModelName {
    BuiltIn,
    None,
}

impl KnobArgs {
    fn knobs(&self, stop: Stop) -> Result<Knobs> {
        anyhow::ensure!(self.pace.is_none_or(|pace| pace > 0.0 && pace.is_finite()), "--pace is a number above 0");
        let default = Knobs::default();
        Ok(Knobs {
            parsing: Parsing::of_this_program(),
            workers: self.workers,
            pool: self.pool.unwrap_or(default.pool),
            batch: self.batch,
            slice: self.slice,
            pace: self.pace,
            index: self.index == Switch::On,
            model: if self.embedder == ModelName::None { Model::None } else { Model::BuiltIn },
            warm: self.warm,
            check_work: self.check_work == Switch::On,
            rebuilds: if self.against.is_some() { self.rebuilds } else { 0 },
            data: self.store.clone(),
            stop,
        })
    }
}

/// Runs `replay`.
pub(super) fn run(global: &Global, args: &ReplayArgs) -> Result<Outcome> {
    of_file(global, &args.trace, &args.knobs)
}

/// Runs `bench`.
pub(super) fn bench(global: &Global, args: &BenchArgs) -> Result<Outcome> {
    let BenchArgs { scenario, files, epochs, seed, keep, knobs } = args;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let path = keep.clone().unwrap_or_else(|| folder.path().join(format!("{scenario}.tmtrace")));
    generate(&path, *scenario, Settings { files: *files, epochs: *epochs, seed: *seed })?;
    of_file(global, &path, knobs)
}

fn of_file(global: &Global, path: &Path, args: &KnobArgs) -> Result<Outcome> {
    let (_runtime, stop) = interrupt::listening(1, interrupt::Patience::Wait)?;
    let knobs = args.knobs(stop)?;
    let trace = Arc::new(Trace::open(path)?);
    if let Some(behind) = trace.cut() {
        tracing::warn!(
            "the trace {} was cut; it is replayed up to its last whole epoch, {} of them, and the {behind} bytes behind that are left out",
            path.display(),
            trace.len()
        );
    }
    let bar = (!global.quiet && !global.json && output::is_terminal())
        .then(|| indicatif::ProgressBar::new(trace.len() as u64));
    let seen = bar.clone();
    let on_epoch = Box::new(move |sample: &Sample| {
        if let Some(bar) = &seen {
            bar.set_position(sample.number as u64 + 1);
        }
    });
    let report = replay(&trace, &knobs, on_epoch)?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if report.proof.other_rules {
        tracing::warn!(
            "the trace {} was recorded under rules that this build does not have; its digests were not compared",
            path.display()
        );
    }
    if let Some(file) = &args.html {
        std::fs::write(file, page(&report)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(folder) = &args.plots {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (name, plot) in plot_files(&report) {
            let file = folder.join(name);
            std::fs::write(&file, plot).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    if global.json {
        json_line(&report)?;
    } else {
        show(&report)?;
    }
    Ok(verdict(&report))
}

fn show(report: &Report) -> Result<()> {
    line(report.trace.line())?;
    line(report.setting.line())?;
    let rows = report.rows();
    let wide = rows.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
    for (what, figure) in rows {
        line(format!("  {what:<wide$}  {figure}"))?;
    }
    Ok(())
}

fn verdict(report: &Report) -> Outcome {
    for differing in &report.proof.differing {
        tracing::error!(
            "epoch {} (commit {}): its digest is {} and the {} one is {}",
            differing.epoch,
            differing.commit,
            differing.found,
            differing.against,
            differing.expected
        );
    }
    if report.is_proven() { Outcome::Done } else { Outcome::NotAllWell }
}

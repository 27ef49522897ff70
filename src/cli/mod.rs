//! The command line.
//!
//! In: arguments. Out: results on standard output, everything else on standard error, and an exit status: 0 done, 1 failed, 2
//! wrong usage, 3 finished with problems.
//!
//! **Invariant:** a failure is one line on standard error, cause after cause; with `--json` nothing but JSON goes to
//! standard output.

mod bisect;
mod copy;
mod demo;
mod dump;
mod eval;
mod exhausted;
mod explain;
mod gc;
mod interrupt;
mod output;
mod reasons;
mod record;
mod replay;
mod search;
mod snapshots;
mod status;
mod track;
mod verify;

use crate::api::{self, Service};
use crate::config::Config;
use crate::resources;
use crate::store::Layout;
use crate::telemetry::{self, Verbosity};
use crate::workers;
use clap::{Args, Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Keeps a hybrid index of a repository in step with every commit, and the index of every commit.
#[derive(Parser, Debug)]
#[command(name = "tidemill", version, about, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Flags of every command, before or after its name.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// The store.
    #[arg(long, global = true, env = "TIDEMILL_DATA", default_value = ".tidemill", value_name = "DIR")]
    data: PathBuf,
    /// Settings; `tidemill.toml` if it is there.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON and nothing else on standard output.
    #[arg(long, global = true)]
    json: bool,
    /// Say less.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more; twice for all details.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl Global {
    fn layout(&self) -> Layout {
        Layout::new(&self.data)
    }

    /// Opens the store for questions.
    fn service(&self) -> anyhow::Result<Service> {
        Ok(Service::open(&self.layout(), &self.config()?)?)
    }

    fn config(&self) -> anyhow::Result<Config> {
        Ok(Config::load(self.config.as_deref())?)
    }

    const fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::Debug,
        }
    }
}

/// The source and view that a command reads.
#[derive(Args, Clone, Debug, Default)]
struct Place {
    /// Only this source.
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// This view instead of the branch that HEAD names.
    #[arg(long, value_name = "VIEW")]
    view: Option<String>,
}

impl Place {
    fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    fn view(&self) -> Option<&str> {
        self.view.as_deref()
    }

    /// Returns the options after a subcommand, else those before it.
    fn or(&self, before: &Self) -> Self {
        let either = |behind: &Option<String>, before: &Option<String>| behind.clone().or_else(|| before.clone());
        Self { source: either(&self.source, &before.source), view: either(&self.view, &before.view) }
    }
}

impl From<Place> for api::Place {
    fn from(Place { source, view }: Place) -> Self {
        Self { source, view }
    }
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Keep the indexes in step with the sources.
    Track(track::TrackArgs),
    /// Search the newest version, or the snapshot at a revision.
    Search(search::SearchArgs),
    /// The index of every commit.
    Snapshots(snapshots::SnapshotsArgs),
    /// Every live entry, one JSON object a line.
    Dump(dump::DumpArgs),
    /// Sources, views, newest versions, faults, sizes and work done.
    Status,
    /// How a document got, or did not get, into the index.
    Explain(explain::ExplainArgs),
    /// The first snapshot whose first k hits lack an answer.
    Bisect(bisect::BisectArgs),
    /// How good answers are: judged questions, asked of any version in any mode.
    Eval(Box<eval::EvalArgs>),
    /// Record a range of commits into a file that replays anywhere.
    Record(record::RecordArgs),
    /// Replay a trace through the engine, compare every digest, and measure.
    Replay(replay::ReplayArgs),
    /// Generate a history, replay it and measure.
    Bench(replay::BenchArgs),
    /// The whole main job on this repository's own history, nothing to prepare.
    Demo(demo::DemoArgs),
}

/// The result of a command that did not fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Done,
    NotAllWell,
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    if workers::is_worker() {
        return workers::serve();
    }
    exhausted::watch();
    resources::raise_open_files();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results; an error is wrong usage.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    telemetry::start(cli.global.verbosity());
    let outcome = match cli.command {
        Command::Track(args) => track::run(&cli.global, args),
        Command::Search(args) => search::run(&cli.global, &args),
        Command::Snapshots(args) => snapshots::run(&cli.global, &args),
        Command::Dump(args) => dump::run(&cli.global, &args),
        Command::Status => status::run(&cli.global),
        Command::Explain(args) => explain::run(&cli.global, &args),
        Command::Bisect(args) => bisect::run(&cli.global, &args),
        Command::Eval(args) => eval::run(&cli.global, &args),
        Command::Record(args) => record::run(&cli.global, &args),
        Command::Replay(args) => replay::run(&cli.global, &args),
        Command::Bench(args) => replay::bench(&cli.global, &args),
        Command::Demo(args) => demo::run(&cli.global, &args),
    };
    ended(match outcome {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::NotAllWell) => 3,
        Err(error) if output::is_closed_pipe(&error) => 0,
        Err(error) => {
            output::say_failure(&error);
            1
        }
    })
}

/// Ends the process immediately if work was abandoned: all promised data is durable.
fn ended(code: u8) -> ExitCode {
    if crate::index::background::is_any_left() {
        let _ = std::io::stdout().flush();
        end_at_once(code);
    }
    ExitCode::from(code)
}

/// Ends the process without waiting for any thread or its locks.
fn end_at_once(code: u8) -> ! {
    #[cfg(feature = "faiss")]
    crate::index::vector::end_at_once(code);
    #[cfg(not(feature = "faiss"))]
    std::process::exit(code.into());
}

//! `record`: writes a range of commits as a trace.
//!
//! In: a repository, or a tracked source, and two revisions. Out: a file for `replay` on any machine.

use super::output::{bytes, json_line, line};
use super::track::{Report, track_with};
use super::{Global, Outcome, interrupt};
use crate::api;
use crate::api::wire::RecordLine;
use crate::config::{Config, SourceConfig};
use crate::embedders;
use crate::engine::{self, load_rules};
use crate::trace::live::LiveRecorder;
use crate::trace::record::{Recording, line as line_of_commits, record};
use crate::trace::redact::Redactor;
use crate::trace::{About, Written};
use crate::watch::git::{Commit, GitSource};
use anyhow::{Context, Result};
use clap::Args;
use dataflows::rules::Rules;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Args, Debug)]
pub(super) struct RecordArgs {
    /// The trace, which must not exist yet.
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// A git repository, or the name of one that is tracked; with --live also a directory, as `dir:PATH`.
    #[arg(long, value_name = "S")]
    source: String,
    /// The first commit: all of its files are the first epoch.
    #[arg(long, value_name = "REV", required_unless_present = "live")]
    from: Option<String>,
    /// The last commit; without it that of the view, or of HEAD.
    #[arg(long, value_name = "REV")]
    to: Option<String>,
    /// The view that the trace moves, instead of the branch that HEAD names.
    #[arg(long, value_name = "VIEW", conflicts_with = "live")]
    view: Option<String>,
    /// Track the source as `track` does, and record each epoch with its arrival time, until interrupted.
    #[arg(long, conflicts_with_all = ["from", "to"])]
    live: bool,
    /// With --live: branches and tags that are views; the branch that HEAD names by default.
    #[arg(long = "ref", value_name = "GLOB", requires = "live")]
    refs: Vec<String>,
    /// Replace words and identifiers by pseudonyms of the same shape, paths and commits too.
    #[arg(long)]
    redact: bool,
}

/// Runs `record`.
pub(super) fn run(global: &Global, args: &RecordArgs) -> Result<Outcome> {
    let config = global.config()?;
    let rules_text = match &config.rules {
        Some(path) if !args.redact => {
            std::fs::read_to_string(path).with_context(|| format!("cannot read the rules {}", path.display()))?
        }
        // Rules contain paths and labels; the built-in ones contain no private ones.
        _ => String::new(),
    };
    let rules = Arc::new(if rules_text.is_empty() { Rules::built_in() } else { load_rules(config.rules.as_deref())? });
    let model = embedders::configured().fingerprint();
    let fingerprint = engine::fingerprint(&rules);
    if args.live {
        return live(global, args, config, rules, rules_text);
    }
    let found = api::recordable(&global.layout(), &args.source, fingerprint)?;
    let source = GitSource::open(&found.path)?;
    let to = args.to.as_deref().or(args.view.as_deref()).unwrap_or("HEAD");
    let commits = line_of_commits(&source, args.from.as_deref().unwrap_or("HEAD"), to)?;
    let known = |commit: &Commit| found.digests.contains_key(&commit.id);
    let from_store = !args.redact && commits.iter().all(known);
    let range = match (commits.first(), commits.last()) {
        _ if args.redact => format!("{} commits", commits.len()),
        (Some(first), Some(last)) => format!("{}..{}", first.id, last.id),
        _ => String::new(),
    };
    let about = About {
        source: if args.redact { String::new() } else { found.name },
        range,
        fingerprint: rules.fingerprint().to_bytes(),
        model: model.to_bytes(),
        rules: rules_text,
        redacted: args.redact,
        corpus: [0; 32],
    };
    let view = match &args.view {
        Some(view) => view.clone(),
        None => source.head_branch()?.unwrap_or_else(|| "HEAD".to_owned()),
    };
    let (_runtime, stop) = interrupt::listening(1, interrupt::Patience::Wait)?;
    let bar = (!global.quiet && !global.json && super::output::is_terminal())
        .then(|| indicatif::ProgressBar::new(commits.len() as u64));
    let written = record(
        &args.out,
        Recording {
            source,
            commits,
            view: view.trim_start_matches("refs/heads/").to_owned(),
            about,
            rules,
            digests: from_store.then_some(found.digests),
            redactor: redactor(args)?,
            progress: &mut |epochs| {
                if let Some(bar) = &bar {
                    bar.set_position(epochs);
                }
            },
            stop: &|| stop.is_asked(),
        },
    )?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let whence = if from_store { "store" } else { "trees" };
    let Some(written) = written else {
        tracing::warn!("interrupted; {}.partial can be replayed up to its last whole epoch", args.out.display());
        return Ok(Outcome::Done);
    };
    show(global, args, &written, whence)
}

/// Returns the redactor, if words are to be replaced.
fn redactor(args: &RecordArgs) -> Result<Option<Redactor>> {
    args.redact.then(Redactor::random).transpose().context("cannot draw a key")
}

/// Prints the result.
fn show(global: &Global, args: &RecordArgs, written: &Written, whence: &'static str) -> Result<Outcome> {
    if global.json {
        json_line(&RecordLine::new(written, whence, args.redact))?;
    } else {
        let whence = match whence {
            "store" => "taken from the store",
            "tracker" => "those that were published",
            _ => "computed from the trees",
        };
        line(format!(
            "{}: {} epochs, {} contents of {}, {} packed; digests {whence}",
            args.out.display(),
            written.epochs,
            written.contents,
            bytes(written.content_bytes),
            bytes(written.bytes)
        ))?;
    }
    Ok(Outcome::Done)
}

/// Tracks a source and records its epochs.
fn live(global: &Global, args: &RecordArgs, config: Config, rules: Arc<Rules>, rules_text: String) -> Result<Outcome> {
    let source = SourceConfig { path: args.source.clone(), refs: args.refs.clone(), ..SourceConfig::default() };
    let config = Config { sources: vec![source], is_complete: false, ..config };
    let about = About {
        source: if args.redact {
            String::new()
        } else {
            args.source.trim_start_matches("dir:").rsplit('/').next().unwrap_or_default().to_owned()
        },
        range: "live".to_owned(),
        fingerprint: rules.fingerprint().to_bytes(),
        model: embedders::configured().fingerprint().to_bytes(),
        rules: rules_text,
        redacted: args.redact,
        corpus: [0; 32],
    };
    let recorder = LiveRecorder::begin(&args.out, about, rules, redactor(args)?)?;
    let report = Report::new(global, false);
    let tracked = track_with(global.layout(), config, report.clone(), false, Some(recorder.clone()));
    report.finish();
    let written = recorder.finish()?;
    tracked?;
    let whence = if args.redact { "trees" } else { "tracker" };
    written.map_or(Ok(Outcome::Done), |written| show(global, args, &written, whence))
}

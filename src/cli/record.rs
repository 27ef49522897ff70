//! `record`: writes a range of commits as a trace.
//!
//! In: a repository, or a tracked source, and two revisions. Out: a file for `replay` on any machine.

use super::output::{bytes, json_line, line};
use super::track::{Report, track_with};
use super::{Global, Outcome, interrupt};
use crate::api::wire::RecordLine;
use crate::config::{Config, SourceConfig};
use crate::embedders;
use crate::engine::{self, load_rules};
use crate::store::{Database, SourceKind};
use crate::trace::live::LiveRecorder;
use crate::trace::record::{Recording, line as line_of_commits, record};
use crate::trace::redact::Redactor;
use crate::trace::{About, Written};
use crate::watch::git::{Commit, GitSource};
use anyhow::{Context, Result};
use clap::Args;
use dataflows::data::Fingerprint;
use dataflows::rules::Rules;
use rustc_hash::FxHashMap;
use snapshots::{Archive, CommitId, Digest};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
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

/// The origin of the commits.
struct Found {
    path: PathBuf,
    name: String,
    /// Digests of the store's versions.
    digests: FxHashMap<CommitId, Digest>,
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
    let found = find(global, &args.source, fingerprint)?;
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

/// Finds a repository by its path, or by its source name in the store.
fn find(global: &Global, source: &str, fingerprint: Fingerprint) -> Result<Found> {
    let layout = global.layout();
    let path = Path::new(source);
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(&name).to_owned();
    let mut found = Found { path: path.to_owned(), name, digests: FxHashMap::default() };
    if layout.check().is_err() {
        return Ok(found);
    }
    let database = Database::open_reader(&layout)?;
    let sources = database.catalogue().sources()?;
    let canonical = path.canonicalize().ok();
    // A source's location may be a link to the repository.
    let here = |location: &[u8]| {
        let there = Path::new(OsStr::from_bytes(location)).canonicalize();
        canonical.as_ref().is_some_and(|path| there.is_ok_and(|there| there == *path))
    };
    let tracked = sources.iter().find(|(_, record)| record.name == source || here(&record.location));
    let Some((id, record)) = tracked else { return Ok(found) };
    anyhow::ensure!(
        record.kind == SourceKind::Git,
        "{source} is a {} and has no commits to record; name a git repository",
        record.kind.as_str()
    );
    if !path.exists() {
        found.path = PathBuf::from(OsStr::from_bytes(&record.location));
    }
    found.name.clone_from(&record.name);
    let archive = Archive::open_reader(&layout.versions())?;
    for version in archive.versions().iter().filter(|version| version.source == *id) {
        if version.fingerprint == fingerprint.to_bytes() {
            found.digests.insert(version.commit, version.digest);
        }
    }
    Ok(found)
}

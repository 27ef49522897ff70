//! `eval init`: questions drawn from a repository, and a store to ask them of.
//!
//! In: a repository. Out: a folder with `questions.jsonl`, and unless an index is not wanted the repository that was indexed (`copy.git`)
//! and its store (`store`).

use crate::cli::output::{count, json_line, line};
use crate::cli::search::number_from_one;
use crate::cli::track::{Report, track};
use crate::cli::{Global, Outcome};
use crate::config::{Backfill, Config, SourceConfig};
use crate::eval::draw::{DrawError, Drawing, From, draw};
use crate::store::Layout;
use crate::workers::Parsing;
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct InitArgs {
    /// What questions are drawn from.
    #[arg(value_enum, value_name = "WHAT")]
    from: From,
    /// A git repository, bare or with a work tree.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// As of this revision; HEAD by default.
    #[arg(long, value_name = "REV")]
    at: Option<String>,
    /// Draw from files below this folder only; everything is indexed all the same. May be repeated.
    #[arg(long, value_name = "FOLDER")]
    under: Vec<String>,
    /// Which questions are taken follows from it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many at the most; of symbols so many qualified and so many bare ones.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = number_from_one())]
    count: usize,
    /// Write the questions only, for a store that is there.
    #[arg(long)]
    no_index: bool,
    /// A folder that is not there yet; `eval-WHAT` by default.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The line of `eval init --json`.
#[derive(Serialize)]
struct InitLine {
    questions: usize,
    of: usize,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<String>,
}

/// Runs `eval init`.
pub(super) fn run(global: &Global, args: &InitArgs) -> Result<Outcome> {
    let name = args.from.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("eval-{name}")));
    if out.exists() {
        return Err(DrawError::Exists { path: out }.into());
    }
    let drawing = Drawing {
        from: args.from,
        source: &args.source,
        at: args.at.as_deref(),
        under: &args.under,
        seed: args.seed,
        count: args.count,
        parsing: &Parsing::of_this_program(),
    };
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let temporary = args.no_index.then(tempfile::tempdir).transpose().context("cannot make a temporary folder")?;
    let copy = temporary.as_ref().map_or(out.as_path(), |temporary| temporary.path()).join("copy.git");
    let draft = draw(&drawing, &copy)?;
    ensure!(
        !draft.questions.is_empty(),
        "{} has no {name} to draw from; name another revision with --at, or folders with --under",
        args.source.display()
    );
    let file = out.join("questions.jsonl");
    let mut text = Vec::new();
    for question in &draft.questions {
        serde_json::to_writer(&mut text, question)?;
        text.push(b'\n');
    }
    let written = std::fs::File::create(&file).and_then(|mut file| file.write_all(&text));
    written.with_context(|| format!("cannot write {}", file.display()))?;
    let store = (!args.no_index).then(|| out.join("store"));
    if let Some(store) = &store {
        index(global, name, &copy, store, draft.backfill)?;
    }
    let (drawn, file) = (draft.questions.len(), file.display().to_string());
    let store = store.map(|store| store.display().to_string());
    if global.json {
        json_line(&InitLine { questions: drawn, of: draft.of, file, store })?;
        return Ok(Outcome::Done);
    }
    line(format!("{} of {} in {file}", count(drawn, "question", "questions"), draft.of))?;
    if let Some(store) = store {
        line(format!("ask them:  tidemill eval {file} --data {store}"))?;
    }
    Ok(Outcome::Done)
}

/// Indexes the copy in a store of its own.
fn index(global: &Global, name: String, copy: &Path, store: &Path, backfill: usize) -> Result<()> {
    let source = SourceConfig {
        path: copy.to_string_lossy().into_owned(),
        name: Some(name),
        backfill: (backfill > 0).then_some(Backfill::Commits(backfill)),
        ..SourceConfig::default()
    };
    let config = Config { sources: vec![source], is_complete: true, ..global.config()? };
    let report = Report::quietly(global);
    track(Layout::new(store), config, report.clone(), true)?;
    report.finish();
    Ok(())
}

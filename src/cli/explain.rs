//! `explain`: how a document got, or did not get, into the index.
//!
//! In: a path. Out: its rule, what became of it, its chunks with the commits that brought them.

use super::output::{json_line, line, short};
use super::search::shorten;
use super::{Global, Outcome};
use crate::search::{Searcher, Selected, document_of, introduced, placed_entries};
use crate::serve::wire::{WirePath, non_empty};
use anyhow::Result;
use clap::Args;
use dataflows::data::{Document, DocumentPath, Outcome as DocumentOutcome};
use dataflows::memo::{Embedded, Memo};
use dataflows::rules::Rules;
use serde::Serialize;
use snapshots::Ordinal;

#[derive(Args, Debug)]
pub(super) struct ExplainArgs {
    /// The document's path inside its source.
    path: String,
    /// As of a commit, tag, branch, BRANCH~N or time.
    #[arg(long, value_name = "REV")]
    at: Option<String>,
}

#[derive(Serialize)]
struct Explanation {
    source: String,
    commit: String,
    #[serde(flatten)]
    path: WirePath,
    content: Option<String>,
    outcome: &'static str,
    reason: Option<String>,
    rule: String,
    cleaner: String,
    chunker: String,
    module: Option<String>,
    chunks: Vec<ChunkExplanation>,
}

#[derive(Serialize)]
struct ChunkExplanation {
    lines: [u32; 2],
    symbol: Option<String>,
    name: Option<String>,
    vector: &'static str,
    introduced_in: Option<String>,
}

/// Runs `explain`.
pub(super) fn run(global: &Global, args: &ExplainArgs) -> Result<Outcome> {
    let searcher = Searcher::open(&global.layout())?;
    let rules = match global.config()?.rules {
        Some(path) => Rules::parse(&std::fs::read_to_string(path)?)?,
        None => Rules::built_in(),
    };
    let path = DocumentPath::from(args.path.trim_start_matches("./"));
    for selected in searcher.revisions().select(searcher.reader(), None, None, args.at.as_deref())? {
        let explanation = explain(&searcher, &rules, &selected, &path)?;
        if global.json { json_line(&explanation)? } else { show(&explanation)? }
    }
    Ok(Outcome::Done)
}

fn explain(searcher: &Searcher, rules: &Rules, selected: &Selected, path: &DocumentPath) -> Result<Explanation> {
    let reader = searcher.reader();
    let alive = reader.with_archive(|archive| archive.bitmaps(selected.version))?;
    let document = document_of(reader, &alive.documents, path)?.map(|placed| placed.document);
    let rule = rules.rule(rules.for_path(path));
    let (outcome, reason, module) = match document.as_ref().map(|document| &document.outcome) {
        None => ("absent", Some("no file stands at this path in this version".to_owned()), None),
        Some(DocumentOutcome::Indexed { module, .. }) => ("indexed", None, non_empty(module)),
        Some(DocumentOutcome::Skipped(reason)) => ("skipped", Some(reason.as_str().to_owned()), None),
        Some(DocumentOutcome::Fault { stage, error }) => ("fault", Some(format!("{stage}: {error}")), None),
    };
    Ok(Explanation {
        source: selected.source_name.clone(),
        commit: selected.commit.to_string(),
        path: WirePath::from(path),
        content: document.as_ref().map(|document| document.content.to_string()),
        outcome,
        reason,
        rule: rule.name().to_owned(),
        cleaner: rule.cleaner().to_owned(),
        chunker: rule.chunker().to_owned(),
        module,
        chunks: document.map(|document| chunks(searcher, selected, &document)).transpose()?.unwrap_or_default(),
    })
}

fn chunks(searcher: &Searcher, selected: &Selected, document: &Document) -> Result<Vec<ChunkExplanation>> {
    let reader = searcher.reader();
    let placed = placed_entries(reader, document)?;
    let ordinals = reader.catalogue().entry_ordinals(placed.iter().map(|placed| placed.entry.id()))?;
    let ordinals: Vec<Ordinal> = ordinals.into_iter().flatten().collect();
    let introduced = introduced(reader, selected, &ordinals)?;
    let memo = reader.memo();
    let explained = placed.iter().zip(introduced).map(|(placed, introduced)| ChunkExplanation {
        lines: [placed.lines.first, placed.lines.last],
        symbol: non_empty(&placed.card.symbol),
        name: non_empty(&placed.card.name),
        vector: match memo.embedded(placed.entry.embed_id()) {
            Some(Embedded::Vector(_)) => "present",
            Some(Embedded::NoVector) => "none: no word that the model knows",
            Some(Embedded::Fault(_)) | None => "missing",
        },
        introduced_in: introduced.map(|introduced| introduced.to_string()),
    });
    Ok(explained.collect())
}

fn show(explanation: &Explanation) -> Result<()> {
    let Explanation { source, commit, path, outcome, reason, rule, cleaner, chunker, module, chunks, .. } = explanation;
    line(format!("{} in {source} as of {}: {outcome}", path.path, short(commit)))?;
    if let Some(reason) = reason {
        line(format!("  because: {reason}"))?;
    }
    line(format!("  rule {rule}: cleaned as {cleaner}, cut by {chunker}"))?;
    if let Some(module) = module {
        line(format!("  module {module}"))?;
    }
    for chunk in chunks {
        let what = chunk.symbol.as_deref().or(chunk.name.as_deref()).unwrap_or("");
        let what = if what.is_empty() { String::new() } else { format!("  {what}") };
        let since = chunk.introduced_in.as_deref().map_or_else(|| "unknown".to_owned(), shorten);
        line(format!("  lines {}-{}{what}  vector {}  since {since}", chunk.lines[0], chunk.lines[1], chunk.vector))?;
    }
    Ok(())
}

//! `dump`: every live entry, so that two stores can be compared with `diff`.
//!
//! In: a revision. Out: one JSON object a line, sorted by source, path and position; no ordinals, which depend on history.

use super::output::json_line;
use super::{Global, Outcome, Place};
use crate::index::Given;
use crate::search::{Searcher, Selected, introduced, placed_entries};
use crate::serve::wire::{DumpLine, WirePath, non_empty};
use anyhow::{Context, Result};
use clap::Args;
use dataflows::data::Document;
use snapshots::Ordinal;

#[derive(Args, Debug)]
pub(super) struct DumpArgs {
    /// As of a commit, tag, branch, BRANCH~N or time.
    #[arg(long, value_name = "REV")]
    at: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Runs `dump`.
pub(super) fn run(global: &Global, args: &DumpArgs) -> Result<Outcome> {
    let searcher = Searcher::open(&global.layout())?;
    let (source, view, at) = (args.place.source(), args.place.view(), args.at.as_deref());
    let mut selected = searcher.revisions().select(searcher.reader(), source, view, at)?;
    selected.sort_by(|left, right| left.source_name.cmp(&right.source_name));
    for selected in &selected {
        dump(&searcher, selected)?;
    }
    Ok(Outcome::Done)
}

fn dump(searcher: &Searcher, selected: &Selected) -> Result<()> {
    let reader = searcher.reader();
    let alive = reader.with_archive(|archive| archive.bitmaps(selected.version))?;
    let mut documents: Vec<Document> = reader.catalogue().documents(alive.documents.iter().map(Ordinal::new))?;
    documents.sort_by(|left, right| left.path.cmp(&right.path));
    for document in documents {
        let placed = placed_entries(reader, &document)?;
        let ordinals = reader.catalogue().entry_ordinals(placed.iter().map(|placed| placed.entry.id()))?;
        let ordinals: Vec<Ordinal> = ordinals
            .into_iter()
            .map(|ordinal| ordinal.filter(|ordinal| alive.entries.contains(ordinal.get())))
            .collect::<Option<_>>()
            .with_context(|| {
                format!(
                    "the entries of {} are not those of its version; run `tidemill snapshots verify`",
                    document.path
                )
            })?;
        let introduced = introduced(reader, selected, &ordinals)?;
        for ((placed, introduced), ordinal) in placed.into_iter().zip(introduced).zip(ordinals) {
            let vector_hash = match reader.vector_of(ordinal)? {
                Given::Vector(components) => {
                    let bytes: Vec<u8> = components.iter().flat_map(|part| part.to_le_bytes()).collect();
                    Some(blake3::hash(&bytes).to_hex()[..32].to_owned())
                }
                Given::NoVector | Given::Owed(_) => None,
            };
            json_line(&DumpLine {
                source: selected.source_name.clone(),
                path: WirePath::from(&placed.entry.path),
                kind: placed.card.kind.as_str(),
                symbol: non_empty(&placed.card.symbol),
                lines: Some([placed.lines.first, placed.lines.last]),
                text_hash: placed.entry.text.to_string(),
                vector_hash,
                introduced_in: introduced.map(|introduced| introduced.to_string()),
            })?;
        }
    }
    Ok(())
}

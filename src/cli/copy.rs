//! `snapshots export` and `snapshots import`: one snapshot, from one machine to another.
//!
//! In: a revision and a folder. Out: the folder, or the snapshot in a store; one line that says which.

use super::output::{bytes, json_line, line, short};
use super::{Global, Place};
use crate::embedders;
use crate::engine::{Imported, import as publish, load_rules};
use crate::index::copy::{self, Exported};
use crate::search::Searcher;
use crate::serve::wire::CopyLine;
use anyhow::{Context, Result};
use std::path::Path;

/// Runs `snapshots export`.
pub(super) fn export(global: &Global, searcher: &Searcher, rev: &str, folder: &Path, place: &Place) -> Result<()> {
    let rules = load_rules(global.config()?.rules.as_deref())?;
    let selected = searcher.revisions().one(searcher.reader(), place.source(), place.view(), rev)?;
    let (reader, revisions) = (searcher.reader(), searcher.revisions());
    let source = revisions.sources().iter().find(|(id, _)| *id == selected.source);
    let (_, source) = source.context("the source of the version is not in the store")?;
    let views = reader.with_archive(|archive| {
        let standing =
            revisions.views_of(selected.source).filter(|(id, _)| archive.view(*id) == Some(selected.version));
        standing.map(|(_, name)| name.to_owned()).collect()
    });
    let dimensions = u32::try_from(embedders::configured().dimensions()).unwrap_or(u32::MAX);
    let Exported { manifest, bytes: size } =
        copy::export(reader, source, selected.version, views, (&rules, dimensions), folder)?;
    if global.json {
        return json_line(&CopyLine {
            commit: selected.commit.to_string(),
            source: manifest.source,
            live_entries: manifest.entries,
            digest: manifest.digest,
            bytes: Some(size),
            known: None,
        });
    }
    line(format!(
        "{} of {}: {} entries, {} in {}",
        short(&selected.commit),
        manifest.source,
        manifest.entries,
        bytes(size),
        folder.display()
    ))
}

/// Runs `snapshots import`.
pub(super) fn import(global: &Global, folder: &Path, name: Option<&str>) -> Result<()> {
    let (imported, manifest) = publish(&global.layout(), folder, name)?;
    let commit = manifest.commit()?;
    let source = name.unwrap_or(&manifest.source).to_owned();
    let known = matches!(imported, Imported::Known);
    if global.json {
        return json_line(&CopyLine {
            commit: commit.to_string(),
            source,
            live_entries: manifest.entries,
            digest: manifest.digest,
            bytes: None,
            known: Some(known),
        });
    }
    let what = if known { "is there already" } else { "is published" };
    line(format!("{} of {source} {what}: {} entries, digest {}", short(&commit), manifest.entries, manifest.digest))
}

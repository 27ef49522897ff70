//! `snapshots gc`: applies retention and collects garbage.
//!
//! In: a store and the settings. Out: one line, or one object, with the removed rows and the bytes of each part; the same if a
//! tracker with the store open does it on request.

use super::output::{bytes, json_line, line};
use super::{Global, Outcome, interrupt};
use crate::api::wire::{CollectionLine, StoredBytes};
use crate::engine::{Collection, collect, estimate};
use anyhow::Result;
use clap::Args;
use std::time::Instant;

#[derive(Args, Debug)]
pub(super) struct GcArgs {
    /// Say what would be dropped and removed, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Runs `snapshots gc`.
pub(super) fn run(global: &Global, args: &GcArgs) -> Result<Outcome> {
    let started = Instant::now();
    let (layout, config) = (global.layout(), global.config()?);
    let collection = if args.dry_run {
        estimate(&layout, &config)?
    } else {
        // The first interrupt ends the work between two steps; the next run continues.
        let (_runtime, stop) = interrupt::listening(1, interrupt::Patience::Wait)?;
        collect(&layout, &config, &mut || !stop.is_asked())?
    };
    let answer = answer(args.dry_run, &collection, started.elapsed().as_secs_f64());
    if global.json {
        json_line(&answer)?;
    } else {
        show(&answer)?;
    }
    Ok(Outcome::Done)
}

fn answer(dry_run: bool, collection: &Collection, seconds: f64) -> CollectionLine {
    let Collection { dropped, kept, collected, readers, ref bytes, free, given_back } = *collection;
    let parts =
        bytes.iter().map(|(part, [before, after])| (part.clone(), StoredBytes { before: *before, after: *after }));
    CollectionLine {
        dry_run,
        complete: dry_run || collected.is_complete,
        dropped,
        kept,
        entries: collected.entries,
        documents: collected.documents,
        words: collected.words,
        vectors: collected.vectors,
        texts: collected.results.texts,
        chunk_lists: collected.results.chunks,
        cleaned: collected.results.cleaned,
        heads: collected.results.heads,
        stored_vectors: collected.results.vectors,
        held_back: collected.held_back,
        readers,
        bytes: parts.collect(),
        free_bytes: free,
        given_back_bytes: given_back,
        seconds,
    }
}

fn show(answer: &CollectionLine) -> Result<()> {
    let would = if answer.dry_run { "would be " } else { "" };
    line(format!("{} snapshots {would}dropped, {} kept", answer.dropped, answer.kept))?;
    line(format!(
        "{} entries, {} documents, {} texts and {} vectors {would}removed",
        answer.entries, answer.documents, answer.texts, answer.vectors
    ))?;
    if !answer.dry_run {
        for (part, StoredBytes { before, after }) in &answer.bytes {
            line(format!("  {part:<9} {} before, {} after", bytes(*before), bytes(*after)))?;
        }
    }
    if answer.free_bytes > 0 {
        let why = if answer.readers > 0 { "; it shrinks at a run without readers or a tracker" } else { "" };
        line(format!("  {} of the database are free for what comes{why}", bytes(answer.free_bytes)))?;
    }
    if answer.held_back > 0 {
        line(format!("{} entries are held back by {} readers; collect again later", answer.held_back, answer.readers))?;
    }
    if !answer.complete {
        line("interrupted; the next run goes on from here")?;
    }
    line(format!("{:.1} s", answer.seconds))
}

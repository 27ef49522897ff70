//! `status`: what the store holds, how far behind its sources it is, and what went wrong.
//!
//! In: a store, and its sources where they can be asked. Out: one object, or lines for people.

use super::output::{bytes, json_line, line, short};
use super::{Global, Outcome};
use crate::search::Searcher;
use crate::serve::wire::{
    CollectedStatus, FaultStatus, SourceStatus, StatusAnswer, TrackerStatus, ViewStatus, WirePath, WorkCounts,
};
use crate::store::{SourceRecord, TrackerState};
use anyhow::Result;
use dataflows::data::Outcome as DocumentOutcome;
use snapshots::{Ordinal, SourceId};
use std::collections::BTreeMap;

/// Runs `status`.
pub(super) fn run(global: &Global) -> Result<Outcome> {
    let searcher = Searcher::open(&global.layout())?;
    let reader = searcher.reader();
    let tracker = TrackerState::read(&global.layout());
    let mut sources = Vec::new();
    for (id, record) in searcher.revisions().sources() {
        sources.push(source_status(&searcher, *id, record, tracker.as_ref())?);
    }
    let mut work = WorkCounts::default();
    reader.catalogue().receipts()?.iter().for_each(|receipt| work.add(receipt));
    let bytes = reader.database().bytes_by_part(reader.layout())?;
    let entries = u64::from(reader.catalogue().next_entry()?);
    let last_collection = reader.database().last_collection()?.map(CollectedStatus::from);
    let answer = StatusAnswer { sources, entries, bytes, work, last_collection };
    if global.json {
        json_line(&answer)?
    } else {
        show(&answer)?
    }
    Ok(Outcome::Done)
}

fn source_status(
    searcher: &Searcher,
    id: SourceId,
    record: &SourceRecord,
    tracker: Option<&TrackerState>,
) -> Result<SourceStatus> {
    let (reader, revisions) = (searcher.reader(), searcher.revisions());
    let repository = revisions.repository(record);
    let mut views = Vec::new();
    reader.with_archive(|archive| {
        let heads: BTreeMap<_, _> = archive.views().collect();
        for (view, name) in revisions.views_of(id) {
            let Some(head) = heads.get(&view) else { continue };
            let Some(version) = archive.version(head.version) else { continue };
            let behind = repository.as_ref().and_then(|git| {
                let now = git.resolve(name).ok()?;
                git.new_commits(version.commit, now).ok().map(|commits| {
                    // A head that was reset stands elsewhere, though nothing is new.
                    if commits.is_empty() && now != version.commit { 1 } else { commits.len() as u64 }
                })
            });
            views.push(ViewStatus {
                name: name.to_owned(),
                commit: version.commit.to_string(),
                epoch: head.epoch.get(),
                behind,
                live_entries: version.statistics.live_entries,
            });
        }
    });
    let mut status = SourceStatus {
        name: record.name.clone(),
        kind: record.kind.as_str(),
        views,
        documents: 0,
        skipped: BTreeMap::new(),
        faults: Vec::new(),
        tracker: tracker.and_then(|state| state.sources.get(&record.name)).map(TrackerStatus::from),
    };
    let selected = revisions.select(reader, Some(&record.name), None, None).unwrap_or_default();
    for selected in selected {
        let alive = reader.with_archive(|archive| archive.bitmaps(selected.version))?;
        for document in reader.catalogue().documents(alive.documents.iter().map(Ordinal::new))? {
            match document.outcome {
                DocumentOutcome::Indexed { .. } => status.documents += 1,
                DocumentOutcome::Skipped(reason) => *status.skipped.entry(reason.as_str()).or_default() += 1,
                DocumentOutcome::Fault { stage, error } => status.faults.push(FaultStatus {
                    path: WirePath::from(&document.path),
                    stage: stage.as_str(),
                    error,
                    since: Some(selected.commit.to_string()),
                }),
            }
        }
    }
    Ok(status)
}

fn show_tracker(tracker: &TrackerStatus) -> Result<()> {
    let or_never = |time: &Option<String>| time.clone().unwrap_or_else(|| "never".to_owned());
    for watch in &tracker.watches {
        let (event, reconcile) = (or_never(&watch.last_event), or_never(&watch.last_reconcile));
        line(format!("  {}: last event {event}, last looked at {reconcile}", watch.what))?;
        if let Some(warning) = &watch.warning {
            line(format!("  {}: {}", watch.what, warning))?;
        }
        if watch.restarts > 0 {
            line(format!("  {}: the watcher died and was started again {} times", watch.what, watch.restarts))?;
        }
    }
    if tracker.skipped_tags + tracker.broken_refs > 0 {
        let (tags, refs) = (tracker.skipped_tags, tracker.broken_refs);
        line(format!("  left out: {tags} tags that are no commits, {refs} refs that cannot be read"))?;
    }
    if let Some(fetch) = &tracker.fetch {
        let last = or_never(&fetch.last);
        match &fetch.error {
            Some(error) => line(format!(
                "  fetch: {} failed since {last}, next at {}: {}",
                fetch.failures,
                or_never(&fetch.next),
                error
            ))?,
            None => line(format!("  fetch: last at {last}"))?,
        }
    }
    Ok(())
}

fn show(status: &StatusAnswer) -> Result<()> {
    for source in &status.sources {
        line(format!("{} ({}): {} documents", source.name, source.kind, source.documents))?;
        for view in &source.views {
            let behind = match view.behind {
                Some(0) => "current".to_owned(),
                Some(number) => format!("{number} commits behind"),
                None => "its source cannot be asked".to_owned(),
            };
            line(format!(
                "  {}  {}  epoch {}  {} entries  {behind}",
                view.name,
                short(&view.commit),
                view.epoch,
                view.live_entries
            ))?;
        }
        if !source.skipped.is_empty() {
            let skipped: Vec<String> =
                source.skipped.iter().map(|(reason, number)| format!("{number} {reason}")).collect();
            line(format!("  skipped: {}", skipped.join(", ")))?;
        }
        if let Some(tracker) = &source.tracker {
            show_tracker(tracker)?;
        }
        for fault in &source.faults {
            line(format!("  fault: {} ({}): {}", fault.path.path, fault.stage, fault.error))?;
        }
    }
    let sizes: Vec<String> = status.bytes.iter().map(|(part, size)| format!("{part} {}", bytes(*size))).collect();
    line(format!("{} entries stored; {}", status.entries, sizes.join(", ")))?;
    if let Some(last) = &status.last_collection {
        line(format!(
            "last collected {}: {} snapshots dropped, {} entries removed, {} given back",
            last.time,
            last.dropped,
            last.entries,
            bytes(last.bytes)
        ))?;
    }
    let work = &status.work;
    line(format!(
        "work so far: {} cleaned, {} chunked, {} embedded, {} entries inserted, {} retracted, {} from the memo, {} faults",
        work.cleaned, work.chunked, work.embedded, work.inserted, work.retracted, work.cache_hits, work.faults
    ))
}

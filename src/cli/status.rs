//! `status`: what the store holds, how far behind its sources it is, and what went wrong.
//!
//! In: a store. Out: one object, or lines for people.

use super::output::{bytes, count, json_line, line, short};
use super::{Global, Outcome};
use crate::api::wire::{StatusAnswer, TrackerStatus, TroubleStatus, UnsureFile, UnsureStatus, ViewStatus};
use anyhow::Result;

/// Runs `status`.
pub(super) fn run(global: &Global) -> Result<Outcome> {
    let answer = global.service()?.status()?;
    if global.json {
        json_line(&answer)?
    } else {
        show(&answer)?
    }
    Ok(Outcome::Done)
}

/// Returns what is wrong, since when, and when it is tried again.
fn trouble(trouble: &TroubleStatus) -> String {
    let next = match &trouble.next_try {
        Some(next) => format!("next try {next}"),
        None => "tried again when it changes".to_owned(),
    };
    format!("{} (since {}, {next})", &trouble.what, trouble.since)
}

fn show_unsure(unsure: &UnsureStatus) -> Result<()> {
    let Some(first) = unsure.first.first() else { return Ok(()) };
    let named: Vec<String> =
        unsure.first.iter().map(|file| format!("{} ({})", file.path.path, file.encoding)).collect();
    let more = if unsure.count > unsure.first.len() as u64 { ", …" } else { "" };
    line(format!("  encoding guessed from few characters in {} documents: {}{more}", unsure.count, named.join(", ")))?;
    let (path, UnsureFile { encoding, rule, .. }) = (&first.path.path, first);
    line(format!(
        "    a line of rules settles it: rule = [{{ name = \"told\", match = [{path:?}], like = {rule:?}, charset = {encoding:?} }}]"
    ))
}

fn show_tracker(tracker: &TrackerStatus) -> Result<()> {
    if let Some(wrong) = &tracker.trouble {
        line(format!("  trouble: {}", trouble(wrong)))?;
    }
    for left_out in &tracker.left_out {
        let commit = left_out.commit.as_ref().map_or_else(String::new, |commit| format!(" commit {}", short(commit)));
        line(format!("  left out: {}{commit}: {}", &left_out.view, trouble(&left_out.trouble)))?;
    }
    for unreadable in &tracker.unreadable {
        let (path, why, since) = (&unreadable.path.path, &unreadable.why, &unreadable.since);
        line(format!("  cannot read {}: {} (since {since}); what was indexed there stays", path, why))?;
    }
    let more = tracker.unreadable_paths.saturating_sub(tracker.unreadable.len() as u64);
    if more > 0 {
        line(format!("  and {more} more paths that cannot be read"))?;
    }
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

/// Returns how far behind its source a view is, in words.
fn lag_text(view: &ViewStatus) -> String {
    match (&view.behind, &view.looked_at, &view.unknown) {
        (Some(0), ..) => "current".to_owned(),
        (Some(1), ..) => "1 commit behind".to_owned(),
        (Some(number), ..) => format!("{number} commits behind"),
        (None, Some(time), _) => format!("all looked at {}", ago(time)),
        (None, None, Some(why)) => format!("its repository cannot be asked: {}", why),
        (None, None, None) => "not looked at by the last tracker".to_owned(),
    }
}

/// Returns how long ago a time was.
fn ago(time: &str) -> String {
    let Ok(time) = time.parse::<jiff::Timestamp>() else { return time.to_owned() };
    match jiff::Timestamp::now().as_second() - time.as_second() {
        seconds @ ..120 => format!("{} s ago", seconds.max(0)),
        seconds @ ..7_200 => format!("{} min ago", seconds / 60),
        seconds => format!("{} h ago", seconds / 3_600),
    }
}

fn show(status: &StatusAnswer) -> Result<()> {
    let tracker = &status.tracker;
    let process = tracker.process.map_or_else(|| "a process".to_owned(), |number| format!("process {number}"));
    match (tracker.running, &tracker.since, &tracker.reported) {
        (true, Some(since), _) => line(format!("a tracker runs: {process}, since {since}"))?,
        (true, None, _) => line(format!("{process} writes to the store"))?,
        (false, _, Some(reported)) => line(format!("no tracker runs; the last one reported {}", ago(reported)))?,
        (false, _, None) => line("no tracker runs")?,
    }
    for source in &status.sources {
        let documents = count(source.documents, "document", "documents");
        line(format!("{} ({}): {documents}", source.name, source.kind))?;
        for view in &source.views {
            let behind = lag_text(view);
            line(format!(
                "  {}  {}  epoch {}  {}  {behind}",
                view.name,
                short(&view.commit),
                view.epoch,
                count(view.live_entries, "entry", "entries")
            ))?;
        }
        if !source.skipped.is_empty() {
            let skipped: Vec<String> =
                source.skipped.iter().map(|(reason, number)| format!("{number} {reason}")).collect();
            line(format!("  skipped: {}", skipped.join(", ")))?;
        }
        if !source.without_syntax.is_empty() {
            let cut: Vec<String> =
                source.without_syntax.iter().map(|(reason, number)| format!("{number} {reason}")).collect();
            line(format!("  cut without their syntax: {} (`explain PATH` says why)", cut.join(", ")))?;
        }
        show_unsure(&source.unsure)?;
        if let Some(tracker) = &source.tracker {
            show_tracker(tracker)?;
        }
        for fault in &source.faults {
            line(format!("  fault: {} ({}): {}", fault.path.path, fault.stage, fault.error))?;
        }
    }
    let sizes: Vec<String> = status.bytes.iter().map(|(part, size)| format!("{part} {}", bytes(*size))).collect();
    line(format!("{} stored; {}", count(status.entries, "entry", "entries"), sizes.join(", ")))?;
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

//! `status`: the content of the store, how far behind its sources it is, and its problems.
//!
//! In: a store, and its sources if they can be read. Out: one object, or lines for people.

use super::output::{bytes, count, json_line, line, short};
use super::{Global, Outcome};
use crate::engine::load_rules;
use crate::search::Searcher;
use crate::search::show_time;
use crate::serve::wire::{
    CollectedStatus, FaultStatus, RunningStatus, SourceStatus, StatusAnswer, TrackerStatus, TroubleStatus, UnsureFile,
    UnsureStatus, ViewStatus, WirePath, WorkCounts,
};
use crate::store::{Layout, SourceKind, SourceRecord, SourceState, TrackerState, writer};
use crate::watch::git::GitSource;
use crate::watch::worktree::WORKTREE_VIEW;
use anyhow::Result;
use dataflows::data::{Cleaned, Conversion, Document, Evidence, Outcome as DocumentOutcome};
use dataflows::memo::Memo;
use dataflows::rules::Rules;
use snapshots::{CommitId, Ordinal, SourceId};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Most documents with an unsure encoding that are named.
const EXAMPLES: usize = 3;

/// Runs `status`.
pub(super) fn run(global: &Global) -> Result<Outcome> {
    let searcher = Searcher::open(&global.layout())?;
    let reader = searcher.reader();
    let tracker = TrackerState::read(&global.layout());
    let rules = load_rules(global.config()?.rules.as_deref())?;
    let mut sources = Vec::new();
    for (id, record) in searcher.revisions().sources() {
        sources.push(source_status(&searcher, &rules, *id, record, tracker.as_ref())?);
    }
    // Sources that never existed have no row yet.
    let is_known = |name: &String| searcher.revisions().sources().iter().any(|(_, record)| record.name == *name);
    let unknown = tracker.iter().flat_map(|state| &state.sources).filter(|(name, _)| !is_known(name));
    sources.extend(unknown.map(|(name, state)| missing_source(name, state)));
    let mut work = WorkCounts::default();
    reader.catalogue().receipts()?.iter().for_each(|receipt| work.add(receipt));
    let bytes = reader.database().bytes_by_part(reader.layout())?;
    let entries = u64::from(reader.catalogue().next_entry()?);
    let last_collection = reader.database().last_collection()?.map(CollectedStatus::from);
    let tracker = running(&global.layout(), tracker.as_ref());
    let answer = StatusAnswer { sources, entries, bytes, work, last_collection, tracker };
    if global.json {
        json_line(&answer)?
    } else {
        show(&answer)?
    }
    Ok(Outcome::Done)
}

/// Finds out whether a tracker runs, by the writer's lock.
fn running(layout: &Layout, report: Option<&TrackerState>) -> RunningStatus {
    let holder = writer(layout);
    let process = holder.flatten();
    let own = report.filter(|report| process == Some(report.process) && report.started > 0);
    RunningStatus {
        running: holder.is_some(),
        process,
        since: own.map(|report| show_time(report.started)),
        reported: report.map(|report| show_time(report.written)),
    }
}

/// Describes a source that a tracker cannot find and the store does not have.
fn missing_source(name: &str, state: &SourceState) -> SourceStatus {
    let kind = if state.kind == "directory" { "directory" } else { "git" };
    let (skipped, tracker) = (BTreeMap::new(), Some(TrackerStatus::from(state)));
    let (name, unsure, without_syntax) = (name.to_owned(), UnsureStatus::default(), BTreeMap::new());
    let (views, faults) = (Vec::new(), Vec::new());
    SourceStatus { name, kind, views, documents: 0, skipped, without_syntax, unsure, faults, tracker }
}

/// How far a view is behind its source, as far as that is known.
#[derive(Default)]
struct Lag {
    behind: Option<u64>,
    looked_at: Option<String>,
    unknown: Option<String>,
}

/// Asks a repository how far behind it a view is.
fn lag(git: &Result<GitSource, String>, view: &str, stands: CommitId) -> Lag {
    let git = match git {
        Ok(git) => git,
        Err(why) => return Lag { unknown: Some(why.clone()), ..Lag::default() },
    };
    let behind = git.resolve(view).and_then(|now| {
        let commits = git.new_commits(stands, now)?;
        // A head that was reset is elsewhere, although nothing is new.
        Ok(if commits.is_empty() && now != stands { 1 } else { commits.len() as u64 })
    });
    match behind {
        Ok(behind) => Lag { behind: Some(behind), ..Lag::default() },
        Err(error) => Lag { unknown: Some(error.to_string()), ..Lag::default() },
    }
}

fn source_status(
    searcher: &Searcher,
    rules: &Rules,
    id: SourceId,
    record: &SourceRecord,
    tracker: Option<&TrackerState>,
) -> Result<SourceStatus> {
    let (reader, revisions) = (searcher.reader(), searcher.revisions());
    let repository = match (revisions.repository(record), record.location.is_empty()) {
        (Some(git), _) => Ok(git),
        (None, true) => Err("the source was imported and is not tracked here".to_owned()),
        (None, false) => Err(GitSource::open(Path::new(OsStr::from_bytes(&record.location)))
            .err()
            .map_or_else(|| "it could not be opened".to_owned(), |error| error.to_string())),
    };
    let state = tracker.and_then(|state| state.sources.get(&record.name));
    let looked_at = |what: &str| state?.watches.get(what)?.last_reconcile.map(show_time);
    let mut views = Vec::new();
    reader.with_archive(|archive| {
        let heads: BTreeMap<_, _> = archive.views().collect();
        for (view, name) in revisions.views_of(id) {
            let Some(head) = heads.get(&view) else { continue };
            let Some(version) = archive.version(head.version) else { continue };
            let is_worktree = name == WORKTREE_VIEW && !repository.as_ref().is_ok_and(|git| git.resolve(name).is_ok());
            let Lag { behind, looked_at, unknown } = match record.kind {
                SourceKind::Directory => Lag { looked_at: looked_at("files"), ..Lag::default() },
                SourceKind::Git if is_worktree => Lag { looked_at: looked_at(name), ..Lag::default() },
                SourceKind::Git => lag(&repository, name, version.commit),
                SourceKind::Trace => Lag { behind: Some(0), ..Lag::default() },
            };
            views.push(ViewStatus {
                name: name.to_owned(),
                commit: version.commit.to_string(),
                epoch: head.epoch.get(),
                behind,
                looked_at,
                unknown,
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
        without_syntax: BTreeMap::new(),
        unsure: UnsureStatus::default(),
        faults: Vec::new(),
        tracker: state.map(TrackerStatus::from),
    };
    for watch in state.iter().flat_map(|state| state.watches.values()) {
        for (reason, number) in [("store", watch.stores), ("editor", watch.editors)] {
            if number > 0 {
                *status.skipped.entry(reason).or_default() += number;
            }
        }
    }
    let selected = revisions.select(reader, Some(&record.name), None, None).unwrap_or_default();
    for selected in selected {
        let alive = reader.with_archive(|archive| archive.bitmaps(selected.version))?;
        for document in reader.catalogue().documents(alive.documents.iter().map(Ordinal::new))? {
            match document.outcome {
                DocumentOutcome::Indexed { chunking, .. } => {
                    status.documents += 1;
                    if let Some(why) = reader.memo().no_syntax(chunking)? {
                        *status.without_syntax.entry(why.as_str()).or_default() += 1;
                    }
                    if let Some(file) = unsure(searcher, rules, &document) {
                        status.unsure.count += 1;
                        status.unsure.first.push(file);
                    }
                }
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
    status.unsure.first.sort_by(|left, right| left.path.path.cmp(&right.path.path));
    status.unsure.first.truncate(EXAMPLES);
    Ok(status)
}

/// Returns the trouble, its first time, and the time of the next try.
fn trouble(trouble: &TroubleStatus) -> String {
    let next = match &trouble.next_try {
        Some(next) => format!("next try {next}"),
        None => "tried again when it changes".to_owned(),
    };
    format!("{} (since {}, {next})", &trouble.what, trouble.since)
}

/// Returns the guessed encoding of a document, if it may be wrong.
fn unsure(searcher: &Searcher, rules: &Rules, document: &Document) -> Option<UnsureFile> {
    let rule = rules.rule(rules.for_path(&document.path));
    match searcher.reader().memo().cleaned(rules.document_id(document))? {
        Cleaned::Converted { from: Conversion { encoding, by: Evidence::Unsure }, .. } => {
            Some(UnsureFile { path: WirePath::from(&document.path), encoding, rule: rule.name().to_owned() })
        }
        _ => None,
    }
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

/// Returns how long ago a time was, in words.
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

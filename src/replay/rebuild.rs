//! Compares with rebuilds: some epochs are built again, each as the only commit of an empty store.
//!
//! In: a trace, and the measurements of the replay. Out: time and work of each rebuild beside those of the mean commit.
//!
//! **Invariant:** a rebuild uses the same engine with the same settings; only the initial store differs.

use super::ReplayError;
use super::report::RebuildRow;
use super::run::Knobs;
use super::sample::Sample;
use crate::config::Config;
use crate::engine::{Extras, Stop, TraceFeed, Tracker, TrackerOptions};
use crate::index::apply::Published;
use crate::store::Layout;
use crate::trace::record::arrivals;
use crate::trace::{EpochRecord, Trace, TraceStep};
use dataflows::rules::Rules;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Rebuilds so many of the measured epochs from scratch, evenly spread.
pub(super) fn sampled(
    trace: &Arc<Trace>,
    knobs: &Knobs,
    rules: &Arc<Rules>,
    samples: &[Sample],
) -> Result<Vec<RebuildRow>, ReplayError> {
    let wanted = knobs.rebuilds.min(samples.len());
    let mut rows = Vec::new();
    for turn in 1..=wanted {
        let sample = &samples[samples.len() * turn / wanted - 1];
        if knobs.stop.is_asked() {
            break;
        }
        rows.extend(rebuild(trace, knobs, rules, sample)?);
    }
    Ok(rows)
}

fn rebuild(
    trace: &Arc<Trace>,
    knobs: &Knobs,
    rules: &Arc<Rules>,
    sample: &Sample,
) -> Result<Option<RebuildRow>, ReplayError> {
    let record = trace.epoch(sample.number)?;
    let mut heads = trace.heads_after(sample.number + 1)?;
    let TraceStep::Commit { .. } = record.step else { return Ok(None) };
    let files = heads.remove(&record.head().map(str::to_owned)).unwrap_or_default();
    let alone = EpochRecord { arrived: 0, changes: arrivals(files), step: record.step };
    let folder = tempfile::tempdir().map_err(ReplayError::Folder)?;
    let published: Arc<Mutex<Option<Published>>> = Arc::default();
    let sink = published.clone();
    let options = TrackerOptions {
        layout: Layout::new(folder.path().join("store")),
        config: Config { workers: Some(knobs.workers), pool: Some(knobs.pool), ..Config::default() },
        on_published: Box::new(move |line| {
            *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.clone());
        }),
        stop: Stop::default(),
    };
    let feed = TraceFeed { name: "rebuild".to_owned(), trace: trace.clone(), epochs: Some(vec![alone]), pace: None };
    let extras = Extras {
        traces: vec![feed],
        rules: Some(rules.clone()),
        embedder: Some(knobs.model.embedder()),
        parsing: knobs.parsing.clone(),
        ..Extras::default()
    };
    let started = Instant::now();
    let mut tracker = Tracker::open_with(options, extras)?;
    tracker.catch_up()?;
    let seconds = started.elapsed().as_secs_f64();
    drop(tracker);
    let line = published.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(line.map(|line| RebuildRow {
        epoch: sample.number,
        seconds,
        embedded: line.receipt.embedded,
        inserted: line.receipt.inserted,
        agrees: line.version.digest == sample.digest,
    }))
}

//! Replays the graph alone: epochs go through the dataflow and nothing is published, which shows the graph's own cost.
//!
//! In: a trace. Out: samples with the digest of each head, computed from the entries that the graph emits.
//!
//! **Invariant:** it is the engine's graph over an in-memory memo; digests are compared as in a whole replay.

use super::ReplayError;
use super::reckon::Facts;
use super::run::{Expected, Knobs};
use super::sample::{Readings, Sample, written};
use crate::engine::EngineError;
use crate::trace::{Trace, TraceContents};
use crate::watch;
use dataflows::data::{ContentId, Epoch, View};
use dataflows::memo::{Content, Contents, MemoryMemo, ReadError};
use dataflows::rules::Rules;
use dataflows::run::{EpochDone, Mill, MillParts, MillThreads};
use rustc_hash::FxHashMap;
use snapshots::Digest;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Epochs that may be in progress, as in the engine.
const MAX_OPEN: usize = 96;

/// The contents of a trace, for the graph.
struct FromTrace(TraceContents);

impl Contents for FromTrace {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        let missing = |error: watch::ReadError| ReadError::Missing { content, reason: error.to_string() };
        watch::Contents::read(&self.0, content, max_bytes).map_err(missing)
    }
}

/// Replays a trace through the graph alone.
pub(super) fn alone(
    trace: &Arc<Trace>,
    knobs: &Knobs,
    rules: &Arc<Rules>,
    expected: &[Expected],
    mut on_epoch: Box<dyn FnMut(&Sample) + Send>,
) -> Result<(Vec<Sample>, Facts), ReplayError> {
    let parts = MillParts {
        rules: rules.clone(),
        memo: Arc::new(MemoryMemo::default()),
        contents: Arc::new(FromTrace(TraceContents(trace.clone()))),
        embedder: knobs.model.embedder(),
        outliner: knobs.parsing.outliner().map_err(EngineError::from)?,
    };
    if knobs.warm {
        pass(trace, knobs, parts.clone(), expected, &mut |_| {})?;
    }
    let before = written();
    let started = Instant::now();
    let samples = pass(trace, knobs, parts, expected, &mut *on_epoch)?;
    let seconds = started.elapsed().as_secs_f64();
    Ok((samples, Facts { seconds, closing: 0.0, written: written().saturating_sub(before), store: 0 }))
}

/// An epoch in progress.
struct Open {
    view: View,
    is_commit: bool,
    begun: Instant,
    diff: f64,
}

fn pass(
    trace: &Trace,
    knobs: &Knobs,
    parts: MillParts,
    expected: &[Expected],
    on_epoch: &mut dyn FnMut(&Sample),
) -> Result<Vec<Sample>, ReplayError> {
    let mut mill = Mill::start(parts, MillThreads { workers: knobs.workers, pool: knobs.pool })?;
    let finished = mill.finished().ok_or(dataflows::run::MillError::Stopped)?;
    let mut heads: FxHashMap<Option<String>, View> = FxHashMap::default();
    let mut digests: FxHashMap<View, Digest> = FxHashMap::default();
    let mut waiting: VecDeque<&Expected> = expected.iter().collect();
    let mut open: VecDeque<Open> = VecDeque::new();
    let mut readings = Readings::default();
    let mut samples = Vec::with_capacity(expected.len());
    let started = Instant::now();
    let mut take = |done: EpochDone, open: &mut VecDeque<Open>| {
        let Some(Open { view, is_commit, begun, diff }) = open.pop_front() else { return };
        let digest = digests.entry(view).or_default();
        let mut moved = [0, 0];
        for (_, entry, change) in &done.entries {
            if *change > 0 {
                digest.add(&entry.id().to_bytes());
                moved[0] += 1;
            } else {
                digest.remove(&entry.id().to_bytes());
                moved[1] += 1;
            }
        }
        if !is_commit {
            return;
        }
        let Some(next) = waiting.pop_front() else { return };
        let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
        let work = &done.work;
        let (memory, processor) = readings.take();
        let sample = Sample {
            number: next.number,
            commit: next.record.commit,
            at: started.elapsed().as_secs_f64(),
            latency: milliseconds(begun.elapsed()),
            paths: next.paths,
            bytes: next.bytes,
            stages: [
                diff,
                milliseconds(work.clean.time),
                milliseconds(work.chunk.time),
                milliseconds(work.embed.time),
                0.0,
            ],
            calls: [work.clean.calls, work.chunk.calls, work.embed.calls],
            hits: work.cache_hits(),
            moved,
            digest: *digest,
            memory,
            processor,
        };
        on_epoch(&sample);
        samples.push(sample);
    };
    for number in 0..trace.len() {
        if knobs.stop.is_asked() {
            break;
        }
        let begun = Instant::now();
        let record = trace.epoch(number)?;
        let next = u32::try_from(heads.len()).unwrap_or(u32::MAX);
        let view = *heads.entry(record.head().map(str::to_owned)).or_insert(View(next));
        let diff = begun.elapsed().as_secs_f64() * 1000.0;
        open.push_back(Open { view, is_commit: record.commit().is_some(), begun, diff });
        mill.feed(Epoch(number as u64 + 1), view, record.changes)?;
        // The first load is finished before the next epoch is fed, as in the engine.
        while open.len() > if number == 0 { 0 } else { MAX_OPEN } {
            let done = finished.recv().map_err(|_| dataflows::run::MillError::Stopped)?;
            take(done, &mut open);
        }
    }
    while !open.is_empty() {
        let done = finished.recv().map_err(|_| dataflows::run::MillError::Stopped)?;
        take(done, &mut open);
    }
    mill.stop()?;
    Ok(samples)
}

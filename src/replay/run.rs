//! Replays through the engine: the same tracker, graph, publisher and indexes as `track`, with a trace as the source.
//!
//! In: a trace and settings. Out: a [`Report`]. **Invariant:** a replay into an existing store continues at its last version, so
//! a killed and restarted replay ends with the same versions.

use super::reckon::Facts;
use super::report::Report;
use super::sample::{Readings, Sample, written};
use super::work::Proof;
use super::{ReplayError, graph, rebuild};
use crate::config::Config;
use crate::embedders::{self, NoModel};
use crate::engine::{Extras, Stop, TraceFeed, Tracker, TrackerOptions};
use crate::index::apply::Published;
use crate::store::Layout;
use crate::trace::{EpochRecord, Trace};
use crate::workers::Parsing;
use dataflows::data::ContentId;
use dataflows::embed::Embedder;
use dataflows::rules::Rules;
use rustc_hash::FxHashSet;
use snapshots::Digest;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The embedding model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Model {
    /// The one that is compiled in.
    #[default]
    BuiltIn,
    /// None: texts get no vectors.
    None,
}

impl Model {
    pub(super) fn embedder(self) -> Arc<dyn Embedder> {
        match self {
            Self::BuiltIn => embedders::configured(),
            Self::None => Arc::new(NoModel),
        }
    }

    /// Returns the model's name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::None => "none",
        }
    }
}

/// How a trace is replayed.
#[derive(Clone, Debug)]
pub struct Knobs {
    /// Threads of the dataflow.
    pub workers: usize,
    /// Threads on which contents are cleaned, cut and embedded.
    pub pool: usize,
    /// Most epochs that share one publish.
    pub batch: usize,
    /// Most files of one slice of a large step; without it the engine's default.
    pub slice: Option<usize>,
    /// The speed relative to the recording; as fast as possible without it.
    pub pace: Option<f64>,
    /// Whether indexes are written; without them the graph runs alone.
    pub index: bool,
    /// The embedding model.
    pub model: Model,
    /// Whether the graph alone runs twice and the second run, over a warm memo, is measured.
    pub warm: bool,
    /// Whether the work is compared with its lower bound.
    pub check_work: bool,
    /// The number of epochs that are rebuilt from scratch.
    pub rebuilds: usize,
    /// The store to fill or to continue; a temporary one without it.
    pub data: Option<PathBuf>,
    /// Asked to end early.
    pub stop: Stop,
    /// Where texts are parsed.
    pub parsing: Parsing,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            workers: 1,
            pool: std::thread::available_parallelism().map_or(1, usize::from),
            batch: 64,
            slice: None,
            pace: None,
            index: true,
            model: Model::BuiltIn,
            warm: false,
            check_work: true,
            rebuilds: 0,
            data: None,
            stop: Stop::default(),
            parsing: Parsing::default(),
        }
    }
}

/// The known data of an epoch before its replay.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) number: usize,
    pub(super) record: Step,
    pub(super) paths: u64,
    pub(super) bytes: u64,
}

/// The part of a record that identifies a published version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) commit: snapshots::CommitId,
    pub(super) digest: Option<Digest>,
}

/// Replays a trace and reports.
///
/// `on_epoch` is called with every measured epoch.
///
/// # Errors
/// If the trace, the store or the graph fails. A wrong digest is no error: the report names the epochs.
pub fn replay(
    trace: &Arc<Trace>,
    knobs: &Knobs,
    on_epoch: Box<dyn FnMut(&Sample) + Send>,
) -> Result<Report, ReplayError> {
    let rules = Arc::new(rules(trace)?);
    let mut expected = expected(trace)?;
    let recorded_under = trace.about().fingerprint;
    let other_rules = recorded_under != [0; 16] && recorded_under != rules.fingerprint().to_bytes();
    if other_rules {
        // Other rules cut otherwise, so the recorded digests cannot be compared.
        expected.iter_mut().for_each(|expected| expected.record.digest = None);
    }
    let (samples, facts) = if knobs.index {
        through_engine(trace, knobs, &rules, &expected, on_epoch)?
    } else {
        graph::alone(trace, knobs, &rules, &expected, on_epoch)?
    };
    let proof = if knobs.check_work { Some(Proof::compute(trace, rules.clone())?) } else { None };
    let rebuilds = rebuild::sampled(trace, knobs, &rules, &samples)?;
    let mut report = Report::new(trace, knobs, &expected, samples, facts, proof.as_ref(), rebuilds);
    report.proof.other_rules = other_rules;
    Ok(report)
}

/// Returns the rules that the trace was recorded under.
pub(super) fn rules(trace: &Trace) -> Result<Rules, ReplayError> {
    match trace.about().rules.as_str() {
        "" => Ok(Rules::built_in()),
        text => Rules::parse(text).map_err(|source| ReplayError::Rules { path: trace.path().to_owned(), source }),
    }
}

/// Reads the known data of every epoch that leads to a commit.
fn expected(trace: &Trace) -> Result<Vec<Expected>, ReplayError> {
    let mut seen: FxHashSet<ContentId> = FxHashSet::default();
    let mut expected = Vec::new();
    for (number, record) in trace.epochs().enumerate() {
        let record: EpochRecord = record?;
        let fresh = record.changes.iter().filter_map(|change| change.after).filter(|state| seen.insert(state.content));
        let bytes = fresh.filter_map(|state| trace.content_size(state.content)).sum();
        let paths = record.changes.len() as u64;
        if let Some(commit) = record.commit() {
            let record = Step { commit, digest: record.digest() };
            expected.push(Expected { number, record, paths, bytes });
        }
    }
    Ok(expected)
}

fn through_engine(
    trace: &Arc<Trace>,
    knobs: &Knobs,
    rules: &Arc<Rules>,
    expected: &[Expected],
    mut on_epoch: Box<dyn FnMut(&Sample) + Send>,
) -> Result<(Vec<Sample>, Facts), ReplayError> {
    let temporary = match &knobs.data {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(ReplayError::Folder)?),
    };
    let store = knobs.data.clone().or_else(|| temporary.as_ref().map(|folder| folder.path().join("store")));
    let layout = Layout::new(store.unwrap_or_default());
    let gathered: Arc<Mutex<Vec<Sample>>> = Arc::default();
    let sink = gathered.clone();
    let mut waiting: VecDeque<Expected> = expected.iter().cloned().collect();
    let mut readings = Readings::default();
    let before = written();
    let started = Instant::now();
    let on_published = Box::new(move |published: &Published| {
        // Epochs that the store already has come first; a repaired version is none of these epochs.
        while let Some(next) = waiting.pop_front() {
            if next.record.commit == published.version.commit {
                let sample = sample(&next, published, started, &mut readings);
                on_epoch(&sample);
                sink.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
                return;
            }
        }
    });
    let config = Config { workers: Some(knobs.workers), pool: Some(knobs.pool), ..Config::default() };
    let options = TrackerOptions { layout: layout.clone(), config, on_published, stop: knobs.stop.clone() };
    let name = match trace.about().source.as_str() {
        "" => "trace",
        name => name,
    };
    let feed = TraceFeed { name: name.to_owned(), trace: trace.clone(), epochs: None, pace: knobs.pace };
    let extras = Extras {
        traces: vec![feed],
        rules: Some(rules.clone()),
        embedder: Some(knobs.model.embedder()),
        max_batch: Some(knobs.batch),
        max_slice: knobs.slice,
        parsing: knobs.parsing.clone(),
        ..Extras::default()
    };
    let mut tracker = Tracker::open_with(options, extras)?;
    tracker.catch_up()?;
    let seconds = started.elapsed().as_secs_f64();
    drop(tracker);
    let facts = Facts {
        seconds,
        closing: started.elapsed().as_secs_f64() - seconds,
        written: written().saturating_sub(before),
        store: folder_bytes(layout.root()),
    };
    let samples = std::mem::take(&mut *gathered.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((samples, facts))
}

fn sample(expected: &Expected, published: &Published, started: Instant, readings: &mut Readings) -> Sample {
    let (memory, processor) = readings.take();
    let receipt = &published.receipt;
    let [diff, clean, chunk, embed, apply, total] = receipt.ms.map(f64::from);
    Sample {
        number: expected.number,
        commit: published.version.commit,
        at: started.elapsed().as_secs_f64(),
        latency: total,
        paths: expected.paths,
        bytes: expected.bytes,
        stages: [diff, clean, chunk, embed, apply],
        calls: [receipt.cleaned, receipt.chunked, receipt.embedded],
        hits: receipt.cache_hits,
        moved: [receipt.inserted, receipt.retracted],
        digest: published.version.digest,
        memory,
        processor,
    }
}

/// Returns the bytes of all files below a folder.
fn folder_bytes(folder: &std::path::Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        // Pages that the database has never touched take no disk space.
        Ok(metadata) => std::os::unix::fs::MetadataExt::blocks(&metadata) * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

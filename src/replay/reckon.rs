//! Computes figures from samples: rates, distributions, ratios, trends.
//!
//! In: samples, the proof, rebuilds. Out: a [`Report`]. **Invariant:** the first load is separate from the commits after it. A
//! ratio of work divides the engine's calls by the inputs that were counted without the engine.

use super::report::{
    AgainstRebuild, Differing, FirstLoad, Histogram, ProofReport, Ratio, RebuildRow, Report, Setting, StageTimes,
    TraceFacts, Trend, WorkReport,
};
use super::run::{Expected, Knobs};
use super::sample::Sample;
use super::work::Proof;
use crate::trace::Trace;
use hdrhistogram::Histogram as Hdr;
use snapshots::Digest;

/// Epochs at each end that are compared for a trend.
const ENDS: usize = 100;
/// Most differing epochs that are named.
const NAMED: usize = 10;
/// The largest latency that the histogram distinguishes, in microseconds: an hour.
const LONGEST: u64 = 3_600_000_000;

/// Readings of the process beside the samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) seconds: f64,
    pub(super) closing: f64,
    pub(super) written: u64,
    pub(super) store: u64,
}

impl Report {
    pub(super) fn new(
        trace: &Trace,
        knobs: &Knobs,
        expected: &[Expected],
        samples: Vec<Sample>,
        facts: Facts,
        proof: Option<&Proof>,
        rebuilds: Vec<RebuildRow>,
    ) -> Self {
        let first = samples.iter().find(|sample| sample.number == 0);
        let rest: Vec<&Sample> = samples.iter().filter(|sample| sample.number > 0).collect();
        let begun = first.map_or(0.0, |first| first.at);
        let span = rest.last().map_or(0.0, |last| last.at - begun);
        let a_second = |number: f64| if span > 0.0 { number / span } else { 0.0 };
        let sum = |figure: fn(&Sample) -> u64| rest.iter().map(|sample| figure(sample)).sum::<u64>();
        let stage = |at: usize| rest.iter().map(|sample| sample.stages[at]).sum::<f64>();
        let against_rebuild = against(&rebuilds, &rest, span);
        Self {
            trace: TraceFacts::of(trace),
            setting: Setting::of(knobs),
            proof: ProofReport::of(expected, &samples, proof),
            first_load: first.map(|first| FirstLoad {
                seconds: first.at,
                files: first.paths,
                megabytes_per_second: first.bytes as f64 / 1e6 / first.at.max(1e-9),
                entries: first.moved[0],
            }),
            epochs: rest.len() as u64,
            seconds: facts.seconds,
            closing_seconds: facts.closing,
            epochs_per_second: a_second(rest.len() as f64),
            processor_ms_per_epoch: {
                let used = rest.last().map_or(0.0, |last| last.processor - first.map_or(0.0, |first| first.processor));
                used * 1000.0 / rest.len().max(1) as f64
            },
            documents_per_second: a_second(sum(|sample| sample.calls[0]) as f64),
            megabytes_per_second: a_second(sum(|sample| sample.bytes) as f64 / 1e6),
            entries_moved: [sum(|sample| sample.moved[0]), sum(|sample| sample.moved[1])],
            latency_ms: latency(&rest),
            stages_ms: StageTimes {
                diff: stage(0),
                clean: stage(1),
                chunk: stage(2),
                embed: stage(3),
                apply: stage(4),
            },
            work: proof.map(|proof| WorkReport::of(&samples, proof, knobs.index)),
            cache_hits: samples.iter().map(|sample| sample.hits).sum(),
            written_bytes: facts.written,
            store_bytes: facts.store,
            memory_bytes: [
                samples.iter().map(|sample| sample.memory).max().unwrap_or(0),
                samples.last().map_or(0, |sample| sample.memory),
            ],
            trend: trend(&rest),
            rebuilds,
            against_rebuild,
            samples,
        }
    }
}

impl TraceFacts {
    fn of(trace: &Trace) -> Self {
        let about = trace.about();
        let (contents, content_bytes) = trace.contents_total();
        Self {
            path: trace.path().display().to_string(),
            source: about.source.clone(),
            range: about.range.clone(),
            corpus: about.corpus.iter().map(|byte| format!("{byte:02x}")).collect(),
            redacted: about.redacted,
            epochs: trace.len() as u64,
            contents,
            content_bytes,
            bytes: trace.bytes(),
            cut: trace.cut(),
        }
    }
}

impl Setting {
    fn of(knobs: &Knobs) -> Self {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processors.lines().find_map(|line| line.strip_prefix("model name\t: "));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            processor: processor.unwrap_or("unknown processor").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from) as u64,
            workers: knobs.workers as u64,
            pool: knobs.pool as u64,
            batch: knobs.batch as u64,
            pace: knobs.pace,
            index: knobs.index,
            embedder: knobs.model.as_str(),
            warm: knobs.warm,
        }
    }
}

impl Ratio {
    fn of(did: u64, least: u64) -> Self {
        let ratio = if did == least { 1.0 } else { did as f64 / least as f64 };
        Self { did, least, ratio }
    }
}

impl ProofReport {
    fn of(expected: &[Expected], samples: &[Sample], proof: Option<&Proof>) -> Self {
        let mut report =
            Self { left_out: (expected.len() - samples.len().min(expected.len())) as u64, ..Self::default() };
        let mut recorded = expected.iter();
        for sample in samples {
            let step = recorded.find(|step| step.number == sample.number);
            let against = [
                ("recorded", step.and_then(|step| step.record.digest)),
                ("computed", proof.and_then(|proof| proof.of(sample.number).digest)),
            ];
            report.recorded += u64::from(against[0].1.is_some());
            report.computed += u64::from(against[1].1.is_some());
            report.compared += u64::from(against.iter().any(|(_, digest)| digest.is_some()));
            let wrong = against
                .into_iter()
                .find_map(|(against, digest)| Some((against, digest?)).filter(|d| d.1 != sample.digest));
            if let Some((against, digest)) = wrong {
                report.differ += 1;
                if report.differing.len() < NAMED {
                    report.differing.push(differing(sample, against, digest));
                }
            }
        }
        report
    }
}

fn differing(sample: &Sample, against: &'static str, expected: Digest) -> Differing {
    Differing {
        epoch: sample.number as u64,
        commit: sample.commit.to_string(),
        against,
        expected: expected.to_string(),
        found: sample.digest.to_string(),
    }
}

impl WorkReport {
    fn of(samples: &[Sample], proof: &Proof, published: bool) -> Self {
        let (mut did, mut least, mut off) = ([0; 5], [0; 5], 0);
        for sample in samples {
            let bound = proof.of(sample.number);
            let ours = [sample.calls[0], sample.calls[1], sample.calls[2], sample.moved[0], sample.moved[1]];
            let theirs = [bound.cleaned, bound.chunked, bound.embedded, bound.inserted, bound.retracted];
            // The graph's moves for a head are not a commit's moves against its parent.
            let compared = if published { 5 } else { 3 };
            off += u64::from(ours[..compared] != theirs[..compared]);
            for at in 0..5 {
                did[at] += ours[at];
                least[at] += theirs[at];
            }
        }
        let ratio = |at: usize| Ratio::of(did[at], least[at]);
        Self {
            cleaned: ratio(0),
            chunked: ratio(1),
            embedded: ratio(2),
            inserted: published.then(|| ratio(3)),
            retracted: published.then(|| ratio(4)),
            epochs_off: off,
        }
    }
}

fn latency(samples: &[&Sample]) -> Option<Histogram> {
    let mut histogram = Hdr::<u64>::new_with_bounds(1, LONGEST, 3).ok()?;
    for sample in samples {
        histogram.saturating_record((sample.latency * 1000.0) as u64);
    }
    let at = |share: f64| histogram.value_at_quantile(share) as f64 / 1000.0;
    (!histogram.is_empty()).then(|| Histogram {
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        max: histogram.max() as f64 / 1000.0,
        mean: histogram.mean() / 1000.0,
    })
}

/// Fits a line through (size, cost) by least squares, and compares both ends with it.
fn trend(samples: &[&Sample]) -> Option<Trend> {
    let number = samples.len() as f64;
    let ends = ENDS.min(samples.len() / 2);
    if ends == 0 {
        return None;
    }
    let points: Vec<(f64, f64)> = samples.iter().map(|sample| (sample.bytes as f64 / 1e6, sample.cost())).collect();
    let mean = |figure: fn(&(f64, f64)) -> f64| points.iter().map(figure).sum::<f64>() / number;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in &points {
        xx += (x - mean_x) * (x - mean_x);
        xy += (x - mean_x) * (y - mean_y);
        yy += (y - mean_y) * (y - mean_y);
    }
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    let base = mean_y - slope * mean_x;
    let correlation = if xx > 0.0 && yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 };
    let share = |points: &[(f64, f64)]| {
        let cost: f64 = points.iter().map(|point| point.1).sum();
        let fitted: f64 = points.iter().map(|point| base + slope * point.0).sum();
        cost / fitted
    };
    let last_against_first = share(&points[points.len() - ends..]) / share(&points[..ends]);
    Some(Trend { base_ms: base, ms_per_megabyte: slope, correlation, last_against_first, ends: ends as u64 })
}

fn against(rebuilds: &[RebuildRow], commits: &[&Sample], span: f64) -> Option<AgainstRebuild> {
    if rebuilds.is_empty() || commits.is_empty() {
        return None;
    }
    let (rebuilt, number) = (rebuilds.len() as f64, commits.len() as f64);
    let commit = |figure: fn(&Sample) -> u64| commits.iter().map(|sample| figure(sample)).sum::<u64>() as f64 / number;
    let rebuild = |figure: fn(&RebuildRow) -> f64| rebuilds.iter().map(figure).sum::<f64>() / rebuilt;
    Some(AgainstRebuild {
        time: span / number / rebuild(|row| row.seconds),
        embedded: commit(|sample| sample.calls[2]) / rebuild(|row| row.embedded as f64),
        moved: commit(|sample| sample.moved[0] + sample.moved[1]) / rebuild(|row| row.inserted as f64),
    })
}

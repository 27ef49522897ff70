//! The report as a page: tables, and plots over epochs, sizes and time.
//!
//! In: a [`Report`]. Out: self-contained HTML, so it can be kept and sent. **Invariant:** all text from a trace is escaped.

use super::plot::{Plot, STYLE, bars, escape, file};
use super::report::Report;
use super::sample::Sample;
use std::fmt::Write;

/// How the page looks around its plots.
const PAGE: &str = "
body { margin: 2rem auto; max-width: 84rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.4rem; margin-bottom: .2rem; } p { color: var(--soft); margin: .2rem 0; overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; margin: 1rem 0; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .2rem .9rem .2rem 0; text-align: left; border-bottom: 1px solid var(--grid); }
td + td { font-variant-numeric: tabular-nums; } svg { width: 100%; height: auto; } .bad { color: var(--two); font-weight: 600; }
";

/// Returns the report as a page.
#[must_use]
pub fn page(report: &Report) -> String {
    let verdict = if report.is_proven() {
        format!("{} digests compared, all as they must be", report.proof.compared)
    } else {
        format!("<span class=\"bad\">{} epochs differ</span>", report.proof.differ)
    };
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>tidemill replay</title><style>{STYLE}{PAGE}</style><h1>Replay of {}</h1><p>{}</p><p>{verdict}</p>",
        escape(&report.trace.line()),
        escape(&report.setting.line())
    );
    html.push_str("<table>");
    for (what, figure) in report.rows() {
        let _ = write!(html, "<tr><td>{}</td><td>{}</td></tr>", escape(&what), escape(&figure));
    }
    html.push_str("</table><div class=\"plots\">");
    for (_, plot) in plots(report) {
        html.push_str(&plot);
    }
    html.push_str("</div></html>\n");
    html
}

/// Returns the plots of the report as SVG files: names and contents.
#[must_use]
pub fn plot_files(report: &Report) -> Vec<(String, String)> {
    plots(report).into_iter().map(|(name, svg)| (format!("{name}.svg"), file(&svg))).collect()
}

/// Returns the plots with the names of their files.
fn plots(report: &Report) -> Vec<(&'static str, String)> {
    let commits: Vec<&Sample> = report.samples.iter().filter(|sample| sample.number > 0).collect();
    let points =
        |x: fn(&Sample) -> f64, y: fn(&Sample) -> f64| commits.iter().map(|s| (x(s), y(s))).collect::<Vec<_>>();
    let number = |sample: &Sample| sample.number as f64;
    let megabytes = |sample: &Sample| sample.bytes as f64 / 1e6;
    let fit = report.trend.map(|trend| (trend.base_ms.max(0.0), trend.ms_per_megabyte));
    let plot = |title, x, y, points, joined| Plot { title, x, y, points, joined, decades: false, fit: None }.svg();
    let by_size = Plot {
        title: "Cost of a commit by its size",
        x: "MB of new contents",
        y: "ms, summed over threads",
        points: points(megabytes, |sample| sample.cost()),
        joined: false,
        decades: true,
        fit,
    };
    let cost = |sample: &Sample| sample.cost();
    let stages = report.stages_ms.named().map(|(name, time)| (name.to_owned(), time));
    let threads = "ms, summed over threads";
    let (memory, moved) =
        (|sample: &Sample| sample.memory as f64 / 1e6, |sample: &Sample| (sample.moved[0] + sample.moved[1]) as f64);
    vec![
        ("cost-by-epoch", plot("Cost of a commit by its number", "epoch", threads, points(number, cost), false)),
        ("cost-by-size", by_size.svg()),
        ("latency-by-epoch", plot("Latency by epoch", "epoch", "ms", points(number, |s| s.latency), false)),
        ("latencies", bars("Latencies", "commits", &histogram(&commits))),
        ("stages", bars("Time by stage", threads, &stages)),
        ("epochs", plot("Epochs over time", "s", "epochs", points(|s| s.at, number), true)),
        ("memory", plot("Resident memory over time", "s", "MB", points(|s| s.at, memory), true)),
        ("moved", plot("Entries moved by epoch", "epoch", "entries", points(number, moved), false)),
    ]
}

/// Counts latencies by powers of two.
fn histogram(samples: &[&Sample]) -> Vec<(String, f64)> {
    let bin = |sample: &&Sample| sample.latency.max(0.5).log2().floor() as i32;
    let (Some(first), Some(last)) = (samples.iter().map(bin).min(), samples.iter().map(bin).max()) else {
        return Vec::new();
    };
    let count = |wanted: i32| samples.iter().filter(|sample| bin(sample) == wanted).count() as f64;
    (first..=last).map(|power| (format!("≥{} ms", 2_f64.powi(power)), count(power))).collect()
}

impl Report {
    /// Returns the report as rows for people: label and figure.
    #[must_use]
    pub fn rows(&self) -> Vec<(String, String)> {
        let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let mut rows = vec![(
            "trace".to_owned(),
            format!(
                "{} epochs, {} contents of {}, {} packed",
                self.trace.epochs,
                self.trace.contents,
                mb(self.trace.content_bytes),
                mb(self.trace.bytes)
            ),
        )];
        let mut row = |what: &str, figure: String| rows.push((what.to_owned(), figure));
        row(
            "digests",
            format!(
                "{} compared ({} with the recorded one, {} with the one that follows from the trace alone), {} differ",
                self.proof.compared, self.proof.recorded, self.proof.computed, self.proof.differ
            ),
        );
        if self.proof.left_out > 0 {
            row("not replayed", format!("{} epochs: the store had them, or it was stopped", self.proof.left_out));
        }
        if let Some(first) = self.first_load {
            row(
                "first load",
                format!(
                    "{:.2} s, {} files, {} entries, {:.1} MB/s",
                    first.seconds, first.files, first.entries, first.megabytes_per_second
                ),
            );
        }
        row(
            "commits after it",
            format!(
                "{} at {:.1} epochs/s, {:.1} documents/s, {:.2} MB/s; {:.2} ms of processor time each",
                self.epochs,
                self.epochs_per_second,
                self.documents_per_second,
                self.megabytes_per_second,
                self.processor_ms_per_epoch
            ),
        );
        row("entries moved", format!("+{} -{}", self.entries_moved[0], self.entries_moved[1]));
        if let Some(latency) = self.latency_ms {
            row(
                if self.is_paced() {
                    "latency from due to published"
                } else {
                    "latency from fed to published, queue included"
                },
                format!(
                    "p50 {:.1} ms, p90 {:.1}, p95 {:.1}, p99 {:.1}, max {:.1}",
                    latency.p50, latency.p90, latency.p95, latency.p99, latency.max
                ),
            );
        }
        let stages = self.stages_ms.named().map(|(name, time)| format!("{name} {:.2} s", time / 1000.0));
        row("time by stage, summed over threads", stages.join(", "));
        if let Some(work) = self.work {
            let ratio = |ratio: super::Ratio| format!("{} of {} = {:.3}", ratio.did, ratio.least, ratio.ratio);
            let mut parts = vec![
                format!("cleaned {}", ratio(work.cleaned)),
                format!("cut {}", ratio(work.chunked)),
                format!("embedded {}", ratio(work.embedded)),
            ];
            parts.extend(work.inserted.map(|inserted| format!("inserted {}", ratio(inserted))));
            parts.extend(work.retracted.map(|retracted| format!("retracted {}", ratio(retracted))));
            row("work against the least that it must be", parts.join(", "));
            row("epochs whose receipt is not the least", work.epochs_off.to_string());
        }
        row("answers from the memo", self.cache_hits.to_string());
        row("written", format!("{}; the store takes {}", mb(self.written_bytes), mb(self.store_bytes)));
        row(
            "resident memory",
            format!("{} at the most, {} at the end", mb(self.memory_bytes[0]), mb(self.memory_bytes[1])),
        );
        if let Some(trend) = self.trend {
            row(
                "cost by size",
                format!(
                    "{:.2} ms and {:.1} ms a MB (correlation {:.2})",
                    trend.base_ms, trend.ms_per_megabyte, trend.correlation
                ),
            );
            row(
                &format!("cost of the last {0} commits against the first {0}, at equal sizes", trend.ends),
                format!("{:.3} ×", trend.last_against_first),
            );
        }
        for rebuild in &self.rebuilds {
            row(
                &format!("epoch {} from nothing", rebuild.epoch),
                format!(
                    "{:.2} s, {} texts embedded, {} entries{}",
                    rebuild.seconds,
                    rebuild.embedded,
                    rebuild.inserted,
                    if rebuild.agrees { "" } else { "; its digest DIFFERS" }
                ),
            );
        }
        if let Some(against) = self.against_rebuild {
            let part = |share: f64| if share > 0.0 { format!("1/{:.0}", 1.0 / share) } else { "0".to_owned() };
            row(
                "the mean commit against a rebuild",
                format!(
                    "{} of the time, {} of the texts embedded, {} of the entries moved",
                    part(against.time),
                    part(against.embedded),
                    part(against.moved)
                ),
            );
        }
        rows
    }

    fn is_paced(&self) -> bool {
        self.setting.is_paced()
    }
}

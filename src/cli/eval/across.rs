//! `eval --at A..B`: the same questions at one snapshot after another, and where quality moved.
//!
//! In: two snapshots of one line. Out: a row for each snapshot and configuration, oldest first, as soon as it is known.
//!
//! A row is marked where its NDCG differs from that of the row before by more than chance explains (paired test, p < 0.05), and where it was
//! made under other rules or by another model.

use super::{EvalArgs, asked, verdict};
use crate::cli::output::{json_line, line, short};
use crate::cli::{Global, Outcome};
use crate::eval::{Answered, Asking, Comparison, Configuration, ConfigurationReport, Metric, Paired, Question, report};
use crate::search::{Selected, show_time, snapshots_between};
use anyhow::{Context, Result};
use serde::Serialize;

/// A difference that chance makes less often than this is marked.
const CHANCE: f64 = 0.05;

/// What a snapshot was made under.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Made {
    rules: String,
    model: String,
    time: String,
}

#[derive(Serialize)]
struct SnapshotRow<'r> {
    commit: String,
    source: &'r str,
    time: &'r str,
    rules: &'r str,
    model: &'r str,
    /// Whether rules or model are others than those of the row before.
    made_otherwise: bool,
    /// The NDCG beside that of the row before.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<Paired>,
    is_marked: bool,
    #[serde(flatten)]
    report: &'r ConfigurationReport,
}

/// The answers of each configuration.
type Answers = Vec<(String, Vec<Answered>)>;

/// Runs the questions at each of the snapshots.
pub(super) fn run(
    global: &Global,
    args: &EvalArgs,
    asking: &Asking<'_>,
    ends: [&str; 2],
    questions: &[Question],
    configurations: &[Configuration],
) -> Result<Outcome> {
    let searcher = asking.searcher;
    let [from, to] = searcher.revisions().pair(searcher.reader(), asking.source, asking.view, ends)?;
    let line_of = snapshots_between(searcher, &from, &to).with_context(|| {
        format!(
            "{} is not among the first parents of {} that have snapshots; give the older first",
            from.commit, to.commit
        )
    })?;
    if !global.json {
        line(format!("{:<10}  {:<20}  {:<10}  ndcg@5  recall@5  recall@10  mrr@10", "commit", "time", "config"))?;
    }
    let last = line_of.len() - 1;
    let chosen = line_of.iter().enumerate().filter(|(at, _)| at % args.every == 0 || *at == last);
    let mut before: Option<(Made, Answers)> = None;
    let mut reports = Vec::new();
    for (_, snapshot) in chosen {
        let commit = snapshot.commit.to_string();
        let asking = Asking { at: Some(&commit), source: Some(&snapshot.source_name), ..*asking };
        let answered = asked(&asking, questions, configurations, args.asked.threads())?;
        reports = report(questions, &answered, std::slice::from_ref(&commit), args.asked.seed);
        let made = made(&asking, snapshot)?;
        for (at, report) in reports.iter().enumerate() {
            let moved = before.as_ref().and_then(|(_, before)| {
                Comparison::of(&answered[at].1, &before[at].1, args.asked.seed).by(Metric::Ndcg5)
            });
            let row = SnapshotRow {
                commit: commit.clone(),
                source: &snapshot.source_name,
                time: &made.time,
                rules: &made.rules,
                model: &made.model,
                made_otherwise: before
                    .as_ref()
                    .is_some_and(|(before, _)| before.rules != made.rules || before.model != made.model),
                moved,
                is_marked: moved.is_some_and(|moved| moved.p < CHANCE),
                report,
            };
            if global.json { json_line(&row)? } else { show(&row)? }
        }
        before = Some((made, answered));
    }
    Ok(verdict(&args.fail_under, &reports))
}

fn made(asking: &Asking<'_>, snapshot: &Selected) -> Result<Made> {
    let hex = |bytes: [u8; 16]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let made = asking.searcher.reader().with_archive(|archive| {
        archive.version(snapshot.version).map(|version| Made {
            rules: hex(version.fingerprint),
            model: hex(version.model),
            time: show_time(version.time),
        })
    });
    made.with_context(|| format!("the log has no version of {}", snapshot.commit))
}

fn show(row: &SnapshotRow<'_>) -> Result<()> {
    let mean =
        |metric: Metric| row.report.all.mean(metric).map_or_else(|| "-".to_owned(), |mean| format!("{:.3}", mean.mean));
    let moved = match &row.moved {
        Some(moved) if row.is_marked => {
            let sign = if moved.difference.mean > 0.0 { '▲' } else { '▼' };
            format!("  {sign} {:+.3} (p {:.4})", moved.difference.mean, moved.p)
        }
        _ => String::new(),
    };
    let made = if row.made_otherwise { "  under other rules, or by another model" } else { "" };
    line(format!(
        "{:<10}  {:<20}  {:<10}  {:<6}  {:<8}  {:<9}  {:<6}{moved}{made}",
        short(&row.commit),
        row.time,
        row.report.config,
        mean(Metric::Ndcg5),
        mean(Metric::Recall5),
        mean(Metric::Recall10),
        mean(Metric::Mrr10),
    ))
}

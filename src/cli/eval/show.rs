//! How reports look on a terminal.
//!
//! In: reports. Out: tables of lines.

use crate::cli::output::{count, fitted, line};
use crate::eval::{ConfigurationReport, Fate, Group, METRICS, Metric, Question, Stage};
use anyhow::Result;

/// How many lost questions are named.
const NAMED: usize = 5;
/// Measures that groups of questions are shown with.
const OF_GROUPS: [Metric; 4] = [Metric::Ndcg5, Metric::Recall5, Metric::Recall10, Metric::Mrr10];

/// Prints everything that a run came to; `shown` is the configuration that is looked at closely.
pub(super) fn reports(
    questions: &[Question],
    reports: &[ConfigurationReport],
    shown: usize,
    fates: &[(usize, Fate)],
) -> Result<()> {
    let at = reports.first().map(|report| report.at.join(", ")).unwrap_or_default();
    let at = if at.is_empty() { "each as of its own revision".to_owned() } else { format!("as of {at}") };
    line(format!("{}, {at}", count(questions.len(), "question", "questions")))?;
    line("")?;
    let wide = reports.iter().map(|report| report.config.chars().count()).max().unwrap_or(0);
    head(wide, &METRICS, 19)?;
    for report in reports {
        let cells = METRICS.map(|metric| {
            report
                .all
                .mean(metric)
                .map_or_else(String::new, |mean| format!("{:.3} [{:.3} {:.3}]", mean.mean, mean.low, mean.high))
        });
        row(&report.config, wide, &cells, 19)?;
    }
    differences(reports)?;
    if let Some(report) = reports.get(shown) {
        groups(report)?;
    }
    lost(questions, fates, reports.get(shown).map_or("", |report| report.config.as_str()))
}

fn head(wide: usize, metrics: &[Metric], column: usize) -> Result<()> {
    let names: Vec<String> = metrics.iter().map(|metric| metric.as_str().to_owned()).collect();
    row("", wide, &names, column)
}

fn row(name: &str, wide: usize, cells: &[String], column: usize) -> Result<()> {
    let cells: String = cells.iter().map(|cell| format!("  {cell:<column$}")).collect();
    line(format!("{name:<wide$}{cells}").trim_end())
}

fn differences(reports: &[ConfigurationReport]) -> Result<()> {
    if reports.len() < 2 {
        return Ok(());
    }
    line("")?;
    for (at, report) in reports.iter().enumerate() {
        for other in &reports[..at] {
            let comparison = report.against.get(&other.config);
            let cells = OF_GROUPS.map(|metric| {
                comparison.and_then(|comparison| comparison.by(metric)).map_or_else(String::new, |paired| {
                    let mean = paired.difference;
                    format!(
                        "{} {:+.3} [{:+.3} {:+.3}] p {:.4}",
                        metric.as_str(),
                        mean.mean,
                        mean.low,
                        mean.high,
                        paired.p
                    )
                })
            });
            line(format!("{} − {}:  {}", report.config, other.config, cells.join("  ")))?;
        }
    }
    Ok(())
}

fn groups(report: &ConfigurationReport) -> Result<()> {
    for (what, groups) in report.by.iter().filter(|(_, groups)| groups.len() > 1) {
        line("")?;
        let wide = groups.keys().map(|value| value.chars().count()).chain([what.len()]).max().unwrap_or(0);
        line(format!("{} by {what}", report.config))?;
        head(wide + 6, &OF_GROUPS, 10)?;
        for (value, group) in groups {
            row(&format!("{value:<wide$} {:>5}", group.questions), wide + 6, &cells(group), 10)?;
        }
    }
    Ok(())
}

fn cells(group: &Group) -> Vec<String> {
    let mean = |metric| group.mean(metric).map_or_else(String::new, |mean| format!("{:.3}", mean.mean));
    OF_GROUPS.into_iter().map(mean).collect()
}

fn lost(questions: &[Question], fates: &[(usize, Fate)], name: &str) -> Result<()> {
    if fates.is_empty() {
        return Ok(());
    }
    line("")?;
    let stages = Stage::ALL.map(|stage| {
        let lost = fates.iter().filter(|(_, fate)| fate.stage == stage).count();
        format!("{} {lost}", stage.as_str())
    });
    line(format!("{name} misses {} among its first five: {}", fates.len(), stages.join(", ")))?;
    let mut order: Vec<&(usize, Fate)> = fates.iter().collect();
    order.sort_by_key(|(at, fate)| (fate.stage, *at));
    for (at, fate) in order.into_iter().take(NAMED) {
        let rank = |name: &str, rank: Option<usize>| rank.map(|rank| format!("{name} rank {rank}"));
        let ranks = [rank("words", fate.bm25), rank("vectors", fate.vector), rank(name, fate.rank)];
        let ranks = ranks.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let question = &questions[*at];
        let front = format!("  {}: {}", fate.stage.as_str(), question.id);
        line(format!("{front}  {ranks}  {}", fitted(&question.text, front.len() + ranks.len() + 4)))?;
    }
    Ok(())
}

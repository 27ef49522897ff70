//! The report as a page: tables, and the questions that were answered worst with what became of the right answer.
//!
//! In: reports, questions, answers and fates. Out: HTML that needs nothing from outside. **Invariant:** whatever comes from a file or a
//! store is escaped.

use super::ask::{Answered, ShownHit};
use super::measure::{METRICS, Metric};
use super::question::{Question, Target};
use super::report::{ConfigurationReport, Group};
use super::stage::{Fate, Stage};
use crate::replay::{STYLE, escape};
use std::fmt::Write;

/// How many questions are shown at the most.
const MOST: usize = 100;
/// How many hits of each.
const HITS: usize = 5;

const PAGE: &str = "
body { margin: 2rem auto; max-width: 84rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 1.5rem 0 .2rem; } p { margin: .2rem 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: .5rem 0; } td, th { padding: .2rem .9rem .2rem 0; text-align: left; border-bottom: 1px solid var(--grid); font-variant-numeric: tabular-nums; }
.soft { color: var(--soft); } .bad { color: var(--two); font-weight: 600; } ol { margin: .3rem 0; } code { font-size: .93em; }
";

/// What a page shows.
pub struct Sheet<'r> {
    /// What was asked, and where.
    pub title: &'r str,
    /// The reports.
    pub reports: &'r [ConfigurationReport],
    /// The questions.
    pub questions: &'r [Question],
    /// The name of the configuration whose questions are shown, and what they came to.
    pub answered: &'r (String, Vec<Answered>),
    /// Fates by the number of the question.
    pub fates: &'r [(usize, Fate)],
}

/// Returns the page.
#[must_use]
pub fn page(sheet: &Sheet<'_>) -> String {
    let title = escape(sheet.title);
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>tidemill eval</title><style>{STYLE}{PAGE}</style><h1>{title}</h1>"
    );
    html.push_str("<h2>All questions</h2>");
    html.push_str(&table("configuration", sheet.reports.iter().map(|report| (report.config.as_str(), &report.all))));
    comparisons(&mut html, sheet.reports);
    for report in sheet.reports.iter().filter(|report| report.config == sheet.answered.0) {
        for (what, groups) in report.by.iter().filter(|(_, groups)| !groups.is_empty()) {
            let _ = write!(html, "<h2>{} by {what}</h2>", escape(&report.config));
            html.push_str(&table(what, groups.iter().map(|(value, group)| (value.as_str(), group))));
        }
    }
    worst(&mut html, sheet);
    html.push_str("</html>\n");
    html
}

fn table<'g>(what: &str, groups: impl Iterator<Item = (&'g str, &'g Group)>) -> String {
    let mut html = format!("<table><tr><th>{what}</th><th>questions</th>");
    METRICS.iter().for_each(|metric| html.push_str(&format!("<th>{}</th>", metric.as_str())));
    html.push_str("</tr>");
    for (name, group) in groups {
        let _ = write!(html, "<tr><td>{}</td><td>{}</td>", escape(name), group.questions);
        for metric in METRICS {
            let cell = group.mean(metric).map_or_else(String::new, |mean| {
                format!("{:.3} <span class=\"soft\">[{:.3} {:.3}]</span>", mean.mean, mean.low, mean.high)
            });
            let _ = write!(html, "<td>{cell}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    html
}

fn comparisons(html: &mut String, reports: &[ConfigurationReport]) {
    if reports.len() < 2 {
        return;
    }
    html.push_str("<h2>Differences</h2><table><tr><th></th>");
    METRICS.iter().for_each(|metric| html.push_str(&format!("<th>{}</th>", metric.as_str())));
    html.push_str("</tr>");
    for (at, report) in reports.iter().enumerate() {
        for other in &reports[..at] {
            let _ = write!(html, "<tr><td>{} − {}</td>", escape(&report.config), escape(&other.config));
            let comparison = report.against.get(&other.config);
            for metric in METRICS {
                let cell = comparison.and_then(|comparison| comparison.by(metric)).map_or_else(String::new, |paired| {
                    let mean = paired.difference;
                    format!(
                        "{:+.3} <span class=\"soft\">[{:+.3} {:+.3}] p {:.4}</span>",
                        mean.mean, mean.low, mean.high, paired.p
                    )
                });
                let _ = write!(html, "<td>{cell}</td>");
            }
            html.push_str("</tr>");
        }
    }
    html.push_str("</table>");
}

fn worst(html: &mut String, sheet: &Sheet<'_>) {
    let (name, answered) = sheet.answered;
    let _ = write!(html, "<h2>Where {} lost the right answer</h2><table>", escape(name));
    for stage in Stage::ALL {
        let lost = sheet.fates.iter().filter(|(_, fate)| fate.stage == stage).count();
        let _ = write!(html, "<tr><td>{}</td><td>{lost}</td></tr>", stage.as_str());
    }
    html.push_str("</table>");
    let mut order: Vec<&(usize, Fate)> = sheet.fates.iter().collect();
    order.sort_by(|(left, one), (right, other)| {
        let ndcg = |at: usize| answered[at].measures.get(Metric::Ndcg5).unwrap_or(1.0);
        one.stage.cmp(&other.stage).then(ndcg(*left).total_cmp(&ndcg(*right))).then(left.cmp(right))
    });
    if order.len() > MOST {
        let _ = write!(html, "<p class=\"soft\">The first {MOST} of {} questions.</p>", order.len());
    }
    for (at, fate) in order.into_iter().take(MOST) {
        let question = &sheet.questions[*at];
        let rank = |rank: Option<usize>| {
            rank.map_or_else(|| "not among its first 200".to_owned(), |rank| format!("rank {rank}"))
        };
        let _ = write!(
            html,
            "<h3>{} <span class=\"soft\">{}</span></h3><p><span class=\"bad\">{}</span> <span class=\"soft\">words: {}; vectors: {}; {}: {}</span></p>",
            escape(&question.text),
            escape(&question.id),
            fate.stage.as_str(),
            rank(fate.bm25),
            rank(fate.vector),
            escape(name),
            rank(fate.rank)
        );
        let targets = question.judgments.get(fate.judgment).map_or(&[][..], |judgment| &judgment.targets);
        let right: Vec<String> = targets.iter().map(|target| escape(&place(target))).collect();
        let _ = write!(html, "<p>right: <code>{}</code></p><ol>", right.join("</code> or <code>"));
        for hit in answered[*at].hits.iter().take(HITS) {
            let grade = if hit.grade > 0 { format!(" grade {}", hit.grade) } else { String::new() };
            let barred = if hit.is_barred { " <span class=\"bad\">must not be here</span>" } else { "" };
            let _ = write!(html, "<li><code>{}</code>{grade}{barred}</li>", escape(&shown(hit)));
        }
        html.push_str("</ol>");
    }
}

/// Returns a place for people.
#[must_use]
pub(super) fn place(target: &Target) -> String {
    let path = target.path.as_ref().map(|path| path.display().into_owned());
    let lines = target.lines.map_or_else(String::new, |lines| format!(":{}-{}", lines.first, lines.last));
    let text = target.text.as_ref().map(|text| format!("{:?}", text.chars().take(80).collect::<String>()));
    let parts = [path.map(|path| format!("{path}{lines}")), target.symbol.clone(), text];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

fn shown(hit: &ShownHit) -> String {
    let lines = hit.lines.map_or_else(String::new, |lines| format!(":{}-{}", lines.first, lines.last));
    format!("{}{lines}  {}", hit.path.display(), hit.symbol)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Judgment, measure, report};

    #[test]
    fn a_page_escapes_what_it_shows_and_says_where_the_answer_was_lost() {
        let question = Question {
            id: "q<1>".to_owned(),
            text: "<script>".to_owned(),
            difficulty: String::new(),
            kind: "api".to_owned(),
            lang: String::new(),
            at: None,
            judgments: vec![Judgment {
                grade: 3,
                targets: vec![Target {
                    path: Some("a&b.rs".into()),
                    symbol: Some("f".to_owned()),
                    ..Target::default()
                }],
            }],
            must_not: Vec::new(),
        };
        let hit = ShownHit { path: "<p>".into(), lines: None, symbol: "s".to_owned(), grade: 0, is_barred: true };
        let answered = ("hybrid".to_owned(), vec![Answered { measures: measure(&[0], &[3], None), hits: vec![hit] }]);
        let reports = report(std::slice::from_ref(&question), std::slice::from_ref(&answered), &[], 1);
        let fate = Fate { stage: Stage::RankedLow, judgment: 0, bm25: Some(7), vector: None, rank: Some(31) };
        let page = page(&Sheet {
            title: "one & two",
            reports: &reports,
            questions: &[question],
            answered: &answered,
            fates: &[(0, fate)],
        });
        assert!(!page.contains("<script>") && !page.contains("<p>:") && page.contains("one &amp; two"));
        for part in [
            "ranked low",
            "words: rank 7",
            "vectors: not among its first 200",
            "hybrid: rank 31",
            "a&amp;b.rs  f",
            "must not be here",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.contains("hybrid by kind") && page.contains("ndcg@5"));
    }
}

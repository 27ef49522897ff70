//! `search`: the newest version, or the snapshot at a revision.
//!
//! In: a question. Out: hits.

use super::output::{count, fitted, hint, json_line, line, short, text_line, width};
use super::reasons::reasons;
use super::{Global, Outcome, Place};
use crate::search::{Answer, Filter, Hit, ListName, MAX_HITS, Mode, Request, Searcher, Selected};
use crate::serve::wire::{At, SearchAnswer};
use anyhow::Result;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use std::ffi::OsString;

/// Lines of a hit's text that are shown to people.
const SHOWN_LINES: usize = 6;
/// Further paths of a folded hit that are shown to people.
const SHOWN_PATHS: usize = 10;

#[derive(Args, Debug)]
pub(super) struct SearchArgs {
    /// The question; words in double quotes must be adjacent and in this order.
    query: OsString,
    #[command(flatten)]
    place: Place,
    /// As of a commit, tag, branch, BRANCH~N or time.
    #[arg(long, value_name = "REV")]
    at: Option<String>,
    /// Which index answers.
    #[arg(long, value_enum, default_value_t = Mode::Hybrid)]
    mode: Mode,
    /// How many hits, at most 10,000.
    #[arg(short, default_value_t = 10, value_name = "N", value_parser = hits_from_one())]
    k: usize,
    /// Only entries that pass, as in `path:crates/** kind:code !language:cpp`; an existing path means itself, or all below it.
    #[arg(long = "where", value_name = "EXPR")]
    filter: Option<OsString>,
    /// At most so many hits of one document.
    #[arg(long = "per-doc", default_value_t = 2, value_name = "M", value_parser = number_from_one())]
    per_document: usize,
    /// Show identical text at several paths as one hit.
    #[arg(long)]
    fold: bool,
    /// Score every living vector; without this, a search of very many vectors skips far ones.
    #[arg(long)]
    exact: bool,
    /// Show each index's rank and score.
    #[arg(long)]
    explain: bool,
}

/// Returns a parser of the number of hits.
pub(super) fn hits_from_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MAX_HITS as u64)
}

/// Returns a parser of numbers from 1.
pub(super) fn number_from_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// Runs `search`.
pub(super) fn run(global: &Global, args: &SearchArgs) -> Result<Outcome> {
    let request = Request {
        // Bytes that are not UTF-8 are shown and compared with replacement characters.
        query: args.query.to_string_lossy().into_owned(),
        mode: args.mode,
        k: args.k,
        source: args.place.source.clone(),
        view: args.place.view.clone(),
        at: args.at.clone(),
        filter: args.filter.as_deref().map(|filter| Filter::parse(&filter.to_string_lossy())).transpose()?,
        per_document: args.per_document,
        fold: args.fold,
        exact: args.exact,
    };
    crate::resources::start_pool();
    let searcher = Searcher::open(&global.layout())?;
    let answer = searcher.search(&request)?;
    if global.json {
        json_line(&answer_line(&searcher, &request, answer))?;
    } else {
        show(&answer, args.explain, SHOWN_LINES)?;
        if !global.quiet {
            reasons(&request, &answer).iter().for_each(hint);
        }
    }
    Ok(Outcome::Done)
}

/// Returns the JSON line of an answer.
pub(super) fn answer_line(searcher: &Searcher, request: &Request, answer: Answer) -> SearchAnswer {
    let at = answer.at.iter().map(|selected| At::new(selected, lag(searcher, selected))).collect();
    SearchAnswer::new(&request.query, request.mode.as_str(), answer, at)
}

/// Returns for how many milliseconds the source has had a commit that the searched version lacks.
fn lag(searcher: &Searcher, selected: &Selected) -> u64 {
    if !selected.is_head {
        return 0;
    }
    let behind = || {
        let (_, record) = searcher.revisions().sources().iter().find(|(id, _)| *id == selected.source)?;
        let git = searcher.revisions().repository(record)?;
        let head = git.resolve(selected.view.as_deref()?).ok().filter(|head| *head != selected.commit)?;
        let first = git.new_commits(selected.commit, head).ok()?.first()?.time;
        u64::try_from(jiff::Timestamp::now().as_millisecond() - first.saturating_mul(1000)).ok()
    };
    behind().unwrap_or(0)
}

/// Prints an answer for people, with the first `lines` lines of each hit.
pub(super) fn show(answer: &Answer, explain: bool, lines: usize) -> Result<()> {
    for at in &answer.at {
        line(format!("as of {} {} {}", at.source_name, at.view.as_deref().unwrap_or(""), short(&at.commit)))?;
    }
    for hit in &answer.hits {
        line("")?;
        line(headline(hit))?;
        if explain {
            let list = |name: ListName| {
                let ranked = hit.ranks.of(&name).map(|ranked| format!("rank {} score {:.4}", ranked.rank, ranked.score));
                format!("{}: {}", name.as_str(), ranked.unwrap_or_else(|| "not among its candidates".to_owned()))
            };
            let lists = [ListName::BM25, ListName::VECTOR].map(list).join("  ");
            line(format!("     score {:.5}  {lists}", hit.score))?;
        }
        for path in hit.paths.iter().skip(1).take(SHOWN_PATHS) {
            line(format!("     also {path}"))?;
        }
        if let Some(more) = hit.paths.len().checked_sub(1 + SHOWN_PATHS).filter(|more| *more > 0) {
            line(format!("     and at {more} more; --json names them all"))?;
        }
        for text in hit.text.lines().take(lines) {
            text_line("     ", text)?;
        }
    }
    line("")?;
    if !answer.exact && answer.lost_vectors == 0 {
        line("far vectors were passed over; --exact looks at them all")?;
    }
    line(format!("{} in {:.1} ms", count(answer.hits.len(), "hit", "hits"), answer.took.as_secs_f64() * 1000.0))
}

/// Returns the path, lines and symbol of a hit, and the commit that introduced it.
fn headline(hit: &Hit) -> String {
    let lines = hit.lines.map_or_else(String::new, |lines| format!(":{}-{}", lines.first, lines.last));
    let symbol = if hit.card.symbol.is_empty() { &hit.card.name } else { &hit.card.symbol };
    let introduced =
        hit.introduced_in.map_or_else(String::new, |commit| format!("  since {}", shorten(&commit.to_string())));
    let weak = if hit.weak { "  (weak)" } else { "" };
    let place = format!("{:>3}. {}{lines}", hit.rank, hit.path);
    let symbol = match symbol.is_empty() {
        true => String::new(),
        false => fitted(&format!("  {symbol}"), width(&place) + width(&introduced) + width(weak)),
    };
    format!("{place}{symbol}{introduced}{weak}")
}

/// Returns the commit that introduced an entry, for people.
pub(super) fn shorten(commit: &str) -> String {
    match commit.strip_prefix("before:") {
        Some(commit) => format!("before {}", short(&commit)),
        None => short(&commit),
    }
}

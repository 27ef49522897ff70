//! `search`: the newest version, or the snapshot at a revision.
//!
//! In: a question. Out: hits.

use super::output::{count, fitted, hint, json_line, line, short, text_line, width};
use super::reasons::reasons;
use super::{Global, Outcome, Place};
use crate::api::wire::{SearchAnswer, WireHit};
use crate::search::{Filter, FusionMethod, ListName, MAX_HITS, Mode, Request};
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
    /// What to look for; words in double quotes must stand together.
    query: OsString,
    #[command(flatten)]
    place: Place,
    /// As of a commit, tag, branch, BRANCH~N or time.
    #[arg(long, value_name = "REV")]
    at: Option<String>,
    /// Which index answers.
    #[arg(long, value_enum, default_value_t = Mode::Hybrid)]
    mode: Mode,
    /// How the two lists of a hybrid search become one.
    #[arg(long, value_enum, default_value_t)]
    fusion: FusionMethod,
    /// How many hits, at most 10,000.
    #[arg(short, default_value_t = 10, value_name = "N", value_parser = hits_from_one())]
    k: usize,
    /// Only what passes, as in `path:crates/** kind:code !language:cpp`; a path as it stands means itself, or all below it.
    #[arg(long = "where", value_name = "EXPR")]
    filter: Option<OsString>,
    /// At most so many hits of one document.
    #[arg(long = "per-doc", default_value_t = 2, value_name = "M", value_parser = number_from_one())]
    per_document: usize,
    /// Make one hit of identical text at several paths.
    #[arg(long)]
    fold: bool,
    /// Look at every living vector, however many there are; without this, far ones are passed over where they are many.
    #[arg(long)]
    exact: bool,
    /// Show each index's rank and score.
    #[arg(long)]
    explain: bool,
}

/// Returns a parser of how many hits may be asked for.
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
        fusion: args.fusion,
    };
    let answer = global.service()?.search(&request)?;
    if global.json {
        json_line(&answer)?;
    } else {
        show(&answer, args.explain, SHOWN_LINES)?;
        if !global.quiet {
            reasons(&request, &answer).iter().for_each(hint);
        }
    }
    Ok(Outcome::Done)
}

/// Prints an answer for people, with the first `lines` lines of each hit.
pub(super) fn show(answer: &SearchAnswer, explain: bool, lines: usize) -> Result<()> {
    for at in &answer.at {
        line(format!("as of {} {} {}", at.source, at.view.as_deref().unwrap_or(""), short(&at.commit)))?;
    }
    for hit in &answer.hits {
        line("")?;
        line(headline(hit))?;
        if explain {
            let list = |name: &str| {
                let ranked = hit.from.get(name).map(|ranked| format!("rank {} score {:.4}", ranked.rank, ranked.score));
                format!("{name}: {}", ranked.unwrap_or_else(|| "not among its candidates".to_owned()))
            };
            let lists = [ListName::BM25, ListName::VECTOR].map(|name| list(name.as_str())).join("  ");
            line(format!("     score {:.5}  {lists}", hit.score))?;
            if !hit.points.is_empty() {
                let points: Vec<String> =
                    hit.points.iter().map(|(part, points)| format!("{part} {points:+.3}")).collect();
                line(format!("     {}", points.join("  ")))?;
            }
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
    if !answer.exact && answer.without_vector == 0 {
        line("far vectors were passed over; --exact looks at them all")?;
    }
    line(format!("{} in {:.1} ms", count(answer.hits.len(), "hit", "hits"), answer.took_ms))
}

/// Returns where a hit stands, what it is, and since when.
fn headline(hit: &WireHit) -> String {
    let lines = hit.lines.map_or_else(String::new, |[first, last]| format!(":{first}-{last}"));
    let symbol = hit.symbol.as_ref().unwrap_or(&hit.name);
    let introduced =
        hit.introduced_in.as_ref().map_or_else(String::new, |commit| format!("  since {}", shorten(commit)));
    let weak = if hit.weak { "  (weak)" } else { "" };
    let place = format!("{:>3}. {}{lines}", hit.rank, hit.path.path);
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

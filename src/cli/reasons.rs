//! Why an answer has no hits, or poor ones: lines for people, on standard error.
//!
//! In: a request and its answer. Out: hints, the most telling first.
//!
//! **Invariant:** each hint names what it is about, and none blames a word that stands somewhere.

use super::output::count;
use crate::api::wire::SearchAnswer;
use crate::search::{Mode, Request};

/// So many words are named; a pasted text may have dozens.
const NAMED: usize = 8;

/// Returns what is to be said of an answer, beside its hits.
pub(super) fn reasons(request: &Request, answer: &SearchAnswer) -> Vec<String> {
    let mut reasons = Vec::new();
    if answer.dropped_terms > 0 {
        let dropped = count(answer.dropped_terms, "term", "terms");
        reasons.push(format!("the query is longer than what is asked for: {dropped} left out, the last ones"));
    }
    let unknown = &answer.unknown_terms;
    let is_unheard = answer.terms > 0 && unknown.len() == answer.terms;
    if is_unheard {
        let near = if answer.hits.is_empty() { "" } else { "; what is shown is only near by its vector" };
        reasons.push(format!("no word of the query stands anywhere in what was searched ({}){near}", named(unknown)));
    } else if !unknown.is_empty() {
        reasons.push(format!("not found anywhere in what was searched: {}", named(unknown)));
    }
    if !answer.empty_filters.is_empty() {
        let terms: Vec<String> = answer.empty_filters.iter().map(|term| format!("`{term}`")).collect();
        reasons.insert(0, format!("no document matches {}", terms.join(", or ")));
    } else if answer.hits.is_empty() && !is_unheard {
        reasons.push(silence(request, answer));
    }
    reasons
}

/// Says why there is no hit, though words of the query stand somewhere or it has none.
fn silence(request: &Request, answer: &SearchAnswer) -> String {
    let reason = match (request.mode, answer.terms) {
        (Mode::Bm25 | Mode::Hybrid, 0) => "the query has no word to look for; words are letters and digits",
        (Mode::Vector, _) => "the model knows no word of the query; --mode bm25 looks for words as they are written",
        _ if request.filter.is_some() => "no entry that passes --where holds a word of the query",
        _ => "its words stand somewhere, but no phrase in quotes stands as it is written",
    };
    reason.to_owned()
}

fn named(words: &[String]) -> String {
    let named = words.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match words.len().checked_sub(NAMED) {
        None | Some(0) => named,
        Some(more) => format!("{named} and {more} more"),
    }
}

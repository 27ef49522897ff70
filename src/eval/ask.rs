//! Asking: every question in every configuration, in parallel over one searcher.
//!
//! In: questions, configurations, a searcher. Out: for each the hits, graded, and their measures.
//!
//! **Invariant:** what comes out does not depend on the number of threads. A hit is credited with one judgment, the best of those that it
//! meets and no hit before it was credited with; so a second part of what was found counts as nothing, and no figure exceeds 1.
//!
//! Threads are not those of the pool that a search shares: a task of that pool may begin another while it waits, and would wait for what
//! it holds itself.

use super::configuration::Configuration;
use super::measure::{Measures, measure};
use super::question::{Question, Target};
use crate::search::{Hit, Request, SearchError, Searcher};
use dataflows::data::{DocumentPath, Lines};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many hits are asked for: the deepest rank that a measure looks at.
pub const DEPTH: usize = 10;
/// What must not come must not be among so many.
const KEPT_OUT: usize = 5;

/// A question could not be answered.
#[derive(Debug, thiserror::Error)]
#[error("question {id:?} cannot be asked")]
pub struct AskError {
    /// The question.
    pub id: String,
    /// The reason.
    pub source: SearchError,
}

/// Where questions are asked.
#[derive(Clone, Copy)]
pub struct Asking<'s> {
    /// The store.
    pub searcher: &'s Searcher,
    /// Only this source.
    pub source: Option<&'s str>,
    /// This view in place of the default one.
    pub view: Option<&'s str>,
    /// This revision in place of the questions' own.
    pub at: Option<&'s str>,
}

impl Asking<'_> {
    /// Returns the request for a question.
    pub(super) fn request(&self, question: &Question, configuration: &Configuration) -> Request {
        Request {
            source: self.source.map(str::to_owned),
            view: self.view.map(str::to_owned),
            at: self.at.or(question.at.as_deref()).map(str::to_owned),
            ..configuration.request(&question.text)
        }
    }
}

/// A hit as a report shows it.
#[derive(Clone, Debug)]
pub struct ShownHit {
    /// Where it stands.
    pub path: DocumentPath,
    /// On which lines.
    pub lines: Option<Lines>,
    /// Its qualified name, or its heading or declaration.
    pub symbol: String,
    /// The grade that it was credited with.
    pub grade: u8,
    /// Whether it must not be there.
    pub is_barred: bool,
}

/// What a question came to in one configuration.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Its figures.
    pub measures: Measures,
    /// Its first hits.
    pub hits: Vec<ShownHit>,
}

/// Asks every question in every configuration; returns for each configuration what each question came to.
///
/// # Errors
/// Where a search fails; the question is named.
pub fn ask(
    asking: &Asking<'_>,
    questions: &[Question],
    configurations: &[Configuration],
    threads: usize,
) -> Result<Vec<Vec<Answered>>, AskError> {
    let each = |at: usize| -> Result<Answered, AskError> {
        // All configurations of one question after each other: they share a view of its version.
        let question = &questions[at / configurations.len()];
        Ok(answered(question, &run(asking, question, &configurations[at % configurations.len()])?))
    };
    let answers = in_parallel(questions.len() * configurations.len(), threads, each)?;
    let mut by_configuration = vec![Vec::with_capacity(questions.len()); configurations.len()];
    for (at, answer) in answers.into_iter().enumerate() {
        by_configuration[at % configurations.len()].push(answer);
    }
    Ok(by_configuration)
}

/// Asks one question.
pub(super) fn run(
    asking: &Asking<'_>,
    question: &Question,
    configuration: &Configuration,
) -> Result<Vec<Hit>, AskError> {
    hits(asking, &asking.request(question, configuration), &question.id)
}

pub(super) fn hits(asking: &Asking<'_>, request: &Request, id: &str) -> Result<Vec<Hit>, AskError> {
    let answer = asking.searcher.search(request);
    Ok(answer.map_err(|source| AskError { id: id.to_owned(), source })?.hits)
}

/// Whether a hit is what is meant.
pub(super) fn is(target: &Target, hit: &Hit) -> bool {
    target.is(&hit.path, &hit.card.symbol, hit.lines, &hit.text)
}

fn answered(question: &Question, hits: &[Hit]) -> Answered {
    let mut open: Vec<bool> = vec![true; question.judgments.len()];
    let hits = hits.iter().map(|hit| {
        let met = question.judgments.iter().enumerate().filter(|(at, judgment)| {
            open[*at] && judgment.grade > 0 && judgment.targets.iter().any(|target| is(target, hit))
        });
        // Of equal grades the first.
        let best = met.min_by_key(|(at, judgment)| (std::cmp::Reverse(judgment.grade), *at));
        let (credited, grade) = best.map_or((None, 0), |(at, judgment)| (Some(at), judgment.grade));
        if let Some(at) = credited {
            open[at] = false;
        }
        let card = &hit.card;
        ShownHit {
            path: hit.path.clone(),
            lines: hit.lines,
            symbol: if card.symbol.is_empty() { &card.name } else { &card.symbol }.clone(),
            grade,
            is_barred: question.must_not.iter().any(|target| is(target, hit)),
        }
    });
    let hits: Vec<ShownHit> = hits.collect();
    let gains: Vec<u8> = hits.iter().map(|hit| hit.grade).collect();
    let judged: Vec<u8> = question.judgments.iter().map(|judgment| judgment.grade).collect();
    let kept_out = hits.iter().take(KEPT_OUT).all(|hit| !hit.is_barred);
    let measures = measure(&gains, &judged, (!question.must_not.is_empty()).then_some(kept_out));
    Answered { measures, hits }
}

/// Calls `each` with every number below `count` from several threads; returns the results in order, or the first failure.
pub(super) fn in_parallel<T: Send, E: Send>(
    count: usize,
    threads: usize,
    each: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    // Where the pool is this very thread, which must then be free to do its work.
    if threads < 2 || rayon::current_thread_index().is_some() || crate::resources::can_start(threads).is_err() {
        return (0..count).map(each).collect();
    }
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<(usize, Result<T, E>)>> = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                while !has_failed.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let result = each(at);
                    has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Judgment, Metric};
    use crate::search::Ranks;
    use dataflows::data::{Card, ChunkKind};
    use snapshots::Ordinal;

    fn hit(path: &str, symbol: &str) -> Hit {
        let none = String::new;
        let card = Card {
            kind: ChunkKind::Code,
            language: none(),
            symbol: symbol.to_owned(),
            name: none(),
            folder: none(),
            module: none(),
            labels: Vec::new(),
        };
        Hit {
            entry: Ordinal::new(0),
            rank: 0,
            score: 0.0,
            source: none(),
            path: path.into(),
            paths: Vec::new(),
            lines: None,
            kind: ChunkKind::Code,
            card,
            introduced_in: None,
            text: none(),
            ranks: Ranks::default(),
            points: Vec::new(),
            weak: false,
        }
    }

    #[test]
    fn a_judgment_is_credited_once_and_the_best_first() {
        let at = |path: &str| Target { path: Some(path.into()), ..Target::default() };
        let named = |symbol: &str| Target { symbol: Some(symbol.to_owned()), ..Target::default() };
        let judgment = |grade, target| Judgment { grade, targets: vec![target] };
        let question = Question {
            id: "q".to_owned(),
            text: "x".to_owned(),
            difficulty: String::new(),
            kind: String::new(),
            lang: String::new(),
            at: None,
            judgments: vec![judgment(1, at("a")), judgment(3, named("f")), judgment(0, at("c"))],
            must_not: vec![at("c")],
        };
        let found = answered(&question, &[hit("c", ""), hit("a", "f"), hit("a", "g"), hit("a", "h")]);
        assert_eq!(found.hits.iter().map(|hit| hit.grade).collect::<Vec<_>>(), [0, 3, 1, 0]);
        assert_eq!(found.measures.get(Metric::KeptOut5), Some(0.0));
        assert_eq!(found.measures.get(Metric::Recall5), Some(1.0));
        assert_eq!(found.measures.get(Metric::Precision5), Some(0.4));
    }

    #[test]
    fn results_stand_in_order_and_a_failure_ends_the_rest() {
        let doubled = in_parallel(100, 4, |at| Ok::<_, ()>(2 * at)).unwrap();
        assert_eq!(doubled, (0..100).map(|at| 2 * at).collect::<Vec<_>>());
        assert_eq!(in_parallel(100, 4, |at| if at == 7 { Err(at) } else { Ok(at) }), Err(7));
        assert!(in_parallel(0, 4, Ok::<_, ()>).unwrap().is_empty());
    }
}

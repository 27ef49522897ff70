//! Where the right answer was lost, stage by stage: the order in which search is to be mended.
//!
//! In: questions of which nothing relevant came among the first five. Out: how far the best judgment came.
//!
//! ```text
//!  not in the corpus ─► not cut ─► not recalled ─► ranked low ─► crowded out ─► found
//!  no document there    no entry   in neither      in a list,    it would be
//!                       is it      list's first    not among     but for the limit
//!                                  200             the first 5   a document
//! ```
//!
//! **Invariant:** of several judgments with the best grade the one counts that came furthest.

use super::ask::{AskError, Asking, hits, in_parallel, is};
use super::configuration::Configuration;
use super::question::{Judgment, Question, Target};
use crate::search::{Hit, Mode, Request, SearchError, Selected, document_of, placed_entries};
use dataflows::data::Outcome;
use dataflows::memo::Memo;
use serde::Serialize;

/// How deep the lists are read: as many candidates as each index gives to the fusion.
const CANDIDATES: usize = 200;

/// What counts as found.
const SHOWN: usize = 5;

/// How far the right answer came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// No document stands there, or it was not indexed.
    NotInCorpus,
    /// The document is there, and none of its entries is what is meant.
    NotCut,
    /// The entry is among the first candidates of neither list.
    NotRecalled,
    /// It is a candidate, and not among the first five.
    RankedLow,
    /// It would be among the first five, had its document not given as many hits as it may before.
    CrowdedOut,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 5] = [Self::NotInCorpus, Self::NotCut, Self::NotRecalled, Self::RankedLow, Self::CrowdedOut];

    /// Returns the words for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotInCorpus => "not in the corpus",
            Self::NotCut => "not cut well",
            Self::NotRecalled => "not recalled",
            Self::RankedLow => "ranked low",
            Self::CrowdedOut => "crowded out",
        }
    }
}

/// What became of the right answer of one question.
#[derive(Clone, Debug)]
pub struct Fate {
    /// How far it came.
    pub stage: Stage,
    /// Which judgment that was, by its place in the question.
    pub judgment: usize,
    /// Its rank among the candidates of the words.
    pub bm25: Option<usize>,
    /// Its rank among those of the vectors.
    pub vector: Option<usize>,
    /// Its rank in the configuration, read as deep as the lists.
    pub rank: Option<usize>,
}

/// Returns for each of the questions at `numbers` what became of its right answer.
///
/// # Errors
/// Where a search fails.
pub fn fates(
    asking: &Asking<'_>,
    questions: &[Question],
    numbers: &[usize],
    configuration: &Configuration,
    threads: usize,
) -> Result<Vec<Option<Fate>>, AskError> {
    in_parallel(numbers.len(), threads, |at| fate(asking, &questions[numbers[at]], configuration))
}

fn fate(asking: &Asking<'_>, question: &Question, configuration: &Configuration) -> Result<Option<Fate>, AskError> {
    let Some(best) = question.judgments.iter().map(|judgment| judgment.grade).max().filter(|grade| *grade > 0) else {
        return Ok(None);
    };
    let own = Request { k: CANDIDATES, ..asking.request(question, configuration) };
    let unlimited = Request { per_document: usize::MAX, ..own.clone() };
    let all = |mode| Request { mode, fold: false, ..unlimited.clone() };
    let ask = |request: Request| hits(asking, &request, &question.id);
    let lists = [ask(all(Mode::Bm25))?, ask(all(Mode::Vector))?, ask(own.clone())?, ask(unlimited.clone())?];
    let rank = |list: &[Hit], judgment: &Judgment| {
        let is_it = |hit: &&Hit| judgment.targets.iter().any(|target| is(target, hit));
        list.iter().find(is_it).map(|hit| hit.rank)
    };
    let failed = |source| AskError { id: question.id.clone(), source };
    let at = asking.searcher.revisions().select(
        asking.searcher.reader(),
        own.source.as_deref(),
        own.view.as_deref(),
        own.at.as_deref(),
    );
    let at = at.map_err(failed)?;
    let mut furthest: Option<Fate> = None;
    for (number, judgment) in question.judgments.iter().enumerate().filter(|(_, judgment)| judgment.grade == best) {
        let [bm25, vector, rank, unlimited] = [0, 1, 2, 3].map(|list| rank(&lists[list], judgment));
        let stage = match [bm25, vector, rank, unlimited].iter().any(Option::is_some) {
            true if unlimited.is_some_and(|rank| rank <= SHOWN) => Stage::CrowdedOut,
            true => Stage::RankedLow,
            false => unrecalled(asking, &at, judgment).map_err(failed)?,
        };
        let order = |fate: &Fate| (fate.stage, std::cmp::Reverse(fate.rank.unwrap_or(usize::MAX)));
        let fate = Fate { stage, judgment: number, bm25, vector, rank };
        if furthest.as_ref().is_none_or(|furthest| order(furthest) < order(&fate)) {
            furthest = Some(fate);
        }
    }
    Ok(furthest)
}

/// Returns how far something came that no list has.
fn unrecalled(asking: &Asking<'_>, at: &[Selected], judgment: &Judgment) -> Result<Stage, SearchError> {
    let mut furthest = Stage::NotInCorpus;
    for target in &judgment.targets {
        for selected in at {
            furthest = furthest.max(look(asking, selected, target)?);
        }
    }
    Ok(furthest)
}

fn look(asking: &Asking<'_>, selected: &Selected, target: &Target) -> Result<Stage, SearchError> {
    let Some(path) = target.path.as_ref().filter(|path| !path.as_bytes().ends_with(b"/")) else {
        // Without a document to look at, whether there is such an entry is not known.
        return Ok(Stage::NotRecalled);
    };
    let reader = asking.searcher.reader();
    let alive = reader.with_archive(|archive| archive.bitmaps(selected.version))?;
    let document = document_of(reader, &alive.documents, path)?.map(|placed| placed.document);
    let Some(document) = document.filter(|document| matches!(document.outcome, Outcome::Indexed { .. })) else {
        return Ok(Stage::NotInCorpus);
    };
    let is_it = placed_entries(reader, &document)?.iter().any(|placed| {
        let text = if target.text.is_some() { reader.memo().text(placed.entry.text) } else { None };
        target.is(path, &placed.card.symbol, Some(placed.lines), text.as_deref().unwrap_or_default())
    });
    Ok(if is_it { Stage::NotRecalled } else { Stage::NotCut })
}

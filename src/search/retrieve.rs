//! Retrieval: both indexes, fused; more candidates are read until enough hits pass the limit per document.
//!
//! In: a request. Out: the searched versions, and the hits.
//!
//! **Invariant:** the ranked list of a larger k begins with that of a smaller one. The limit per document, and the deduplication
//! of identical texts, are applied before k is counted. Both indexes use the same bitmap: the version's live entries, narrowed by
//! the filter.

use super::SearchError;
use super::doubt::mark;
use super::fuse::Fusion;
use super::hits::{self, Found, Hit};
use super::ranked::{ListName, RankedList};
use super::request::{Answer, FusionMethod, Mode, Request};
use super::rescore::{self, ExactName};
use super::revision::{Revisions, Selected};
use super::thin::{Candidate, Thinning};
use crate::embedders;
use crate::index::lexical::Asked;
use crate::index::vector::{Nearest, Reach};
use crate::index::{IndexReader, IndexView};
use crate::store::Layout;
use dataflows::data::DocumentPath;
use dataflows::embed::Embedder;
use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;
use snapshots::{Ordinal, VersionId};
use std::sync::Arc;
use std::time::Instant;

/// Candidates of each index for fusion at first: enough that a hit of one list usually has a rank in the other.
const DEPTH: usize = 200;
/// And where they are ranked anew: deeper ones change nothing (`docs/decisions/0045-linear-scores.md`).
const POOL: usize = 100;
/// Entries whose names are compared where the question is a name.
const NAMED: usize = 1_000;

/// A store open for questions.
pub struct Searcher {
    reader: IndexReader,
    revisions: Revisions,
    model: Arc<dyn Embedder>,
}

impl Searcher {
    /// Opens a store for questions by the configured model.
    ///
    /// # Errors
    /// If there is none, or it has no version.
    pub fn open(layout: &Layout) -> Result<Self, SearchError> {
        Self::open_with(layout, embedders::configured())
    }

    /// Opens a store for questions by a model.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(layout: &Layout, model: Arc<dyn Embedder>) -> Result<Self, SearchError> {
        let reader =
            IndexReader::open(layout, model.fingerprint(), u32::try_from(model.dimensions()).unwrap_or(u32::MAX))?;
        let revisions = Revisions::new(&reader)?;
        Ok(Self { reader, revisions, model })
    }

    /// Returns the store of the searcher.
    #[must_use]
    pub const fn reader(&self) -> &IndexReader {
        &self.reader
    }

    /// Returns the model that embeds questions.
    #[must_use]
    pub fn model(&self) -> &dyn Embedder {
        &*self.model
    }

    /// Returns the resolver of names and times.
    #[must_use]
    pub const fn revisions(&self) -> &Revisions {
        &self.revisions
    }

    /// Reads what was published since the last refresh; returns whether there was anything.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn refresh(&mut self) -> Result<bool, SearchError> {
        let moved = self.reader.refresh()?;
        if moved {
            self.revisions = Revisions::new(&self.reader)?;
        }
        Ok(moved)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// If the request is out of bounds or names something unknown, or the store cannot be read.
    pub fn search(&self, request: &Request) -> Result<Answer, SearchError> {
        let started = Instant::now();
        request.check()?;
        let at = self.revisions.select(
            &self.reader,
            request.source.as_deref(),
            request.view.as_deref(),
            request.at.as_deref(),
        )?;
        self.answer(request, at, started)
    }

    /// Answers a request in these versions, ignoring its source, view and revision.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub(super) fn search_in(&self, request: &Request, at: Vec<Selected>) -> Result<Answer, SearchError> {
        request.check()?;
        self.answer(request, at, Instant::now())
    }

    fn answer(&self, request: &Request, at: Vec<Selected>, started: Instant) -> Result<Answer, SearchError> {
        let versions: Vec<VersionId> = at.iter().map(|selected| selected.version).collect();
        let view = self.reader.view(&versions)?;
        let roots = self.roots(&at);
        let filtered = request.filter.as_ref().map(|filter| filter.entries(&self.reader, &view, &roots)).transpose()?;
        let (filtered, empty_filters) = filtered.map(|passing| (passing.entries, passing.empty_terms)).unzip();
        let without_vector = if request.mode == Mode::Bm25 { 0 } else { self.reader.owed_vectors(&view)? };
        let asked = Asked::read(&request.query);
        let (mut found, exact) = self.retrieve(request, &asked, &view, filtered.as_ref())?;
        mark(&mut found, (request.query.as_str(), &asked), &*self.model, &view, &self.reader)?;
        let hits = self.hits(request, &at, &view, filtered.as_ref(), &found)?;
        let unknown_terms = unknown(&view, &asked)?;
        self.reader.let_go_of_much();
        let (exact, took) = (exact && without_vector == 0, started.elapsed());
        let (terms, dropped_terms) = (asked.words.len(), asked.dropped_terms);
        let empty_filters = empty_filters.unwrap_or_default();
        Ok(Answer { at, exact, without_vector, took, hits, terms, unknown_terms, dropped_terms, empty_filters })
    }

    /// Returns the current or former folders of the sources of some versions, for a filter's absolute paths.
    fn roots(&self, at: &[Selected]) -> Vec<String> {
        let sources =
            self.revisions.sources().iter().filter(|(id, _)| at.iter().any(|selected| selected.source == *id));
        let located = sources.map(|(_, record)| String::from_utf8_lossy(&record.location).into_owned());
        // The recorded location of a repository may be the folder of its objects.
        let both = |location: String| {
            let work_tree = location.trim_end_matches('/').strip_suffix("/.git").map(str::to_owned);
            [Some(location), work_tree]
        };
        located.flat_map(both).flatten().filter(|root| root.starts_with('/')).collect()
    }

    /// Returns the found entries for hits, best first, and whether the vectors' ranks are exact.
    fn retrieve(
        &self,
        request: &Request,
        asked: &Asked,
        view: &Arc<IndexView>,
        filter: Option<&RoaringBitmap>,
    ) -> Result<(Vec<Found>, bool), SearchError> {
        let question = match request.mode {
            Mode::Bm25 => None,
            Mode::Hybrid | Mode::Vector => self.model.embed_query(&request.query)?,
        };
        let question = match question {
            Some(question) => Some((question, self.reader.vectors(view)?)),
            None => None,
        };
        let alive = filter.unwrap_or(&view.entries);
        let reach = if request.exact { Reach::All } else { Reach::Near };
        let is_linear = request.mode == Mode::Hybrid && request.fusion == FusionMethod::Linear;
        let first = if is_linear { POOL } else { DEPTH };
        let (mut exact, mut depth) = (true, first);
        let name = ExactName::read(&request.query).filter(|_| request.mode != Mode::Vector);
        let mut floor = 0.0;
        let (mut fusion, mut thinning) = (Fusion::default(), Thinning::new(request.k, request.per_document));
        loop {
            let by_words = || -> Result<RankedList, SearchError> {
                let hits = view.lexical.search(&asked.query, depth, filter, &self.reader)?;
                Ok(RankedList { name: ListName::BM25, hits })
            };
            let by_vector = || match &question {
                Some((question, vectors)) => vectors.search(alive, question, depth, reach, &self.reader),
                None => Ok(Nearest { ranked: Vec::new(), exact: true }),
            };
            let (words, near) = match request.mode {
                Mode::Hybrid => {
                    let (words, near) = rayon::join(by_words, by_vector);
                    (Some(words?), Some(near?))
                }
                Mode::Bm25 => (Some(by_words()?), None),
                Mode::Vector => (None, Some(by_vector()?)),
            };
            exact &= near.as_ref().is_none_or(|near| near.exact);
            let near = near.map(|near| RankedList { name: ListName::VECTOR, hits: near.ranked });
            let lists: Vec<RankedList> = words.into_iter().chain(near).collect();
            let is_exhausted = lists.iter().all(|list| list.hits.len() < depth);
            let mut found = fusion.deepen(depth, &lists, &self.reader);
            if depth == first {
                let corpus = rescore::Corpus {
                    reader: &self.reader,
                    view,
                    vectors: question.as_ref().map(|(_, vectors)| vectors),
                    model: &*self.model,
                };
                if let Some(name) = &name {
                    let known: FxHashSet<Ordinal> = found.iter().map(|found| found.ordinal).collect();
                    let named = self.named(name, view, filter)?.into_iter().filter(|named| !known.contains(named));
                    found.extend(named.map(Found::new));
                    fusion.give(&found);
                }
                found = if is_linear {
                    let vector = question.as_ref().map(|(vector, _)| vector.as_slice());
                    let question = rescore::Question { text: &request.query, vector };
                    rescore::rescore(&question, name.as_ref(), &corpus, found)?
                } else {
                    rescore::names_first(name.as_ref(), &corpus, found)?
                };
                floor = found.last().map_or(0.0, |last| last.score);
            } else if is_linear {
                // Ranks alone count here, and what was ranked anew stands in front.
                found.iter_mut().for_each(|found| found.score += floor - 1.0);
            }
            self.thin_out(&found, request.fold, &mut thinning)?;
            if thinning.is_full() || is_exhausted {
                return Ok((thinning.into_kept(), exact));
            }
            depth = depth.saturating_mul(4);
        }
    }

    /// Returns the entries whose symbol may be a name.
    fn named(
        &self,
        name: &ExactName,
        view: &IndexView,
        filter: Option<&RoaringBitmap>,
    ) -> Result<Vec<Ordinal>, SearchError> {
        for query in [name.query(), name.short_query()] {
            let found = view.lexical.search_names(&query, NAMED, filter, &self.reader)?;
            let ordinals: Vec<Ordinal> = found.into_iter().map(|(ordinal, _)| ordinal).collect();
            let records = self.reader.catalogue().entries_with_cards(ordinals.iter().copied())?;
            let meets = ordinals.into_iter().zip(records).filter(|(_, (_, card))| name.meets(card) > 0.0);
            let named: Vec<Ordinal> = meets.map(|(ordinal, _)| ordinal).take(DEPTH).collect();
            if !named.is_empty() {
                return Ok(named);
            }
        }
        Ok(Vec::new())
    }

    /// Offers found entries, until there are enough.
    fn thin_out(&self, found: &[Found], fold: bool, thinning: &mut Thinning) -> Result<(), SearchError> {
        for part in found.chunks(DEPTH) {
            if thinning.is_full() {
                break;
            }
            let texts = match fold {
                true => self.reader.catalogue().text_numbers(part.iter().map(|found| found.ordinal))?,
                false => Vec::new(),
            };
            for (at, found) in part.iter().enumerate() {
                let path = self.reader.path_number(found.ordinal)?;
                thinning.offer(Candidate { found: found.clone(), path, text: texts.get(at).copied() });
            }
        }
        Ok(())
    }

    fn hits(
        &self,
        request: &Request,
        at: &[Selected],
        view: &IndexView,
        filter: Option<&RoaringBitmap>,
        found: &[Found],
    ) -> Result<Vec<Hit>, SearchError> {
        let mut hits = hits::read(&self.reader, at, found, request.fold)?;
        if request.fold {
            for hit in &mut hits {
                hit.paths = self.paths(hit, view, filter.unwrap_or(&view.entries))?;
            }
        }
        hits.truncate(request.k);
        for (rank, hit) in (1..).zip(&mut hits) {
            hit.rank = rank;
        }
        Ok(hits)
    }

    /// Returns the paths of a hit's text among `entries`, its own first.
    fn paths(&self, hit: &Hit, view: &IndexView, entries: &RoaringBitmap) -> Result<Vec<DocumentPath>, SearchError> {
        let mut same = view.lexical.with_text(&hit.text, entries)?;
        let numbers = self.reader.catalogue().text_numbers(same.iter().copied().chain([hit.entry]))?;
        let text = numbers.last().copied();
        let mut numbers = numbers.into_iter();
        same.retain(|_| numbers.next() == text);
        let others = self.reader.paths(&same)?.into_iter().filter(|path| *path != hit.path);
        Ok([hit.path.clone()].into_iter().chain(others).collect())
    }
}

/// Returns the words of a query that match no living entry, as typed.
fn unknown(view: &IndexView, asked: &Asked) -> Result<Vec<String>, SearchError> {
    let mut unknown = Vec::new();
    for word in &asked.words {
        let mut is_known = false;
        for term in &word.terms {
            is_known = is_known || view.lexical.holds(term)?;
        }
        if !is_known {
            unknown.push(word.typed.clone());
        }
    }
    Ok(unknown)
}

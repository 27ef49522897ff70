//! Retrieval: both indexes, fused, with candidates refilled until enough documents share the answer.
//!
//! In: a request. Out: the versions that answered, and the hits.
//!
//! **Invariant:** the ranked list of a larger k begins with that of a smaller one; the limit a document is applied before k
//! is counted. Both indexes see the same bitmap: the version's live entries, narrowed by the filter.

use super::SearchError;
use super::filter::Filter;
use super::fuse::reciprocal_ranks;
use super::hits::{self, Found, Hit, Ranked};
use super::revision::{Revisions, Selected};
use crate::embedders::StaticModel;
use crate::index::lexical::LexicalQuery;
use crate::index::vector::{Nearest, Reach};
use crate::index::{IndexReader, IndexView};
use crate::store::Layout;
use dataflows::embed::Embedder;
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};
use snapshots::{Ordinal, VersionId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Candidates that each index gives for fusion at first: deep enough that a hit of one list meets its rank in the other.
const DEPTH: usize = 200;
/// How many hits one request may ask for.
const MAX_HITS: usize = 10_000;

/// Which index answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Mode {
    /// Both, fused.
    #[default]
    Hybrid,
    /// Words only: exactly the entries that hold at least one of the query's terms.
    Bm25,
    /// Vectors only.
    Vector,
}

impl Mode {
    /// Returns the word that stands for the mode in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Bm25 => "bm25",
            Self::Vector => "vector",
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The question.
    pub query: String,
    /// Which index answers.
    pub mode: Mode,
    /// How many hits.
    pub k: usize,
    /// Only this source.
    pub source: Option<String>,
    /// This view instead of the default one.
    pub view: Option<String>,
    /// As of this revision.
    pub at: Option<String>,
    /// Only what passes.
    pub filter: Option<Filter>,
    /// At most this many entries of one document.
    pub per_document: usize,
    /// Whether identical text at several paths is one hit.
    pub fold: bool,
    /// Whether every living vector is looked at, however many there are.
    pub exact: bool,
}

impl Request {
    /// Returns a request with the defaults: hybrid, ten hits, two a document.
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            mode: Mode::Hybrid,
            k: 10,
            source: None,
            view: None,
            at: None,
            filter: None,
            per_document: 2,
            fold: false,
            exact: false,
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The versions that were searched.
    pub at: Vec<Selected>,
    /// Whether the vectors' ranks are those of an exact scan.
    pub exact: bool,
    /// How many entries lack a vector that the model gave them, where vectors were asked for.
    pub lost_vectors: u64,
    /// From the parsed query to the hits.
    pub took: Duration,
    /// The hits, best first.
    pub hits: Vec<Hit>,
}

/// A store open for questions.
pub struct Searcher {
    reader: IndexReader,
    revisions: Revisions,
    model: StaticModel,
}

impl Searcher {
    /// Opens a store.
    ///
    /// # Errors
    /// Where there is none, or it has no version.
    pub fn open(layout: &Layout) -> Result<Self, SearchError> {
        let model = StaticModel::new();
        let reader =
            IndexReader::open(layout, model.fingerprint(), u32::try_from(model.dimensions()).unwrap_or(u32::MAX))?;
        let revisions = Revisions::new(&reader)?;
        Ok(Self { reader, revisions, model })
    }

    /// Returns the store behind the searcher.
    #[must_use]
    pub const fn reader(&self) -> &IndexReader {
        &self.reader
    }

    /// Returns what names and times mean.
    #[must_use]
    pub const fn revisions(&self) -> &Revisions {
        &self.revisions
    }

    /// Takes over what was published since the store was last read; returns whether anything was.
    ///
    /// # Errors
    /// Where the store cannot be read.
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
    /// Where the request is empty or names something unknown, or the store cannot be read.
    pub fn search(&self, request: &Request) -> Result<Answer, SearchError> {
        let started = Instant::now();
        if request.query.trim().is_empty() {
            return Err(SearchError::EmptyQuery);
        }
        if request.k == 0 || request.per_document == 0 {
            return Err(SearchError::NoHits);
        }
        let at = self.revisions.select(
            &self.reader,
            request.source.as_deref(),
            request.view.as_deref(),
            request.at.as_deref(),
        )?;
        let versions: Vec<VersionId> = at.iter().map(|selected| selected.version).collect();
        let view = self.reader.view(&versions)?;
        let filtered = request.filter.as_ref().map(|filter| filter.entries(&self.reader, &view)).transpose()?;
        let lost_vectors = if request.mode == Mode::Bm25 { 0 } else { self.reader.lost_vectors(&view)? };
        let (hits, exact) = self.retrieve(request, &at, &view, filtered.as_ref())?;
        self.reader.let_go_of_much();
        let exact = exact && lost_vectors == 0;
        Ok(Answer { at, exact, lost_vectors, took: started.elapsed(), hits })
    }

    fn retrieve(
        &self,
        request: &Request,
        at: &[Selected],
        view: &Arc<IndexView>,
        filter: Option<&RoaringBitmap>,
    ) -> Result<(Vec<Hit>, bool), SearchError> {
        let k = request.k.min(MAX_HITS);
        let words = LexicalQuery::parse(&request.query);
        let question = match request.mode {
            Mode::Bm25 => None,
            Mode::Hybrid | Mode::Vector => self.model.embed_query(&request.query)?,
        };
        let alive = filter.unwrap_or(&view.entries);
        let reach = if request.exact { Reach::All } else { Reach::Near };
        let mut exact = true;
        let mut depth = DEPTH;
        let mut found: Vec<Found> = Vec::new();
        let mut seen = FxHashSet::default();
        loop {
            let by_words = || match request.mode {
                Mode::Vector => Ok(Vec::new()),
                Mode::Hybrid | Mode::Bm25 => view.lexical.search(&words, depth, filter, &self.reader),
            };
            let by_vector = || match &question {
                Some(question) => view.vectors.search(alive, question, depth, reach, &self.reader),
                None => Ok(Nearest { ranked: Vec::new(), exact: true }),
            };
            let (bm25, near) = match request.mode {
                Mode::Hybrid => rayon::join(by_words, by_vector),
                Mode::Bm25 | Mode::Vector => (by_words(), by_vector()),
            };
            let (bm25, Nearest { ranked: near, exact: is_exact }) = (bm25?, near?);
            exact &= is_exact;
            let exhausted = bm25.len() < depth && near.len() < depth;
            let deeper = match request.mode {
                Mode::Bm25 => single(&bm25, |found, ranked| found.bm25 = Some(ranked)),
                Mode::Vector => single(&near, |found, ranked| found.vector = Some(ranked)),
                Mode::Hybrid => self.fused(&bm25, &near),
            };
            // Deeper lists would fuse into another order; what is found already keeps its place, so that a larger k only
            // adds to what a smaller one gave.
            found.extend(deeper.into_iter().filter(|deeper| seen.insert(deeper.ordinal)));
            let kept = self.thin_out(&found, request, k)?;
            if kept.len() >= k || exhausted {
                return Ok((self.hits(at, &kept, request, k)?, exact));
            }
            depth = depth.saturating_mul(4);
        }
    }

    fn fused(&self, bm25: &[(Ordinal, f32)], near: &[(Ordinal, f32)]) -> Vec<Found> {
        let places = |list: &[(Ordinal, f32)]| -> FxHashMap<Ordinal, Ranked> {
            let ranked = (1..).zip(list).map(|(rank, &(ordinal, score))| (ordinal, Ranked { rank, score }));
            ranked.collect()
        };
        let (by_words, by_vector) = (places(bm25), places(near));
        reciprocal_ranks(&[bm25, near], &self.reader)
            .into_iter()
            .map(|(ordinal, score)| Found {
                ordinal,
                score,
                bm25: by_words.get(&ordinal).copied(),
                vector: by_vector.get(&ordinal).copied(),
            })
            .collect()
    }

    /// Keeps the first k that a document may still give; with `fold`, the same text counts once.
    fn thin_out(&self, found: &[Found], request: &Request, k: usize) -> Result<Vec<Found>, SearchError> {
        let mut of_document: FxHashMap<u32, usize> = FxHashMap::default();
        let mut texts = FxHashSet::default();
        let mut kept = Vec::new();
        for found in found {
            if request.fold && !texts.insert(self.reader.catalogue().entry(found.ordinal)?.entry.text) {
                kept.push(*found);
                continue;
            }
            if texts.len() > k && request.fold {
                break;
            }
            let given = of_document.entry(self.reader.path_number(found.ordinal)?).or_default();
            *given += 1;
            if *given <= request.per_document {
                kept.push(*found);
                if kept.len() == k && !request.fold {
                    break;
                }
            }
        }
        Ok(kept)
    }

    fn hits(&self, at: &[Selected], found: &[Found], request: &Request, k: usize) -> Result<Vec<Hit>, SearchError> {
        let mut hits = hits::read(&self.reader, at, found)?;
        if request.fold {
            hits = fold(hits);
        }
        hits.truncate(k);
        for (rank, hit) in (1..).zip(&mut hits) {
            hit.rank = rank;
        }
        Ok(hits)
    }
}

fn single(list: &[(Ordinal, f32)], place: impl Fn(&mut Found, Ranked)) -> Vec<Found> {
    (1..)
        .zip(list)
        .map(|(rank, &(ordinal, score))| {
            let mut found = Found { ordinal, score, bm25: None, vector: None };
            place(&mut found, Ranked { rank, score });
            found
        })
        .collect()
}

/// Makes one hit of identical texts: the best one, with the paths of all.
fn fold(hits: Vec<Hit>) -> Vec<Hit> {
    let mut folded: Vec<Hit> = Vec::with_capacity(hits.len());
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    for mut hit in hits {
        match places.get(&hit.text) {
            Some(&place) => {
                let paths = &mut folded[place].paths;
                if !paths.contains(&hit.path) {
                    paths.push(hit.path);
                }
            }
            None => {
                places.insert(hit.text.clone(), folded.len());
                hit.paths.push(hit.path.clone());
                folded.push(hit);
            }
        }
    }
    folded
}

//! All answers of a store as of one commit, in a form that two stores can be compared by.
//!
//! In: an open store and a revision. Out: digest, statistics, document rows, entries with lines and vector bits, and for
//! fixed questions the ranked lists of every mode with the bits of their scores.
//!
//! **Invariant:** a picture holds nothing that may differ between two histories of one tree: no ordinals, no epochs, no
//! `introduced_in`. So two pictures of one tree are equal, or a law is broken.

use dataflows::data::{Document, EntryId, Lines};
use dataflows::memo::Memo;
use snapshots::{Digest, Ordinal, Statistics};
use std::fmt::Debug;
use tidemill::index::Given;
use tidemill::search::{ListName, Mode, Request, Searcher, Selected, placed_entries};

/// The questions: identifiers, prose, a phrase, Chinese, words of every or of no document.
const QUESTIONS: [&str; 7] = [
    "spawn camera",
    "how is the render graph sorted",
    "fn",
    "\"tide mill\"",
    "渲染 设置",
    "Physics::step word7",
    "zyx",
];

/// An entry as a reader sees it: identity, path, kind, symbol, lines, text, tokens, and the bits of its vector.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Line {
    pub(crate) path: String,
    pub(crate) lines: Lines,
    pub(crate) id: EntryId,
    pub(crate) kind: &'static str,
    pub(crate) symbol: String,
    pub(crate) text: String,
    tokens: Vec<u32>,
    vector: Option<Vec<u16>>,
}

/// One hit: path, lines, text, and its scores by their bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ranked {
    rank: usize,
    path: String,
    lines: Option<Lines>,
    symbol: String,
    text: String,
    score: u32,
    bm25: Option<(usize, u32)>,
    vector: Option<(usize, u32)>,
}

impl Ranked {
    /// Returns the bits of the score, and the text.
    pub(crate) fn score_and_text(&self) -> (u32, String) {
        (self.score, self.text.clone())
    }
}

/// The answers of a store as of one commit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Picture {
    pub(crate) digest: Digest,
    pub(crate) statistics: Statistics,
    pub(crate) documents: Vec<Document>,
    pub(crate) entries: Vec<Line>,
    pub(crate) answers: Vec<(&'static str, &'static str, Vec<Ranked>)>,
}

impl Picture {
    /// Asks a store for everything as of a revision, or of the newest version.
    pub(crate) fn of(searcher: &Searcher, at: Option<&str>) -> Self {
        let selected = searcher.revisions().select(searcher.reader(), None, None, at).unwrap().remove(0);
        let version = searcher.reader().with_archive(|archive| archive.version(selected.version).cloned()).unwrap();
        let (documents, entries) = contents(searcher, &selected);
        let mut answers = Vec::new();
        for question in QUESTIONS {
            for mode in [Mode::Bm25, Mode::Vector, Mode::Hybrid] {
                answers.push((question, mode.as_str(), ask(searcher, question, mode, at)));
            }
        }
        Self { digest: version.digest, statistics: version.statistics, documents, entries, answers }
    }

    /// Fails with the first difference from `expected`, if there is one.
    pub(crate) fn assert_equals(&self, expected: &Self, context: impl Debug) {
        same_rows(&self.documents, &expected.documents, "documents", &context);
        same_rows(&self.entries, &expected.entries, "entries", &context);
        assert_eq!(self.digest, expected.digest, "digest, {context:?}");
        assert_eq!(self.statistics, expected.statistics, "statistics, {context:?}");
        for (answer, known) in self.answers.iter().zip(&expected.answers) {
            same_rows(&answer.2, &known.2, &format!("`{}` by {}", answer.0, answer.1), &context);
        }
        assert_eq!(self, expected, "{context:?}");
    }
}

/// Fails at the first row that differs.
pub(crate) fn same_rows<T: PartialEq + Debug>(found: &[T], expected: &[T], what: &str, context: &impl Debug) {
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "{what}, row {number}, {context:?}");
    }
    let rest = (found.get(expected.len()), expected.get(found.len()));
    assert_eq!(found.len(), expected.len(), "{what}: too many and too few: {rest:?}, {context:?}");
}

/// Returns every entry of the newest version.
pub(crate) fn entries(searcher: &Searcher) -> Vec<Line> {
    let selected = searcher.revisions().select(searcher.reader(), None, None, None).unwrap().remove(0);
    contents(searcher, &selected).1
}

/// Returns the document rows of a version, and its entries as the bitmap has them, placed by their documents.
fn contents(searcher: &Searcher, selected: &Selected) -> (Vec<Document>, Vec<Line>) {
    let reader = searcher.reader();
    let alive = reader.with_archive(|archive| archive.bitmaps(selected.version)).unwrap();
    let mut documents = reader.catalogue().documents(alive.documents.iter().map(Ordinal::new)).unwrap();
    documents.sort();
    let mut entries = Vec::new();
    for placed in documents.iter().flat_map(|document| placed_entries(reader, document).unwrap()) {
        let ordinal = reader.catalogue().entry_ordinal(placed.entry.id()).unwrap().expect("a placed entry is stored");
        assert!(alive.entries.contains(ordinal.get()), "{:?} is placed and not alive", placed.entry);
        let vector = match reader.vector_of(ordinal).unwrap() {
            Given::Vector(components) => Some(components.iter().map(|part| part.to_bits()).collect()),
            Given::NoVector => None,
            Given::Owed(reason) => panic!("{}: {reason}", placed.entry.path),
        };
        entries.push(Line {
            path: placed.entry.path.to_string(),
            lines: placed.lines,
            id: placed.entry.id(),
            kind: placed.card.kind.as_str(),
            symbol: placed.card.symbol,
            text: reader.memo().text(placed.entry.text).unwrap(),
            tokens: reader.catalogue().entry(ordinal).unwrap().tokens.as_list().to_vec(),
            vector,
        });
    }
    assert_eq!(entries.len() as u64, alive.entries.len(), "as many entries are alive as are placed");
    entries.sort();
    (documents, entries)
}

fn ask(searcher: &Searcher, question: &str, mode: Mode, at: Option<&str>) -> Vec<Ranked> {
    let request = Request { mode, at: at.map(str::to_owned), k: 25, per_document: 4, ..Request::new(question) };
    let rank = |ranked: tidemill::search::Ranked| (ranked.rank, ranked.score.to_bits());
    let hits = searcher.search(&request).unwrap().hits;
    hits.into_iter()
        .map(|hit| Ranked {
            rank: hit.rank,
            path: hit.path.to_string(),
            lines: hit.lines,
            symbol: hit.card.symbol,
            text: hit.text,
            score: hit.score.to_bits(),
            bm25: hit.ranks.of(&ListName::BM25).map(rank),
            vector: hit.ranks.of(&ListName::VECTOR).map(rank),
        })
        .collect()
}

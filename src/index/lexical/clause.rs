//! The clauses of a query under a version's statistics: their weights, and the most that each can add to a score.
//!
//! In: a clause in a field, and the version's statistics. Out: its weight, its bound, and a cursor over its matches in a segment.
//!
//! **Invariant:** the score of a match, in every bit, is that of tantivy's own scorers under the same statistics; and no match
//! scores more than the bound.
//!
//! A term that occurs f times in a field of n tokens adds weight · f / (f + norm(n)) (BM25). This grows with f, and f is at most
//! n. So the bound is the greatest such value over all lengths that the index distinguishes, with f as large as the longest field
//! of that length. Floating-point division and multiplication round monotonically, so the bound holds for the rounded values as
//! well. It depends on nothing that was written with a segment.

use super::cursor::{Cursor, TermCursor};
use std::sync::Arc;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{InvertedIndexReader, SegmentReader};
use tantivy::postings::TermInfo;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, EnableScoring, PhraseQuery, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{Searcher, TERMINATED, Term};

/// A clause in one field, weighed.
pub(super) struct Clause {
    kind: Kind,
    bound: f32,
}

enum Kind {
    Term { term: Term, weight: Bm25Weight },
    Phrase { weight: Box<dyn Weight>, boost: f32 },
}

impl Clause {
    /// Weighs the clause of these terms, each at its position; for a single term the position does not matter. Returns nothing if
    /// no entry of the version can match.
    pub(super) fn weigh(
        terms: Vec<(usize, Term)>,
        boost: f32,
        statistics: &dyn Bm25StatisticsProvider,
        searcher: &Searcher,
    ) -> tantivy::Result<Option<Self>> {
        for (_, term) in &terms {
            if statistics.doc_freq(term)? == 0 {
                return Ok(None);
            }
        }
        let of_all: Vec<Term> = terms.iter().map(|(_, term)| term.clone()).collect();
        let weight = Bm25Weight::for_terms(statistics, &of_all)?.boost_by(boost);
        let bound = greatest(&weight);
        let kind = match <[(usize, Term); 1]>::try_from(terms) {
            Ok([(_, term)]) => Kind::Term { term, weight },
            Err(terms) => {
                let scoring = EnableScoring::enabled_from_statistics_provider(statistics, searcher);
                Kind::Phrase { weight: PhraseQuery::new_with_offset(terms).weight(scoring)?, boost }
            }
        };
        Ok(Some(Self { kind, bound }))
    }

    /// Returns the most that a match can add to a score.
    pub(super) const fn bound(&self) -> f32 {
        self.bound
    }

    /// Returns the clause's matches in a segment, if it has any.
    pub(super) fn matches(&self, reader: &SegmentReader) -> tantivy::Result<Option<Matches<'_>>> {
        match &self.kind {
            Kind::Term { term, weight } => {
                let index = reader.inverted_index(term.field())?;
                let Some(info) = index.get_term_info(term)? else { return Ok(None) };
                let norms = reader.fieldnorms_readers().get_field(term.field())?;
                let norms = norms.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1));
                Ok(Some(Matches::Term { index, info, norms, weight }))
            }
            Kind::Phrase { weight, boost } => {
                let scorer = weight.scorer(reader, *boost)?;
                let cost = scorer.cost();
                Ok((scorer.doc() != TERMINATED).then_some(Matches::Phrase { scorer, cost }))
            }
        }
    }
}

/// Returns the most that one match can score: see the top of the file.
fn greatest(weight: &Bm25Weight) -> f32 {
    let score = |id: u8| {
        let longest = id.checked_add(1).map_or(u32::MAX, |next| FieldNormReader::id_to_fieldnorm(next) - 1);
        weight.score(id, longest)
    };
    (0..=u8::MAX).map(score).fold(0.0, f32::max)
}

/// The matches of a clause in a segment, not read yet.
pub(super) enum Matches<'a> {
    Term {
        index: Arc<InvertedIndexReader>,
        info: TermInfo,
        norms: FieldNormReader,
        weight: &'a Bm25Weight,
    },
    /// The scorer has already searched for the first match, which may be far.
    Phrase {
        scorer: Box<dyn Scorer>,
        cost: u64,
    },
}

impl Matches<'_> {
    /// Returns how many postings a cursor reads from start to end.
    pub(super) fn cost(&self) -> u64 {
        match self {
            Self::Term { info, .. } => u64::from(info.doc_freq),
            Self::Phrase { cost, .. } => *cost,
        }
    }

    /// Returns a cursor at the first match.
    pub(super) fn open(self) -> tantivy::Result<Cursor> {
        match self {
            Self::Term { index, info, norms, weight } => {
                let postings = index.read_block_postings_from_terminfo(&info, IndexRecordOption::WithFreqs)?;
                Ok(Cursor::Term(Box::new(TermCursor::new(postings, norms, weight.clone()))))
            }
            Self::Phrase { scorer, .. } => Ok(Cursor::Phrase(scorer)),
        }
    }
}

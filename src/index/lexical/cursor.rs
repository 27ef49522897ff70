//! A cursor over the matches of one clause in one segment.
//!
//! In: the postings of a term, or a phrase's scorer. Out: documents in ascending order, each with the clause's score.
//!
//! **Invariant:** documents ascend and none is skipped; a score has the bits of tantivy's own scorer.
//!
//! Terms are read by blocks of postings, as they are stored. The loop over a block has no opaque call in it, because a search of
//! a large index spends its time there.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::{Bm25Weight, Scorer};
use tantivy::{DocId, DocSet, TERMINATED};

/// A position among the matches of a clause.
pub(super) enum Cursor {
    Term(Box<TermCursor>),
    Phrase(Box<dyn Scorer>),
}

impl Cursor {
    /// Returns the current document, or [`TERMINATED`].
    #[inline]
    pub(super) fn document(&self) -> DocId {
        match self {
            Self::Term(cursor) => cursor.document(),
            Self::Phrase(scorer) => scorer.doc(),
        }
    }

    /// Moves to `document`, or the first match after it; returns the score if that document matches.
    #[inline]
    pub(super) fn score_of(&mut self, document: DocId) -> Option<f32> {
        match self {
            Self::Term(cursor) => cursor.score_of(document),
            Self::Phrase(scorer) => {
                if scorer.doc() < document {
                    scorer.seek(document);
                }
                (scorer.doc() == document).then(|| scorer.score())
            }
        }
    }

    /// Moves to `end`, or the first match after it, and passes on each match between `start` and it for which `wanted` is true.
    #[inline]
    pub(super) fn each_between(
        &mut self,
        start: DocId,
        end: DocId,
        wanted: impl Fn(DocId) -> bool,
        mut take: impl FnMut(DocId, f32),
    ) {
        match self {
            Self::Term(cursor) => cursor.each_between(start, end, wanted, take),
            Self::Phrase(scorer) => {
                if scorer.doc() < start {
                    scorer.seek(start);
                }
                let mut document = scorer.doc();
                while document < end {
                    if wanted(document) {
                        take(document, scorer.score());
                    }
                    document = scorer.advance();
                }
            }
        }
    }
}

/// A position among the postings of a term.
pub(super) struct TermCursor {
    postings: BlockSegmentPostings,
    /// The position in the loaded block; [`TERMINATED`] follows its documents.
    at: usize,
    norms: FieldNormReader,
    weight: Bm25Weight,
}

impl TermCursor {
    pub(super) const fn new(postings: BlockSegmentPostings, norms: FieldNormReader, weight: Bm25Weight) -> Self {
        Self { postings, at: 0, norms, weight }
    }

    #[inline]
    fn document(&self) -> DocId {
        self.postings.doc(self.at)
    }

    #[inline]
    fn score_of(&mut self, document: DocId) -> Option<f32> {
        if self.document() < document {
            self.at = self.postings.seek(document);
        }
        (self.document() == document)
            .then(|| self.weight.score(self.norms.fieldnorm_id(document), self.postings.freq(self.at)))
    }

    #[inline]
    fn each_between(
        &mut self,
        start: DocId,
        end: DocId,
        wanted: impl Fn(DocId) -> bool,
        mut take: impl FnMut(DocId, f32),
    ) {
        if self.document() < start {
            self.at = self.postings.seek(start);
        }
        while self.document() < end {
            let (documents, frequencies) = (self.postings.docs(), self.postings.freqs());
            let in_block = documents.iter().zip(frequencies).skip(self.at);
            let mut passed = 0;
            for (&document, &frequency) in in_block {
                if document >= end {
                    break;
                }
                passed += 1;
                if wanted(document) {
                    take(document, self.weight.score(self.norms.fieldnorm_id(document), frequency));
                }
            }
            self.at += passed;
            if self.at >= documents.len() {
                self.postings.advance();
                self.at = 0;
            }
        }
        debug_assert!(self.document() >= end || self.document() == TERMINATED);
    }
}

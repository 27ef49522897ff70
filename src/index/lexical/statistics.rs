//! The statistics of BM25: those of the version only.
//!
//! In: the counts of the version record, and the live documents of each segment. Out: tantivy's [`Bm25StatisticsProvider`].
//!
//! **Invariant:** N, the token totals and every document frequency count the version's live entries, so a score is that of an
//! index of only these entries. A filter changes none of them: it narrows the result, not the weight of a word (and a document
//! frequency above N would abort the process).

use super::schema::TEXT_FIELDS;
use super::search::LexicalView;
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{TantivyError, Term};

/// A version record's counts for BM25.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LiveStatistics {
    /// Live entries.
    pub entries: u64,
    /// Tokens of the live entries, of their text and of their name: the sums of the values that adding them returned.
    pub tokens: [u64; TEXT_FIELDS],
}

impl Bm25StatisticsProvider for LexicalView {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let at = self.fields().texts.iter().position(|&text| text == field);
        at.map(|at| self.statistics().tokens[at])
            .ok_or_else(|| TantivyError::SchemaError("only fields of text are scored".to_owned()))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.statistics().entries)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let mut count = 0;
        for (reader, segment) in self.segments().filter(|(_, segment)| segment.count() > 0) {
            count += u64::from(segment.document_frequency(reader, term)?);
        }
        Ok(count)
    }
}

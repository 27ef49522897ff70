//! The statistics that BM25 scores with: those of the version, and of nothing else.
//!
//! In: what the version record counts, and the live documents of each segment. Out: tantivy's
//! [`Bm25StatisticsProvider`].
//!
//! **Invariant:** N, the token totals and every document frequency count the version's live entries, so a score is the
//! one that an index of only these entries would give. A filter changes none of them: it narrows what is returned, not
//! what a word is worth (and a document frequency above N would stop the process).

use super::schema::TEXT_FIELDS;
use super::search::LexicalView;
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{TantivyError, Term};

/// What a version record counts for BM25.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LiveStatistics {
    /// Live entries.
    pub entries: u64,
    /// Tokens of the live entries, of their text and of their name: the sums of what adding them returned.
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

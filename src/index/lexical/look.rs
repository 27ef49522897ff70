//! Look-ups in a version without ranking: whether a word occurs, and which entries may have a text.
//!
//! In: a token, or a text. Out: yes or no; ordinals.
//!
//! **Invariant:** only live entries count, and the answer does not depend on the segments that hold them.

use super::alive::AliveSegment;
use super::analyzer::for_each_token;
use super::error::LexicalError;
use super::schema::TEXT_FIELDS;
use super::search::LexicalView;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use tantivy::index::SegmentReader;
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::IndexRecordOption;
use tantivy::{TantivyError, Term};

/// The rarity of so many of a text's longest tokens is looked up: long ones are mostly rare.
const ASKED_TOKENS: usize = 4;

impl LexicalView {
    /// Returns whether a living entry holds a token in text or name.
    ///
    /// # Errors
    /// [`LexicalError::Search`] if a segment cannot be read.
    pub fn holds(&self, token: &str) -> Result<bool, LexicalError> {
        for field in self.fields().texts {
            let term = Term::from_field_text(field, token);
            for (reader, segment) in self.segments() {
                if lives(reader, segment, &term).map_err(failed)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns how many living entries hold a token, by field: in the text, and in the name.
    ///
    /// # Errors
    /// [`LexicalError::Search`] if a segment cannot be read.
    pub fn frequencies(&self, token: &str) -> Result<[u64; TEXT_FIELDS], LexicalError> {
        let mut counts = [0; TEXT_FIELDS];
        for (count, field) in counts.iter_mut().zip(self.fields().texts) {
            *count = self.doc_freq(&Term::from_field_text(field, token)).map_err(failed)?;
        }
        Ok(counts)
    }

    /// Returns those of `among` that may have exactly this text: all that do have it, and possibly more. For a text without a
    /// token it returns none.
    ///
    /// # Errors
    /// [`LexicalError::Search`] if a segment cannot be read.
    pub fn with_text(&self, text: &str, among: &RoaringBitmap) -> Result<Vec<Ordinal>, LexicalError> {
        let [field, _] = self.fields().texts;
        let terms: Vec<Term> = longest(text).iter().map(|token| Term::from_field_text(field, token)).collect();
        let mut found = Vec::new();
        for (reader, segment) in self.segments().filter(|(_, segment)| segment.count() > 0) {
            found.extend(holding(reader, segment, &terms, among).map_err(failed)?);
        }
        Ok(found)
    }
}

fn failed(source: TantivyError) -> LexicalError {
    LexicalError::Search(source.into())
}

/// Returns the longest distinct tokens of a text.
fn longest(text: &str) -> Vec<String> {
    let mut longest: Vec<String> = Vec::new();
    for_each_token(text, |token, _, _| {
        let is_long = longest.len() < ASKED_TOKENS || longest.last().is_some_and(|last| last.len() < token.len());
        if is_long && longest.iter().all(|known| known != token) {
            longest.truncate(ASKED_TOKENS - 1);
            let at = longest.partition_point(|known| known.len() >= token.len());
            longest.insert(at, token.to_owned());
        }
    });
    longest
}

/// Returns whether a living document of a segment holds a term.
fn lives(reader: &SegmentReader, segment: &AliveSegment, term: &Term) -> tantivy::Result<bool> {
    if segment.count() == 0 {
        return Ok(false);
    }
    let index = reader.inverted_index(term.field())?;
    let Some(mut postings) = index.read_block_postings(term, IndexRecordOption::Basic)? else { return Ok(false) };
    while postings.block_len() > 0 {
        if postings.docs().iter().any(|&document| segment.is_alive(document)) {
            return Ok(true);
        }
        postings.advance();
    }
    Ok(false)
}

/// Returns those of `among` that hold the rarest of the terms, if a segment has all of them.
fn holding(
    reader: &SegmentReader,
    segment: &AliveSegment,
    terms: &[Term],
    among: &RoaringBitmap,
) -> tantivy::Result<Vec<Ordinal>> {
    let Some(first) = terms.first() else { return Ok(Vec::new()) };
    let index = reader.inverted_index(first.field())?;
    let mut rarest = None;
    for term in terms {
        let Some(info) = index.get_term_info(term)? else { return Ok(Vec::new()) };
        if rarest.as_ref().is_none_or(|(_, frequency)| info.doc_freq < *frequency) {
            rarest = Some((term, info.doc_freq));
        }
    }
    let Some((term, _)) = rarest else { return Ok(Vec::new()) };
    let Some(mut postings) = index.read_block_postings(term, IndexRecordOption::Basic)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    while postings.block_len() > 0 {
        let alive = postings.docs().iter().filter(|&&document| segment.is_alive(document));
        found.extend(alive.map(|&document| segment.ordinal(document)).filter(|ordinal| among.contains(ordinal.get())));
        postings.advance();
    }
    Ok(found)
}

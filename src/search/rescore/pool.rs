//! The entries that are ranked anew, with all that is compared.
//!
//! In: found entries. Out: for each its card, its text, its path and its cosine.
//!
//! **Invariant:** the candidates stand in the order of the found entries. Of a text only the first bytes are compared, so the
//! work is bounded by the number of candidates.

use super::{Corpus, Question, SearchError};
use crate::index::ReaderError;
use crate::index::lexical::border_up_to;
use crate::search::hits::Found;
use crate::search::ranked::ListName;
use dataflows::data::{Card, ChunkKind};
use dataflows::memo::Memo;

/// So much of a text is compared: longer ones are rare, and what they are about stands at their beginning.
const MOST_TEXT_BYTES: usize = 8 << 10;

/// One entry of a pool.
pub(super) struct Candidate {
    /// What it is called: its qualified symbol and its declaration or heading path.
    pub(super) head: String,
    /// The last part of its symbol, or its last heading.
    pub(super) last: String,
    /// Where it stands: the stem of its file, its module and its folder.
    pub(super) place: String,
    /// The folder and the stem of its path.
    pub(super) path: String,
    /// Its text, or the beginning of it.
    pub(super) text: String,
    pub(super) card: Card,
    pub(super) cosine: f64,
    pub(super) vector_rank: Option<usize>,
    pub(super) word_rank: Option<usize>,
}

/// The entries of a pool, in the order in which they were found.
pub(super) struct Pool(pub(super) Vec<Candidate>);

impl Pool {
    /// Reads what is compared.
    pub(super) fn read(question: &Question<'_>, corpus: &Corpus<'_>, found: &[Found]) -> Result<Self, SearchError> {
        let reader = corpus.reader;
        let records = reader.catalogue().entries_with_cards(found.iter().map(|found| found.ordinal))?;
        let mut pool = Vec::with_capacity(found.len());
        for (found, (record, card)) in found.iter().zip(records) {
            let text = reader.memo().text(record.entry.text);
            if text.is_none() {
                reader.memo().check()?;
            }
            let mut text = text.unwrap_or_default();
            text.truncate(border_up_to(&text, MOST_TEXT_BYTES));
            let near = found.ranks.of(&ListName::VECTOR);
            let cosine = match (near, question.vector, corpus.vectors) {
                // A row that was found is not read again.
                (Some(near), ..) => f64::from(near.score),
                (None, Some(vector), Some(vectors)) => {
                    cosine(vector, vectors.vector_of(found.ordinal).map_err(ReaderError::from)?)
                }
                _ => 0.0,
            };
            let path = record.entry.path.display();
            let stem = stem(&path);
            pool.push(Candidate {
                head: head(&card),
                last: last(&card).to_owned(),
                place: [stem, &card.module, &card.folder].join(" "),
                path: [&card.folder, stem].join(" "),
                card,
                text,
                cosine,
                vector_rank: near.map(|ranked| ranked.rank),
                word_rank: found.ranks.of(&ListName::BM25).map(|ranked| ranked.rank),
            });
        }
        Ok(Self(pool))
    }
}

/// Returns the cosine of a question and a row, both of length 1.
fn cosine(question: &[f32], row: Option<Vec<half::f16>>) -> f64 {
    let Some(row) = row else { return 0.0 };
    question.iter().zip(&row).map(|(question, row)| f64::from(*question) * row.to_f64()).sum()
}

fn head(card: &Card) -> String {
    match card.symbol.is_empty() {
        true => card.name.clone(),
        false => format!("{} {}", card.symbol, card.name),
    }
}

fn last(card: &Card) -> &str {
    match card.kind {
        ChunkKind::Code => card.symbol.rsplit(['.', ':']).next().unwrap_or_default(),
        _ => card.name.rsplit(" > ").next().unwrap_or_default(),
    }
}

/// Returns the name of a path's file without what stands behind its last point.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stem_is_the_name_without_its_ending() {
        for (path, expected) in
            [("a/world.rs", "world"), ("world", "world"), (".ignore", ".ignore"), ("a/b.tar.gz", "b.tar")]
        {
            assert_eq!(stem(path), expected);
        }
    }
}

//! The static model's tokenizer: the whole of it, or as much as one question needs.
//!
//! In: `tokenizer.json`, and for the small one the question's text. Out: the known tokens of single words.
//!
//! **Invariant:** both give the same tokens. Unigram looks for the best way to cut a word into pieces of the vocabulary
//! (Kudo: "Subword regularization", ACL 2018, section 3.2), so pieces that do not occur in a text can be left out of the
//! vocabulary; only the lowest score of all must stay, because the penalty of an unknown character is set against it.
//!
//! Setting up the whole vocabulary takes 40 to 90 ms, nearly all of it for 35,508 pieces of which a question needs a
//! hundred; the small one takes 5 ms, most of it to read the file. A search from the command line asks one question.

use dataflows::embed::EmbedError;
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{NormalizedString, Normalizer, Tokenizer};

static TOKENIZER: &[u8] = include_bytes!("static-bi/tokenizer.json");

/// The mark that stands for a space in front of a word.
const WORD_START: char = '\u{2581}';

/// Number of the token that stands for what the vocabulary does not have.
const UNKNOWN: u32 = 0;

/// Longest piece of the vocabulary, in characters; a test keeps it true.
const MAX_PIECE_CHARS: usize = 22;

/// A tokenizer for single words.
pub(super) struct Pieces {
    tokenizer: Tokenizer,
    /// The model's number for each of the tokenizer's, where the vocabulary is not the whole one.
    numbers: Option<Vec<u32>>,
}

/// The parts of `tokenizer.json` that the small tokenizer is made of.
#[derive(serde::Deserialize)]
struct File<'a> {
    normalizer: NormalizerWrapper,
    pre_tokenizer: PreTokenizerWrapper,
    #[serde(borrow)]
    model: Model<'a>,
}

#[derive(serde::Deserialize)]
struct Model<'a> {
    #[serde(borrow)]
    vocab: Vec<(Cow<'a, str>, f64)>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Pieces {
    /// Returns the whole tokenizer.
    pub(super) fn whole() -> Result<Self, Failure> {
        Ok(Self { tokenizer: Tokenizer::from_bytes(TOKENIZER)?, numbers: None })
    }

    /// Returns a tokenizer that knows the pieces which occur in `text`; its work grows with the length of `text`.
    ///
    /// `text` is prepared already: words with spaces between them.
    pub(super) fn of_text(text: &str) -> Result<Self, Failure> {
        let File { normalizer, pre_tokenizer, model } = serde_json::from_slice(TOKENIZER)?;
        let mut normalized = NormalizedString::from(text);
        normalizer.normalize(&mut normalized)?;
        let marked: String = format!("{WORD_START}{}", normalized.get()).replace(' ', "\u{2581}");
        let borders: Vec<usize> = marked.char_indices().map(|(at, _)| at).chain([marked.len()]).collect();
        let mut occurring: FxHashSet<&str> = FxHashSet::default();
        for (first, &start) in borders.iter().enumerate() {
            let ends = borders.iter().skip(first + 1).take(MAX_PIECE_CHARS);
            occurring.extend(ends.map(|&end| &marked[start..end]));
        }
        let lowest = (0..).zip(&model.vocab).min_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(number, _)| number);
        let kept = (0..).zip(model.vocab).filter(|(number, (piece, _))| {
            *number == UNKNOWN || Some(*number) == lowest || occurring.contains(piece.as_ref())
        });
        let (numbers, vocab) = kept.map(|(number, (piece, score))| (number, (piece.into_owned(), score))).unzip();
        let mut tokenizer = Tokenizer::new(Unigram::from(vocab, Some(UNKNOWN as usize), false)?);
        tokenizer.with_normalizer(Some(normalizer)).with_pre_tokenizer(Some(pre_tokenizer));
        Ok(Self { tokenizer, numbers: Some(numbers) })
    }

    /// Returns the number of tokens.
    pub(super) fn len(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// Appends the known tokens of `text` to `tokens`: of one word, or of several with spaces between them.
    pub(super) fn tokenize(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), EmbedError> {
        let encoding = self
            .tokenizer
            .encode_fast(text, false)
            .map_err(|source| EmbedError::Model { model: super::static_model::NAME.to_owned(), source })?;
        let known = encoding.get_ids().iter().copied().filter(|&token| token != UNKNOWN);
        match &self.numbers {
            None => tokens.extend(known),
            Some(numbers) => tokens.extend(known.map(|token| numbers[token as usize])),
        }
        Ok(())
    }
}

/// The bytes that make the tokenizer, for the model's fingerprint.
#[cfg(test)]
pub(super) const fn file() -> &'static [u8] {
    TOKENIZER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_is_longer_than_its_bound() {
        let file: File<'_> = serde_json::from_slice(TOKENIZER).unwrap();
        assert_eq!(file.model.vocab.iter().map(|(piece, _)| piece.chars().count()).max(), Some(MAX_PIECE_CHARS));
        assert_eq!(Pieces::whole().unwrap().len(), file.model.vocab.len());
    }
}

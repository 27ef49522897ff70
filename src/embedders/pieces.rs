//! The static model's tokenizer: the whole one, or a small one for a single question.
//!
//! In: `tokenizer.json`, and for the small one the question's text. Out: the known tokens of single words.
//!
//! **Invariant:** both give the same tokens. Unigram searches the best split of a word into pieces of the vocabulary (Kudo:
//! "Subword regularization", ACL 2018, section 3.2), so pieces that do not occur in a text can be left out of the vocabulary.
//! Only the lowest score of all must stay, because the penalty of an unknown character is relative to it.
//!
//! Setting up the whole tokenizer takes 40 to 90 ms and some 60 MB, nearly all of it for a tree of 35,508 pieces, of which a
//! question needs a hundred. Reading the file once takes 5 ms and 2 MB, and the tokenizer of a question a part of a millisecond.

use dataflows::embed::EmbedError;
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{NormalizedString, Normalizer, Tokenizer};

static TOKENIZER: &[u8] = include_bytes!("static-bi/tokenizer.json");

/// The mark for a space before a word.
const WORD_START: char = '\u{2581}';

/// The token for text outside the vocabulary.
const UNKNOWN: u32 = 0;

/// Longest piece of the vocabulary, in characters; a test checks it.
const MAX_PIECE_CHARS: usize = 22;

/// A tokenizer for single words.
pub(super) struct Pieces {
    tokenizer: Tokenizer,
    /// The model's number for each of the tokenizer's numbers, if the vocabulary is a part.
    numbers: Option<Vec<u32>>,
}

/// The data from which small tokenizers are made.
pub(super) struct Vocabulary {
    normalizer: NormalizerWrapper,
    pre_tokenizer: PreTokenizerWrapper,
    /// In the order of their bytes.
    pieces: Vec<Piece>,
    /// Minus the score of each piece, by the model's number.
    rarities: Vec<f64>,
    /// The positions of the unknown token and of the piece with the lowest score.
    always: [usize; 2],
}

struct Piece {
    text: Cow<'static, str>,
    score: f64,
    /// The model's number for it.
    number: u32,
}

/// The parts of `tokenizer.json` that give the vocabulary.
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

    /// Returns the number of tokens.
    pub(super) fn len(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// Appends the known tokens of `text` to `tokens`: of one word, or of several separated by spaces.
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

impl Vocabulary {
    /// Reads the file.
    pub(super) fn read() -> Result<Self, Failure> {
        let File { normalizer, pre_tokenizer, model } = serde_json::from_slice(TOKENIZER)?;
        let numbered = (0..).zip(model.vocab);
        let mut pieces: Vec<Piece> = numbered.map(|(number, (text, score))| Piece { text, score, number }).collect();
        let rarities = pieces.iter().map(|piece| -piece.score).collect();
        pieces.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        let places = || pieces.iter().enumerate();
        let unknown = places().find(|(_, piece)| piece.number == UNKNOWN);
        let lowest = places().min_by(|(_, a), (_, b)| a.score.total_cmp(&b.score));
        let (Some((unknown, _)), Some((lowest, _))) = (unknown, lowest) else {
            return Err("the compiled-in vocabulary is empty".into());
        };
        Ok(Self { normalizer, pre_tokenizer, pieces, rarities, always: [unknown, lowest] })
    }

    /// Returns how rare a piece is: minus the logarithm of its probability.
    pub(super) fn rarity(&self, number: u32) -> f64 {
        self.rarities.get(number as usize).copied().unwrap_or(0.0)
    }

    /// Returns a tokenizer of the pieces that occur in `text`; the cost grows with the length of `text`.
    ///
    /// `text` is prepared already: words separated by spaces.
    pub(super) fn pieces_of(&self, text: &str) -> Result<Pieces, Failure> {
        let mut normalized = NormalizedString::from(text);
        self.normalizer.normalize(&mut normalized)?;
        let marked: String = format!("{WORD_START}{}", normalized.get()).replace(' ', "\u{2581}");
        let borders: Vec<usize> = marked.char_indices().map(|(at, _)| at).chain([marked.len()]).collect();
        let mut occurring: FxHashSet<usize> = FxHashSet::from_iter(self.always);
        for (first, &start) in borders.iter().enumerate() {
            let ends = borders.iter().skip(first + 1).take(MAX_PIECE_CHARS);
            occurring.extend(ends.filter_map(|&end| self.place(&marked[start..end])));
        }
        let mut kept: Vec<&Piece> = occurring.into_iter().map(|place| &self.pieces[place]).collect();
        // The unknown token is the first, as in the whole vocabulary.
        kept.sort_unstable_by_key(|piece| piece.number);
        let numbers = kept.iter().map(|piece| piece.number).collect();
        let vocab = kept.into_iter().map(|piece| (piece.text.clone().into_owned(), piece.score)).collect();
        let mut tokenizer = Tokenizer::new(Unigram::from(vocab, Some(UNKNOWN as usize), false)?);
        tokenizer.with_normalizer(Some(self.normalizer.clone())).with_pre_tokenizer(Some(self.pre_tokenizer.clone()));
        Ok(Pieces { tokenizer, numbers: Some(numbers) })
    }

    fn place(&self, text: &str) -> Option<usize> {
        self.pieces.binary_search_by(|piece| piece.text.as_ref().cmp(text)).ok()
    }
}

/// The bytes of the tokenizer, for the model's fingerprint.
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

//! The built-in model: a bilingual static token embedding, compiled in.
//!
//! In: texts. Out: the weighted sum of their tokens' rows, scaled to length 1.
//!
//! **Invariant:** a vector's bits depend only on the text and the files beside this one: tokens are added in the order of their
//! first appearance with plain `f32` arithmetic, and the only function of the platform's mathematics library is the square root,
//! which IEEE 754 rounds exactly.
//!
//! ```text
//! embeddings.i8.bin   u32 rows, u32 dimensions, f32 scale a row, i8 row × dimension; little endian; row 0: unknown
//! tokenizer.json      Unigram over words; the tokenizer splits at spaces, so each word's tokens are its own
//! vector              Σ over distinct tokens t of √c[t] · row(t), scaled to length 1
//! c[t]                query: occurrences of t; document: Σ over its occurrences of 1 + 80·exp(−k/12),
//!                     k = the occurrence's position among the known tokens: the head of a text counts most
//! ```
//!
//! Nine tenths of the time would go to the tokenizer. Words are independent, so a cache keeps the tokens of each word, and the
//! tokenizer sees each frequent word once. `NOTICE` says where the model comes from.

use super::pieces::{Pieces, Vocabulary};
use super::prepare::for_each_word;
use dataflows::data::{Hasher, ModelId};
use dataflows::embed::{EmbedError, Embedder, TokenRows, Vector};
use rustc_hash::{FxHashMap, FxHashSet};
use std::error::Error;
use std::sync::{Mutex, OnceLock, PoisonError};

static EMBEDDINGS: &[u8] = include_bytes!("static-bi/embeddings.i8.bin");

/// BLAKE3 of both files, one after the other: a test checks it, so that no start has to hash ten megabytes.
const FILES: &str = "f7c9d99385f7738ae32cca55bc72955079b57b65bd2c58f93f65e09159e2f0f6";

/// Raised whenever the same text gets another vector from the same files.
const CODE_VERSION: u32 = 1;

pub(super) const NAME: &str = "static-bi";
const DIMENSIONS: usize = 256;
const HEADER_BYTES: usize = 8;

/// Extra weight of the first token, and the factor from one position to the next, exp(−1/12); both were fitted together with the
/// rows.
const HEAD_WEIGHT: f64 = 80.0;
const HEAD_DECAY: f64 = 0.920_044_414_629_323_3;

/// From this position on the extra weight is below 1e-15 and does not change a sum.
const HEAD_TOKENS: usize = 512;

/// Words and tokens in one worker's cache before it is emptied: some 4 MB.
const MAX_WORDS: usize = if cfg!(test) { 1 << 10 } else { 1 << 15 };
const MAX_WORD_TOKENS: usize = 4 * MAX_WORDS;

/// Longest cached word, in bytes; longer ones rarely occur twice.
const MAX_REMEMBERED_BYTES: usize = 64;

/// Longest question, in bytes, for which a small tokenizer is made: above that the whole one is cheaper.
const MAX_SMALL_BYTES: usize = 2048;

/// Weight of an occurrence by its position. By repeated multiplication, which every machine rounds in the same way.
static POSITION_WEIGHTS: [f64; HEAD_TOKENS] = {
    let mut weights = [1.0; HEAD_TOKENS];
    let mut head = HEAD_WEIGHT;
    let mut position = 0;
    while position < HEAD_TOKENS {
        weights[position] += head;
        head *= HEAD_DECAY;
        position += 1;
    }
    weights
};

// Measured by `benches/chance.rs` for the built-in model: `docs/decisions/0036-weak-hits.md`.

/// One in a thousand entries comes as near as this to a question that it has nothing to do with.
const CHANCE: f32 = 0.32;
/// And this near comes the nearest of a store to one in a hundred questions of letters in no order.
const CHANCE_OF_LETTERS: f32 = 0.55;
/// A question whose words have fewer bytes a token is read by the model as letters in no order.
const LETTERS: f32 = 2.6;

/// The built-in model.
///
/// Making one is free. The first call sets up what it needs: some 50 ms and 60 MB for documents, 5 ms and 2 MB for questions.
///
/// ```
/// use dataflows::embed::Embedder;
/// use tidemill::embedders::StaticModel;
/// let model = StaticModel::new();
/// let vectors = model.embed_documents(&["fn spawn_camera()", "?!"]).unwrap();
/// assert_eq!(vectors[0].as_ref().unwrap().dimensions(), 256);
/// assert!(vectors[1].is_none());
/// ```
#[derive(Default)]
pub struct StaticModel {
    rows: OnceLock<Result<Rows, String>>,
    pieces: OnceLock<Result<Pieces, String>>,
    /// The data for tokenizers of single questions.
    vocabulary: OnceLock<Result<Vocabulary, String>>,
    /// One per concurrent caller, held for the duration of a call.
    workers: Mutex<Vec<Worker>>,
}

/// The counting rule for occurrences of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Query,
    Document,
}

impl StaticModel {
    /// Returns the built-in model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn rows(&self) -> Result<&Rows, EmbedError> {
        self.rows.get_or_init(Rows::load).as_ref().map_err(|reason| unusable(reason.clone()))
    }

    fn pieces(&self) -> Result<&Pieces, EmbedError> {
        let load = || {
            let pieces = Pieces::whole().map_err(|error| error.to_string())?;
            match self.rows() {
                Ok(rows) if rows.scales.len() == pieces.len() => Ok(pieces),
                _ => Err("the compiled-in tokenizer and rows do not belong together".to_owned()),
            }
        };
        self.pieces.get_or_init(load).as_ref().map_err(|reason| unusable(reason.clone()))
    }

    /// Returns a tokenizer for one question, which is fast to set up.
    fn pieces_of(&self, text: &str) -> Result<Pieces, EmbedError> {
        let mut prepared = String::with_capacity(text.len() + text.len() / 4);
        for_each_word(text, |word| {
            prepared.push_str(word);
            prepared.push(' ');
        });
        self.pieces_of_words(&prepared)
    }

    /// Returns a tokenizer for words that are prepared, with spaces between them.
    fn pieces_of_words(&self, prepared: &str) -> Result<Pieces, EmbedError> {
        self.vocabulary()?.pieces_of(prepared).map_err(unusable)
    }

    fn vocabulary(&self) -> Result<&Vocabulary, EmbedError> {
        let vocabulary = self.vocabulary.get_or_init(|| Vocabulary::read().map_err(|error| error.to_string()));
        vocabulary.as_ref().map_err(|reason| unusable(reason.clone()))
    }

    /// Returns the bytes of a question's words per token, or nothing if no token is known. Words that the model knows are one or
    /// few tokens; random letters are split into many.
    ///
    /// # Errors
    /// If the compiled-in files cannot be used.
    pub fn bytes_a_token(&self, question: &str) -> Result<Option<f32>, EmbedError> {
        let mut bytes = 0;
        for_each_word(question, |word| bytes += word.len());
        let tokens = self.with_question(question, |_, worker, tokenize| {
            worker.read(tokenize, question)?;
            Ok(worker.tokens.len())
        })?;
        Ok((tokens > 0).then(|| bytes as f32 / tokens as f32))
    }

    /// Runs `work` with a worker's cache and the tokenizer for the words of one question.
    fn with_question<T>(
        &self,
        question: &str,
        work: impl FnOnce(&Rows, &mut Worker, Tokenize<'_>) -> Result<T, EmbedError>,
    ) -> Result<T, EmbedError> {
        // Made for the first word that is not cached.
        let mut small = None;
        let mut tokenize = |word: &str, tokens: &mut Vec<u32>| {
            let pieces = match &small {
                None if self.pieces.get().is_some() || question.len() > MAX_SMALL_BYTES => self.pieces()?,
                None => small.insert(self.pieces_of(question)?),
                Some(pieces) => pieces,
            };
            pieces.tokenize(word, tokens)
        };
        self.with_worker(|rows, worker| work(rows, worker, &mut tokenize))
    }

    /// Runs `work` with a worker's cache, which later calls use again.
    fn with_worker<T>(&self, work: impl FnOnce(&Rows, &mut Worker) -> Result<T, EmbedError>) -> Result<T, EmbedError> {
        let rows = self.rows()?;
        let idle = self.workers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = idle.unwrap_or_else(|| Worker::new(rows.scales.len()));
        let result = work(rows, &mut worker);
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        result
    }
}

fn unusable(source: impl Into<Box<dyn Error + Send + Sync>>) -> EmbedError {
    EmbedError::Model { model: NAME.to_owned(), source: source.into() }
}

impl Embedder for StaticModel {
    fn fingerprint(&self) -> ModelId {
        let hasher = Hasher::new("embedder").part(NAME.as_bytes()).part(FILES.as_bytes());
        ModelId::from_words(hasher.part(&CODE_VERSION.to_le_bytes()).finish())
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn name(&self) -> &str {
        NAME
    }

    fn embed_documents(&self, texts: &[&str]) -> Result<Vec<Option<Vector>>, EmbedError> {
        let pieces = self.pieces()?;
        self.with_worker(|rows, worker| {
            let mut tokenize = |word: &str, tokens: &mut Vec<u32>| pieces.tokenize(word, tokens);
            let mut embed = |text: &&str| {
                worker.sum(rows, &mut tokenize, text, Side::Document)?.map(|sum| Vector::new(&sum)).transpose()
            };
            texts.iter().map(&mut embed).collect()
        })
    }

    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        let sum = self.with_question(text, |rows, worker, tokenize| worker.sum(rows, tokenize, text, Side::Query))?;
        Ok(sum.map(|sum| {
            let squares: f64 = sum.iter().map(|&component| f64::from(component) * f64::from(component)).sum();
            sum.iter().map(|&component| (f64::from(component) / squares.sqrt()) as f32).collect()
        }))
    }

    fn chance(&self, question: &str) -> Result<Option<f32>, EmbedError> {
        let is_read_as_words = self.bytes_a_token(question)?.is_none_or(|bytes| bytes >= LETTERS);
        Ok(Some(if is_read_as_words { CHANCE } else { CHANCE_OF_LETTERS }))
    }

    fn token_rows(&self) -> Option<&dyn TokenRows> {
        Some(self)
    }
}

/// The compiled-in rows, with their scales as numbers.
struct Rows {
    /// One per row.
    scales: Vec<f32>,
}

impl Rows {
    fn load() -> Result<Self, String> {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| EMBEDDINGS[at + byte]));
        let (rows, dimensions) = (number(0) as usize, number(4) as usize);
        if dimensions != DIMENSIONS || EMBEDDINGS.len() != HEADER_BYTES + rows * (4 + dimensions) {
            return Err("the compiled-in rows do not have the expected shape".to_owned());
        }
        Ok(Self { scales: (0..rows).map(|row| f32::from_bits(number(HEADER_BYTES + 4 * row))).collect() })
    }

    fn row(&self, token: u32) -> &'static [u8] {
        let start = HEADER_BYTES + self.scales.len() * 4 + token as usize * DIMENSIONS;
        &EMBEDDINGS[start..start + DIMENSIONS]
    }
}

impl TokenRows for StaticModel {
    fn tokens(&self, texts: &[&str]) -> Result<Vec<Vec<u32>>, EmbedError> {
        self.with_worker(|_, worker| {
            // A small tokenizer of the words that the worker has not cached is quick to make.
            let unseen = if self.pieces.get().is_some() { String::new() } else { worker.unseen_words(texts) };
            let mut small = None;
            let mut tokenize = |word: &str, tokens: &mut Vec<u32>| {
                let pieces = match &small {
                    None if unseen.is_empty() => self.pieces()?,
                    None => small.insert(self.pieces_of_words(&unseen)?),
                    Some(pieces) => pieces,
                };
                pieces.tokenize(word, tokens)
            };
            let mut read = |text: &&str| {
                worker.read(&mut tokenize, text)?;
                Ok(worker.tokens.clone())
            };
            texts.iter().map(&mut read).collect()
        })
    }

    fn lengths(&self, tokens: &[u32]) -> Result<Vec<f64>, EmbedError> {
        let rows = self.rows()?;
        Ok(tokens.iter().map(|&token| f64::from(rows.scales[token as usize]) * length(rows.row(token))).collect())
    }

    fn similarities(&self, left: &[u32], right: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let rows = self.rows()?;
        let lengths: Vec<f64> = right.iter().map(|&token| length(rows.row(token))).collect();
        let mut cosines = Vec::with_capacity(left.len() * right.len());
        for &token in left {
            let (row, own) = (rows.row(token), length(rows.row(token)));
            cosines.extend(right.iter().zip(&lengths).map(|(&other, length)| {
                let product = f64::from(product(row, rows.row(other)));
                if product > 0.0 { (product / (own * length)) as f32 } else { 0.0 }
            }));
        }
        Ok(cosines)
    }

    fn rarities(&self, tokens: &[u32]) -> Result<Vec<f64>, EmbedError> {
        let vocabulary = self.vocabulary()?;
        Ok(tokens.iter().map(|&token| vocabulary.rarity(token)).collect())
    }
}

/// Returns the inner product of two rows, exactly.
fn product(left: &[u8], right: &[u8]) -> i32 {
    left.iter().zip(right).map(|(&left, &right)| i32::from(left as i8) * i32::from(right as i8)).sum()
}

/// Returns the length of a row before it is scaled.
fn length(row: &[u8]) -> f64 {
    f64::from(product(row, row)).sqrt()
}

/// Appends the known tokens of a word.
type Tokenize<'a> = &'a mut dyn FnMut(&str, &mut Vec<u32>) -> Result<(), EmbedError>;

/// The state of one caller at a time: cached words, and the counts of one text.
struct Worker {
    /// The position of each word's tokens in `word_tokens`.
    words: FxHashMap<Box<str>, (u32, u32)>,
    word_tokens: Vec<u32>,
    /// The known tokens of the current text.
    tokens: Vec<u32>,
    /// c\[t\] of the current text, by token; zero between texts.
    counts: Vec<f64>,
    /// The tokens whose count is not zero, in the order of their first appearance.
    distinct: Vec<u32>,
}

impl Worker {
    fn new(rows: usize) -> Self {
        Self {
            words: FxHashMap::default(),
            word_tokens: Vec::new(),
            tokens: Vec::new(),
            counts: vec![0.0; rows],
            distinct: Vec::new(),
        }
    }

    /// Returns the distinct words of some texts that are not cached, with spaces between them.
    ///
    /// The cache starts over first where these would fill it, and then all words of the texts are returned: so whatever is asked for
    /// while the texts are read is cached, or is one of these.
    fn unseen_words(&mut self, texts: &[&str]) -> String {
        let (count, unseen) = self.distinct_unseen(texts);
        // A token has a byte at least.
        let is_filled = self.words.len() + count > MAX_WORDS || self.word_tokens.len() + unseen.len() > MAX_WORD_TOKENS;
        if !is_filled || self.words.is_empty() {
            return unseen;
        }
        self.words.clear();
        self.word_tokens.clear();
        self.distinct_unseen(texts).1
    }

    fn distinct_unseen(&self, texts: &[&str]) -> (usize, String) {
        let (mut seen, mut unseen) = (FxHashSet::<Box<str>>::default(), String::new());
        for text in texts {
            for_each_word(text, |word| {
                if !self.words.contains_key(word) && !seen.contains(word) {
                    seen.insert(word.into());
                    unseen.push_str(word);
                    unseen.push(' ');
                }
            });
        }
        (seen.len(), unseen)
    }

    /// Puts the known tokens of `text` into `self.tokens`.
    fn read(&mut self, tokenize: Tokenize<'_>, text: &str) -> Result<(), EmbedError> {
        self.tokens.clear();
        let mut result = Ok(());
        for_each_word(text, |word| {
            if result.is_ok() {
                result = self.read_word(tokenize, word);
            }
        });
        result
    }

    fn read_word(&mut self, tokenize: Tokenize<'_>, word: &str) -> Result<(), EmbedError> {
        if let Some(&(start, end)) = self.words.get(word) {
            self.tokens.extend_from_slice(&self.word_tokens[start as usize..end as usize]);
            return Ok(());
        }
        let before = self.tokens.len();
        tokenize(word, &mut self.tokens)?;
        if word.len() <= MAX_REMEMBERED_BYTES {
            if self.words.len() >= MAX_WORDS || self.word_tokens.len() >= MAX_WORD_TOKENS {
                self.words.clear();
                self.word_tokens.clear();
            }
            let start = self.word_tokens.len() as u32;
            self.word_tokens.extend_from_slice(&self.tokens[before..]);
            self.words.insert(word.into(), (start, self.word_tokens.len() as u32));
        }
        Ok(())
    }

    /// Returns the weighted sum of the text's rows, or `None` without a known token.
    fn sum(
        &mut self,
        rows: &Rows,
        tokenize: Tokenize<'_>,
        text: &str,
        side: Side,
    ) -> Result<Option<[f32; DIMENSIONS]>, EmbedError> {
        self.read(tokenize, text)?;
        for (position, &token) in self.tokens.iter().enumerate() {
            let weight = match side {
                Side::Query => 1.0,
                Side::Document => POSITION_WEIGHTS.get(position).copied().unwrap_or(1.0),
            };
            let count = &mut self.counts[token as usize];
            if *count == 0.0 {
                self.distinct.push(token);
            }
            *count += weight;
        }
        let mut sum = [0.0_f32; DIMENSIONS];
        for &token in &self.distinct {
            let count = std::mem::take(&mut self.counts[token as usize]);
            let weight = count.sqrt() as f32 * rows.scales[token as usize];
            for (component, &byte) in sum.iter_mut().zip(rows.row(token)) {
                *component += weight * f32::from(byte as i8);
            }
        }
        self.distinct.clear();
        Ok(sum.iter().any(|&component| component != 0.0).then_some(sum))
    }
}

#[cfg(test)]
mod tests;

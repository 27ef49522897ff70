//! Late interaction: how near the tokens of an entry come to those of the question.
//!
//! In: the rows of the model's tokens, and a pool. Out: the features of tokens, added to those of words.
//!
//! **Invariant:** of each token of the question only the nearest token of a field counts (Khattab, Zaharia: "ColBERT", SIGIR 2020,
//! section 3.3), so how often something stands in a field makes no difference.
//!
//! With *M_F(q)* the greatest cosine of token *q* with one of field *F*, and *w_q* the length of *q*'s row times the root of its count,
//! over all of them:
//!
//! ```text
//! head       Σ w_q · M_head(q)
//! soft       Σ w_q · (x_q − x_q²),  x_q = max(M_head, 0.6 M_text, 0.7 M_place): nothing for what is the same or is far
//! explained  Σ n_t · max_q cosine(q, t) / Σ n_t  over the tokens t of the last part of the symbol, n_t the length of t's row
//! weighed    Σ w'_q · max(Y_head, l · Y_text, Y_place),  Y_F(q) = max of cosine² · min(1, rarity_t / rarity_q),
//!            w'_q by rarity and length, l = 1 / (1 + 0.15 ln(1 + tokens / mean of the pool))
//! ```

use super::{Features, Pool, Question, SearchError};
use dataflows::embed::TokenRows;
use rustc_hash::FxHashMap;

/// Tokens of a question that are compared.
const MOST_TOKENS: usize = 128;
/// What a token of the text counts beside one of the head.
const TEXT: f64 = 0.6;
/// What a token of the place counts beside one of the head.
const PLACE: f64 = 0.7;
/// How much a long text is taken back.
const LENGTH: f64 = 0.15;

/// The cosines of all tokens of a pool with those of a question.
struct Table {
    /// Where the cosines of a token stand: one for each token of the question.
    columns: FxHashMap<u32, usize>,
    cosines: Vec<f32>,
    /// The cosine squared, times how good the token is as evidence.
    evidence: Vec<f64>,
    lengths: Vec<f64>,
    width: usize,
}

impl Table {
    fn new(
        model: &dyn TokenRows,
        question: &[u32],
        rarities: &[f64],
        tokens: &[Vec<u32>],
    ) -> Result<Self, SearchError> {
        let mut columns: FxHashMap<u32, usize> = FxHashMap::default();
        let mut distinct = Vec::new();
        for &token in tokens.iter().flatten() {
            columns.entry(token).or_insert_with(|| {
                distinct.push(token);
                distinct.len() - 1
            });
        }
        let cosines = model.similarities(&distinct, question)?;
        let width = question.len();
        let own = model.rarities(&distinct)?;
        let evidence = cosines.iter().enumerate().map(|(at, &cosine)| {
            let (token, asked) = (own[at / width], rarities[at % width]);
            let worth = if asked > 0.0 { (token / asked).min(1.0) } else { 1.0 };
            f64::from(cosine).powi(2) * worth
        });
        Ok(Self { evidence: evidence.collect(), lengths: model.lengths(&distinct)?, columns, cosines, width })
    }

    /// Returns of each token of the question the greatest cosine with one of `tokens`, and the best evidence among them.
    fn nearest(&self, tokens: &[u32]) -> Vec<(f64, f64)> {
        let mut nearest = vec![(0.0_f64, 0.0_f64); self.width];
        for token in tokens {
            let start = self.columns[token] * self.width;
            let cosines = &self.cosines[start..start + self.width];
            for ((best, evidence), (cosine, own)) in
                nearest.iter_mut().zip(cosines.iter().zip(&self.evidence[start..start + self.width]))
            {
                *best = best.max(f64::from(*cosine));
                *evidence = evidence.max(*own);
            }
        }
        nearest
    }

    /// Returns how much of `tokens` the question explains.
    fn explained(&self, tokens: &[u32]) -> f64 {
        let (mut explained, mut all) = (0.0, 0.0);
        for token in tokens {
            let column = self.columns[token];
            let cosines = &self.cosines[column * self.width..(column + 1) * self.width];
            let best = cosines.iter().copied().fold(0.0_f32, f32::max);
            explained += f64::from(best) * self.lengths[column];
            all += self.lengths[column];
        }
        if all > 0.0 { explained / all } else { 0.0 }
    }
}

/// Adds the features of tokens.
pub(super) fn add(
    question: &Question<'_>,
    model: &dyn TokenRows,
    pool: &Pool,
    features: &mut [Features],
) -> Result<(), SearchError> {
    let asked = model.tokens(&[question.text])?.pop().unwrap_or_default();
    let mut counts: Vec<(u32, f64)> = Vec::new();
    for token in asked {
        match counts.iter().position(|(known, _)| *known == token) {
            Some(at) => counts[at].1 += 1.0,
            None if counts.len() < MOST_TOKENS => counts.push((token, 1.0)),
            None => {}
        }
    }
    if counts.is_empty() || pool.0.is_empty() {
        return Ok(());
    }
    let distinct: Vec<u32> = counts.iter().map(|(token, _)| *token).collect();
    let (lengths, rarities) = (model.lengths(&distinct)?, model.rarities(&distinct)?);
    let weights = normalised(lengths.iter().zip(&counts).map(|(length, (_, count))| length * count.sqrt()));
    let by_rarity = normalised(lengths.iter().zip(&rarities).map(|(length, rarity)| length * rarity));
    let fields = pool.0.iter().flat_map(|candidate| {
        [&candidate.head, &candidate.text, &candidate.place, &candidate.last].map(String::as_str)
    });
    let tokens = model.tokens(&fields.collect::<Vec<_>>())?;
    let table = Table::new(model, &distinct, &rarities, &tokens)?;
    let texts = tokens.iter().skip(1).step_by(4).map(Vec::len).sum::<usize>() as f64 / pool.0.len() as f64;
    for (features, tokens) in features.iter_mut().zip(tokens.chunks_exact(4)) {
        let [head, text, place, last] = tokens else { continue };
        let [in_head, in_text, in_place] = [head, text, place].map(|tokens| table.nearest(tokens));
        let damped = 1.0 / (1.0 + LENGTH * (text.len() as f64 / texts.max(1.0)).ln_1p());
        for at in 0..distinct.len() {
            let (head, text, place) = (in_head[at], in_text[at], in_place[at]);
            let near = head.0.max(TEXT * text.0).max(PLACE * place.0);
            features.head += weights[at] * head.0;
            features.soft += weights[at] * (near - near * near);
            features.weighed += by_rarity[at] * head.1.max(text.1 * damped).max(place.1);
        }
        features.explained = table.explained(last);
    }
    Ok(())
}

/// Returns weights whose sum is 1.
fn normalised(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let weights: Vec<f64> = weights.collect();
    let all: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| if all > 0.0 { weight / all } else { 0.0 }).collect()
}

//! How much of the question stands in an entry, and whether its words stand together.
//!
//! In: the question, and a pool. Out: coverage of text, name and path, and of neighbours.
//!
//! **Invariant:** rarity (inverse document frequency) is that of the version. The question is analysed as the index is, so a word
//! is found here if and only if the lexical index finds it.

use super::{Corpus, Features, Pool, Question, SearchError};
use crate::index::lexical::for_each_token;
use rustc_hash::{FxHashMap, FxHashSet};

/// English words that carry structure and hardly meaning; what they find counts for less.
const FUNCTION_WORDS: &str = "a an and are as at be been being but by can do does for from has have how i if in into is it its may \
my of on or our should so such than that the their them then there these they this to was we were what when where which who why \
will with would you your";
/// What a function word counts beside another word of its rarity.
const FUNCTION_WEIGHT: f64 = 0.3;
/// Terms of a question that are compared; a pasted text may have thousands.
const MOST_TERMS: usize = 64;

/// A question's terms, whole identifiers and parts.
struct Terms {
    /// The number of each term.
    numbers: FxHashMap<String, u16>,
    /// Of each term its rarity where it stands most often, weighed as a function word or not; and its rarity in texts.
    rarities: Vec<(f64, f64)>,
    /// The terms that are parts, in the order in which they stand; each may come again.
    parts: Vec<u16>,
}

impl Terms {
    fn read(question: &Question<'_>, corpus: &Corpus<'_>) -> Result<Self, SearchError> {
        let function_words: FxHashSet<&str> = FUNCTION_WORDS.split_whitespace().collect();
        let mut terms = Self { numbers: FxHashMap::default(), rarities: Vec::new(), parts: Vec::new() };
        let mut texts = Vec::new();
        let mut standing = None;
        for_each_token(question.text, |token, position, _| {
            let known = terms.numbers.get(token).copied();
            let number = match known {
                Some(number) => number,
                None if texts.len() == MOST_TERMS => return,
                None => {
                    let number = texts.len() as u16;
                    texts.push(token.to_owned());
                    terms.numbers.insert(token.to_owned(), number);
                    number
                }
            };
            // Of the tokens of one position the last one is the part.
            if standing == Some(position) {
                terms.parts.pop();
            }
            standing = Some(position);
            terms.parts.push(number);
        });
        let entries = corpus.view.lexical.statistics().entries as f64;
        for token in &texts {
            let frequencies = corpus.view.lexical.frequencies(token)?;
            let rarity = |frequency: u64| (1.0 + (entries - frequency as f64 + 0.5) / (frequency as f64 + 0.5)).ln();
            let weight = if function_words.contains(token.as_str()) { FUNCTION_WEIGHT } else { 1.0 };
            let most = frequencies.into_iter().max().unwrap_or(0);
            terms.rarities.push((weight * rarity(most), rarity(frequencies[0])));
        }
        Ok(terms)
    }

    /// Notes which terms stand in a text, and calls `with` with each two parts that are neighbours there; 0 where a part is none of the
    /// question's, else one more than its number.
    fn find(&self, text: &str, found: &mut [bool], mut with: impl FnMut(u16, u16)) {
        let (mut before, mut current, mut standing) = (0, 0, None);
        for_each_token(text, |token, position, _| {
            let number = self.numbers.get(token).copied();
            if let Some(number) = number {
                found[usize::from(number)] = true;
            }
            if standing != Some(position) {
                if before > 0 && current > 0 {
                    with(before - 1, current - 1);
                }
                before = current;
                standing = Some(position);
            }
            current = number.map_or(0, |number| number + 1);
        });
        if before > 0 && current > 0 {
            with(before - 1, current - 1);
        }
    }
}

/// Returns the features of words, of each candidate.
pub(super) fn features(
    question: &Question<'_>,
    corpus: &Corpus<'_>,
    pool: &Pool,
) -> Result<Vec<Features>, SearchError> {
    let terms = Terms::read(question, corpus)?;
    let all: f64 = terms.rarities.iter().map(|(rarity, _)| rarity).sum();
    let distinct_parts: Vec<u16> = {
        let mut seen = FxHashSet::default();
        terms.parts.iter().copied().filter(|part| seen.insert(*part)).collect()
    };
    let in_text = |part: u16| terms.rarities[usize::from(part)].1;
    let all_parts: f64 = distinct_parts.iter().map(|part| in_text(*part)).sum();
    let pairs: Vec<(u16, u16)> = terms.parts.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let all_pairs: f64 = pairs.iter().map(|(left, right)| in_text(*left) + in_text(*right)).sum();
    let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
    let mut features = Vec::with_capacity(pool.0.len());
    for candidate in &pool.0 {
        let mut found = vec![false; terms.rarities.len()];
        let mut neighbours: FxHashSet<(u16, u16)> = FxHashSet::default();
        terms.find(&candidate.text, &mut found, |left, right| {
            neighbours.insert((left, right));
        });
        let text: f64 =
            distinct_parts.iter().filter(|part| found[usize::from(**part)]).map(|part| in_text(*part)).sum();
        let together = pairs.iter().filter(|pair| neighbours.contains(*pair));
        let together: f64 = together.map(|(left, right)| in_text(*left) + in_text(*right)).sum();
        for field in [&candidate.head, &candidate.path] {
            terms.find(field, &mut found, |_, _| {});
        }
        let covered: f64 =
            found.iter().zip(&terms.rarities).filter(|(found, _)| **found).map(|(_, (rarity, _))| rarity).sum();
        features.push(Features {
            cosine: candidate.cosine,
            coverage: share(covered, all),
            text_coverage: share(text, all_parts),
            neighbours: share(together, all_pairs),
            vector_rank: candidate.vector_rank,
            word_rank: candidate.word_rank,
            ..Features::default()
        });
    }
    Ok(features)
}

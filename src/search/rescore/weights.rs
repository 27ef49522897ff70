//! From features to a score: eight constants, and a rule for questions of which the vectors know nothing.
//!
//! In: the features of a pool. Out: a score for each entry.
//!
//! **Invariant:** a score follows from the features alone.
//!
//! The constants were fitted by listwise logistic regression (L2 1e-4) on questions made of bevy's doc comments and names, and
//! judged on other questions and on other engines (`docs/decisions/0045-linear-scores.md`).

use super::Features;

const COSINE: f64 = 8.65;
const COVERAGE: f64 = 7.61;
/// Beside the coverage of all fields, this makes a word in the name worth far more than one in the text.
const TEXT_COVERAGE: f64 = -6.63;
const HEAD: f64 = 14.23;
const SOFT: f64 = 31.56;
const EXPLAINED: f64 = 1.82;
const RANK: f64 = 21.96;
const NEIGHBOURS: f64 = 6.01;
/// What ranks are softened by: that of the first is worth little more than that of the second.
const SOFTENING: f64 = 10.0;

/// Where no cosine reaches this, the vectors know nothing of the question.
const WEAK_COSINE: f64 = 0.40;
/// And where no entry has this much evidence of its words, the words know nothing either: a question in another language.
const LEAST_EVIDENCE: f64 = 0.10;

/// What a score is made of: each part with its points. The score is their sum.
pub(super) type Points = Vec<(&'static str, f64)>;

/// Returns what the score of each entry of a pool is made of.
pub(super) fn points(features: &[Features]) -> Vec<Points> {
    let most = |of: fn(&Features) -> f64| features.iter().map(of).fold(0.0, f64::max);
    if most(|features| features.cosine) < WEAK_COSINE && most(|features| features.weighed) >= LEAST_EVIDENCE {
        by_ranks(features)
    } else {
        features.iter().map(linear).collect()
    }
}

fn linear(features: &Features) -> Points {
    vec![
        ("cosine", COSINE * features.cosine),
        ("words found", COVERAGE * features.coverage),
        ("of them in the text", TEXT_COVERAGE * features.text_coverage),
        ("name near", HEAD * features.head),
        ("near words", SOFT * features.soft),
        ("name explained", EXPLAINED * features.explained),
        ("vector rank", RANK * features.vector_rank.map_or(0.0, worth)),
        ("words together", NEIGHBOURS * features.neighbours * features.neighbours),
    ]
}

/// Sums ranks in four orders: vectors, words, coverage, and words with those that come near.
fn by_ranks(features: &[Features]) -> Vec<Points> {
    let (coverage, weighed) =
        (ranks(features, |features| features.coverage), ranks(features, |features| features.weighed));
    let score = |(at, features): (usize, &Features)| {
        vec![
            ("vector rank", features.vector_rank.map_or(0.0, worth)),
            ("word rank", features.word_rank.map_or(0.0, worth)),
            ("words found", 0.5 * worth(coverage[at])),
            ("near words", 1.5 * worth(weighed[at])),
        ]
    };
    features.iter().enumerate().map(score).collect()
}

fn worth(rank: usize) -> f64 {
    1.0 / (SOFTENING + rank as f64)
}

/// Returns the rank of each entry by a feature, from 1; equal ones share the better rank.
fn ranks(features: &[Features], of: fn(&Features) -> f64) -> Vec<usize> {
    let mut order: Vec<f64> = features.iter().map(of).collect();
    order.sort_by(|left, right| right.total_cmp(left));
    let rank = |features: &Features| 1 + order.partition_point(|other| *other > of(features));
    features.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(features: &[Features]) -> Vec<f64> {
        points(features).iter().map(|points| points.iter().map(|(_, points)| points).sum()).collect()
    }

    fn features(cosine: f64, weighed: f64) -> Features {
        Features { cosine, weighed, ..Features::default() }
    }

    #[test]
    fn where_the_vectors_know_nothing_words_decide() {
        let far = [features(0.39, 0.05), features(0.2, 0.5)];
        let scores_of_far = scores(&far);
        assert!(scores_of_far[1] > scores_of_far[0]);
        let near = scores(&[features(0.41, 0.05), features(0.2, 0.5)]);
        assert!(near[0] > near[1]);
        // Of a question in another language the vectors know more than the words.
        let foreign = scores(&[features(0.39, 0.05), features(0.2, 0.09)]);
        assert!(foreign[0] > foreign[1]);
    }

    #[test]
    fn equal_features_share_a_rank() {
        let features = [features(0.0, 0.5), features(0.0, 0.7), features(0.0, 0.5)];
        assert_eq!(ranks(&features, |features| features.weighed), [2, 1, 2]);
    }
}

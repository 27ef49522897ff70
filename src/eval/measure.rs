//! Measures of one ranked list.
//!
//! In: the grade of what stands at each rank, and the grades of everything that was judged for the question. Out: figures from 0 to 1.
//!
//! Definitions are those of Järvelin and Kekäläinen ("Cumulated gain-based evaluation of IR techniques", TOIS 2002) with the exponential
//! gain of Burges et al. ("Learning to rank using gradient descent", ICML 2005), and of Manning, Raghavan and Schütze ("Introduction to
//! Information Retrieval", chapter 8) for the others. Relevant is what has a grade of 1 or more.
//!
//! **Invariant:** a list that was not judged at a rank has grade 0 there; a question for which nothing is relevant has no figure but that
//! of what must not come, so it enters no mean of the others.

use std::str::FromStr;

/// One measure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Metric {
    /// Normalised discounted cumulated gain of the first five: the gain of a grade g is 2^g − 1, that of rank r is divided by
    /// log2(r + 1), and the ideal is the best order of everything that was judged.
    Ndcg5,
    /// How many of the first five are relevant, as a share of five.
    Precision5,
    /// Which share of what is relevant is among the first five.
    Recall5,
    /// Which share of what is relevant is among the first ten.
    Recall10,
    /// Whether the first is relevant.
    Hit1,
    /// Whether anything relevant is among the first five.
    Hit5,
    /// One divided by the rank of the first that is relevant; 0 beyond ten.
    Mrr10,
    /// Whether nothing that must not come is among the first five; of questions that name such.
    KeptOut5,
}

/// Every measure, in the order in which they are shown.
pub const METRICS: [Metric; 8] = [
    Metric::Ndcg5,
    Metric::Precision5,
    Metric::Recall5,
    Metric::Recall10,
    Metric::Hit1,
    Metric::Hit5,
    Metric::Mrr10,
    Metric::KeptOut5,
];

impl Metric {
    /// Returns the measure's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ndcg5 => "ndcg@5",
            Self::Precision5 => "precision@5",
            Self::Recall5 => "recall@5",
            Self::Recall10 => "recall@10",
            Self::Hit1 => "hit@1",
            Self::Hit5 => "hit@5",
            Self::Mrr10 => "mrr@10",
            Self::KeptOut5 => "kept_out@5",
        }
    }
}

impl FromStr for Metric {
    type Err = String;

    /// Reads a name; `mrr` stands for `mrr@10`.
    fn from_str(text: &str) -> Result<Self, String> {
        let named = METRICS.into_iter().find(|metric| metric.as_str() == text);
        named
            .or_else(|| (text == "mrr").then_some(Self::Mrr10))
            .ok_or_else(|| format!("`{text}` is no measure; there are {}", METRICS.map(Metric::as_str).join(", ")))
    }
}

/// The figures of one list, by measure.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Measures([Option<f64>; METRICS.len()]);

impl Measures {
    /// Returns one figure, where the question has it.
    #[must_use]
    pub const fn get(&self, metric: Metric) -> Option<f64> {
        self.0[metric as usize]
    }
}

/// Returns the figures of a ranked list. `gains` has the grade at each rank, best first; `judged` the grades of everything that was
/// judged; `kept_out` whether what must not come stayed away, where anything must.
///
/// ```
/// use tidemill::eval::{Metric, measure};
/// let measures = measure(&[0, 3, 0, 0, 0], &[3], None);
/// assert_eq!(measures.get(Metric::Mrr10), Some(0.5));
/// assert_eq!(measures.get(Metric::Precision5), Some(0.2));
/// assert_eq!(measures.get(Metric::KeptOut5), None);
/// ```
#[must_use]
pub fn measure(gains: &[u8], judged: &[u8], kept_out: Option<bool>) -> Measures {
    let mut measures = Measures::default();
    let mut set = |metric: Metric, figure: f64| measures.0[metric as usize] = Some(figure);
    if let Some(kept_out) = kept_out {
        set(Metric::KeptOut5, f64::from(u8::from(kept_out)));
    }
    let relevant = judged.iter().filter(|grade| **grade > 0).count();
    if relevant == 0 {
        return measures;
    }
    let mut ideal = judged.to_vec();
    ideal.sort_unstable_by(|left, right| right.cmp(left));
    let found = |depth: usize| gains.iter().take(depth).filter(|grade| **grade > 0).count() as f64;
    let first = gains.iter().take(10).position(|grade| *grade > 0);
    set(Metric::Ndcg5, cumulated(gains, 5) / cumulated(&ideal, 5));
    set(Metric::Precision5, found(5) / 5.0);
    set(Metric::Recall5, found(5) / relevant as f64);
    set(Metric::Recall10, found(10) / relevant as f64);
    set(Metric::Hit1, found(1));
    set(Metric::Hit5, f64::from(u8::from(found(5) > 0.0)));
    set(Metric::Mrr10, first.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)));
    measures
}

fn cumulated(grades: &[u8], depth: usize) -> f64 {
    let gain = |grade: u8| 2_f64.powi(grade.into()) - 1.0;
    (2_u8..).zip(grades.iter().take(depth)).map(|(rank, grade)| gain(*grade) / f64::from(rank).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Lists and their figures by ranx 0.3.21, as `tests/fixtures/eval/make_metrics.py` wrote them.
    const FIXTURES: &str = include_str!("../../tests/fixtures/eval/metrics.json");

    #[test]
    fn figures_are_those_of_the_reference() {
        let fixtures: Vec<Value> = serde_json::from_str(FIXTURES).unwrap();
        assert!(fixtures.len() > 50);
        for fixture in &fixtures {
            let judged = fixture["judged"].as_object().unwrap();
            let mut run: Vec<(&str, f64)> = fixture["run"]
                .as_array()
                .unwrap()
                .iter()
                .map(|hit| (hit[0].as_str().unwrap(), hit[1].as_f64().unwrap()))
                .collect();
            // Equal scores stay in the order in which they were given.
            run.sort_by(|left, right| right.1.total_cmp(&left.1));
            let grade = |id: &str| judged.get(id).map_or(0, |grade| u8::try_from(grade.as_u64().unwrap()).unwrap());
            let gains: Vec<u8> = run.iter().map(|(id, _)| grade(id)).collect();
            let grades: Vec<u8> = judged.keys().map(|id| grade(id)).collect();
            let measures = measure(&gains, &grades, None);
            for (name, expected) in fixture["expected"].as_object().unwrap() {
                let found = measures.get(name.parse().unwrap()).unwrap();
                let expected = expected.as_f64().unwrap();
                assert!((found - expected).abs() < 1e-9, "{name}: {found} and not {expected} of {fixture}");
            }
        }
    }

    #[test]
    fn what_has_nothing_relevant_has_no_figures() {
        let measures = measure(&[0, 0], &[0], Some(false));
        assert_eq!(METRICS.map(|metric| measures.get(metric)), [None, None, None, None, None, None, None, Some(0.0)]);
        assert_eq!(measure(&[], &[1], None).get(Metric::Ndcg5), Some(0.0));
    }
}

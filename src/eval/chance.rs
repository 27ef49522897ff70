//! What chance can explain: intervals of means, and tests of differences.
//!
//! In: figures by question, and a seed. Out: percentile bootstrap intervals (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
//! chapter 13), and a paired randomisation test (Smucker, Allan, Carterette: "A comparison of statistical significance tests for
//! information retrieval evaluation", CIKM 2007).
//!
//! **Invariant:** the same figures and seed give the same result on every machine.

use crate::trace::generate::Numbers;
use serde::Serialize;

/// Samples of the bootstrap.
const SAMPLES: usize = 2_000;
/// Assignments of signs that the test draws.
const SIGNS: u32 = 10_000;

/// A mean, and where it would lie in 95 of 100 samples of as many questions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How much one configuration is above another on the same questions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Paired {
    /// The mean of the differences, with its interval.
    #[serde(flatten)]
    pub difference: Interval,
    /// How often chance makes a difference at least as large where there is none.
    pub p: f64,
}

/// Returns the mean of some figures and its interval; nothing where there are none.
pub(super) fn interval(figures: &[f64], seed: u64) -> Option<Interval> {
    if figures.is_empty() {
        return None;
    }
    let mut numbers = Numbers::of(seed, 0xb007);
    let mut draw = || mean((0..figures.len()).map(|_| figures[numbers.below(figures.len())]), figures.len());
    let mut means: Vec<f64> = (0..SAMPLES).map(|_| draw()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| means[((SAMPLES - 1) as f64 * share).round() as usize];
    Some(Interval { mean: mean(figures.iter().copied(), figures.len()), low: at(0.025), high: at(0.975) })
}

/// Compares figures of the same questions, one's and the other's; nothing where there are none.
pub(super) fn paired(pairs: &[(f64, f64)], seed: u64) -> Option<Paired> {
    let differences: Vec<f64> = pairs.iter().map(|(one, other)| one - other).collect();
    let difference = interval(&differences, seed)?;
    let moved: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    // Sums in another order differ in their last digits.
    let least = moved.iter().sum::<f64>().abs() - 1e-9;
    let mut numbers = Numbers::of(seed, 0x516e);
    let mut is_as_large = || {
        let mut signs = 0;
        let sum: f64 = (0..)
            .zip(&moved)
            .map(|(at, difference)| {
                if at % 64 == 0 {
                    signs = numbers.next();
                }
                if (signs >> (at % 64)) & 1 == 0 { *difference } else { -difference }
            })
            .sum();
        sum.abs() >= least
    };
    let as_large = (0..SIGNS).filter(|_| is_as_large()).count();
    Some(Paired { difference, p: (as_large as f64 + 1.0) / (f64::from(SIGNS) + 1.0) })
}

fn mean(figures: impl Iterator<Item = f64>, count: usize) -> f64 {
    figures.sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_mean_and_narrows_with_the_number_of_questions() {
        let figures = |count: usize| (0..count).map(|at| f64::from(u8::from(at % 4 == 0))).collect::<Vec<_>>();
        let (few, many) = (interval(&figures(40), 1).unwrap(), interval(&figures(4_000), 1).unwrap());
        // A share of a quarter of n questions: 1.96 √(0.25 · 0.75 / n).
        for (found, half) in [(few, 0.134), (many, 0.0134)] {
            assert!((found.mean - 0.25).abs() < 1e-12);
            assert!((found.mean - found.low - half).abs() < half / 4.0, "{found:?}");
            assert!((found.high - found.mean - half).abs() < half / 4.0, "{found:?}");
        }
        assert_eq!(interval(&[], 1), None);
        assert_eq!(interval(&figures(40), 1), interval(&figures(40), 1));
    }

    #[test]
    fn a_difference_is_told_from_chance() {
        let pairs = |better: usize, worse: usize| {
            let one = std::iter::repeat_n((1.0, 0.0), better);
            one.chain(std::iter::repeat_n((0.0, 1.0), worse))
                .chain(std::iter::repeat_n((0.5, 0.5), 50))
                .collect::<Vec<_>>()
        };
        let p = |better, worse| paired(&pairs(better, worse), 7).unwrap().p;
        // The sign test, two-sided, by the binomial distribution: 9 of 10, and 5 of 5.
        assert!((p(9, 1) - 0.0215).abs() < 0.005, "{}", p(9, 1));
        assert!((p(5, 0) - 0.0625).abs() < 0.01, "{}", p(5, 0));
        assert!(p(40, 0) < 0.001);
        assert!((p(0, 0) - 1.0).abs() < 1e-9);
        assert!((p(7, 7) - 1.0).abs() < 1e-9);
    }
}

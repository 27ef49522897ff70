//! Judging by people: what is shown to them, the grades that they gave, and how far two of them agree.
//!
//! In: the hits of several configurations. Out: each hit once, in an order that does not tell which configuration found it; lines of a
//! file of grades; Cohen's κ ("A coefficient of agreement for nominal scales", 1960; weighted: "Weighted kappa", 1968).
//!
//! **Invariant:** a grade belongs to a question, a path and the beginning of a text, so it holds in every version in which that stands.

use super::ask::{AskError, Asking, run};
use super::configuration::Configuration;
use super::question::{BEST, Fields, Question, QuestionError, Target, in_single_blanks, read_lines};
use crate::search::Hit;
use crate::trace::generate::Numbers;
use dataflows::data::DocumentPath;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::BufRead;

/// So many characters of a text say which one is meant.
const HEAD: usize = 300;

/// What a person says of a hit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Grade {
    /// The question.
    pub id: String,
    /// Where the hit stands.
    pub path: String,
    /// How its text begins, with single blanks.
    pub text: String,
    /// From 0 to 3.
    pub grade: u8,
}

impl Grade {
    /// Returns the place that was judged.
    pub(super) fn target(&self) -> Target {
        Target {
            path: Some(DocumentPath::from(self.path.as_str())),
            text: Some(self.text.clone()),
            ..Target::default()
        }
    }
}

/// Grades by what they are of; of several the last one counts.
#[derive(Clone, Debug, Default)]
pub struct JudgedFile(BTreeMap<(String, String, String), u8>);

impl JudgedFile {
    /// Returns the grades, sorted by question, path and text.
    #[must_use]
    pub fn into_grades(self) -> Vec<Grade> {
        let grade = |((id, path, text), grade)| Grade { id, path, text, grade };
        self.0.into_iter().map(grade).collect()
    }

    /// Whether a hit was judged for a question.
    #[must_use]
    pub fn holds(&self, pooled: &Pooled) -> bool {
        let grade = pooled.grade(0);
        self.0.contains_key(&(grade.id, grade.path, grade.text))
    }

    /// Adds a grade.
    pub fn add(&mut self, grade: Grade) {
        self.0.insert((grade.id, grade.path, grade.text), grade.grade);
    }
}

/// Reads a file of grades, one JSON object a line.
///
/// # Errors
/// As [`read_questions`](super::read_questions).
pub fn read_grades(file: impl BufRead) -> Result<JudgedFile, QuestionError> {
    let mut judged = JudgedFile::default();
    read_lines(file, |value| {
        let mut fields = Fields::of(value, String::new())?;
        let (id, path, text) = (fields.needed_text("id")?, fields.needed_text("path")?, fields.needed_text("text")?);
        let grade = fields.number("grade", BEST.into())?.ok_or_else(|| fields.wrong("grade", "is missing"))?;
        fields.end()?;
        judged.add(Grade { id, path, text, grade: u8::try_from(grade).unwrap_or(BEST) });
        Ok(())
    })?;
    Ok(judged)
}

/// A hit that waits for a grade.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// The question's id.
    pub id: String,
    /// The hit.
    pub hit: Hit,
}

impl Pooled {
    /// Returns the grade that a person gives to the hit.
    #[must_use]
    pub fn grade(&self, grade: u8) -> Grade {
        let text: String = in_single_blanks(&self.hit.text).chars().take(HEAD).collect();
        Grade {
            id: self.id.clone(),
            path: self.hit.path.display().into_owned(),
            text: text.trim_end().to_owned(),
            grade,
        }
    }
}

/// Returns the first `depth` hits of every configuration for a question, each once, shuffled by a seed and the question's id.
///
/// # Errors
/// Where a search fails.
pub fn pool(
    asking: &Asking<'_>,
    question: &Question,
    configurations: &[Configuration],
    depth: usize,
    seed: u64,
) -> Result<Vec<Pooled>, AskError> {
    let (mut seen, mut pooled) = (FxHashSet::default(), Vec::new());
    for configuration in configurations {
        for hit in run(asking, question, configuration)?.into_iter().take(depth) {
            if seen.insert(hit.entry) {
                pooled.push(Pooled { id: question.id.clone(), hit });
            }
        }
    }
    // In an order of their own first, so that the shuffle does not depend on who found what.
    pooled.sort_by(|left, right| (&left.hit.path, left.hit.entry).cmp(&(&right.hit.path, right.hit.entry)));
    let part = question.id.bytes().fold(0_u64, |part, byte| part.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
    shuffle(&mut pooled, &mut Numbers::of(seed, part));
    Ok(pooled)
}

/// Shuffles as Fisher and Yates do.
pub(super) fn shuffle<T>(values: &mut [T], numbers: &mut Numbers) {
    for last in (1..values.len()).rev() {
        values.swap(last, numbers.below(last + 1));
    }
}

/// How far two people agree.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Agreement {
    /// What both judged.
    pub items: usize,
    /// Which share of that has one grade.
    pub agreement: f64,
    /// Cohen's κ: agreement beyond chance.
    pub kappa: Option<f64>,
    /// The same with quadratic weights: a grade beside the other's is half right.
    pub weighted_kappa: Option<f64>,
}

/// Compares two people's grades of what both judged; there is no κ where chance alone would agree in everything.
#[must_use]
pub fn agreement(one: &JudgedFile, other: &JudgedFile) -> Agreement {
    const GRADES: usize = BEST as usize + 1;
    let pairs: Vec<(usize, usize)> =
        one.0.iter().filter_map(|(key, grade)| Some((usize::from(*grade), usize::from(*other.0.get(key)?)))).collect();
    let items = pairs.len();
    let mut table = [[0.0_f64; GRADES]; GRADES];
    pairs.iter().for_each(|&(left, right)| table[left][right] += 1.0 / items as f64);
    let row = |grade: usize| table[grade].iter().sum::<f64>();
    let column = |grade: usize| table.iter().map(|row| row[grade]).sum::<f64>();
    // What differs, weighted, as it is and as chance would have it.
    let kappa = |weight: fn(f64) -> f64| {
        let cells = (0..GRADES).flat_map(|left| (0..GRADES).map(move |right| (left, right)));
        let (mut observed, mut expected) = (0.0, 0.0);
        for (left, right) in cells {
            let weight = weight(left.abs_diff(right) as f64);
            observed += weight * table[left][right];
            expected += weight * row(left) * column(right);
        }
        (expected > 0.0).then(|| 1.0 - observed / expected)
    };
    let agreement = if items == 0 { 0.0 } else { (0..GRADES).map(|grade| table[grade][grade]).sum() };
    let plain: fn(f64) -> f64 = |apart| apart.min(1.0);
    Agreement { items, agreement, kappa: kappa(plain), weighted_kappa: kappa(|apart| apart * apart) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(grades: impl IntoIterator<Item = u8>) -> JudgedFile {
        let mut file = JudgedFile::default();
        for (at, grade) in grades.into_iter().enumerate() {
            file.add(Grade { id: "q".to_owned(), path: format!("{at:03}"), text: "t".to_owned(), grade });
        }
        file
    }

    fn repeated(cells: &[(u8, u8, usize)]) -> (JudgedFile, JudgedFile) {
        let all = cells.iter().flat_map(|&(left, right, count)| std::iter::repeat_n((left, right), count));
        let (left, right): (Vec<u8>, Vec<u8>) = all.unzip();
        (judged(left), judged(right))
    }

    #[test]
    fn kappa_is_that_of_the_textbook() {
        // 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: the usual example of a κ of 0.4.
        let (left, right) = repeated(&[(1, 1, 20), (1, 0, 5), (0, 1, 10), (0, 0, 15)]);
        let found = agreement(&left, &right);
        assert_eq!(found.items, 50);
        assert!((found.agreement - 0.7).abs() < 1e-12);
        assert!((found.kappa.unwrap() - 0.4).abs() < 1e-12);
        // By hand: 1 − 0.25 / 0.745, and 1 − 0.65 / 2.89.
        let (left, right) = repeated(&[(0, 0, 4), (0, 1, 2), (1, 1, 3), (2, 3, 2), (3, 3, 5), (3, 0, 1), (2, 2, 3)]);
        let found = agreement(&left, &right);
        assert!((found.kappa.unwrap() - (1.0 - 0.25 / 0.745)).abs() < 1e-9, "{found:?}");
        assert!((found.weighted_kappa.unwrap() - (1.0 - 0.65 / 2.89)).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn where_there_is_nothing_to_agree_on_there_is_no_kappa() {
        assert_eq!(agreement(&judged([]), &judged([1])).items, 0);
        assert_eq!(agreement(&judged([]), &judged([1])).kappa, None);
        assert_eq!(agreement(&judged([2, 2]), &judged([2, 2])).kappa, None);
        assert!((agreement(&judged([2, 2]), &judged([2, 2])).agreement - 1.0).abs() < 1e-12);
    }

    #[test]
    fn of_two_grades_the_last_counts_and_a_mistake_is_named() {
        let line = |grade: u8| format!("{{\"id\":\"q\",\"path\":\"p\",\"text\":\"t\",\"grade\":{grade}}}\n");
        let read = read_grades(format!("{}{}", line(1), line(3)).as_bytes()).unwrap();
        assert_eq!(read.into_grades().iter().map(|grade| grade.grade).collect::<Vec<_>>(), [3]);
        let refused = read_grades(format!("{}{}", line(1), line(7)).as_bytes()).unwrap_err().to_string();
        assert_eq!(refused, "line 2: `grade`: expected a whole number from 0 to 3");
    }
}

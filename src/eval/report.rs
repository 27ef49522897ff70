//! The report of one run: means with intervals by configuration and by what questions are, and comparisons.
//!
//! In: what each question came to in each configuration. Out: a report a configuration, which is also the shape of its JSON line.
//!
//! **Invariant:** a comparison is of the same questions; a question without a figure is in neither side's mean.

use super::ask::Answered;
use super::chance::{Interval, Paired, interval, paired};
use super::measure::{METRICS, Metric};
use super::question::Question;
use super::stage::Stage;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Means by measure, in the order of the measures.
type Means<T> = Vec<(Metric, T)>;

/// Some questions.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// How many they are.
    pub questions: usize,
    /// Their means.
    #[serde(serialize_with = "by_name")]
    pub metrics: Means<Interval>,
}

impl Group {
    /// Returns the mean of one measure.
    #[must_use]
    pub fn mean(&self, metric: Metric) -> Option<Interval> {
        self.metrics.iter().find(|(known, _)| *known == metric).map(|(_, mean)| *mean)
    }
}

/// What one configuration came to.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigurationReport {
    /// Its name.
    pub config: String,
    /// The commits that were asked, one a source; none where each question says its own.
    pub at: Vec<String>,
    /// All questions.
    #[serde(flatten)]
    pub all: Group,
    /// By difficulty, kind and language.
    pub by: BTreeMap<&'static str, BTreeMap<String, Group>>,
    /// By how much it is above each of the others.
    pub against: BTreeMap<String, Comparison>,
    /// How many right answers were lost at each stage, where that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<BTreeMap<Stage, usize>>,
}

/// One configuration beside another.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Comparison(#[serde(serialize_with = "by_name")] pub Means<Paired>);

fn by_name<T: Serialize, S: Serializer>(means: &Means<T>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(means.iter().map(|(metric, mean)| (metric.as_str(), mean)))
}

/// What questions are grouped by.
type KeyOf = fn(&Question) -> &str;

/// Makes the reports of configurations by name.
#[must_use]
pub fn report(
    questions: &[Question],
    answered: &[(String, Vec<Answered>)],
    at: &[String],
    seed: u64,
) -> Vec<ConfigurationReport> {
    let groups: [(&'static str, KeyOf); 3] = [
        ("difficulty", |question| &question.difficulty),
        ("kind", |question| &question.kind),
        ("lang", |question| &question.lang),
    ];
    let one = |(name, answers): &(String, Vec<Answered>)| {
        let by = groups.map(|(what, key)| {
            let mut members: BTreeMap<String, Vec<&Answered>> = BTreeMap::new();
            for (question, answer) in questions.iter().zip(answers).filter(|(question, _)| !key(question).is_empty()) {
                members.entry(key(question).to_owned()).or_default().push(answer);
            }
            (what, members.into_iter().map(|(value, answers)| (value, group(&answers, seed))).collect())
        });
        let others = answered.iter().filter(|(other, _)| other != name);
        ConfigurationReport {
            config: name.clone(),
            at: at.to_vec(),
            all: group(&answers.iter().collect::<Vec<_>>(), seed),
            by: by.into_iter().collect(),
            against: others.map(|(other, theirs)| (other.clone(), Comparison::of(answers, theirs, seed))).collect(),
            lost: None,
        }
    };
    answered.iter().map(one).collect()
}

fn group(answers: &[&Answered], seed: u64) -> Group {
    let mean = |metric: Metric| {
        let figures: Vec<f64> = answers.iter().filter_map(|answer| answer.measures.get(metric)).collect();
        interval(&figures, seed).map(|mean| (metric, mean))
    };
    Group { questions: answers.len(), metrics: METRICS.into_iter().filter_map(mean).collect() }
}

impl Comparison {
    /// Compares what the same questions came to in two runs.
    #[must_use]
    pub fn of(ours: &[Answered], theirs: &[Answered], seed: u64) -> Self {
        let one = |metric: Metric| {
            let pairs = ours.iter().zip(theirs);
            let pairs = pairs.filter_map(|(our, their)| Some((our.measures.get(metric)?, their.measures.get(metric)?)));
            paired(&pairs.collect::<Vec<_>>(), seed).map(|paired| (metric, paired))
        };
        Self(METRICS.into_iter().filter_map(one).collect())
    }

    /// Returns the comparison by one measure.
    #[must_use]
    pub fn by(&self, metric: Metric) -> Option<Paired> {
        self.0.iter().find(|(known, _)| *known == metric).map(|(_, paired)| *paired)
    }
}

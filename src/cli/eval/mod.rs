//! `eval`: judged questions, asked in several configurations, of one version or of many.
//!
//! In: a file of questions. Out: measures with intervals, comparisons, and where right answers were lost; as a table, as JSON, as a page.
//!
//! A measure that is below what `--fail-under` asks for is exit status 3.

mod across;
mod init;
mod judge;
mod show;

use super::output::{hint, json_line};
use super::search::number_from_one;
use super::{Global, Outcome, Place};
use crate::eval::{
    Answered, Asking, Configuration, ConfigurationReport, Fate, Metric, Question, Sheet, Stage, add_grades, ask, fates,
    page, read_grades, read_questions, report,
};
use crate::search::{Mode, Searcher};
use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// How many configurations are compared with each other.
const MOST_CONFIGURATIONS: usize = 16;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct EvalArgs {
    #[command(subcommand)]
    command: Option<EvalCommand>,
    /// Judged questions, one JSON object a line.
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    asked: AskedArgs,
    /// As of a commit, tag, branch, BRANCH~N or time; or from one snapshot to another, as A..B, a row each.
    #[arg(long, value_name = "REV|A..B")]
    at: Option<String>,
    /// Of the snapshots from A to B only each Nth, and the last.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number_from_one(), requires = "at")]
    every: usize,
    /// A file of grades from `eval judge`, in addition to the questions' own judgments; may be repeated.
    #[arg(long, value_name = "FILE")]
    judged: Vec<PathBuf>,
    /// End with status 3 where the mean of a measure is below X, as in `ndcg@5=0.6` or `bm25:hit@5=0.7`. Without a configuration it
    /// is asked of `hybrid` where that is among them, else of all. May be repeated.
    #[arg(long, value_name = "[CONFIG:]METRIC=X", value_parser = parse_floor)]
    fail_under: Vec<Floor>,
    /// Write the report as a page, with the questions that were answered worst.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Which configurations are asked, and where.
#[derive(Args, Debug)]
struct AskedArgs {
    /// Modes that are configurations; hybrid, bm25 and vector by default, and hybrid alone from one snapshot to another.
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<Mode>,
    /// A configuration with settings of its own, as in `deep:mode=vector,per-doc=5`; may be repeated.
    #[arg(long = "with", value_name = "NAME:KEY=VALUE,…")]
    with: Vec<Configuration>,
    #[command(flatten)]
    place: Place,
    /// Whatever is random follows from it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Questions that are asked at the same time; the number of processors by default.
    #[arg(long, value_name = "N", value_parser = number_from_one())]
    threads: Option<usize>,
}

#[derive(Subcommand, Debug)]
enum EvalCommand {
    /// Draw questions from a repository, and index what they are asked of in a store of its own.
    Init(init::InitArgs),
    /// Show pooled results, and take grades from 0 to 3 from standard input.
    Judge(judge::JudgeArgs),
    /// How far two people's grades agree: Cohen's κ.
    Kappa(judge::KappaArgs),
}

/// What a measure must reach.
#[derive(Clone, Debug)]
struct Floor {
    config: Option<String>,
    metric: Metric,
    least: f64,
}

fn parse_floor(text: &str) -> Result<Floor, String> {
    let form = || format!("`{text}`: expected METRIC=X, as in `ndcg@5=0.6`");
    let (front, least) = text.rsplit_once('=').ok_or_else(form)?;
    let (config, metric) = match front.rsplit_once(':') {
        Some((config, metric)) => (Some(config.to_owned()), metric),
        None => (None, front),
    };
    let least = least.parse().ok().filter(|least: &f64| least.is_finite()).ok_or_else(form)?;
    Ok(Floor { config, metric: metric.parse()?, least })
}

/// Runs `eval`.
pub(super) fn run(global: &Global, args: &EvalArgs) -> Result<Outcome> {
    match &args.command {
        Some(EvalCommand::Init(args)) => return init::run(global, args),
        Some(EvalCommand::Judge(args)) => return judge::run(global, args),
        Some(EvalCommand::Kappa(args)) => return judge::kappa(global, args),
        None => {}
    }
    let file = args.file.as_deref().context("a file of questions is missing")?;
    let range = args.at.as_deref().and_then(|at| at.split_once(".."));
    let configurations = args.asked.configurations(if range.is_some() { &[Mode::Hybrid] } else { &[] })?;
    for floor in &args.fail_under {
        let name = floor.config.as_deref();
        let is_known = name.is_none_or(|name| configurations.iter().any(|known| known.name == name));
        ensure!(is_known, "--fail-under: no configuration is called `{}`", name.unwrap_or_default());
    }
    let questions = questions(file, &args.judged)?;
    let service = global.service()?;
    let asking = args.asked.asking(service.searcher(), args.at.as_deref());
    if let Some((from, to)) = range {
        ensure!(args.page.is_none(), "--page shows one version; leave it out, or name one revision with --at");
        return across::run(global, args, &asking, [from, to], &questions, &configurations);
    }
    let at = versions(&asking, &questions)?;
    let answered = asked(&asking, &questions, &configurations, args.asked.threads())?;
    let mut reports = report(&questions, &answered, &at, args.asked.seed);
    let shown = shown(&configurations);
    let fates = lost(&asking, &questions, &answered[shown].1, &configurations[shown], args.asked.threads())?;
    let counts = |stage| fates.iter().filter(|(_, fate)| fate.stage == stage).count();
    reports[shown].lost = Some(Stage::ALL.map(|stage| (stage, counts(stage))).into_iter().collect::<BTreeMap<_, _>>());
    if let Some(path) = &args.page {
        let title = format!("{}: {} questions, as of {}", file.display(), questions.len(), at.join(", "));
        let answered = &answered[shown];
        let sheet = Sheet { title: &title, reports: &reports, questions: &questions, answered, fates: &fates };
        std::fs::write(path, page(&sheet)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if global.json {
        reports.iter().try_for_each(json_line)?;
    } else {
        show::reports(&questions, &reports, shown, &fates)?;
    }
    Ok(verdict(&args.fail_under, &reports))
}

impl AskedArgs {
    /// Returns the configurations that were asked for, else those of these modes, or of all.
    fn configurations(&self, modes: &[Mode]) -> Result<Vec<Configuration>> {
        let modes = match (self.modes.is_empty(), self.with.is_empty(), modes.is_empty()) {
            (false, _, _) => &self.modes,
            (true, false, _) => &[][..],
            (true, true, false) => modes,
            (true, true, true) => &[Mode::Bm25, Mode::Vector, Mode::Hybrid][..],
        };
        let modes = modes.iter().map(|mode| Configuration::of_mode(*mode));
        let configurations: Vec<Configuration> = modes.chain(self.with.iter().cloned()).collect();
        for (at, configuration) in configurations.iter().enumerate() {
            let is_new = configurations[..at].iter().all(|before| before.name != configuration.name);
            ensure!(is_new, "two configurations are called `{}`; give each a name of its own", configuration.name);
        }
        ensure!(
            configurations.len() <= MOST_CONFIGURATIONS,
            "{} configurations are given, and at most {MOST_CONFIGURATIONS} are compared",
            configurations.len()
        );
        Ok(configurations)
    }

    fn asking<'a>(&'a self, searcher: &'a Searcher, at: Option<&'a str>) -> Asking<'a> {
        Asking { searcher, source: self.place.source(), view: self.place.view(), at }
    }

    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// Reads the questions, with the grades of further files.
fn questions(file: &Path, judged: &[PathBuf]) -> Result<Vec<Question>> {
    let open =
        |path: &Path| File::open(path).map(BufReader::new).with_context(|| format!("cannot open {}", path.display()));
    let mut questions = read_questions(open(file)?).with_context(|| format!("cannot read {}", file.display()))?;
    for path in judged {
        let grades = read_grades(open(path)?).with_context(|| format!("cannot read {}", path.display()))?;
        let lost = add_grades(&mut questions, grades.into_grades());
        if lost > 0 {
            hint(format!("{lost} grades of {} belong to no question of {}", path.display(), file.display()));
        }
    }
    Ok(questions)
}

/// Asks all questions in all configurations.
fn asked(
    asking: &Asking<'_>,
    questions: &[Question],
    configurations: &[Configuration],
    threads: usize,
) -> Result<Vec<(String, Vec<Answered>)>> {
    let answers = ask(asking, questions, configurations, threads)?;
    let names = configurations.iter().map(|configuration| configuration.name.clone());
    Ok(names.zip(answers).collect())
}

/// Returns the commits that all questions are asked of; none where a question says its own.
fn versions(asking: &Asking<'_>, questions: &[Question]) -> Result<Vec<String>> {
    if asking.at.is_none() && questions.iter().any(|question| question.at.is_some()) {
        return Ok(Vec::new());
    }
    let revisions = asking.searcher.revisions();
    let at = revisions.select(asking.searcher.reader(), asking.source, asking.view, asking.at)?;
    Ok(at.iter().map(|selected| selected.commit.to_string()).collect())
}

/// Returns which configuration is looked at closely: `hybrid`, else the last.
fn shown(configurations: &[Configuration]) -> usize {
    let hybrid = configurations.iter().position(|configuration| configuration.name == Mode::Hybrid.as_str());
    hybrid.unwrap_or(configurations.len().saturating_sub(1))
}

/// Returns for each question without a relevant hit among the first five what became of its right answer.
fn lost(
    asking: &Asking<'_>,
    questions: &[Question],
    answered: &[Answered],
    configuration: &Configuration,
    threads: usize,
) -> Result<Vec<(usize, Fate)>> {
    let missed = answered.iter().enumerate().filter(|(_, answer)| answer.measures.get(Metric::Hit5) == Some(0.0));
    let numbers: Vec<usize> = missed.map(|(at, _)| at).collect();
    let fates = fates(asking, questions, &numbers, configuration, threads)?;
    Ok(numbers.into_iter().zip(fates).filter_map(|(at, fate)| Some((at, fate?))).collect())
}

/// Says on standard error which measures are below what is asked for.
fn verdict(floors: &[Floor], reports: &[ConfigurationReport]) -> Outcome {
    let mut outcome = Outcome::Done;
    let hybrid = Mode::Hybrid.as_str();
    let has_hybrid = reports.iter().any(|report| report.config == hybrid);
    for floor in floors {
        let name = floor.config.as_deref().or(has_hybrid.then_some(hybrid));
        for report in reports.iter().filter(|report| name.is_none_or(|name| report.config == name)) {
            let mean = report.all.mean(floor.metric).map(|mean| mean.mean);
            if mean.is_none_or(|mean| mean < floor.least) {
                let found = mean.map_or_else(|| "not known".to_owned(), |mean| format!("{mean:.4}"));
                tracing::error!(
                    "{} of {} is {found}, and must be {}",
                    floor.metric.as_str(),
                    report.config,
                    floor.least
                );
                outcome = Outcome::NotAllWell;
            }
        }
    }
    outcome
}

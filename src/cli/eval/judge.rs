//! `eval judge` and `eval kappa`: grades by people, and how far two of them agree.
//!
//! In: questions, and lines on standard input. Out: a file of grades, one JSON object a line, each written before the next hit is shown; so
//! a session that ends anywhere goes on where it ended.
//!
//! Hits are shown without rank and score, in an order that does not tell which configuration found them.

use super::{AskedArgs, questions};
use crate::cli::output::{count, hint, json_line, line, text_line};
use crate::cli::search::hits_from_one;
use crate::cli::{Global, Outcome};
use crate::eval::{JudgedFile, Pooled, Question, agreement, pool, read_grades};
use crate::index::lexical::searched_name;
use anyhow::{Context, Result};
use clap::Args;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Lines of a hit that are shown unless all are asked for.
const SHOWN_LINES: usize = 12;

#[derive(Args, Debug)]
pub(super) struct JudgeArgs {
    /// Questions, one JSON object a line.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    asked: AskedArgs,
    /// As of a commit, tag, branch, BRANCH~N or time.
    #[arg(long, value_name = "REV")]
    at: Option<String>,
    /// How many hits of each configuration.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = hits_from_one())]
    depth: usize,
    /// The file of grades, gone on with where it is there; FILE with `.judged.jsonl` by default.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct KappaArgs {
    /// One person's grades.
    #[arg(value_name = "A")]
    one: PathBuf,
    /// Another's.
    #[arg(value_name = "B")]
    other: PathBuf,
}

/// What a person says to a hit.
enum Said {
    Grade(u8),
    Skip,
    Full,
    Quit,
}

/// Runs `eval judge`.
pub(super) fn run(global: &Global, args: &JudgeArgs) -> Result<Outcome> {
    let questions = questions(&args.file, &[])?;
    let out = args.out.clone().unwrap_or_else(|| args.file.with_extension("judged.jsonl"));
    let mut judged = if out.exists() { grades(&out)? } else { JudgedFile::default() };
    let configurations = args.asked.configurations(&[])?;
    let service = global.service()?;
    let asking = args.asked.asking(service.searcher(), args.at.as_deref());
    let failed = || format!("cannot write {}", out.display());
    let mut file = OpenOptions::new().create(true).append(true).open(&out).with_context(failed)?;
    let mut session = Session { is_json: global.json, said: Box::new(std::io::stdin().lock()), given: 0 };
    for (number, question) in (1..).zip(&questions) {
        let pooled = pool(&asking, question, &configurations, args.depth, args.asked.seed)?;
        let open: Vec<Pooled> = pooled.into_iter().filter(|pooled| !judged.holds(pooled)).collect();
        for (at, pooled) in open.iter().enumerate() {
            let place = [number, questions.len(), at + 1, open.len()];
            let Some(said) = session.ask(question, pooled, place)? else { continue };
            let Some(grade) = said else { return session.end(&out) };
            let grade = pooled.grade(grade);
            let mut text = serde_json::to_vec(&grade)?;
            text.push(b'\n');
            file.write_all(&text).and_then(|()| file.sync_data()).with_context(failed)?;
            if global.json {
                json_line(&grade)?;
            }
            judged.add(grade);
            session.given += 1;
        }
    }
    session.end(&out)
}

struct Session {
    is_json: bool,
    said: Box<dyn BufRead>,
    given: usize,
}

impl Session {
    /// Prints for the person, beside the JSON if that is printed.
    fn say(&self, text: &str) -> Result<()> {
        if self.is_json {
            hint(text);
            return Ok(());
        }
        line(text)
    }

    /// Asks for a grade; nothing where the hit is skipped, and no grade where the session is to end.
    fn ask(
        &mut self,
        question: &Question,
        pooled: &Pooled,
        [number, of, hit, hits]: [usize; 4],
    ) -> Result<Option<Option<u8>>> {
        let shown = &pooled.hit;
        let lines = shown.lines.map_or_else(String::new, |lines| format!(":{}-{}", lines.first, lines.last));
        self.say("")?;
        self.say(&format!("question {number} of {of}, hit {hit} of {hits}: {}", question.text))?;
        self.say(&format!("{}{lines}  {}", shown.path.display(), searched_name(&shown.card)))?;
        let mut most = SHOWN_LINES;
        loop {
            for text in shown.text.lines().take(most) {
                if self.is_json { hint(format!("    {text}")) } else { text_line("    ", text)? }
            }
            if shown.text.lines().count() > most {
                self.say("    …")?;
            }
            loop {
                self.say(
                    "grade: 3 the answer, 2 helps much, 1 a little, 0 not at all; f all of the text, s skip, q end",
                )?;
                match self.read()? {
                    Some(Said::Grade(grade)) => return Ok(Some(Some(grade))),
                    Some(Said::Skip) => return Ok(None),
                    Some(Said::Quit) => return Ok(Some(None)),
                    Some(Said::Full) => break,
                    None => {}
                }
            }
            most = usize::MAX;
        }
    }

    fn read(&mut self) -> Result<Option<Said>> {
        let mut said = String::new();
        if self.said.read_line(&mut said).context("cannot read standard input")? == 0 {
            return Ok(Some(Said::Quit));
        }
        Ok(match said.trim() {
            "0" => Some(Said::Grade(0)),
            "1" => Some(Said::Grade(1)),
            "2" => Some(Said::Grade(2)),
            "3" => Some(Said::Grade(3)),
            "s" => Some(Said::Skip),
            "f" => Some(Said::Full),
            "q" => Some(Said::Quit),
            _ => None,
        })
    }

    fn end(&self, out: &Path) -> Result<Outcome> {
        self.say("")?;
        self.say(&format!("{} written to {}", count(self.given, "grade", "grades"), out.display()))?;
        Ok(Outcome::Done)
    }
}

fn grades(path: &Path) -> Result<JudgedFile> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    read_grades(BufReader::new(file)).with_context(|| format!("cannot read {}", path.display()))
}

/// Runs `eval kappa`.
pub(super) fn kappa(global: &Global, args: &KappaArgs) -> Result<Outcome> {
    let found = agreement(&grades(&args.one)?, &grades(&args.other)?);
    if global.json {
        json_line(&found)?;
        return Ok(Outcome::Done);
    }
    let figure = |kappa: Option<f64>| {
        kappa.map_or_else(|| "none: every grade is the same".to_owned(), |kappa| format!("{kappa:.3}"))
    };
    line(format!("{} judged by both, {:.1} % alike", count(found.items, "hit", "hits"), 100.0 * found.agreement))?;
    line(format!("Cohen's κ            {}", figure(found.kappa)))?;
    line(format!("quadratic weights    {}", figure(found.weighted_kappa)))?;
    Ok(Outcome::Done)
}

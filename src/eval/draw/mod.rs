//! Questions drawn from a repository, so that everybody can measure on code of their own.
//!
//! In: a repository, a revision, a seed. Out: questions with judgments, and a repository of one commit or of the history in question that
//! is to be indexed for them. What they are drawn from:
//!
//! | | question | answer |
//! |---|---|---|
//! | doc comments | the first sentence above a function; every such comment is taken out of what is indexed | the function |
//! | symbols | a qualified or bare name that one definition has | the definition |
//! | headings | a heading that stands once | its section |
//! | log | the subject of a commit, asked of the state before it | the files that it changed |
//!
//! **Invariant:** the same repository, revision and settings give the same bytes. Nothing is written to the repository that is read. Drawn
//! questions are drafts: what they take for the one right answer may not be the only one.

mod comments;
mod function;
mod headings;
mod log;
mod sentence;
mod source;
mod symbols;

pub use source::{Copy, DrawError};

use super::judging::shuffle;
use crate::trace::generate::Numbers;
use crate::workers::Parsing;
use clap::ValueEnum;
use serde::Serialize;
use source::Source;
use std::path::Path;

/// Files with more bytes are not drawn from.
const MAX_FILE: u64 = 4 << 20;

/// What questions are drawn from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum From {
    /// Comments above functions.
    DocComments,
    /// Names of definitions.
    Symbols,
    /// Headings of documents.
    Headings,
    /// Subjects of commits.
    Log,
}

/// How questions are drawn.
#[derive(Clone, Debug)]
pub struct Drawing<'a> {
    /// What from.
    pub from: From,
    /// The repository.
    pub source: &'a Path,
    /// The revision; HEAD where none is named.
    pub at: Option<&'a str>,
    /// Only files below one of these folders are drawn from; all where there is none.
    pub under: &'a [String],
    /// Which of them are taken follows from it.
    pub seed: u64,
    /// How many at the most; of symbols so many qualified and so many bare ones.
    pub count: usize,
    /// What parses.
    pub parsing: &'a Parsing,
}

/// A question as it is written; its fields are those that are read.
#[derive(Clone, Debug, Serialize)]
pub struct Drawn {
    id: String,
    text: String,
    kind: &'static str,
    lang: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    judgments: Vec<Right>,
}

/// What answers a drawn question.
#[derive(Clone, Debug, Default, Serialize)]
struct Right {
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<u8>,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    #[serde(rename = "or", skip_serializing_if = "Vec::is_empty")]
    or: Vec<Self>,
}

impl Right {
    /// The answer itself.
    fn at(path: &str, lines: Option<[u32; 2]>) -> Self {
        Self { grade: Some(super::question::BEST), path: path.to_owned(), lines, ..Self::default() }
    }
}

/// Drawn questions, and what is to be indexed for them.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The questions.
    pub questions: Vec<Drawn>,
    /// Of how many they were taken.
    pub of: usize,
    /// How many first-parent commits before the head need a snapshot as well.
    pub backfill: usize,
}

/// Draws questions, and makes the repository `copy` that is to be indexed for them; it shares the objects of the source.
///
/// # Errors
/// Where the source or the revision is none, or the copy cannot be written.
pub fn draw(drawing: &Drawing<'_>, copy: &Path) -> Result<Draft, DrawError> {
    let source = Source::open(drawing)?;
    let mut copy = Copy::make(&source, copy)?;
    let (mut groups, mut backfill) = (Vec::new(), 0);
    match drawing.from {
        From::DocComments => groups.push(comments::draw(&source, &mut copy)?),
        From::Symbols => groups.extend(symbols::draw(&source, drawing.parsing)?),
        From::Headings => groups.push(headings::draw(&source)?),
        From::Log => {
            let drawn = log::draw(&source, drawing.count)?;
            backfill = drawn.1;
            groups.push(drawn.0);
        }
    }
    copy.finish(&source)?;
    let of = groups.iter().map(Vec::len).sum();
    let mut questions = Vec::new();
    for (part, mut group) in (0..).zip(groups) {
        // The log is asked from its newest commit backwards.
        if drawing.from != From::Log {
            shuffle(&mut group, &mut Numbers::of(drawing.seed, part));
        }
        group.truncate(drawing.count);
        questions.append(&mut group);
    }
    for (number, question) in (1..).zip(&mut questions) {
        question.id = format!("{}-{number}", question.kind);
    }
    Ok(Draft { questions, of, backfill })
}

/// A question that is still to be numbered.
fn drawn(kind: &'static str, text: String, judgments: Vec<Right>) -> Drawn {
    let is_chinese = text.chars().any(|sign| ('\u{4e00}'..='\u{9fff}').contains(&sign));
    Drawn { id: String::new(), text, kind, lang: if is_chinese { "zh" } else { "en" }, at: None, judgments }
}

/// Leaves out questions whose text stands more than once, whatever its case.
fn only_once(questions: Vec<Drawn>) -> Vec<Drawn> {
    let mut times: rustc_hash::FxHashMap<String, usize> = rustc_hash::FxHashMap::default();
    questions.iter().for_each(|question| *times.entry(question.text.to_lowercase()).or_default() += 1);
    questions.into_iter().filter(|question| times.get(&question.text.to_lowercase()) == Some(&1)).collect()
}

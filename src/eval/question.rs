//! Judged questions, and when a hit is what a judgment means.
//!
//! In: JSON lines. Out: questions. The form of a line:
//!
//! ```text
//! {"id": "q7", "text": "how is an entity spawned", "difficulty": "easy", "kind": "api", "lang": "en", "at": "v0.16.1",
//!  "judgments": [{"grade": 3, "path": "src/world.rs", "symbol": "World::spawn"},
//!                {"grade": 1, "path": "docs/ecs.md", "text": "entities are spawned", "or": [{"path": "docs/old.md"}]}],
//!  "must_not": [{"path": "vendor/"}]}
//! ```
//!
//! Of these `id`, `text` and one of `judgments` and `must_not` are needed. A place has a `path`, `symbol` or `text`, and beside a path
//! `lines`; what it has must all hold.
//!
//! **Invariant:** a file is read whole or refused, with the line and the field of its first mistake; what is read is bounded.

use super::judging::Grade;
use crate::index::lexical::MAX_QUERY_BYTES;
use dataflows::data::{DocumentPath, Lines};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};
use std::io::{BufRead, Read};

/// Bytes of one line.
const MAX_LINE: u64 = 1 << 20;
/// Questions of one file.
const MAX_QUESTIONS: usize = 100_000;
/// Places of one question.
const MAX_PLACES: usize = 1_000;
/// The best grade.
pub(super) const BEST: u8 = 3;

/// A question, and what answers it.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// Its name in the file.
    pub id: String,
    /// What is asked.
    pub text: String,
    /// How hard it is, or empty.
    pub difficulty: String,
    /// What kind of question it is, or empty.
    pub kind: String,
    /// The language in which it is asked, or empty.
    pub lang: String,
    /// The revision that it is about; the newest where it does not say.
    pub at: Option<String>,
    /// What was judged.
    pub judgments: Vec<Judgment>,
    /// What must not be among the first.
    pub must_not: Vec<Target>,
}

/// One thing that was judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgment {
    /// From 0, irrelevant, to 3, the answer.
    pub grade: u8,
    /// Where it stands: one place, or several of which any is it.
    pub targets: Vec<Target>,
}

/// A place that a hit may be.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Target {
    /// A path; with `/` at its end everything below it.
    pub path: Option<DocumentPath>,
    /// A qualified name, or the last parts of one.
    pub symbol: Option<String>,
    /// Text that stands in the hit, however its white space is laid out; here with single blanks.
    pub text: Option<String>,
    /// Lines of the path of which the hit has one.
    pub lines: Option<Lines>,
}

impl Target {
    /// Whether something at a path, with a symbol, lines and text, is what is meant.
    #[must_use]
    pub fn is(&self, path: &DocumentPath, symbol: &str, lines: Option<Lines>, text: &str) -> bool {
        self.is_at(path)
            && self.symbol.as_deref().is_none_or(|wanted| {
                let before = symbol.strip_suffix(wanted);
                before.is_some_and(|before| before.is_empty() || before.ends_with([':', '.']))
            })
            && self.lines.is_none_or(|wanted| {
                lines.is_some_and(|lines| lines.first <= wanted.last && wanted.first <= lines.last)
            })
            && self.text.as_deref().is_none_or(|wanted| in_single_blanks(text).contains(wanted))
    }

    /// Whether the path fits.
    #[must_use]
    pub fn is_at(&self, path: &DocumentPath) -> bool {
        self.path.as_ref().is_none_or(|wanted| match wanted.as_bytes().ends_with(b"/") {
            true => path.as_bytes().starts_with(wanted.as_bytes()),
            false => wanted == path,
        })
    }
}

/// Returns a text with single blanks for its white space.
pub(super) fn in_single_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why a file of questions is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// It cannot be read.
    #[error("line {line} cannot be read")]
    Read {
        /// The line, from 1.
        line: usize,
        /// The reason.
        source: std::io::Error,
    },
    /// A line is no question.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong, with the field.
        problem: String,
    },
    /// There is none.
    #[error("the file has no questions; write one JSON object a line")]
    Empty,
}

/// Reads questions, one JSON object a line; empty lines are passed over.
///
/// # Errors
/// Where a line is no question; the first mistake is named by line and field.
pub fn read_questions(file: impl BufRead) -> Result<Vec<Question>, QuestionError> {
    let mut known = FxHashSet::default();
    let mut questions: Vec<Question> = Vec::new();
    read_lines(file, |value| {
        let question = question(value)?;
        if !known.insert(question.id.clone()) {
            return Err(format!("`id`: {:?} stands in a line before", question.id));
        }
        if questions.len() == MAX_QUESTIONS {
            return Err(format!("a file has at most {MAX_QUESTIONS} questions"));
        }
        questions.push(question);
        Ok(())
    })?;
    if questions.is_empty() { Err(QuestionError::Empty) } else { Ok(questions) }
}

/// Reads JSON objects, one a line.
pub(super) fn read_lines(
    mut file: impl BufRead,
    mut take: impl FnMut(Value) -> Result<(), String>,
) -> Result<(), QuestionError> {
    for line in 1.. {
        let mut bytes = Vec::new();
        let read = (&mut file).take(MAX_LINE + 1).read_until(b'\n', &mut bytes);
        let length = read.map_err(|source| QuestionError::Read { line, source })?;
        if length == 0 {
            break;
        }
        let wrong = |problem| QuestionError::Line { line, problem };
        if length as u64 > MAX_LINE {
            return Err(wrong(format!("it has more than {MAX_LINE} bytes")));
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let value = serde_json::from_slice(bytes.trim_ascii_end()).map_err(|error| {
            let said = error.to_string();
            // The line that it counts is always the first.
            let reason = said.split(" at line ").next().unwrap_or_default();
            wrong(format!("it is no JSON at column {}: {reason}", error.column()))
        })?;
        take(value).map_err(wrong)?;
    }
    Ok(())
}

/// Adds the grades that a person gave to the questions with their ids; returns how many belong to no question.
pub fn add_grades(questions: &mut [Question], grades: Vec<Grade>) -> usize {
    let numbers: FxHashMap<String, usize> =
        (0..).zip(&*questions).map(|(at, question)| (question.id.clone(), at)).collect();
    let mut lost = 0;
    for grade in grades {
        match numbers.get(&grade.id) {
            Some(&at) => {
                let targets = vec![grade.target()];
                questions[at].judgments.push(Judgment { grade: grade.grade, targets });
            }
            None => lost += 1,
        }
    }
    lost
}

fn question(value: Value) -> Result<Question, String> {
    let mut fields = Fields::of(value, String::new())?;
    let id = fields.needed_text("id")?;
    let text = fields.needed_text("text")?;
    if text.len() > MAX_QUERY_BYTES {
        return Err(format!("`text`: it has more than {MAX_QUERY_BYTES} bytes"));
    }
    let lang = fields.text("lang")?.or(fields.text("language")?);
    let (difficulty, kind) = (fields.text("difficulty")?.unwrap_or_default(), fields.text("kind")?.unwrap_or_default());
    let at = fields.text("at")?;
    let judgments: Vec<Judgment> =
        fields.list("judgments")?.into_iter().map(judgment).collect::<Result<_, String>>()?;
    let must_not: Vec<Target> = fields.list("must_not")?.into_iter().map(target).collect::<Result<_, String>>()?;
    fields.end()?;
    let places = must_not.len() + judgments.iter().map(|judgment| judgment.targets.len()).sum::<usize>();
    if places > MAX_PLACES {
        return Err(format!("`judgments`: a question has at most {MAX_PLACES} places"));
    }
    if must_not.is_empty() && judgments.iter().all(|judgment| judgment.grade == 0) {
        return Err(
            "`judgments`: nothing is relevant; give one a grade from 1 to 3, or name what `must_not` come".to_owned()
        );
    }
    Ok(Question { id, text, difficulty, kind, lang: lang.unwrap_or_default(), at, judgments, must_not })
}

fn judgment(mut fields: Fields) -> Result<Judgment, String> {
    let grade = fields.number("grade", BEST.into())?.ok_or_else(|| fields.wrong("grade", "is missing"))?;
    let others = fields.list("or")?;
    let mut targets = vec![target(fields)?];
    for other in others {
        targets.push(target(other)?);
    }
    Ok(Judgment { grade: u8::try_from(grade).unwrap_or(BEST), targets })
}

pub(super) fn target(mut fields: Fields) -> Result<Target, String> {
    let path = fields.text("path")?.map(|path| DocumentPath::from(path.as_str()));
    let (symbol, text) = (fields.text("symbol")?, fields.text("text")?.map(|text| in_single_blanks(&text)));
    let lines = fields.lines()?;
    if lines.is_some() && path.is_none() {
        return Err(fields.wrong("path", "is missing; lines are those of a path"));
    }
    if path.is_none() && symbol.is_none() && text.is_none() {
        return Err(fields.wrong("path", "is missing, and `symbol` and `text` too; one of them says what is meant"));
    }
    fields.end()?;
    Ok(Target { path, symbol, text, lines })
}

/// The fields of an object that were not read yet.
pub(super) struct Fields {
    map: Map<String, Value>,
    /// Where the object stands in the line.
    place: String,
}

impl Fields {
    pub(super) fn of(value: Value, place: String) -> Result<Self, String> {
        match value {
            Value::Object(map) => Ok(Self { map, place }),
            _ if place.is_empty() => Err("it is no JSON object".to_owned()),
            _ => Err(format!("`{place}`: expected an object")),
        }
    }

    pub(super) fn wrong(&self, field: &str, problem: &str) -> String {
        let dot = if self.place.is_empty() { "" } else { "." };
        format!("`{}{dot}{field}`: {problem}", self.place)
    }

    /// Returns a text that is there and not empty.
    pub(super) fn text(&mut self, field: &str) -> Result<Option<String>, String> {
        match self.map.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Err(self.wrong(field, "is empty")),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(field, "expected a text")),
        }
    }

    pub(super) fn needed_text(&mut self, field: &str) -> Result<String, String> {
        self.text(field)?.ok_or_else(|| self.wrong(field, "is missing"))
    }

    pub(super) fn number(&mut self, field: &str, most: u64) -> Result<Option<u64>, String> {
        match self.map.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().filter(|number| *number <= most) {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong(field, &format!("expected a whole number from 0 to {most}"))),
            },
        }
    }

    fn lines(&mut self) -> Result<Option<Lines>, String> {
        let Some(value) = self.map.remove("lines").filter(|value| !value.is_null()) else { return Ok(None) };
        let line = |value: &Value| value.as_u64().and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
        match value.as_array().map(Vec::as_slice) {
            Some([first, last]) => match (line(first), line(last)) {
                (Some(first), Some(last)) if first <= last => Ok(Some(Lines { first, last })),
                _ => Err(self.wrong("lines", "expected a first line from 1 and a last one not before it")),
            },
            _ => Err(self.wrong("lines", "expected [first, last]")),
        }
    }

    fn list(&mut self, field: &str) -> Result<Vec<Self>, String> {
        match self.map.remove(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(values)) => {
                let dot = if self.place.is_empty() { "" } else { "." };
                let place = |at: usize| format!("{}{dot}{field}[{at}]", self.place);
                values.into_iter().enumerate().map(|(at, value)| Self::of(value, place(at))).collect()
            }
            Some(_) => Err(self.wrong(field, "expected a list")),
        }
    }

    /// Refuses what was not read.
    pub(super) fn end(self) -> Result<(), String> {
        match self.map.keys().next() {
            Some(field) => Err(self.wrong(field, "no such field is known")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Question>, String> {
        read_questions(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_question_is_read_with_all_its_fields() {
        let line = r#"{"id":"q","text":"how","difficulty":"easy","kind":"api","language":"en","at":"v1",
            "judgments":[{"grade":3,"path":"a.rs","symbol":"A::b","lines":[2,9],"or":[{"text":" two\n words "}]}],"must_not":[{"path":"vendor/"}]}"#
            .replace('\n', " ");
        let questions = read(&format!("\n{line}\n")).unwrap();
        let target = |path: Option<&str>, symbol: Option<&str>, text: Option<&str>, lines: Option<(u32, u32)>| Target {
            path: path.map(DocumentPath::from),
            symbol: symbol.map(str::to_owned),
            text: text.map(str::to_owned),
            lines: lines.map(|(first, last)| Lines { first, last }),
        };
        let targets =
            vec![target(Some("a.rs"), Some("A::b"), None, Some((2, 9))), target(None, None, Some("two words"), None)];
        let expected = Question {
            id: "q".to_owned(),
            text: "how".to_owned(),
            difficulty: "easy".to_owned(),
            kind: "api".to_owned(),
            lang: "en".to_owned(),
            at: Some("v1".to_owned()),
            judgments: vec![Judgment { grade: 3, targets }],
            must_not: vec![target(Some("vendor/"), None, None, None)],
        };
        assert_eq!(questions, [expected]);
    }

    #[test]
    fn a_mistake_is_named_by_line_and_field() {
        let good = r#"{"id":"a","text":"x","judgments":[{"grade":1,"path":"p"}]}"#;
        let second = |line: &str| read(&format!("{good}\n{line}\n")).unwrap_err();
        for (line, expected) in [
            ("{", "line 2: it is no JSON at column 1: EOF while parsing an object"),
            ("[]", "line 2: it is no JSON object"),
            (r#"{"text":"x"}"#, "line 2: `id`: is missing"),
            (r#"{"id":"b","text":3}"#, "line 2: `text`: expected a text"),
            (r#"{"id":"b","text":" "}"#, "line 2: `text`: is empty"),
            (good, "line 2: `id`: \"a\" stands in a line before"),
            (
                r#"{"id":"b","text":"x","judgments":[{"grade":1,"path":"p"},{"grade":4,"path":"p"}]}"#,
                "line 2: `judgments[1].grade`: expected a whole number from 0 to 3",
            ),
            (
                r#"{"id":"b","text":"x","judgments":[{"grade":1,"path":"p","or":[{"lines":[3,2],"path":"p"}]}]}"#,
                "line 2: `judgments[0].or[0].lines`: expected a first line from 1 and a last one not before it",
            ),
            (
                r#"{"id":"b","text":"x","judgments":[{"grade":1,"lines":[3,4]}]}"#,
                "line 2: `judgments[0].path`: is missing; lines are those of a path",
            ),
            (
                r#"{"id":"b","text":"x","must_not":[{"file":"p"}]}"#,
                "line 2: `must_not[0].path`: is missing, and `symbol` and `text` too; one of them says what is meant",
            ),
            (
                r#"{"id":"b","text":"x","must_not":[{"path":"p"}],"colour":1}"#,
                "line 2: `colour`: no such field is known",
            ),
            (
                r#"{"id":"b","text":"x","judgments":[{"grade":0,"path":"p"}]}"#,
                "line 2: `judgments`: nothing is relevant; give one a grade from 1 to 3, or name what `must_not` come",
            ),
        ] {
            assert_eq!(second(line), expected, "{line}");
        }
        assert!(read("\n\n").unwrap_err().contains("no questions"));
        let long = format!("{{\"id\":\"{}\"}}", "x".repeat(1 << 20));
        assert_eq!(read(&long).unwrap_err(), "line 1: it has more than 1048576 bytes");
    }

    #[test]
    fn a_place_is_met_where_all_that_it_names_holds() {
        let (path, lines) = (DocumentPath::from("src/world.rs"), Some(Lines { first: 10, last: 20 }));
        let is = |target: Target| target.is(&path, "ecs::World::spawn", lines, "pub fn spawn() {\n    one  two\n}");
        let none = Target::default;
        let at = |path: &str| Target { path: Some(path.into()), ..none() };
        assert!(is(at("src/world.rs")) && is(at("src/")) && !is(at("src")) && !is(at("world.rs")));
        let symbol = |symbol: &str| Target { symbol: Some(symbol.to_owned()), ..none() };
        assert!(is(symbol("spawn")) && is(symbol("World::spawn")) && is(symbol("ecs::World::spawn")));
        assert!(!is(symbol("pawn")) && !is(symbol("World")) && !is(symbol("a::ecs::World::spawn")));
        let text = |text: &str| Target { text: Some(text.to_owned()), ..none() };
        assert!(is(text("{ one two }")) && !is(text("three")));
        let on = |first, last| Target { lines: Some(Lines { first, last }), ..at("src/world.rs") };
        assert!(is(on(1, 10)) && is(on(20, 30)) && is(on(12, 13)) && !is(on(1, 9)) && !is(on(21, 30)));
        assert!(!is(Target { symbol: Some("despawn".to_owned()), ..at("src/world.rs") }));
    }
}

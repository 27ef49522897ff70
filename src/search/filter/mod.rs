//! Filters over cards and paths of entries: one more bitmap, intersected before either index is searched.
//!
//! In: an expression, `path:crates/*/src/** kind:code !language:cpp`. Out: the live entries that pass, or the terms that match
//! none.
//!
//! ```text
//! expression ─► terms (syntax) ─► their meaning in these versions (paths) ─► each path, head and place judged once ─► bitmap
//! ```
//!
//! **Invariant:** all terms must match; a filter narrows the result and never changes a score.

mod error;
mod paths;
mod syntax;

pub use error::FilterError;

use super::SearchError;
use crate::index::{IndexReader, IndexView};
use crate::store::Judge;
use dataflows::data::{Card, ChunkKind};
use globset::{Glob, GlobBuilder, GlobMatcher};
use paths::{Paths, Spellings, composed};
use roaring::RoaringBitmap;
use syntax::{Key, Spelled};

/// The most terms of one expression.
const MAX_TERMS: usize = 32;
/// So many words after a path may belong to it.
const MAX_TAIL: usize = 64;

/// A conjunction of terms, as typed.
#[derive(Clone, Debug)]
pub struct Filter {
    expression: String,
    terms: Vec<Spelled>,
}

/// The result of a filter.
#[derive(Clone, Debug)]
pub struct Passing {
    /// The live entries that pass.
    pub entries: RoaringBitmap,
    /// If none passes: the terms that match nothing by themselves, or the whole expression if each matches some. As typed.
    pub empty_terms: Vec<String>,
}

impl Filter {
    /// Parses an expression: terms `KEY:PATTERN` or `!KEY:PATTERN`, separated by spaces, all of which must match.
    ///
    /// # Errors
    /// If a term is malformed; the column is named.
    ///
    /// ```
    /// use tidemill::search::Filter;
    /// assert!(Filter::parse("path:crates/** kind:code !language:cpp").is_ok());
    /// assert!(Filter::parse("colour:blue").is_err());
    /// ```
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        let terms = syntax::read(expression)?;
        if terms.len() > MAX_TERMS {
            return Err(FilterError::TooLong { most: MAX_TERMS });
        }
        for term in &terms {
            if let Some(word) = term.tail.get(MAX_TAIL) {
                return Err(syntax::stray(expression, *word));
            }
            // A value may be an existing path, whatever it looks like; a pattern of another key is known now.
            if term.key != Key::Path {
                Matcher::of(term, expression)?;
            }
        }
        Ok(Self { expression: expression.to_owned(), terms })
    }

    /// Returns the live entries of a view that pass; `roots` are the folders in which its sources were tracked.
    ///
    /// # Errors
    /// If a pattern is invalid, or the store cannot be read.
    pub fn entries(&self, reader: &IndexReader, view: &IndexView, roots: &[String]) -> Result<Passing, SearchError> {
        let mut spellings = Spellings::default();
        for term in self.terms.iter().filter(|term| term.key == Key::Path) {
            self.lengths(term).for_each(|(value, _)| spellings.add(&value, roots));
        }
        if self.terms.iter().any(|term| term.key == Key::Path) {
            reader.each_path(&view.entries, |path| spellings.look_at(&composed(&String::from_utf8_lossy(path))))?;
        }
        let terms = self.terms.iter().map(|term| self.meant(term, &spellings, roots));
        let terms = terms.collect::<Result<Vec<Meant>, FilterError>>()?;
        let entries = reader.passing(&view.entries, &Meaning::new(&terms))?;
        let mut empty_terms = Vec::new();
        if entries.is_empty() {
            for term in &terms {
                if reader.passing(&view.entries, &Meaning::new(std::slice::from_ref(term)))?.is_empty() {
                    empty_terms.push(term.typed.clone());
                }
            }
            if empty_terms.is_empty() && !terms.is_empty() {
                empty_terms.push(self.expression.trim().to_owned());
            }
        }
        Ok(Passing { entries, empty_terms })
    }

    /// Returns a path term's value in every possible length, the longest first, and how many words after it that takes.
    fn lengths<'a>(&'a self, term: &'a Spelled) -> impl Iterator<Item = (String, usize)> + 'a {
        let longer = (1..=term.tail.len()).rev().map(|words| {
            let end = term.tail[words - 1].end;
            (self.expression[term.value_start..end].to_owned(), words)
        });
        longer.chain([(term.value.clone(), 0)])
    }

    /// Returns the meaning of a term.
    fn meant(&self, term: &Spelled, spellings: &Spellings, roots: &[String]) -> Result<Meant, FilterError> {
        let typed = |end| self.expression[term.start..end].to_owned();
        if term.key != Key::Path {
            let matcher = Matcher::of(term, &self.expression)?;
            return Ok(Meant { typed: typed(term.end), is_negated: term.is_negated, matcher });
        }
        let literal = self.lengths(term).find_map(|(value, words)| Some((spellings.meaning(&value, roots)?, words)));
        let (paths, words) = match literal {
            Some(literal) => literal,
            None => (paths::pattern(&term.value, roots, (&self.expression, term.value_start))?, 0),
        };
        let mut left = term.tail[words..].iter();
        if let Some(word) = left.find(|word| !syntax::joins(&self.expression[word.start..word.end])) {
            return Err(syntax::stray(&self.expression, *word));
        }
        let end = match words.checked_sub(1) {
            Some(last) => term.tail[last].end,
            None => term.tail.first().map_or(term.end, |next| self.expression[..next.start].trim_end().len()),
        };
        Ok(Meant { typed: typed(end), is_negated: term.is_negated, matcher: Matcher::Path(paths) })
    }
}

/// A term with its meaning.
#[derive(Clone, Debug)]
struct Meant {
    typed: String,
    is_negated: bool,
    matcher: Matcher,
}

/// The part that a term examines, and the wanted value.
#[derive(Clone, Debug)]
enum Matcher {
    Path(Paths),
    Kind(Value),
    Language(Value),
    Symbol(Value),
    Module(Value),
    Label(String, Value),
}

/// A value that is compared literally and as a pattern.
#[derive(Clone, Debug)]
struct Value {
    literal: String,
    pattern: GlobMatcher,
}

impl Value {
    fn has(&self, text: &str) -> bool {
        let text = composed(text);
        *text == self.literal || self.pattern.is_match(&*text)
    }
}

impl Matcher {
    /// Returns the wanted value of a term that is not about paths.
    fn of(term: &Spelled, expression: &str) -> Result<Self, FilterError> {
        let at = (expression, term.value_start);
        let literal = composed(&term.value).into_owned();
        // Kinds and languages are few words, so their case does not matter.
        let is_closed = matches!(term.key, Key::Kind | Key::Language);
        let glob = match is_closed {
            true => GlobBuilder::new(&literal).case_insensitive(true).build(),
            false => Glob::new(&literal),
        };
        let pattern = glob.map_err(|error| FilterError::pattern(at, &error))?.compile_matcher();
        let value = Value { literal, pattern };
        Ok(match &term.key {
            Key::Kind if !ChunkKind::ALL.iter().any(|kind| value.has(kind.as_str())) => {
                return Err(FilterError::kind(at, &term.value));
            }
            Key::Kind => Self::Kind(value),
            Key::Language => Self::Language(value),
            Key::Symbol => Self::Symbol(value),
            Key::Module => Self::Module(value),
            Key::Label(name) => Self::Label(name.clone(), value),
            Key::Path => Self::Path(paths::pattern(&term.value, &[], at)?),
        })
    }

    const fn part(&self) -> Part {
        match self {
            Self::Path(_) => Part::Path,
            Self::Kind(_) | Self::Language(_) | Self::Symbol(_) => Part::Head,
            Self::Module(_) | Self::Label(..) => Part::Place,
        }
    }
}

/// The part of an entry that a term examines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Path,
    Head,
    Place,
}

/// Terms with a cache key.
struct Meaning<'a> {
    /// The cache key: equal names must mean equal filters, because a judgement is cached under its name.
    name: String,
    terms: &'a [Meant],
}

impl<'a> Meaning<'a> {
    fn new(terms: &'a [Meant]) -> Self {
        let name = |term: &Meant| {
            let what = match &term.matcher {
                // A path in one version may be a pattern in another.
                Matcher::Path(Paths::Literal(path)) => format!("path={path}"),
                Matcher::Path(Paths::Matching(pattern)) => format!("path:{}", pattern.glob().glob()),
                _ => term.typed.clone(),
            };
            if term.is_negated { format!("!{what}") } else { what }
        };
        Self { name: terms.iter().map(name).collect::<Vec<_>>().join("\0"), terms }
    }

    /// Whether every term about a part matches; `matches` ignores the term's negation.
    fn all(&self, part: Part, matches: impl Fn(&Matcher) -> bool) -> bool {
        self.terms
            .iter()
            .filter(|term| term.matcher.part() == part)
            .all(|term| matches(&term.matcher) != term.is_negated)
    }
}

impl Judge for Meaning<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn looks_at(&self) -> [bool; 3] {
        [Part::Path, Part::Head, Part::Place].map(|part| self.terms.iter().any(|term| term.matcher.part() == part))
    }

    fn path(&self, path: &str) -> bool {
        let path = composed(path);
        self.all(Part::Path, |matcher| matches!(matcher, Matcher::Path(paths) if paths.has(&path)))
    }

    fn head(&self, card: &Card) -> bool {
        self.all(Part::Head, |matcher| match matcher {
            Matcher::Kind(value) => value.has(card.kind.as_str()),
            Matcher::Language(value) => value.has(&card.language),
            Matcher::Symbol(value) => value.has(&card.symbol),
            _ => false,
        })
    }

    fn place(&self, module: &str, labels: &[(String, String)]) -> bool {
        self.all(Part::Place, |matcher| match matcher {
            Matcher::Label(name, value) => labels.iter().any(|(label, text)| label == name && value.has(text)),
            Matcher::Module(value) => value.has(module),
            _ => false,
        })
    }
}

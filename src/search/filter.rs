//! Filters over what entries are and where they stand: one more bitmap, and-ed in before either index is searched.
//!
//! In: an expression, `path:crates/*/src/** kind:code !language:cpp`. Out: which live entries pass.
//!
//! **Invariant:** all terms must hold; a filter narrows what is returned and never changes a score.

use crate::index::{IndexReader, IndexView, ReaderError};
use crate::store::Judge;
use dataflows::data::Card;
use globset::{Candidate, Glob, GlobMatcher};
use roaring::RoaringBitmap;

/// The most terms that one expression may have.
const MAX_TERMS: usize = 32;

/// What is wrong with an expression.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A term without a colon.
    #[error("cannot read the filter term `{term}`: expected KEY:VALUE, as in `path:src/** kind:code !language:cpp`")]
    Term {
        /// The term.
        term: String,
    },
    /// A key that is not known.
    #[error("cannot filter by `{key}`: the keys are path, kind, language, symbol, module and label.NAME")]
    Key {
        /// The key.
        key: String,
    },
    /// A value that is no pattern.
    #[error("cannot read the pattern `{value}` of the filter")]
    Pattern {
        /// The value.
        value: String,
        /// What is wrong with it.
        source: globset::Error,
    },
    /// Too many terms.
    #[error("the filter has more than {MAX_TERMS} terms; use wider patterns")]
    TooLong,
}

/// A conjunction of terms.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The terms as they were written, a blank between them.
    expression: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
struct Term {
    key: Key,
    pattern: GlobMatcher,
    negated: bool,
}

#[derive(Clone, Debug)]
enum Key {
    Path,
    Kind,
    Language,
    Symbol,
    Module,
    Label(String),
}

impl Filter {
    /// Reads an expression: terms `KEY:PATTERN` or `!KEY:PATTERN`, separated by blanks, all of which must hold.
    ///
    /// # Errors
    /// Where a term is no term.
    ///
    /// ```
    /// use tidemill::search::Filter;
    /// assert!(Filter::parse("path:crates/** kind:code !language:cpp").is_ok());
    /// assert!(Filter::parse("colour:blue").is_err());
    /// ```
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        let terms: Vec<&str> = expression.split_whitespace().filter(|term| *term != "AND").collect();
        if terms.len() > MAX_TERMS {
            return Err(FilterError::TooLong);
        }
        let expression = terms.join(" ");
        Ok(Self { expression, terms: terms.into_iter().map(Term::parse).collect::<Result<_, _>>()? })
    }

    /// Returns the live entries of a view that pass.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn entries(&self, reader: &IndexReader, view: &IndexView) -> Result<RoaringBitmap, ReaderError> {
        reader.passing(&view.entries, self)
    }
}

impl Judge for Filter {
    fn name(&self) -> &str {
        &self.expression
    }

    fn looks_at(&self) -> [bool; 3] {
        let looks_at = |part| self.terms.iter().any(|term| term.key.part() == part);
        [looks_at(Part::Path), looks_at(Part::Head), looks_at(Part::Place)]
    }

    fn path(&self, path: &str) -> bool {
        let path = Candidate::new(path);
        self.all(Part::Path, |term| term.pattern.is_match_candidate(&path))
    }

    fn head(&self, card: &Card) -> bool {
        self.all(Part::Head, |term| match &term.key {
            Key::Kind => term.pattern.is_match(card.kind.as_str()),
            Key::Language => term.pattern.is_match(&card.language),
            _ => term.pattern.is_match(&card.symbol),
        })
    }

    fn place(&self, module: &str, labels: &[(String, String)]) -> bool {
        self.all(Part::Place, |term| match &term.key {
            Key::Label(name) => labels.iter().any(|(label, value)| label == name && term.pattern.is_match(value)),
            _ => term.pattern.is_match(module),
        })
    }
}

impl Filter {
    /// Whether every term about a part holds; `matches` leaves out the term's negation.
    fn all(&self, part: Part, matches: impl Fn(&Term) -> bool) -> bool {
        self.terms.iter().filter(|term| term.key.part() == part).all(|term| matches(term) != term.negated)
    }
}

/// What of an entry a term looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Path,
    Head,
    Place,
}

impl Key {
    const fn part(&self) -> Part {
        match self {
            Self::Path => Part::Path,
            Self::Kind | Self::Language | Self::Symbol => Part::Head,
            Self::Module | Self::Label(_) => Part::Place,
        }
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, FilterError> {
        let (negated, term) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (key, value) = term.split_once(':').ok_or_else(|| FilterError::Term { term: text.to_owned() })?;
        let key = match key {
            "path" => Key::Path,
            "kind" => Key::Kind,
            "language" => Key::Language,
            "symbol" => Key::Symbol,
            "module" => Key::Module,
            _ => match key.strip_prefix("label.") {
                Some(name) if !name.is_empty() => Key::Label(name.to_owned()),
                _ => return Err(FilterError::Key { key: key.to_owned() }),
            },
        };
        let pattern = Glob::new(value).map_err(|source| FilterError::Pattern { value: value.to_owned(), source })?;
        Ok(Self { key, pattern: pattern.compile_matcher(), negated })
    }
}

//! The grammar of `--where`.
//!
//! In: an expression as typed. Out: its terms, each with its position, or the error with its column.
//!
//! ```text
//! expression  terms separated by spaces, all of which must match; the word AND may be between them
//! term        !? KEY : value
//! value       "…", in which \" and \\ are a quote and a backslash
//!             or all up to the next space; a space after a backslash belongs to it
//! ```
//!
//! Words after a value of the key `path` that are no terms may belong to it, because people paste paths with spaces. The paths
//! decide which of them do.
//!
//! **Invariant:** any input is parsed in time proportional to its length, and an error names its column.

use super::FilterError;
use winnow::ascii::multispace0;
use winnow::combinator::{alt, cut_err, delimited, fail, not, opt, peek, preceded, repeat, terminated};
use winnow::error::{StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location, Stream};
use winnow::token::{any, none_of, one_of, take_till, take_while};

/// The subject of a term.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Path,
    Kind,
    Language,
    Symbol,
    Module,
    Label(String),
}

/// A term as typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spelled {
    pub(super) is_negated: bool,
    pub(super) key: Key,
    /// The pattern, without quotes.
    pub(super) value: String,
    /// The term and the words that may belong to it, in bytes of the expression.
    pub(super) start: usize,
    pub(super) value_start: usize,
    pub(super) end: usize,
    /// The ends of the words after the value that are no terms.
    pub(super) tail: Vec<Word>,
}

/// A word after a value, in bytes of the expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) end: usize,
}

type Input<'s> = LocatingSlice<&'s str>;

const TERM: &str = "expected KEY:PATTERN, as in `path:src/** kind:code !language:cpp`";
const KEYS: &str = "the keys are path, kind, language, symbol, module and label.NAME";
const EMPTY: &str = "a pattern is missing behind the colon";
const OPEN: &str = "the quote is never closed; inside of quotes a quote is written \\\"";
const BEHIND: &str = "a blank is missing behind the closing quote";

/// Reads an expression.
pub(super) fn read(expression: &str) -> Result<Vec<Spelled>, FilterError> {
    let mut whole = delimited(multispace0, repeat(0.., terminated(item, multispace0)), multispace0);
    let terms: Vec<Option<Spelled>> = whole.parse(LocatingSlice::new(expression)).map_err(|error| {
        let expected = error.inner().context().find_map(|context| match context {
            StrContext::Expected(StrContextValue::Description(expected)) => Some(*expected),
            _ => None,
        });
        FilterError::at(expression, error.offset(), expected.unwrap_or(TERM))
    })?;
    Ok(terms.into_iter().flatten().collect())
}

/// Returns the error of a word after a value that belongs to nothing.
pub(super) fn stray(expression: &str, word: Word) -> FilterError {
    let expected = if expression[word.start..word.end].contains(':') { KEYS } else { TERM };
    FilterError::at(expression, word.start, expected)
}

/// Whether a word only joins terms.
pub(super) fn joins(word: &str) -> bool {
    word == "AND"
}

fn item(input: &mut Input<'_>) -> ModalResult<Option<Spelled>> {
    alt((terminated("AND", peek(blank_or_end)).value(None), term.map(Some))).parse_next(input)
}

fn blank_or_end(input: &mut Input<'_>) -> ModalResult<()> {
    alt((one_of(char::is_whitespace).void(), not(any).void())).parse_next(input)
}

fn term(input: &mut Input<'_>) -> ModalResult<Spelled> {
    // At the end of the input there is no term, and no error.
    peek(any).parse_next(input)?;
    let begin = input.checkpoint();
    let start = input.current_token_start();
    let is_negated = opt('!').parse_next(input)?.is_some();
    let name: &str = take_till(0.., |c: char| c == ':' || c.is_whitespace()).parse_next(input)?;
    let has_value = opt(':').parse_next(input)?.is_some();
    let key = key_of(name);
    let wrong = match (has_value, &key) {
        (false, _) => Some(TERM),
        (true, None) => Some(KEYS),
        (true, Some(_)) => None,
    };
    let (Some(key), None) = (key, wrong) else {
        input.reset(&begin);
        return wrong_here(input, wrong.unwrap_or(TERM));
    };
    let value_start = input.current_token_start();
    let (value, is_quoted) =
        alt((quoted.map(|value| (value, true)), bare.map(|value| (value, false)))).parse_next(input)?;
    if value.is_empty() {
        input.reset(&begin);
        return wrong_here(input, EMPTY);
    }
    let mut end = input.previous_token_end();
    let mut tail = Vec::new();
    if key == Key::Path && !is_quoted {
        tail = repeat(0.., word).parse_next(input)?;
        end = tail.last().map_or(end, |word: &Word| word.end);
    }
    Ok(Spelled { is_negated, key, value, start, value_start, end, tail })
}

fn wrong_here<T>(input: &mut Input<'_>, expected: &'static str) -> ModalResult<T> {
    cut_err(fail.context(StrContext::Expected(StrContextValue::Description(expected)))).parse_next(input)
}

fn key_of(name: &str) -> Option<Key> {
    Some(match name {
        "path" => Key::Path,
        "kind" => Key::Kind,
        "language" => Key::Language,
        "symbol" => Key::Symbol,
        "module" => Key::Module,
        _ => Key::Label(name.strip_prefix("label.").filter(|name| !name.is_empty())?.to_owned()),
    })
}

/// A value in quotes.
fn quoted(input: &mut Input<'_>) -> ModalResult<String> {
    let begin = input.checkpoint();
    '"'.parse_next(input)?;
    let sign = alt((preceded('\\', one_of(['"', '\\'])), none_of('"')));
    let value: String = repeat(0.., sign).parse_next(input)?;
    if opt('"').parse_next(input)?.is_none() {
        input.reset(&begin);
        return wrong_here(input, OPEN);
    }
    if opt(peek(blank_or_end)).parse_next(input)?.is_none() {
        return wrong_here(input, BEHIND);
    }
    Ok(value)
}

/// A value without quotes, which may be empty.
fn bare(input: &mut Input<'_>) -> ModalResult<String> {
    let sign = alt((preceded('\\', one_of(char::is_whitespace)), none_of(char::is_whitespace)));
    repeat(0.., sign).parse_next(input)
}

/// A word that does not begin a term.
fn word(input: &mut Input<'_>) -> ModalResult<Word> {
    multispace0.parse_next(input)?;
    not((
        opt('!'),
        take_while(1.., |c: char| c != ':' && !c.is_whitespace()).verify(|name: &str| key_of(name).is_some()),
        ':',
    ))
    .parse_next(input)?;
    let start = input.current_token_start();
    take_till(1.., char::is_whitespace).parse_next(input)?;
    Ok(Word { start, end: input.previous_token_end() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(expression: &str) -> Vec<(bool, Key, String, Vec<String>)> {
        let spelled = read(expression).unwrap();
        spelled
            .into_iter()
            .map(|term| {
                let tail = term.tail.iter().map(|word| expression[word.start..word.end].to_owned()).collect();
                (term.is_negated, term.key, term.value, tail)
            })
            .collect()
    }

    fn term(is_negated: bool, key: Key, value: &str) -> (bool, Key, String, Vec<String>) {
        (is_negated, key, value.to_owned(), Vec::new())
    }

    #[test]
    fn terms_are_read_with_their_keys() {
        assert_eq!(terms(""), []);
        assert_eq!(
            terms("  path:crates/**  kind:code AND !language:cpp label.version:0.16 symbol:World::spawn "),
            [
                term(false, Key::Path, "crates/**"),
                term(false, Key::Kind, "code"),
                term(true, Key::Language, "cpp"),
                term(false, Key::Label("version".to_owned()), "0.16"),
                term(false, Key::Symbol, "World::spawn"),
            ]
        );
    }

    #[test]
    fn quotes_hold_blanks_and_escapes() {
        assert_eq!(
            terms(r#"!path:"my docs/read me.md" symbol:"a \"b\" c\\d\e""#),
            [term(true, Key::Path, "my docs/read me.md"), term(false, Key::Symbol, r#"a "b" c\d\e"#)]
        );
        assert_eq!(terms(r"path:my\ docs/x\*"), [term(false, Key::Path, r"my docs/x\*")]);
    }

    #[test]
    fn words_behind_a_path_may_belong_to_it() {
        let found = terms("path:my docs/read me.md kind:code");
        assert_eq!(found[0].2, "my");
        assert_eq!(found[0].3, ["docs/read", "me.md"]);
        assert_eq!(found[1], term(false, Key::Kind, "code"));
        assert_eq!(terms("path:a b:c !kind:x")[0].3, ["b:c"]);
    }

    #[test]
    fn mistakes_are_named_by_their_column() {
        for (expression, column, words) in [
            ("nonsense", 1, "KEY:PATTERN"),
            ("kind:code äö kind:text", 11, "KEY:PATTERN"),
            ("kind:code colour:blue", 11, "the keys are"),
            ("kind:code label.:x", 11, "the keys are"),
            ("kind:", 1, "missing behind the colon"),
            ("kind:code path:\"a b", 16, "never closed"),
            ("path:\"a\"b", 9, "blank is missing"),
            ("kind:code or kind:text", 11, "KEY:PATTERN"),
            (":x", 1, "the keys are"),
            ("!", 1, "KEY:PATTERN"),
        ] {
            let error = read(expression).unwrap_err().to_string();
            assert!(error.contains(&format!("column {column},")) && error.contains(words), "{expression}: {error}");
            assert!(!error.contains('\n'));
        }
    }

    proptest! {
        #![proptest_config(crate::index::cases(256))]

        #[test]
        fn whatever_is_typed_is_read_or_refused(expression in r#"([a-z:!"\\ ]|path:|kind:|AND|label\.|é){0,30}"#) {
            for term in read(&expression).unwrap_or_default() {
                prop_assert!(term.start < term.value_start && term.value_start < term.end);
                prop_assert!(expression.get(term.start..term.end).is_some());
            }
        }

        #[test]
        fn what_is_quoted_comes_back(value in r#"[a-z"\\ *é]{1,20}"#) {
            let quoted = format!("path:\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""));
            prop_assert_eq!(&read(&quoted).unwrap()[0].value, &value);
        }
    }
}

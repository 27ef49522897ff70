//! Words with signs: `C++`, `C#`, `operator<<`, `--flag`, `-Wall`, `#include`, `@dataclass`, `$HOME`, `.NET`.
//!
//! In: a text, and the position of a sign or of a run of word characters. Out: the length of the word with its signs.
//!
//! **Invariant:** a word with signs is one additional token, at the position of its first part, and removes none: `flag` still
//! finds `--flag`. Its own characters and the one on either side decide.
//!
//! Only signs that name something are kept. Operators between names are not: `a->b`, `x.y` and `std::vector` are found by their
//! parts, in quotes as a phrase. As tokens they would cost one for every member access.

use super::{Kind, kind_at, kind_of};
use std::ops::Range;

/// The operators that a C++ type can define, longer ones first; `,` is left out, because prose puts it after words.
const OPERATORS: [&str; 39] = [
    "<=>", "->*", "<<=", ">>=", "<<", ">>", "==", "!=", "<=", ">=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=",
    "%=", "^=", "&=", "|=", "->", "()", "[]", "+", "-", "*", "/", "%", "^", "&", "|", "~", "!", "=", "<", ">", "\"\"",
];

/// Returns the bytes of the word that begins with the sign at `at`, if there is one.
pub(super) fn word_behind_sign(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let sign = bytes[at];
    let before = text[..at].chars().next_back();
    let end = match sign {
        b'#' | b'@' | b'$' => {
            let is_free =
                before.is_none_or(|before| before != char::from(sign) && before != '&' && !is_word(kind_of(before)));
            is_free.then(|| word_end(text, at + 1)).filter(|&end| has_letter_or_digit(&bytes[at + 1..end]))?
        }
        b'-' => option_end(text, at, before)?,
        b'.' => {
            let end = at + 4;
            let name = bytes.get(at + 1..end)?;
            let stands_alone = before.is_none_or(|before| !is_word(kind_of(before)));
            let is_name = name == b"NET" || (stands_alone && name.eq_ignore_ascii_case(b"net"));
            (is_name && word_end(text, end) == end).then_some(end)?
        }
        _ => return None,
    };
    Some(at..end)
}

/// Returns how many bytes of signs after the word `start..end` belong to it.
#[inline]
pub(super) fn signs_behind(text: &str, start: usize, end: usize) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(end) {
        Some(b'+') if bytes.get(end + 1) == Some(&b'+') && bytes.get(end + 2) != Some(&b'+') => 2,
        Some(b'#') if end - start == 1 && bytes[start].is_ascii_alphabetic() => {
            let is_last = bytes.get(end + 1).is_none_or(|next| !matches!(next, b'#' | b'"'));
            usize::from(is_last && !begins_word(text, end + 1))
        }
        _ if &bytes[start..end] == b"operator" => operator_behind(&text[end..]),
        _ => 0,
    }
}

/// Returns how many bytes the operator after the word `operator` takes, including a blank before it.
fn operator_behind(rest: &str) -> usize {
    let blank = usize::from(rest.starts_with(' '));
    let symbol = OPERATORS.iter().find(|symbol| rest[blank..].starts_with(**symbol));
    symbol.map_or(0, |symbol| blank + symbol.len())
}

/// Returns the end of a command line option: `-Wall`, `--no-default-features`.
fn option_end(text: &str, at: usize, before: Option<char>) -> Option<usize> {
    let bytes = text.as_bytes();
    let (is_free, name) = if bytes.get(at + 1) == Some(&b'-') {
        (before.is_none_or(|before| !matches!(before, '-' | '!' | '<') && !is_word(kind_of(before))), at + 2)
    } else {
        let opens = |before: char| before.is_whitespace() || matches!(before, '"' | '\'' | '`' | '[' | '(');
        (before.is_none_or(opens), at + 1)
    };
    if !is_free || !bytes.get(name).is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let mut end = word_end(text, name);
    while bytes.get(end) == Some(&b'-') && begins_word(text, end + 1) {
        end = word_end(text, end + 1);
    }
    Some(end)
}

/// Returns where the run of word characters at `at` ends.
fn word_end(text: &str, at: usize) -> usize {
    let mut end = at;
    while end < text.len() {
        let (kind, width) = kind_at(text, end);
        if !is_word(kind) {
            break;
        }
        end += width;
    }
    end
}

fn begins_word(text: &str, at: usize) -> bool {
    at < text.len() && is_word(kind_at(text, at).0)
}

fn is_word(kind: Kind) -> bool {
    !matches!(kind, Kind::Break | Kind::Sign | Kind::Ideograph)
}

fn has_letter_or_digit(word: &[u8]) -> bool {
    word.iter().any(|byte| *byte != b'_')
}

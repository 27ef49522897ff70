//! Analyses text into the tokens that BM25 counts, in the same way for documents and for queries.
//!
//! In: the text or name of an entry, or a query. Out: tokens, each with its position and its source bytes.
//!
//! **Invariant:** the tokens follow from the text and [`fingerprint`] alone. Every token is at most 67 bytes. Positions begin at
//! 0, and each token has the position of the previous one or the next position.
//!
//! | text | tokens at successive positions |
//! |---|---|
//! | an identifier: a run of letters, digits and `_` | the whole as written, beside its first part; then its parts |
//! | a run that is one part (a plain word) | that part |
//! | a run of Chinese, Japanese or Korean characters | each two neighbours; a character that stands alone |
//! | a word written with signs (`C++`, `operator<<`, `--flag`) | the whole, beside its first part; then as without them |
//!
//! Parts end at `_`, between letters and digits, where lower case turns upper (`spawn|Camera`), and before the last capital of a
//! run that a word follows (`HTTP|Server`); capitals with a plural s are one part (`entity|IDs`). Everything is lower-cased.
//! Parts lose an English plural ending; whole identifiers of several parts do not. So `spawn camera` finds `SpawnCameras`, and
//! `spawn_camera` ranks exact spellings first.
//!
//! Runs that are data and no names (hashes, base64, minified code) are not split. A long token is cut to a prefix and a hash:
//! only the exact token finds it, and its memory is bounded.
//!
//! Pairs of characters and no dictionary for Chinese: there is no version to maintain, and no segmentation that shifts with the
//! context. Equal-looking spellings are one token ([`fold`]): composed and decomposed letters, widths, ligatures. Accents and
//! other compatibility forms do not change.

mod fold;
mod signs;

use dataflows::data::{Fingerprint, Hasher};
use fold::Folded;
use signs::{signs_behind, word_behind_sign};
use std::ops::Range;
use unicode_normalization::char::is_combining_mark;

/// The version of this module's rules. Any change of the result of [`analyze`] must change it; a test compares the two.
const ANALYZER_VERSION: &str = "identifiers, parts, plurals, character pairs, composed forms, signs: 2";

/// Tokens of more bytes are shortened.
const MAX_TOKEN_BYTES: usize = 64;
/// The kept prefix of a shortened token, in bytes; `~` and 16 hexadecimal digits follow.
const SHORTENED_HEAD_BYTES: usize = 48;
/// Longer runs are data, and are not split.
const MAX_NAME_BYTES: usize = 256;
/// A run of more parts than this, whose parts are shorter than [`MIN_MEAN_PART_BYTES`] on average, is data: hexadecimal digests
/// have a border every two or three characters, names every five or six.
const FEW_PARTS: usize = 8;
const MIN_MEAN_PART_BYTES: usize = 4;
/// A shortened token is hashed in blocks of at most so many bytes.
const HASH_BLOCK_BYTES: usize = 1024;

/// One token, its position, and its source bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// The indexed form: lower case, at most 67 bytes.
    pub text: String,
    /// Counted from 0; a whole identifier, and a word with its signs, share the position of their first part.
    pub position: u32,
    /// Its range in the analysed text, in bytes, on character borders.
    pub offsets: Range<usize>,
}

/// Returns the fingerprint of all that can change what [`analyze`] returns: these rules, and the tables of Unicode.
pub(super) fn fingerprint() -> Fingerprint {
    let mut hasher = Hasher::new("analyzer").part(ANALYZER_VERSION.as_bytes());
    for (major, minor, patch) in [char::UNICODE_VERSION, unicode_normalization::UNICODE_VERSION] {
        hasher = hasher.part(&[major, minor, patch]);
    }
    Fingerprint::from_words(hasher.finish())
}

/// Returns the tokens of `text`, in order of position; a whole identifier comes before its first part.
///
/// ```
/// use tidemill::index::lexical::analyze;
/// let tokens: Vec<_> = analyze("spawn_cameras(2)").into_iter().map(|token| (token.text, token.position)).collect();
/// let expected = [("spawn_cameras", 0), ("spawn", 0), ("camera", 1), ("2", 2)];
/// assert_eq!(tokens, expected.map(|(text, position)| (text.to_owned(), position)));
/// ```
#[must_use]
pub fn analyze(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for_each_token(text, |token, position, offsets| {
        tokens.push(Token { text: token.to_owned(), position, offsets });
    });
    tokens
}

/// Calls `emit` with each token of `text`, its position and its offsets; allocates nothing per token.
pub(crate) fn for_each_token(text: &str, mut emit: impl FnMut(&str, u32, Range<usize>)) {
    let folded = Folded::of(text);
    scan(folded.text(), |token, position, range| emit(token, position, folded.source(range)));
}

/// Calls `emit` with each token of a folded text.
fn scan(text: &str, mut emit: impl FnMut(&str, u32, Range<usize>)) {
    let bytes = text.as_bytes();
    let mut scratch = Scratch::default();
    let mut position = 0;
    let mut at = 0;
    while at < bytes.len() {
        let (kind, width) = kind_at(text, at);
        match kind {
            Kind::Break => at += width,
            Kind::Sign => {
                if let Some(word) = word_behind_sign(text, at) {
                    spell(&text[word.clone()], &mut scratch.token);
                    emit(&scratch.token, position, word);
                }
                at += width;
            }
            Kind::Ideograph => (at, position) = pair_up(text, at, position, &mut emit),
            _ => (at, position) = name(text, at, position, &mut scratch, &mut emit),
        }
    }
}

/// The role of a character in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Kind {
    /// Ends a word and is no part of one.
    Break = 0,
    Lower = 1,
    Upper = 2,
    /// Belongs to a word and has no case.
    Letter = 4,
    Digit = 8,
    Underscore = 16,
    /// Chinese, Japanese or Korean, which have no spaces between words.
    Ideograph = 32,
    /// Ends a word, and may begin one with signs.
    Sign = 64,
}

const ASCII: [Kind; 128] = {
    let mut kinds = [Kind::Break; 128];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b'a'..=b'z' => Kind::Lower,
            b'A'..=b'Z' => Kind::Upper,
            b'0'..=b'9' => Kind::Digit,
            b'_' => Kind::Underscore,
            b'#' | b'@' | b'$' | b'-' | b'.' => Kind::Sign,
            _ => Kind::Break,
        };
        byte += 1;
    }
    kinds
};

fn kind_of(character: char) -> Kind {
    match character {
        '\0'..='\x7f' => ASCII[character as usize],
        // Hangul Jamo; radicals, kana, Hangul compatibility letters, Han; Hangul syllables; compatibility Han;
        // half-width kana and Hangul; the planes of rare Han. The punctuation among them ends words.
        '\u{1100}'..='\u{11ff}'
        | '\u{2e80}'..='\u{9fff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{1b000}'..='\u{1b16f}'
        | '\u{20000}'..='\u{3ffff}' => {
            if character.is_alphanumeric() || matches!(character, '\u{3099}' | '\u{309a}') {
                Kind::Ideograph
            } else {
                Kind::Break
            }
        }
        // Marks that combine with symbols and not with letters.
        '\u{20d0}'..='\u{20ff}' => Kind::Break,
        _ if character.is_lowercase() => Kind::Lower,
        _ if character.is_uppercase() => Kind::Upper,
        _ if character.is_numeric() => Kind::Digit,
        // Marks that combine with the letter before them are no word borders.
        _ if character.is_alphanumeric() || is_combining_mark(character) => Kind::Letter,
        _ => Kind::Break,
    }
}

/// Returns the kind of the character at a character border inside `text`, and its width in bytes.
#[inline]
fn kind_at(text: &str, at: usize) -> (Kind, usize) {
    let byte = text.as_bytes()[at];
    if byte < 0x80 {
        return (ASCII[byte as usize], 1);
    }
    let character = text[at..].chars().next().expect("the caller stays inside the text");
    (kind_of(character), character.len_utf8())
}

/// Emits the character pairs of the run at `start`; returns where the run ends and the next position.
fn pair_up(
    text: &str,
    start: usize,
    mut position: u32,
    emit: &mut impl FnMut(&str, u32, Range<usize>),
) -> (usize, u32) {
    let mut before = start;
    let mut end = start + kind_at(text, start).1;
    let mut alone = true;
    while end < text.len() {
        let (kind, width) = kind_at(text, end);
        if kind != Kind::Ideograph {
            break;
        }
        let pair = before..end + width;
        emit(&text[pair.clone()], position, pair);
        position += 1;
        (before, end, alone) = (end, end + width, false);
    }
    if alone {
        emit(&text[start..end], position, start..end);
        position += 1;
    }
    (end, position)
}

/// Buffers for one analysis.
#[derive(Default)]
struct Scratch {
    parts: Vec<Range<usize>>,
    token: String,
}

/// Emits the tokens of the run of word characters at `start`; returns where it ends and the next position.
fn name(
    text: &str,
    start: usize,
    position: u32,
    scratch: &mut Scratch,
    emit: &mut impl FnMut(&str, u32, Range<usize>),
) -> (usize, u32) {
    let mut kinds = 0;
    let mut end = start;
    while end < text.len() {
        let (kind, width) = kind_at(text, end);
        if matches!(kind, Kind::Break | Kind::Sign | Kind::Ideograph) {
            break;
        }
        kinds |= kind as u8;
        end += width;
    }
    let run = &text[start..end];
    let Scratch { parts, token } = scratch;

    let signs = signs_behind(text, start, end);
    if signs > 0 && kinds != Kind::Underscore as u8 {
        let symbol = text[end..end + signs].trim_start();
        spell(run, token);
        token.push_str(symbol);
        emit(token, position, start..end + signs);
    }
    // Most words of prose and many of code are this.
    if kinds == Kind::Lower as u8 && run.len() <= MAX_TOKEN_BYTES && run.is_ascii() {
        if run.ends_with('s') {
            token.clear();
            token.push_str(run);
            strip_plural(token);
            emit(token, position, start..end);
        } else {
            emit(run, position, start..end);
        }
        return (end, position + 1);
    }
    if kinds == Kind::Underscore as u8 {
        return (end, position);
    }

    parts.clear();
    if run.len() <= MAX_NAME_BYTES {
        split(run, parts);
    }
    let data = parts.is_empty() || parts.len() > FEW_PARTS.max(run.len() / MIN_MEAN_PART_BYTES);
    if data {
        spell(run, token);
        emit(token, position, start..end);
        return (end, position + 1);
    }
    if parts[0].len() < run.len() {
        spell(run, token);
        emit(token, position, start..end);
    }
    let mut next = position;
    for part in parts.iter() {
        spell(&run[part.clone()], token);
        strip_plural(token);
        emit(token, next, start + part.start..start + part.end);
        next += 1;
    }
    (end, next)
}

/// Puts the borders of the parts of `run` into `parts`.
fn split(run: &str, parts: &mut Vec<Range<usize>>) {
    let mut start = None;
    let mut before = Kind::Underscore;
    for (at, character) in run.char_indices() {
        let kind = kind_of(character);
        let border = match (before, kind) {
            (_, Kind::Underscore) => true,
            (Kind::Underscore, _) => false,
            (Kind::Digit, _) | (_, Kind::Digit) => before != kind,
            (Kind::Lower, Kind::Upper) => true,
            (Kind::Upper, Kind::Upper) => begins_word(&run[at + character.len_utf8()..]),
            _ => false,
        };
        if border && let Some(start) = start.take() {
            parts.push(start..at);
        }
        if kind != Kind::Underscore {
            start.get_or_insert(at);
        }
        before = kind;
    }
    if let Some(start) = start {
        parts.push(start..run.len());
    }
}

/// Returns whether the capital before `rest` begins a word: lower case follows, and not only a plural s.
fn begins_word(rest: &str) -> bool {
    let mut following = rest.chars().map(|character| (character, kind_of(character)));
    match following.next() {
        Some(('s', _)) => following.next().is_some_and(|(_, kind)| kind == Kind::Lower),
        Some((_, kind)) => kind == Kind::Lower,
        None => false,
    }
}

/// Writes `run` into `token` in lower case, shortened if it is too long.
fn spell(run: &str, token: &mut String) {
    if run.len() <= MAX_NAME_BYTES {
        lower(run, token);
        if token.len() <= MAX_TOKEN_BYTES {
            return;
        }
    }
    let mut hasher = blake3::Hasher::new();
    let mut block = String::new();
    let mut rest = run;
    token.clear();
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(border_up_to(rest, HASH_BLOCK_BYTES));
        lower(head, &mut block);
        if token.is_empty() {
            token.push_str(&block[..border_up_to(&block, SHORTENED_HEAD_BYTES)]);
        }
        hasher.update(block.as_bytes());
        rest = tail;
    }
    token.push('~');
    token.push_str(&hasher.finalize().to_hex()[..16]);
}

/// Writes `run` into `token` in lower case, character by character, so that no letter depends on its neighbours.
fn lower(run: &str, token: &mut String) {
    token.clear();
    if run.is_ascii() {
        token.push_str(run);
        token.make_ascii_lowercase();
    } else {
        token.extend(run.chars().flat_map(char::to_lowercase));
    }
}

/// Returns the last character border at or before `limit`.
pub(crate) fn border_up_to(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    (0..=limit).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Removes an English plural ending from a lower-case word.
///
/// After Harman, *How effective is suffixing?*, JASIS 42(1), 1991, table 1 (the S stemmer): -ies becomes -y unless e or a
/// precedes it, -s is dropped unless it is -us or -ss. Two departures: Harman keeps -aes, -ees and -oes, which would separate
/// `trees` from `tree`; and words of two letters (of four for -ies) keep theirs, so that `as`, `ties` and `pies` do not become
/// equal to `a`, `ty` and `py`.
fn strip_plural(word: &mut String) {
    let long_enough = word.len() >= 3;
    if !long_enough || !word.ends_with('s') || word.ends_with("ss") || word.ends_with("us") {
        return;
    }
    word.pop();
    if word.len() >= 4 && word.ends_with("ie") && !word.ends_with("eie") && !word.ends_with("aie") {
        word.truncate(word.len() - 2);
        word.push('y');
    }
}

#[cfg(test)]
#[path = "analyzer/tests.rs"]
mod tests;

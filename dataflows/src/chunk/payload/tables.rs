//! Finds long tables of numbers, and hexadecimal dumps.
//!
//! In: a text. Out: the ranges to leave out: of each long table all but the first KiB, which shows the kind of numbers.
//!
//! **Invariant:** a table ends at the next word, independent of line ends. A long hexadecimal token is a word: a checksum, or an
//! id.

use super::Kind;
use std::ops::Range;

/// A table of fewer bytes stays.
const LONG_TABLE: usize = 8 << 10;
/// The part of a longer one that stays.
const TABLE_HEAD: usize = 1 << 10;

/// Finds numbers without a word between them.
pub(super) fn numbers(text: &str) -> Vec<(Range<usize>, Kind)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    // A table holds one of the blocks whole, in which no word begins.
    if bytes.chunks_exact(LONG_TABLE / 2).all(begins_word) {
        return found;
    }
    let (mut start, mut at) = (0, 0);
    while at <= bytes.len() {
        let word = next_word(bytes, at);
        if word.start - start >= LONG_TABLE
            && let Some(run) = table(text, start..word.start)
        {
            found.push((run, Kind::Numbers));
        }
        if word.is_empty() {
            break;
        }
        (start, at) = (word.end, word.end);
    }
    found
}

/// Says whether a byte stands in a word or a number.
const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || byte >= 0x80
}

/// Says whether a token that is no number begins in a block and ends in front of its end: of most texts the first one does.
fn begins_word(block: &[u8]) -> bool {
    let cut = block.iter().position(|byte| !is_part(*byte)).unwrap_or(block.len());
    next_word(block, cut).end < block.len()
}

/// Returns the next token that is no number, or the empty range at the end.
fn next_word(bytes: &[u8], from: usize) -> Range<usize> {
    let mut at = from;
    while at < bytes.len() {
        if !is_part(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_part(bytes[at]) {
            at += 1;
        }
        if !is_number(&bytes[start..at]) {
            return start..at;
        }
    }
    bytes.len()..bytes.len()
}

/// Tells whether a token is a number (`12`, `.5e`, `0x4f`, `1.5f32`), or one or two letters that label numbers.
///
/// Long hexadecimal digits are a name: a checksum, or an id.
fn is_number(token: &[u8]) -> bool {
    let digits = token.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = token.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let others = token.iter().filter(|byte| **byte >= 0x80).count();
    if others > 0 || letters > 2 && digits == 0 {
        return false;
    }
    let is_hexadecimal =
        token.strip_prefix(b"0x").unwrap_or(token).iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'.');
    letters <= 3 && (digits > 0 || letters <= 2) || (is_hexadecimal && token.len() <= 18 && digits > 0)
}

/// Returns the range of a run without words to leave out: not its beginning, and none if few tokens are numbers.
fn table(text: &str, run: Range<usize>) -> Option<Range<usize>> {
    let bytes = &text.as_bytes()[run.clone()];
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits * 4 < bytes.len() {
        return None;
    }
    behind_the_head(bytes, run.start)
}

/// Returns the range of a long run to leave out: all after its first KiB.
fn behind_the_head(bytes: &[u8], place: usize) -> Option<Range<usize>> {
    // From the end of a line or of a number to the end of another, so that no number is cut in two.
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';');
    let behind = |from: usize| {
        let rest = &bytes[from..];
        let line = rest.iter().take(TABLE_HEAD).position(|byte| *byte == b'\n');
        line.or_else(|| rest.iter().position(is_end)).map(|at| from + at + 1)
    };
    let start = behind(TABLE_HEAD)?;
    let last_line = bytes.iter().rposition(|byte| *byte == b'\n').filter(|last| bytes.len() - last < TABLE_HEAD);
    let end = last_line.or_else(|| bytes.iter().rposition(is_end))?;
    (end > start).then_some(place + start..place + end)
}

/// Finds hexadecimal dumps; their last column may look like words.
pub(super) fn dumps(text: &str) -> Vec<(Range<usize>, Kind)> {
    let mut found = Vec::new();
    if text.len() < LONG_TABLE {
        return found;
    }
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n').chain([""]) {
        if !is_dumped(line) {
            if at - start >= LONG_TABLE {
                found.extend(behind_the_head(&text.as_bytes()[start..at], start).map(|run| (run, Kind::Hexadecimal)));
            }
            start = at + line.len();
        }
        at += line.len();
    }
    found
}

/// Tells whether a line belongs to a hexadecimal dump: an address, and at least six groups of digits.
fn is_dumped(line: &str) -> bool {
    let is_group = |word: &str| matches!(word.len(), 2 | 4 | 8) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = line.split_ascii_whitespace();
    let is_address = words.next().is_some_and(|word| {
        let address = word.strip_suffix(':').unwrap_or(word);
        (4..=16).contains(&address.len()) && address.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    is_address && words.take_while(|word| is_group(word)).nth(5).is_some()
}

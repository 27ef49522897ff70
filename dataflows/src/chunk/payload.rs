//! Finds runs without words: pictures, fonts and tables of numbers, written as letters and digits.
//!
//! In: a cleaned text. Out: the same with a mark in place of each such run, and the runs behind the marks.
//!
//! | run | left out |
//! |---|---|
//! | unbroken base64 or hexadecimal digits, 256 bytes and more; escapes (`\n`, `\/`, `\x4f`) are no break | all of it |
//! | consecutive lines of base64 (PEM, MIME, strings of an array), 4 lines and 512 bytes and more | all of them |
//! | numbers without a word between them (meshes, tables, paths of SVG), 8 KiB and more | all after the first KiB |
//! | lines of a hexadecimal dump, 8 KiB and more | all after the first KiB |
//!
//! **Invariant:** a run's own bytes decide, never the text around it. A mark says kind and size and nothing else (no running
//! number), so equal runs have equal marks. A run holds no word: letters and digits count as words if more than a third of them
//! look like words. All other text stays, and every line keeps its number ([`Condensed::hidden`]).
//!
//! Hashes, keys, UUIDs and lists of them stay, because people search for them. No identifier, path or checksum reaches 256 bytes,
//! which chose that size (the analyzer splits none of that length either).

mod tables;

use std::borrow::Cow;
use std::ops::Range;

/// A shorter unbroken run may be a name.
const LONG_RUN: usize = 256;
/// A line of base64 has at least so many bytes, and at most [`LONG_RUN`].
const WRAPPED_LINE: usize = 40;
/// So many lines make a run, with at least [`WRAPPED_BYTES`] together.
const WRAPPED_LINES: usize = 4;
const WRAPPED_BYTES: usize = 512;

/// A run that was left out.
#[derive(Clone, PartialEq, Eq, Debug)]
struct LeftOut {
    source: Range<usize>,
    mark: Range<usize>,
    newlines: u32,
}

/// A text without its payload.
pub(super) struct Condensed<'a> {
    text: Cow<'a, str>,
    left_out: Vec<LeftOut>,
}

impl<'a> Condensed<'a> {
    /// Leaves out the payload of a text.
    pub(super) fn of(text: &'a str) -> Self {
        let runs = runs(text);
        if runs.is_empty() {
            return Self { text: Cow::Borrowed(text), left_out: Vec::new() };
        }
        let mut out = String::new();
        let mut left_out = Vec::with_capacity(runs.len());
        let mut at = 0;
        for (source, kind) in runs {
            out.push_str(&text[at..source.start]);
            let start = out.len();
            out.push_str(&mark(kind, source.len()));
            let newlines = text.as_bytes()[source.clone()].iter().filter(|byte| **byte == b'\n').count();
            at = source.end;
            let newlines = u32::try_from(newlines).unwrap_or(u32::MAX);
            left_out.push(LeftOut { source, mark: start..out.len(), newlines });
        }
        out.push_str(&text[at..]);
        Self { text: Cow::Owned(out), left_out }
    }

    /// Keeps everything.
    #[cfg(test)]
    pub(super) fn whole(text: &'a str) -> Self {
        Self { text: Cow::Borrowed(text), left_out: Vec::new() }
    }

    /// Returns the text with its marks.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the position in this text of a position of the whole text; inside a run, the start of its mark.
    pub(super) fn place(&self, source: usize) -> usize {
        let behind = self.left_out.partition_point(|run| run.source.start <= source);
        match self.left_out[..behind].last() {
            None => source,
            Some(run) if source < run.source.end => run.mark.start,
            Some(run) => run.mark.end + (source - run.source.end),
        }
    }

    /// Returns whether a position is inside a mark, where nothing is cut.
    pub(super) fn is_in_mark(&self, at: usize) -> bool {
        let behind = self.left_out.partition_point(|run| run.mark.start < at);
        self.left_out[..behind].last().is_some_and(|run| at < run.mark.end)
    }

    /// Returns how many line ends were left out in the marks that end in a range.
    pub(super) fn hidden(&self, range: Range<usize>) -> u32 {
        let from = self.left_out.partition_point(|run| run.mark.end <= range.start);
        let ending = self.left_out[from..].iter().take_while(|run| run.mark.end <= range.end);
        ending.fold(0_u32, |sum, run| sum.saturating_add(run.newlines))
    }
}

/// The kind of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Base64,
    Hexadecimal,
    Numbers,
}

fn mark(kind: Kind, bytes: usize) -> String {
    let kind = match kind {
        Kind::Base64 => "base64",
        Kind::Hexadecimal => "hexadecimal",
        Kind::Numbers => "numbers",
    };
    match bytes {
        0..1_000 => format!("[{kind}, {bytes} bytes left out]"),
        1_000..1_000_000 => format!("[{kind}, {} KB left out]", bytes / 1_000),
        _ => format!("[{kind}, {}.{} MB left out]", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

/// Returns the runs to leave out, in order, without overlaps.
fn runs(text: &str) -> Vec<(Range<usize>, Kind)> {
    let mut found = unbroken(text);
    found.extend(wrapped(text));
    found.extend(tables::numbers(text));
    found.extend(tables::dumps(text));
    found.sort_by_key(|(run, _)| (run.start, std::cmp::Reverse(run.end)));
    let mut end = 0;
    found.retain(|(run, _)| {
        let is_free = run.start >= end;
        end = end.max(run.end);
        is_free
    });
    found
}

/// Returns whether a byte occurs in base64 or in a list of its digits (source maps).
const fn is_digit(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'/' | b'=' | b'_' | b'-' | b',' | b';')
}

/// Returns the length of an escape inside a run at `at`, if there is one.
fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match (bytes.get(at)?, bytes.get(at + 1)?) {
        (b'\\', b'n' | b'r' | b'/') => Some(2),
        (b'\\', b'x') if bytes.get(at + 2..at + 4)?.iter().all(u8::is_ascii_hexdigit) => Some(4),
        _ => None,
    }
}

/// Finds unbroken runs of digits.
fn unbroken(text: &str) -> Vec<(Range<usize>, Kind)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut start = 0;
    while start + LONG_RUN <= bytes.len() {
        // A break anywhere in the next bytes means that no long run starts before it.
        let window = &bytes[start..start + LONG_RUN];
        if let Some(last) = window.iter().rposition(|byte| !is_digit(*byte) && *byte != b'\\') {
            start += last + 1;
            continue;
        }
        let mut end = start;
        while end < bytes.len() {
            match escape(bytes, end) {
                Some(width) => end += width,
                None if is_digit(bytes[end]) => end += 1,
                None => break,
            }
        }
        if end - start >= LONG_RUN
            && let Some((run, kind)) = payload(bytes, start..end)
        {
            found.push((run, kind));
        }
        start = end.max(start) + 1;
    }
    found
}

/// Returns the part of a run without words, and its kind.
fn payload(bytes: &[u8], run: Range<usize>) -> Option<(Range<usize>, Kind)> {
    // `data:image/png;base64,` before the digits stays: it says what was there.
    let head = &bytes[run.start..run.end.min(run.start + 64)];
    let named = head.windows(7).position(|part| part.eq_ignore_ascii_case(b"base64,")).map_or(0, |at| at + 7);
    let run = run.start + named..run.end;
    let digits = &bytes[run.clone()];
    let parted = digits.iter().filter(|byte| matches!(byte, b',' | b';')).count();
    if parted * 64 > digits.len() {
        return is_mapping(digits).then_some((run, Kind::Base64));
    }
    if digits.len() < LONG_RUN || !is_dense(digits) || has_words(digits) {
        return None;
    }
    let (mut decimal, mut hexadecimal, mut letters, mut escaped) = (0, 0, 0, 0);
    for byte in digits {
        match byte {
            b'0'..=b'9' => decimal += 1,
            b'a'..=b'f' | b'A'..=b'F' => hexadecimal += 1,
            b'a'..=b'z' | b'A'..=b'Z' => letters += 1,
            b'\\' => escaped += 1,
            _ => {}
        }
    }
    // The `x` of `\x4f` is no digit.
    let kind = match (letters <= escaped, hexadecimal) {
        (true, 0) if escaped == 0 => Kind::Numbers,
        (true, _) if decimal > 0 => Kind::Hexadecimal,
        _ => Kind::Base64,
    };
    Some((run, kind))
}

/// Tells whether pieces between commas are those of a source map, and not a list of codes that people search for. The second of
/// their four or five numbers is a file offset, mostly 0, which is `A`.
fn is_mapping(run: &[u8]) -> bool {
    let pieces = run.split(|byte| matches!(byte, b',' | b';')).filter(|piece| !piece.is_empty());
    let (mut all, mut same_file) = (0, 0);
    for piece in pieces {
        all += 1;
        same_file += usize::from(piece.len() >= 4 && piece[1] == b'A');
    }
    same_file * 5 > all * 3
}

/// Tells whether most of a run is letters and digits: a ruler (`-----`) is not.
fn is_dense(run: &[u8]) -> bool {
    run.iter().filter(|byte| byte.is_ascii_alphanumeric()).count() * 2 > run.len()
}

/// Tells whether more than a third of a run looks like words.
///
/// Random letters of both cases form runs of four and more of one case with a vowel in some 10 % of a text; names and paths do in
/// 60 % and more.
fn has_words(run: &[u8]) -> bool {
    let mut words = 0;
    let mut at = 0;
    while at < run.len() {
        let start = at;
        // One word of a name: a capital and lower-case letters, or letters of one case.
        if run[at].is_ascii_uppercase() && run.get(at + 1).is_some_and(u8::is_ascii_lowercase) {
            at += 1;
        }
        let is_lower = run.get(at).is_some_and(u8::is_ascii_lowercase);
        while run
            .get(at)
            .is_some_and(|byte| if is_lower { byte.is_ascii_lowercase() } else { byte.is_ascii_uppercase() })
        {
            at += 1;
        }
        let word = &run[start..at];
        if is_word(word) {
            words += word.len();
        }
        at = at.max(start + 1);
    }
    words * 3 > run.len()
}

/// Tells whether letters look like a word: not too few, not too many, some vowels, no letter three times in a row.
fn is_word(letters: &[u8]) -> bool {
    let vowels =
        letters.iter().filter(|byte| matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y'));
    let vowels = vowels.count();
    let is_stuck = letters.windows(3).any(|three| three[0] == three[1] && three[1] == three[2]);
    (4..=24).contains(&letters.len()) && vowels > 0 && vowels < letters.len() && !is_stuck
}

/// Finds consecutive lines of base64.
fn wrapped(text: &str) -> Vec<(Range<usize>, Kind)> {
    let mut found = Vec::new();
    let mut lines: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        // The last line may be a short one.
        let least = if lines.is_empty() { WRAPPED_LINE } else { 1 };
        match digits_of(line, least) {
            Some(digits) => lines.push(at + digits.start..at + digits.end),
            None => take_lines(text, &mut lines, &mut found),
        }
        at += line.len();
    }
    take_lines(text, &mut lines, &mut found);
    found
}

/// Returns the digits of a line that holds nothing else except quotes and characters that join strings or begin comments.
fn digits_of(line: &str, least: usize) -> Option<Range<usize>> {
    if line.len() < least {
        return None;
    }
    let bytes = line.as_bytes();
    let is_around = |byte: &u8| {
        matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b'#' | b'*' | b'>' | b'\\' | b'(' | b')')
    };
    let start = bytes.iter().position(|byte| !is_around(byte))?;
    let inner = &bytes[start..];
    let count = inner.iter().position(|byte| !is_digit(*byte) || matches!(byte, b',' | b';')).unwrap_or(inner.len());
    // A string may end after the digits: `\n",` or `" +`.
    let rest = &inner[count..];
    let rest = rest.strip_prefix(b"\\n").unwrap_or(rest);
    let ends = rest.iter().all(|byte| is_around(byte) || matches!(byte, b',' | b';' | b'+'));
    (ends && (least..LONG_RUN).contains(&count)).then_some(start..start + count)
}

/// Takes lines of digits as one run if they are long enough, of equal length except the last, and hold no words.
fn take_lines(text: &str, lines: &mut Vec<Range<usize>>, found: &mut Vec<(Range<usize>, Kind)>) {
    let taken = std::mem::take(lines);
    // A heading of the same alphabet may come before, and a shorter line after.
    let mut rest = taken.as_slice();
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|line| line.len() == first.len()).count();
        let bytes = text.as_bytes();
        let is_last = |line: &Range<usize>| line.len() < first.len() && !has_words(&bytes[line.clone()]);
        let (run, behind) = rest.split_at(same + usize::from(rest.get(same).is_some_and(is_last)));
        rest = behind;
        if run.len() < WRAPPED_LINES || first.len() < WRAPPED_LINE {
            continue;
        }
        let range = first.start..run.last().map_or(first.end, |last| last.end);
        let digits: Vec<u8> = run.iter().flat_map(|line| bytes[line.clone()].iter().copied()).collect();
        if digits.len() < WRAPPED_BYTES || !is_dense(&digits) {
            continue;
        }
        if has_words(&digits) || is_list(&digits, first.len()) {
            continue;
        }
        let is_hexadecimal = digits.iter().all(u8::is_ascii_hexdigit);
        found.push((range, if is_hexadecimal { Kind::Hexadecimal } else { Kind::Base64 }));
    }
}

/// Tells whether lines are a list of checksums and no picture: hexadecimal digits, one checksum per line.
fn is_list(digits: &[u8], width: usize) -> bool {
    matches!(width, 40 | 56 | 64 | 96 | 128) && digits.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests;

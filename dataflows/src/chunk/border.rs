//! The borders at which a text may be cut, with their ranks.
//!
//! In: a range of lines. Out: its borders in order, each ranked by a class and, among equals, by a hash of the text after it.
//!
//! **Invariant:** a border's rank follows from the 80 bytes after it and from the line before it: whether that is blank, a
//! comment, or ends a sentence. Nothing farther away counts. Borders inside a line exist only for lines that may be too long, and
//! rank below every border between lines, so a line of usual length is never cut.
//!
//! Classes replace parsing: blank lines and indentation mark ends in any language, and an item that syntax left too long is cut
//! by the same rule.

use super::cut::{Border, hash};
use crate::data::SplitMix;
use std::ops::Range;

/// The kind of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    /// Sentences and paragraphs.
    Prose,
    /// Code and data, in which indentation has a meaning.
    Lines,
}

/// A class of borders; better ones are larger.
type Class = u64;

const CHARACTER: Class = 0;
const WORD: Class = 1;
const CLAUSE: Class = 2;
const SENTENCE_INSIDE: Class = 3;
/// A line inside a code fence or a table, and one after a blank line in it.
const FENCED: Class = 4;
const FENCED_BLANK: Class = 5;
const LINE: Class = 6;
const SENTENCE: Class = 7;
const LIST_ITEM: Class = 8;
const PARAGRAPH: Class = 9;
/// A line that closes a bracket, or that follows a comment about it.
const BOUND: Class = 5;
/// The first class by indentation: the shallowest line after a blank one is 21.
const INDENTED: Class = 6;
/// A border where one of several short pieces starts.
const PIECE: Class = 22;

/// Indentation is distinguished up to this many columns.
const DEEPEST: usize = 14;

/// Inside a line, borders between characters are thinned to one in sixteen by their hash.
const THINNING: u64 = 16;

/// How many bytes after a border its hash covers: two or three lines.
const BEHIND: usize = 80;

/// How many of them are hashed together.
const SHINGLE: usize = 4;

/// How many bytes on either side of a border inside a line its hash covers.
const WINDOW: usize = 8;

/// Returns the borders inside `range`, which starts at the start of a line.
///
/// `solid` are ranges that should not be cut (fences, tables), `pieces` the starts of pieces; both in order.
pub(super) fn borders(
    text: &str,
    range: Range<usize>,
    style: Style,
    solid: &[Range<usize>],
    pieces: &[usize],
    whole: usize,
) -> Vec<Border> {
    let mut found = Vec::new();
    let (mut at, end) = (range.start, range.end);
    let mut before: Option<&str> = None;
    let (mut solid, mut pieces) = (solid.iter().peekable(), pieces.iter().peekable());
    for line in text[range].split_inclusive('\n') {
        let trimmed = line.trim();
        while solid.next_if(|solid| solid.end <= at).is_some() {}
        while pieces.next_if(|piece| **piece < at).is_some() {}
        if let Some(before) = before.filter(|_| !trimmed.is_empty()) {
            let inside_solid = solid.peek().is_some_and(|solid| solid.start < at);
            let class = match style {
                _ if pieces.peek().is_some_and(|piece| **piece == at) => PIECE,
                Style::Lines => class_of_line(before, line, trimmed),
                Style::Prose if inside_solid => {
                    if before.is_empty() {
                        FENCED_BLANK
                    } else {
                        FENCED
                    }
                }
                Style::Prose => class_of_prose(before, trimmed),
            };
            let behind = &text.as_bytes()[at..end.min(at + BEHIND)];
            found.push(border(at, class, steady_hash(behind.trim_ascii_start())));
        }
        if line.len() > whole / 2 {
            inside(line, at, &mut found);
        }
        at += line.len();
        before = Some(trimmed);
    }
    found
}

fn border(at: usize, class: Class, hash: u64) -> Border {
    Border { at, rank: class << 56 | hash >> 8 }
}

/// Returns a hash of the text after a border that most small edits leave unchanged: its four foremost shingles, in the order of
/// their own hashes.
///
/// It reads beyond the line, because each record of a table starts with the same line (`[[package]]`, `{`). With a plain hash
/// every changed line would get a new rank, and one in ten would become a cut or stop being one (min-wise hashing: Broder 1997,
/// "On the resemblance and containment of documents").
fn steady_hash(behind: &[u8]) -> u64 {
    let mut foremost = [0_u64; 4];
    for shingle in behind.windows(SHINGLE.min(behind.len().max(1))) {
        let word = shingle.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let mut hash = SplitMix::mix(word + 1) >> 50;
        for kept in &mut foremost {
            if hash > *kept {
                std::mem::swap(kept, &mut hash);
            }
        }
    }
    foremost.into_iter().fold(0, |all, hash| all << 14 | hash) << 8
}

fn class_of_prose(before: &str, line: &str) -> Class {
    if before.is_empty() {
        PARAGRAPH
    } else if is_list_item(line) {
        LIST_ITEM
    } else if before.ends_with(['.', '!', '?', ':', '。', '！', '？']) {
        SENTENCE
    } else {
        LINE
    }
}

fn is_list_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|character: char| character.is_ascii_digit());
    match rest.len() {
        length if length == line.len() => line.starts_with("- ") || line.starts_with("* ") || line.starts_with("+ "),
        _ => rest.starts_with(". ") || rest.starts_with(") "),
    }
}

fn class_of_line(before: &str, line: &str, trimmed: &str) -> Class {
    let closes = trimmed.starts_with(['}', ')', ']']) || trimmed.starts_with("</") || trimmed == "end";
    if closes || is_comment(before) {
        return BOUND;
    }
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4,
            _ => break,
        }
    }
    let shallow = (DEEPEST - columns.min(DEEPEST)) / 2;
    INDENTED + 2 * shallow as Class + Class::from(before.is_empty())
}

fn is_comment(line: &str) -> bool {
    let marks = ["//", "#", "/*", "* ", "*/", "--", "@"];
    marks.iter().any(|mark| line.starts_with(mark)) || line == "*"
}

/// Adds the borders inside one long line: after sentences, clauses and words, and at some characters if there are none.
fn inside(line: &str, start: usize, found: &mut Vec<Border>) {
    let bytes = line.as_bytes();
    let mut last = '\n';
    let mut space = false;
    for (at, character) in line.char_indices() {
        if character.is_whitespace() {
            space = true;
            continue;
        }
        if at > 0 {
            let class = match last {
                '。' | '！' | '？' => SENTENCE_INSIDE,
                '.' | '!' | '?' if space => SENTENCE_INSIDE,
                ',' | ';' | ':' | '}' | ']' | '、' | '，' | '；' => CLAUSE,
                _ if space => WORD,
                _ => CHARACTER,
            };
            let window = &bytes[at.saturating_sub(WINDOW)..bytes.len().min(at + WINDOW)];
            let border = border(start + at, class, hash(window));
            if class != CHARACTER || border.rank.is_multiple_of(THINNING) {
                found.push(border);
            }
        }
        last = character;
        space = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, style: Style) -> Vec<Class> {
        borders(text, 0..text.len(), style, &[], &[], 2_000).iter().map(|border| border.rank >> 56).collect()
    }

    #[test]
    fn paragraphs_beat_list_items_beat_sentences_beat_lines() {
        let text = "One\ntwo.\nThree\n- four\n12. five\n\nsix\n";
        assert_eq!(check(text, Style::Prose), [LINE, SENTENCE, LIST_ITEM, LIST_ITEM, PARAGRAPH]);
    }

    #[test]
    fn shallow_lines_behind_blank_ones_are_best_in_code() {
        let text = "a {\n\n    b\n    // c\n    d\n}\n\ne\n";
        let deep = INDENTED + 10;
        assert_eq!(check(text, Style::Lines), [deep + 1, deep, BOUND, BOUND, INDENTED + 15]);
    }

    #[test]
    fn only_long_lines_have_borders_inside() {
        let sentence = "A sentence that is long, and ends here. Another one ends there. ";
        assert_eq!(check(&sentence.repeat(10), Style::Prose), [0; 0]);
        let classes = check(&sentence.repeat(30), Style::Prose);
        assert_eq!(classes.iter().filter(|class| **class == SENTENCE_INSIDE).count(), 59);
        assert_eq!(classes.iter().max(), Some(&SENTENCE_INSIDE));
    }
}

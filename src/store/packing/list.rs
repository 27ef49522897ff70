//! Packs chunk lists: head, text and lines of each chunk, by number.
//!
//! In: lists whose heads and texts have numbers. Out: their bytes, and back.
//!
//! ```text
//! list    00 chunk …            01 UTF-8: why there are no chunks
//!         02 reason chunk …     cut without its syntax; the reason is a byte
//! chunk   0nnnnnnn              text and head are one more than before, one line is between, n lines behind the first
//!         1gggHHTT · lines behind the first · (text) · (head) · (gap)
//! TT      0 one more than before · 1 a step from there · 2 two more than where it left off · 3 a step from there
//! HH      0 as before · 1 one more · 2 a step from there · 3 two more than where it left off
//! ggg     first line less the last line before, up to 6; 7: a step from there
//! ```
//!
//! The number "left off" is the one before the last step 1 or 2: after an edited chunk, which got new numbers, those of its
//! neighbours continue.
//!
//! **Invariant:** unpacking gives the packed list, whatever its numbers; other bytes give nothing, or a list of at most as many
//! chunks as bytes.
//!
//! An edit of one chunk writes the list of its whole document again. Most unchanged chunks cost a byte each, because texts and
//! heads have numbers in the order of their first occurrence in a list.

use super::varint;
use dataflows::data::{Lines, NoSyntax};

const CHUNKS: u8 = 0;
const FAULT: u8 = 1;
const WITHOUT_SYNTAX: u8 = 2;

/// Marks an irregular chunk.
const OTHER: u8 = 0x80;
/// First line minus the previous last line, of a regular chunk.
const USUAL_GAP: u32 = 2;
const HEAD_SHIFT: u8 = 2;
const GAP_SHIFT: u8 = 4;
const FAR: u8 = 7;

/// The relation of a text to the earlier ones.
const TEXT_NEXT: u8 = 0;
const TEXT_STEP: u8 = 1;
const TEXT_BACK: u8 = 2;
const TEXT_STEP_BACK: u8 = 3;
/// The relation of a head to the earlier ones.
const HEAD_SAME: u8 = 0;
const HEAD_NEXT: u8 = 1;
const HEAD_STEP: u8 = 2;
const HEAD_BACK: u8 = 3;

/// A chunk in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) struct NumberedChunk {
    /// The number of its head.
    pub(in crate::store) head: u32,
    /// The number of its text.
    pub(in crate::store) text: u32,
    /// Its lines.
    pub(in crate::store) lines: Lines,
}

/// A chunk list in the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store) enum NumberedList {
    /// The chunks, in order, and the reason why they were cut without their syntax, if they were.
    Chunks(Vec<NumberedChunk>, Option<NoSyntax>),
    /// The reason why there are none.
    Fault(String),
}

/// The numbers that steps start from.
#[derive(Clone, Copy, Default)]
struct Trail {
    before: u32,
    left_off: u32,
}

impl Trail {
    const fn next(self) -> u32 {
        self.before.wrapping_add(1)
    }

    const fn back(self) -> u32 {
        self.left_off.wrapping_add(2)
    }

    /// Moves to a number; `away` if by a step from the previous one.
    fn go(&mut self, number: u32, away: bool) {
        if away {
            self.left_off = self.before;
        }
        self.before = number;
    }
}

/// Packs a chunk list.
pub(in crate::store) fn pack_list(list: &NumberedList) -> Vec<u8> {
    let (chunks, no_syntax) = match list {
        NumberedList::Chunks(chunks, no_syntax) => (chunks, no_syntax),
        NumberedList::Fault(error) => return [&[FAULT], error.as_bytes()].concat(),
    };
    let mut packed = Vec::with_capacity(2 + 2 * chunks.len());
    match no_syntax {
        Some(why) => packed.extend([WITHOUT_SYNTAX, why.code()]),
        None => packed.push(CHUNKS),
    }
    let (mut texts, mut heads, mut last_line) = (Trail::default(), Trail::default(), 0_u32);
    for &NumberedChunk { head, text, lines } in chunks {
        let text_code = match text {
            text if text == texts.next() => TEXT_NEXT,
            text if text == texts.back() => TEXT_BACK,
            text if text.abs_diff(texts.left_off) < text.abs_diff(texts.before) => TEXT_STEP_BACK,
            _ => TEXT_STEP,
        };
        let head_code = match head {
            head if head == heads.before => HEAD_SAME,
            head if head == heads.next() => HEAD_NEXT,
            head if head == heads.back() => HEAD_BACK,
            _ => HEAD_STEP,
        };
        let (gap, more) = (lines.first.wrapping_sub(last_line), lines.last.wrapping_sub(lines.first));
        match u8::try_from(more) {
            Ok(more) if more < OTHER && (text_code, head_code, gap) == (TEXT_NEXT, HEAD_NEXT, USUAL_GAP) => {
                packed.push(more);
            }
            _ => {
                let gap = u8::try_from(gap).unwrap_or(FAR).min(FAR);
                packed.push(OTHER | gap << GAP_SHIFT | head_code << HEAD_SHIFT | text_code);
                varint::write(&mut packed, u64::from(more));
                match text_code {
                    TEXT_STEP => varint::write_step(&mut packed, texts.before, text),
                    TEXT_STEP_BACK => varint::write_step(&mut packed, texts.left_off, text),
                    _ => {}
                }
                if head_code == HEAD_STEP {
                    varint::write_step(&mut packed, heads.before, head);
                }
                if gap == FAR {
                    varint::write_step(&mut packed, last_line, lines.first);
                }
            }
        }
        texts.go(text, text_code == TEXT_STEP);
        heads.go(head, head_code == HEAD_STEP);
        last_line = lines.last;
    }
    packed
}

/// Returns the chunk list of [`pack_list`].
pub(in crate::store) fn unpack_list(packed: &[u8]) -> Option<NumberedList> {
    let (mut rest, no_syntax) = match packed.split_first()? {
        (&CHUNKS, rest) => (rest, None),
        (&WITHOUT_SYNTAX, rest) => {
            let (&code, rest) = rest.split_first()?;
            (rest, Some(NoSyntax::from_code(code)?))
        }
        (&FAULT, error) => return Some(NumberedList::Fault(str::from_utf8(error).ok()?.to_owned())),
        _ => return None,
    };
    let mut chunks = Vec::with_capacity(rest.len());
    let (mut texts, mut heads, mut last_line) = (Trail::default(), Trail::default(), 0_u32);
    while let Some((&tag, behind)) = rest.split_first() {
        rest = behind;
        let (text_code, head_code, gap, more) = if tag < OTHER {
            (TEXT_NEXT, HEAD_NEXT, None, u32::from(tag))
        } else {
            let gap = (tag & !OTHER) >> GAP_SHIFT;
            (tag & 3, tag >> HEAD_SHIFT & 3, Some(gap), varint::read_u32(&mut rest)?)
        };
        let text = match text_code {
            TEXT_NEXT => texts.next(),
            TEXT_STEP => varint::read_step(&mut rest, texts.before)?,
            TEXT_BACK => texts.back(),
            _ => varint::read_step(&mut rest, texts.left_off)?,
        };
        let head = match head_code {
            HEAD_SAME => heads.before,
            HEAD_NEXT => heads.next(),
            HEAD_STEP => varint::read_step(&mut rest, heads.before)?,
            _ => heads.back(),
        };
        let first = match gap {
            None => last_line.wrapping_add(USUAL_GAP),
            Some(FAR) => varint::read_step(&mut rest, last_line)?,
            Some(gap) => last_line.wrapping_add(u32::from(gap)),
        };
        texts.go(text, text_code == TEXT_STEP);
        heads.go(head, head_code == HEAD_STEP);
        last_line = first.wrapping_add(more);
        chunks.push(NumberedChunk { head, text, lines: Lines { first, last: last_line } });
    }
    Some(NumberedList::Chunks(chunks, no_syntax))
}

/// Returns why the chunks of a packed list were cut without their syntax, where they were: reads no chunk.
pub(in crate::store) fn no_syntax_of(packed: &[u8]) -> Option<NoSyntax> {
    match packed {
        [WITHOUT_SYNTAX, code, ..] => NoSyntax::from_code(*code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Typical numbers: consecutive, near each other, and arbitrary.
    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![0u32..4, 1000u32..1040, any::<u32>(), Just(u32::MAX)]
    }

    fn chunk() -> impl Strategy<Value = NumberedChunk> {
        (number(), number(), number(), number()).prop_map(|(head, text, first, last)| NumberedChunk {
            head,
            text,
            lines: Lines { first, last },
        })
    }

    /// A list after edits: runs of neighbours with jumps between them.
    fn edited() -> impl Strategy<Value = Vec<NumberedChunk>> {
        let part = (number(), number(), 0u32..6, 0u32..140, prop::collection::vec((0u32..3, 0u32..3), 1..8));
        prop::collection::vec(part, 0..8).prop_map(|parts| {
            let mut line = 0_u32;
            let run = |(head, text, gap, more, steps): (u32, u32, u32, u32, Vec<(u32, u32)>)| {
                let (mut head, mut text) = (head, text);
                let chunk = |(head_step, text_step): (u32, u32)| {
                    head = head.wrapping_add(head_step);
                    text = text.wrapping_add(text_step);
                    let first = line.wrapping_add(gap);
                    line = first.wrapping_add(more);
                    NumberedChunk { head, text, lines: Lines { first, last: line } }
                };
                steps.into_iter().map(chunk).collect::<Vec<_>>()
            };
            parts.into_iter().flat_map(run).collect()
        })
    }

    proptest! {
        #![proptest_config(super::super::cases(512))]
        #[test]
        fn any_list_comes_back(
            chunks in prop::collection::vec(chunk(), 0..40),
            edited in edited(),
            fault in "\\PC{0,20}",
        ) {
            let no_syntax = Some(NoSyntax::Crash);
            for list in [NumberedList::Chunks(chunks, None), NumberedList::Chunks(edited, no_syntax), NumberedList::Fault(fault)] {
                let packed = pack_list(&list);
                let why = if let NumberedList::Chunks(_, why) = &list { *why } else { None };
                prop_assert_eq!(no_syntax_of(&packed), why);
                prop_assert_eq!(unpack_list(&packed), Some(list));
            }
        }

        #[test]
        fn any_bytes_are_a_list_no_longer_than_they_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let behind = [&[CHUNKS][..], &bytes].concat();
            for packed in [&bytes, &behind] {
                if let Some(NumberedList::Chunks(chunks, _)) = unpack_list(packed) {
                    prop_assert!(chunks.len() < packed.len());
                }
            }
        }

        #[test]
        fn a_list_that_is_cut_short_gives_no_chunk_that_it_did_not_hold(
            chunks in prop::collection::vec(chunk(), 1..12),
            cut in any::<prop::sample::Index>(),
        ) {
            let packed = pack_list(&NumberedList::Chunks(chunks.clone(), None));
            if let Some(NumberedList::Chunks(found, _)) = unpack_list(&packed[..cut.index(packed.len())]) {
                prop_assert!(chunks.starts_with(&found));
            }
        }
    }

    #[test]
    fn what_an_edit_left_alone_takes_a_byte_a_chunk() {
        let chunk = |at: u32| NumberedChunk {
            head: 70_000 + at,
            text: 90_000 + at,
            lines: Lines { first: 1 + 10 * at, last: 9 + 10 * at },
        };
        let mut chunks: Vec<_> = (0..1000).map(chunk).collect();
        let size = |chunks: &[NumberedChunk]| pack_list(&NumberedList::Chunks(chunks.to_vec(), None)).len();
        assert!(size(&chunks) <= 1000 + 12, "{} bytes", size(&chunks));
        let before = size(&chunks);
        chunks[400].text = 5_000_000;
        chunks[700].text = 5_000_001;
        chunks[700].head = 4_000_000;
        chunks[401..]
            .iter_mut()
            .for_each(|chunk| chunk.lines = Lines { first: chunk.lines.first + 3, last: chunk.lines.last + 3 });
        chunks[400].lines.last += 3;
        assert!(size(&chunks) <= before + 20, "{} bytes more", size(&chunks) - before);
    }
}

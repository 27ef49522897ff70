//! A cleaned text as what it is made of: the texts of its chunks by number, and what lies between them.
//!
//! In: a text, and where its chunks stand in it. Out: bytes, and from them the numbers and what lies between.
//!
//! **Invariant:** taken apart and put together again a text is what it was, byte for byte. Texts that a composition names are
//! never compositions themselves.
//!
//! ```text
//! composition  03 tail parts:LEB128 part … (literals, packed as a text)
//! part         (texts - 1) × 8 + 4 × (1: a step of the first number follows) + gap · (step) · (length of a literal gap)
//!              each text's number is one more than that of the text before, the first's with a step from there, zigzag;
//!              in front of each stands the gap
//! gap          0 nothing · 1 a line end · 2 two of them · 3 so many bytes of the literals
//! tail         what stands behind the last text: 0 to 2 as in gap, else the length of a literal plus 3
//! ```

use super::varint;
use std::ops::Range;

/// Stands in front of a composition, where a text packed by itself has 0, 1 or 2.
const COMPOSITION: u8 = 3;
const STEP: u64 = 4;
const LITERAL: u64 = 3;
/// Texts in one composition at the most, so that damaged bytes stand for no more.
const MOST_TEXTS: usize = 1 << 20;

/// Where the text of a chunk stands in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store) struct Place<T> {
    pub(in crate::store) range: Range<usize>,
    pub(in crate::store) text: T,
}

/// A piece of a composed text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) enum Piece {
    /// The text with this number.
    Text(u32),
    /// So many line ends.
    Lines(usize),
    /// So many bytes of the literals.
    Literal(usize),
}

/// Returns where chunks stand in a text, each told with the line on which it begins; those that are no slice of it, since
/// something was left out of them, are passed over.
pub(in crate::store) fn places<'c, T>(text: &str, chunks: impl Iterator<Item = (T, &'c str, u32)>) -> Vec<Place<T>> {
    let mut places = Vec::new();
    // Behind the last chunk that was found; and a place up to which lines are counted.
    let (mut behind, mut counted, mut line) = (0, 0, 1_u32);
    for (name, chunk, first) in chunks {
        let indent = chunk.len() - chunk.trim_start().len();
        let ink = text.len() - text[behind..].trim_start().len();
        let mut start = ink.checked_sub(indent).filter(|start| *start >= behind);
        if !start.is_some_and(|start| is_at(text, start, chunk)) {
            while line < first
                && let Some(end) = text.as_bytes()[counted..].iter().position(|byte| *byte == b'\n')
            {
                counted += end + 1;
                line += 1;
            }
            start = (line == first && counted >= behind).then_some(counted);
        }
        if let Some(start) = start.filter(|start| is_at(text, *start, chunk)) {
            behind = start + chunk.len();
            places.push(Place { range: start..behind, text: name });
        }
    }
    places
}

fn is_at(text: &str, start: usize, chunk: &str) -> bool {
    !chunk.is_empty() && text.as_bytes()[start..].starts_with(chunk.as_bytes())
}

/// Returns whether a text in which these stand is to be composed of them: they make up the better part of it.
pub(in crate::store) fn is_worth_it<T>(text: &str, places: &[Place<T>]) -> bool {
    let covered: usize = places.iter().map(|place| place.range.len()).sum();
    covered >= text.len().div_ceil(2).max(1) && places.len() <= MOST_TEXTS
}

/// Composes a text of the texts that stand in it, by their numbers; `pack` packs the literals.
pub(in crate::store) fn compose(text: &str, places: &[Place<u32>], pack: impl FnOnce(&str) -> Vec<u8>) -> Vec<u8> {
    let mut literals = String::new();
    let mut gap = |range: Range<usize>| {
        let gap = &text[range];
        match gap {
            "" => Piece::Lines(0),
            "\n" => Piece::Lines(1),
            "\n\n" => Piece::Lines(2),
            literal => {
                literals.push_str(literal);
                Piece::Literal(literal.len())
            }
        }
    };
    let (mut parts, mut count) = (Vec::new(), 0);
    let (mut behind, mut before) = (0, 0_u32);
    let mut rest = places;
    while let Some(Place { range, text: number }) = rest.first() {
        let front = gap(behind..range.start);
        let is_next = |before: u32, number: u32| before.checked_add(1) == Some(number);
        let mut texts = 1;
        // Texts that follow each other in number, with the same in front of each.
        if let Piece::Lines(lines) = front {
            let same = |pair: &[Place<u32>]| {
                let between = &text[pair[0].range.end..pair[1].range.start];
                is_next(pair[0].text, pair[1].text)
                    && between.len() == lines
                    && between.bytes().all(|byte| byte == b'\n')
            };
            texts += rest.windows(2).take_while(|pair| same(pair)).count();
        }
        let (kind, length) = match front {
            Piece::Lines(lines) => (lines as u64, None),
            Piece::Literal(length) => (LITERAL, Some(length)),
            Piece::Text(_) => unreachable!("a gap is no text"),
        };
        let steps = if is_next(before, *number) { 0 } else { STEP };
        varint::write(&mut parts, (texts as u64 - 1) << 3 | steps | kind);
        if steps > 0 {
            varint::write_step(&mut parts, before, *number);
        }
        if let Some(length) = length {
            varint::write(&mut parts, length as u64);
        }
        count += 1;
        let last = &rest[texts - 1];
        (behind, before) = (last.range.end, last.text);
        rest = &rest[texts..];
    }
    let tail = match gap(behind..text.len()) {
        Piece::Lines(lines) => lines as u64,
        Piece::Literal(length) => length as u64 + LITERAL,
        Piece::Text(_) => unreachable!("a gap is no text"),
    };
    let mut composition = vec![COMPOSITION];
    varint::write(&mut composition, tail);
    varint::write(&mut composition, count);
    composition.extend(parts);
    if !literals.is_empty() {
        composition.extend(pack(&literals));
    }
    composition
}

/// Returns whether bytes are a composition, and no text packed by itself.
pub(in crate::store) fn is_composition(packed: &[u8]) -> bool {
    packed.first() == Some(&COMPOSITION)
}

/// Calls `look` with each piece of a composition in order, until it returns nothing; returns the packed literals, none where
/// there are none, or nothing where the bytes are no composition or `look` stopped.
pub(in crate::store) fn for_each_piece(packed: &[u8], mut look: impl FnMut(Piece) -> Option<()>) -> Option<&[u8]> {
    let mut rest = packed.strip_prefix(&[COMPOSITION])?;
    let (tail, count) = (varint::read(&mut rest)?, varint::read(&mut rest)?);
    let (mut before, mut left) = (0_u32, MOST_TEXTS);
    for _ in 0..count {
        let part = varint::read(&mut rest)?;
        let (texts, steps, kind) = (part >> 3, part & STEP, part & 3);
        left = usize::try_from(texts).ok().and_then(|texts| left.checked_sub(texts)?.checked_sub(1))?;
        let first = if steps > 0 { varint::read_step(&mut rest, before)? } else { before.checked_add(1)? };
        let gap = if kind == LITERAL { literal(varint::read(&mut rest)?)? } else { Piece::Lines(kind as usize) };
        before = first.checked_add(u32::try_from(texts).ok()?)?;
        for number in first..=before {
            look(gap)?;
            look(Piece::Text(number))?;
        }
    }
    look(match tail.checked_sub(LITERAL) {
        None => Piece::Lines(tail as usize),
        Some(length) => literal(length)?,
    })?;
    Some(rest)
}

fn literal(length: u64) -> Option<Piece> {
    usize::try_from(length).ok().map(Piece::Literal)
}

/// Returns the numbers of the texts that a composition names; none of a text that is packed by itself.
pub(in crate::store) fn names_in(packed: &[u8]) -> Option<Vec<u32>> {
    let mut names = Vec::new();
    if is_composition(packed) {
        for_each_piece(packed, |piece| {
            if let Piece::Text(number) = piece {
                names.push(number);
            }
            Some(())
        })?;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::super::{cases, pack_text, unpack_text};
    use super::*;
    use proptest::prelude::*;

    /// Puts a composition together, with the texts of numbers as `texts` has them.
    fn put_together(packed: &[u8], texts: &[(u32, String)]) -> Option<String> {
        let mut pieces = Vec::new();
        let literals = for_each_piece(packed, |piece| {
            pieces.push(piece);
            Some(())
        })?;
        let literals = if literals.is_empty() { String::new() } else { unpack_text(literals, |_| None)? };
        let (mut rest, mut text) = (literals.as_str(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(number) => text.push_str(&texts.iter().find(|(known, _)| *known == number)?.1),
                Piece::Lines(lines) => text.push_str(&"\n".repeat(lines)),
                Piece::Literal(length) => {
                    let (literal, behind) = rest.split_at_checked(length)?;
                    text.push_str(literal);
                    rest = behind;
                }
            }
        }
        Some(text)
    }

    /// A chunk as cutting leaves it: no blank line at its ends, no white space behind it; spaces in front of its first word.
    fn chunk() -> impl Strategy<Value = String> {
        "[ \t]{0,3}[a-z世}]{1,6}([ \n\r]{0,3}[a-z#é]{1,5}){0,4}"
    }

    fn between() -> impl Strategy<Value = String> {
        prop_oneof![4 => Just("\n\n".to_owned()), 2 => Just("\n".to_owned()), 1 => "[ \n\r\t]{0,4}", 1 => "\n[a-z \n]{0,30}\n"]
    }

    proptest! {
        #![proptest_config(cases(256))]
        #[test]
        fn any_text_is_what_it_was_wherever_its_chunks_stand(
            parts in prop::collection::vec((between(), chunk(), any::<bool>()), 0..12),
            tail in between(),
            first in prop_oneof![0u32..5, any::<u32>()],
            steps in prop::collection::vec(prop_oneof![5 => Just(1u32), 1 => any::<u32>()], 12),
        ) {
            let (mut text, mut chunks, mut number) = (String::new(), Vec::new(), first);
            for ((gap, chunk, is_known), step) in parts.iter().zip(steps) {
                text.push_str(gap);
                let line = 1 + text.matches('\n').count() as u32;
                text.push_str(chunk);
                // One that is not told is a literal; one that is no slice is passed over.
                if *is_known {
                    chunks.push((number, chunk.clone(), line));
                    chunks.push((number, "never there".to_owned(), line));
                }
                number = number.wrapping_add(step);
            }
            text.push_str(&tail);
            let places = places(&text, chunks.iter().map(|(number, chunk, line)| (*number, chunk.as_str(), *line)));
            for place in &places {
                let known = chunks.iter().any(|(number, chunk, _)| place.text == *number && text[place.range.clone()] == *chunk);
                prop_assert!(known, "{place:?}");
            }
            prop_assert!(places.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
            let packed = compose(&text, &places, |literals| pack_text(literals, None));
            let texts: Vec<_> = places.iter().map(|place| (place.text, text[place.range.clone()].to_owned())).collect();
            // Where chance gives one number to two texts, it cannot be told which is meant.
            prop_assume!(texts.iter().all(|(number, text)| texts.iter().all(|(other, known)| number != other || text == known)));
            prop_assert_eq!(put_together(&packed, &texts), Some(text));
            let named: Vec<u32> = places.iter().map(|place| place.text).collect();
            prop_assert_eq!(names_in(&packed), Some(named));
        }

        #[test]
        fn any_bytes_are_a_composition_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..40), is_marked: bool) {
            if is_marked && let Some(first) = bytes.first_mut() {
                *first = COMPOSITION;
            }
            let _ = names_in(&bytes);
        }
    }

    #[test]
    fn every_chunk_of_an_ordinary_text_is_found_and_an_edit_costs_a_few_bytes() {
        let chunks: Vec<String> = (0..100).map(|n| format!("    fn item_{n}() {{\n\n    }}")).collect();
        let text = format!("//! Head.\n\n{}\n", chunks.join("\n\n"));
        let lines = |n: usize| 3 + 4 * n as u32;
        let told = |numbers: &dyn Fn(usize) -> u32| {
            let told = chunks.iter().enumerate().map(|(n, chunk)| (numbers(n), chunk.as_str(), lines(n)));
            let places = places(&text, told);
            assert_eq!(places.len(), 100);
            compose(&text, &places, |literals| pack_text(literals, None)).len()
        };
        assert!(told(&|n| 70_000 + n as u32) < 30);
        assert!(told(&|n| if n == 50 { 90_000 } else { 70_000 + n as u32 }) < 45);
        assert!(!is_worth_it("a long text", &[Place { range: 0..2, text: 1 }]));
        assert!(!is_worth_it::<u32>("", &[]));
    }
}

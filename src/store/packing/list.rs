//! Chunk lists: what each chunk is called, what it says and where it stands, by number.
//!
//! In: lists whose heads and texts have numbers. Out: their bytes, and back.
//!
//! ```text
//! list    00 chunk …            01 UTF-8: why there are no chunks
//! chunk   tag · lines behind the first · (text) · (head) · (gap)
//! tag     bit 0      the text is one more than that of the chunk before; else a signed step follows
//!         bits 1-2   0 the head of the chunk before · 1 one more · 2 a signed step follows
//!         bits 3-7   first line less the last line of the chunk before, up to 30; 31: a signed step follows
//! ```
//!
//! **Invariant:** unpacking gives what was packed, whatever its numbers; of other bytes it gives nothing, or a list of
//! at most half as many chunks as there are bytes.
//!
//! An edit of one chunk writes the list of its whole document again: the chunks it left alone cost two bytes each, since
//! texts and heads got their numbers in the order in which a list first named them.

use super::varint;
use dataflows::data::Lines;

const CHUNKS: u8 = 0;
const FAULT: u8 = 1;

const NEXT_TEXT: u8 = 1;
const HEAD_SHIFT: u8 = 1;
const SAME_HEAD: u8 = 0;
const NEXT_HEAD: u8 = 1;
const OTHER_HEAD: u8 = 2;
const GAP_SHIFT: u8 = 3;
const FAR: u8 = 31;

/// A chunk in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) struct NumberedChunk {
    /// The number of what it is called.
    pub(in crate::store) head: u32,
    /// The number of its text.
    pub(in crate::store) text: u32,
    /// Where it stands.
    pub(in crate::store) lines: Lines,
}

/// What stands in front of the first chunk.
const BEFORE: NumberedChunk = NumberedChunk { head: 0, text: 0, lines: Lines { first: 0, last: 0 } };

/// A chunk list in the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store) enum NumberedList {
    /// The chunks, in the order in which they stand.
    Chunks(Vec<NumberedChunk>),
    /// Why there are none.
    Fault(String),
}

/// Packs a chunk list.
pub(in crate::store) fn pack_list(list: &NumberedList) -> Vec<u8> {
    let chunks = match list {
        NumberedList::Chunks(chunks) => chunks,
        NumberedList::Fault(error) => return [&[FAULT], error.as_bytes()].concat(),
    };
    let mut packed = Vec::with_capacity(1 + 3 * chunks.len());
    packed.push(CHUNKS);
    let mut before = BEFORE;
    for chunk in chunks {
        let is_next_text = chunk.text == before.text.wrapping_add(1);
        let head = if chunk.head == before.head {
            SAME_HEAD
        } else if chunk.head == before.head.wrapping_add(1) {
            NEXT_HEAD
        } else {
            OTHER_HEAD
        };
        let gap = chunk.lines.first.wrapping_sub(before.lines.last);
        let gap = u8::try_from(gap).unwrap_or(FAR).min(FAR);
        packed.push(u8::from(is_next_text) | head << HEAD_SHIFT | gap << GAP_SHIFT);
        varint::write(&mut packed, u64::from(chunk.lines.last.wrapping_sub(chunk.lines.first)));
        if !is_next_text {
            varint::write_step(&mut packed, before.text, chunk.text);
        }
        if head == OTHER_HEAD {
            varint::write_step(&mut packed, before.head, chunk.head);
        }
        if gap == FAR {
            varint::write_step(&mut packed, before.lines.last, chunk.lines.first);
        }
        before = *chunk;
    }
    packed
}

/// Returns the chunk list that [`pack_list`] packed.
pub(in crate::store) fn unpack_list(packed: &[u8]) -> Option<NumberedList> {
    let mut rest = match packed.split_first()? {
        (&CHUNKS, rest) => rest,
        (&FAULT, error) => return Some(NumberedList::Fault(str::from_utf8(error).ok()?.to_owned())),
        _ => return None,
    };
    let mut chunks = Vec::with_capacity(rest.len() / 2);
    let mut before = BEFORE;
    while let Some((&tag, behind)) = rest.split_first() {
        rest = behind;
        let more = varint::read_u32(&mut rest)?;
        let text = match tag & NEXT_TEXT {
            0 => varint::read_step(&mut rest, before.text)?,
            _ => before.text.wrapping_add(1),
        };
        let head = match tag >> HEAD_SHIFT & 3 {
            SAME_HEAD => before.head,
            NEXT_HEAD => before.head.wrapping_add(1),
            OTHER_HEAD => varint::read_step(&mut rest, before.head)?,
            _ => return None,
        };
        let first = match tag >> GAP_SHIFT {
            FAR => varint::read_step(&mut rest, before.lines.last)?,
            gap => before.lines.last.wrapping_add(u32::from(gap)),
        };
        before = NumberedChunk { head, text, lines: Lines { first, last: first.wrapping_add(more) } };
        chunks.push(before);
    }
    Some(NumberedList::Chunks(chunks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers as they come: in a row, near each other, and anything else.
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

    proptest! {
        #![proptest_config(super::super::cases(512))]
        #[test]
        fn any_list_comes_back(chunks in prop::collection::vec(chunk(), 0..40), fault in "\\PC{0,20}") {
            for list in [NumberedList::Chunks(chunks), NumberedList::Fault(fault)] {
                prop_assert_eq!(unpack_list(&pack_list(&list)), Some(list));
            }
        }

        #[test]
        fn any_bytes_are_a_list_no_longer_than_they_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let behind = [&[CHUNKS][..], &bytes].concat();
            for packed in [&bytes, &behind] {
                if let Some(NumberedList::Chunks(chunks)) = unpack_list(packed) {
                    prop_assert!(chunks.len() <= packed.len() / 2);
                }
            }
        }

        #[test]
        fn a_list_that_is_cut_short_gives_no_chunk_that_it_did_not_hold(
            chunks in prop::collection::vec(chunk(), 1..12),
            cut in any::<prop::sample::Index>(),
        ) {
            let packed = pack_list(&NumberedList::Chunks(chunks.clone()));
            if let Some(NumberedList::Chunks(found)) = unpack_list(&packed[..cut.index(packed.len())]) {
                prop_assert!(chunks.starts_with(&found));
            }
        }
    }

    #[test]
    fn chunks_that_follow_each_other_take_two_bytes() {
        let chunk = |at: u32| NumberedChunk {
            head: 70_000 + at,
            text: 90_000 + at,
            lines: Lines { first: 1 + 10 * at, last: 9 + 10 * at },
        };
        let packed = pack_list(&NumberedList::Chunks((0..1000).map(chunk).collect()));
        assert!(packed.len() <= 2 * 1000 + 10, "{} bytes", packed.len());
    }
}

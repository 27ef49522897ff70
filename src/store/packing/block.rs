//! Packs path, head and place of neighbouring entries, by number: the input of filters, in one to three bytes an entry.
//!
//! In: a slot for each ordinal of a block, some of them empty. Out: their bytes, and back.
//!
//! **Invariant:** unpacking gives the packed slots, or nothing; equal slots have equal bytes.
//!
//! ```text
//! slot    head step × 4 + kind      LEB128; steps zigzag from the slot before, which is 0, 0, 0 at the start
//! kind    0 path and place as before · 1 path one more, place as before · 2 steps of path and place follow
//! 3       so many empty slots × 4 + 3, less one; there are none behind the last entry
//! ```

use super::varint;

/// The numbers of path, head and place of an entry.
pub(in crate::store) type Numbers = [u32; 3];

/// Ordinals per block: hardly any block takes more than a page.
pub(in crate::store) const BLOCK: usize = 1024;

const SAME: u64 = 0;
const NEXT: u64 = 1;
const STEPS: u64 = 2;
const EMPTY: u64 = 3;

/// Packs the slots of a block.
pub(in crate::store) fn pack_block(slots: &[Option<Numbers>]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(2 * slots.len());
    let mut before = [0; 3];
    let mut empty = 0_u64;
    for slot in slots {
        let Some(numbers) = *slot else {
            empty += 1;
            continue;
        };
        if empty > 0 {
            varint::write(&mut packed, (empty - 1) << 2 | EMPTY);
            empty = 0;
        }
        let [path, head, place] = numbers;
        let kind = match (path.wrapping_sub(before[0]), place == before[2]) {
            (0, true) => SAME,
            (1, true) => NEXT,
            _ => STEPS,
        };
        varint::write(&mut packed, u64::from(varint::step(before[1], head)) << 2 | kind);
        if kind == STEPS {
            varint::write_step(&mut packed, before[0], path);
            varint::write_step(&mut packed, before[2], place);
        }
        before = numbers;
    }
    packed
}

/// Returns the slots of [`pack_block`], up to the last one that is not empty.
pub(in crate::store) fn unpack_block(mut packed: &[u8]) -> Option<Vec<Option<Numbers>>> {
    let mut slots = Vec::with_capacity(BLOCK);
    let mut before = [0; 3];
    while !packed.is_empty() {
        let code = varint::read(&mut packed)?;
        let (kind, rest) = (code & 3, code >> 2);
        if kind == EMPTY {
            let empty = usize::try_from(rest).ok().filter(|empty| *empty < BLOCK - slots.len())? + 1;
            slots.resize(slots.len() + empty, None);
            continue;
        }
        let [path, head, place] = before;
        let head = varint::from_step(head, u32::try_from(rest).ok()?);
        let (path, place) = match kind {
            SAME => (path, place),
            NEXT => (path.wrapping_add(1), place),
            _ => (varint::read_step(&mut packed, path)?, varint::read_step(&mut packed, place)?),
        };
        if slots.len() == BLOCK {
            return None;
        }
        before = [path, head, place];
        slots.push(Some(before));
    }
    Some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(super::super::cases(256))]
        #[test]
        fn any_block_comes_back_and_no_bytes_make_a_longer_one(
            slots in prop::collection::vec(
                prop::option::weighted(0.8, prop::array::uniform3(prop_oneof![0u32..4, any::<u32>(), Just(u32::MAX)])),
                0..40,
            ),
            odd in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let packed = pack_block(&slots);
            let mut expected = slots.clone();
            while expected.last() == Some(&None) {
                expected.pop();
            }
            prop_assert_eq!(unpack_block(&packed), Some(expected));
            for bytes in [odd.clone(), [packed, odd].concat()] {
                prop_assert!(unpack_block(&bytes).is_none_or(|slots| slots.len() <= BLOCK));
            }
        }
    }

    #[test]
    fn an_entry_behind_another_takes_a_byte() {
        let slots: Vec<_> = (0..BLOCK as u32).map(|at| Some([7 + at / 16, 1000 + at, 3])).collect();
        let packed = pack_block(&slots);
        assert_eq!(unpack_block(&packed), Some(slots));
        assert!(packed.len() < BLOCK + 8, "{} bytes", packed.len());
        assert_eq!(unpack_block(&[0, 0].repeat(BLOCK)), None, "more than a block has");
    }
}

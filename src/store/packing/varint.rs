//! Variable-length numbers: LEB128, signed ones zigzag.
//!
//! **Invariant:** reading accepts the output of writing, and of other bytes at most ten; it never reads past their end.

/// The bytes of the largest number.
const MOST: u32 = 10;

/// Writes a number, seven bits a byte, the lowest first.
pub(super) fn write(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Returns the difference of `value` and `before`, so that neighbours are small in either direction.
pub(super) const fn step(before: u32, value: u32) -> u32 {
    let step = value.wrapping_sub(before).cast_signed();
    ((step << 1) ^ (step >> 31)).cast_unsigned()
}

/// Returns the value with this difference from `before`.
pub(super) const fn from_step(before: u32, step: u32) -> u32 {
    before.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg())
}

/// Writes the difference of `value` and `before`.
pub(super) fn write_step(to: &mut Vec<u8>, before: u32, value: u32) {
    write(to, u64::from(step(before, value)));
}

/// Reads a number off the front.
pub(super) fn read(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for at in 0..MOST {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        if at == MOST - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a number of at most 32 bits.
pub(super) fn read_u32(from: &mut &[u8]) -> Option<u32> {
    u32::try_from(read(from)?).ok()
}

/// Reads the output of [`write_step`].
pub(super) fn read_step(from: &mut &[u8], before: u32) -> Option<u32> {
    Some(from_step(before, read_u32(from)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(super::super::cases(256))]
        #[test]
        fn what_is_written_is_read(values in prop::collection::vec(any::<u64>().prop_flat_map(|v| (0u32..64).prop_map(move |s| v >> s)), 0..20), before in any::<u32>(), value in any::<u32>()) {
            let mut bytes = Vec::new();
            values.iter().for_each(|value| write(&mut bytes, *value));
            write_step(&mut bytes, before, value);
            let mut rest = &bytes[..];
            for value in values {
                prop_assert_eq!(read(&mut rest), Some(value));
            }
            prop_assert_eq!(read_step(&mut rest, before), Some(value));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for bytes in
            [&[][..], &[0x80], &[0xff; 10], &[0xff; 40], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2]]
        {
            assert_eq!(read(&mut &*bytes), None, "{bytes:?}");
        }
        assert_eq!(read_u32(&mut &[0x80, 0x80, 0x80, 0x80, 0x10][..]), None, "it has 33 bits");
    }
}

//! Packs numbers and sets of ordinals into bytes.
//!
//! In: values. Out: bytes, and back. **Invariant:** reading never looks outside its slice, never allocates by a length from the
//! input, and returns an error for bytes that writing cannot produce.
//!
//! The encoding is hand-written and not derived, because every commit pays its bytes for ever. Numbers are LEB128 (DWARF 5,
//! section 7.6), signed ones in zigzag form. A set is its size and then its runs. Each run is `gap * 2 + (longer than one)` after
//! the previous run, followed by `length - 2` if it is longer than one: most retracted ordinals are isolated, most inserted ones
//! are consecutive.

use roaring::RoaringBitmap;
use std::ops::RangeInclusive;

/// Reason why bytes cannot be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CodecError {
    #[error("the record ends inside a value")]
    Short,
    #[error("a number does not fit its place")]
    Number,
    #[error("a record of unknown kind or with unknown flags")]
    Kind,
    #[error("a reference to a version that is not there")]
    Reference,
    #[error("more entries or documents die than were alive")]
    Underflow,
}

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63) as u64);
}

/// Appends a set of ordinals.
pub(crate) fn put_set(out: &mut Vec<u8>, set: &RoaringBitmap) {
    put(out, set.len());
    // The smallest possible start of the next run: an adjacent run would be part of the previous one.
    let mut earliest = 0u64;
    let mut runs = set.iter();
    while let Some(run) = runs.next_range() {
        let (start, end) = (u64::from(*run.start()), u64::from(*run.end()));
        let longer = end - start;
        put(out, (start - earliest) << 1 | u64::from(longer > 0));
        if longer > 0 {
            put(out, longer - 1);
        }
        earliest = end + 2;
    }
}

/// Reads values from the front of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the unread bytes.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads one byte.
    pub(crate) fn byte(&mut self) -> Result<u8, CodecError> {
        let (&byte, rest) = self.rest.split_first().ok_or(CodecError::Short)?;
        self.rest = rest;
        Ok(byte)
    }

    /// Reads `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(CodecError::Short)?;
        self.rest = rest;
        Ok(*array)
    }

    /// Reads a number.
    pub(crate) fn number(&mut self) -> Result<u64, CodecError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return Err(CodecError::Number);
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(CodecError::Number)
    }

    /// Reads a number of 32 bits.
    pub(crate) fn number32(&mut self) -> Result<u32, CodecError> {
        u32::try_from(self.number()?).map_err(|_| CodecError::Number)
    }

    /// Reads a number that may be negative.
    pub(crate) fn signed(&mut self) -> Result<i64, CodecError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a set of ordinals run by run, in ascending order; returns its size.
    pub(crate) fn set(&mut self, mut each: impl FnMut(RangeInclusive<u32>)) -> Result<u64, CodecError> {
        let size = self.number()?;
        let (mut left, mut earliest) = (size, 0u64);
        while left > 0 {
            let first = self.number()?;
            let longer = if first & 1 == 0 { 0 } else { self.number()?.checked_add(1).ok_or(CodecError::Number)? };
            let start = earliest.checked_add(first >> 1).ok_or(CodecError::Number)?;
            let end = start.checked_add(longer).ok_or(CodecError::Number)?;
            let last = u32::try_from(end).map_err(|_| CodecError::Number)?;
            left = left.checked_sub(longer + 1).ok_or(CodecError::Number)?;
            // `start` is no larger than `end`, which fits.
            each(start as u32..=last);
            earliest = end + 2;
        }
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unpack(bytes: &[u8]) -> Result<(RoaringBitmap, usize), CodecError> {
        let (mut reader, mut set) = (Reader::new(bytes), RoaringBitmap::new());
        let size = reader.set(|run| {
            set.insert_range(run);
        })?;
        assert_eq!(size, set.len());
        Ok((set, reader.rest().len()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn numbers_and_sets_read_back(
            numbers in proptest::collection::vec(any::<i64>(), 1..8),
            members in proptest::collection::vec(prop_oneof![0..200u32, any::<u32>()], 0..100),
        ) {
            let mut bytes = Vec::new();
            for &number in &numbers {
                put(&mut bytes, number as u64);
                put_signed(&mut bytes, number);
            }
            let mut reader = Reader::new(&bytes);
            for &number in &numbers {
                prop_assert_eq!(reader.number(), Ok(number as u64));
                prop_assert_eq!(reader.signed(), Ok(number));
            }
            prop_assert!(reader.rest().is_empty());

            let set: RoaringBitmap = members.into_iter().collect();
            let mut bytes = Vec::new();
            put_set(&mut bytes, &set);
            for end in 0..bytes.len() {
                prop_assert_eq!(unpack(&bytes[..end]), Err(CodecError::Short));
            }
            bytes.push(9);
            prop_assert_eq!(unpack(&bytes), Ok((set, 1)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = unpack(&bytes);
        }
    }

    #[test]
    fn the_ends_of_the_range_fit_and_nothing_beyond() {
        let ends: RoaringBitmap = [0, 1, u32::MAX - 1, u32::MAX].into_iter().collect();
        let mut bytes = Vec::new();
        put_set(&mut bytes, &ends);
        assert_eq!(unpack(&bytes), Ok((ends, 0)));
        let mut beyond = Vec::new();
        put(&mut beyond, 1);
        put(&mut beyond, (u64::from(u32::MAX) + 1) << 1);
        assert_eq!(unpack(&beyond), Err(CodecError::Number));
    }
}

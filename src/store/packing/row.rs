//! Packs the catalogue's rows: entries and documents, with shared values by number.
//!
//! In: rows whose path, head, place and text have numbers. Out: their bytes, and back.
//!
//! **Invariant:** unpacking gives the packed row, or nothing; equal rows have equal bytes.
//!
//! The row of an entry says by its length how many fields it has tokens of: their numbers stand between the first four and
//! the last.

use super::varint;
use crate::store::{CodecError, decode, encode};
use dataflows::data::{Charset, ContentId, SkipReason, StageName};
use serde::{Deserialize, Serialize};
use snapshots::{MOST_FIELDS, Tokens};

/// The row of an entry's ordinal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) struct PackedEntry {
    /// The number of its path.
    pub(in crate::store) path: u32,
    /// The number of its head.
    pub(in crate::store) head: u32,
    /// The number of its place.
    pub(in crate::store) place: u32,
    /// The number of its text.
    pub(in crate::store) text: u32,
    /// The number of earlier chunks with the same card and text in the document.
    pub(in crate::store) occurrence: u32,
    /// Tokens by field.
    pub(in crate::store) tokens: Tokens<u32>,
}

/// Packs the row of an entry: some fifteen bytes.
pub(in crate::store) fn pack_entry(entry: &PackedEntry) -> Vec<u8> {
    let PackedEntry { path, head, place, text, occurrence, tokens } = *entry;
    let mut packed = Vec::with_capacity(20);
    for number in [path, head, place, text].iter().chain(tokens.as_list()) {
        varint::write(&mut packed, u64::from(*number));
    }
    // The lowest bit said in format 3 whether there was a vector, and says nothing now.
    varint::write(&mut packed, u64::from(occurrence) << 1);
    packed
}

/// Returns the row of [`pack_entry`].
pub(in crate::store) fn unpack_entry(mut packed: &[u8]) -> Option<PackedEntry> {
    let mut next = || varint::read_u32(&mut packed);
    let (path, head, place, text) = (next()?, next()?, next()?, next()?);
    let (mut behind, mut count) = ([0; MOST_FIELDS + 1], 0);
    while !packed.is_empty() {
        *behind.get_mut(count)? = varint::read(&mut packed)?;
        count += 1;
    }
    let (last, counts) = behind[..count].split_last()?;
    let mut tokens = [0; MOST_FIELDS];
    for (tokens, count) in tokens.iter_mut().zip(counts) {
        *tokens = u32::try_from(*count).ok()?;
    }
    let tokens = Tokens::from(tokens);
    // What was written: no field too many, and none too few.
    let is_whole = tokens.as_list().len() == counts.len();
    let occurrence = u32::try_from(last >> 1).ok()?;
    is_whole.then_some(PackedEntry { path, head, place, text, occurrence, tokens })
}

/// Returns whether a row of format 3 says that the entry has a vector.
pub(in crate::store) fn had_vector(mut packed: &[u8]) -> bool {
    let numbers = std::iter::from_fn(|| varint::read(&mut packed));
    numbers.last().is_some_and(|last| last & 1 == 1)
}

/// The row of a document's ordinal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in crate::store) struct PackedDocument {
    /// The number of its path.
    pub(in crate::store) path: u32,
    /// The object at that path.
    pub(in crate::store) content: ContentId,
    /// Its outcome.
    pub(in crate::store) outcome: PackedOutcome,
}

/// The outcome of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in crate::store) enum PackedOutcome {
    /// It was cut into a list of chunks, at a place with this number.
    Indexed {
        /// The identity of the list.
        chunking: [u8; 16],
        /// The number of module and labels.
        place: u32,
    },
    /// It is no document.
    Skipped(SkipReason),
    /// A stage failed.
    Fault {
        /// Which.
        stage: StageName,
        /// The error.
        error: String,
    },
    /// Any of these, of a file whose tree gives it an encoding.
    Told {
        /// The encoding.
        charset: Charset,
        /// What became of the file.
        outcome: Box<Self>,
    },
}

/// Packs the row of a document.
pub(in crate::store) fn pack_document(document: &PackedDocument) -> Vec<u8> {
    encode(document)
}

/// Returns the row of [`pack_document`].
pub(in crate::store) fn unpack_document(packed: &[u8]) -> Result<PackedDocument, CodecError> {
    decode(packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(super::super::cases(256))]
        #[test]
        fn any_entry_comes_back_and_nothing_else_is_one(
            numbers in prop::array::uniform5(prop_oneof![0u32..200, any::<u32>(), Just(u32::MAX)]),
            tokens in prop::collection::vec(prop_oneof![0u32..3, any::<u32>()], 0..=MOST_FIELDS),
            cut in any::<prop::sample::Index>(),
        ) {
            let [path, head, place, text, occurrence] = numbers;
            let tokens = Tokens::from_list(&tokens).unwrap();
            let entry = PackedEntry { path, head, place, text, occurrence, tokens };
            let mut packed = pack_entry(&entry);
            prop_assert_eq!(unpack_entry(&packed), Some(entry));
            // What is cut may be the row of an entry with fewer fields.
            let part = &packed[..cut.index(packed.len())];
            // But for the bit that says nothing, it says the same again.
            let again = |other: PackedEntry| unpack_entry(&pack_entry(&other)) == Some(other);
            prop_assert!(unpack_entry(part).is_none_or(|other| again(other) && other.tokens.as_list() != tokens.as_list()));
            packed.extend([0; MOST_FIELDS]);
            prop_assert_eq!(unpack_entry(&packed), None);
        }
    }

    #[test]
    fn a_row_of_two_fields_is_what_earlier_formats_wrote() {
        let tokens = Tokens::from([300, 0]);
        let entry = PackedEntry { path: 1, head: 2, place: 3, text: 4, occurrence: 5, tokens };
        // The last bit of format 3 said that there was a vector.
        for (last, had) in [(10, false), (11, true)] {
            let row = [1, 2, 3, 4, 0xac, 2, 0, last];
            assert_eq!((unpack_entry(&row), had_vector(&row)), (Some(entry), had));
        }
        assert_eq!(pack_entry(&entry), [1, 2, 3, 4, 0xac, 2, 0, 10]);
    }
}

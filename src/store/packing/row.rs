//! The catalogue's rows: entries and documents, with what many of them share by number.
//!
//! In: rows whose path, head, place and text have numbers. Out: their bytes, and back.
//!
//! **Invariant:** unpacking gives what was packed, or nothing; equal rows have equal bytes.

use super::varint;
use crate::store::{CodecError, decode, encode};
use dataflows::data::{Charset, ContentId, SkipReason, StageName};
use serde::{Deserialize, Serialize};

/// What an entry's ordinal stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) struct PackedEntry {
    /// The number of its path.
    pub(in crate::store) path: u32,
    /// The number of what it is called.
    pub(in crate::store) head: u32,
    /// The number of where it stands.
    pub(in crate::store) place: u32,
    /// The number of its text.
    pub(in crate::store) text: u32,
    /// How many chunks with the same card and text come before it in the document.
    pub(in crate::store) occurrence: u32,
    /// Tokens of text and name.
    pub(in crate::store) tokens: [u32; 2],
    /// Whether it has a vector.
    pub(in crate::store) has_vector: bool,
}

/// Packs the row of an entry: some fifteen bytes.
pub(in crate::store) fn pack_entry(entry: &PackedEntry) -> Vec<u8> {
    let PackedEntry { path, head, place, text, occurrence, tokens, has_vector } = *entry;
    let mut packed = Vec::with_capacity(20);
    for number in [path, head, place, text, tokens[0], tokens[1]] {
        varint::write(&mut packed, u64::from(number));
    }
    varint::write(&mut packed, u64::from(occurrence) << 1 | u64::from(has_vector));
    packed
}

/// Returns the row that [`pack_entry`] packed.
pub(in crate::store) fn unpack_entry(mut packed: &[u8]) -> Option<PackedEntry> {
    let mut next = || varint::read_u32(&mut packed);
    let (path, head, place, text, tokens) = (next()?, next()?, next()?, next()?, [next()?, next()?]);
    let last = varint::read(&mut packed)?;
    let occurrence = u32::try_from(last >> 1).ok()?;
    let entry = PackedEntry { path, head, place, text, occurrence, tokens, has_vector: last & 1 == 1 };
    packed.is_empty().then_some(entry)
}

/// What a document's ordinal stands for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in crate::store) struct PackedDocument {
    /// The number of its path.
    pub(in crate::store) path: u32,
    /// The object at that path.
    pub(in crate::store) content: ContentId,
    /// What became of it.
    pub(in crate::store) outcome: PackedOutcome,
}

/// What became of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(in crate::store) enum PackedOutcome {
    /// It was cut into a list of chunks, at a place with this number.
    Indexed {
        /// The name of the list.
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
        /// What it said.
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

/// Returns the row that [`pack_document`] packed.
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
            numbers in prop::array::uniform7(prop_oneof![0u32..200, any::<u32>(), Just(u32::MAX)]),
            has_vector: bool,
            cut in any::<prop::sample::Index>(),
        ) {
            let [path, head, place, text, occurrence, in_text, in_name] = numbers;
            let entry = PackedEntry { path, head, place, text, occurrence, tokens: [in_text, in_name], has_vector };
            let mut packed = pack_entry(&entry);
            prop_assert_eq!(unpack_entry(&packed), Some(entry));
            prop_assert_eq!(unpack_entry(&packed[..cut.index(packed.len())]), None);
            packed.push(0);
            prop_assert_eq!(unpack_entry(&packed), None);
        }
    }
}

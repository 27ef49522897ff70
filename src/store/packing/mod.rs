//! The encoding of results and rows in the database: small, and without repeating shared values.
//!
//! In: texts, chunk lists, cards, rows of the catalogue. Out: their bytes, and back.
//!
//! **Invariant:** unpacking gives the packed value, or nothing. Values that many chunks and rows share (a text, a head, a place,
//! a path) have a number in the database, and rows refer to that ([`numbering`](super::numbering)). An edit of one chunk writes
//! the list of its whole document again; with hashes the lists alone would be more than a third of what a commit adds to the
//! store.

mod block;
mod card;
mod composition;
mod list;
mod row;
mod text;
mod varint;

pub(super) use block::{BLOCK, Numbers, pack_block, unpack_block};
pub(super) use card::{Head, Place, head_and_place, pack_head, pack_place, unpack_head, unpack_place};
pub(super) use composition::{
    Piece, Place as TextPlace, compose, for_each_piece, is_composition, is_worth_it, names_in, places,
};
pub(super) use list::{NumberedChunk, NumberedList, no_syntax_of, pack_list, unpack_list};
pub(super) use row::{
    PackedDocument, PackedEntry, PackedOutcome, had_vector, pack_document, pack_entry, unpack_document, unpack_entry,
};

pub(super) use text::{Packer, Unpacker, pack_text, unpack_bytes, unpack_text};

use dataflows::data::{Conversion, SkipReason};
use serde::{Deserialize, Serialize};

/// The result of cleaning a content, with its text by number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum PackedCleaned {
    Text { text: u32, bytes: u64 },
    Skipped(SkipReason),
    Fault(String),
    Converted { text: u32, bytes: u64, from: Conversion },
}

/// Returns the settings of a property test: so many cases, the same in every run.
#[cfg(test)]
pub(super) fn cases(cases: u32) -> proptest::prelude::ProptestConfig {
    use proptest::test_runner::{Config, RngSeed};
    Config { cases, rng_seed: RngSeed::Fixed(17), failure_persistence: None, ..Config::default() }
}

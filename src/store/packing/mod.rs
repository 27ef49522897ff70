//! The encoding of results and rows in the database: small, and without repeating shared values.
//!
//! In: texts, chunk lists, cards, rows of the catalogue. Out: their bytes, and back.
//!
//! **Invariant:** unpacking gives the packed value, or nothing. Values that many chunks and rows share (a text, a head, a place,
//! a path) have a number in the database, and rows refer to that ([`numbering`](super::numbering)). An edit of one chunk writes
//! the list of its whole document again; with hashes the lists alone would be more than a third of what a commit adds to the
//! store.

mod block;
mod composition;
mod list;
mod row;
mod text;
mod varint;

pub(super) use block::{BLOCK, Numbers, pack_block, unpack_block};
pub(super) use composition::{
    Piece, Place as TextPlace, compose, for_each_piece, is_composition, is_worth_it, names_in, places,
};
pub(super) use list::{NumberedChunk, NumberedList, no_syntax_of, pack_list, unpack_list};
pub(super) use row::{
    PackedDocument, PackedEntry, PackedOutcome, pack_document, pack_entry, unpack_document, unpack_entry,
};

pub(super) use text::{Packer, Unpacker, pack_text, unpack_bytes, unpack_text};

use dataflows::data::{Card, Chunk, ChunkKind, Conversion, Lines, SkipReason, TextHash};
use serde::{Deserialize, Serialize};

/// The result of cleaning a content, with its text by number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum PackedCleaned {
    Text { text: u32, bytes: u64 },
    Skipped(SkipReason),
    Fault(String),
    Converted { text: u32, bytes: u64, from: Conversion },
}

/// The head of a chunk: the part of chunks and cards that does not depend on text or location.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    kind: ChunkKind,
    language: String,
    symbol: String,
    name: String,
}

impl Head {
    /// Returns the chunk of this head.
    pub(super) fn chunk(self, text: TextHash, lines: Lines) -> Chunk {
        let Self { kind, language, symbol, name } = self;
        Chunk { kind, language, symbol, name, text, lines }
    }

    /// Returns the card of this head at a place.
    pub(super) fn card(self, place: Place) -> Card {
        let Self { kind, language, symbol, name } = self;
        let Place { folder, module, labels } = place;
        Card { kind, language, symbol, name, folder, module, labels }
    }
}

impl From<&Chunk> for Head {
    fn from(chunk: &Chunk) -> Self {
        let Chunk { kind, language, symbol, name, .. } = chunk;
        Self { kind: *kind, language: language.clone(), symbol: symbol.clone(), name: name.clone() }
    }
}

/// The place of chunks: the part of their cards that depends on path and rules alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) folder: String,
    pub(super) module: String,
    pub(super) labels: Vec<(String, String)>,
}

/// Splits a card.
pub(super) fn head_and_place(card: &Card) -> (Head, Place) {
    let Card { kind, language, symbol, name, folder, module, labels } = card.clone();
    (Head { kind, language, symbol, name }, Place { folder, module, labels })
}

/// Returns the settings of a property test: so many cases, the same in every run.
#[cfg(test)]
pub(super) fn cases(cases: u32) -> proptest::prelude::ProptestConfig {
    use proptest::test_runner::{Config, RngSeed};
    Config { cases, rng_seed: RngSeed::Fixed(17), failure_persistence: None, ..Config::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_its_head_and_its_place() {
        let card = Card {
            kind: ChunkKind::Code,
            language: "rust".to_owned(),
            symbol: "World::spawn".to_owned(),
            name: "pub fn spawn(&mut self) -> Entity".to_owned(),
            folder: "src".to_owned(),
            module: "bevy_ecs".to_owned(),
            labels: vec![("version".to_owned(), "0.16".to_owned())],
        };
        let (head, place) = head_and_place(&card);
        assert_eq!(head.card(place), card);
    }
}

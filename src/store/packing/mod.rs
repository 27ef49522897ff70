//! How results and rows look in the database: small, and without saying twice what many of them share.
//!
//! In: texts, chunk lists, cards, rows of the catalogue. Out: their bytes, and back.
//!
//! **Invariant:** unpacking gives what was packed, or nothing. What many chunks and rows name, a text, what a chunk is
//! called (its head), where it stands (its place), a path, has a number in the database and is named by that
//! ([`numbering`](super::numbering)): an edit of one chunk writes the list of its whole document again, and by their
//! hashes the lists alone would take more than a third of what a commit adds to the store.

mod block;
mod list;
mod row;
mod varint;

pub(super) use block::{BLOCK, Numbers, pack_block, unpack_block};
pub(super) use list::{NumberedChunk, NumberedList, no_syntax_of, pack_list, unpack_list};
pub(super) use row::{
    PackedDocument, PackedEntry, PackedOutcome, pack_document, pack_entry, unpack_document, unpack_entry,
};

use dataflows::data::{Card, Chunk, ChunkKind, Conversion, Lines, SkipReason, TextHash};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// Texts from this size on are compressed: below, the frame costs more than it saves.
const COMPRESS_BYTES: usize = 512;
/// The largest text that is unpacked; the largest honest one is bounded by the rules' `max_bytes`.
const TEXT_LIMIT: usize = 256 << 20;

const RAW: u8 = 0;
const ZSTD: u8 = 1;

/// Packs a text: its size and its compressed bytes where that is smaller, else the bytes themselves.
pub(super) fn pack_text(text: &str) -> Vec<u8> {
    if text.len() >= COMPRESS_BYTES
        && let Some(packed) = compress(text.as_bytes())
        && packed.len() + 5 < text.len()
    {
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
        return [&[ZSTD], &size.to_le_bytes()[..], &packed].concat();
    }
    [&[RAW], text.as_bytes()].concat()
}

/// Returns the text that [`pack_text`] packed.
pub(super) fn unpack_text(packed: &[u8]) -> Option<String> {
    let bytes = match packed.split_first()? {
        (&RAW, bytes) => bytes.to_vec(),
        (&ZSTD, rest) => {
            let (size, bytes) = rest.split_first_chunk::<4>()?;
            let size = u32::from_le_bytes(*size) as usize;
            decompress(bytes, size.min(TEXT_LIMIT))?
        }
        _ => return None,
    };
    String::from_utf8(bytes).ok()
}

thread_local! {
    /// Setting these up takes longer than most texts do.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(1).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(bytes).ok())
}

fn decompress(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.as_mut()?.decompress(bytes, most).ok())
}

/// What cleaning made of a content, its text by number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum PackedCleaned {
    Text { text: u32, bytes: u64 },
    Skipped(SkipReason),
    Fault(String),
    Converted { text: u32, bytes: u64, from: Conversion },
}

/// What a chunk is called: the part of chunks and cards that does not depend on text or place.
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

/// Where chunks stand: the part of their cards that depends on path and rules alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) folder: String,
    pub(super) module: String,
    pub(super) labels: Vec<(String, String)>,
}

/// Takes a card apart.
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
    fn texts_come_back_whatever_their_size() {
        for text in ["", "short", &*"long enough to be packed ".repeat(100), &"世界".repeat(500)] {
            assert_eq!(unpack_text(&pack_text(text)).as_deref(), Some(text));
        }
        for damaged in [&[][..], &[9, 1], &[RAW, 0xff], &[ZSTD, 255, 255, 255], &[ZSTD, 255, 255, 255, 255, 1]] {
            assert_eq!(unpack_text(damaged), None);
        }
    }

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

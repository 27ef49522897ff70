//! How results look in the database: small, and without saying twice what many of them share.
//!
//! In: texts, chunk lists, cards. Out: their bytes, and back.
//!
//! **Invariant:** unpacking gives what was packed, or nothing. An edit of one chunk writes the list of its whole document
//! again, so a list holds hashes and lines only; what a chunk is called (its head) is stored once, for every list and card
//! that names it. Without that, the lists alone would take more than half of what a commit adds to the store.

use dataflows::data::{Card, Chunk, ChunkKind, Fingerprint, Hasher, Lines, TextHash};
use dataflows::memo::Chunked;
use serde::{Deserialize, Serialize};

/// Texts from this size on are compressed: below, the frame costs more than it saves.
const COMPRESS_BYTES: usize = 512;
/// The largest text that is unpacked; the largest honest one is bounded by the rules' `max_bytes`.
const TEXT_LIMIT: usize = 256 << 20;

const RAW: u8 = 0;
const ZSTD: u8 = 1;

/// Packs a text: its size and its compressed bytes where that is smaller, else the bytes themselves.
pub(super) fn pack_text(text: &str) -> Vec<u8> {
    if text.len() >= COMPRESS_BYTES
        && let Ok(packed) = zstd::bulk::compress(text.as_bytes(), 1)
        && packed.len() + 5 < text.len()
    {
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
        return [&[ZSTD][..], &size.to_le_bytes(), &packed].concat();
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
            zstd::bulk::decompress(bytes, size.min(TEXT_LIMIT)).ok()?
        }
        _ => return None,
    };
    String::from_utf8(bytes).ok()
}

/// What a chunk is called: the part of chunks and cards that does not depend on text or place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    kind: ChunkKind,
    language: String,
    symbol: String,
    name: String,
}

impl Head {
    /// Returns the head's key.
    pub(super) fn hash(&self) -> Fingerprint {
        let hasher = Hasher::new("head")
            .part(self.kind.as_str().as_bytes())
            .part(self.language.as_bytes())
            .part(self.symbol.as_bytes())
            .part(self.name.as_bytes());
        Fingerprint::from_words(hasher.finish())
    }
}

/// A chunk list in the database.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum PackedChunked {
    Chunks(Vec<PackedChunk>),
    Fault(String),
}

/// A chunk in a list: its head and text by hash, and the lines they stand on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct PackedChunk {
    head: [u8; 16],
    text: [u8; 16],
    first: u32,
    more: u32,
}

/// Packs a chunk list and hands out the heads that it names.
pub(super) fn pack_chunks(chunked: &Chunked, mut head: impl FnMut(Fingerprint, Head)) -> PackedChunked {
    let pack = |chunk: &Chunk| {
        let Chunk { kind, language, symbol, name, text, lines } = chunk.clone();
        let named = Head { kind, language, symbol, name };
        let hash = named.hash();
        head(hash, named);
        let more = lines.last.saturating_sub(lines.first);
        PackedChunk { head: hash.to_bytes(), text: text.to_bytes(), first: lines.first, more }
    };
    match chunked {
        Chunked::Chunks(chunks) => PackedChunked::Chunks(chunks.iter().map(pack).collect()),
        Chunked::Fault(error) => PackedChunked::Fault(error.clone()),
    }
}

/// Returns the chunk list that was packed; `head` looks a head up and fails where it is lost.
pub(super) fn unpack_chunks<E>(
    packed: PackedChunked,
    mut head: impl FnMut(Fingerprint) -> Result<Head, E>,
) -> Result<Chunked, E> {
    let unpack = |chunk: PackedChunk| {
        let Head { kind, language, symbol, name } = head(Fingerprint::from_bytes(chunk.head))?;
        let lines = Lines { first: chunk.first, last: chunk.first.saturating_add(chunk.more) };
        Ok(Chunk { kind, language, symbol, name, text: TextHash::from_bytes(chunk.text), lines })
    };
    Ok(match packed {
        PackedChunked::Chunks(chunks) => Chunked::Chunks(chunks.into_iter().map(unpack).collect::<Result<_, E>>()?),
        PackedChunked::Fault(error) => Chunked::Fault(error),
    })
}

impl PackedChunked {
    /// Calls `look` with the keys of the head and the text of each chunk.
    pub(super) fn names(&self, mut look: impl FnMut([u8; 16], [u8; 16])) {
        if let Self::Chunks(chunks) = self {
            chunks.iter().for_each(|chunk| look(chunk.head, chunk.text));
        }
    }

    /// Keeps the chunks that hold this text, so that only their heads need be looked up.
    pub(super) fn keep_text(self, text: TextHash) -> Self {
        match self {
            Self::Chunks(mut chunks) => {
                let text = text.to_bytes();
                chunks.retain(|chunk| chunk.text == text);
                Self::Chunks(chunks)
            }
            Self::Fault(error) => Self::Fault(error),
        }
    }
}

/// A card in the database: its head by hash, and where it stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct PackedCard {
    head: [u8; 16],
    folder: String,
    module: String,
    labels: Vec<(String, String)>,
}

/// Packs a card; returns it with the head that it names.
pub(super) fn pack_card(card: &Card) -> (PackedCard, Fingerprint, Head) {
    let Card { kind, language, symbol, name, folder, module, labels } = card.clone();
    let head = Head { kind, language, symbol, name };
    let hash = head.hash();
    (PackedCard { head: hash.to_bytes(), folder, module, labels }, hash, head)
}

impl PackedCard {
    /// Returns the key of the card's head.
    pub(super) const fn head(&self) -> [u8; 16] {
        self.head
    }

    /// Returns the card, given its head.
    pub(super) fn unpack(self, head: Head) -> Card {
        let Self { folder, module, labels, .. } = self;
        let Head { kind, language, symbol, name } = head;
        Card { kind, language, symbol, name, folder, module, labels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn texts_come_back_whatever_their_size() {
        for text in ["", "short", &"long enough to be packed ".repeat(100), &"世界".repeat(500)] {
            assert_eq!(unpack_text(&pack_text(text)).unwrap(), text);
        }
        for damaged in [&[][..], &[9, 1], &[ZSTD, 255, 255, 255, 255, 1]] {
            assert_eq!(unpack_text(damaged), None);
        }
    }

    #[test]
    fn lists_and_cards_come_back_and_share_their_heads() {
        let chunk = |text: &str, first| Chunk {
            kind: ChunkKind::Code,
            language: "rust".to_owned(),
            symbol: "World::spawn".to_owned(),
            name: "pub fn spawn(&mut self) -> Entity".to_owned(),
            text: TextHash::of(text),
            lines: Lines { first, last: first + 3 },
        };
        let chunked = Chunked::Chunks(vec![chunk("one", 1), chunk("two", 9)]);
        let mut heads = HashMap::new();
        let packed = pack_chunks(&chunked, |hash, head| {
            heads.insert(hash, head);
        });
        assert_eq!(heads.len(), 1);
        let back = unpack_chunks(packed, |hash| heads.get(&hash).cloned().ok_or(()));
        assert_eq!(back, Ok(chunked));
        let card = Card {
            kind: ChunkKind::Code,
            language: "rust".to_owned(),
            symbol: "World::spawn".to_owned(),
            name: "pub fn spawn(&mut self) -> Entity".to_owned(),
            folder: "src".to_owned(),
            module: "bevy_ecs".to_owned(),
            labels: vec![("version".to_owned(), "0.16".to_owned())],
        };
        let (packed, hash, head) = pack_card(&card);
        assert!(heads.contains_key(&hash));
        assert_eq!(packed.unpack(head), card);
    }
}

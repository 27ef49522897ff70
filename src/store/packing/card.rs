//! Heads and places: the two parts of a card, as the database has them.
//!
//! In: what a chunk is called, and where it stands. Out: their bytes, and back.
//!
//! ```text
//!  head    kind, language, symbol, name      │ later fields: tag u8, length, bytes …
//!  place   folder, module, labels            │ later fields: tag u8, length, bytes …
//! ```
//!
//! **Invariant:** unpacking gives what was packed, or an error: a row with a field that this build does not know is refused,
//! since without the field its cards would have other names. The fields in front are those of format 3, byte for byte, so
//! rows of that format are rows of this one; a field that a later release adds goes behind them where it is set, and
//! costs no format.

use crate::store::codec::{CodecError, decode_front, encode};
use dataflows::data::{Card, Chunk, ChunkKind, Lines, TextHash};
use serde::{Deserialize, Serialize};

/// What a chunk is called: the part of chunks and cards that does not depend on text or place.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(in crate::store) struct Head {
    kind: ChunkKind,
    language: String,
    symbol: String,
    name: String,
}

impl Head {
    /// Returns the chunk of this head.
    pub(in crate::store) fn chunk(self, text: TextHash, lines: Lines) -> Chunk {
        let Self { kind, language, symbol, name } = self;
        Chunk { kind, language, symbol, name, text, lines }
    }

    /// Returns the card of this head at a place.
    pub(in crate::store) fn card(self, place: Place) -> Card {
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
pub(in crate::store) struct Place {
    pub(in crate::store) folder: String,
    pub(in crate::store) module: String,
    pub(in crate::store) labels: Vec<(String, String)>,
}

/// Takes a card apart.
pub(in crate::store) fn head_and_place(card: &Card) -> (Head, Place) {
    let Card { kind, language, symbol, name, folder, module, labels } = card.clone();
    (Head { kind, language, symbol, name }, Place { folder, module, labels })
}

/// Packs a head.
pub(in crate::store) fn pack_head(head: &Head) -> Vec<u8> {
    encode(head)
}

/// Returns the head that [`pack_head`] packed.
pub(in crate::store) fn unpack_head(packed: &[u8]) -> Result<Head, CodecError> {
    whole(decode_front(packed)?, "a head without fields of a later release")
}

/// Packs a place.
pub(in crate::store) fn pack_place(place: &Place) -> Vec<u8> {
    encode(place)
}

/// Returns the place that [`pack_place`] packed.
pub(in crate::store) fn unpack_place(packed: &[u8]) -> Result<Place, CodecError> {
    whole(decode_front(packed)?, "a place without fields of a later release")
}

fn whole<T>((value, later): (T, &[u8]), what: &'static str) -> Result<T, CodecError> {
    if later.is_empty() { Ok(value) } else { Err(CodecError::not(what)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card {
        Card {
            kind: ChunkKind::Code,
            language: "rust".to_owned(),
            symbol: "World::spawn".to_owned(),
            name: "pub fn spawn(&mut self) -> Entity".to_owned(),
            folder: "src".to_owned(),
            module: "bevy_ecs".to_owned(),
            labels: vec![("version".to_owned(), "0.16".to_owned())],
        }
    }

    #[test]
    fn a_card_is_its_head_and_its_place() {
        let (head, place) = head_and_place(&card());
        assert_eq!(head.card(place), card());
    }

    /// The bytes are those of format 3: numbers of heads and places are looked up by them.
    #[test]
    fn rows_of_format_3_are_rows_of_this_one() {
        let (head, place) = head_and_place(&card());
        assert_eq!(pack_head(&head), b"\0\x04rust\x0cWorld::spawn\x21pub fn spawn(&mut self) -> Entity");
        assert_eq!(pack_place(&place), b"\x03src\x08bevy_ecs\x01\x07version\x040.16");
        assert_eq!(unpack_head(&pack_head(&head)).unwrap(), head);
        assert_eq!(unpack_place(&pack_place(&place)).unwrap(), place);
    }

    #[test]
    fn a_field_of_a_later_release_is_not_dropped_in_silence() {
        let (head, place) = head_and_place(&card());
        let later = |mut packed: Vec<u8>| {
            packed.extend(b"\x01\x02ab");
            packed
        };
        assert!(unpack_head(&later(pack_head(&head))).is_err());
        assert!(unpack_place(&later(pack_place(&place))).is_err());
    }
}

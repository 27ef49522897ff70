//! One chunk at one path: the unit that both indexes hold.
//!
//! In: a document's path, its module, and its chunks in order. Out: entries, each with its lines.
//!
//! **Invariant:** an entry's identity is only (path, card, text, n-th occurrence). The card follows from the chunk, the folder
//! and the module, so a rename inside a folder changes no card. Lines are beside the entry and never in it, so text that only
//! moves down keeps its entry.

use super::{Card, CardHash, Chunk, DocumentPath, EmbedInput, EntryId, Hasher, Lines, TextHash};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::hash;
use std::sync::Arc;

/// One chunk at one path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The path of the document.
    pub path: DocumentPath,
    /// The card of the chunk.
    pub card: CardHash,
    /// The chunk's text.
    pub text: TextHash,
    /// The number of earlier chunks with the same card and text in the document.
    pub occurrence: u32,
}

impl Entry {
    /// Returns the identity for the digest, the ordinals and the order of ties.
    #[must_use]
    pub fn id(&self) -> EntryId {
        let hasher = Hasher::new("entry")
            .part(self.path.as_bytes())
            .part(&self.card.to_bytes())
            .part(&self.text.to_bytes())
            .part(&self.occurrence.to_le_bytes());
        EntryId::from_words(hasher.finish())
    }
}

/// An entry with its card, as an epoch hands it over.
///
/// It is compared, ordered and hashed as its entry, which names the card: equal entries have equal cards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CardedEntry {
    /// The entry.
    pub entry: Entry,
    /// The card that the entry names by its hash.
    #[serde(with = "shared")]
    pub card: Arc<Card>,
}

impl PartialEq for CardedEntry {
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
    }
}

impl Eq for CardedEntry {}

impl PartialOrd for CardedEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CardedEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.entry.cmp(&other.entry)
    }
}

impl hash::Hash for CardedEntry {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.entry.hash(state);
    }
}

/// A card that is shared, between processes of the dataflow: by value.
pub(crate) mod shared {
    use super::super::Card;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub(crate) fn serialize<S: Serializer>(card: &Arc<Card>, to: S) -> Result<S::Ok, S::Error> {
        Card::serialize(card, to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Card>, D::Error> {
        Card::deserialize(from).map(Arc::new)
    }
}

/// An entry with its card and its lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedEntry {
    /// The entry.
    pub entry: Entry,
    /// The card whose hash is in the entry.
    pub card: Card,
    /// The lines in the document's cleaned text.
    pub lines: Lines,
}

impl PlacedEntry {
    /// Returns the name of what a model embeds for this entry.
    #[must_use]
    pub fn embed_input(&self) -> EmbedInput {
        self.card.embed_input(self.entry.text)
    }
}

/// Places a document's chunks at its path: the one function from (path, module, labels, chunks) to entries.
///
/// The graph, the reference and the look-up of lines all call it, so they cannot disagree.
pub fn place<'a>(
    path: &'a DocumentPath,
    module: &'a str,
    labels: &'a [(String, String)],
    chunks: &'a [Chunk],
) -> impl Iterator<Item = PlacedEntry> + 'a {
    let folder = String::from_utf8_lossy(path.folder()).into_owned();
    let mut seen: FxHashMap<(CardHash, TextHash), u32> = FxHashMap::default();
    chunks.iter().map(move |chunk| {
        let card = Card {
            kind: chunk.kind,
            language: chunk.language.clone(),
            symbol: chunk.symbol.clone(),
            name: chunk.name.clone(),
            folder: folder.clone(),
            module: module.to_owned(),
            labels: labels.to_vec(),
        };
        let hash = card.hash();
        let next = seen.entry((hash, chunk.text)).or_insert(0);
        let occurrence = *next;
        *next += 1;
        PlacedEntry {
            entry: Entry { path: path.clone(), card: hash, text: chunk.text, occurrence },
            card,
            lines: chunk.lines,
        }
    })
}

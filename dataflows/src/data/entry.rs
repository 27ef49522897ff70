//! One chunk at one path: the unit that both indexes hold, and the card in front of it.
//!
//! In: a document's path, its module, and its chunks in order. Out: entries, each with the lines it stands on.
//!
//! **Invariant:** an entry's identity is (path, card, text, n-th occurrence) and nothing else. The card follows from the
//! chunk, the folder and the module, so a rename inside a folder leaves every card alone; lines are carried beside the
//! entry and never in it, so text that only moves down keeps its entry.

use super::{CardHash, Chunk, ChunkKind, DocumentPath, EntryId, Hasher, Lines, TextHash};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The lines in front of a chunk's text: what it is, and where it stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Card {
    /// What kind of thing the chunk is part of.
    pub kind: ChunkKind,
    /// The language, in lower case, or empty.
    pub language: String,
    /// The qualified name of the item, or empty.
    pub symbol: String,
    /// The declaration or heading path; a search field of its own.
    pub name: String,
    /// The folder of the path, as text.
    pub folder: String,
    /// The module that the nearest manifest names (`bevy_ecs`), or empty.
    pub module: String,
    /// Labels that the rules give the path (`version` → `0.16`), in the order of their names.
    pub labels: Vec<(String, String)>,
}

impl Card {
    /// Returns the name of this card.
    #[must_use]
    pub fn hash(&self) -> CardHash {
        let mut hasher = Hasher::new("card")
            .part(self.kind.as_str().as_bytes())
            .part(self.language.as_bytes())
            .part(self.symbol.as_bytes())
            .part(self.name.as_bytes())
            .part(self.folder.as_bytes())
            .part(self.module.as_bytes());
        for (label, value) in &self.labels {
            hasher = hasher.part(label.as_bytes()).part(value.as_bytes());
        }
        CardHash::from_words(hasher.finish())
    }

    /// Returns what is searched beside the text, as a field of its own: the qualified name with its owner, which a
    /// declaration does not say, and the declaration or heading path.
    ///
    /// ```
    /// # use dataflows::data::{Card, ChunkKind};
    /// # let card = |symbol: &str, name: &str| Card {
    /// #     kind: ChunkKind::Code, language: String::new(), symbol: symbol.into(), name: name.into(),
    /// #     folder: String::new(), module: String::new(), labels: Vec::new(),
    /// # };
    /// assert_eq!(card("World::spawn", "pub fn spawn()").searched_name(), "World::spawn pub fn spawn()");
    /// assert_eq!(card("spawn", "pub fn spawn()").searched_name(), "pub fn spawn()");
    /// ```
    #[must_use]
    pub fn searched_name(&self) -> Cow<'_, str> {
        if self.symbol.is_empty() || self.name.contains(&self.symbol) {
            Cow::Borrowed(&self.name)
        } else {
            Cow::Owned(format!("{} {}", self.symbol, self.name))
        }
    }

    /// Returns the text that a model embeds for a chunk under this card.
    ///
    /// The declaration or heading comes first, because the head of a document counts most; lines that only locate come
    /// last (`docs/decisions/0003-embedded-text.md`).
    #[must_use]
    pub fn embedded_text(&self, text: &str) -> String {
        let mut embedded =
            String::with_capacity(self.name.len() + text.len() + self.folder.len() + self.module.len() + 4);
        for part in [self.name.as_str(), text, self.module.as_str(), self.folder.as_str()] {
            if !part.is_empty() {
                if !embedded.is_empty() {
                    embedded.push('\n');
                }
                embedded.push_str(part);
            }
        }
        embedded
    }
}

/// What a model is asked to embed: one text under one card.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EmbedId {
    /// The card in front of the text.
    pub card: CardHash,
    /// The text.
    pub text: TextHash,
}

/// One chunk at one path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Where the document stands.
    pub path: DocumentPath,
    /// What the chunk is and where it stands.
    pub card: CardHash,
    /// The chunk's text.
    pub text: TextHash,
    /// How many chunks with the same card and text come before it in the document.
    pub occurrence: u32,
}

impl Entry {
    /// Returns the identity that the digest, the ordinals and the order of ties are built on.
    #[must_use]
    pub fn id(&self) -> EntryId {
        let hasher = Hasher::new("entry")
            .part(self.path.as_bytes())
            .part(&self.card.to_bytes())
            .part(&self.text.to_bytes())
            .part(&self.occurrence.to_le_bytes());
        EntryId::from_words(hasher.finish())
    }

    /// Returns what the model is asked for this entry.
    #[must_use]
    pub const fn embed_id(&self) -> EmbedId {
        EmbedId { card: self.card, text: self.text }
    }
}

/// An entry as it comes out of its document: with its card, and the lines it stands on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedEntry {
    /// The entry.
    pub entry: Entry,
    /// The card that the entry names by its hash.
    pub card: Card,
    /// Where the text stands in the document's cleaned text.
    pub lines: Lines,
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
    let mut seen: FxHashMap<EmbedId, u32> = FxHashMap::default();
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
        let id = EmbedId { card: card.hash(), text: chunk.text };
        let next = seen.entry(id).or_insert(0);
        let occurrence = *next;
        *next += 1;
        PlacedEntry {
            entry: Entry { path: path.clone(), card: id.card, text: id.text, occurrence },
            card,
            lines: chunk.lines,
        }
    })
}

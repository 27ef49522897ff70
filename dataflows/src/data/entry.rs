//! An entry, which is one chunk at one path and the unit of both indexes; and its card.
//!
//! In: a document's path, its module, and its chunks in order. Out: entries, each with its lines.
//!
//! **Invariant:** an entry's identity is only (path, card, text, n-th occurrence). The card follows from the chunk, the folder
//! and the module, so a rename inside a folder changes no card. Lines are beside the entry and never in it, so text that only
//! moves down keeps its entry.

use super::{CardHash, Chunk, ChunkKind, DocumentPath, EntryId, Hasher, Lines, TextHash};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The card of a chunk: what describes it beside its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Card {
    /// The kind of text that the chunk belongs to.
    pub kind: ChunkKind,
    /// The language, in lower case, or empty.
    pub language: String,
    /// The qualified name of the item, or empty.
    pub symbol: String,
    /// The declaration or heading path; a search field of its own.
    pub name: String,
    /// The folder of the path, as text.
    pub folder: String,
    /// The module name in the nearest manifest (`bevy_ecs`), or empty.
    pub module: String,
    /// Labels of the path from the rules (`version` → `0.16`), in the order of their names.
    pub labels: Vec<(String, String)>,
}

impl Card {
    /// Returns the hash of this card.
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

    /// Returns the second search field: the qualified name with its owner, which a declaration lacks, and the declaration or
    /// heading path.
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
    /// The declaration or heading comes first, because the beginning of a document has the most weight; lines of the location
    /// come last (`docs/decisions/0003-embedded-text.md`).
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

/// The input of a model: one text under one card.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EmbedId {
    /// The card of the text.
    pub card: CardHash,
    /// The text.
    pub text: TextHash,
}

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

    /// Returns the model's input for this entry.
    #[must_use]
    pub const fn embed_id(&self) -> EmbedId {
        EmbedId { card: self.card, text: self.text }
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

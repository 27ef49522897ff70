//! The card of a chunk: what it is and where it stands, what of it names the entry, and what of it the model reads.
//!
//! In: the fields that cutting, path and rules give. Out: the card's name, the text around the chunk's text that a model
//! embeds, and the name of both together.
//!
//! ```text
//!  kind of field              part of the card's hash   part of the embedded text   today
//!  [`EmbeddedFields`]         yes                       yes                         name, folder, module
//!  [`IdentityFields`]         yes                       no                          kind, language, symbol, labels
//!  facts                      no                        no                          none; they are no fields of a card
//! ```
//!
//! **Invariant:** a card's hash is a function of its fields that are set and of nothing else, so a field that a later
//! release adds moves only the entries that have it. What was embedded is named by the embedded text itself: a change of
//! the recipe changes the names, and a field that is not embedded never does.

use super::{CardHash, ChunkKind, EmbedInput, Hasher, TextHash};
use serde::{Deserialize, Serialize};

/// What a chunk is and where it stands.
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

/// The fields that are part of the card's hash and of the embedded text. The recipe sees these alone.
#[derive(Clone, Copy, Debug)]
struct EmbeddedFields<'c> {
    name: &'c str,
    folder: &'c str,
    module: &'c str,
}

/// The fields that are part of the card's hash only.
#[derive(Clone, Copy, Debug)]
struct IdentityFields<'c> {
    kind: ChunkKind,
    language: &'c str,
    symbol: &'c str,
    labels: &'c [(String, String)],
}

/// What stands around a chunk's text where a model embeds it, separators included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Everything in front of the text.
    pub before: String,
    /// Everything behind the text.
    pub after: String,
}

/// The tag of a field that came after the first seven. A tag is never used again for another field.
type Tag = u8;

impl Card {
    /// Returns the fields by what they are part of. A new field belongs to one of the two, or is a fact and no field.
    fn fields(&self) -> (EmbeddedFields<'_>, IdentityFields<'_>) {
        let Self { kind, language, symbol, name, folder, module, labels } = self;
        (EmbeddedFields { name, folder, module }, IdentityFields { kind: *kind, language, symbol, labels })
    }

    /// Returns the fields that came after the first seven, as far as they are set, by ascending tags.
    const fn later(&self) -> [(Tag, &[u8]); 0] {
        []
    }

    /// Returns the name of this card.
    #[must_use]
    pub fn hash(&self) -> CardHash {
        let (EmbeddedFields { name, folder, module }, IdentityFields { kind, language, symbol, labels }) =
            self.fields();
        let mut hasher = Hasher::new("card")
            .part(kind.as_str().as_bytes())
            .part(language.as_bytes())
            .part(symbol.as_bytes())
            .part(name.as_bytes())
            .part(folder.as_bytes())
            .part(module.as_bytes());
        for (label, value) in labels {
            hasher = hasher.part(label.as_bytes()).part(value.as_bytes());
        }
        with_later(CardHash::from_words(hasher.finish()), self.later())
    }

    /// Returns what stands around a chunk's text under this card where a model embeds it.
    #[must_use]
    pub fn frame(&self) -> Frame {
        self.fields().0.frame()
    }

    /// Returns the name of what a model embeds for a text under this card. The text is not read for it.
    #[must_use]
    pub fn embed_input(&self, text: TextHash) -> EmbedInput {
        self.frame().input(text)
    }
}

impl EmbeddedFields<'_> {
    /// The recipe of the embedded text (`docs/decisions/0003-embedded-text.md`).
    ///
    /// The declaration or heading comes first, because the head of a document counts most; lines that only locate come
    /// last. A chunk's text is never blank, so each line that is set is parted from it by a line end.
    fn frame(self) -> Frame {
        let Self { name, folder, module } = self;
        let mut frame = Frame { before: String::new(), after: String::new() };
        if !name.is_empty() {
            frame.before = format!("{name}\n");
        }
        for part in [module, folder].into_iter().filter(|part| !part.is_empty()) {
            frame.after.push('\n');
            frame.after.push_str(part);
        }
        frame
    }
}

impl Frame {
    /// Returns the name of this frame around a text.
    #[must_use]
    pub fn input(&self, text: TextHash) -> EmbedInput {
        let hasher =
            Hasher::new("embed input").part(self.before.as_bytes()).part(&text.to_bytes()).part(self.after.as_bytes());
        EmbedInput::from_words(hasher.finish())
    }

    /// Returns the text that a model embeds.
    #[must_use]
    pub fn around(&self, text: &str) -> String {
        [&self.before, text, &self.after].concat()
    }
}

/// Returns the name of a card by the hash of its first seven fields and by those that came later.
///
/// Each of these is hashed with its tag, in a domain of its own, so no value of an old field looks like a new field.
fn with_later<'f>(card: CardHash, later: impl IntoIterator<Item = (Tag, &'f [u8])>) -> CardHash {
    let mut later = later.into_iter().peekable();
    if later.peek().is_none() {
        return card;
    }
    let first = Hasher::new("card with later fields").part(&card.to_bytes());
    let hasher = later.fold(first, |hasher, (tag, value)| hasher.part(&[tag]).part(value));
    CardHash::from_words(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spawn() -> Card {
        Card {
            kind: ChunkKind::Code,
            language: "rust".to_owned(),
            symbol: "World::spawn".to_owned(),
            name: "pub fn spawn(&mut self) -> Entity".to_owned(),
            folder: "crates/bevy_ecs/src".to_owned(),
            module: "bevy_ecs".to_owned(),
            labels: vec![("version".to_owned(), "0.16".to_owned())],
        }
    }

    fn bare() -> Card {
        Card {
            kind: ChunkKind::Text,
            language: String::new(),
            symbol: String::new(),
            name: String::new(),
            folder: String::new(),
            module: String::new(),
            labels: Vec::new(),
        }
    }

    /// These names are in every store: entries, digests and ordinals hang on them.
    #[test]
    fn cards_are_called_what_they_were_always_called() {
        assert_eq!(spawn().hash().to_string(), "b551140602eeddaf231d3796d06b931d");
        assert_eq!(bare().hash().to_string(), "3ccf926bbcf6d07416dfbe9b5007af37");
        let without_labels = Card { labels: Vec::new(), ..spawn() };
        assert_eq!(without_labels.hash().to_string(), "0a383f05cf9fb59677d66b11c3f530ce");
    }

    /// A vector is found by this name. Where the first lines fail, every text of every store would be embedded again.
    #[test]
    fn what_is_embedded_is_named_by_what_is_around_the_text() {
        let text = "self.spawn_empty()";
        assert_eq!(
            spawn().frame().around(text),
            "pub fn spawn(&mut self) -> Entity\nself.spawn_empty()\nbevy_ecs\ncrates/bevy_ecs/src"
        );
        assert_eq!(bare().frame().around(text), text);
        let input = |card: &Card| card.embed_input(TextHash::of(text));
        assert_eq!(input(&spawn()).to_string(), "1518bcd092b5d41b44e4b5c65298c1cc");
        let same = Card { labels: Vec::new(), symbol: String::new(), language: "c".to_owned(), ..spawn() };
        assert_eq!(input(&same), input(&spawn()), "labels, symbol and language are not embedded");
        for other in [
            Card { name: "pub fn spawn()".to_owned(), ..spawn() },
            Card { folder: "src".to_owned(), ..spawn() },
            Card { module: String::new(), ..spawn() },
        ] {
            assert_ne!(input(&other), input(&spawn()));
        }
    }

    #[test]
    fn a_field_that_comes_later_names_only_the_cards_that_have_it() {
        let card = spawn().hash();
        let with = |later: &[(Tag, &[u8])]| with_later(card, later.iter().copied());
        assert_eq!(with(&[]), card);
        let names = [
            with(&[]),
            with(&[(1, b"a")]),
            with(&[(2, b"a")]),
            with(&[(1, b"a"), (2, b"b")]),
            with(&[(1, b"a\x02b")]),
            with(&[(1, b"")]),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        // A label is a field of old: it never looks like one that came later.
        let labelled =
            Card { labels: vec![("\u{1}".to_owned(), "a".to_owned())], ..Card { labels: vec![], ..spawn() } };
        assert!(!names.contains(&labelled.hash()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// One text could be split in two ways into what is around it; the names of the two differ all the same, or the
        /// same words are embedded under one name.
        #[test]
        fn one_name_is_one_embedded_text(
            cards in prop::array::uniform2(prop::array::uniform3("[ab\n]{0,2}")),
            texts in prop::array::uniform2("[ab]{1,2}"),
        ) {
            let [one, two] = cards.map(|[name, folder, module]| Card { name, folder, module, ..bare() });
            let (left, right) = (one.frame(), two.frame());
            let named = left.input(TextHash::of(&texts[0])) == right.input(TextHash::of(&texts[1]));
            prop_assert!(!named || left.around(&texts[0]) == right.around(&texts[1]));
            prop_assert_eq!(named, left == right && texts[0] == texts[1]);
        }
    }
}

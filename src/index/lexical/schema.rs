//! The fields of a tantivy document, and the encoding of analysed tokens.
//!
//! In: the analysed text and name of an entry. Out: a document of three fields, of which nothing is stored.
//!
//! **Invariant:** tantivy indexes exactly the tokens of [`analyzer`](super::analyzer), at their positions, so our token counts
//! are its counts.
//!
//! Each field holds its tokens as one packed string, which our own tokenizer unpacks on the indexing thread. tantivy's own
//! `PreTokenizedString` would hold a `String` per token, convert to JSON inside a document, and be cloned once more before it is
//! indexed.

use super::analyzer::{self, for_each_token};
use dataflows::data::{Card, Fingerprint, Hasher};
use std::borrow::Cow;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};

/// The name of [`Unpack`] in the index.
pub(super) const TOKENIZER: &str = "packed";
/// The field of ordinals.
pub(super) const ORDINAL: &str = "ord";
/// The number of text fields.
pub const TEXT_FIELDS: usize = 2;
/// Counts the changes of [`searched_name`], which the fingerprint of the analyzer names; a test holds the two together. The
/// first recipe has no name, since fingerprints were older than this.
pub(super) const NAME_RECIPE: Option<&str> = None;

/// Precedes a token at the next position.
const NEXT: char = '\u{1}';
/// Precedes a token at the position of the one before it.
const SAME: char = '\u{2}';

/// The fields of every index. Their order is the order of the schema, which never changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// Fast, to map documents to entries; garbage documents are deleted by it too ([`removal`](super::removal)).
    pub ordinal: Field,
    /// The chunk's text, and its name: declaration or heading path.
    pub texts: [Field; TEXT_FIELDS],
}

/// Returns the schema and its fields.
pub(super) fn schema() -> (Schema, Fields) {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let options = TextOptions::default().set_indexing_options(indexing);
    let mut builder = Schema::builder();
    let ordinal = builder.add_u64_field(ORDINAL, FAST);
    let texts = [builder.add_text_field("text", options.clone()), builder.add_text_field("name", options)];
    (builder.build(), Fields { ordinal, texts })
}

/// Returns the fingerprint of all that can change what is indexed: the analyzer, and what of an entry it is given.
#[must_use]
pub fn fingerprint() -> Fingerprint {
    let analyzer = analyzer::fingerprint();
    let Some(recipe) = NAME_RECIPE else { return analyzer };
    let hasher = Hasher::new("indexed").part(&analyzer.to_bytes()).part(recipe.as_bytes());
    Fingerprint::from_words(hasher.finish())
}

/// Returns what is indexed of a card beside the text, as a field of its own: the qualified name with its owner, which a
/// declaration does not say, and the declaration or heading path.
///
/// ```
/// # use dataflows::data::{Card, ChunkKind};
/// # use tidemill::index::lexical::searched_name;
/// # let card = |symbol: &str, name: &str| Card {
/// #     kind: ChunkKind::Code, language: String::new(), symbol: symbol.into(), name: name.into(),
/// #     folder: String::new(), module: String::new(), labels: Vec::new(),
/// # };
/// assert_eq!(searched_name(&card("World::spawn", "pub fn spawn()")), "World::spawn pub fn spawn()");
/// assert_eq!(searched_name(&card("spawn", "pub fn spawn()")), "pub fn spawn()");
/// ```
#[must_use]
pub fn searched_name(card: &Card) -> Cow<'_, str> {
    if card.symbol.is_empty() || card.name.contains(&card.symbol) {
        Cow::Borrowed(&card.name)
    } else {
        Cow::Owned(format!("{} {}", card.symbol, card.name))
    }
}

/// Returns the tokenizer to register as [`TOKENIZER`].
pub(super) fn tokenizer() -> TextAnalyzer {
    TextAnalyzer::from(Unpack::default())
}

/// Returns the packed tokens of `text`, and their number.
pub(super) fn pack(text: &str) -> (String, u32) {
    let mut packed = String::with_capacity(text.len() + text.len() / 2);
    let mut count = 0;
    let mut next = 0;
    for_each_token(text, |token, position, _| {
        packed.push(if position == next { NEXT } else { SAME });
        packed.push_str(token);
        next = position + 1;
        count += 1;
    });
    (packed, count)
}

/// Returns how many tokens the text and the name of an entry have, as adding it does.
#[must_use]
pub fn count_tokens(text: &str, name: &str) -> [u32; TEXT_FIELDS] {
    [text, name].map(|text| {
        let mut count = 0;
        for_each_token(text, |_, _, _| count += 1);
        count
    })
}

/// Turns packed tokens into tantivy's. No token holds a control character, so the separators are never part of one.
#[derive(Clone, Default)]
struct Unpack {
    token: Token,
}

struct Unpacked<'a> {
    rest: &'a str,
    token: &'a mut Token,
}

impl Tokenizer for Unpack {
    type TokenStream<'a> = Unpacked<'a>;

    fn token_stream<'a>(&'a mut self, packed: &'a str) -> Unpacked<'a> {
        self.token.reset();
        Unpacked { rest: packed, token: &mut self.token }
    }
}

impl TokenStream for Unpacked<'_> {
    fn advance(&mut self) -> bool {
        let Some(mark) = self.rest.chars().next() else { return false };
        let behind = &self.rest[mark.len_utf8()..];
        let end = behind.bytes().position(|byte| byte == NEXT as u8 || byte == SAME as u8).unwrap_or(behind.len());
        self.token.text.clear();
        self.token.text.push_str(&behind[..end]);
        if mark == NEXT {
            // A fresh token is at `usize::MAX`, one before the first position.
            self.token.position = self.token.position.wrapping_add(1);
        }
        self.rest = &behind[end..];
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::lexical::analyze;
    use dataflows::data::ChunkKind;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::index::cases(256))]
        #[test]
        fn what_is_unpacked_is_what_was_analysed(text in "([a-zA-Z_0-9]{1,9}|\\PC|[\u{1}\u{2} 相机]){0,20}") {
            let (packed, count) = pack(&text);
            let mut unpack = Unpack::default();
            let mut stream = unpack.token_stream(&packed);
            let mut unpacked = Vec::new();
            stream.process(&mut |token| unpacked.push((token.text.clone(), token.position)));
            let analysed: Vec<_> =
                analyze(&text).into_iter().map(|token| (token.text, token.position as usize)).collect();
            prop_assert_eq!(count as usize, analysed.len());
            prop_assert_eq!(unpacked, analysed);
        }
    }

    /// What is indexed of some cards in one number. Where this fails, [`NAME_RECIPE`] must change with it: stores are indexed
    /// again where the fingerprint is another, and not where it is the same.
    #[test]
    fn the_name_of_the_recipe_changes_with_what_it_gives() {
        let mut hasher = Hasher::new("test").part(NAME_RECIPE.unwrap_or_default().as_bytes());
        for (symbol, name) in [
            ("", ""),
            ("", "Guide > Setup"),
            ("spawn", ""),
            ("spawn", "pub fn spawn()"),
            ("World::spawn", "pub fn spawn()"),
            ("World::spawn", "fn World::spawn()"),
            ("相机", "渲染 设置"),
        ] {
            let card = Card {
                kind: ChunkKind::Code,
                language: "rust".to_owned(),
                symbol: symbol.to_owned(),
                name: name.to_owned(),
                folder: "src/camera".to_owned(),
                module: "bevy_ecs".to_owned(),
                labels: vec![("version".to_owned(), "0.16".to_owned())],
            };
            hasher = hasher.part(searched_name(&card).as_bytes());
        }
        let [low, high] = hasher.finish();
        assert_eq!(format!("{low:016x}{high:016x}"), "39158f3cf22ffe3b0996088c947d7718");
    }
}

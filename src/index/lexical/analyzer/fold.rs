//! Normalises spellings that a reader cannot distinguish.
//!
//! In: a text or a query. Out: the same in the normalisation form NFC, with widths and ligatures resolved, and for every range of
//! it the source bytes.
//!
//! **Invariant:** text without such forms is returned unchanged, without a copy. Each segment (a character and its combining
//! marks) is folded separately, so an edit changes the folding of its own segment only.
//!
//! | form | result |
//! |---|---|
//! | a letter and its combining marks (macOS, `ö` as two characters; Korean as single letters) | the composed character |
//! | full-width Latin letters, digits and signs; half-width katakana | the usual width |
//! | Latin, Armenian and Arabic ligatures and presentation forms (text from PDF files) | the letters |
//! | soft hyphens, joiners, variation selectors | nothing |
//!
//! Superscripts, circled digits and fractions stay (`x²` is not `x2`), because their forms carry meaning. Half-width Hangul stays
//! too: it is rare and composes across segments.

use std::borrow::Cow;
use std::ops::Range;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A text, folded.
pub(super) struct Folded<'a> {
    text: Cow<'a, str>,
    /// The changed segments: their range in the folded text and in the source. In order.
    changed: Vec<(Range<usize>, Range<usize>)>,
}

impl<'a> Folded<'a> {
    /// Folds a text.
    pub(super) fn of(text: &'a str) -> Self {
        let mut folded = Self { text: Cow::Borrowed(text), changed: Vec::new() };
        if text.is_ascii() || !text.chars().any(|character| role(character) != Role::Usual) {
            return folded;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text.char_indices().peekable();
        while let Some((start, first)) = rest.next() {
            let mut end = start + first.len_utf8();
            let mut usual = role(first) == Role::Usual;
            while let Some((at, next)) = rest.next_if(|(_, next)| role(*next) == Role::Extends) {
                end = at + next.len_utf8();
                usual = false;
            }
            let begin = out.len();
            if usual {
                out.push(first);
                continue;
            }
            let segment = &text[start..end];
            out.extend(segment.chars().flat_map(Resolved::of).nfc());
            if out[begin..] != *segment {
                folded.changed.push((begin..out.len(), start..end));
            }
        }
        folded.text = Cow::Owned(out);
        folded
    }

    /// Returns the folded text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the source bytes of a range of the folded text, in whole segments.
    pub(super) fn source(&self, range: Range<usize>) -> Range<usize> {
        let before_start = self.changed.partition_point(|(folded, _)| folded.start <= range.start);
        let start = match self.changed[..before_start].last() {
            None => range.start,
            Some((folded, source)) if range.start < folded.end => source.start,
            Some((folded, source)) => source.end + (range.start - folded.end),
        };
        let before_end = self.changed.partition_point(|(folded, _)| folded.start < range.end);
        let end = match self.changed[..before_end].last() {
            None => range.end,
            Some((folded, source)) => source.end + range.end.saturating_sub(folded.end),
        };
        start..end
    }
}

/// The role of a character in folding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Unchanged, unless something combines with it.
    Usual,
    /// Is replaced.
    Replaced,
    /// Belongs to the character before it.
    Extends,
}

fn role(character: char) -> Role {
    match character {
        '\u{ad}' => Role::Replaced,
        // No look-up needed: letters below the combining marks, Cyrillic letters, kana, Han, whole Hangul syllables.
        '\0'..='\u{2ff}'
        | '\u{400}'..='\u{482}'
        | '\u{48a}'..='\u{52f}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => Role::Usual,
        '\u{ff9e}' | '\u{ff9f}' => Role::Extends,
        _ if is_ignorable(character) || is_form(character) => Role::Replaced,
        _ if is_combining_mark(character) => Role::Extends,
        _ => match is_nfc_quick(std::iter::once(character)) {
            IsNormalized::Yes => Role::Usual,
            IsNormalized::No => Role::Replaced,
            IsNormalized::Maybe => Role::Extends,
        },
    }
}

/// Returns whether a character only affects the layout of its neighbours.
fn is_ignorable(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Returns whether a character is a width or a ligature of others.
fn is_form(character: char) -> bool {
    matches!(
        character,
        '\u{fb00}'..='\u{fb17}'
            | '\u{fb50}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}'
            | '\u{ff01}'..='\u{ff9f}'
            | '\u{ffe0}'..='\u{ffe2}'
            | '\u{ffe4}'..='\u{ffee}'
    )
}

/// The resolution of one character: nothing, itself, or the letters of a form.
enum Resolved {
    Nothing,
    Itself(Option<char>),
    Form(std::vec::IntoIter<char>),
}

impl Resolved {
    fn of(character: char) -> Self {
        if is_ignorable(character) {
            Self::Nothing
        } else if is_form(character) {
            Self::Form(std::iter::once(character).nfkc().collect::<Vec<_>>().into_iter())
        } else {
            Self::Itself(Some(character))
        }
    }
}

impl Iterator for Resolved {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::Nothing => None,
            Self::Itself(character) => character.take(),
            Self::Form(letters) => letters.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(Folded::of(text).text(), *expected, "folded {text:?}");
            assert_eq!(Folded::of(expected).text(), *expected, "folded again {text:?}");
        }
    }

    #[test]
    fn spellings_that_look_alike_become_one() {
        check(&[
            ("Gro\u{308}\u{df}e", "Größe"),
            ("\u{110b}\u{116a}\u{1100}\u{1161}", "와가"),
            ("tie\u{302}\u{301}ng Vie\u{323}\u{302}t", "tiếng Việt"),
            ("ＡＰＩ２（）", "API2()"),
            ("ｶﾞｲﾄﾞ", "ガイド"),
            ("ef\u{fb01}cient \u{fb02}ow", "efficient flow"),
            ("soft\u{ad}ware \u{feff}x\u{200d}y", "software xy"),
            ("x² ½ ① Ⅷ", "x² ½ ① Ⅷ"),
            ("\u{2126}", "Ω"),
        ]);
    }

    #[test]
    fn usual_text_is_not_copied_and_places_lead_back() {
        assert!(matches!(Folded::of("Größe 渲染器 렌더러 Привет").text, Cow::Borrowed(_)));
        let text = "a\u{308}b ＡＢ soft\u{ad}ware";
        let folded = Folded::of(text);
        for (word, source) in [("äb", "a\u{308}b"), ("AB", "ＡＢ"), ("software", "soft\u{ad}ware"), ("ware", "ware")]
        {
            let at = folded.text().rfind(word).expect("it is there");
            assert_eq!(&text[folded.source(at..at + word.len())], source);
        }
    }
}

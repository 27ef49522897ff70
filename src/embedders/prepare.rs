//! Text preparation of the static model: splits text into words.
//!
//! In: any text. Out: its words in order, lower-cased, one call per word.
//!
//! **Invariant:** the words joined by single spaces are the text form on which the model was trained: identifiers are split at
//! camel humps, between capitals and a word (`HTTPServer` → `http server`), at underscores and between letters and digits; ASCII
//! punctuation is dropped; a run of other scripts is one word, including its own punctuation. No word is longer than the bounds
//! below, so no input makes the tokenizer slow.
//!
//! Words are passed one by one because the tokenizer treats each separately, and most are cached.

/// Most bytes of an ASCII word; longer runs (base64, minified names) are cut. The longest piece of the vocabulary has 22
/// characters, so a cut word was never one piece.
const MAX_ASCII_BYTES: usize = 64;

/// Most characters of a run in other scripts. Chinese runs cover whole paragraphs, and each cut costs one superfluous token, so
/// this bound is generous: the tokenizer is linear in it.
const MAX_OTHER_CHARS: usize = 1024;

/// The character classes of the splitting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
    /// Separators between words.
    Gap,
    /// The first byte of a character outside ASCII.
    Other,
}

const fn class(byte: u8) -> Class {
    match byte {
        b'A'..=b'Z' => Class::Upper,
        b'a'..=b'z' => Class::Lower,
        b'0'..=b'9' => Class::Digit,
        0x80.. => Class::Other,
        _ => Class::Gap,
    }
}

/// Calls `visit` with each word of `text`, lower-cased, in order.
pub(super) fn for_each_word(text: &str, mut visit: impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut lowered = String::new();
    let mut start = 0;
    while start < bytes.len() {
        let end = match class(bytes[start]) {
            Class::Gap => {
                start += 1;
                continue;
            }
            Class::Other => {
                start = other_run(text, start, &mut visit);
                continue;
            }
            Class::Upper => upper_word(bytes, start),
            one => run(bytes, start, one),
        };
        for piece in bytes[start..end].chunks(MAX_ASCII_BYTES) {
            lowered.clear();
            lowered.extend(piece.iter().map(|byte| byte.to_ascii_lowercase() as char));
            visit(&lowered);
        }
        start = end;
    }
}

/// Returns the end of the run of class `one` that starts at `start`.
fn run(bytes: &[u8], start: usize, one: Class) -> usize {
    bytes[start..].iter().position(|&byte| class(byte) != one).map_or(bytes.len(), |length| start + length)
}

/// Returns the end of the word that starts with the capital at `start`: a capitalised word, or capitals up to the one that starts
/// the next word.
fn upper_word(bytes: &[u8], start: usize) -> usize {
    let capitals = run(bytes, start, Class::Upper);
    match bytes.get(capitals).map(|&byte| class(byte)) {
        Some(Class::Lower) if capitals - start == 1 => run(bytes, capitals, Class::Lower),
        Some(Class::Lower) => capitals - 1,
        _ => capitals,
    }
}

/// Visits the words of the run outside ASCII that starts at `start`, and returns its end.
///
/// Spaces of other scripts separate words, and so does `▁`, the tokenizer's mark for the start of a word.
fn other_run(text: &str, start: usize, visit: &mut impl FnMut(&str)) -> usize {
    let bytes = text.as_bytes();
    let end = run(bytes, start, Class::Other);
    for word in text[start..end].split(|character: char| character.is_whitespace() || character == '\u{2581}') {
        let mut rest = word;
        while !rest.is_empty() {
            let cut = rest.char_indices().nth(MAX_OTHER_CHARS).map_or(rest.len(), |(position, _)| position);
            visit(&rest[..cut].to_lowercase());
            rest = &rest[cut..];
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> String {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(word.to_owned()));
        words.join(" ")
    }

    #[test]
    fn splits_identifiers_and_keeps_other_scripts() {
        for (text, expected) in [
            ("mSkyBox->setEnabled(enable)", "m sky box set enabled enable"),
            ("HTTPServer parseURL IDs", "http server parse url i ds"),
            ("MAX_UV2_SIZE u32x4", "max uv 2 size u 32 x 4"),
            ("Vec<f32>, fn_name!", "vec f 32 fn name"),
            ("返回下一帧,的渲染目标。好", "返回下一帧 的渲染目标。好"),
            ("ÄRGER\u{3000}naïve\u{a0}▁x▁é", "ä rger na ï ve x é"),
            ("A", "a"),
            ("", ""),
            (" \n\t_-", ""),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }

    #[test]
    fn long_runs_are_cut() {
        let ascii = "a".repeat(1 << 20);
        for_each_word(&ascii, |word| assert_eq!(word.len(), 64));
        let mut characters = 0;
        for_each_word(&"界".repeat(5000), |word| {
            assert!(word.chars().count() <= MAX_OTHER_CHARS);
            characters += word.chars().count();
        });
        assert_eq!(characters, 5000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn letters_and_digits_are_neither_lost_nor_reordered(text in "(?s).{0,80}") {
            let kept = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
            // Lower-casing may turn a character of another script into ASCII letters (`K` → `k`), so those go first.
            let text: String = text.chars().filter(|&c| c.is_ascii() || !c.to_lowercase().any(|c| c.is_ascii())).collect();
            prop_assert_eq!(kept(&words(&text)), kept(&text));
        }
    }
}

//! The first sentence of a comment.
//!
//! In: the lines of a comment, with the signs that make it one. Out: its first sentence in plain words, if it has enough of them.
//!
//! **Invariant:** a sentence is on one line, and has neither Markdown links nor commands of a documentation tool.

/// Fewer words are no question.
const LEAST_WORDS: usize = 5;
/// A sentence that is longer is none that a person would ask.
const MOST_CHARS: usize = 300;

/// Returns the first sentence of a comment.
pub(super) fn first_sentence(lines: &[&str]) -> Option<String> {
    let mut text = String::new();
    for line in lines {
        let line = bare(line);
        let line = ["@brief ", "\\brief "].iter().find_map(|brief| line.strip_prefix(brief)).unwrap_or(line).trim();
        if line.starts_with("```") && text.is_empty() {
            return None;
        }
        if line.is_empty() || line.starts_with(['#', '@', '\\', '|', '>', '*', '-', '=']) || line.starts_with("```") {
            if text.is_empty() {
                continue;
            }
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(line);
    }
    let sentence = without_links(cut(&text)).replace('`', "");
    let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = sentence.trim_end_matches(['.', ':', ';', '。']).to_owned();
    let is_enough = sentence.split(' ').count() >= LEAST_WORDS && sentence.chars().count() <= MOST_CHARS;
    is_enough.then_some(sentence)
}

/// Takes away what makes a line a comment.
fn bare(line: &str) -> &str {
    let line = line.trim();
    let line = line.strip_suffix("*/").unwrap_or(line).trim_end();
    for sign in ["///", "//!", "/**", "/*!"] {
        if let Some(rest) = line.strip_prefix(sign) {
            return rest.trim();
        }
    }
    line.strip_prefix('*').unwrap_or(line).trim()
}

/// Returns a text up to the end of its first sentence.
fn cut(text: &str) -> &str {
    const SHORT: [&str; 6] = ["e.g.", "i.e.", "etc.", "vs.", "cf.", "approx."];
    for (at, sign) in text.char_indices() {
        let end = at + sign.len_utf8();
        let stops = matches!(sign, '.' | '!' | '?') && text[end..].starts_with(' ');
        if sign == '。' || stops && !SHORT.iter().any(|short| text[..end].to_ascii_lowercase().ends_with(short)) {
            return &text[..end];
        }
    }
    text
}

/// Returns a text in which links are their words: `[words](address)`, `[words][name]` and `[words]`.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('[') {
        plain.push_str(before);
        let Some((words, behind)) = behind.split_once(']') else {
            rest = behind;
            continue;
        };
        plain.push_str(words);
        let closing = match behind.chars().next() {
            Some('(') => behind.find(')'),
            Some('[') => behind.find(']'),
            _ => None,
        };
        rest = closing.map_or(behind, |closing| &behind[closing + 1..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_plain_words() {
        let sentence = |text: &str| first_sentence(&text.lines().collect::<Vec<_>>());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            sentence("/// Spawns a new [`Entity`](Self::x), e.g. a camera,\n/// and returns it. More."),
            some("Spawns a new Entity, e.g. a camera, and returns it")
        );
        assert_eq!(
            sentence("/**\n * @brief Returns the number of living children.\n *\n * @param x y\n */"),
            some("Returns the number of living children")
        );
        assert_eq!(sentence("/// Return the child by its index\n/// @property"), some("Return the child by its index"));
        assert_eq!(
            sentence("/// `spawn` makes one more entity\n/// # Panics\n/// always"),
            some("spawn makes one more entity")
        );
        assert_eq!(sentence("/** Sets the [name][n] of all of them. */"), some("Sets the name of all of them"));
        assert_eq!(sentence("/// Too few words."), None);
        assert_eq!(sentence("/// ```\n/// let a = b + c + d;\n/// ```"), None);
        assert_eq!(sentence(""), None);
    }
}

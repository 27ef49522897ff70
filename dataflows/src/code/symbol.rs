//! Names for items: the bare name of a type, and a declaration on one line.
//!
//! In: slices of code. Out: strings without comments, line breaks and type arguments.
//!
//! **Invariant:** bounded: a declaration has at most 200 characters and is read from at most 2,000 bytes of the text.

/// The longest declaration, in characters.
const LONGEST_NAME: usize = 200;

/// The most bytes of text that a declaration is read from, including attributes and comments inside it.
const LONGEST_SLICE: usize = 2_000;

/// The longest symbol, in characters; longer text is no name.
const LONGEST_SYMBOL: usize = 200;

/// The longest qualified symbol, in bytes.
const LONGEST_QUALIFIED: usize = 1_000;

/// Returns a declaration on one line: without comments, with single spaces, and without the opening of the body.
pub(super) fn declaration(slice: &str) -> String {
    let mut end = slice.len().min(LONGEST_SLICE);
    while !slice.is_char_boundary(end) {
        end -= 1;
    }
    let mut line = String::new();
    let mut characters = 0;
    let mut space = false;
    let mut rest = &slice[..end];
    while let Some(character) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |newline| &rest[newline..]);
            continue;
        }
        if rest.starts_with("/*") {
            rest = rest[2..].find("*/").map_or("", |close| &rest[close + 4..]);
            space = true;
            continue;
        }
        rest = &rest[character.len_utf8()..];
        if character.is_whitespace() {
            space = true;
            continue;
        }
        if characters + usize::from(space) >= LONGEST_NAME {
            break;
        }
        if space && !line.is_empty() {
            line.push(' ');
            characters += 1;
        }
        space = false;
        line.push(character);
        characters += 1;
    }
    line.truncate(
        line.trim_end_matches(|end: char| end.is_whitespace() || matches!(end, '{' | ';' | '=' | ':' | '\\')).len(),
    );
    line
}

/// Returns a name without type arguments and white space: `Foo<T>::bar` is `Foo::bar`.
///
/// `operator<` and similar names keep their sign: the name after `operator` stays unchanged.
pub(super) fn bare(name: &str) -> String {
    let (head, operator) = match name.find("operator") {
        Some(at) if !name[at + 8..].starts_with(|next: char| next.is_alphanumeric() || next == '_') => {
            name.split_at(at)
        }
        _ => (name, ""),
    };
    let mut bare = String::new();
    let mut depth = 0_usize;
    for character in head.chars().take(LONGEST_SYMBOL) {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth > 0 || character.is_whitespace() => {}
            _ => bare.push(character),
        }
    }
    bare.extend(operator.chars().take(LONGEST_SYMBOL).map(|sign| if sign.is_whitespace() { ' ' } else { sign }));
    bare
}

/// Returns a name unchanged, up to the longest symbol.
pub(super) fn short(name: &str) -> String {
    name.chars().take(LONGEST_SYMBOL).collect()
}

/// Returns `owner` and `name` with `separator` between them, or the one that is not empty.
///
/// If that would be too long the owner is left out, because each member would repeat it.
pub(super) fn qualified(owner: &str, separator: &str, name: &str) -> String {
    match (owner.is_empty(), name.is_empty()) {
        (false, false) if owner.len() + name.len() > LONGEST_QUALIFIED => name.to_owned(),
        (true, _) => name.to_owned(),
        (_, true) => owner.to_owned(),
        _ => format!("{owner}{separator}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_one_line_without_comments() {
        for (slice, expected) in [
            (
                "pub fn spawn<B: Bundle>(\n        &mut self, // who\n        bundle: B,\n    ) -> Entity {",
                "pub fn spawn<B: Bundle>( &mut self, bundle: B, ) -> Entity",
            ),
            ("class A /* b */ : public B {", "class A : public B"),
            ("def f(self,\n      x): ", "def f(self, x)"),
            ("/* open", ""),
            ("", ""),
        ] {
            assert_eq!(declaration(slice), expected);
        }
        assert_eq!(declaration(&"é".repeat(5_000)).chars().count(), 200);
    }

    #[test]
    fn bare_names_have_no_arguments() {
        for (name, expected) in [
            ("Vec<Box<T>>", "Vec"),
            ("Foo<T>::bar", "Foo::bar"),
            ("Foo<T>::operator<", "Foo::operator<"),
            ("operator bool", "operator bool"),
            ("operators<T>", "operators"),
            (">>", ""),
        ] {
            assert_eq!(bare(name), expected);
        }
    }
}

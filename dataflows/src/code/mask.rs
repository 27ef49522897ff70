//! Hides the macros of C++ code bases that no grammar knows.
//!
//! In: a text. Out: the text for the parser: of equal length, line by line, with such macros as comments.
//!
//! **Invariant:** every byte keeps its position, so the parser's positions are those of the text. Comments and strings do not
//! change.
//!
//! Unreal's `UCLASS(…)` and `GENERATED_BODY()` are no declarations, and in `class ENGINE_API AActor : public UObject` the parser
//! takes the export macro for the class name and loses the members. A comment may be anywhere.

use super::language::Grammar;
use std::borrow::Cow;

/// Macros before a declaration, or inside a class, with arguments and without a semicolon.
const MARKERS: [&str; 14] = [
    "UCLASS",
    "USTRUCT",
    "UENUM",
    "UINTERFACE",
    "UFUNCTION",
    "UPROPERTY",
    "UPARAM",
    "UMETA",
    "UDELEGATE",
    "UE_DEPRECATED",
    "GENERATED_BODY",
    "GENERATED_UCLASS_BODY",
    "GENERATED_USTRUCT_BODY",
    "GENERATED_UINTERFACE_BODY",
];

/// The suffixes of export macros: `ENGINE_API`, `Q_CORE_EXPORT`.
const EXPORTS: [&str; 3] = ["_API", "_EXPORT", "_EXPORTS"];

/// The longest arguments that are hidden.
const LONGEST_ARGUMENTS: usize = 4_096;

/// The text is read at most so many times in search of the end of arguments; after that no macro is hidden.
const SEARCHES: usize = 8;

/// Returns `text` for the parser of `grammar`.
pub(super) fn mask(grammar: Grammar, text: &str) -> Cow<'_, str> {
    if grammar != Grammar::Cpp {
        return Cow::Borrowed(text);
    }
    let mut hidden = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    // Bytes that may still be read in search of the end of arguments: every unclosed argument list causes a search.
    let mut left = SEARCHES * bytes.len();
    // The word before, for `class EXPORT Name`.
    let mut heads_type = false;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match bytes[at] {
            b'/' if rest.starts_with(b"//") => at += find(rest, b"\n"),
            b'/' if rest.starts_with(b"/*") => at += 2 + find(&rest[2..], b"*/"),
            b'"' => at += string(rest),
            b'\'' => at += if rest.get(1) == Some(&b'\\') { 3 } else { 1 },
            byte if is_word(byte) => {
                let length = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
                let word = &text[at..at + length];
                let end = at + length;
                if MARKERS.contains(&word) {
                    let reach = &bytes[end..bytes.len().min(end + LONGEST_ARGUMENTS.min(left))];
                    let found = arguments(reach);
                    left -= found.unwrap_or(reach.len());
                    if let Some(arguments) = found {
                        hidden.push(at..end + arguments);
                        at = end + arguments;
                        continue;
                    }
                } else if length >= 4
                    && !bytes[..at].ends_with(b"#define ")
                    && (EXPORTS.iter().any(|export| word.ends_with(export))
                        || heads_type && is_shouted(word) && word_follows(&bytes[end..]))
                {
                    hidden.push(at..end);
                }
                heads_type = matches!(word, "class" | "struct" | "union");
                at = end;
            }
            byte => {
                heads_type &= byte.is_ascii_whitespace();
                at += 1;
            }
        }
    }
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = bytes.to_vec();
    for range in hidden {
        let (first, last) = (range.start, range.end);
        for byte in masked[range].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
        masked[first..first + 2].copy_from_slice(b"/*");
        masked[last - 2..last].copy_from_slice(b"*/");
    }
    String::from_utf8(masked).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Underscore, digits, letters, and every byte of a non-ASCII character.
fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

fn is_shouted(word: &str) -> bool {
    word.bytes().all(|byte| byte == b'_' || byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn word_follows(rest: &[u8]) -> bool {
    let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
    next.is_some_and(|byte| is_word(*byte)) && rest.first().is_some_and(u8::is_ascii_whitespace)
}

/// Returns the length up to and including the first `end`, or of everything.
fn find(bytes: &[u8], end: &[u8]) -> usize {
    bytes.windows(end.len()).position(|window| window == end).map_or(bytes.len(), |at| at + end.len())
}

/// Returns the length of a string literal; an unclosed one ends with its line.
fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' | b'\n' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the length of white space and balanced parentheses after a macro's name.
fn arguments(bytes: &[u8]) -> Option<usize> {
    let open = bytes.iter().position(|byte| !matches!(byte, b' ' | b'\t')).filter(|at| bytes[*at] == b'(')?;
    let mut depth = 0_usize;
    let mut at = open;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at + 1),
            b')' => depth -= 1,
            b'"' => at += string(&bytes[at..]) - 1,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(mask(Grammar::Cpp, text), expected);
        assert_eq!(mask(Grammar::C, text), text, "only C++ has such macros");
    }

    #[test]
    fn macros_become_comments_of_their_length() {
        check("UCLASS(meta=(A=\")\"))\nclass X_API A {};", "/*                */\nclass /* */ A {};");
        check("class FORCEINLINE Foo {};", "class /*       */ Foo {};");
        check("UPROPERTY(\n  X)\nint a;", "/*        \n  */\nint a;");
        check("class FOO {};", "class FOO {};");
    }

    #[test]
    fn comments_strings_and_open_ends_are_left_alone() {
        for text in
            ["// UCLASS(x)\n", "/* UCLASS(x) */", "f(\"UCLASS(x)\");", "UCLASS(", "#define X_API\n", "\"", "'\\", "é"]
        {
            check(text, text);
        }
    }
}

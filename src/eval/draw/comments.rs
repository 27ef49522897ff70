//! Questions from comments above functions.
//!
//! In: files of Rust, C and C++. Out: the first sentences of their comments, and the same files without any comment of a function.
//!
//! **Invariant:** *every* such comment is taken out, whether it becomes a question or not, so no answer stands beside its question; no
//! other byte of a file changes.

use super::function::{Tongue, declared, length};
use super::sentence::first_sentence;
use super::source::{Copy, DrawError, Source};
use super::{Drawn, Right, drawn, only_once};
use dataflows::data::DocumentPath;
use rustc_hash::FxHashMap;

/// Endings of files in C and C++.
const C: [&str; 12] = ["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inl", "ipp", "m", "mm"];
/// Files with one stem in which a definition is looked for.
const MOST_SIBLINGS: usize = 4;

/// A text without the comments of its functions.
#[derive(Debug)]
struct Stripped {
    text: String,
    functions: Vec<Function>,
}

/// A function that had a comment.
#[derive(PartialEq, Debug)]
struct Function {
    sentence: Option<String>,
    name: String,
    /// In the text without comments.
    lines: [u32; 2],
    /// Whether it has no body here.
    is_declaration: bool,
}

/// Draws a question of every sentence that stands once, and takes the comments out of the copy.
pub(super) fn draw(source: &Source, copy: &mut Copy) -> Result<Vec<Drawn>, DrawError> {
    let extensions: Vec<&str> = C.into_iter().chain(["rs"]).collect();
    let files = source.files(&extensions)?;
    let mut siblings: FxHashMap<Vec<u8>, Vec<&DocumentPath>> = FxHashMap::default();
    for (path, _) in files.iter().filter(|(path, _)| tongue(path) == Tongue::C) {
        siblings.entry(stem(path)).or_default().push(path);
    }
    let mut questions = Vec::new();
    for (path, content) in &files {
        let tongue = tongue(path);
        let Some(stripped) = source.text(*content).and_then(|text| strip(tongue, &text)) else { continue };
        copy.replace(path, &stripped.text)?;
        if !source.draws_from(path) || std::str::from_utf8(path.as_bytes()).is_err() {
            continue;
        }
        for function in stripped.functions {
            let Some(sentence) = function.sentence else { continue };
            let mut right = Right::at(&path.display(), Some(function.lines));
            if function.is_declaration && tongue == Tongue::C {
                // The definition, in a file beside the header, is as right as the declaration.
                let beside = siblings.get(&stem(path)).map(Vec::as_slice).unwrap_or_default();
                let beside = beside.iter().filter(|beside| **beside != path).take(MOST_SIBLINGS);
                right.or = beside
                    .map(|beside| Right {
                        path: beside.display().into_owned(),
                        symbol: Some(function.name.clone()),
                        ..Right::default()
                    })
                    .collect();
            }
            questions.push(drawn("doc-comment", sentence, vec![right]));
        }
    }
    Ok(only_once(questions))
}

fn tongue(path: &DocumentPath) -> Tongue {
    if path.extension() == Some(b"rs") { Tongue::Rust } else { Tongue::C }
}

/// Returns a file's name up to its first dot.
fn stem(path: &DocumentPath) -> Vec<u8> {
    path.file_name().split(|byte| *byte == b'.').next().unwrap_or_default().to_vec()
}

/// Takes the comments of functions out of a text; nothing where there is none.
fn strip(tongue: Tongue, text: &str) -> Option<Stripped> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut is_kept = vec![true; lines.len()];
    let mut found: Vec<(usize, String, Option<String>)> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (comment, next) = comment(tongue, &lines, at);
        let name = if comment.is_empty() { None } else { declared(tongue, &lines[next.min(lines.len())..]) };
        if let Some(name) = name {
            let written: Vec<&str> = comment.iter().map(|line| lines[*line]).collect();
            comment.iter().for_each(|line| is_kept[*line] = false);
            found.push((next, name, first_sentence(&written)));
        }
        at = next.max(at + 1);
    }
    if found.is_empty() {
        return None;
    }
    let kept: Vec<&str> = lines.iter().zip(&is_kept).filter(|(_, kept)| **kept).map(|(line, _)| *line).collect();
    // Where each line stands without the comments.
    let mut places = Vec::with_capacity(lines.len());
    let mut place = 0;
    for kept in &is_kept {
        places.push(place);
        place += usize::from(*kept);
    }
    let function = |(line, name, sentence): (usize, String, Option<String>)| {
        let first = places[line];
        let length = length(tongue, &kept[first..]);
        let is_declaration = kept[first..first + length].iter().all(|line| !line.contains('{'));
        let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
        Function { sentence, name, lines: [number(first + 1), number(first + length)], is_declaration }
    };
    Some(Stripped { text: kept.concat(), functions: found.into_iter().map(function).collect() })
}

/// Returns the lines of the comment that begins at a line, and the line behind it and what may stand between it and its function.
fn comment(tongue: Tongue, lines: &[&str], start: usize) -> (Vec<usize>, usize) {
    let (mut comment, mut at) = (Vec::new(), start);
    while let Some(line) = lines.get(at).map(|line| line.trim()) {
        if is_line(tongue, line) {
            comment.push(at);
            at += 1;
        } else if is_block(tongue, line) {
            let Some(end) = block_end(lines, at) else { break };
            comment.extend(at..=end);
            at = end + 1;
        } else if comment.is_empty() {
            break;
        } else if let Some(next) = between(tongue, lines, at) {
            at = next;
        } else {
            break;
        }
    }
    (comment, at)
}

fn is_line(tongue: Tongue, line: &str) -> bool {
    let documents = line.strip_prefix("///").is_some_and(|rest| !rest.starts_with(['/', '<']));
    documents || tongue == Tongue::C && line.strip_prefix("//!").is_some_and(|rest| !rest.starts_with('<'))
}

fn is_block(tongue: Tongue, line: &str) -> bool {
    let documents = line.strip_prefix("/**").is_some_and(|rest| !rest.starts_with(['*', '/', '<']));
    documents || tongue == Tongue::C && line.strip_prefix("/*!").is_some_and(|rest| !rest.starts_with('<'))
}

/// Returns the line on which a block comment ends, if nothing stands behind it there.
fn block_end(lines: &[&str], start: usize) -> Option<usize> {
    let end = (start..lines.len()).find(|at| match *at == start {
        true => lines[*at].trim().get(3..).is_some_and(|rest| rest.contains("*/")),
        false => lines[*at].contains("*/"),
    })?;
    lines[end].trim_end().ends_with("*/").then_some(end)
}

/// Returns the line behind something that may stand between a comment and its function: an attribute, another comment.
fn between(tongue: Tongue, lines: &[&str], at: usize) -> Option<usize> {
    let line = lines[at].trim();
    if line.starts_with("//") {
        return Some(at + 1);
    }
    match tongue {
        Tongue::Rust if line.is_empty() => Some(at + 1),
        Tongue::Rust if line.starts_with("#[") => {
            let mut depth = 0_i32;
            for (number, line) in lines.iter().enumerate().skip(at).take(40) {
                depth += line.matches('[').count() as i32 - line.matches(']').count() as i32;
                if depth <= 0 {
                    // An attribute in front of its function on one line ends the comment.
                    return line.trim_end().ends_with(']').then_some(number + 1);
                }
            }
            None
        }
        Tongue::C if line.starts_with("[[") && line.ends_with("]]") => Some(at + 1),
        // `UFUNCTION(BlueprintCallable)`
        Tongue::C if line.ends_with(')') => {
            let name = line.split('(').next().unwrap_or_default();
            let is_macro = name.len() > 2
                && name.chars().all(|sign| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_');
            is_macro.then_some(at + 1)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tongue: Tongue, text: &str, stripped: &str, functions: &[(&str, Option<&str>, [u32; 2], bool)]) {
        let found = strip(tongue, text).unwrap();
        assert_eq!(found.text, stripped);
        let expected = functions.iter().map(|(name, sentence, lines, is_declaration)| Function {
            name: (*name).to_owned(),
            sentence: sentence.map(str::to_owned),
            lines: *lines,
            is_declaration: *is_declaration,
        });
        assert_eq!(found.functions, expected.collect::<Vec<_>>());
    }

    #[test]
    fn every_comment_of_a_function_goes_and_nothing_else() {
        check(
            Tongue::Rust,
            "//! Of the file.\n\n/// Of a type, which stays as it is.\npub struct A;\n\nimpl A {\n    /// Makes one more of these things.\n    ///\n    /// # Panics\n    #[must_use]\n    /// And here too.\n    pub fn new() -> Self {\n        A // /// not one\n    }\n\n    /** Short one. */\n    fn b(&self);\n}\n//// none\nfn c() {}\n",
            "//! Of the file.\n\n/// Of a type, which stays as it is.\npub struct A;\n\nimpl A {\n    #[must_use]\n    pub fn new() -> Self {\n        A // /// not one\n    }\n\n    fn b(&self);\n}\n//// none\nfn c() {}\n",
            &[("new", Some("Makes one more of these things"), [8, 10], false), ("b", None, [12, 12], true)],
        );
        check(
            Tongue::C,
            "/// A node of the whole scene.\nclass Node\n{\n    URHO3D_OBJECT(Node, Object);\npublic:\n    /// Construct.\r\n    explicit Node(Context* context);\n    /**\n     * Returns the child at this index.\n     */\n    UFUNCTION(Callable)\n    Node* GetChild(unsigned index) const;\n    int a; ///< of a\n};\n",
            "/// A node of the whole scene.\nclass Node\n{\n    URHO3D_OBJECT(Node, Object);\npublic:\n    explicit Node(Context* context);\n    UFUNCTION(Callable)\n    Node* GetChild(unsigned index) const;\n    int a; ///< of a\n};\n",
            &[("Node", None, [6, 6], true), ("GetChild", Some("Returns the child at this index"), [8, 8], true)],
        );
        assert!(strip(Tongue::Rust, "fn a() {}\n/// at the end").is_none());
        assert!(strip(Tongue::C, "/** never closed\nint a();\n").is_none());
    }
}

//! Questions from names of definitions.
//!
//! In: files of code. Out: qualified names, and bare ones, that one definition of the whole tree has, each with the lines of that.
//!
//! **Invariant:** a declaration without a body, in C and C++, is no definition; names of tests are not asked for.

use super::function::{Tongue, length};
use super::source::{DrawError, Source};
use super::{Drawn, MAX_FILE, Right, drawn};
use crate::eval::ask::in_parallel;
use crate::workers::Parsing;
use dataflows::code::{Mark, Outline, Rank};
use dataflows::data::{ContentId, DocumentPath};
use rustc_hash::FxHashMap;

/// What is parsed: the endings of files, and the language.
const LANGUAGES: [(&[&str], &str); 4] = [
    (&["rs"], "rust"),
    (&["c"], "c"),
    (&["cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inl", "ipp"], "cpp"),
    (&["py"], "python"),
];
/// A bare name with fewer letters is too common to be meant.
const LEAST_LETTERS: usize = 4;

struct Definition {
    symbol: String,
    path: String,
    lines: [u32; 2],
    is_drawn: bool,
}

/// Draws qualified and bare names.
pub(super) fn draw(source: &Source, parsing: &Parsing) -> Result<[Vec<Drawn>; 2], DrawError> {
    let outliner = parsing.outliner()?;
    let mut files: Vec<(&str, DocumentPath, ContentId)> = Vec::new();
    for (extensions, language) in LANGUAGES {
        let found = source.files(extensions)?.into_iter();
        files.extend(found.map(|(path, content)| (language, path, content)));
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let parsed = in_parallel(files.len(), threads, |at| {
        let (language, path, content) = &files[at];
        let Some(text) = source.text(*content).filter(|_| std::str::from_utf8(path.as_bytes()).is_ok()) else {
            return Ok::<_, DrawError>(Vec::new());
        };
        debug_assert!(text.len() as u64 <= MAX_FILE);
        // As it is cleaned: marks are those of the text that is indexed, line for line.
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let Ok(Outline::Marks(marks)) = outliner.outline(language, &text) else { return Ok(Vec::new()) };
        Ok(definitions(language, path, &text, &marks, source.draws_from(path)))
    })?;
    let definitions: Vec<Definition> = parsed.into_iter().flatten().collect();
    let kind = |kind, name: fn(&str) -> Option<&str>| {
        let mut known: FxHashMap<&str, Vec<&Definition>> = FxHashMap::default();
        for definition in &definitions {
            if let Some(name) = name(&definition.symbol) {
                known.entry(name).or_default().push(definition);
            }
        }
        let one = |(name, definitions): (&str, Vec<&Definition>)| match definitions.as_slice() {
            [only] if only.is_drawn => {
                Some(drawn(kind, name.to_owned(), vec![Right::at(&only.path, Some(only.lines))]))
            }
            _ => None,
        };
        let mut questions: Vec<Drawn> = known.into_iter().filter_map(one).collect();
        questions.sort_by(|left, right| left.text.cmp(&right.text));
        questions
    };
    Ok([kind("qualified", qualified), kind("bare", bare)])
}

fn definitions(language: &str, path: &DocumentPath, text: &str, marks: &[Mark], is_drawn: bool) -> Vec<Definition> {
    let lines: Vec<&str> = text.split('\n').collect();
    let starts: Vec<usize> = lines
        .iter()
        .scan(0, |start, line| {
            let at = *start;
            *start += line.len() + 1;
            Some(at)
        })
        .collect();
    let line = |byte: usize| starts.partition_point(|start| *start <= byte).saturating_sub(1);
    let end = |next: Option<&Mark>| next.map_or(lines.len(), |next| line(next.start));
    let mut found = Vec::new();
    for (at, mark) in marks.iter().enumerate() {
        let (first, end) = (line(mark.start), end(marks.get(at + 1)));
        let is_item = mark.rank != Rank::Minor && !mark.symbol.is_empty() && first < end;
        if !is_item || mark.symbol.split(['.', ':']).any(|part| matches!(part, "test" | "tests")) {
            continue;
        }
        let body = lines[first..end].iter().position(|line| !is_in_front(line)).map_or(first, |lead| first + lead);
        let own = &lines[body..end];
        if matches!(language, "c" | "cpp") && mark.rank == Rank::Item {
            let declared = &own[..length(Tongue::C, own).min(own.len())];
            let is_macro = own.first().is_some_and(|line| line.trim_start().starts_with('#'));
            if !is_macro && declared.iter().all(|line| !line.contains('{')) {
                continue;
            }
        }
        let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
        let lines = [number(body + 1), number(end.max(body + 1))];
        found.push(Definition { symbol: mark.symbol.clone(), path: path.display().into_owned(), lines, is_drawn });
    }
    found
}

/// Whether a line is a comment or empty, in front of a definition.
fn is_in_front(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || ["//", "/*", "*", "#["].iter().any(|sign| line.starts_with(sign))
}

fn qualified(symbol: &str) -> Option<&str> {
    let is_plain = symbol.contains("::") || symbol.contains('.');
    (is_plain && !symbol.contains(char::is_whitespace)).then_some(symbol)
}

fn bare(symbol: &str) -> Option<&str> {
    let name = symbol.rsplit([':', '.']).next().unwrap_or(symbol);
    let is_word = name.chars().all(|sign| sign.is_alphanumeric() || sign == '_');
    (is_word && name.len() >= LEAST_LETTERS).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataflows::code::{InProcess, Outliner};

    fn found(language: &str, text: &str) -> Vec<(String, [u32; 2])> {
        let Outline::Marks(marks) = InProcess.outline(language, text).unwrap() else { panic!("it is parsed") };
        let found = definitions(language, &"a".into(), text, &marks, true);
        found.into_iter().map(|definition| (definition.symbol, definition.lines)).collect()
    }

    #[test]
    fn definitions_are_found_with_their_lines() {
        let rust = "use a::b;\n\n/// Of it.\npub struct World;\n\nimpl World {\n    /// Spawns.\n    pub fn spawn(&self) {\n        x();\n    }\n}\n\nmod tests {\n    fn it_works() {}\n}\n";
        let spawn = |symbol: &str, lines| (symbol.to_owned(), lines);
        assert_eq!(found("rust", rust), [spawn("World", [4, 5]), spawn("World::spawn", [6, 12])]);
        let cpp = "/// Declared.\nint twice(int a);\n\nint twice(int a)\n{\n    return 2 * a;\n}\n";
        assert_eq!(found("cpp", cpp), [spawn("twice", [4, 8])]);
    }

    #[test]
    fn names_are_bare_or_qualified() {
        assert_eq!([qualified("A::b"), qualified("b"), qualified("A::operator bool")], [Some("A::b"), None, None]);
        assert_eq!(
            [bare("A::spawn"), bare("a.spawn"), bare("A::new"), bare("A::operator<")],
            [Some("spawn"), Some("spawn"), None, None]
        );
    }
}

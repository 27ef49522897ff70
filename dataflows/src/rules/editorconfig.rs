//! What `.editorconfig` files say of the encoding of the files below them.
//!
//! In: the text of such a file, and paths below its folder. Out: the encoding that it gives each path.
//!
//! **Invariant:** what a file says follows from its text, and what holds of a path from the nearest [`LEVELS`] files at and above
//! its folder: the nearest that speaks of it counts, within it the last section that matches, and a file with `root = true`
//! ends the search (EditorConfig Specification 0.17). Time and memory are bounded for any text: patterns are run by automata, and
//! a text that is too long, or has too many sections, says nothing. What comes out of here changes with
//! `rules::version::EDITORCONFIG_VERSION`.
//!
//! `utf-8`, `utf-8-bom` and `unset` count as nothing said: that is how a file is read then.

use super::Rule;
use crate::data::{Charset, DocumentPath, folders_up};
use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many files at and above a folder are asked.
pub(crate) const LEVELS: usize = 64;
/// The longest text that is read, in bytes.
const LONGEST_TEXT: usize = 64 << 10;
/// The most sections with an encoding.
const MOST_SECTIONS: usize = 256;
/// The most numbers that `{1..9}` stands for.
const MOST_NUMBERS: i64 = 256;
/// How deep `{a,{b,c}}` goes.
const DEEPEST_BRACES: usize = 8;

/// Says whether the file at `path` may say which encoding the files beside and below it have.
#[must_use]
pub fn is_editorconfig(path: &DocumentPath) -> bool {
    path.file_name() == b".editorconfig"
}

/// What one file says.
#[derive(Default)]
pub struct EditorConfig {
    is_root: bool,
    globs: GlobSet,
    /// What each glob's section says.
    charsets: Vec<Option<Charset>>,
}

impl EditorConfig {
    /// Reads a text; what is no line of the format is passed over, as editors do.
    ///
    /// ```
    /// use dataflows::{data::Charset, rules::EditorConfig};
    /// let config = EditorConfig::parse("root = true\n[*.{c,h}]\ncharset = latin1\n");
    /// assert_eq!(config.charset(b"src/a.c"), Some(Charset::from_label("latin1")));
    /// assert_eq!(config.charset(b"src/a.rs"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.len() > LONGEST_TEXT {
            return Self::default();
        }
        let (mut is_root, mut section) = (false, None);
        let (mut globs, mut charsets) = (GlobSetBuilder::new(), Vec::new());
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = Some(name);
                continue;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().to_ascii_lowercase());
            match (section, key.as_str()) {
                (None, "root") => is_root = value == "true",
                (Some(section), "charset") => {
                    if charsets.len() == MOST_SECTIONS {
                        return Self::default();
                    }
                    if let Some(glob) = glob(section) {
                        globs.add(glob);
                        // Earlier versions of the format allowed a comment behind the value.
                        charsets.push(value.split_whitespace().next().and_then(told));
                    }
                }
                _ => {}
            }
        }
        // Patterns that are too large together are no settings.
        let globs = globs.build();
        match globs {
            Ok(globs) => Self { is_root, globs, charsets },
            Err(_) => Self { is_root, ..Self::default() },
        }
    }

    /// Returns what the file says of a path below its folder: nothing, or an encoding, or that it is UTF-8 or unset.
    #[must_use]
    pub fn charset(&self, below: &[u8]) -> Option<Option<Charset>> {
        let last = self.globs.matches_candidate(&Candidate::from_bytes(below)).into_iter().max()?;
        self.charsets.get(last).copied()
    }

    /// Says whether it names an encoding other than UTF-8.
    pub(crate) fn names_any(&self) -> bool {
        self.charsets.iter().any(Option::is_some)
    }

    /// Says whether any file could be read otherwise because of it.
    pub(crate) fn matters(&self) -> bool {
        self.is_root || !self.charsets.is_empty()
    }

    /// Says whether files above it do not count.
    pub(crate) fn is_root(&self) -> bool {
        self.is_root
    }
}

/// Returns the encoding that a value stands for, unless that is UTF-8.
fn told(value: &str) -> Option<Charset> {
    Charset::from_label(value).filter(|charset| *charset != Charset::UTF_8)
}

/// Returns what holds of a path, from the files at and above its folder, the nearest first, each with the length of its
/// folder's path. Where the path's rule names an encoding, they are not asked.
pub(crate) fn charset_of<'a>(
    rule: &Rule,
    path: &DocumentPath,
    above: impl IntoIterator<Item = (usize, &'a EditorConfig)>,
) -> Option<Charset> {
    if rule.charset().is_some() {
        return None;
    }
    for (folder, config) in above.into_iter().take(LEVELS) {
        let below = &path.as_bytes()[if folder == 0 { 0 } else { folder + 1 }..];
        if let Some(said) = config.charset(below) {
            return said;
        }
        if config.is_root {
            break;
        }
    }
    None
}

/// The settings of a whole tree.
#[derive(Clone, Default)]
pub struct EditorConfigs(BTreeMap<Box<[u8]>, Arc<EditorConfig>>);

impl EditorConfigs {
    /// Takes in, or out, what the file at a path says.
    pub fn set(&mut self, path: &DocumentPath, text: Option<&str>) {
        match text.map(EditorConfig::parse).filter(EditorConfig::matters) {
            Some(config) => self.0.insert(path.folder().into(), Arc::new(config)),
            None => self.0.remove(path.folder()),
        };
    }

    /// Returns the encoding that the tree gives the file at a path, whose rule this is; a file of settings is always UTF-8.
    #[must_use]
    pub fn charset(&self, rule: &Rule, path: &DocumentPath) -> Option<Charset> {
        if is_editorconfig(path) {
            return Some(Charset::UTF_8);
        }
        let above = folders_up(path.folder()).filter_map(|folder| Some((folder.len(), &**self.0.get(folder)?)));
        charset_of(rule, path, above)
    }
}

/// Returns a section's name as a glob.
fn glob(section: &str) -> Option<Glob> {
    let (pattern, anywhere) = match section.strip_prefix('/') {
        Some(below) => (below, false),
        None => (section, !section.contains('/')),
    };
    let mut translated = String::from(if anywhere { "**/" } else { "" });
    translate(&pattern.chars().collect::<Vec<_>>(), DEEPEST_BRACES, &mut translated)?;
    GlobBuilder::new(&translated).literal_separator(true).empty_alternates(true).build().ok()
}

/// Writes a pattern of EditorConfig as one of `globset`.
///
/// They differ in `**`, which here is any text also within a name; in `{1..9}`, a number between two; and in brackets and braces
/// that nothing closes, or that hold no choice, which stand for themselves.
fn translate(pattern: &[char], depth: usize, into: &mut String) -> Option<()> {
    let mut at = 0;
    while let Some(&character) = pattern.get(at) {
        let rest = &pattern[at + 1..];
        at += 1;
        match character {
            '\\' => {
                if let Some(&escaped) = rest.first() {
                    literal(escaped, into);
                    at += 1;
                }
            }
            '*' if rest.first() == Some(&'*') => {
                at += 1;
                let is_part = (into.is_empty() || into.ends_with('/')) && rest.get(1).is_none_or(|next| *next == '/');
                into.push_str(if is_part { "**" } else { "{*,*/**/*}" });
            }
            '*' | '?' => into.push(character),
            '[' => match rest.iter().position(|next| *next == ']') {
                Some(end) if end > 0 && !rest[..end].contains(&'/') => {
                    into.push('[');
                    into.extend(&rest[..=end]);
                    at += end + 1;
                }
                _ => literal(character, into),
            },
            '{' => match choice(rest) {
                Some((end, commas)) => {
                    let depth = depth.checked_sub(1)?;
                    let inner = &rest[..end];
                    if let Some(numbers) = numbers(inner) {
                        into.push_str(&numbers);
                    } else if commas.is_empty() {
                        into.push_str("\\{");
                        translate(inner, depth, into)?;
                        into.push_str("\\}");
                    } else {
                        let mut start = 0;
                        into.push('{');
                        for end in commas.into_iter().chain([end]) {
                            translate(&inner[start..end], depth, into)?;
                            into.push(if end == inner.len() { '}' } else { ',' });
                            start = end + 1;
                        }
                    }
                    at += end + 1;
                }
                None => literal(character, into),
            },
            '/' => into.push('/'),
            other => literal(other, into),
        }
    }
    Some(())
}

fn literal(character: char, into: &mut String) {
    if character.is_ascii_punctuation() && !matches!(character, '/' | '.' | '-' | '_') {
        into.push('\\');
    }
    into.push(character);
}

/// Returns where the braces close that are open in front of a pattern, and where commas part it.
fn choice(pattern: &[char]) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas, mut at) = (0_usize, Vec::new(), 0);
    while let Some(character) = pattern.get(at) {
        match character {
            '\\' => at += 1,
            '{' => depth += 1,
            '}' if depth == 0 => return Some((at, commas)),
            '}' => depth -= 1,
            ',' if depth == 0 => commas.push(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns a choice between the numbers that `1..9` stands for.
fn numbers(inner: &[char]) -> Option<String> {
    let inner: String = inner.iter().collect();
    let (from, to) = inner.split_once("..")?;
    let (from, to): (i64, i64) = (from.parse().ok()?, to.parse().ok()?);
    let (from, to) = (from.min(to), from.max(to));
    let few = to.checked_sub(from).is_some_and(|numbers| numbers < MOST_NUMBERS);
    few.then(|| format!("{{{}}}", (from..=to).map(|number| number.to_string()).collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    fn matches(section: &str, path: &str) -> bool {
        let config = EditorConfig::parse(&format!("[{section}]\ncharset = gbk\n"));
        config.charset(path.as_bytes()).is_some()
    }

    #[test]
    fn sections_match_as_the_specification_says() {
        for (section, path, expected) in [
            ("*", "a.c", true),
            ("*", "x/y/a.c", true),
            ("*.c", "x/a.c", true),
            ("*.c", "x/a.cc", false),
            ("/*.c", "a.c", true),
            ("/*.c", "x/a.c", false),
            ("x/*.c", "x/a.c", true),
            ("x/*.c", "x/y/a.c", false),
            ("x/**.c", "x/y/z/a.c", true),
            ("x/**/a.c", "x/a.c", true),
            ("**/a.c", "x/y/a.c", true),
            ("a**z", "a/b/z", true),
            ("a**z", "abcz", true),
            ("?.c", "x/b.c", true),
            ("[ab].c", "b.c", true),
            ("[!ab].c", "b.c", false),
            ("[ab.c", "[ab.c", true),
            ("{a,b}.c", "x/b.c", true),
            ("*.{c,h{,pp}}", "x.hpp", true),
            ("*.{c,h{,pp}}", "x.h", true),
            ("{single}.c", "{single}.c", true),
            ("{single}.c", "single.c", false),
            ("f{1..12}.c", "f11.c", true),
            ("f{1..12}.c", "f13.c", false),
            ("f{1..99999}.c", "f13.c", false),
            ("{a.c", "{a.c", true),
            ("a\\*.c", "a*.c", true),
            ("a\\*.c", "ab.c", false),
            ("größe/*.c", "größe/a.c", true),
            ("{x/a,b}.c", "x/a.c", true),
        ] {
            assert_eq!(matches(section, path), expected, "[{section}] {path}");
        }
    }

    #[test]
    fn the_nearest_file_that_speaks_of_a_path_counts_and_a_root_ends_the_search() {
        let mut tree = EditorConfigs::default();
        tree.set(
            &".editorconfig".into(),
            Some("[*]\ncharset = gbk\n[*.md]\nCharset = UTF-8\n[*.ini]\ncharset=latin1 ; old\n"),
        );
        tree.set(&"old/.editorconfig".into(), Some("[*.txt]\ncharset = windows-1251\n"));
        tree.set(&"new/.editorconfig".into(), Some("root = true\n[*.txt]\nindent_style = tab\n"));
        tree.set(&"odd/.editorconfig".into(), Some("[*.c]\ncharset = unset\n[*.h]\ncharset = klingon\n"));
        let rules = Rules::parse("[[rule]]\nname = 'told'\nmatch = ['told.txt']\ncharset = 'koi8-r'\n")
            .expect("the rules are sound");
        let named = |path: &str| {
            let path = path.into();
            tree.charset(rules.rule(rules.for_path(&path)), &path).map(Charset::name)
        };
        assert_eq!(named("told.txt"), None, "the rule names one");
        assert_eq!(named("a.txt"), Some("GBK"));
        assert_eq!(named("a.md"), None, "the last section that matches");
        assert_eq!(named("x/a.ini"), Some("windows-1252"));
        assert_eq!(named("old/a.txt"), Some("windows-1251"));
        assert_eq!(named("old/a.c"), Some("GBK"), "the nearer file does not speak of it");
        assert_eq!(named("older/a.txt"), Some("GBK"));
        assert_eq!(named("new/a.txt"), None);
        assert_eq!([named("odd/a.c"), named("odd/a.h")], [None, None]);
        assert_eq!(named("old/.editorconfig"), Some("UTF-8"));
    }

    #[test]
    fn a_hostile_file_says_nothing_and_costs_little() {
        let sections = "[a]\ncharset = gbk\n".repeat(MOST_SECTIONS + 1);
        let braces = format!("[{}{}]\ncharset = gbk\n", "{a,".repeat(1_000), "}".repeat(1_000));
        let stars = format!("[{}b]\ncharset = gbk\n", "*a".repeat(2_000));
        let choices = format!("[{}]\ncharset = gbk\n", "{a,aa,aaa}".repeat(400));
        let long = format!("[*]\ncharset = gbk\n{}", "# word\n".repeat(20_000));
        for text in [&sections, &braces, &stars, &choices, &long, "[", "[]\ncharset=gbk", "=\n[*\ncharset = gbk"] {
            let config = EditorConfig::parse(text);
            let path = "a".repeat(4_000);
            assert!(config.charset(path.as_bytes()).is_none_or(|said| said.is_some()));
        }
        assert!(!EditorConfig::parse(&sections).matters() && !EditorConfig::parse(&long).matters());
    }
}

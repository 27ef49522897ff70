//! The meaning of a value of the key `path` in the searched versions.
//!
//! In: the value as typed, in every possible length, and the paths of the versions. Out: a document's path, a folder, or a
//! pattern.
//!
//! **Invariant:** a value that is the path of a document or a folder is literal, whatever characters it contains; any other value
//! is a pattern. Paths and values are compared in composed form (NFC), so the spelling of letters by a keyboard or a disk does
//! not matter.
//!
//! | typed | tried as a path |
//! |---|---|
//! | `app/[slug]/page.tsx` | unchanged |
//! | `./app/`, `app//x` | without `./`, doubled and trailing slashes |
//! | `src\main.rs` | with `/` for `\` |
//! | `/home/a/engine/src` | from the root of the source that was tracked there |

use super::FilterError;
use globset::{Candidate, Glob, GlobMatcher};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Characters that a backslash escapes in a pattern.
const SPECIAL: [char; 9] = ['*', '?', '[', ']', '{', '}', '!', ',', '\\'];

/// The paths that a term matches.
#[derive(Clone, Debug)]
pub(super) enum Paths {
    /// One path, and all below it; everything if it is empty.
    Literal(String),
    /// Paths that match a pattern.
    Matching(GlobMatcher),
}

impl Paths {
    /// Whether a path in composed form matches.
    pub(super) fn has(&self, path: &str) -> bool {
        match self {
            Self::Literal(literal) => {
                let below = path.strip_prefix(literal.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || literal.is_empty())
            }
            Self::Matching(pattern) => pattern.is_match_candidate(&Candidate::new(path)),
        }
    }
}

/// Returns text in composed form.
pub(super) fn composed(text: &str) -> Cow<'_, str> {
    if is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// The possible literal meanings of a value.
#[derive(Default)]
pub(super) struct Spellings {
    /// Each spelling, with whether a document or a folder of that name exists.
    seen: FxHashMap<String, bool>,
}

impl Spellings {
    /// Adds all spellings of a value.
    pub(super) fn add(&mut self, value: &str, roots: &[String]) {
        for spelling in spellings(value, roots) {
            self.seen.entry(spelling).or_default();
        }
    }

    /// Checks a path of the versions, in composed form.
    pub(super) fn look_at(&mut self, path: &str) {
        let folders = path.char_indices().filter(|(_, sign)| *sign == '/').map(|(at, _)| &path[..at]);
        for name in folders.chain([path]) {
            if let Some(seen) = self.seen.get_mut(name) {
                *seen = true;
            }
        }
    }

    /// Returns the document or folder of a value, if there is one.
    pub(super) fn meaning(&self, value: &str, roots: &[String]) -> Option<Paths> {
        let mut spellings = spellings(value, roots).into_iter();
        spellings.find(|spelling| spelling.is_empty() || self.seen.get(spelling) == Some(&true)).map(Paths::Literal)
    }
}

/// Returns the ways in which a value may be a path, the nearest to the typed text first.
fn spellings(value: &str, roots: &[String]) -> Vec<String> {
    let value = composed(value);
    let mut spellings = vec![value.clone().into_owned()];
    for value in [value.clone(), Cow::Owned(value.replace('\\', "/"))] {
        spellings.extend(roots.iter().filter_map(|root| below(root, &value)).map(tidy));
        spellings.push(tidy(&value));
    }
    spellings.dedup();
    // Only an explicit value means everything.
    spellings.retain(|spelling| {
        !spelling.is_empty() || value.chars().all(|sign| sign == '.' || sign == '/') || is_root(&value, roots)
    });
    spellings
}

fn is_root(value: &str, roots: &[String]) -> bool {
    roots.iter().any(|root| below(root, value).is_some_and(|rest| tidy(rest).is_empty()))
}

/// Returns the part of a value below a root.
fn below<'a>(root: &str, value: &'a str) -> Option<&'a str> {
    let rest = value.strip_prefix(root.trim_end_matches('/'))?;
    (root.starts_with('/') && (rest.is_empty() || rest.starts_with('/'))).then_some(rest)
}

/// Returns a path without `.`, doubled slashes, and leading or trailing ones.
fn tidy(value: &str) -> String {
    value.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}

/// Returns the pattern of a value that is no path; `at` is its position in the expression.
pub(super) fn pattern(value: &str, roots: &[String], at: (&str, usize)) -> Result<Paths, FilterError> {
    let value = composed(value);
    let relative = roots.iter().find_map(|root| below(root, &value)).unwrap_or(&value);
    let slashed = with_slashes(relative);
    let mut pattern = tidy(&slashed);
    if slashed.ends_with('/') {
        // A trailing slash means a folder.
        pattern.push_str("/**");
    }
    let glob = Glob::new(&pattern).map_err(|error| FilterError::pattern(at, &error))?;
    Ok(Paths::Matching(glob.compile_matcher()))
}

/// Returns a pattern with `/` for the backslashes that do not escape the next character.
fn with_slashes(value: &str) -> String {
    let mut slashed = String::with_capacity(value.len());
    let mut signs = value.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, signs.peek()) {
            ('\\', Some(next)) if SPECIAL.contains(next) => {
                slashed.push('\\');
                slashed.extend(signs.next());
            }
            ('\\', _) => slashed.push('/'),
            _ => slashed.push(sign),
        }
    }
    slashed
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 10] = [
        "app/[slug]/page.tsx",
        "app/s/page.tsx",
        "app/[[...all]]/page.tsx",
        "{{cookie}}/x.py",
        "my docs/read me.md",
        "src/main.rs",
        "src/odd\\name.rs",
        "src/a*b.rs",
        "docs/Straßenbäume.md",
        "README.md",
    ];

    /// Returns the paths that a value matches.
    fn passing(value: &str) -> Vec<&'static str> {
        let roots = ["/home/a/engine".to_owned()];
        let mut spellings = Spellings::default();
        spellings.add(value, &roots);
        PATHS.iter().for_each(|path| spellings.look_at(path));
        let paths = spellings.meaning(value, &roots).map_or_else(|| pattern(value, &roots, (value, 0)), Ok).unwrap();
        PATHS.into_iter().filter(|path| paths.has(path)).collect()
    }

    #[test]
    fn a_path_means_itself_whatever_signs_are_in_it() {
        for path in PATHS {
            assert_eq!(passing(path), [path]);
            for typed in [format!("./{path}"), format!("/home/a/engine/{path}"), format!("{path}/"), format!("/{path}")]
            {
                assert_eq!(passing(&typed), [path], "{typed}");
            }
            if !path.contains('\\') {
                assert_eq!(passing(&path.replace('/', "\\")), [path]);
            }
            let decomposed: String = path.nfd().collect();
            assert_eq!(passing(&decomposed), [path]);
        }
    }

    #[test]
    fn a_folder_means_all_below_it() {
        for folder in ["app", "app/", "./app", ".\\app\\", "/home/a/engine/app", "app/*", "./app/*", "app/**", "ap*/"] {
            assert_eq!(passing(folder), &PATHS[..3], "{folder}");
        }
        assert_eq!(passing("app/[slug]"), ["app/[slug]/page.tsx"]);
        for everything in [".", "./", "/", "/home/a/engine", "/home/a/engine/", "*"] {
            assert_eq!(passing(everything), PATHS, "{everything}");
        }
        assert_eq!(passing("ap"), [""; 0]);
        assert_eq!(passing("/home/a/engineering"), [""; 0]);
    }

    #[test]
    fn what_is_no_path_is_a_pattern() {
        assert_eq!(passing("app/?/page.tsx"), ["app/s/page.tsx"]);
        assert_eq!(passing("src/*.rs").len(), 3);
        assert_eq!(passing(r"src\*.rs"), [""; 0], "a backslash takes the meaning from a star");
        assert_eq!(passing(r"src/a\*b.*"), ["src/a*b.rs"]);
        assert_eq!(passing("docs/Straßenba\u{308}u*"), ["docs/Straßenbäume.md"]);
        assert_eq!(passing("{README,src/main}.*"), ["src/main.rs", "README.md"]);
    }
}

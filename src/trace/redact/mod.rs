//! Redaction: words and identifiers become pseudonyms of the same shape, so that a trace of private code can be shared.
//!
//! In: contents, paths, names and commits. Out: the same without their words. Each word of a name has one pseudonym in the whole
//! trace, with the same length and case. So equal things stay equal, an edit stays an edit, and code still parses.
//!
//! ```text
//!  WorldQuery::spawn_at(0x1F2E, "Öl")   ──►   QxvtrFmqbd::kwzpe_at(0x9B04, "Qk")
//!  parts: World Query · spawn · (at: two letters, replaced as well) · digits by digits
//! ```
//!
//! **Invariant:** two words have two pseudonyms, and no pseudonym is a word that stays. Public things stay: the keywords and
//! names in `words`, file extensions, single letters and separate numbers of up to two digits, punctuation and layout. A content
//! that is not text is replaced by zeros of the same length. Ids, commits and the names of source and view are hashed or replaced
//! too.
//!
//! It does not hide lengths, layout, word frequencies, neighbourhoods of words, or times. The key is random for each trace and is
//! not stored, so two traces of one source share no pseudonyms.

mod words;

use super::format::{Stored, blob_id};
use dataflows::clean::clean;
use dataflows::data::{ContentId, DocumentPath};
use dataflows::rules::Rules;
use rustc_hash::{FxHashMap, FxHashSet};
use snapshots::CommitId;
use std::io::{self, Read};
use words::{is_kept, kept_ending};

/// Attempts to find a free pseudonym before it may be one letter longer.
const ATTEMPTS: u32 = 64;
/// Numbers of more digits than these are replaced.
const KEPT_DIGITS: usize = 2;
/// Single letters and short numbers stay, unless so many of them form one token.
const SCATTERED: usize = 4;

/// Replaces words; the same word always by the same pseudonym.
pub struct Redactor {
    key: [u8; 32],
    rules: Rules,
    pseudonyms: FxHashMap<Box<str>, Box<str>>,
    used: FxHashSet<Box<str>>,
    paths: FxHashMap<DocumentPath, DocumentPath>,
    used_paths: FxHashSet<DocumentPath>,
    names: FxHashMap<Box<str>, Box<str>>,
    used_names: FxHashSet<Box<str>>,
}

impl Redactor {
    /// Makes a redactor whose pseudonyms follow from `key`.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self {
            key,
            rules: Rules::built_in(),
            pseudonyms: FxHashMap::default(),
            used: FxHashSet::default(),
            paths: FxHashMap::default(),
            used_paths: FxHashSet::default(),
            names: FxHashMap::default(),
            used_names: FxHashSet::default(),
        }
    }

    /// Makes a redactor with a random key that is not stored.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> io::Result<Self> {
        let mut key = [0; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self::new(key))
    }

    /// Returns a content without its words, and the id that it has now.
    pub fn content(&mut self, id: ContentId, stored: Stored) -> (ContentId, Stored) {
        let stored = match stored {
            Stored::Whole(bytes) => {
                let any = DocumentPath::from("a");
                let text = clean(self.rules.rule(self.rules.for_path(&any)), &bytes);
                match text {
                    Ok(text) => Stored::Whole(self.text(&text).into_bytes()),
                    Err(_) => self.nothing(id, bytes.len() as u64),
                }
            }
            Stored::Head(size, _) => self.nothing(id, size),
            Stored::Missing(_) => Stored::Missing("the source did not hold it".to_owned()),
            other => other,
        };
        match &stored {
            Stored::Whole(bytes) => (blob_id(bytes), stored),
            _ => (self.id(id), stored),
        }
    }

    /// Returns the replacement of a content that is not text.
    fn nothing(&self, id: ContentId, size: u64) -> Stored {
        let mut head = vec![0];
        head.extend_from_slice(&self.hash(b"nothing", id.as_bytes())[..16]);
        Stored::Head(size, head)
    }

    /// Returns the new id of a content whose bytes are unknown.
    #[must_use]
    pub fn id(&self, id: ContentId) -> ContentId {
        ContentId::from_bytes(self.twenty(b"content", id.as_bytes()))
    }

    /// Returns the new name of a commit.
    #[must_use]
    pub fn commit(&self, commit: CommitId) -> CommitId {
        CommitId::from_bytes(self.twenty(b"commit", commit.as_bytes()))
    }

    /// Returns the name of a view without its words; two views never get one name.
    pub fn name(&mut self, name: &str) -> String {
        if let Some(known) = self.names.get(name) {
            return known.clone().into();
        }
        let mut redacted = self.text(name);
        // Two numbers of equal length may give the same name.
        while !self.used_names.insert(redacted.as_str().into()) {
            redacted.push('x');
        }
        self.names.insert(name.into(), redacted.as_str().into());
        redacted
    }

    /// Returns a path without its words; file extensions and the names of manifests stay.
    pub fn path(&mut self, path: &DocumentPath) -> DocumentPath {
        if let Some(known) = self.paths.get(path) {
            return known.clone();
        }
        let text = path.display().into_owned();
        let (folder, name) = text.rsplit_once('/').map_or(("", text.as_str()), |(folder, name)| (folder, name));
        let (stem, ending) = kept_ending(name);
        let mut redacted = self.text(folder);
        if !folder.is_empty() {
            redacted.push('/');
        }
        redacted += &self.text(stem);
        // Two paths that are not UTF-8 may give the same path.
        while !self.used_paths.insert(DocumentPath::from(format!("{redacted}{ending}").as_str())) {
            redacted.push('x');
        }
        let redacted = DocumentPath::from(format!("{redacted}{ending}").as_str());
        self.paths.insert(path.clone(), redacted.clone());
        redacted
    }

    /// Returns a text without its words.
    pub fn text(&mut self, text: &str) -> String {
        let mut redacted = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if !is_word(first) {
                redacted.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            let (token, behind) = rest.split_at(end);
            self.token(token, &mut redacted);
            rest = behind;
        }
        redacted
    }

    /// Replaces the words of one identifier, word or number.
    fn token(&mut self, token: &str, out: &mut String) {
        if is_kept(token) {
            out.push_str(token);
            return;
        }
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number(token, out);
        }
        let characters: Vec<char> = token.chars().collect();
        if is_scattered(&characters) {
            return self.scattered(&characters, token, out);
        }
        let mut at = 0;
        while at < characters.len() {
            let end = part_end(&characters, at);
            let part = &characters[at..end];
            match part[0] {
                '_' => out.push('_'),
                c if c.is_numeric() => self.digits(part, out),
                _ => self.part(part, out),
            }
            at = end;
        }
    }

    /// Replaces a token that begins with a digit: digits by digits, in any base, and the rest as words.
    fn number(&mut self, token: &str, out: &mut String) {
        let (prefix, body) = match token.get(..2) {
            Some(prefix @ ("0x" | "0X" | "0b" | "0o")) => token.split_at(prefix.len()),
            _ => ("", token),
        };
        let is_hex = prefix.eq_ignore_ascii_case("0x");
        if is_hex && body.chars().all(|c| c.is_ascii_hexdigit() || c == '_') || prefix == "0b" {
            out.push_str(prefix);
            let stream = self.hash(b"number", token.as_bytes());
            for (at, c) in body.chars().enumerate() {
                let byte = stream[at % stream.len()];
                out.push(match c {
                    '0' | '1' if prefix == "0b" => char::from(b'0' + byte % 2),
                    '0'..='9' => char::from(b'0' + byte % 10),
                    'a'..='f' => char::from(b'a' + byte % 6),
                    'A'..='F' => char::from(b'A' + byte % 6),
                    _ => '_',
                });
            }
            return;
        }
        let digits = token.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(token.len());
        let (digits, ending) = token.split_at(digits);
        self.digits(&digits.chars().collect::<Vec<_>>(), out);
        if is_kept(ending) || ending.chars().count() < 2 {
            out.push_str(ending);
        } else {
            self.token(ending, out);
        }
    }

    /// Replaces a token that is not a word: letters by letters, digits by digits.
    fn scattered(&mut self, characters: &[char], token: &str, out: &mut String) {
        let pseudonym = self.pseudonym(&token.to_lowercase(), characters.len());
        for (c, letter) in characters.iter().zip(pseudonym.chars()) {
            out.push(match c {
                '_' => '_',
                c if c.is_numeric() => char::from(b'0' + letter as u8 % 10),
                c if c.is_uppercase() => letter.to_ascii_uppercase(),
                _ => letter,
            });
        }
    }

    fn digits(&self, digits: &[char], out: &mut String) {
        let number: String = digits.iter().collect();
        if digits.len() <= KEPT_DIGITS {
            out.push_str(&number);
            return;
        }
        let stream = self.hash(b"number", number.as_bytes());
        for (at, c) in digits.iter().enumerate() {
            out.push(if *c == '_' { '_' } else { char::from(b'0' + stream[at % stream.len()] % 10) });
        }
    }

    /// Replaces one word, in its case.
    fn part(&mut self, part: &[char], out: &mut String) {
        if part.len() == 1 && part[0].is_ascii() {
            out.push(part[0]);
            return;
        }
        let word: String = part.iter().flat_map(|c| c.to_lowercase()).collect();
        let pseudonym = self.pseudonym(&word, part.len());
        let last = part[part.len() - 1].is_uppercase();
        let cases = part.iter().map(|c| c.is_uppercase()).chain(std::iter::repeat(last));
        out.extend(pseudonym.chars().zip(cases).map(|(c, upper)| if upper { c.to_ascii_uppercase() } else { c }));
    }

    /// Returns the pseudonym of a word in lower case, a new one the first time.
    fn pseudonym(&mut self, word: &str, length: usize) -> Box<str> {
        if let Some(known) = self.pseudonyms.get(word) {
            return known.clone();
        }
        let is_wide = word.chars().all(is_ideographic);
        let mut attempt = 0_u32;
        let found: Box<str> = loop {
            let mut stream = blake3::Hasher::new_keyed(&self.key);
            stream.update(b"word").update(&attempt.to_le_bytes()).update(word.as_bytes());
            let mut stream = stream.finalize_xof();
            let longer = (attempt / ATTEMPTS) as usize;
            let mut bytes = vec![0; 2 * (length + longer)];
            stream.fill(&mut bytes);
            let letter = |pair: &[u8]| {
                let number = u32::from(pair[0]) << 8 | u32::from(pair[1]);
                if is_wide { wide(number) } else { char::from(b'a' + (number % 26) as u8) }
            };
            let candidate: String = bytes.chunks_exact(2).map(letter).collect();
            if candidate != word && !is_kept(&candidate) && self.used.insert(candidate.as_str().into()) {
                break candidate.into();
            }
            attempt += 1;
        };
        self.pseudonyms.insert(word.into(), found.clone());
        found
    }

    fn twenty(&self, what: &[u8], bytes: &[u8]) -> [u8; 20] {
        let hash = self.hash(what, bytes);
        std::array::from_fn(|at| hash[at])
    }

    fn hash(&self, what: &[u8], bytes: &[u8]) -> [u8; 32] {
        *blake3::Hasher::new_keyed(&self.key).update(what).update(bytes).finalize().as_bytes()
    }
}

/// Whether a token of some length consists only of single letters and short numbers, which would all stay: a key, a hash, letters
/// with separators.
fn is_scattered(characters: &[char]) -> bool {
    let mut at = 0;
    while at < characters.len() {
        let end = part_end(characters, at);
        let most = if characters[at].is_numeric() { KEPT_DIGITS } else { 1 };
        if end - at > most || !(characters[at] == '_' || characters[at].is_ascii_alphanumeric()) {
            return false;
        }
        at = end;
    }
    characters.iter().filter(|c| **c != '_').count() >= SCATTERED
}

/// Returns where the part of an identifier that begins at `at` ends: `Http` · `Server` · `_` · `2`; an ideograph is a part.
fn part_end(characters: &[char], at: usize) -> usize {
    let first = characters[at];
    if first == '_' || is_ideographic(first) {
        return at + 1;
    }
    let mut end = at + 1;
    let is_letter = |c: char| c.is_alphabetic() && !is_ideographic(c);
    if first.is_numeric() {
        while end < characters.len() && characters[end].is_numeric() {
            end += 1;
        }
        return end;
    }
    while end < characters.len() && is_letter(characters[end]) {
        let (before, here) = (characters[end - 1], characters[end]);
        let next_is_lower = characters.get(end + 1).is_some_and(|next| next.is_lowercase());
        if here.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_lower)) {
            break;
        }
        end += 1;
    }
    end
}

/// Characters that are words by themselves: ideographs, kana, Hangul syllables.
fn is_ideographic(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Returns one of the unified ideographs.
fn wide(number: u32) -> char {
    char::from_u32(0x4e00 + number % 0x5000).unwrap_or('\u{4e00}')
}

#[cfg(test)]
mod tests;

//! Parses a query into the clauses that are scored.
//!
//! In: a query as typed. Out: clauses, any of which may match: terms, and phrases in `"quotes"`.
//!
//! **Invariant:** two queries with the same clauses are equal, whatever their order and repetition: clauses are a sorted set, and
//! scores are added in that order, because a floating-point sum depends on it. The work is bounded: [`MAX_TERMS`] distinct terms;
//! dropped ones are counted.
//!
//! A phrase requires all tokens of its words at their positions, whole identifiers too: `"spawn_camera"` finds exactly that
//! spelling, `"spawn camera"` finds `SpawnCamera` as well. An unclosed quote is no quote. There is no other syntax, no fuzziness
//! and no prefix: the analyzer alone decides what a query asks for.

use super::analyzer::{border_up_to, for_each_token};
use super::schema::Fields;
use rustc_hash::{FxHashSet, FxHasher};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use tantivy::Term;

/// Most distinct terms of a query, the first by appearance; the rest is dropped.
pub const MAX_TERMS: usize = 64;
/// The weight of a match in the name relative to one in the text. To be chosen by measurement (retrieval bench).
pub const NAME_BOOST: f32 = 0.5;
/// Most clauses of a query: each term is one, and so is each phrase.
const MAX_CLAUSES: usize = 2 * MAX_TERMS;
/// Most bytes of a query that are read: analysing them takes some 20 ms.
pub const MAX_QUERY_BYTES: usize = 1 << 20;

/// Tokens at their positions, counted from the first; one token is a term, several are a phrase.
type Clause = Vec<(u32, String)>;

/// A query, analysed.
///
/// ```
/// use tidemill::index::lexical::LexicalQuery;
/// assert_eq!(LexicalQuery::parse("camera spawn Cameras"), LexicalQuery::parse("spawn camera"));
/// assert!(LexicalQuery::parse("?!").is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LexicalQuery {
    clauses: BTreeSet<Clause>,
}

impl LexicalQuery {
    /// Analyses a query as typed.
    #[must_use]
    pub fn parse(typed: &str) -> Self {
        Asked::read(typed).query
    }

    /// Returns whether the query is empty, so that nothing matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    /// Returns the distinct terms in order, including those of phrases: the terms to highlight in a hit.
    #[must_use]
    pub fn terms(&self) -> Vec<&str> {
        let terms: BTreeSet<&str> = self.clauses.iter().flatten().map(|(_, token)| token.as_str()).collect();
        terms.into_iter().collect()
    }

    /// Returns the query for entries that hold any of the terms, in a phrase or not.
    #[must_use]
    pub fn without_phrases(&self) -> Self {
        Self { clauses: self.clauses.iter().flatten().map(|(_, token)| vec![(0, token.clone())]).collect() }
    }

    /// Returns the terms of each clause in the name alone, as [`Self::over`] does.
    pub(super) fn over_name(&self, fields: &Fields) -> impl Iterator<Item = (Vec<(usize, Term)>, f32)> {
        let [_, name] = fields.texts;
        let term = move |(place, token): &(u32, String)| (*place as usize, Term::from_field_text(name, token));
        self.clauses.iter().map(move |clause| (clause.iter().map(term).collect(), 1.0))
    }

    /// Returns the terms of each clause in each field, with the field's weight, in the order in which scores are added.
    pub(super) fn over(&self, fields: &Fields) -> impl Iterator<Item = (Vec<(usize, Term)>, f32)> {
        let [text, name] = fields.texts;
        [(text, 1.0), (name, NAME_BOOST)].into_iter().flat_map(move |(field, boost)| {
            let term = move |(place, token): &(u32, String)| (*place as usize, Term::from_field_text(field, token));
            self.clauses.iter().map(move |clause| (clause.iter().map(term).collect(), boost))
        })
    }
}

/// A query, with data for the user about it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The query.
    pub query: LexicalQuery,
    /// Its words, each once, in order of appearance.
    pub words: Vec<AskedWord>,
    /// How many distinct terms were dropped because a query may have only so many.
    pub dropped_terms: usize,
}

/// A word of a query as typed, and its terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedWord {
    /// The word as typed.
    pub typed: String,
    /// Its terms; an entry with one of them matches a part of the word.
    pub terms: Vec<String>,
}

impl Asked {
    /// Analyses a query as typed.
    #[must_use]
    pub fn read(typed: &str) -> Self {
        let mut rest = &typed[..border_up_to(typed, MAX_QUERY_BYTES)];
        let mut reading = Reading::default();
        while !rest.is_empty() {
            let quoted = rest.split_once('"').and_then(|(before, behind)| {
                let (phrase, after) = behind.split_once('"')?;
                Some((before, phrase, after))
            });
            let Some((before, phrase, after)) = quoted else { break };
            reading.terms(before);
            reading.phrase(phrase);
            rest = after;
        }
        reading.terms(rest);
        let Reading { clauses, words, dropped, .. } = reading;
        Self { query: LexicalQuery { clauses }, words, dropped_terms: dropped.len() }
    }
}

/// A partly read query: its clauses, and the terms that count towards the limit.
#[derive(Default)]
struct Reading {
    clauses: BTreeSet<Clause>,
    terms: FxHashSet<String>,
    words: Vec<AskedWord>,
    /// Hashes of the terms that were not admitted.
    dropped: FxHashSet<u64>,
}

impl Reading {
    /// Returns whether `token` may be part of the query.
    fn admits(&mut self, token: &str) -> bool {
        let admitted =
            self.terms.contains(token) || (self.terms.len() < MAX_TERMS && self.terms.insert(token.to_owned()));
        if !admitted {
            let mut hasher = FxHasher::default();
            token.hash(&mut hasher);
            self.dropped.insert(hasher.finish());
        }
        admitted
    }

    /// Calls `look` with each admitted token and its position, and notes the words of the tokens.
    fn read(&mut self, text: &str, mut look: impl FnMut(&mut Self, &str, u32)) {
        let mut open: Option<(Range<usize>, Vec<String>)> = None;
        for_each_token(text, |token, position, offsets| {
            if !self.admits(token) {
                return;
            }
            look(self, token, position);
            match &mut open {
                // Parts are within their name; pairs of characters overlap.
                Some((word, terms)) if offsets.start < word.end => {
                    word.end = word.end.max(offsets.end);
                    terms.push(token.to_owned());
                }
                _ => {
                    let before = open.replace((offsets, vec![token.to_owned()]));
                    self.note(text, before);
                }
            }
        });
        self.note(text, open);
    }

    fn note(&mut self, text: &str, word: Option<(Range<usize>, Vec<String>)>) {
        let Some((typed, terms)) = word.filter(|(_, terms)| self.words.iter().all(|known| known.terms != *terms))
        else {
            return;
        };
        let typed = text.get(typed).unwrap_or(&terms[0]).to_owned();
        self.words.push(AskedWord { typed, terms });
    }

    fn ask(&mut self, clause: Clause) {
        if self.clauses.len() < MAX_CLAUSES {
            self.clauses.insert(clause);
        }
    }

    fn terms(&mut self, text: &str) {
        self.read(text, |reading, token, _| reading.ask(vec![(0, token.to_owned())]));
    }

    /// Adds one phrase; if the limit cuts it short, the rest of it is used.
    fn phrase(&mut self, text: &str) {
        let mut clause = Clause::new();
        self.read(text, |_, token, position| {
            // A phrase may repeat a few terms without end, and each repetition costs work.
            if clause.len() < MAX_TERMS {
                clause.push((position, token.to_owned()));
            }
        });
        if let [(place, _)] = clause.as_mut_slice() {
            *place = 0;
        }
        // The canonical order of tokens at one position.
        clause.sort_unstable();
        clause.dedup();
        if !clause.is_empty() {
            self.ask(clause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: &[&[(u32, &str)]]) {
        let query = LexicalQuery::parse(typed);
        let clauses: Vec<Vec<(u32, &str)>> = query
            .clauses
            .iter()
            .map(|clause| clause.iter().map(|(place, token)| (*place, token.as_str())).collect())
            .collect();
        assert_eq!(clauses, expected, "parsed {typed:?}");
    }

    #[test]
    fn clauses_are_a_sorted_set() {
        check("spawn camera, Cameras", &[&[(0, "camera")], &[(0, "spawn")]]);
        check("", &[]);
        check("\"\" !", &[]);
    }

    #[test]
    fn quotes_make_phrases() {
        check("\"spawn camera\" now", &[&[(0, "now")], &[(0, "spawn"), (1, "camera")]]);
        check("\"spawn_camera\"", &[&[(0, "spawn"), (0, "spawn_camera"), (1, "camera")]]);
        check("\"camera\" camera", &[&[(0, "camera")]]);
        check("5\" screen", &[&[(0, "5")], &[(0, "screen")]]);
        check("\"a b\" \"c", &[&[(0, "a"), (1, "b")], &[(0, "c")]]);
    }

    #[test]
    fn work_is_bounded() {
        let many: String = (0..1000).map(|number| format!("term{number} ")).collect();
        assert_eq!(LexicalQuery::parse(&many).terms().len(), MAX_TERMS);
        let phrase = format!("\"{}\"", "a b ".repeat(1 << 18));
        assert_eq!(LexicalQuery::parse(&phrase).terms(), ["a", "b"]);
        let closed = format!("\"{}\"", "a b ".repeat(1000));
        let clauses = LexicalQuery::parse(&closed).clauses;
        assert_eq!(clauses.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_TERMS]);
        assert!(LexicalQuery::parse(&"é".repeat(1 << 20)).terms().len() == 1);
        let few = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let phrases: String = few.iter().flat_map(|left| few.map(|right| format!("\"{left} {right}\" "))).collect();
        assert_eq!(LexicalQuery::parse(&phrases).clauses.len(), MAX_CLAUSES);
    }

    #[test]
    fn terms_that_are_left_out_are_counted_once_each() {
        let many: String = (0..100).map(|number| format!("q{}q ", letters(number)).repeat(2)).collect();
        let asked = Asked::read(&many);
        assert_eq!((asked.words.len(), asked.dropped_terms), (MAX_TERMS, 100 - MAX_TERMS));
        assert_eq!(Asked::read("spawn camera").dropped_terms, 0);
    }

    /// Spells a number in letters, which are one part.
    fn letters(number: usize) -> String {
        number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
    }

    #[test]
    fn words_are_told_as_they_were_typed() {
        let words = |typed: &str| -> Vec<(String, Vec<String>)> {
            Asked::read(typed).words.into_iter().map(|word| (word.typed, word.terms)).collect()
        };
        let word = |typed: &str, terms: &[&str]| {
            (typed.to_owned(), terms.iter().map(|&term| term.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            words("how SpawnCameras \"渲染器 Cameras\" camera"),
            [
                word("how", &["how"]),
                word("SpawnCameras", &["spawncameras", "spawn", "camera"]),
                word("渲染器", &["渲染", "染器"]),
                word("Cameras", &["camera"]),
            ]
        );
    }

    #[test]
    fn the_first_terms_stay() {
        let many: String = (0..100).map(|number| format!("q{number:02}q ")).collect();
        let query = LexicalQuery::parse(&many);
        let expected = LexicalQuery::parse(&many[..many.find("q22q").expect("it is there")]);
        assert!(query.terms().len() == MAX_TERMS && expected.terms().iter().all(|term| query.terms().contains(term)));
    }
}

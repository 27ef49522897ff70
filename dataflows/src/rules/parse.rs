//! Parses `[[rule]]` tables and checks them.
//!
//! In: a rule file in TOML. Out: rules in the order of the file, or an error that names the rule and the key.
//!
//! **Invariant:** every resulting rule can run: its values are known, its sizes are in bounds, its grammar exists. An unknown key
//! is an error, so that a misspelt one is not silently ignored.

use super::rule::{Cutting, Rule};
use super::version::GRAMMARS;
use crate::data::{Charset, ChunkKind};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Lower bound of `whole_up_to`: below it the cutting has no room to look for a good border.
const SMALLEST_WHOLE: usize = 200;

/// Upper bound of `whole_up_to`; see `chunk::cut::HARD_CAP`.
pub(crate) const LARGEST_WHOLE: usize = 4_000;

/// The default size limit of a document: 1 MiB.
const DEFAULT_MAX_BYTES: u64 = 1 << 20;

/// The parser's offsets are `u32`, and the tree of a text takes many times its size.
const LARGEST_MAX_BYTES: u64 = 256 << 20;

/// Reason why a rule file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The file is not TOML, or a key is unknown or of the wrong type.
    #[error("cannot read the rules; each rule is a [[rule]] table, see dataflows/pipelines/built-in.toml for the keys")]
    Syntax(#[source] Box<toml::de::Error>),
    /// The value of a key is unknown.
    #[error("rule `{rule}`: {key} cannot be `{value}`; use {expected}")]
    Value {
        /// The name of the rule.
        rule: String,
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The allowed values.
        expected: String,
    },
    /// A pattern is no glob.
    #[error("rule `{rule}`: `{glob}` is not a glob; `*` stays inside a folder, `**` crosses folders")]
    Glob {
        /// The name of the rule.
        rule: String,
        /// The pattern.
        glob: String,
        /// The error.
        #[source]
        source: globset::Error,
    },
    /// Each pattern is valid, but together they are too large.
    #[error("the patterns of the rules are too large together; use fewer or simpler ones")]
    Globs(#[source] globset::Error),
    /// More rules than a rule's number can count.
    #[error("there are {0} rules, and at most 65,535 can be told apart; join some of them")]
    TooMany(usize),
}

/// A rule file as parsed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<RuleTable>,
}

/// One `[[rule]]` as parsed.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    name: String,
    #[serde(rename = "match")]
    globs: Vec<String>,
    like: Option<String>,
    kind: Option<String>,
    language: Option<String>,
    cleaner: Option<String>,
    chunker: Option<String>,
    whole_up_to: Option<usize>,
    max_bytes: Option<u64>,
    charset: Option<String>,
    exclude: Option<bool>,
    labels: Option<BTreeMap<String, String>>,
}

/// Returns the rules of one file, in order; `known` are rules that `like` may name besides the earlier ones.
pub(super) fn parse(text: &str, known: &[Rule]) -> Result<Vec<Rule>, RuleError> {
    let file: RuleFile = toml::from_str(text).map_err(|error| RuleError::Syntax(Box::new(error)))?;
    let mut rules: Vec<Rule> = Vec::with_capacity(file.rule.len());
    for table in file.rule {
        let rule = check(table, &rules, known)?;
        rules.push(rule);
    }
    Ok(rules)
}

fn check(table: RuleTable, before: &[Rule], known: &[Rule]) -> Result<Rule, RuleError> {
    let wrong = |key: &'static str, value: &str, expected: &str| RuleError::Value {
        rule: table.name.clone(),
        key,
        value: value.to_owned(),
        expected: expected.to_owned(),
    };
    let base = match &table.like {
        None => None,
        Some(name) => Some(
            before
                .iter()
                .chain(known)
                .find(|rule| rule.name == *name)
                .ok_or_else(|| wrong("like", name, "the name of a rule in front of it, or of a built-in one"))?,
        ),
    };
    if table.globs.is_empty() {
        return Err(wrong("match", "[]", "one glob or more"));
    }
    let kind = match &table.kind {
        None => base.map_or(ChunkKind::Text, |base| base.kind),
        Some(word) => [ChunkKind::Code, ChunkKind::Document, ChunkKind::Data, ChunkKind::Text]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| wrong("kind", word, "code, document, data or text"))?,
    };
    if let Some(word) = table.cleaner.as_deref().filter(|word| *word != "plain") {
        return Err(wrong("cleaner", word, "plain"));
    }
    let cutting = match &table.chunker {
        None => base.map_or(Cutting::Paragraph, |base| base.cutting),
        Some(word) => {
            Cutting::from_word(word).ok_or_else(|| wrong("chunker", word, "syntax, heading, paragraph or line"))?
        }
    };
    let language = match &table.language {
        None => base.map_or_else(String::new, |base| base.language.clone()),
        Some(language) => language.clone(),
    };
    if cutting == Cutting::Syntax && !GRAMMARS.iter().any(|grammar| grammar.0 == language) {
        let names = GRAMMARS.map(|grammar| grammar.0).join(", ");
        return Err(wrong(
            "language",
            &language,
            &format!("one that `syntax` has a grammar for ({names}), or chunker = \"line\""),
        ));
    }
    let inherited = base.filter(|base| base.cutting == cutting).map(|base| base.whole_up_to);
    let whole_up_to = table.whole_up_to.or(inherited).unwrap_or(cutting.default_whole_up_to());
    if !(SMALLEST_WHOLE..=LARGEST_WHOLE).contains(&whole_up_to) {
        return Err(wrong("whole_up_to", &whole_up_to.to_string(), "a number of bytes between 200 and 4000"));
    }
    let max_bytes = table.max_bytes.or(base.map(|base| base.max_bytes)).unwrap_or(DEFAULT_MAX_BYTES);
    if max_bytes > LARGEST_MAX_BYTES {
        return Err(wrong("max_bytes", &max_bytes.to_string(), "at most 268435456 bytes (256 MiB)"));
    }
    let charset =
        match &table.charset {
            None => base.and_then(|base| base.charset),
            Some(label) => {
                let known = Charset::from_label(label);
                Some(known.ok_or_else(|| {
                    wrong("charset", label, "a name of the Encoding Standard, as gbk or windows-1252")
                })?)
            }
        };
    let labels = match &table.labels {
        None => base.map_or_else(Vec::new, |base| base.labels.clone()),
        Some(labels) => labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    };
    let excluded = table.exclude.or(base.map(|base| base.excluded)).unwrap_or(false);
    Ok(Rule {
        name: table.name,
        globs: table.globs,
        kind,
        language,
        cutting,
        whole_up_to,
        max_bytes,
        charset,
        excluded,
        takes_in: table.exclude == Some(false),
        labels,
    })
}

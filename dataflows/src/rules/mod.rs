//! The rules: from a path to what is done with the file.
//!
//! In: TOML that people edit. Out: for every path one rule, which says how its files are cleaned, cut and labelled.
//!
//! **Invariant:** [`Rules::for_path`] is total and depends on the path's bytes alone; the first rule that matches wins,
//! rules of one's own stand in front of the built-in ones, and the last built-in one matches every path. Equal
//! fingerprints mean that every path and content comes out alike. Rules are values: reading files and noticing that they
//! changed is left to others.

mod editorconfig;
mod parse;
mod rule;
#[cfg(test)]
mod tests;
mod version;

pub use editorconfig::{EditorConfig, EditorConfigs, is_editorconfig};
pub(crate) use editorconfig::{LEVELS, charset_of};
pub(crate) use parse::LARGEST_WHOLE;
pub use parse::RuleError;
pub(crate) use rule::Cutting;
pub use rule::Rule;
pub(crate) use version::GRAMMARS;

use crate::data::{Document, DocumentId, DocumentPath, Fingerprint, Hasher};
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

/// The rules that hold without a configuration.
const BUILT_IN: &str = include_str!("../../pipelines/built-in.toml");

/// Names a rule by its place among the rules it was read with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RuleId(u16);

impl RuleId {
    /// Returns the rule's place, counted from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every rule, in the order in which they are tried.
///
/// ```
/// use dataflows::rules::Rules;
/// let rules = Rules::parse(r#"
///     [[rule]]
///     name = "generated"
///     match = ["gen/**"]
///     exclude = true
/// "#)?;
/// assert!(rules.rule(rules.for_path(&"gen/bindings.rs".into())).excluded());
/// assert_eq!(rules.rule(rules.for_path(&"src/lib.rs".into())).chunker(), "syntax");
/// # Ok::<(), dataflows::rules::RuleError>(())
/// ```
pub struct Rules {
    rules: Vec<Rule>,
    globs: GlobSet,
    /// For each glob the rule it belongs to; ascending, so the first glob that matches belongs to the first rule.
    owners: Vec<RuleId>,
    fingerprint: Fingerprint,
}

impl Rules {
    /// Returns the ids of all rules, in the order in which they are tried.
    pub fn ids(&self) -> impl Iterator<Item = RuleId> + use<> {
        (0..u16::try_from(self.rules.len()).unwrap_or(u16::MAX)).map(RuleId)
    }

    /// Returns the rules that hold without a configuration.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse("").expect("the built-in rules are read by a test of this module")
    }

    /// Returns the rules of `toml`, in front of the built-in ones.
    ///
    /// # Errors
    ///
    /// When the text is no rule file, a value stands for nothing, or a pattern is no glob.
    pub fn parse(toml: &str) -> Result<Self, RuleError> {
        let built_in = parse::parse(BUILT_IN, &[])?;
        let mut rules = parse::parse(toml, &built_in)?;
        rules.extend(built_in);
        if rules.len() > usize::from(u16::MAX) {
            return Err(RuleError::TooMany(rules.len()));
        }
        let mut globs = GlobSetBuilder::new();
        let mut owners = Vec::new();
        for (id, rule) in (0..).map(RuleId).zip(&rules) {
            for pattern in &rule.globs {
                let glob = GlobBuilder::new(pattern).literal_separator(true).case_insensitive(true).build();
                globs.add(glob.map_err(|source| RuleError::Glob {
                    rule: rule.name.clone(),
                    glob: pattern.clone(),
                    source,
                })?);
                owners.push(id);
            }
        }
        let fingerprint = fingerprint(&rules);
        Ok(Self { rules, globs: globs.build().map_err(RuleError::Globs)?, owners, fingerprint })
    }

    /// Returns the fingerprint of everything in the rules, and behind them, that can change an entry.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the rule for `path`; every path has one.
    #[must_use]
    pub fn for_path(&self, path: &DocumentPath) -> RuleId {
        let matching = self.globs.matches_candidate(&Candidate::from_bytes(path.as_bytes()));
        match matching.into_iter().min() {
            Some(glob) => self.owners[glob],
            None => self.last(),
        }
    }

    /// Returns what `id` stands for; an id that other rules gave stands for plain text.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> &Rule {
        self.rules.get(usize::from(id.0)).unwrap_or(&self.rules[usize::from(self.last().0)])
    }

    /// Says whether the rule for `path` says `exclude = false`: what is left out without a rule, as backups of editors are, is a file
    /// then.
    #[must_use]
    pub fn takes_in(&self, path: &DocumentPath) -> bool {
        self.rule(self.for_path(path)).takes_in
    }

    /// Returns the name of a document's content under the rule for its path: what cleaning made of it is remembered by that.
    #[must_use]
    pub fn document_id(&self, document: &Document) -> DocumentId {
        self.rule(self.for_path(&document.path)).document_id(document.content, document.charset)
    }

    fn last(&self) -> RuleId {
        let last = u16::try_from(self.rules.len() - 1).expect("parse refuses more rules than a u16 counts");
        RuleId(last)
    }
}

fn fingerprint(rules: &[Rule]) -> Fingerprint {
    let mut hasher = Hasher::new("rules")
        .part(&version::MANIFEST_VERSION.to_le_bytes())
        .part(&version::EDITORCONFIG_VERSION.to_le_bytes());
    for rule in rules {
        // The count in front keeps ("a", ["b"]) and (["a", "b"]) apart.
        hasher = hasher.part(rule.name.as_bytes()).part(&(rule.globs.len() as u64).to_le_bytes());
        for glob in &rule.globs {
            hasher = hasher.part(glob.as_bytes());
        }
        hasher = hasher
            .part(&rule.cleaning_fingerprint().to_bytes())
            .part(&rule.cutting_fingerprint().to_bytes())
            .part(&(rule.labels.len() as u64).to_le_bytes());
        for (label, value) in &rule.labels {
            hasher = hasher.part(label.as_bytes()).part(value.as_bytes());
        }
    }
    Fingerprint::from_words(hasher.finish())
}

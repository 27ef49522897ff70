//! The rules: they map a path to the treatment of its file.
//!
//! In: TOML that users write. Out: for every path one rule, which says how its files are cleaned, cut and labelled.
//!
//! **Invariant:** [`Rules::for_path`] is total and depends on the path's bytes alone. The first rule that matches applies; a
//! user's rules come before the built-in ones, and the last built-in one matches every path. Equal fingerprints mean equal
//! results for every path and content. Rules are values: the product reads the files and notices their changes.

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

/// The rules of an empty configuration.
const BUILT_IN: &str = include_str!("../../pipelines/built-in.toml");

/// Identifies a rule by its position among the rules it was parsed with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RuleId(u16);

impl RuleId {
    /// Returns the rule's position, counted from 0.
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
    /// For each glob its rule; ascending, so the first glob that matches belongs to the first rule.
    owners: Vec<RuleId>,
    fingerprint: Fingerprint,
}

impl Rules {
    /// Returns the ids of all rules, in the order in which they are tried.
    pub fn ids(&self) -> impl Iterator<Item = RuleId> + use<> {
        (0..u16::try_from(self.rules.len()).unwrap_or(u16::MAX)).map(RuleId)
    }

    /// Returns the rules of an empty configuration.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse("").expect("the built-in rules are read by a test of this module")
    }

    /// Returns the rules of `toml`, followed by the built-in ones.
    ///
    /// # Errors
    ///
    /// If the text is no rule file, a value is unknown, or a pattern is no glob.
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

    /// Returns the fingerprint of everything in the rules, and of the code behind them, that can change an entry.
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

    /// Returns the rule of `id`; an id of other rules gives plain text.
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
        // The count at the front keeps ("a", ["b"]) and (["a", "b"]) apart.
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

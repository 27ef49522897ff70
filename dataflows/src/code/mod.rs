//! What code says about itself: its items and their names, and the modules that manifests name.
//!
//! In: a cleaned text in a language with a grammar, or a manifest. Out: marks where items start, and module names.
//!
//! **Invariant:** marks are in order, each at the start of a line, and a function of the text alone: the budget of the
//! parser counts its steps and not its time. Text without marks is no error: whoever cuts covers it all the same.
//!
//! ```text
//!  language: which grammar, one parser a thread, its budget   mask: macros that no grammar knows
//!      └► item: walks the containers ── syntax of each language in rust, c_family, python
//!                    └► symbol: qualified names and one-line declarations
//! ```

mod c_family;
mod item;
mod language;
mod manifest;
mod mask;
mod python;
mod rust;
mod symbol;
#[cfg(test)]
mod tests;

pub use manifest::{is_manifest, module_name};

/// What a mark stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rank {
    /// An item with a name of its own: a function, a type, a macro.
    Item,
    /// The opening of a type whose members follow.
    Header,
    /// Something small: an import, a constant, a field, a statement.
    Minor,
}

/// Where something starts in a text, comments and attributes in front of it included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// The start of its first line.
    pub(crate) start: usize,
    /// Whether it deserves a chunk.
    pub(crate) rank: Rank,
    /// The qualified name of what it is part of, or empty.
    pub(crate) owner: String,
    /// Its own qualified name, or empty.
    pub(crate) symbol: String,
    /// Its declaration on one line, or empty.
    pub(crate) name: String,
}

/// Returns the marks of `text`, or nothing if `language` has no grammar or the parser's budget is spent.
pub(crate) fn outline(language: &str, text: &str) -> Option<Vec<Mark>> {
    let grammar = language::Grammar::named(language)?;
    let masked = mask::mask(grammar, text);
    let tree = language::parse(grammar, &masked)?;
    Some(item::marks(grammar, text, &tree))
}

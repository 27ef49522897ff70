//! Items of code and their names, and the module names in manifests.
//!
//! In: a cleaned text in a language with a grammar, or a manifest. Out: marks where items start, and module names.
//!
//! **Invariant:** marks are in order, each at the start of a line, and a function of the text alone: budgets are counts and no
//! times. Text without marks is no error: the cutter covers it all the same.
//!
//! The parsers are written in C, and a text may crash one. So they are behind [`Outliner`]: a tracker provides one that parses in
//! worker processes; tests and the reference use [`InProcess`]. Both give the same marks.
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
mod outline;
mod python;
mod rust;
mod symbol;
#[cfg(test)]
mod tests;

pub use manifest::{is_manifest, module_name};
pub use outline::{InProcess, Outline, OutlineError, Outliner, PARSER_STACK, outline};

use serde::{Deserialize, Serialize};

/// The kind of a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Rank {
    /// An item with a name: a function, a type, a macro.
    Item,
    /// The start of a type whose members follow.
    Header,
    /// Something small: an import, a constant, a field, a statement.
    Minor,
}

/// The start of an item in a text, including its comments and attributes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// The start of its first line.
    pub start: usize,
    /// Whether it gets a chunk.
    pub rank: Rank,
    /// The qualified name of its owner, or empty.
    pub owner: String,
    /// Its own qualified name, or empty.
    pub symbol: String,
    /// Its declaration on one line, or empty.
    pub name: String,
}

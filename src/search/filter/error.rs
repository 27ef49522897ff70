//! What is wrong with an expression of `--where`, and where.
//!
//! In: an expression, and a place in it. Out: one line that names the column, counted in characters from 1.

use dataflows::data::ChunkKind;

/// So many characters of what is wrong are shown.
const SHOWN: usize = 40;

/// What is wrong with an expression.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// It cannot be read.
    #[error("cannot read --where at column {column}, `{found}`: {reason}")]
    Syntax {
        /// Where, in characters from 1.
        column: usize,
        /// What stands there.
        found: String,
        /// What is wrong with it, and what is expected.
        reason: String,
    },
    /// Too many terms.
    #[error("--where has more than {most} terms; use wider patterns")]
    TooLong {
        /// How many there may be.
        most: usize,
    },
}

impl FilterError {
    /// Says what is wrong at a byte of an expression.
    pub(super) fn at(expression: &str, byte: usize, reason: impl Into<String>) -> Self {
        let (before, behind) = expression.split_at_checked(byte).unwrap_or((expression, ""));
        let found = behind.split_whitespace().next().unwrap_or("").chars().take(SHOWN).collect();
        Self::Syntax { column: before.chars().count() + 1, found, reason: reason.into() }
    }

    /// Says that a value is no pattern.
    pub(super) fn pattern((expression, byte): (&str, usize), error: &globset::Error) -> Self {
        let reason = format!("{}; a backslash makes the sign behind it stand for itself", error.kind());
        Self::at(expression, byte, reason)
    }

    /// Says that no kind has this name.
    pub(super) fn kind((expression, byte): (&str, usize), value: &str) -> Self {
        let kinds = ChunkKind::ALL.map(ChunkKind::as_str).join(", ");
        Self::at(expression, byte, format!("no kind is called `{value}`; the kinds are {kinds}"))
    }
}

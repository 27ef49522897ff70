//! Errors in an expression of `--where`, with their column.
//!
//! In: an expression, and a position in it. Out: one line that names the column, counted in characters from 1.

use dataflows::data::ChunkKind;

/// Most characters of the wrong text that are shown.
const SHOWN: usize = 40;

/// An error in an expression.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// It cannot be parsed.
    #[error("cannot read --where at column {column}, `{found}`: {reason}")]
    Syntax {
        /// The column, in characters from 1.
        column: usize,
        /// The text at that column.
        found: String,
        /// The error, and the expected text.
        reason: String,
    },
    /// Too many terms.
    #[error("--where has more than {most} terms; use wider patterns")]
    TooLong {
        /// The limit.
        most: usize,
    },
}

impl FilterError {
    /// Returns the error at a byte of an expression.
    pub(super) fn at(expression: &str, byte: usize, reason: impl Into<String>) -> Self {
        let (before, behind) = expression.split_at_checked(byte).unwrap_or((expression, ""));
        let found = behind.split_whitespace().next().unwrap_or("").chars().take(SHOWN).collect();
        Self::Syntax { column: before.chars().count() + 1, found, reason: reason.into() }
    }

    /// Returns the error of a value that is no pattern.
    pub(super) fn pattern((expression, byte): (&str, usize), error: &globset::Error) -> Self {
        let reason = format!("{}; a backslash makes the sign behind it stand for itself", error.kind());
        Self::at(expression, byte, reason)
    }

    /// Returns the error of an unknown kind.
    pub(super) fn kind((expression, byte): (&str, usize), value: &str) -> Self {
        let kinds = ChunkKind::ALL.map(ChunkKind::as_str).join(", ");
        Self::at(expression, byte, format!("no kind is called `{value}`; the kinds are {kinds}"))
    }
}

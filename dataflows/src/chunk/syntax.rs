//! Cuts code at its items.
//!
//! In: a text in a language with a grammar. Out: its pieces, or nothing where the parser gives up.
//!
//! **Invariant:** what a piece is called and whether it stands alone is decided in `code`; here it is only turned into a
//! piece, so that the rules of joining are in one place.

use super::piece::{Piece, Standing};
use crate::code::{self, Mark, Rank};

/// Returns the pieces of `text`, or nothing if it is not parsed within its budget.
pub(super) fn pieces(language: &str, text: &str) -> Option<Vec<Piece>> {
    let marks = code::outline(language, text)?;
    Some(marks.into_iter().map(piece).collect())
}

fn piece(mark: Mark) -> Piece {
    let standing = match mark.rank {
        Rank::Item => Standing::Alone,
        Rank::Header => Standing::Header,
        Rank::Minor => Standing::Part { owner: mark.owner },
    };
    Piece { start: mark.start, symbol: mark.symbol, name: mark.name, standing }
}

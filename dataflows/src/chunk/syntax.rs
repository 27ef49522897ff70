//! Cuts code at its items.
//!
//! In: the outline of a text. Out: its pieces, or the reason why it is cut without its syntax.
//!
//! **Invariant:** `code` decides the name of a piece and whether it stays alone; this module only converts, so that the rules of
//! joining are in one place.

use super::piece::{Piece, Standing};
use crate::code::{Mark, Outline, Rank};
use crate::data::NoSyntax;

/// Returns the pieces of an outline.
pub(super) fn pieces(outline: Outline) -> Result<Vec<Piece>, NoSyntax> {
    match outline {
        Outline::Marks(marks) => Ok(marks.into_iter().map(piece).collect()),
        Outline::Without(why) => Err(why),
    }
}

fn piece(mark: Mark) -> Piece {
    let standing = match mark.rank {
        Rank::Item => Standing::Alone,
        Rank::Header => Standing::Header,
        Rank::Minor => Standing::Part { owner: mark.owner },
    };
    Piece { start: mark.start, symbol: mark.symbol, name: mark.name, standing }
}

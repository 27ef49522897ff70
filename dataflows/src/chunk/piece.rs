//! Turns pieces into chunks: joins short ones, cuts long ones, names the results.
//!
//! In: a text without its payload, and the starts of the pieces of the whole text. Out: chunks in the order of the text.
//!
//! **Invariant:** the chunks cover the text with its marks: a piece reaches to the start of the next, so every non-blank line is
//! in a chunk, whatever the pieces are. No chunk is blank, none is longer than [`HARD_CAP`](super::cut::HARD_CAP).
//!
//! Joinable pieces (imports, constants, fields) form one stretch with their neighbours of the same owner. [`cut`] cuts a stretch,
//! preferably at borders between pieces. Their content decides which are together, not the start of the stretch. Later parts of a
//! long item are named by the symbol and not by the declaration, because a new parameter must not move all of them.

use super::border::{Style, borders};
use super::cut::cut;
use super::payload::Condensed;
use super::{Shape, TextChunk};
use crate::data::{Chunk, Lines, TextHash};
use std::ops::Range;

/// One piece of a text; it ends where the next begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Where it starts in the whole text: the start of a line.
    pub(super) start: usize,
    /// The qualified name of the item, or empty.
    pub(super) symbol: String,
    /// Its declaration line, or empty.
    pub(super) name: String,
    /// Whether it stays alone.
    pub(super) standing: Standing,
}

/// Whether a piece shares its chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It has one or several chunks to itself.
    Alone,
    /// It opens a type, and shares with the parts after it.
    Header,
    /// It shares with the adjacent parts of the same owner.
    Part {
        /// The qualified name of its owner, or empty.
        owner: String,
    },
}

impl Piece {
    /// Returns a piece without a name that stays alone.
    pub(super) fn unnamed(start: usize) -> Self {
        Self { start, symbol: String::new(), name: String::new(), standing: Standing::Alone }
    }

    fn owner(&self) -> &str {
        match &self.standing {
            Standing::Alone | Standing::Header => &self.symbol,
            Standing::Part { owner } => owner,
        }
    }

    /// Tells whether the piece shares a stretch with the one before it.
    fn joins(&self, before: &Self) -> bool {
        matches!(self.standing, Standing::Part { .. })
            && before.standing != Standing::Alone
            && self.owner() == before.owner()
    }
}

/// Returns the chunks of a text, whose pieces and solid ranges are in order of their starts.
pub(super) fn assemble(
    condensed: &Condensed<'_>,
    mut pieces: Vec<Piece>,
    mut solid: Vec<Range<usize>>,
    shape: &Shape<'_>,
) -> Vec<TextChunk> {
    for piece in &mut pieces {
        piece.start = condensed.place(piece.start);
    }
    for range in &mut solid {
        *range = condensed.place(range.start)..condensed.place(range.end);
    }
    let (text, pieces, solid) = (condensed.text(), pieces.as_slice(), solid.as_slice());
    let mut chunks = Vec::new();
    let mut place = Place { condensed, at: 0, line: 1 };
    let unnamed = [Piece::unnamed(0)];
    let head = pieces.first().map_or(text.len(), |piece| piece.start);
    if head > 0 {
        add_stretch(0..head, &unnamed, solid, shape, &mut place, &mut chunks);
    }
    let mut rest = pieces;
    while !rest.is_empty() {
        let count = 1 + rest.windows(2).take_while(|pair| pair[1].joins(&pair[0])).count();
        let (stretch, behind) = rest.split_at(count);
        let end = behind.first().map_or(text.len(), |piece| piece.start);
        add_stretch(stretch[0].start..end, stretch, solid, shape, &mut place, &mut chunks);
        rest = behind;
    }
    chunks
}

/// Counts lines of the whole text from one chunk to the next.
struct Place<'a> {
    condensed: &'a Condensed<'a>,
    at: usize,
    line: u32,
}

impl Place<'_> {
    fn advance(&mut self, to: usize) -> u32 {
        let shown = &self.condensed.text().as_bytes()[self.at..to];
        let newlines = u32::try_from(shown.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX);
        let hidden = self.condensed.hidden(self.at..to);
        self.line = self.line.saturating_add(newlines).saturating_add(hidden);
        self.at = to;
        self.line
    }
}

fn add_stretch(
    range: Range<usize>,
    pieces: &[Piece],
    solid: &[Range<usize>],
    shape: &Shape<'_>,
    place: &mut Place<'_>,
    chunks: &mut Vec<TextChunk>,
) {
    let condensed = place.condensed;
    let text = condensed.text();
    let cuts = if range.len() > shape.whole {
        let from = solid.partition_point(|solid| solid.end <= range.start);
        let starts: Vec<usize> = pieces[1..].iter().map(|piece| piece.start).collect();
        let mut borders = borders(text, range.clone(), shape.style, &solid[from..], &starts, shape.whole);
        borders.retain(|border| !condensed.is_in_mark(border.at));
        cut(text, range.clone(), &borders, shape.whole)
    } else {
        Vec::new()
    };
    let mut start = range.start;
    for end in cuts.into_iter().chain([range.end]) {
        if let Some(part) = trim(text, start..end) {
            let (symbol, name) = label(text, &part, pieces, shape.style);
            let lines = Lines { first: place.advance(part.start), last: place.advance(part.end) };
            let text = text[part].to_owned();
            let chunk = Chunk {
                kind: shape.kind,
                language: shape.language.to_owned(),
                symbol,
                name,
                text: TextHash::of(&text),
                lines,
            };
            chunks.push(TextChunk { chunk, text });
        }
        start = end;
    }
}

/// Returns the range without blank lines at its ends and without trailing white space, or nothing if it is blank.
fn trim(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let slice = &text[range.clone()];
    let inked = slice.len() - slice.trim_start().len();
    if inked == slice.len() {
        return None;
    }
    let line = slice[..inked].rfind('\n').map_or(0, |newline| newline + 1);
    Some(range.start + line..range.start + slice.trim_end().len())
}

/// Returns symbol and name of one part of a stretch.
fn label(text: &str, part: &Range<usize>, pieces: &[Piece], style: Style) -> (String, String) {
    let first = pieces.partition_point(|piece| piece.start <= part.start).saturating_sub(1);
    let behind = pieces.partition_point(|piece| piece.start < part.end);
    let piece = &pieces[first];
    let begins = text[piece.start.min(part.start)..part.start].trim().is_empty();
    if behind - first <= 1 {
        let symbol = if piece.symbol.is_empty() { piece.owner() } else { &piece.symbol };
        let name = if begins || style == Style::Prose { &piece.name } else { symbol };
        return (symbol.to_owned(), name.to_owned());
    }
    let owner = piece.owner();
    let name = if begins && piece.standing == Standing::Header { &piece.name } else { owner };
    (owner.to_owned(), name.to_owned())
}

//! Cuts a cleaned text into its chunks.
//!
//! In: a text and its rule. Out: chunks in the order of the text, each with its text and lines.
//!
//! **Invariant:** the result depends only on the text and on what the rule's chunking identity covers. It is total on any text,
//! with time and memory linear in it up to a logarithm. Marks replace long runs without words (base64 pictures, tables of
//! numbers; see `payload`). Chunks are slices of the remaining text that do not overlap and cover every non-blank line. No chunk
//! is blank or exceeds 4,000 bytes. An edit moves only the chunks that it touches: nearby content decides the borders (`cut` says
//! how near), and only `lines` depends on the chunk's position in the text.
//!
//! ```text
//!  rust c cpp python ── syntax ───┐
//!  markdown ─────────── heading ──┤► pieces ──► piece: join, cut, name ──► chunks
//!  everything else ── one piece ──┘     payload ──┘     └► border, cut
//! ```

mod border;
mod cut;
mod heading;
mod payload;
mod piece;
mod syntax;
#[cfg(test)]
mod tests;

use crate::code::{InProcess, OutlineError, Outliner};
use crate::data::{Chunk, ChunkKind, NoSyntax};
use crate::rules::{Cutting, Rule};
use border::Style;
use payload::Condensed;
use piece::Piece;
use std::ops::Range;

/// One chunk and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextChunk {
    /// The chunk; `chunk.text` is the hash of `text`.
    pub chunk: Chunk,
    /// Its slice of the cleaned text, without surrounding blank lines; marks replace runs without words.
    pub text: String,
}

/// The result of cutting one text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The chunks, in the order of the text.
    pub chunks: Vec<TextChunk>,
    /// The reason why the text was cut without its syntax, if its rule asked for syntax.
    pub no_syntax: Option<NoSyntax>,
}

/// The data that all chunks of one text share.
struct Shape<'a> {
    kind: ChunkKind,
    language: &'a str,
    style: Style,
    /// Bytes up to which a stretch stays one chunk.
    whole: usize,
}

/// Returns the chunks of `text`, in order, parsed in this process; also the result for a text without an outline.
///
/// ```
/// use dataflows::{chunk::chunk, rules::Rules};
/// let rules = Rules::built_in();
/// let rule = rules.rule(rules.for_path(&"world.rs".into()));
/// let chunks = chunk(rule, "struct World;\n\nimpl World {\n    fn spawn(&mut self) {}\n}\n");
/// let symbols: Vec<&str> = chunks.iter().map(|chunk| chunk.chunk.symbol.as_str()).collect();
/// assert_eq!(symbols, ["World", "World::spawn"]);
/// ```
#[must_use]
pub fn chunk(rule: &Rule, text: &str) -> Vec<TextChunk> {
    cut_text(rule, text, &InProcess).map_or_else(|_| cut_by(rule, text, Vec::new(), Vec::new()), |cut| cut.chunks)
}

/// Returns the chunks of `text`, with the given parser.
///
/// # Errors
/// If the parser did not finish, which is a transient failure.
pub fn cut_text(rule: &Rule, text: &str, outliner: &dyn Outliner) -> Result<Cut, OutlineError> {
    let (pieces, solid, no_syntax) = match rule.cutting() {
        Cutting::Syntax => match syntax::pieces(outliner.outline(rule.language(), text)?) {
            Ok(pieces) => (pieces, Vec::new(), None),
            Err(why) => (Vec::new(), Vec::new(), Some(why)),
        },
        Cutting::Heading => {
            let heading::Sections { pieces, solid } = heading::sections(text);
            (pieces, solid, None)
        }
        Cutting::Paragraph | Cutting::Line => (Vec::new(), Vec::new(), None),
    };
    Ok(Cut { chunks: cut_by(rule, text, pieces, solid), no_syntax })
}

/// Returns the chunks of `text`, whose pieces and solid ranges are in its order.
fn cut_by(rule: &Rule, text: &str, pieces: Vec<Piece>, solid: Vec<Range<usize>>) -> Vec<TextChunk> {
    piece::assemble(&Condensed::of(text), pieces, solid, &shape_of(rule))
}

fn shape_of(rule: &Rule) -> Shape<'_> {
    let style = match rule.cutting() {
        Cutting::Syntax | Cutting::Line => Style::Lines,
        Cutting::Heading | Cutting::Paragraph => Style::Prose,
    };
    Shape { kind: rule.kind(), language: rule.language(), style, whole: rule.whole_up_to() }
}

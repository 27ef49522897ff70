//! Cuts Markdown at its headings.
//!
//! In: a Markdown text. Out: one piece per section, named by the path of its headings, and the ranges that should not be cut.
//!
//! **Invariant:** a section's name follows only from the headings above it. A `#` in a fence, a list or a quotation is no
//! heading. A heading without text joins the first section below it, because a chunk of a bare heading answers no question.

use super::piece::{Piece, Standing};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Between two headings of a path.
const STEP: &str = " > ";

/// The longest heading and the longest path, in characters.
const LONGEST_NAME: usize = 200;

/// A Markdown text's sections and its solid ranges, both in order.
pub(super) struct Sections {
    pub(super) pieces: Vec<Piece>,
    pub(super) solid: Vec<Range<usize>>,
}

/// A heading that is being read.
struct Heading {
    level: usize,
    range: Range<usize>,
    title: String,
}

/// Returns the sections of `text`.
pub(super) fn sections(text: &str) -> Sections {
    let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut headings: Vec<Heading> = Vec::new();
    let mut solid = Vec::new();
    let mut depth = 0_usize;
    let mut open = false;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                match tag {
                    Tag::Heading { level, .. } if depth == 0 => {
                        headings.push(Heading { level: level as usize, range, title: String::new() });
                        open = true;
                    }
                    Tag::CodeBlock(_) | Tag::Table(_) | Tag::HtmlBlock | Tag::MetadataBlock(_) => solid.push(range),
                    _ => {}
                }
                depth += 1;
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                open = open && !matches!(tag, TagEnd::Heading(_));
            }
            Event::Text(words) | Event::Code(words) if open => push_words(&mut headings, &words),
            Event::SoftBreak | Event::HardBreak if open => push_words(&mut headings, " "),
            _ => {}
        }
    }
    Sections { pieces: pieces(text, &headings), solid }
}

fn push_words(headings: &mut [Heading], words: &str) {
    if let Some(heading) = headings.last_mut() {
        let room = LONGEST_NAME.saturating_sub(heading.title.chars().count());
        heading.title.extend(words.chars().take(room));
    }
}

fn pieces(text: &str, headings: &[Heading]) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(headings.len());
    let mut path: Vec<&Heading> = Vec::new();
    let mut bare_from = None;
    for (index, heading) in headings.iter().enumerate() {
        path.retain(|above| above.level < heading.level);
        path.push(heading);
        let start = text[..heading.range.start].rfind('\n').map_or(0, |newline| newline + 1);
        let next = headings.get(index + 1);
        let is_bare = next.is_some_and(|next| {
            next.level > heading.level && text[heading.range.end..next.range.start].trim().is_empty()
        });
        if is_bare {
            bare_from = bare_from.or(Some(start));
            continue;
        }
        let titles: Vec<&str> = path.iter().map(|heading| heading.title.trim()).collect();
        let name: String = titles.join(STEP).chars().take(LONGEST_NAME).collect();
        let start = bare_from.take().unwrap_or(start);
        pieces.push(Piece { start, symbol: String::new(), name, standing: Standing::Alone });
    }
    pieces
}

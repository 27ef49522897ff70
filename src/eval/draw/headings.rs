//! Questions from headings of Markdown documents.
//!
//! In: Markdown files. Out: headings that stand once in all of them, each with the lines of its section up to the next heading.
//!
//! **Invariant:** what stands in a fenced block is no heading.

use super::source::{DrawError, Source};
use super::{Drawn, Right, drawn, only_once};

/// Draws a question of every heading that stands once.
pub(super) fn draw(source: &Source) -> Result<Vec<Drawn>, DrawError> {
    let mut questions = Vec::new();
    for (path, content) in source.files(&["md", "markdown", "mdown", "mdx"])? {
        let Some(text) = source.text(content).filter(|_| source.draws_from(&path)) else { continue };
        for (heading, lines) in headings(&text) {
            questions.push(drawn("heading", heading, vec![Right::at(&path.display(), Some(lines))]));
        }
    }
    Ok(only_once(questions))
}

/// Returns the headings of a text that say something, each with the lines from it to the next.
fn headings(text: &str) -> Vec<(String, [u32; 2])> {
    let mut found: Vec<(String, [u32; 2])> = Vec::new();
    let (mut fence, mut last) = (None, 0);
    for (number, line) in (1..).zip(text.lines()) {
        last = number;
        let bare = line.trim_start();
        let opens = ["```", "~~~"].into_iter().find(|fence| bare.starts_with(fence));
        match (fence, opens) {
            (None, Some(opened)) => fence = Some(opened),
            (Some(open), Some(closing)) if open == closing => fence = None,
            _ => {}
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if fence.is_some() || !(1..=6).contains(&level) || !line[level..].starts_with([' ', '\t']) {
            continue;
        }
        if let Some((_, lines)) = found.last_mut() {
            lines[1] = number - 1;
        }
        found.push((line[level..].trim().trim_end_matches('#').trim().to_owned(), [number, number]));
    }
    if let Some((_, lines)) = found.last_mut() {
        lines[1] = last;
    }
    let says = |heading: &str| {
        heading.split_whitespace().count() > 1 || heading.chars().filter(|sign| !sign.is_ascii()).count() > 3
    };
    found.retain(|(heading, _)| says(heading));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_goes_up_to_the_next_heading() {
        let text =
            "# One title\n\ntext\n```\n# no heading\n```\n## Two\n\n### Three of them ##\nmore\n#none\n# 渲染器接口\n";
        let expected = [("One title", [1, 6]), ("Three of them", [9, 11]), ("渲染器接口", [12, 12])]
            .map(|(name, lines)| (name.to_owned(), lines));
        assert_eq!(headings(text), expected);
        assert!(headings("").is_empty());
    }
}

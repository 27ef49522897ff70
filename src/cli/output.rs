//! The output of commands.
//!
//! In: results. Out: lines on standard output, each whole and flushed; progress on a terminal only.
//!
//! **Invariant:** text from documents and paths is printed with escaped control characters, so that a hostile file name cannot
//! control a terminal. Text of documents is cut at the end of the line; paths and JSON never are.

use crate::telemetry::{is_active, plain};
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::LazyLock;
use unicode_width::UnicodeWidthStr;

/// Most columns of a line with text of a document; the width of such lines if there is no terminal. With the mark, and in ASCII,
/// that is 400 bytes.
const LONGEST_LINE: usize = 398;
/// So much of a text is shown, however long the part before it is.
const LEAST_ROOM: usize = 20;

/// Prints one JSON object as a line and flushes it.
pub(super) fn json_line(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    put(&line)
}

/// Prints a line of text.
pub(super) fn line(text: impl AsRef<str>) -> Result<()> {
    put(format!("{}\n", plain(text.as_ref())).as_bytes())
}

fn put(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Prints text of a document after a prefix; text beyond the line is cut off, with a mark.
pub(super) fn text_line(front: impl AsRef<str>, text: &str) -> Result<()> {
    let front = plain(front.as_ref());
    line(format!("{front}{}", fitted(text, front.width())))
}

/// Returns a text that fits into the line beside `taken` columns.
pub(super) fn fitted(text: &str, taken: usize) -> String {
    shortened(text, LINE_WIDTH.saturating_sub(taken).max(LEAST_ROOM))
}

/// Returns how many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    plain(text).width()
}

/// The line width: that of the terminal, or [`LONGEST_LINE`].
static LINE_WIDTH: LazyLock<usize> = LazyLock::new(|| {
    let terminal = console::Term::stdout();
    let width = terminal.is_term().then(|| terminal.size_checked()).flatten();
    width.map_or(LONGEST_LINE, |(_, columns)| usize::from(columns).min(LONGEST_LINE))
});

/// Returns an escaped text of at most `room` columns; a cut text ends with `…`.
fn shortened(text: &str, room: usize) -> String {
    let (mut shown, mut width, mut kept) = (String::new(), 0, 0);
    for sign in text.chars() {
        let before = shown.len();
        match sign {
            // The terminal decides the width of a tab; this is about right.
            '\t' => shown.push_str("    "),
            _ if is_active(sign) => shown.extend(sign.escape_default()),
            _ => shown.push(sign),
        }
        width += shown[before..].width();
        if width > room {
            shown.truncate(kept);
            shown.push('…');
            break;
        }
        if width < room {
            kept = shown.len();
        }
    }
    shown
}

/// Prints a line for people on standard error, which has no results; a line that cannot be printed is dropped.
pub(super) fn hint(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", plain(text.as_ref()));
}

/// Returns a number with its noun in singular or plural.
pub(super) fn count<N: Copy + PartialEq + From<u8> + Display>(number: N, one: &str, several: &str) -> String {
    format!("{number} {}", if number == N::from(1) { one } else { several })
}

/// Prints on standard error why a command failed. If standard error is closed or full, only the exit status tells.
pub(super) fn say_failure(error: &anyhow::Error) {
    let line = one_line(error);
    let step = crate::resources::next_step(&line).map(|step| format!("; {step}")).unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "tidemill: {line}{step}");
}

/// Returns an error and its causes as one line; a cause that repeats earlier text is left out.
pub(super) fn one_line(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let text = plain(&cause.to_string().split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
        if !said.contains(&text) {
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&text);
        }
    }
    said
}

/// Whether the reader of the output has gone, as `head` does.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(broken)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|error| error.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe))
    })
}

/// Whether progress may be shown.
pub(super) fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Returns the first digits of a hash, for people.
pub(super) fn short(hash: &impl ToString) -> String {
    hash.to_string().chars().take(10).collect()
}

/// Returns a number of bytes for people.
pub(super) fn bytes(number: u64) -> String {
    indicatif::HumanBytes(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_the_line_ends() {
        assert_eq!(shortened("heron", 5), "heron");
        assert_eq!(shortened("herons", 5), "hero…");
        assert_eq!(shortened("渲染器接口", 6), "渲染…");
        assert_eq!(shortened("渲染器", 6), "渲染器");
        assert_eq!(shortened("a\u{1b}[31mb", 20), "a\\u{1b}[31mb");
        assert_eq!(shortened("\u{202e}\u{202e}", 12), "\\u{202e}…");
        assert_eq!(shortened("\tx", 4), "…");
        assert_eq!(shortened(&"x".repeat(1 << 20), LONGEST_LINE).len(), 400);
    }

    #[test]
    fn one_is_one() {
        assert_eq!([0, 1, 2].map(|number: usize| count(number, "hit", "hits")), ["0 hits", "1 hit", "2 hits"]);
    }
}

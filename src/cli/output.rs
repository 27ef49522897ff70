//! What commands print, and how.
//!
//! In: results. Out: lines on standard output, each whole and flushed; progress on a terminal only.
//!
//! **Invariant:** text from documents and paths is printed without control characters, so that a hostile file name cannot
//! drive a terminal.

use anyhow::Result;
use serde::Serialize;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Prints one JSON object as a line and flushes it.
pub(super) fn json_line(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)?;
    Ok(out.flush()?)
}

/// Prints a line of text.
pub(super) fn line(text: impl AsRef<str>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", safe(text.as_ref()))?;
    Ok(out.flush()?)
}

/// Prints a line for people on standard error, where results do not go; one that cannot be printed is left out.
pub(super) fn hint(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", safe(text.as_ref()));
}

/// Returns a number with the word for one, or for several.
pub(super) fn count<N: Copy + PartialEq + From<u8> + Display>(number: N, one: &str, several: &str) -> String {
    format!("{number} {}", if number == N::from(1) { one } else { several })
}

/// Returns text without control characters but for tabs.
pub(super) fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Returns an error and its causes as one line; a cause that repeats what is said already is left out.
pub(super) fn one_line(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let text = safe(&cause.to_string().split_whitespace().collect::<Vec<_>>().join(" "));
        if !said.contains(&text) {
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&text);
        }
    }
    said
}

/// Whether whoever read the output has gone, as `head` does.
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

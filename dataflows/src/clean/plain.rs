//! The cleaner that only converts line ends.
//!
//! In: decoded text. Out: the same with `\r\n` as `\n`.
//!
//! **Invariant:** every line keeps its number, so that lines of the cleaned text are lines of the file.

/// Returns `text` with line ends as `\n`.
pub(super) fn clean(text: String) -> String {
    if text.contains("\r\n") { text.replace("\r\n", "\n") } else { text }
}

//! Makes text from outside safe for a terminal.
//!
//! In: paths, names and texts of documents, whatever they contain. Out: the same, with control characters escaped.
//!
//! **Invariant:** the output has no control character except tabs, and nothing that changes the text direction. So a file's name
//! can neither clear a screen nor look like another name. JSON is for programs and stays unchanged.

use std::borrow::Cow;
use std::io::Write;

/// Whether a character acts instead of being shown: control characters, changes of text direction, line separators.
pub(crate) fn is_active(sign: char) -> bool {
    match sign {
        '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => sign.is_control(),
    }
}

/// Returns text with active characters as `\r`, `\u{1b}`, `\u{202e}`.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    spelled(text, is_active)
}

fn spelled(text: &str, is_spelled: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_spelled) {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        if is_spelled(sign) {
            spelled.extend(sign.escape_default());
        } else {
            spelled.push(sign);
        }
    }
    Cow::Owned(spelled)
}

/// Writes lines of the log to standard error. The log's own colours pass; escapes in logged text were escaped before.
pub(super) struct PlainLog;

impl Write for PlainLog {
    /// Writes one event, which comes as a whole.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        let line = spelled(line, |sign| sign != '\u{1b}' && is_active(sign));
        std::io::stderr().lock().write_all(format!("{line}{end}").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_drive_a_terminal_is_spelled_out() {
        assert_eq!(plain("a\u{1b}[31m\r\0b\n"), "a\\u{1b}[31m\\r\\u{0}b\\n");
        assert_eq!(
            plain("\u{202e}txt.exe\u{2069}\u{200f}\u{2028}\u{85}\u{7f}"),
            "\\u{202e}txt.exe\\u{2069}\\u{200f}\\u{2028}\\u{85}\\u{7f}"
        );
        assert!(matches!(plain("größer\t渲染 🚀 e\u{301}"), Cow::Borrowed(_)));
    }
}

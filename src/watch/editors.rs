//! Temporary files that editors create beside the edited file: backups, swap files, locks.
//!
//! In: the name of a file. Out: the pattern of such files that it matches, if any.
//!
//! **Invariant:** the name alone decides, and a rule of the settings that takes the file in, so a scan, an event and `explain` agree. Only names that an editor gives are here;
//! unfinished downloads and the work files of other programs are not.
//!
//! In a git tree such a file was committed on purpose, so none is left out there.

use dataflows::data::DocumentPath;
use dataflows::rules::Rules;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names in full.
const NAMES: [&str; 2] = ["4913", ".DS_Store"];
/// The beginning and the end of a name, with the usual pattern.
const PATTERNS: [(&str, &str, &str); 15] = [
    // Emacs, vim, gedit, nano: a backup.
    ("*~", "", "~"),
    ("*.bak", "", ".bak"),
    ("*.orig", "", ".orig"),
    // Emacs: unsaved text, and the lock that names the user.
    ("#*#", "#", "#"),
    (".#*", ".#", ""),
    // Vim: swap files, the newest first.
    ("*.swp", "", ".swp"),
    ("*.swo", "", ".swo"),
    ("*.swn", "", ".swn"),
    ("*.swx", "", ".swx"),
    // Kate; JetBrains, while it saves; GNOME, while it saves.
    ("*.kate-swp", "", ".kate-swp"),
    ("*___jb_tmp___", "", "___jb_tmp___"),
    ("*___jb_old___", "", "___jb_old___"),
    (".goutputstream-*", ".goutputstream-", ""),
    // LibreOffice and Microsoft Office: the lock that names the user.
    (".~lock.*#", ".~lock.", "#"),
    ("~$*", "~$", ""),
];

/// Returns the pattern by which an editor left a file, unless a rule for its path says `exclude = false`.
#[must_use]
pub fn left_by_editor(path: &Path, rules: Option<&Rules>) -> Option<&'static str> {
    let pattern = editors_pattern(path.file_name().unwrap_or_default().as_bytes())?;
    let taken_in = |rules: &Rules| rules.takes_in(&DocumentPath::new(path.as_os_str().as_bytes()));
    (!rules.is_some_and(taken_in)).then_some(pattern)
}

/// Returns the pattern of editors' files that a name matches, if one does.
fn editors_pattern(name: &[u8]) -> Option<&'static str> {
    let whole = NAMES.into_iter().find(|known| known.as_bytes() == name);
    let matches = |start: &str, end: &str| {
        name.len() > start.len() + end.len() && name.starts_with(start.as_bytes()) && name.ends_with(end.as_bytes())
    };
    let partly = || PATTERNS.into_iter().find(|(_, start, end)| matches(start, end)).map(|(pattern, ..)| pattern);
    whole.or_else(partly)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_editors_leave_is_known_by_its_name_and_nothing_else_is() {
        for (name, pattern) in [
            ("notes.md~", "*~"),
            ("#notes.md#", "#*#"),
            (".#notes.md", ".#*"),
            (".notes.md.swp", "*.swp"),
            ("4913", "4913"),
            ("old.bak", "*.bak"),
            ("lib.rs.orig", "*.orig"),
            (".~lock.report.odt#", ".~lock.*#"),
            ("~$report.docx", "~$*"),
            ("lib.rs___jb_tmp___", "*___jb_tmp___"),
            (".DS_Store", ".DS_Store"),
        ] {
            assert_eq!(editors_pattern(name.as_bytes()), Some(pattern), "{name}");
        }
        for name in
            ["notes.md", "~", "#", ".bak", "bak", "49130", "swp", ".gitignore", "C#", "#include.md", "backup", "~home"]
        {
            assert_eq!(editors_pattern(name.as_bytes()), None, "{name}");
        }
    }
}

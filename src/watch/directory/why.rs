//! Explains why a path of a directory is no file of the source.
//!
//! In: a path. Out: one reason, or nothing if the path is wanted or does not exist.
//!
//! **Invariant:** the [`Filter`](super::filter::Filter) decides; this module finds the line of the ignore file that caused it.

use super::DirectorySource;
use crate::watch::is_store;
use crate::watch::stores::store_reason;
use dataflows::data::DocumentPath;
use ignore::gitignore::GitignoreBuilder;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Ignore files in order of precedence within a folder.
const IGNORE_FILES: [&str; 2] = [".ignore", ".gitignore"];

impl DirectorySource {
    /// Returns the reason why an existing path is no file of this source.
    #[must_use]
    pub fn why_not(&self, path: &DocumentPath) -> Option<String> {
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let mut matcher = self.filter.matcher();
        let parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
        for part in parts.into_iter().rev() {
            let shown = part.display();
            let metadata = self.root.join(part).symlink_metadata().ok()?;
            if metadata.is_dir() && is_store(&self.root.join(part)) {
                return Some(store_reason(part));
            }
            if self.filter.is_foreign(part) {
                return Some(format!("{shown} is git's own data or a store, which are never indexed"));
            }
            if !matcher.wants(part, metadata.is_dir()) {
                let name = part.file_name().unwrap_or_default();
                let left = matcher.editor(part).filter(|_| !metadata.is_dir());
                return Some(match (self.ignored_by(part, metadata.is_dir()), left) {
                    (Some(by), _) => format!("{shown} is ignored by {by}"),
                    (None, Some(pattern)) => format!(
                        "{shown} is what an editor leaves (`{pattern}`); a rule with `exclude = false` takes it in, or a line `!{}` in .ignore",
                        name.display()
                    ),
                    (None, None) => format!("{shown} is left out by the globs of the source"),
                });
            }
            if metadata.is_symlink() && part != path {
                return Some(format!("{shown} is a symbolic link, and links are never followed"));
            }
            if part == path && !metadata.is_file() && !metadata.is_dir() && !metadata.is_symlink() {
                return Some("it is no regular file".to_owned());
            }
        }
        if self.root.join(path).is_dir() {
            return Some("it is a folder".to_owned());
        }
        Some("it is on disk now, and came after this version or cannot be read; `tidemill status` tells how the tracker is doing".to_owned())
    }

    /// Returns the ignore file, line and pattern that exclude a path.
    fn ignored_by(&self, path: &Path, is_folder: bool) -> Option<String> {
        for folder in path.ancestors().skip(1) {
            for name in IGNORE_FILES {
                let file = self.root.join(folder).join(name);
                let Ok(text) = std::fs::read_to_string(&file) else { continue };
                for (number, line) in (1..).zip(text.lines()) {
                    let mut builder = GitignoreBuilder::new(self.root.join(folder));
                    let is_pattern = builder.add_line(None, line).is_ok();
                    let matched = is_pattern.then(|| builder.build().ok()).flatten();
                    if matched.is_some_and(|rules| rules.matched(self.root.join(path), is_folder).is_ignore()) {
                        return Some(format!("`{}`, line {number} of {}", line.trim(), folder.join(name).display()));
                    }
                }
            }
        }
        None
    }
}

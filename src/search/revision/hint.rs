//! Finds the snapshots near a commit without one, and the command that makes its own.
//!
//! In: a commit. Out: a phrase for the error.
//!
//! **Invariant:** the command works: it names a current ref of the repository with the commit on its first-parent line, or a ref
//! that the hint says how to create. The source's path is the recorded one, quoted for a shell.

use super::meaning::Look;
use crate::store::SourceKind;
use crate::watch::git::{GitSource, Reach};
use snapshots::CommitId;
use std::path::Path;

/// Most first parents that are searched for a snapshot near a commit.
const NEAR: usize = 10_000;

impl Look<'_> {
    /// Returns the snapshots near a commit without one, and how to make one.
    pub(super) fn hint(&self, commit: CommitId) -> String {
        let list = || "`tidemill snapshots list` shows which snapshots there are".to_owned();
        if self.record.kind != SourceKind::Git {
            return list();
        }
        let Some(git) = self.repository() else { return list() };
        if git.commit(commit).is_err() {
            return format!("the repository no longer holds it, so it cannot be made; {}", list());
        }
        let tracked: Vec<&str> = self.views().map(|(_, name)| name).collect();
        let reach = git.reach(commit, &tracked).ok().flatten();
        let near = self.near(git, commit, reach.as_ref());
        format!("{near}{}", self.command(commit, reach.as_ref()))
    }

    fn near(&self, git: &GitSource, commit: CommitId, reach: Option<&Reach>) -> String {
        let has = |commit: &CommitId| self.archive.by_commit(self.id, *commit).is_some();
        let mut near = Vec::new();
        if let Ok(before) = git.first_parents(commit, has, Some(NEAR))
            && let Some(parent) = before.first().and_then(|oldest| oldest.first_parent).filter(has)
        {
            near.push(format!("{parent} before it"));
        }
        let after = reach.and_then(|reach| git.first_parents(reach.head, |id| *id == commit, None).ok());
        near.extend(after.iter().flatten().find(|after| has(&after.id)).map(|after| format!("{} after it", after.id)));
        match near.as_slice() {
            [] => String::new(),
            [one] => format!("the nearest is {one}; "),
            _ => format!("the nearest are {}; ", near.join(" and ")),
        }
    }

    /// Returns the command that makes a commit's snapshot.
    fn command(&self, commit: CommitId, reach: Option<&Reach>) -> String {
        let path = quoted(&self.record.location);
        let mut options = String::new();
        let store = self.revisions.store.as_path();
        if store != Path::new(".tidemill") {
            options += &format!(" --data {}", quoted(store.as_os_str().as_encoded_bytes()));
        }
        if named_by_path(&self.record.location) != self.record.name.as_bytes() {
            options += &format!(" --name {}", quoted(self.record.name.as_bytes()));
        }
        match reach {
            Some(Reach { pattern, generations, .. }) => {
                if let Some(pattern) = pattern {
                    options += &format!(" --ref {}", quoted(pattern.as_bytes()));
                }
                if *generations > 0 {
                    options += &format!(" --backfill {generations}");
                }
                format!("`tidemill track PATH{options}` makes it, where PATH is {path}")
            }
            None => {
                let tag = format!("at-{}", &commit.to_string()[..10]);
                format!(
                    "no branch or tag leads to it along first parents, so give it a tag with `git -C {path} tag {tag} {commit}`, \
                     and `tidemill track PATH{options} --ref {tag}` makes it, where PATH is {path}"
                )
            }
        }
    }
}

/// Returns the default name of a source at a path.
fn named_by_path(location: &[u8]) -> &[u8] {
    let last = location.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    last.strip_suffix(b".git").filter(|name| !name.is_empty()).unwrap_or(last)
}

/// Quotes bytes for a POSIX shell; control characters and bytes that are not UTF-8 in the syntax of bash and zsh.
fn quoted(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:@%+=,-".contains(byte);
    let text = std::str::from_utf8(bytes);
    match text {
        Ok(text) if !text.is_empty() && !text.starts_with('-') && bytes.iter().all(is_plain) => text.to_owned(),
        Ok(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let escaped = bytes.iter().map(|&byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(byte)),
                b' '..=b'~' => char::from(byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            });
            format!("$'{}'", escaped.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for bytes in [
            &b"plain/path-1.git"[..],
            b"",
            b"-x",
            b"two words",
            b"it's",
            b"a\nb'\\c",
            b"na\xefve",
            "mühle $x".as_bytes(),
        ] {
            let command = format!("printf %s {}", quoted(bytes));
            let output = std::process::Command::new("bash").args(["-c", &command]).output().unwrap();
            assert_eq!(output.stdout, bytes, "{command}");
        }
    }

    #[test]
    fn a_source_is_called_by_the_last_part_of_its_path() {
        let named = |path: &[u8]| String::from_utf8(named_by_path(path).to_vec()).unwrap();
        assert_eq!([named(b"/x/engine.git"), named(b"/x/.git"), named(b"engine")], ["engine", ".git", "engine"]);
    }
}

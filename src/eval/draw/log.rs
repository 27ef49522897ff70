//! Questions from the subjects of commits: what a developer was about to do, asked of the state before it was done.
//!
//! In: the first-parent history. Out: subjects of its newest commits, each with the files that stood before and were changed or removed.
//!
//! **Invariant:** a question is about the commit's first parent, where nothing of its answer stands yet.

use super::source::{DrawError, Source};
use super::{Drawn, Right, drawn};
use crate::watch::git::GitError;
use dataflows::data::FileMode;
use git2::Oid;

/// A commit that changes more files has no subject that says which.
const MOST_FILES: usize = 20;
/// Of so many commits a question one is used at the least, or history is read no further.
const COMMITS: usize = 8;

/// Draws up to `count` questions; returns them, newest first, and how many commits before the head they need.
pub(super) fn draw(source: &Source, count: usize) -> Result<(Vec<Drawn>, usize), DrawError> {
    let mut line = source.git.first_parents(source.commit, |_| false, Some(count.saturating_mul(COMMITS)))?;
    line.reverse();
    let repository = source.repository()?;
    let (mut questions, mut backfill) = (Vec::new(), 0);
    for (number, commit) in line.iter().enumerate() {
        let Some(parent) = commit.first_parent.filter(|parent| source.git.holds(*parent)) else { continue };
        let unread = |error| GitError::Read { what: format!("commit {}", commit.id), source: error };
        let read = Oid::from_bytes(commit.id.as_bytes()).and_then(|id| repository.find_commit(id)).map_err(unread)?;
        let Some(subject) = subject(&String::from_utf8_lossy(read.message_bytes())) else { continue };
        let changes = source.git.diff(Some(parent), commit.id)?;
        let files: Vec<_> = changes
            .iter()
            .filter(|change| change.before.is_some_and(|before| before.mode == FileMode::Regular))
            .filter(|change| std::str::from_utf8(change.path.as_bytes()).is_ok())
            .collect();
        let is_drawn = changes.len() <= MOST_FILES && files.iter().any(|change| source.draws_from(&change.path));
        if !is_drawn {
            continue;
        }
        let right = files.iter().map(|change| Right::at(&change.path.display(), None)).collect();
        questions.push(Drawn { at: Some(parent.to_string()), ..drawn("log", subject, right) });
        backfill = number + 1;
        if questions.len() == count {
            break;
        }
    }
    Ok((questions, backfill))
}

/// Returns the first line of a message without the number of its pull request, if it says something.
fn subject(message: &str) -> Option<String> {
    const NOTHING: [&str; 5] = ["merge ", "revert ", "bump ", "release ", "auto merge"];
    let line = message.lines().next()?.trim();
    let line = match line.rsplit_once(" (#") {
        Some((line, number)) if number.trim_end_matches(')').bytes().all(|byte| byte.is_ascii_digit()) => line,
        _ => line,
    };
    let says = line.split_whitespace().count() > 2 || line.chars().filter(|sign| !sign.is_ascii()).count() > 5;
    let is_one = says && !NOTHING.iter().any(|nothing| line.to_ascii_lowercase().starts_with(nothing));
    is_one.then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_asked_without_its_number_where_it_says_something() {
        for (message, expected) in [
            ("Fix the shadow cascades (#12345)\n\nbody", Some("Fix the shadow cascades")),
            ("Spawn cameras (with targets)", Some("Spawn cameras (with targets)")),
            ("Merge branch main into x", None),
            ("Revert \"Fix the shadow cascades\"", None),
            ("Typo fix", None),
            ("修复阴影级联的错误", Some("修复阴影级联的错误")),
            ("", None),
        ] {
            assert_eq!(subject(message).as_deref(), expected, "{message}");
        }
    }
}

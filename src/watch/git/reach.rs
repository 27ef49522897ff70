//! Finds a ref from which first parents lead to a commit: the values for `--ref` and `--backfill` that make its snapshot.
//!
//! In: a commit, and the tracked views. Out: the ref, and how many first parents the commit is behind it.
//!
//! **Invariant:** a ref at the commit itself comes before any line that contains it, because no commit between has to be built
//! then; there a tag, which stays, comes before a branch, which moves. Among lines, the order is: the branch that HEAD names,
//! tracked views, branches, tags, other refs. No commit is visited twice, whatever the number of refs, and at most
//! [`MOST_COMMITS`] are visited.

use super::heads::{BRANCHES, HeadState, TAGS, peel, references, short_name, view_names};
use super::history::Line;
use super::{GitError, GitSource};
use rustc_hash::FxHashSet;
use snapshots::CommitId;

/// Visited commits after which a commit counts as not reached: some seconds.
const MOST_COMMITS: usize = 500_000;

/// The order of the lines of branches and of tags, after HEAD's and those of tracked views.
const BRANCH: u8 = 2;
const TAG: u8 = 3;

/// A ref from which a commit is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reach {
    /// The pattern that matches this ref; none if HEAD names it, which needs none.
    pub pattern: Option<String>,
    /// The ref's commit.
    pub head: CommitId,
    /// The number of first parents from there to the commit.
    pub generations: usize,
}

impl GitSource {
    /// Returns the ref from which `commit` is reached along first parents, if there is one.
    ///
    /// # Errors
    ///
    /// If the refs cannot be listed.
    pub fn reach(&self, commit: CommitId, tracked: &[&str]) -> Result<Option<Reach>, GitError> {
        let repository = self.pool.get()?;
        let references = references(&repository)?.references;
        let views = view_names(references.iter().map(|(name, _)| name.as_str()));
        let head = self.head()?;
        let mut starts: Vec<(u8, Reach)> = Vec::new();
        for (name, reference) in &references {
            let Ok(Some(at)) = peel(&repository, reference) else { continue };
            let is_head = head == HeadState::Branch(name.clone());
            let rank = match name {
                _ if is_head => 0,
                _ if tracked.contains(&views[name.as_str()].as_str()) => 1,
                name if name.starts_with(BRANCHES) => BRANCH,
                name if name.starts_with(TAGS) => TAG,
                _ => 4,
            };
            // A short pattern matches branches and tags, and so both of one name.
            let is_short = rank < 4 && (name.starts_with(BRANCHES) || name.starts_with(TAGS));
            let short = if is_short && views[name.as_str()] == short_name(name) { short_name(name) } else { name };
            let pattern = (!is_head).then(|| globset::escape(short));
            starts.push((rank, Reach { pattern, head: at.id, generations: 0 }));
        }
        if let HeadState::Detached(at) = head {
            starts.push((0, Reach { pattern: None, head: at, generations: 0 }));
        }
        starts.sort_by_key(|(rank, _)| *rank);
        let there = starts.iter().filter(|(_, reach)| reach.head == commit);
        if let Some((_, reach)) = there.min_by_key(|(rank, _)| if *rank == TAG { BRANCH } else { rank + 1 }) {
            return Ok(Some(reach.clone()));
        }
        let mut seen = FxHashSet::default();
        for (_, reach) in starts {
            // An unreadable commit ends the line.
            let line = Line::new(&repository, reach.head).map_while(Result::ok);
            for (generations, passed) in line.enumerate() {
                if passed.id == commit {
                    return Ok(Some(Reach { generations, ..reach }));
                }
                if !seen.insert(passed.id) || seen.len() > MOST_COMMITS {
                    break;
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::testing::Repo;

    #[test]
    fn a_commit_is_reached_from_the_ref_that_costs_least() {
        let repo = Repo::new();
        let first = repo.commit_file("a", "1");
        repo.git(&["branch", "old"]);
        repo.git(&["checkout", "-q", "-b", "release/1"]);
        let fix = repo.commit_file("a", "fix");
        let last = repo.commit_file("a", "last");
        repo.git(&["tag", "v1", "HEAD"]);
        repo.git(&["checkout", "-q", "main"]);
        let second = repo.commit_file("a", "2");
        let source = GitSource::open(repo.path()).unwrap();
        let reach = |commit| {
            let reach = source.reach(commit, &["main"]).unwrap()?;
            Some((reach.pattern, reach.generations))
        };
        assert_eq!(reach(second), Some((None, 0)));
        assert_eq!(reach(first), Some((Some("old".to_owned()), 0)), "a ref at the commit needs nothing between");
        assert_eq!(reach(last), Some((Some("v1".to_owned()), 0)), "a tag stays where it is");
        assert_eq!(reach(fix), Some((Some("release/1".to_owned()), 1)));
        repo.git(&["branch", "-D", "release/1"]);
        assert_eq!(reach(fix), Some((Some("v1".to_owned()), 1)));
        repo.git(&["branch", "v1", "main"]);
        assert_eq!(reach(last), Some((Some("refs/tags/v1".to_owned()), 0)), "a branch and a tag of one name");
        repo.git(&["tag", "-d", "v1"]);
        assert_eq!(reach(fix), None, "no ref leads there");
        repo.git(&["branch", "-D", "old"]);
        assert_eq!(reach(first), Some((None, 1)));
        repo.git(&["checkout", "-q", "--detach"]);
        repo.git(&["merge", "-q", "-s", "ours", "-m", "side", &last.to_string()]);
        assert_eq!(reach(repo.id("HEAD")), Some((None, 0)), "a HEAD that names no branch");
        assert_eq!(reach(fix), None, "second parents are no line");
    }
}

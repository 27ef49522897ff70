//! Bisection: the first snapshot whose first k hits lack an answer.
//!
//! In: a request, a path, a snapshot whose answer has the path and a later one whose answer has not. Out: two neighbours on the
//! first-parent line between them, the earlier with the path and the later without.
//!
//! **Invariant:** both ends are searched first, and each step halves the rest: a thousand commits cost ten more searches. If the
//! answer came and went several times, one of the places where it went is found.

use super::request::{Answer, Request};
use super::retrieve::Searcher;
use super::revision::Selected;
use super::{Hit, SearchError};
use dataflows::data::DocumentPath;
use snapshots::{Archive, SourceId, VersionId};

/// Reason why there is nothing to bisect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BisectError {
    /// A search failed.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The answer is not there at the start.
    #[error("as of {commit}, {path} is not among the first {k}; give a --good at which it is, or a larger -k")]
    NotGood {
        /// The commit that should have it.
        commit: String,
        /// The path.
        path: DocumentPath,
        /// The number of hits.
        k: usize,
    },
    /// The answer is still there at the end.
    #[error("as of {commit}, {path} still has rank {rank}; give a --bad at which it is gone, or a smaller -k")]
    NotBad {
        /// The commit that should not have it.
        commit: String,
        /// The path.
        path: DocumentPath,
        /// Its rank.
        rank: usize,
    },
    /// One end does not lead to the other.
    #[error(
        "{good} is not among the first parents of {bad} that have snapshots; give two commits of one line, the older as --good"
    )]
    NotOnLine {
        /// The earlier end.
        good: String,
        /// The later end.
        bad: String,
    },
}

/// One search of a bisection.
#[derive(Clone, Debug)]
pub struct BisectStep {
    /// The snapshot that was searched.
    pub at: Selected,
    /// The best rank of the path, if it is among the first k.
    pub rank: Option<usize>,
}

/// Two neighbouring snapshots between which the answer went.
#[derive(Clone, Debug)]
pub struct Bisection {
    /// How many snapshots the line has, both ends included.
    pub snapshots: usize,
    /// How many searches it took.
    pub searches: usize,
    /// The last snapshot that has the path, and its hits.
    pub last_good: (Selected, Vec<Hit>),
    /// The first snapshot that has not, and its hits.
    pub first_bad: (Selected, Vec<Hit>),
}

impl Bisection {
    /// Returns the hits of the first bad snapshot that were not before `path` earlier: those that overtook it.
    #[must_use]
    pub fn overtook(&self, path: &DocumentPath) -> Vec<&Hit> {
        let ahead: Vec<&Hit> = self.last_good.1.iter().take_while(|hit| hit.path != *path).collect();
        let same =
            |left: &Hit, right: &Hit| left.path == right.path && left.card == right.card && left.text == right.text;
        self.first_bad.1.iter().filter(|hit| !ahead.iter().any(|before| same(before, hit))).collect()
    }
}

/// Finds the snapshot between `good` and `bad` at which `path` is no longer among the first `request.k`; calls `on_step` after
/// each search.
///
/// # Errors
/// If the ends are not as stated, or not on one line, and if a search fails.
pub fn bisect(
    searcher: &Searcher,
    request: &Request,
    path: &DocumentPath,
    good: &str,
    bad: &str,
    on_step: &mut dyn FnMut(&BisectStep),
) -> Result<Bisection, BisectError> {
    let [good, bad] = searcher.revisions().pair(
        searcher.reader(),
        request.source.as_deref(),
        request.view.as_deref(),
        [good, bad],
    )?;
    let not_on_line = || BisectError::NotOnLine { good: good.commit.to_string(), bad: bad.commit.to_string() };
    if good.source != bad.source {
        return Err(not_on_line());
    }
    let mut searches = 0;
    let mut search = |at: &Selected| -> Result<(Selected, Vec<Hit>, Option<usize>), BisectError> {
        let Answer { hits, .. } = searcher.search_in(request, vec![at.clone()])?;
        let at = at.clone();
        let rank = hits.iter().find(|hit| hit.path == *path).map(|hit| hit.rank);
        searches += 1;
        on_step(&BisectStep { at: at.clone(), rank });
        Ok((at, hits, rank))
    };
    let (from, from_hits, rank) = search(&good)?;
    if rank.is_none() {
        return Err(BisectError::NotGood { commit: from.commit.to_string(), path: path.clone(), k: request.k });
    }
    let (to, to_hits, rank) = search(&bad)?;
    if let Some(rank) = rank {
        return Err(BisectError::NotBad { commit: to.commit.to_string(), path: path.clone(), rank });
    }
    let snapshots = snapshots_between(searcher, &from, &to).ok_or_else(not_on_line)?;
    let (mut last_good, mut first_bad) = ((from, from_hits), (to, to_hits));
    let mut between = 0..snapshots.len().saturating_sub(1);
    while between.end - between.start > 1 {
        let middle = between.start + (between.end - between.start) / 2;
        let (at, hits, rank) = search(&snapshots[middle])?;
        if rank.is_some() {
            between.start = middle;
            last_good = (at, hits);
        } else {
            between.end = middle;
            first_bad = (at, hits);
        }
    }
    Ok(Bisection { snapshots: snapshots.len(), searches, last_good, first_bad })
}

/// Returns the snapshots from one to another along first parents, both included, oldest first; nothing if the later does not lead to the
/// earlier.
#[must_use]
pub fn snapshots_between(searcher: &Searcher, from: &Selected, to: &Selected) -> Option<Vec<Selected>> {
    if from.version == to.version {
        return Some(vec![from.clone()]);
    }
    let line = line(searcher, from.source, from.version, to.version).filter(|_| from.source == to.source)?;
    Some(searcher.reader().with_archive(|archive| {
        let select = |version: &VersionId| {
            let version = archive.version(*version)?;
            let (version, commit, epoch) = (version.id, version.commit, version.epoch.get());
            Some(Selected { version, commit, epoch, is_head: false, ..from.clone() })
        };
        line.iter().filter_map(select).collect()
    }))
}

/// Returns the versions from `good` to `bad` along first parents, both included; nothing if `bad` does not lead there.
fn line(searcher: &Searcher, source: SourceId, good: VersionId, bad: VersionId) -> Option<Vec<VersionId>> {
    let by_log = searcher.reader().with_archive(|archive| line_of_log(archive, good, bad));
    by_log.or_else(|| {
        // A commit without a snapshot interrupts the log's chain of parents; the repository still has it.
        let (_, record) = searcher.revisions().sources().iter().find(|(id, _)| *id == source)?;
        let git = searcher.revisions().repository(record)?;
        searcher.reader().with_archive(|archive| {
            let (first, last) = (archive.version(good)?.commit, archive.version(bad)?.commit);
            let commits = git.first_parents(last, |commit| *commit == first, None).ok()?;
            let reaches = commits.first()?.first_parent == Some(first);
            let snapshots = commits.iter().filter_map(|commit| archive.by_commit(source, commit.id));
            reaches.then(|| std::iter::once(good).chain(snapshots).collect())
        })
    })
}

fn line_of_log(archive: &Archive, good: VersionId, bad: VersionId) -> Option<Vec<VersionId>> {
    let target = archive.version(good)?.commit;
    let mut line: Vec<VersionId> = Vec::new();
    let mut reached = false;
    for version in archive.first_parents(bad) {
        line.push(version.id);
        reached = version.commit == target;
        if reached {
            break;
        }
    }
    if !reached {
        return None;
    }
    // Dropped snapshots continue the line, and are not searched.
    line.retain(|version| !archive.is_dropped(*version));
    line.reverse();
    (line.len() > 1).then_some(line)
}

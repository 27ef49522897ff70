//! From what a person types to a commit: hashes, refs, `~N`, and times.
//!
//! In: a revision. Out: one commit id, or an error that names every candidate.
//!
//! **Invariant:** an answer is never a guess. A branch and a tag of one name that differ, and a short hash with several
//! commits, are refused with the candidates; digits alone under seven are a number and no hash.
//!
//! This is git's order (gitrevisions) without its search syntax (`:/text`, `@{…}`), which has no meaning for snapshots:
//! the full hash, then refs, then the short hash.

use super::heads::{BRANCHES, HEAD, TAGS};
use super::history::Line;
use super::{GitError, GitSource, commit_id, find_commit, oid};
use git2::{ErrorCode, Oid, Repository};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use snapshots::CommitId;

/// Fewest digits that may name a commit, as git has it (`core.abbrev`, minimum 4).
const MIN_HASH: usize = 4;
/// Fewest digits where all of them are decimal.
const MIN_DECIMAL_HASH: usize = 7;
/// Most candidates that an error lists.
const MAX_CANDIDATES: usize = 10;

/// Returns the seconds since 1970 that a time names: `2026-11-29T10:00`, with an offset or `Z` behind it or UTC without.
///
/// ```
/// use tidemill::watch::git::parse_time;
/// assert_eq!(parse_time("1970-01-01T01:00"), Some(3600));
/// assert_eq!(parse_time("1970-01-01T01:00+01:00"), Some(0));
/// assert_eq!(parse_time("main"), None);
/// ```
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
    if !text.contains('-') || !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_second());
    }
    let time = text.parse::<DateTime>().ok()?;
    TimeZone::UTC.to_timestamp(time).ok().map(|time| time.as_second())
}

impl GitSource {
    /// Returns the commit that `rev` names: a full or short hash, a tag, a branch, `HEAD`, or any of these with `~N`.
    ///
    /// A branch or tag may be written in full (`refs/heads/X`) or as its view is called (`heads/X`). A time is for
    /// [`parse_time`] and [`Self::first_parent_at`], since it needs a view to count in.
    ///
    /// # Errors
    ///
    /// Where nothing or more than one commit answers, and where `~N` passes the start of history.
    pub fn resolve(&self, rev: &str) -> Result<CommitId, GitError> {
        let repository = self.pool.get()?;
        if let Some(id) = resolve_name(&repository, rev)? {
            return Ok(id);
        }
        let unknown = || GitError::NoRevision { rev: rev.to_owned() };
        let (base, generations) = rev.rsplit_once('~').ok_or_else(unknown)?;
        let generations: usize = if generations.is_empty() { 1 } else { generations.parse().map_err(|_| unknown())? };
        let from = match resolve_name(&repository, base)? {
            Some(id) => id,
            None => return Err(unknown()),
        };
        let mut length = 0;
        for commit in Line::new(&repository, from) {
            let commit = commit?;
            if length == generations {
                return Ok(commit.id);
            }
            length += 1;
        }
        Err(GitError::BeforeHistory { rev: rev.to_owned(), base: base.to_owned(), length })
    }
}

fn resolve_name(repository: &Repository, name: &str) -> Result<Option<CommitId>, GitError> {
    if let Ok(id) = name.parse::<CommitId>() {
        match find_commit(repository, id) {
            Ok(_) => return Ok(Some(id)),
            Err(GitError::MissingObject { .. }) => {}
            // A tag object's own hash, say: it is peeled below like a short one.
            Err(_) => return Ok(peel(repository, oid(id))),
        }
    }
    if name == HEAD {
        return Ok(target(repository, HEAD));
    }
    let mut found: Vec<(String, CommitId)> = Vec::new();
    for prefix in ["", TAGS, BRANCHES, "refs/remotes/", "refs/"] {
        if prefix.is_empty() && !name.starts_with("refs/") {
            continue;
        }
        let reference = format!("{prefix}{name}");
        if let Some(id) = target(repository, &reference) {
            found.push((reference, id));
        }
    }
    if let Some(&(_, id)) = found.first() {
        if found.iter().all(|&(_, other)| other == id) {
            return Ok(Some(id));
        }
        let candidates = found.into_iter().map(|(name, id)| format!("{name} ({id})")).collect();
        return Err(GitError::AmbiguousRevision { rev: name.to_owned(), candidates });
    }
    short_hash(repository, name)
}

/// Returns the commit that a ref stands at, if there is such a ref and it names a commit.
fn target(repository: &Repository, reference: &str) -> Option<CommitId> {
    let commit = repository.find_reference(reference).ok()?.peel_to_commit().ok()?;
    Some(commit_id(commit.id()))
}

/// Returns the commit that an object is, or that a tag object leads to.
fn peel(repository: &Repository, id: Oid) -> Option<CommitId> {
    let commit = repository.find_object(id, None).ok()?.peel_to_commit().ok()?;
    Some(commit_id(commit.id()))
}

fn short_hash(repository: &Repository, name: &str) -> Result<Option<CommitId>, GitError> {
    let is_hash = (MIN_HASH..40).contains(&name.len()) && name.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_number = name.bytes().all(|digit| digit.is_ascii_digit()) && name.len() < MIN_DECIMAL_HASH;
    if !is_hash || is_number {
        return Ok(None);
    }
    let failed = |source| GitError::Read { what: format!("objects that start with {name}"), source };
    match repository.find_object_by_prefix(name, None) {
        Ok(object) => return Ok(object.peel_to_commit().ok().map(|commit| commit_id(commit.id()))),
        Err(error) if error.code() == ErrorCode::Ambiguous => {}
        Err(_) => return Ok(None),
    }
    // Several objects share the prefix; most are blobs and trees, and only commits count. This lists every object of
    // the repository, which takes a fraction of a second and happens to nearly no one.
    let prefix = name.to_lowercase();
    let objects = repository.odb().map_err(failed)?;
    let mut ids = Vec::new();
    objects
        .foreach(|id| {
            if id.to_string().starts_with(&prefix) {
                ids.push(*id);
            }
            true
        })
        .map_err(failed)?;
    ids.sort_unstable();
    ids.dedup();
    let commits: Vec<CommitId> = ids
        .into_iter()
        .filter(|&id| matches!(objects.read_header(id), Ok((_, git2::ObjectType::Commit))))
        .map(commit_id)
        .collect();
    match commits.as_slice() {
        [] => Ok(None),
        [id] => Ok(Some(*id)),
        _ => Err(GitError::AmbiguousRevision {
            rev: name.to_owned(),
            candidates: commits.iter().take(MAX_CANDIDATES).map(ToString::to_string).collect(),
        }),
    }
}

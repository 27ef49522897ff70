//! Resolves a typed revision to a commit, as `git rev-parse` does: hashes, refs, expressions on them, and times.
//!
//! In: a revision. Out: one commit id, or an error that names every candidate.
//!
//! ```text
//! name                 a full hash · HEAD and its like · a ref · a short hash · what `git describe` says
//! name~N               the N-th first parent
//! name^N name^{…}      a parent, a type, a text of a message          read by libgit2, counted from the name's commit
//! name@{…} @{…} :/text a place in the reflog, the upstream, a text    read by libgit2
//! a..b ^a a^! a^@      several commits: refused
//! ```
//!
//! **Invariant:** an answer is never a guess. Names come before short hashes, as in git. Three cases are refused with the
//! candidates: a branch and a tag of one name that differ, a short hash of several commits, and a name that is also the
//! abbreviation of another commit's hash (seven digits and more, as git abbreviates). Fewer than seven decimal digits are a
//! number and no hash.

use super::heads::{BRANCHES, HEAD, TAGS};
use super::history::Line;
use super::{GitError, GitSource, commit_id, raw, read_commit};
use git2::{ErrorCode, Oid, Repository};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use snapshots::CommitId;

/// Fewest digits that may name a commit, as in git (`core.abbrev`, minimum 4).
const MIN_HASH: usize = 4;
/// Fewest digits where all of them are decimal.
const MIN_DECIMAL_HASH: usize = 7;
/// Most candidates that an error lists.
const MAX_CANDIDATES: usize = 10;

/// Returns the moment of a time: `2026-11-29T10:00`, with a trailing offset or `Z`, or UTC without.
///
/// ```
/// use tidemill::watch::git::parse_time;
/// let seconds = |text| parse_time(text).map(|time| time.as_second());
/// assert_eq!(seconds("1970-01-01T01:00"), Some(3600));
/// assert_eq!(seconds("1970-01-01T01:00+01:00"), Some(0));
/// assert_eq!(seconds("main"), None);
/// ```
#[must_use]
pub fn parse_time(text: &str) -> Option<Timestamp> {
    if !text.contains('-') || !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    let time = text.parse::<DateTime>().ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

/// Fewest digits of git's own abbreviations. A shorter hash that is also a ref's name means the ref.
const ABBREVIATION: usize = 7;
/// Operators that may follow a name: none of them can occur in the name of a ref (git-check-ref-format).
const OPERATORS: [&str; 4] = ["^", "~", ":", "@{"];

/// Splits a revision into its name and its operators.
///
/// ```
/// use tidemill::watch::git::split_revision;
/// assert_eq!(split_revision("main~3^2"), ("main", "~3^2"));
/// assert_eq!(split_revision("a@b@{1}"), ("a@b", "@{1}"));
/// assert_eq!(split_revision(":/fix"), ("", ":/fix"));
/// ```
#[must_use]
pub fn split_revision(rev: &str) -> (&str, &str) {
    let at = OPERATORS.iter().filter_map(|operator| rev.find(operator)).min();
    rev.split_at(at.unwrap_or(rev.len()))
}

/// Whether a revision is an abbreviation of a hash as git writes them.
#[must_use]
pub fn is_abbreviation(rev: &str) -> bool {
    (ABBREVIATION..=40).contains(&rev.len()) && rev.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a revision names several commits: a range, or a set of commits.
fn names_several(rev: &str) -> bool {
    let (name, rest) = split_revision(rev);
    // Braces, and a colon, are followed by text or a path.
    let operators = rest.split(['{', ':']).next().unwrap_or_default();
    let behind = rest.rsplit('}').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let is_set = |part: &str| part.contains("..") || ["^!", "^@", "^-"].iter().any(|set| part.contains(set));
    name.contains("..") || (name.is_empty() && rest.starts_with('^')) || is_set(operators) || is_set(behind)
}

impl GitSource {
    /// Returns the commit that `rev` names, as `git rev-parse` reads it where that names one commit.
    ///
    /// A branch or tag may be written in full (`refs/heads/X`) or as its view's name (`heads/X`). [`parse_time`] and
    /// [`Self::first_parent_at`] handle a time, because it needs a view.
    ///
    /// # Errors
    ///
    /// If no commit or more than one matches, or if `~N` passes the start of history.
    pub fn resolve(&self, rev: &str) -> Result<CommitId, GitError> {
        let repository = self.pool.get()?;
        let unknown = || GitError::NoRevision { rev: rev.to_owned() };
        if names_several(rev) {
            return Err(GitError::SeveralCommits { rev: rev.to_owned() });
        }
        match split_revision(rev) {
            (name, "") => resolve_name(&repository, name)?.ok_or_else(unknown),
            ("", rest) if rest.starts_with(":/") || rest.starts_with("@{") => {
                read_expression(&repository, rest).ok_or_else(unknown)
            }
            ("", _) => Err(unknown()),
            // A reflog and an upstream belong to a ref, not to its commit.
            (name, rest) if rest.starts_with("@{") => {
                let reference = match refs_called(&repository, name).as_slice() {
                    [] => return Err(unknown()),
                    [(reference, _)] => reference.clone(),
                    several => return Err(ambiguous(name, several)),
                };
                read_expression(&repository, &format!("{reference}{rest}")).ok_or_else(unknown)
            }
            (name, rest) => {
                let from = resolve_name(&repository, name)?.ok_or_else(unknown)?;
                match rest.strip_prefix('~').map(|number| (number.is_empty(), number.parse::<usize>())) {
                    Some((true, _)) => ancestor(&repository, rev, name, from, 1),
                    Some((false, Ok(generations))) => ancestor(&repository, rev, name, from, generations),
                    _ => read_expression(&repository, &format!("{from}{rest}")).ok_or_else(unknown),
                }
            }
        }
    }

    /// Returns the refs that a name may mean, in git's order of precedence, each with its commit.
    ///
    /// # Errors
    ///
    /// If the repository no longer opens.
    pub fn refs_called(&self, name: &str) -> Result<Vec<(String, CommitId)>, GitError> {
        Ok(refs_called(&*self.pool.get()?, name))
    }
}

/// Returns the `generations`-th first parent; the line ends where a shallow clone ends.
fn ancestor(
    repository: &Repository,
    rev: &str,
    base: &str,
    from: CommitId,
    generations: usize,
) -> Result<CommitId, GitError> {
    let mut length = 0;
    for commit in Line::new(repository, from) {
        let commit = commit?;
        if length == generations {
            return Ok(commit.id);
        }
        length += 1;
    }
    Err(GitError::BeforeHistory { rev: rev.to_owned(), base: base.to_owned(), length })
}

/// Returns the commit of an expression, read by libgit2, also through a tag object.
fn read_expression(repository: &Repository, expression: &str) -> Option<CommitId> {
    let object = repository.revparse_single(expression).ok()?;
    // `REV:path` and `REV^{tree}` name no commit.
    object.peel_to_commit().ok().map(|commit| commit_id(commit.id()))
}

fn ambiguous(name: &str, several: &[(String, CommitId)]) -> GitError {
    let candidates = several.iter().take(MAX_CANDIDATES).map(|(name, id)| format!("{name} ({id})")).collect();
    GitError::AmbiguousRevision { rev: name.to_owned(), candidates }
}

fn resolve_name(repository: &Repository, name: &str) -> Result<Option<CommitId>, GitError> {
    if let Ok(id) = name.parse::<CommitId>() {
        match read_commit(repository, id) {
            Ok(_) => return Ok(Some(id)),
            Err(GitError::MissingObject { .. }) => {}
            // For example a tag object's own hash: it is peeled below like a short one.
            Err(_) => return Ok(peel(repository, id)),
        }
    }
    let mut found = refs_called(repository, name);
    if found.is_empty() {
        return match described(name) {
            Some(hash) => short_hash(repository, hash),
            None => short_hash(repository, name),
        };
    }
    if is_abbreviation(name)
        && let Some(id) = short_hash(repository, name)?
    {
        found.push((id.to_string(), id));
    }
    let (_, first) = found[0];
    if found.iter().all(|&(_, other)| other == first) { Ok(Some(first)) } else { Err(ambiguous(name, &found)) }
}

/// Returns the hash in an output of `git describe`: `v1.0-3-gabcdef`.
fn described(name: &str) -> Option<&str> {
    let (front, hash) = name.rsplit_once("-g")?;
    let (tag, number) = front.rsplit_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && !tag.is_empty() && hash.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(hash)
}

/// Returns the refs that a name may mean (gitrevisions, `<refname>`), each with its commit.
fn refs_called(repository: &Repository, name: &str) -> Vec<(String, CommitId)> {
    let is_pseudo = |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_uppercase() || c == b'_');
    let name = if name == "@" { HEAD } else { name };
    let mut found: Vec<(String, CommitId)> = Vec::new();
    for prefix in ["", "refs/", TAGS, BRANCHES, "refs/remotes/"] {
        // Beside the folders of refs, the git folder holds HEAD, ORIG_HEAD and their like.
        if !(prefix.is_empty() && !name.starts_with("refs/") && !is_pseudo(name)) {
            let reference = format!("{prefix}{name}");
            found.extend(target(repository, &reference).map(|id| (reference, id)));
        }
        // A full name, and HEAD, have no other meaning.
        if prefix.is_empty() && !found.is_empty() {
            return found;
        }
    }
    let remote = format!("refs/remotes/{name}/HEAD");
    found.extend(target(repository, &remote).map(|id| (remote, id)));
    found
}

/// Returns the commit of a ref, if the ref exists and names a commit.
fn target(repository: &Repository, reference: &str) -> Option<CommitId> {
    let direct = repository.find_reference(reference).ok()?.resolve().ok()?;
    peel(repository, commit_id(direct.target()?))
}

/// Returns the commit that an object is, or that a tag object leads to.
fn peel(repository: &Repository, id: CommitId) -> Option<CommitId> {
    raw::peel(repository, id).ok().flatten().map(|commit| commit.id)
}

fn short_hash(repository: &Repository, name: &str) -> Result<Option<CommitId>, GitError> {
    let is_hash = (MIN_HASH..40).contains(&name.len()) && name.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_number = name.bytes().all(|digit| digit.is_ascii_digit()) && name.len() < MIN_DECIMAL_HASH;
    if !is_hash || is_number {
        return Ok(None);
    }
    let failed = |source| GitError::Read { what: format!("objects that start with {name}"), source };
    let objects = repository.odb().map_err(failed)?;
    let start = Oid::from_str(name).map_err(failed)?;
    match objects.exists_prefix(start, name.len()) {
        Ok(object) => return Ok(peel(repository, commit_id(object))),
        Err(error) if error.code() == ErrorCode::Ambiguous => {}
        Err(_) => return Ok(None),
    }
    // Several objects share the prefix; most are blobs and trees, and only commits count. This lists every object of the
    // repository, which takes a fraction of a second and is very rare.
    let prefix = name.to_lowercase();
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

//! Parses commits and tags as git does, from the bytes of their objects.
//!
//! In: an object's bytes. Out: the data that a tracker needs: tree, parents and committer time, or the target of a tag.
//!
//! **Invariant:** every commit that git reads is read: `tree` and `parent` lines must be right, and the lines after them may be
//! anything. A missing or malformed committer time is 0; one out of range is the nearest that `i64` holds. The time only affects
//! `--at TIME`. Git's own `parse_commit_buffer` and `parse_commit_date` (its `commit.c`) are as lenient, and give 0 if there is
//! no single author line. libgit2 refuses a commit whose author or committer line it does not understand.

use super::{Commit, GitError, kind_name, object_error, oid};
use git2::{ObjectType, Repository};
use snapshots::CommitId;

/// Most tags that may name each other before a commit; git has no limit, and real repositories nest at most two.
const MAX_TAGS: usize = 64;

/// The data of a commit that a tracker needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RawCommit {
    pub(super) id: CommitId,
    pub(super) tree: CommitId,
    /// All parents that it names, including those that a shallow clone lacks.
    pub(super) parents: Vec<CommitId>,
    /// Committer time in seconds since 1970.
    pub(super) time: i64,
}

impl From<RawCommit> for Commit {
    fn from(raw: RawCommit) -> Self {
        Self { id: raw.id, first_parent: raw.parents.first().copied(), time: raw.time }
    }
}

/// Reads a commit; the error names it if it is missing or malformed.
pub(super) fn read_commit(repository: &Repository, id: CommitId) -> Result<RawCommit, GitError> {
    let (kind, bytes) = read(repository, "commit", id)?;
    let wrong = |why: &str| GitError::Read { what: format!("commit {id}"), source: git2::Error::from_str(why) };
    if kind != ObjectType::Commit {
        return Err(wrong(&format!("it is a {}", kind_name(kind))));
    }
    parse_commit(id, &bytes).ok_or_else(|| wrong("its header names no tree, or a parent that is no object id"))
}

/// Returns the commit that an object is, or that its tags lead to; nothing if they lead to a tree or a blob.
///
/// # Errors
///
/// If an object on the way is missing, or a commit or tag is one that git does not read.
pub(super) fn peel(repository: &Repository, id: CommitId) -> Result<Option<RawCommit>, GitError> {
    let mut next = id;
    for _ in 0..MAX_TAGS {
        let (kind, bytes) = read(repository, "object", next)?;
        match kind {
            ObjectType::Commit => return read_commit(repository, next).map(Some),
            ObjectType::Tag => {
                next = parse_tag(&bytes).ok_or_else(|| GitError::Read {
                    what: format!("tag {next}"),
                    source: git2::Error::from_str("its first line names no object"),
                })?;
            }
            _ => return Ok(None),
        }
    }
    Err(GitError::Read {
        what: format!("tag {id}"),
        source: git2::Error::from_str("it leads through more tags than any tag does"),
    })
}

fn read(repository: &Repository, kind: &'static str, id: CommitId) -> Result<(ObjectType, Vec<u8>), GitError> {
    let failed = |source| object_error(kind, id, source);
    let objects = repository.odb().map_err(failed)?;
    let (size, found) = objects.read_header(oid(id)).map_err(failed)?;
    // Other objects are not inflated: a blob may have any size.
    if !matches!(found, ObjectType::Commit | ObjectType::Tag) || size > MAX_BYTES {
        return Ok((found, Vec::new()));
    }
    let object = objects.read(oid(id)).map_err(failed)?;
    Ok((object.kind(), object.data().to_vec()))
}

/// Largest commit or tag that is read; its message may be long, a header never is.
const MAX_BYTES: usize = 64 << 20;

fn parse_commit(id: CommitId, bytes: &[u8]) -> Option<RawCommit> {
    let mut rest = bytes;
    let tree = header_id(&mut rest, b"tree ")??;
    let mut parents = Vec::new();
    while let Some(parent) = header_id(&mut rest, b"parent ") {
        parents.push(parent?);
    }
    Some(RawCommit { id, tree, parents, time: committer_time(rest).unwrap_or(0) })
}

/// Takes the line that starts with `name`, if it is next; `None` for the id if it is malformed.
fn header_id(rest: &mut &[u8], name: &[u8]) -> Option<Option<CommitId>> {
    let line = rest.strip_prefix(name)?;
    let Some((hex, behind)) = line.split_at_checked(40) else { return Some(None) };
    let id = std::str::from_utf8(hex).ok().and_then(|hex| hex.parse().ok());
    let Some(behind) = behind.strip_prefix(b"\n") else { return Some(None) };
    *rest = behind;
    Some(id)
}

/// Returns the time of the `committer` line that follows the `author` lines.
fn committer_time(rest: &[u8]) -> Option<i64> {
    let mut header = rest.split(|&byte| byte == b'\n').take_while(|line| !line.is_empty());
    let line = header.find(|line| !line.starts_with(b"author "))?.strip_prefix(b"committer ")?;
    let date = &line[line.iter().rposition(|&byte| byte == b'>')? + 1..];
    let date = date.trim_ascii_start();
    let (is_negative, digits) = match date.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, date),
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let seconds = digits[..length]
        .iter()
        .try_fold(0_i64, |seconds, digit| seconds.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
        .unwrap_or(i64::MAX);
    Some(if is_negative { -seconds } else { seconds })
}

fn parse_tag(bytes: &[u8]) -> Option<CommitId> {
    header_id(&mut &*bytes, b"object ")?
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n";
    const PARENT: &str = "parent 0123456789012345678901234567890123456789\n";

    fn check(text: &str) -> Option<(usize, i64)> {
        let commit = parse_commit(CommitId::from_bytes([1; 20]), text.as_bytes())?;
        assert_eq!(commit.tree.to_string(), &TREE[5..45]);
        Some((commit.parents.len(), commit.time))
    }

    #[test]
    fn what_git_reads_is_read_and_what_it_refuses_is_refused() {
        let author = "author A <a@b> 1 +0000\n";
        for (rest, expected) in [
            (format!("{author}committer C <c@d> 1700000000 +0100\n\nx"), (0, 1_700_000_000)),
            (format!("{PARENT}{PARENT}{author}committer C <c@d> 7 +0000\n\nx"), (2, 7)),
            (format!("{author}committer C <c@d> -5 +0000\n\nx"), (0, -5)),
            (format!("{author}committer C <c@d> 99999999999999999999999 +0000\n\nx"), (0, i64::MAX)),
            (format!("{author}committer C <c@d> 12\n\nx"), (0, 12)),
            (format!("{author}committer C <c@d> 12 +999999999999\n\nx"), (0, 12)),
            (format!("{author}committer C <c@d>\n\nx"), (0, 0)),
            (format!("{author}committer C <c@d> soon\n\nx"), (0, 0)),
            (format!("{author}committer C c@d 12 +0000\n\nx"), (0, 0)),
            (format!("{author}committer C <<c>@d>> 12 +0000\n\nx"), (0, 12)),
            (format!("{author}{author}committer C <c@d> 12 +0000\n\nx"), (0, 12)),
            (format!("{author}gpgsig -----BEGIN\n xyz\n\ncommitter C <c@d> 12 +0000\n"), (0, 0)),
            ("author A\0B <a@b> 1\ncommitter C <c@d> 12 +0000\nencoding x\n\n\0\0".to_owned(), (0, 12)),
            ("committer C <c@d> 12 +0000\n\nno author".to_owned(), (0, 12)),
            ("\nno author, no committer".to_owned(), (0, 0)),
            (String::new(), (0, 0)),
        ] {
            assert_eq!(check(&format!("{TREE}{rest}")), Some(expected), "{rest:?}");
        }
        for refused in ["", "tree 4b82\n\n", "parent\n", &TREE[..44], &format!("{TREE}parent 0123\n\n"), "tree zz\n"] {
            assert_eq!(check(refused), None, "{refused:?}");
        }
    }
}

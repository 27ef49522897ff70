//! The files of a commit, and the changes between two, by walking trees side by side.
//!
//! In: commit ids. Out: files and changes, in the order of their paths' bytes.
//!
//! **Invariant:** `diff(a, b)` is exactly the difference of `files(a)` and `files(b)`; equal subtrees are skipped unread, so the
//! cost follows the change and not the repository.
//!
//! Git sorts the entries of a tree as if a folder's name ended in `/` (gitformat-tree), so a depth-first walk is sorted by full
//! path. A file and a folder of one name have different keys, so a file that becomes a folder is one change at the file's path
//! and one for each file inside. Old and hand-made trees break that order, so they are sorted here first.
//!
//! The walk is a stream: it keeps the entries of one folder per level and nothing of the folders behind it. Ten nested trees of
//! ten equal entries each name ten thousand million files in a kilobyte. So a long walk first counts what the tree expands to
//! ([`expansion`](super::expansion)), and a refused commit is refused again without a count.

use super::expansion::Limits;
use super::{GitError, GitSource, commit_id, read_commit};
use crate::watch::{FileChange, FileMode, FileState};
use dataflows::data::{ContentId, DocumentPath};
use git2::Repository;
use snapshots::CommitId;
use std::cmp::Ordering;

/// Deepest nesting of folders: git's own default for `core.maxTreeDepth` (Documentation/config/core.txt).
pub(super) const MAX_DEPTH: usize = 2_048;
/// Entries that a walk visits before it counts what the trees expand to. A usual commit changes far fewer and does not wait for
/// the count.
const FREE_ENTRIES: u64 = 1 << 16;
/// Bytes of paths that it visits before it counts.
const FREE_PATH_BYTES: u64 = 16 << 20;

/// One entry of a tree.
struct TreeEntry {
    /// The name, and for a folder the `/` that git sorts it by.
    key: Vec<u8>,
    item: Item,
}

/// The target of an entry.
#[derive(Clone, Copy, PartialEq)]
enum Item {
    Folder(CommitId),
    File(FileState),
}

/// Two folders at one path that are walked side by side; an absent one counts as empty.
struct Level {
    before: std::iter::Peekable<std::vec::IntoIter<TreeEntry>>,
    after: std::iter::Peekable<std::vec::IntoIter<TreeEntry>>,
    /// Length of the path before this level's names.
    prefix: usize,
}

impl GitSource {
    /// Returns every file of a commit: regular files, symbolic links and submodules, sorted by path.
    ///
    /// # Errors
    ///
    /// If the commit or one of its trees is missing, which the error names, or the tree passes a limit.
    pub fn files(&self, commit: CommitId) -> Result<Vec<(DocumentPath, FileState)>, GitError> {
        let mut files = Vec::new();
        self.walk(None, commit, |path, _, after| files.extend(after.map(|state| (path, state))))?;
        Ok(files)
    }

    /// Returns every file below a tree, as [`Self::files`] does of a commit.
    ///
    /// # Errors
    ///
    /// As [`Self::files`].
    pub(in crate::watch) fn files_of_tree(&self, tree: CommitId) -> Result<Vec<(DocumentPath, FileState)>, GitError> {
        let mut files = Vec::new();
        let repository = self.pool.get()?;
        let emit = |path, _, after: Option<FileState>| files.extend(after.map(|state| (path, state)));
        walk(&repository, None, tree, tree, emit)?;
        Ok(files)
    }

    /// Returns the changes that lead from one commit (or from nothing) to another, sorted by path.
    ///
    /// # Errors
    ///
    /// As [`Self::files`].
    pub fn diff(&self, from: Option<CommitId>, to: CommitId) -> Result<Vec<FileChange>, GitError> {
        let mut changes = Vec::new();
        self.walk(from, to, |path, before, after| changes.push(FileChange { path, before, after }))?;
        Ok(changes)
    }

    fn walk(
        &self,
        from: Option<CommitId>,
        to: CommitId,
        emit: impl FnMut(DocumentPath, Option<FileState>, Option<FileState>),
    ) -> Result<(), GitError> {
        let too_large = |what| GitError::TreeTooLarge { id: to, what };
        if let Some(what) = self.pool.refusal(to) {
            return Err(too_large(what));
        }
        let repository = self.pool.get()?;
        let root = |id| read_commit(&repository, id).map(|commit| commit.tree);
        let (before, after) = (from.map(root).transpose()?, root(to)?);
        let walked = walk(&repository, before, after, to, emit);
        if let Err(GitError::TreeTooLarge { what, .. }) = &walked {
            self.pool.refuse(to, what);
        }
        walked
    }
}

/// Walks two trees side by side; an error names `to`.
fn walk(
    repository: &Repository,
    before: Option<CommitId>,
    after: CommitId,
    to: CommitId,
    mut emit: impl FnMut(DocumentPath, Option<FileState>, Option<FileState>),
) -> Result<(), GitError> {
    if before == Some(after) {
        return Ok(());
    }
    let too_large = |what| GitError::TreeTooLarge { id: to, what };
    let (mut entries, mut path_bytes, mut is_measured) = (0_u64, 0_u64, false);
    let mut path: Vec<u8> = Vec::new();
    let mut levels = vec![level(repository, before, Some(after), 0)?];
    while let Some(top) = levels.last_mut() {
        path.truncate(top.prefix);
        let Some((key, old, new)) = top.next() else {
            levels.pop();
            continue;
        };
        path.extend_from_slice(&key);
        entries += 1;
        path_bytes += path.len() as u64;
        if !is_measured && (entries > FREE_ENTRIES || path_bytes > FREE_PATH_BYTES) {
            is_measured = true;
            for tree in before.into_iter().chain([after]) {
                if let Some(what) = Limits::default().passed_by(repository, tree)? {
                    return Err(too_large(what));
                }
            }
        }
        if old == new {
            continue;
        }
        // Keys of folders end in `/` and those of files do not, so one key never meets both kinds.
        match (old, new) {
            (Some(Item::File(_)), _) | (_, Some(Item::File(_))) => {
                emit(DocumentPath::new(path.as_slice()), file(old), file(new));
            }
            (old, new) => {
                if levels.len() >= MAX_DEPTH {
                    return Err(too_large("nests folders deeper than git does"));
                }
                levels.push(level(repository, folder(old), folder(new), path.len())?);
            }
        }
    }
    Ok(())
}

impl Level {
    /// Returns the next name of either side, with its target on each.
    fn next(&mut self) -> Option<(Vec<u8>, Option<Item>, Option<Item>)> {
        let order = match (self.before.peek(), self.after.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => before.key.cmp(&after.key),
        };
        let before = if order.is_le() { self.before.next() } else { None };
        let after = if order.is_ge() { self.after.next() } else { None };
        let items = (before.as_ref().map(|entry| entry.item), after.as_ref().map(|entry| entry.item));
        before.or(after).map(|entry| (entry.key, items.0, items.1))
    }
}

fn file(item: Option<Item>) -> Option<FileState> {
    match item {
        Some(Item::File(state)) => Some(state),
        _ => None,
    }
}

fn folder(item: Option<Item>) -> Option<CommitId> {
    match item {
        Some(Item::Folder(tree)) => Some(tree),
        _ => None,
    }
}

fn level(
    repository: &Repository,
    before: Option<CommitId>,
    after: Option<CommitId>,
    prefix: usize,
) -> Result<Level, GitError> {
    let read = |tree: Option<CommitId>| -> Result<_, GitError> {
        Ok(tree.map(|tree| entries(repository, tree)).transpose()?.unwrap_or_default().into_iter().peekable())
    };
    Ok(Level { before: read(before)?, after: read(after)?, prefix })
}

/// Returns the entries of a tree, strictly ascending by key.
fn entries(repository: &Repository, id: CommitId) -> Result<Vec<TreeEntry>, GitError> {
    let tree = super::expansion::open(repository, id)?;
    // Git never writes or checks out a name that is empty or holds a `/`, and no path is built from one.
    let named = |entry: &git2::TreeEntry<'_>| !entry.name_bytes().is_empty() && !entry.name_bytes().contains(&b'/');
    let mut entries: Vec<TreeEntry> = tree.iter().filter(named).map(|entry| read_entry(&entry)).collect();
    if !entries.is_sorted_by(|one, next| one.key < next.key) {
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        entries.dedup_by(|one, other| one.key == other.key);
    }
    Ok(entries)
}

/// Reads one entry; the mode's upper bits are its kind, as in `st_mode` (gitformat-tree).
fn read_entry(entry: &git2::TreeEntry<'_>) -> TreeEntry {
    let mut key = entry.name_bytes().to_vec();
    let id = commit_id(entry.id());
    let mode = match entry.filemode_raw() & 0o170_000 {
        0o040_000 => {
            key.push(b'/');
            return TreeEntry { key, item: Item::Folder(id) };
        }
        0o120_000 => FileMode::Symlink,
        0o100_000 => FileMode::Regular,
        // As git takes them (`canon_mode` in its `object.h`).
        _ => FileMode::Submodule,
    };
    TreeEntry { key, item: Item::File(FileState { content: ContentId::from_bytes(*id.as_bytes()), mode }) }
}

//! Counts what a tree expands to, without expanding it.
//!
//! In: the id of a tree. Out: the limit that it passes, if any.
//!
//! **Invariant:** each distinct tree object is opened once, however often it is named. So the cost follows the bytes of the
//! repository, never the number of paths. It counts what a walk would expand: files and folders by path, and the bytes of their
//! paths.

use super::tree::MAX_DEPTH;
use super::{GitError, commit_id, object_error, oid};
use git2::{ObjectType, Repository, Tree};
use rustc_hash::FxHashMap;
use snapshots::CommitId;

/// Largest tree object that is opened: a folder of some four million entries.
const MAX_TREE_BYTES: usize = 192 << 20;

/// Limits for the expansion of a tree.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Files and folders; the largest repositories in use name some two million.
    entries: u64,
    /// Bytes of their paths.
    path_bytes: u64,
    /// Distinct tree objects.
    trees: usize,
    /// A tree with more entries than this ...
    few: u64,
    /// ... has at most so many paths for each entry of its distinct objects. Copies of whole folders, such as the tags of a
    /// converted repository, stay far below.
    copies: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 4_000_000, path_bytes: 1 << 30, trees: 2_000_000, few: 500_000, copies: 1_000 }
    }
}

/// The content below one tree, by paths relative to it.
#[derive(Clone, Copy, Default)]
struct Below {
    entries: u64,
    path_bytes: u64,
    depth: usize,
}

/// A tree whose folders are being counted.
struct Open {
    id: CommitId,
    below: Below,
    folders: std::vec::IntoIter<(CommitId, u64)>,
    /// The length of the name of the folder that is counted above this one.
    name: u64,
}

impl Limits {
    /// Returns the limit that a tree passes, if any.
    ///
    /// # Errors
    /// If a tree is missing, which it names.
    pub(super) fn passed_by(&self, repository: &Repository, root: CommitId) -> Result<Option<&'static str>, GitError> {
        let mut known: FxHashMap<CommitId, Below> = FxHashMap::default();
        let mut held = 0_u64;
        let mut open = vec![Open::read(repository, root, 0, &mut held)?];
        while let Some(top) = open.last_mut() {
            if let Some((id, name)) = top.folders.next() {
                match known.get(&id) {
                    Some(below) => top.below.add(*below, name),
                    None if open.len() >= MAX_DEPTH => return Ok(Some("nests folders deeper than git does")),
                    None if known.len() >= self.trees => return Ok(Some("holds more folders than any repository")),
                    None => open.push(Open::read(repository, id, name, &mut held)?),
                }
            } else if let Some(Open { id, below, name, .. }) = open.pop() {
                if below.depth >= MAX_DEPTH {
                    return Ok(Some("nests folders deeper than git does"));
                }
                if below.entries > self.entries || below.path_bytes > self.path_bytes {
                    return Ok(Some("names more files than any repository (the limits: docs/operating.md)"));
                }
                known.insert(id, below);
                match open.last_mut() {
                    Some(parent) => parent.below.add(below, name),
                    None if below.entries > self.few && below.entries / held.max(1) > self.copies => {
                        return Ok(Some(
                            "names the same few objects by very many paths (the limits: docs/operating.md)",
                        ));
                    }
                    None => return Ok(None),
                }
            }
        }
        Ok(None)
    }
}

impl Below {
    /// Adds a folder, whose name has so many bytes, with all below it.
    fn add(&mut self, folder: Self, name: u64) {
        let prefix = folder.entries.saturating_mul(name + 1);
        self.entries = self.entries.saturating_add(folder.entries);
        self.path_bytes = self.path_bytes.saturating_add(folder.path_bytes).saturating_add(prefix);
        self.depth = self.depth.max(folder.depth + 1);
    }
}

impl Open {
    fn read(repository: &Repository, id: CommitId, name: u64, held: &mut u64) -> Result<Self, GitError> {
        let tree = open(repository, id)?;
        let mut below = Below::default();
        let mut folders = Vec::new();
        for entry in &tree {
            let length = entry.name_bytes().len() as u64;
            below.entries += 1;
            below.path_bytes += length;
            if entry.filemode_raw() & 0o170_000 == 0o040_000 {
                folders.push((commit_id(entry.id()), length));
            }
        }
        *held += below.entries;
        Ok(Self { id, below, folders: folders.into_iter(), name })
    }
}

/// Opens a tree, unless it is larger than any real one.
pub(super) fn open(repository: &Repository, id: CommitId) -> Result<Tree<'_>, GitError> {
    let failed = |source| object_error("tree", id, source);
    let (bytes, kind) = repository.odb().and_then(|objects| objects.read_header(oid(id))).map_err(failed)?;
    if kind == ObjectType::Tree && bytes > MAX_TREE_BYTES {
        return Err(GitError::FolderTooLarge { id, bytes });
    }
    repository.find_tree(oid(id)).map_err(failed)
}

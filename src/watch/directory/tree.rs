//! The git tree hash that names the state of a directory.
//!
//! In: files by path. Out: the hash that `git write-tree` gives for the same files.
//!
//! **Invariant:** only regular files count, each as mode 100644; so two directories with the same files have the same
//! name, whatever their links and executable bits.
//!
//! A tree object is `MODE SP NAME NUL` and twenty bytes of id an entry, behind `tree SIZE NUL` (gitformat-tree). Git
//! sorts folders as if their names ended in `/`, which is the order of full paths; so one pass with a stack does.

use crate::watch::{FileMode, FileState};
use dataflows::data::DocumentPath;
use sha1::{Digest, Sha1};
use snapshots::CommitId;
use std::collections::BTreeMap;

/// A folder whose entries are not complete yet.
struct Open<'a> {
    name: &'a [u8],
    entries: Vec<u8>,
}

/// Returns the hash of the git tree of the regular files.
///
/// ```
/// use tidemill::watch::directory::tree_hash;
/// // The empty tree has this hash in every repository.
/// let empty = tree_hash(&Default::default());
/// assert_eq!(empty.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
/// ```
#[must_use]
pub fn tree_hash(files: &BTreeMap<DocumentPath, FileState>) -> CommitId {
    let mut root = Vec::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    for (path, state) in files.iter().filter(|(_, state)| state.mode == FileMode::Regular) {
        let folder = path.folder();
        let parts = || folder.split(|&byte| byte == b'/').filter(|part| !part.is_empty());
        let shared = open.iter().zip(parts()).take_while(|(open, part)| open.name == *part).count();
        close(&mut root, &mut open, shared);
        open.extend(parts().skip(shared).map(|name| Open { name, entries: Vec::new() }));
        let entries = open.last_mut().map_or(&mut root, |folder| &mut folder.entries);
        add(entries, b"100644", path.file_name(), state.content.as_bytes());
    }
    close(&mut root, &mut open, 0);
    CommitId::from_bytes(hash(&root))
}

/// Closes folders until `depth` are open, each into the one that holds it.
fn close(root: &mut Vec<u8>, open: &mut Vec<Open<'_>>, depth: usize) {
    while open.len() > depth {
        let Some(folder) = open.pop() else { return };
        let parent = open.last_mut().map_or(&mut *root, |parent| &mut parent.entries);
        add(parent, b"40000", folder.name, &hash(&folder.entries));
    }
}

fn add(entries: &mut Vec<u8>, mode: &[u8], name: &[u8], id: &[u8; 20]) {
    for part in [mode, b" ", name, b"\0", id] {
        entries.extend_from_slice(part);
    }
}

fn hash(entries: &[u8]) -> [u8; 20] {
    Sha1::new().chain_update(format!("tree {}\0", entries.len())).chain_update(entries).finalize().into()
}

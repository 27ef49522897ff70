//! Lists the files of a work tree that git does not track.
//!
//! In: the index as read here, and a handle of the repository. Out: the paths that `git add -A` would add.
//!
//! **Invariant:** libgit2 decides what is ignored and lists the rest; it is given the index and never reads the one on disk, which
//! it may refuse.

use super::Files;
use super::index::Index;
use crate::watch::git::GitError;
use crate::watch::{FileMode, FileState};
use dataflows::data::DocumentPath;
use git2::{Delta, DiffOptions, IndexEntry, IndexTime, Oid, Repository};

/// The bit of an entry's extended flags by which libgit2 does not look at the disk (gitformat-index).
const SKIP_WORKTREE: u16 = 1 << 14;

/// Gives a handle the index as read here, because libgit2 refuses some indexes.
///
/// Its entries carry the mark not to look at the disk, which [`Disk`](super::disk::Disk) does.
pub(super) fn set_index(repository: &Repository, index: &Index) -> Result<(), GitError> {
    let failed = |source| GitError::Read { what: "the index".to_owned(), source };
    let mut own = git2::Index::new().map_err(failed)?;
    let zero = IndexTime::new(0, 0);
    for entry in &index.entries {
        let mode = match entry.state.mode {
            FileMode::Regular => 0o100_644,
            FileMode::Symlink => 0o120_000,
            FileMode::Submodule => 0o160_000,
        };
        let copy = IndexEntry {
            ctime: zero,
            mtime: zero,
            dev: 0,
            ino: 0,
            mode,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: Oid::from_bytes(entry.state.content.as_bytes()).map_err(failed)?,
            flags: 0,
            flags_extended: SKIP_WORKTREE,
            path: entry.path.as_bytes().to_vec(),
        };
        // An entry that libgit2 refuses is listed as untracked, and gets the same state.
        let _ = own.add(&copy);
    }
    repository.set_index(&mut own).map_err(failed)
}

/// Returns the paths that are not tracked and not ignored, and whether git failed to read there.
pub(super) fn untracked(repository: &Repository) -> Result<Vec<(DocumentPath, bool)>, GitError> {
    let failed = |source| GitError::Read { what: "the state of the work tree".to_owned(), source };
    let mut options = DiffOptions::new();
    options
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .include_unreadable(true)
        .ignore_submodules(true)
        .ignore_filemode(true);
    let index = repository.index().map_err(failed)?;
    let diff = repository.diff_index_to_workdir(Some(&index), Some(&mut options)).map_err(failed)?;
    let paths = diff.deltas().filter_map(|delta| {
        let is_unreadable = delta.status() == Delta::Unreadable;
        let path = delta.new_file().path_bytes()?;
        // A folder among the files is a nested repository.
        let is_wanted = is_unreadable || (delta.status() == Delta::Untracked && !path.ends_with(b"/"));
        is_wanted.then(|| (DocumentPath::new(path), is_unreadable))
    });
    Ok(paths.collect())
}

/// Removes paths that cannot exist beside an added file: a file in place of one of its folders, and files below it.
pub(super) fn give_way(files: &mut Files, added: &DocumentPath) {
    let bytes = added.as_bytes();
    for (end, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        files.remove(&DocumentPath::new(&bytes[..end]));
    }
    let gone: Vec<DocumentPath> = below(files, added).map(|(path, _)| path.clone()).collect();
    for path in gone {
        files.remove(&path);
    }
}

/// Returns the files below a folder.
pub(super) fn below<'a>(
    files: &'a Files,
    folder: &DocumentPath,
) -> impl Iterator<Item = (&'a DocumentPath, &'a FileState)> {
    // `0` is the byte behind `/`.
    let bound = |end: u8| DocumentPath::new([folder.as_bytes(), &[end]].concat());
    files.range(bound(b'/')..bound(b'/' + 1))
}

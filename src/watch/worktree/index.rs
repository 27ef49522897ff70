//! Reads a work tree's index, with every extension that git may write into it.
//!
//! In: the file `index` of a git folder. Out: its entries with the bits that say whether the disk counts, and the patterns of a
//! sparse checkout.
//!
//! **Invariant:** every index that git reads is read: versions 2 to 4, split (`link`), sparse (`sdir`, whose folders are opened
//! from their trees), with or without a checksum. Cache extensions are skipped. The file is never written.
//!
//! libgit2 refuses sparse and split indexes, so `gix-index` reads the entries. A path that leads out of the work tree or into a
//! `.git` is dropped: git writes none, and hashed files must be inside.

use super::WorktreeError;
use crate::watch::git::{GitError, GitSource};
use crate::watch::{FileMode, FileState};
use dataflows::data::{ContentId, DocumentPath};
use git2::Repository;
use gix_index::entry::{Flags, Mode, Stage, Stat};
use gix_index::{decode, hash};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use snapshots::CommitId;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// One path of the index.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: DocumentPath,
    /// The state in a commit if the disk did not count.
    pub(super) state: FileState,
    /// The `stat` of the file when git last knew that it had that state.
    pub(super) stat: Stat,
    pub(super) rule: EntryRule,
    /// Whether it was only announced by `git add --intent-to-add`, and is in no commit.
    pub(super) is_intended: bool,
}

/// Whether the file on disk counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryRule {
    /// It does.
    Disk,
    /// It does, and the entry is one side of a conflict.
    Unmerged,
    /// It does not: `git update-index --assume-unchanged`.
    Assumed,
    /// It does not (`--skip-worktree`), except for a file inside the patterns of a sparse checkout.
    Skipped,
}

/// The index as it was last read.
#[derive(Default)]
pub(super) struct Index {
    /// In the order of their paths; one a path.
    pub(super) entries: Vec<Entry>,
    /// The `stat` of the index file: inode, size, times of write and change.
    stamp: Option<[i64; 6]>,
}

impl Index {
    /// Reads the index again if it was written since.
    pub(super) fn refresh(&mut self, source: &GitSource, repository: &Repository) -> Result<(), WorktreeError> {
        let path = repository.path().join("index");
        let stamp = match std::fs::symlink_metadata(&path) {
            Ok(file) => {
                let [inode, size] = [file.ino(), file.size()].map(u64::cast_signed);
                [inode, size, file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()]
            }
            // Nothing was ever added.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                *self = Self::default();
                return Ok(());
            }
            Err(error) => return Err(WorktreeError::Index { path, why: error.to_string() }),
        };
        if self.stamp == Some(stamp) {
            return Ok(());
        }
        let options = decode::Options { thread_limit: Some(1), ..decode::Options::default() };
        let file = gix_index::File::at(&path, hash::Kind::Sha1, false, options)
            .map_err(|error| WorktreeError::Index { path, why: error.to_string() })?;
        let mut entries: Vec<Entry> = Vec::with_capacity(file.entries().len());
        for entry in file.entries() {
            let path = DocumentPath::new(&**entry.path(&file));
            let Ok(id) = <[u8; 20]>::try_from(entry.id.as_bytes()) else { continue };
            let rule = match entry.flags {
                flags if flags.stage() != Stage::Unconflicted => EntryRule::Unmerged,
                flags if flags.contains(Flags::ASSUME_VALID) => EntryRule::Assumed,
                flags if flags.contains(Flags::SKIP_WORKTREE) => EntryRule::Skipped,
                _ => EntryRule::Disk,
            };
            let mode = match entry.mode {
                Mode::DIR => {
                    entries.extend(below(source, &path, CommitId::from_bytes(id))?);
                    continue;
                }
                Mode::SYMLINK => FileMode::Symlink,
                Mode::COMMIT => FileMode::Submodule,
                _ => FileMode::Regular,
            };
            let is_intended = entry.flags.contains(Flags::INTENT_TO_ADD);
            let state = FileState { content: ContentId::from_bytes(id), mode };
            entries.push(Entry { path, state, stat: entry.stat, rule, is_intended });
        }
        entries.retain(|entry| is_inside(&entry.path));
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        // The sides of a conflict are one path.
        entries.dedup_by(|one, other| one.path == other.path);
        *self = Self { entries, stamp: Some(stamp) };
        Ok(())
    }

    /// Tells whether a file may have changed in the tick in which the index was written, so that its times cannot show it.
    pub(super) fn is_racy(&self, stat: &Stat, whole_seconds: bool) -> bool {
        let Some([_, _, seconds, nanoseconds, ..]) = self.stamp else { return true };
        let nanoseconds = if whole_seconds { 0 } else { nanoseconds };
        (i64::from(stat.mtime.secs), i64::from(stat.mtime.nsecs)) >= (seconds, nanoseconds)
    }

    /// Returns the entry at a path.
    pub(super) fn entry(&self, path: &DocumentPath) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.path.cmp(path)).ok()?;
        self.entries.get(at)
    }

    /// Tells whether there are entries below a folder.
    pub(super) fn holds_folder(&self, folder: &Path) -> bool {
        let prefix = [folder.as_os_str().as_bytes(), b"/"].concat();
        let at = self.entries.partition_point(|entry| entry.path.as_bytes() < prefix.as_slice());
        self.entries.get(at).is_some_and(|entry| entry.path.as_bytes().starts_with(&prefix))
    }
}

/// Returns the entries of a folder of a sparse index.
fn below(source: &GitSource, folder: &DocumentPath, tree: CommitId) -> Result<Vec<Entry>, GitError> {
    let folder = folder.as_bytes().strip_suffix(b"/").unwrap_or(folder.as_bytes());
    let entry = |(path, state): (DocumentPath, FileState)| Entry {
        path: DocumentPath::new([folder, b"/", path.as_bytes()].concat()),
        state,
        stat: Stat::default(),
        rule: EntryRule::Skipped,
        is_intended: false,
    };
    Ok(source.files_of_tree(tree)?.into_iter().map(entry).collect())
}

fn is_inside(path: &DocumentPath) -> bool {
    let path = Path::new(OsStr::from_bytes(path.as_bytes()));
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git"));
    path.components().next().is_some() && path.components().all(is_plain)
}

/// The part of a repository that a sparse checkout wants on disk.
pub(super) struct Sparse {
    patterns: Gitignore,
    /// Whether files outside the patterns may exist and are ignored.
    pub(super) expects_files_outside: bool,
}

impl Sparse {
    /// Returns it, if the checkout is sparse.
    pub(super) fn read(repository: &Repository) -> Option<Self> {
        let config = repository.config().ok()?;
        if !config.get_bool("core.sparseCheckout").unwrap_or(false) {
            return None;
        }
        // Without the file git wants everything.
        let text = std::fs::read(repository.path().join("info/sparse-checkout")).ok()?;
        let mut builder = GitignoreBuilder::new("");
        if config.get_bool("core.ignoreCase").unwrap_or(false) {
            let _ = builder.case_insensitive(true);
        }
        for line in String::from_utf8_lossy(&text).lines() {
            // A line that is no pattern matches nothing, as in git.
            let _ = builder.add_line(None, line);
        }
        let expects_files_outside = config.get_bool("sparse.expectFilesOutsideOfPatterns").unwrap_or(false);
        Some(Self { patterns: builder.build().ok()?, expects_files_outside })
    }

    /// Tells whether the patterns want a file; cone patterns give the same result when they are matched one by one.
    pub(super) fn wants(&self, path: &DocumentPath) -> bool {
        let path = PathBuf::from(OsStr::from_bytes(path.as_bytes()));
        self.patterns.matched_path_or_any_parents(path, false).is_ignore()
    }
}

//! The uncommitted state of a work tree: HEAD's files with what was changed, added and deleted since laid over them.
//!
//! In: a repository with a work tree, and file events. Out: batches of changes against the state that was known.
//!
//! **Invariant:** after every look the known state is what `git add -A` would commit: tracked files as they are on disk,
//! files that are not tracked unless git ignores them, and nothing of nested repositories. What git takes for unchanged
//! keeps the id of HEAD's blob, so line endings and filters make no difference where nobody edited.
//!
//! ```text
//! event in a folder that is not ignored ─► settle ─┐
//! event in the git folder (index, HEAD) ───────────┼─► diff HEAD's tree with the disk (libgit2) ─► difference ─► batch
//! start, interval, lost watch ─────────────────────┘      hash what differs
//! ```
//!
//! Events only say when to look; which files differ is git's own answer, which knows by size and times what was never
//! touched. A folder is watched before it is looked at. The index is read and never written.

use super::directory::{DirectoryContents, DirectoryError, HashError, Hashed, Pace, Readings, STASH_FILE_BYTES};
use super::directory::{Touches, hash_bytes, hash_file};
use super::git::{GitError, GitSource};
use super::{Commit, EventState, Events, FileChange, FileMode, FileState, changes};
use dataflows::data::DocumentPath;
use git2::{Delta, DiffOptions, Repository};
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Why a work tree did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorktreeError {
    /// The repository did not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The disk did not answer.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

/// What one look gave.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WorktreeBatch {
    /// The changes against the state before, in the order of their paths.
    pub changes: Vec<FileChange>,
    /// The commit that HEAD names, unless it is unborn.
    pub head: Option<Commit>,
    /// Whether the files are exactly those of HEAD.
    pub is_clean: bool,
    /// Files that cannot be read at present, and why.
    pub unreadable: Vec<(DocumentPath, String)>,
}

/// What the view of a work tree is called.
pub const WORKTREE_VIEW: &str = "worktree";

type Files = BTreeMap<DocumentPath, FileState>;

/// Follows one work tree.
pub struct WorktreeWatcher {
    source: GitSource,
    root: PathBuf,
    /// The tracker's own store, where it lies inside.
    store: Option<PathBuf>,
    readings: Arc<Readings>,
    events: Events,
    touches: Touches,
    pace: Pace,
    next_scan: Instant,
    files: Files,
    /// HEAD's files, as long as HEAD stays.
    base: Option<(CommitId, Files)>,
}

impl WorktreeWatcher {
    /// Starts from the files that are known already; the first look is due at once.
    ///
    /// # Errors
    ///
    /// Where the repository is bare.
    pub fn start(
        source: &GitSource,
        store: &Path,
        known: BTreeMap<DocumentPath, FileState>,
        pace: Pace,
    ) -> Result<Self, WorktreeError> {
        let root = source.work_tree()?;
        let git = source.repository()?.path().to_owned();
        let root = root.canonicalize().unwrap_or(root);
        let store = store.canonicalize().unwrap_or_else(|_| store.to_owned());
        let touches = Touches::default();
        let events = Events::start({
            let (touches, root, store) = (touches.clone(), root.clone(), store.clone());
            move |event| {
                let now = Instant::now();
                match event {
                    Ok(event) if !event.need_rescan() => {
                        for path in event.paths.iter().filter(|path| !path.starts_with(&store)) {
                            let inside = path.strip_prefix(&root).ok().filter(|path| !is_git(path));
                            // What moves in the git folder (the index, HEAD) may change what is tracked.
                            let path = inside.map(|path| DocumentPath::new(path.as_os_str().as_bytes()));
                            touches.touch(now, path);
                        }
                    }
                    _ => touches.touch(now, None),
                }
            }
        });
        let mut watcher = Self {
            source: source.clone(),
            store: store.strip_prefix(&root).ok().map(Path::to_owned),
            root,
            readings: Arc::default(),
            events,
            touches,
            pace,
            next_scan: Instant::now(),
            files: known,
            base: None,
        };
        watcher.events.watch(&git);
        Ok(watcher)
    }

    /// Returns what reads the contents of files that differ from their blobs.
    #[must_use]
    pub fn contents(&self) -> DirectoryContents {
        DirectoryContents::new(self.root.clone(), Arc::clone(&self.readings))
    }

    /// Waits until a look is due.
    ///
    /// It may be dropped at any point and called again: nothing is lost.
    pub async fn changed(&mut self) {
        self.touches.settled(&self.events, self.next_scan).await;
    }

    /// Looks at the work tree and returns what is different.
    ///
    /// # Errors
    ///
    /// Where the repository or the disk does not answer. Nothing is forgotten then: the next look is due after
    /// [`Pace::poll`].
    pub fn collect(&mut self) -> Result<WorktreeBatch, WorktreeError> {
        let touched = self.touches.take();
        let result = self.look(touched.paths());
        if result.is_err() {
            self.next_scan = Instant::now() + self.pace.poll;
        }
        result
    }

    /// Returns the files as of the last look.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<DocumentPath, FileState> {
        &self.files
    }

    /// Returns how well events arrive.
    #[must_use]
    pub fn state(&self) -> EventState {
        self.events.state()
    }

    /// Looks, after the folders that came to be are watched: the touched ones, or all where paths are not known.
    fn look(&mut self, touched: Option<BTreeSet<DocumentPath>>) -> Result<WorktreeBatch, WorktreeError> {
        let source = self.source.clone();
        let repository = source.repository()?;
        // A changed ignore file may open a folder that nobody watches.
        let is_ignore_file = |path: &DocumentPath| path.file_name() == b".gitignore";
        let touched = touched.filter(|paths| self.next_scan > Instant::now() && !paths.iter().any(is_ignore_file));
        match touched {
            Some(touched) => {
                for path in touched {
                    self.watch(&repository, Path::new(OsStr::from_bytes(path.as_bytes())));
                }
            }
            None => {
                self.events.revive();
                self.events.clear_warning();
                self.events.watch(&self.root);
                self.events.watch(repository.path());
                self.watch(&repository, Path::new(""));
                let wait = if self.state().warning.is_some() { self.pace.poll } else { self.pace.reconcile };
                self.next_scan = Instant::now() + wait;
            }
        }
        let head = self.source.head_commit()?;
        self.refresh_base(head)?;
        let base = self.base.as_ref().map(|(_, files)| files);
        let mut files = base.cloned().unwrap_or_default();
        let mut unreadable = Vec::new();
        for (path, is_unreadable) in differing(&repository, head)? {
            if self.store.as_ref().is_some_and(|store| relative(&path).starts_with(store)) {
                continue;
            }
            match self.state_at(&path) {
                Ok(Some(state)) => {
                    files.insert(path, state);
                }
                Ok(None) if !is_unreadable => {
                    files.remove(&path);
                    self.readings.forget(&path);
                }
                Ok(None) => {}
                Err(HashError::Unsettled) => {
                    // A file that is being written keeps its last whole state until the next look.
                    if let Some(&known) = self.files.get(&path) {
                        files.insert(path.clone(), known);
                    }
                    self.touches.touch(Instant::now(), Some(path));
                }
                Err(error) => {
                    files.remove(&path);
                    unreadable.push((path, error.to_string()));
                }
            }
        }
        let is_clean = self.base.as_ref().is_some_and(|(_, base)| *base == files);
        let changes = changes(&self.files, &files);
        self.files = files;
        Ok(WorktreeBatch { changes, head, is_clean, unreadable })
    }

    fn refresh_base(&mut self, head: Option<Commit>) -> Result<(), GitError> {
        if self.base.as_ref().map(|(commit, _)| *commit) != head.map(|head| head.id) {
            let read = |head: Commit| Ok::<_, GitError>((head.id, self.source.files(head.id)?.into_iter().collect()));
            self.base = head.map(read).transpose()?;
        }
        Ok(())
    }

    /// Returns what stands at a path on disk.
    fn state_at(&self, path: &DocumentPath) -> Result<Option<FileState>, HashError> {
        let absolute = self.root.join(relative(path));
        let metadata = match std::fs::symlink_metadata(&absolute) {
            Ok(metadata) => metadata,
            Err(error) => {
                return match HashError::from(error) {
                    HashError::Gone => Ok(None),
                    error => Err(error),
                };
            }
        };
        if metadata.is_symlink() {
            let target = std::fs::read_link(&absolute)?;
            let content = hash_bytes(target.as_os_str().as_bytes());
            return Ok(Some(FileState { content, mode: FileMode::Symlink }));
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        match hash_file(&absolute, STASH_FILE_BYTES) {
            Ok(hashed) => {
                let Hashed { content, .. } = hashed;
                self.readings.remember(path, hashed);
                Ok(Some(FileState { content, mode: FileMode::Regular }))
            }
            Err(HashError::Gone) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Watches a folder and those below it that git does not ignore; a path that is no folder costs a look.
    fn watch(&mut self, repository: &Repository, folder: &Path) {
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            let absolute = self.root.join(&folder);
            let is_root = folder.as_os_str().is_empty();
            let is_folder = std::fs::symlink_metadata(&absolute).is_ok_and(|metadata| metadata.is_dir());
            let is_foreign = is_git(&folder) || self.store.as_ref().is_some_and(|store| folder.starts_with(store));
            // A nested repository is none of this one's.
            let is_nested = !is_root && absolute.join(".git").exists();
            if !is_folder || is_foreign || is_nested {
                continue;
            }
            if !is_root && repository.is_path_ignored(&folder).unwrap_or(false) && !self.tracks(&folder) {
                continue;
            }
            self.events.watch(&absolute);
            // What cannot be listed is reported by the look that follows.
            for entry in std::fs::read_dir(&absolute).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open.push(folder.join(entry.file_name()));
                }
            }
        }
    }

    /// Tells whether a folder holds files of HEAD, as an ignored one may.
    fn tracks(&self, folder: &Path) -> bool {
        let prefix = DocumentPath::new([folder.as_os_str().as_bytes(), b"/"].concat());
        let next = self.base.as_ref().and_then(|(_, base)| base.range(prefix.clone()..).next());
        next.is_some_and(|(path, _)| path.as_bytes().starts_with(prefix.as_bytes()))
    }
}

/// Returns the paths at which the disk may differ from a commit's tree, and whether git failed to read there.
fn differing(repository: &Repository, head: Option<Commit>) -> Result<Vec<(DocumentPath, bool)>, GitError> {
    let failed = |source| GitError::Read { what: "the state of the work tree".to_owned(), source };
    let tree = match head {
        Some(head) => Some(super::git::tree_of(repository, head.id)?),
        None => None,
    };
    let mut options = DiffOptions::new();
    options
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .include_typechange(true)
        .include_unreadable(true)
        .ignore_submodules(true)
        .ignore_filemode(true);
    let diff = repository.diff_tree_to_workdir_with_index(tree.as_ref(), Some(&mut options)).map_err(failed)?;
    let paths = diff.deltas().filter_map(|delta| {
        let path = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes())?;
        // A folder among the files is a nested repository.
        (!path.ends_with(b"/")).then(|| (DocumentPath::new(path), delta.status() == Delta::Unreadable))
    });
    Ok(paths.collect())
}

fn relative(path: &DocumentPath) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}

fn is_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

#[cfg(test)]
mod tests;

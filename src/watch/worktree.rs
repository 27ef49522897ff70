//! The uncommitted state of a work tree: HEAD's files with the changes, additions and deletions since.
//!
//! In: a repository with a work tree, and file events. Out: batches of changes against the known state.
//!
//! **Invariant:** after every look the known state is what `git add -A` would commit: tracked files as they are on disk,
//! untracked files unless git ignores them or they are temporary files of an editor, and nothing of nested repositories. Index
//! entries whose bits say that the disk does not count (`assume-unchanged`, `skip-worktree`), and files outside the patterns of a
//! sparse checkout, are as in the index. A file that git considers unchanged keeps its blob's id. An unreadable file keeps its
//! known state.
//!
//! ```text
//! event in a folder that is not ignored ─► settle ─┐    the index (gix-index) ─► look at each path ─┐
//! event in the git folder (index, HEAD) ───────────┼─►                                              ├─► difference ─► batch
//! start, interval, lost watch ─────────────────────┘    what is not tracked (libgit2) ─► hash it ───┘
//! ```
//!
//! Events only say when to look. By size and times the index knows which files are untouched. A folder is watched before it is
//! read. The index is read and never written. Stores of tidemill are left out, and tracked files inside one are as in the index.
//!
//! An unreadable path keeps its last known state, or that of the index, and so does a path that may be gone with a disk
//! ([`directory`](super::directory) says when).

mod conversion;
mod disk;
mod index;
mod untracked;

use super::directory::{DirectoryContents, DirectoryError, HashError, Looks, Pace, Readings, Scan, Touches, Weighed};
use super::directory::{covers, now, unreadable_rules, weigh};
use super::git::{GitError, GitSource};
use super::{Commit, EventState, Events, FileChange, FileState, LeftOut, Stores, changes, left_by_editor};
use conversion::Conversion;
use dataflows::data::DocumentPath;
use dataflows::rules::Rules;
use disk::{Disk, Seen};
use git2::{Oid, Repository};
use index::{Entry, EntryRule, Index, Sparse};
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use untracked::{below, give_way, set_index, untracked};

/// Reason why a look at a work tree failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorktreeError {
    /// The repository did not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The disk did not answer.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The index is damaged, or cannot be read.
    #[error("cannot read the index {}: {why}; see what `git status` says of it", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// The error.
        why: String,
    },
}

/// The result of one look.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WorktreeBatch {
    /// The changes against the state before, in the order of their paths.
    pub changes: Vec<FileChange>,
    /// The commit that HEAD names, unless it is unborn.
    pub head: Option<Commit>,
    /// Whether the files are exactly those of HEAD.
    pub is_clean: bool,
    /// Files and folders that cannot be read at present, and why.
    pub unreadable: Vec<(DocumentPath, String)>,
    /// A loss that was held back, and is accepted with these changes.
    pub taken_over: Option<String>,
}

/// The name of a work tree's view.
pub const WORKTREE_VIEW: &str = "worktree";

type Files = BTreeMap<DocumentPath, FileState>;

/// Follows one work tree.
pub struct WorktreeWatcher {
    source: GitSource,
    root: PathBuf,
    /// The tracker's own store, if it is inside.
    store: Option<PathBuf>,
    readings: Arc<Readings>,
    events: Events,
    touches: Touches,
    pace: Pace,
    next_scan: Instant,
    files: Files,
    /// HEAD's files, while HEAD stays.
    base: Option<(CommitId, Files)>,
    index: Index,
    /// Stores that lie in the work tree.
    stores: Stores,
    /// Rules of the settings: they may take in what an editor left.
    rules: Option<Arc<Rules>>,
    /// How many files that an editor left the last look met.
    editors: usize,
    /// Folders that cannot be listed, or whose ignore file cannot be read, with the reason; every look tries them again.
    unlisted: BTreeMap<DocumentPath, String>,
    looks: Looks,
    accepts: bool,
    /// Looks in a row that failed, or met something that cannot be read.
    troubled: u32,
}

impl WorktreeWatcher {
    /// Starts from the files that are known already; the first look is due at once.
    ///
    /// # Errors
    ///
    /// If the repository is bare.
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
        let (touches, stores) = (Touches::default(), Stores::default());
        let events = touches.follow({
            let (root, store, stores) = (root.clone(), store.clone(), stores.clone());
            move |path| {
                let inside = path.strip_prefix(&root).ok();
                if path.starts_with(&store) || inside.is_some_and(|path| stores.hold(path)) {
                    return None;
                }
                // What moves in the git folder (the index, HEAD) may change what is tracked.
                let inside = inside.filter(|path| !is_git(path));
                Some(inside.map(|path| DocumentPath::new(path.as_os_str().as_bytes())))
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
            index: Index::default(),
            stores,
            rules: None,
            editors: 0,
            unlisted: BTreeMap::new(),
            looks: Looks::default(),
            accepts: false,
            troubled: 0,
        };
        watcher.events.watch(&git);
        Ok(watcher)
    }

    /// Goes on from what earlier looks remembered; `accepts` says that the first one holds nothing back.
    #[must_use]
    pub fn with_looks(self, looks: Looks, accepts: bool) -> Self {
        Self { looks, accepts, ..self }
    }

    /// Goes by rules of the settings, of which one that says `exclude = false` takes in what an editor left.
    #[must_use]
    pub fn with_rules(self, rules: Arc<Rules>) -> Self {
        Self { rules: Some(rules), ..self }
    }

    /// Returns what is remembered from look to look.
    #[must_use]
    pub fn looks(&self) -> &Looks {
        &self.looks
    }

    /// Returns when everything is looked at again, if nothing moves before.
    #[must_use]
    pub fn next_look(&self) -> Instant {
        self.next_scan
    }

    /// Returns a reader for the contents of files that differ from their blobs.
    #[must_use]
    pub fn contents(&self) -> DirectoryContents {
        let source = self.source.clone();
        let contents = DirectoryContents::new(self.root.clone(), Arc::clone(&self.readings));
        contents.converted(move |path, bytes| {
            let repository = source.open_again().ok()?;
            let mut index = Index::default();
            index.refresh(&source, &repository).ok()?;
            set_index(&repository, &index).ok()?;
            let stored = || {
                let entry = index.entry(path)?;
                let blob = repository.find_blob(Oid::from_bytes(entry.state.content.as_bytes()).ok()?).ok()?;
                Some(blob.content().to_vec())
            };
            Conversion::of(&repository).steps(relative(path)).apply(bytes, &stored)
        })
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
    /// If the repository or the disk does not answer. Nothing is lost then: the next look is due after [`Pace::poll`].
    pub fn collect(&mut self) -> Result<WorktreeBatch, WorktreeError> {
        let touched = self.touches.take();
        let result = self.look(touched.paths());
        if result.is_err() {
            self.troubled += 1;
            self.next_scan = Instant::now() + Pace::retry(self.troubled);
        }
        result
    }

    /// Returns the files as of the last look.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<DocumentPath, FileState> {
        &self.files
    }

    /// Returns what the last looks left out, by reason.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        LeftOut { stores: self.stores.count(), editors: self.editors }
    }

    /// Returns how well events arrive.
    #[must_use]
    pub fn state(&self) -> EventState {
        self.events.state()
    }

    /// Looks at the touched paths, or at all if they are unknown, after new folders are watched.
    fn look(&mut self, touched: Option<BTreeSet<DocumentPath>>) -> Result<WorktreeBatch, WorktreeError> {
        let source = self.source.clone();
        // A repository that is being deleted has no HEAD, and all files would be new ones.
        source.check()?;
        // A separate handle: it gets the index as read here, and the current settings.
        let repository = source.open_again()?;
        self.index.refresh(&source, &repository)?;
        set_index(&repository, &self.index)?;
        let device = self.device()?;
        // A changed ignore file may include a folder without a watch.
        let is_ignore_file = |path: &DocumentPath| path.file_name() == b".gitignore";
        let touched = touched.filter(|paths| self.next_scan > Instant::now() && !paths.iter().any(is_ignore_file));
        for folder in std::mem::take(&mut self.unlisted).into_keys() {
            self.watch(&repository, relative(&folder));
        }
        let is_whole = touched.is_none();
        match touched {
            Some(touched) => {
                for path in touched {
                    self.watch(&repository, relative(&path));
                }
            }
            None => {
                self.events.revive();
                self.events.clear_warning();
                self.events.watch(&self.root);
                self.events.watch(repository.path());
                self.watch(&repository, Path::new(""));
            }
        }
        let head = self.source.head_commit()?;
        self.refresh_base(head)?;
        let mut unreadable = Vec::new();
        let (files, editors) = self.would_commit(&repository, &mut unreadable)?;
        self.editors = editors;
        // The root may have gone meanwhile.
        self.device()?;
        let mut found = Scan { files, devices: [(DocumentPath::new(Vec::new()), device)].into(), ..Scan::default() };
        let accepts = std::mem::take(&mut self.accepts);
        let second_look = self.pace.second_look;
        let Weighed { held, taken_over } = weigh(&mut self.looks, &self.files, &found, now(), second_look, accepts);
        if !held.is_empty() {
            found.files = self.files.clone();
        }
        unreadable.extend(self.unlisted.iter().map(|(path, why)| (path.clone(), why.clone())));
        self.troubled = match (unreadable.is_empty(), is_whole) {
            (true, _) => 0,
            (false, true) => self.troubled + 1,
            (false, false) => self.troubled.max(1),
        };
        if is_whole || self.troubled > 0 || self.looks.doubt.is_some() {
            let next = Instant::now() + self.pace.next(self.state().warning.is_none(), self.troubled, &self.looks);
            self.next_scan = if is_whole { next } else { next.min(self.next_scan) };
        }
        let is_clean = self.base.as_ref().is_some_and(|(_, base)| *base == found.files);
        let changes = changes(&self.files, &found.files);
        for gone in changes.iter().filter(|change| change.after.is_none()) {
            self.readings.forget(&gone.path);
        }
        self.files = found.files;
        Ok(WorktreeBatch { changes, head, is_clean, unreadable, taken_over })
    }

    /// Returns the file system of the root, which must be there and can be listed.
    fn device(&self) -> Result<u64, DirectoryError> {
        let failed = |source| DirectoryError::Root { path: self.root.clone(), source };
        let listed = std::fs::read_dir(&self.root).and_then(|_| self.root.metadata());
        listed.map(|metadata| metadata.dev()).map_err(failed)
    }

    /// Tells whether the system denies access to a path.
    fn is_unseen(&self, path: &DocumentPath) -> bool {
        match std::fs::symlink_metadata(self.root.join(relative(path))) {
            Ok(_) => false,
            Err(error) => !matches!(HashError::from(error), HashError::Gone),
        }
    }

    fn refresh_base(&mut self, head: Option<Commit>) -> Result<(), GitError> {
        if self.base.as_ref().map(|(commit, _)| *commit) != head.map(|head| head.id) {
            let read = |head: Commit| Ok::<_, GitError>((head.id, self.source.files(head.id)?.into_iter().collect()));
            self.base = head.map(read).transpose()?;
        }
        Ok(())
    }

    /// Returns what `git add -A` would commit, and how many files more that an editor left, and notes what cannot be read: that
    /// stays as it was known.
    fn would_commit(
        &self,
        repository: &Repository,
        unreadable: &mut Vec<(DocumentPath, String)>,
    ) -> Result<(Files, usize), GitError> {
        let mut disk = Disk::new(&self.root, repository, &self.index, &self.readings);
        self.stores.forget(Path::new(""));
        let mut stores = self.stores.look(&self.root);
        let mut is_in_store = |path: &DocumentPath| {
            let path = relative(path);
            self.store.as_ref().is_some_and(|store| path.starts_with(store))
                || path.parent().is_some_and(|folder| stores.at(folder).is_some())
        };
        let sparse = Sparse::read(repository);
        let is_outside = |path: &DocumentPath| sparse.as_ref().is_some_and(|sparse| !sparse.wants(path));
        // A file that is there although it was skipped is looked at in a sparse checkout only.
        let heeds_skipped = sparse.as_ref().is_some_and(|sparse| !sparse.expects_files_outside);
        let mut files = Files::new();
        let is_unlisted = |path: &DocumentPath| self.unlisted.keys().any(|folder| covers(folder, path));
        let known_or_indexed = |path: &DocumentPath, entry: Option<&Entry>| {
            self.files.get(path).copied().or_else(|| entry.map(|entry| entry.state))
        };
        let mut take = |path: &DocumentPath, entry: Option<&Entry>, files: &mut Files| {
            if is_unlisted(path) {
                files.extend(known_or_indexed(path, entry).map(|known| (path.clone(), known)));
                return;
            }
            match disk.at(path) {
                Seen::Is(state) => {
                    files.insert(path.clone(), state);
                }
                Seen::Gone => {
                    let skipped = entry.filter(|entry| entry.rule == EntryRule::Skipped);
                    files.extend(skipped.map(|entry| (path.clone(), entry.state)));
                }
                Seen::Unsettled => {
                    // A file that is being written keeps its last whole state until the next look.
                    files.extend(self.files.get(path).map(|known| (path.clone(), *known)));
                    self.touches.touch(Instant::now(), Some(path.clone()));
                }
                Seen::Unreadable(why) => {
                    files.extend(known_or_indexed(path, entry).map(|known| (path.clone(), known)));
                    unreadable.push((path.clone(), why));
                }
            }
        };
        for entry in &self.index.entries {
            let heeds_disk = match entry.rule {
                EntryRule::Disk | EntryRule::Unmerged => true,
                EntryRule::Assumed => false,
                EntryRule::Skipped => heeds_skipped,
            };
            if heeds_disk && !is_outside(&entry.path) && !is_in_store(&entry.path) {
                take(&entry.path, Some(entry), &mut files);
            } else if !entry.is_intended {
                files.insert(entry.path.clone(), entry.state);
            }
        }
        let (mut closed, mut editors) = (Vec::new(), 0);
        for (path, is_unreadable) in untracked(repository)? {
            if is_outside(&path) || is_in_store(&path) {
                continue;
            }
            if left_by_editor(relative(&path), self.rules.as_deref()).is_some() {
                editors += 1;
                continue;
            }
            if is_unreadable {
                closed.push(path);
                continue;
            }
            take(&path, None, &mut files);
            if files.contains_key(&path) {
                give_way(&mut files, &path);
            }
        }
        for folder in closed {
            let folder = DocumentPath::new(folder.as_bytes().strip_suffix(b"/").unwrap_or(folder.as_bytes()));
            for (path, state) in below(&self.files, &folder) {
                files.entry(path.clone()).or_insert(*state);
            }
            if !self.unlisted.contains_key(&folder) {
                unreadable.push((folder, "it cannot be listed".to_owned()));
            }
        }
        // A file that git does not list may be in a folder that it could not list.
        let missing = self.files.iter().filter(|(path, _)| !files.contains_key(*path));
        let kept: Vec<_> = missing.filter(|(path, _)| is_unlisted(path) || self.is_unseen(path)).collect();
        let kept: Files = kept.into_iter().map(|(path, state)| (path.clone(), *state)).collect();
        files.extend(kept);
        Ok((files, editors))
    }

    /// Watches a folder and those below it that git does not ignore; a path that is no folder costs one check.
    fn watch(&mut self, repository: &Repository, folder: &Path) {
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            let absolute = self.root.join(&folder);
            let is_root = folder.as_os_str().is_empty();
            let is_folder = std::fs::symlink_metadata(&absolute).is_ok_and(|metadata| metadata.is_dir());
            let is_foreign = is_git(&folder)
                || self.store.as_ref().is_some_and(|store| folder.starts_with(store))
                || self.stores.look(&self.root).at(&folder).is_some();
            // A nested repository is not part of this one.
            let is_nested = !is_root && absolute.join(".git").exists();
            if !is_folder || is_foreign || is_nested {
                continue;
            }
            if !is_root && repository.is_path_ignored(&folder).unwrap_or(false) && !self.index.holds_folder(&folder) {
                continue;
            }
            self.events.watch(&absolute);
            let mut unlisted = |why: String| {
                self.unlisted.insert(DocumentPath::new(folder.as_os_str().as_bytes()), why);
            };
            // Git knows nothing of `.ignore`.
            if let Some((name, error)) = unreadable_rules(&absolute).filter(|(name, _)| *name == ".gitignore") {
                unlisted(format!("its ignore file {name} cannot be read: {error}"));
                continue;
            }
            let entries = match std::fs::read_dir(&absolute) {
                Ok(entries) => entries,
                Err(error) => {
                    if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                        unlisted(error.to_string());
                    }
                    continue;
                }
            };
            for entry in entries {
                match entry {
                    Ok(entry) if entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                        open.push(folder.join(entry.file_name()));
                    }
                    Ok(_) => {}
                    Err(error) => unlisted(error.to_string()),
                }
            }
        }
    }
}

fn relative(path: &DocumentPath) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}

fn is_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

#[cfg(test)]
mod tests;

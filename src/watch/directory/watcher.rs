//! A live directory: events settle into batches, each batch is looked at on disk, and a scan comes behind it all.
//!
//! In: file events and the disk. Out: batches of changes against the state that was known.
//!
//! **Invariant:** after every scan the known state is the disk's; between scans it differs by what has not settled yet.
//! A batch never repeats a change or names a path twice, and what an event said is never believed: only the path it
//! names is looked at.
//!
//! ```text
//! event ─► touched path ─► settle ─► look at the path and below ─┐
//! start, overflow, interval, lost watch ─► scan of everything ───┴─► difference to what was known ─► batch
//! ```
//!
//! Each wanted folder is watched by itself, right before it is listed: what is made inside while nobody watched is
//! found by the listing. Ignored folders cost no watch. Where the kernel has no watch left, the interval between scans
//! shrinks to that of polling.

use super::filter::is_ignore_file;
use super::scan::Scan;
use super::settle::{Touched, Touches};
use super::{DirectoryError, DirectorySource};
use crate::watch::{EventState, Events, FileChange, FileState};
use dataflows::data::DocumentPath;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often to look without being told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Time between two scans of everything while events arrive.
    pub reconcile: Duration,
    /// Time between two scans while they do not, and before a scan that failed is tried again.
    pub poll: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { reconcile: Duration::from_secs(180), poll: Duration::from_secs(5) }
    }
}

/// What one look at the disk gave.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// The changes, in the order of their paths; none where a burst came to nothing.
    pub changes: Vec<FileChange>,
    /// Everything that cannot be read at present, and why.
    pub unreadable: Vec<(DocumentPath, String)>,
    /// Whether the whole directory was looked at.
    pub reconciled: bool,
}

/// Follows one directory.
pub struct DirectoryWatcher {
    source: DirectorySource,
    events: Events,
    touches: Touches,
    pace: Pace,
    next_scan: Instant,
    files: BTreeMap<DocumentPath, FileState>,
    unreadable: BTreeMap<DocumentPath, String>,
}

impl DirectoryWatcher {
    /// Starts from the files that are known already (none at first); the first batch, due at once, is a full scan.
    #[must_use]
    pub fn start(source: &DirectorySource, known: BTreeMap<DocumentPath, FileState>, pace: Pace) -> Self {
        let touches = Touches::default();
        let events = Events::start({
            let touches = touches.clone();
            let source = source.clone();
            move |event| {
                let now = Instant::now();
                match event {
                    Ok(event) if !event.need_rescan() => {
                        for path in &event.paths {
                            touch(&source, &touches, now, path);
                        }
                    }
                    _ => touches.touch(now, None),
                }
            }
        });
        Self {
            source: source.clone(),
            events,
            touches,
            pace,
            next_scan: Instant::now(),
            files: known,
            unreadable: BTreeMap::new(),
        }
    }

    /// Waits until a batch is due.
    ///
    /// It may be dropped at any point and called again: nothing is lost.
    pub async fn changed(&mut self) {
        self.touches.settled(&self.events, self.next_scan).await;
    }

    /// Looks at what was touched (or at everything, where that is due) and returns what is different.
    ///
    /// It reads the disk and hashes files, so it belongs on a thread that may block.
    ///
    /// # Errors
    ///
    /// Where the root cannot be listed or the system ran out of something. Nothing is forgotten then: the next batch,
    /// due after [`Pace::poll`], is a scan of everything.
    pub fn collect(&mut self) -> Result<Batch, DirectoryError> {
        let touched = self.touches.take();
        let scan_is_due = self.next_scan <= Instant::now();
        let (changes, reconciled) = match touched {
            Touched::Paths(paths) if !scan_is_due && !touches_everything(&paths) => (self.look_at(paths), false),
            _ => (self.reconcile(), true),
        };
        let changes = changes.inspect_err(|_| self.next_scan = Instant::now() + self.pace.poll)?;
        for change in changes.iter().filter(|change| change.after.is_none()) {
            self.source.readings.forget(&change.path);
        }
        let unreadable = self.unreadable.iter().map(|(path, why)| (path.clone(), why.clone())).collect();
        Ok(Batch { changes, unreadable, reconciled })
    }

    /// Returns the files as of the last batch.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<DocumentPath, FileState> {
        &self.files
    }

    /// Returns how well events arrive.
    #[must_use]
    pub fn state(&self) -> EventState {
        self.events.state()
    }

    fn reconcile(&mut self) -> Result<Vec<FileChange>, DirectoryError> {
        self.events.revive();
        self.events.clear_warning();
        let events = &mut self.events;
        let scan = self.source.scan_all(&mut |folder| {
            events.watch(folder);
        })?;
        let wait = if self.state().warning.is_some() { self.pace.poll } else { self.pace.reconcile };
        self.next_scan = Instant::now() + wait;
        let mut before = BTreeMap::new();
        self.replace(None, scan, &mut before);
        Ok(self.differences(before))
    }

    fn look_at(&mut self, paths: BTreeSet<DocumentPath>) -> Result<Vec<FileChange>, DirectoryError> {
        let mut found: Vec<(DocumentPath, Scan)> = Vec::new();
        let mut walked: BTreeSet<DocumentPath> = BTreeSet::new();
        let mut look = self.source.look();
        for path in paths {
            // A changed ignore file changes its whole folder.
            let path = if is_ignore_file(path.file_name()) { DocumentPath::new(path.folder()) } else { path };
            if ancestors(&path).any(|folder| walked.contains(&folder)) {
                continue;
            }
            let events = &mut self.events;
            let (scan, is_folder) = look.at(&path, &mut |folder| {
                events.watch(folder);
            })?;
            if is_folder {
                walked.insert(path.clone());
            }
            found.push((path, scan));
        }
        // Nothing is taken over before all is read, and all was read while the root was there: else a failure on the
        // way would swallow changes, and a disk that is taken away would look like a deletion.
        self.source.check_root()?;
        let mut before = BTreeMap::new();
        for (path, scan) in found {
            self.replace(Some(&path), scan, &mut before);
        }
        Ok(self.differences(before))
    }

    /// Puts what was found at and below a path (or everywhere) in place of what was known there, and notes in `before`
    /// what each differing path held at first.
    fn replace(
        &mut self,
        path: Option<&DocumentPath>,
        scan: Scan,
        before: &mut BTreeMap<DocumentPath, Option<FileState>>,
    ) {
        let Scan { mut files, unreadable, unsettled } = scan;
        let now = Instant::now();
        for path in unsettled {
            // A file that is being written keeps its last whole state until the next look.
            if let Some(&state) = self.files.get(&path) {
                files.insert(path.clone(), state);
            }
            self.touches.touch(now, Some(path));
        }
        for path in at_or_below(&self.unreadable, path) {
            self.unreadable.remove(&path);
        }
        self.unreadable.extend(unreadable);
        for gone in at_or_below(&self.files, path) {
            if !files.contains_key(&gone) {
                let state = self.files.remove(&gone);
                before.entry(gone).or_insert(state);
            }
        }
        for (path, state) in files {
            let old = self.files.insert(path.clone(), state);
            if old != Some(state) {
                before.entry(path).or_insert(old);
            }
        }
    }

    fn differences(&self, before: BTreeMap<DocumentPath, Option<FileState>>) -> Vec<FileChange> {
        let changes = before.into_iter().map(|(path, before)| {
            let after = self.files.get(&path).copied();
            FileChange { path, before, after }
        });
        changes.filter(|change| change.before != change.after).collect()
    }
}

/// Notes a path that an event named.
fn touch(source: &DirectorySource, touches: &Touches, now: Instant, path: &Path) {
    let Ok(relative) = path.strip_prefix(&source.root) else { return };
    if source.filter.is_foreign(relative) {
        return;
    }
    let bytes = relative.as_os_str().as_bytes();
    let path = (!bytes.is_empty()).then(|| DocumentPath::new(bytes));
    touches.touch(now, path);
}

/// Tells whether an ignore file at the root itself is among the paths.
fn touches_everything(paths: &BTreeSet<DocumentPath>) -> bool {
    paths.iter().any(|path| path.folder().is_empty() && is_ignore_file(path.as_bytes()))
}

/// Returns a path and every folder above it.
fn ancestors(path: &DocumentPath) -> impl Iterator<Item = DocumentPath> + '_ {
    let bytes = path.as_bytes();
    let folders = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    folders.chain([bytes.len()]).map(move |end| DocumentPath::new(&bytes[..end]))
}

/// Returns the keys at or below a path; all of them without one.
fn at_or_below<T>(map: &BTreeMap<DocumentPath, T>, path: Option<&DocumentPath>) -> Vec<DocumentPath> {
    let Some(path) = path else { return map.keys().cloned().collect() };
    // Everything below `a` lies between `a/` and `a0`, the byte behind `/`; `a.b` and `a b` lie elsewhere.
    let bound = |end: u8| DocumentPath::new([path.as_bytes(), &[end]].concat());
    let below = map.range(bound(b'/')..bound(b'/' + 1)).map(|(path, _)| path);
    map.get_key_value(path).map(|(path, _)| path).into_iter().chain(below).cloned().collect()
}

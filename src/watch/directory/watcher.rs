//! A live directory: events settle into batches, each batch leads to a look at the disk, and periodic scans back this up.
//!
//! In: file events and the disk. Out: batches of changes against the known state.
//!
//! **Invariant:** after every scan the known state is the disk's; between scans it lacks only unsettled changes. A batch never
//! repeats a change or names a path twice. An event's content is never trusted: the watcher only looks at its path.
//!
//! ```text
//! event ─► touched path ─► settle ─► look at the path and below ─┐
//! start, overflow, interval, lost watch ─► scan of everything ───┴─► difference to what was known ─► batch
//! ```
//!
//! Each wanted folder is watched by itself, right before it is listed, so the listing finds files that were made before the
//! watch. Ignored folders cost no watch. If the kernel has no watch left, scans come as often as polls.
//!
//! An unreadable path keeps its known state, and so does a path that may be gone with a disk ([`doubt`](super::doubt)).

use super::doubt::{Looks, Weighed, covers, is_loss, weigh};
use super::filter::is_rule_file;
use super::scan::Scan;
use super::settle::{Touched, Touches};
use super::{DirectoryError, DirectorySource};
use crate::watch::{EventState, Events, FileChange, FileState, LeftOut};
use dataflows::data::DocumentPath;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often to look without an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Time between two scans of everything while events arrive.
    pub reconcile: Duration,
    /// Time between two scans while they do not.
    pub poll: Duration,
    /// How long missing files that may be gone with a disk are held back.
    pub second_look: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let (reconcile, poll) = (Duration::from_secs(180), Duration::from_secs(5));
        Self { reconcile, poll, second_look: Duration::from_secs(60) }
    }
}

/// Longest time until an unreadable path is looked at again.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

impl Pace {
    /// Returns the wait after so many consecutive failures (at least one).
    pub(in crate::watch) fn retry(failures: u32) -> Duration {
        Duration::from_secs(1).saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_RETRY)
    }

    /// Returns the wait until the next full scan.
    pub(in crate::watch) fn next(&self, can_watch: bool, troubled: u32, looks: &Looks) -> Duration {
        let mut wait = if can_watch { self.reconcile } else { self.poll };
        if troubled > 0 {
            wait = wait.min(Self::retry(troubled));
        }
        if let Some(doubt) = &looks.doubt {
            let waited = Duration::from_secs(now().saturating_sub(doubt.since).try_into().unwrap_or_default());
            wait = wait.min(self.second_look.saturating_sub(waited) + Duration::from_secs(1));
        }
        wait
    }
}

/// Returns the seconds since 1970.
pub(in crate::watch) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// The result of one look at the disk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// The changes, in the order of their paths; empty if a burst changed nothing.
    pub changes: Vec<FileChange>,
    /// Everything that cannot be read at present, and why.
    pub unreadable: Vec<(DocumentPath, String)>,
    /// Whether the whole directory was looked at.
    pub reconciled: bool,
    /// A loss that was held back, and is accepted with these changes.
    pub taken_over: Option<String>,
}

/// Watches one directory.
pub struct DirectoryWatcher {
    source: DirectorySource,
    events: Events,
    touches: Touches,
    pace: Pace,
    next_scan: Instant,
    files: BTreeMap<DocumentPath, FileState>,
    unreadable: BTreeMap<DocumentPath, String>,
    too_large: BTreeMap<DocumentPath, String>,
    /// What editors left, by the pattern that says so.
    editors: BTreeMap<DocumentPath, &'static str>,
    looks: Looks,
    /// Folders whose losses wait for a second look.
    held: Vec<DocumentPath>,
    /// Whether the next look accepts the losses that it would hold back.
    accepts: bool,
    taken_over: Option<String>,
    /// Consecutive looks that failed, or met an unreadable path.
    troubled: u32,
}

impl DirectoryWatcher {
    /// Starts from the known files (none at first); the first batch, due at once, is a full scan.
    #[must_use]
    pub fn start(source: &DirectorySource, known: BTreeMap<DocumentPath, FileState>, pace: Pace) -> Self {
        let touches = Touches::default();
        let events = touches.follow({
            let source = source.clone();
            move |path| {
                let relative = path.strip_prefix(&source.root).ok().filter(|path| !source.filter.is_foreign(path))?;
                let bytes = relative.as_os_str().as_bytes();
                Some((!bytes.is_empty()).then(|| DocumentPath::new(bytes)))
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
            too_large: BTreeMap::new(),
            editors: BTreeMap::new(),
            looks: Looks::default(),
            held: Vec::new(),
            accepts: false,
            taken_over: None,
            troubled: 0,
        }
    }

    /// Continues from the state of earlier looks; with `accepts` the first look holds nothing back.
    #[must_use]
    pub fn with_looks(self, looks: Looks, accepts: bool) -> Self {
        Self { looks, accepts, ..self }
    }

    /// Returns the state that survives from look to look.
    #[must_use]
    pub fn looks(&self) -> &Looks {
        &self.looks
    }

    /// Returns the time of the next full scan, if nothing changes before.
    #[must_use]
    pub fn next_look(&self) -> Instant {
        self.next_scan
    }

    /// Waits until a batch is due.
    ///
    /// It may be dropped at any point and called again: no event is lost.
    pub async fn changed(&mut self) {
        self.touches.settled(&self.events, self.next_scan).await;
    }

    /// Looks at the touched paths (or everything, if that is due) and returns the changes.
    ///
    /// It reads the disk and hashes files, so it belongs on a thread that may block.
    ///
    /// # Errors
    ///
    /// If the root cannot be listed or the system ran out of a resource. No event is lost then: the next batch is a full scan,
    /// due after a second, and later after each further failure.
    pub fn collect(&mut self) -> Result<Batch, DirectoryError> {
        let touched = self.touches.take();
        let scan_is_due = self.next_scan <= Instant::now();
        let is_partial = !scan_is_due && self.looks.doubt.is_none();
        let looked = match touched {
            Touched::Paths(paths) if is_partial && !touches_everything(&paths) => self.look_at(paths),
            _ => self.reconcile().map(|changes| (changes, true)),
        };
        let (changes, reconciled) = looked.inspect_err(|_| {
            self.troubled += 1;
            self.next_scan = Instant::now() + Pace::retry(self.troubled);
        })?;
        for change in changes.iter().filter(|change| change.after.is_none()) {
            self.source.readings.forget(&change.path);
        }
        let unreadable = self.unreadable.iter().chain(&self.too_large);
        let unreadable = unreadable.map(|(path, why)| (path.clone(), why.clone())).collect();
        Ok(Batch { changes, unreadable, reconciled, taken_over: self.taken_over.take() })
    }

    /// Returns the files as of the last batch.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<DocumentPath, FileState> {
        &self.files
    }

    /// Returns what the last looks left out, by reason.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        LeftOut { stores: self.source.filter.stores.count(), editors: self.editors.len() }
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
        let mut scan = self.source.scan_all(&mut |folder| {
            events.watch(folder);
        })?;
        let accepts = std::mem::take(&mut self.accepts);
        let Weighed { held, taken_over } =
            weigh(&mut self.looks, &self.files, &scan, now(), self.pace.second_look, accepts);
        self.taken_over = taken_over.or(self.taken_over.take());
        for folder in &held {
            scan.files.retain(|path, _| !covers(folder, path));
        }
        self.held = held;
        self.troubled = if scan.unreadable.is_empty() { 0 } else { self.troubled + 1 };
        self.next_scan = Instant::now() + self.pace.next(self.state().warning.is_none(), self.troubled, &self.looks);
        let mut before = BTreeMap::new();
        self.replace(None, scan, &mut before);
        Ok(self.differences(before))
    }

    /// Looks at single paths, or at everything if a loss must be weighed; returns which.
    fn look_at(&mut self, paths: BTreeSet<DocumentPath>) -> Result<(Vec<FileChange>, bool), DirectoryError> {
        let mut found: Vec<(DocumentPath, Scan)> = Vec::new();
        let mut walked: BTreeSet<DocumentPath> = BTreeSet::new();
        let mut look = self.source.look();
        for path in paths {
            // A changed rule file changes its whole folder.
            let path = if is_rule_file(path.file_name()) { DocumentPath::new(path.folder()) } else { path };
            // A folder that became a store a moment ago.
            let path = look.store_above(&path).unwrap_or(path);
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
        // Changes are applied only after everything was read while the root was there. Otherwise a failure on the way would lose
        // changes, and a removed disk would look like a deletion.
        self.source.check_root()?;
        if self.must_be_weighed(&found) {
            return self.reconcile().map(|changes| (changes, true));
        }
        if found.iter().any(|(_, scan)| !scan.unreadable.is_empty()) {
            self.troubled = self.troubled.max(1);
            self.next_scan = self.next_scan.min(Instant::now() + Pace::retry(self.troubled));
        }
        let mut before = BTreeMap::new();
        for (path, scan) in found {
            self.replace(Some(&path), scan, &mut before);
        }
        Ok((self.differences(before), false))
    }

    /// Tells whether a full scan must weigh missing files: a file system changed, or all files are missing.
    fn must_be_weighed(&self, found: &[(DocumentPath, Scan)]) -> bool {
        let seen: BTreeSet<&DocumentPath> = found.iter().flat_map(|(_, scan)| scan.files.keys()).collect();
        let looked_at = found.iter().flat_map(|(path, _)| at_or_below(&self.files, Some(path)));
        let gone: BTreeSet<DocumentPath> = looked_at.filter(|path| !seen.contains(path)).collect();
        let is_mount = |folder: &DocumentPath| self.looks.mounts.iter().any(|known| known.path == folder.as_bytes());
        let has_moved = || {
            self.looks
                .mounts
                .iter()
                .any(|known| self.source.device(&DocumentPath::new(known.path.as_slice())) != Some(known.device))
        };
        let is_new = || found.iter().any(|(_, scan)| scan.devices.keys().any(|folder| !is_mount(folder)));
        !gone.is_empty() && (is_loss(self.files.len(), gone.len()) || has_moved() || is_new())
    }

    /// Replaces the known state at and below a path (or everywhere) by the found one, and notes in `before` the old state of each
    /// differing path.
    fn replace(
        &mut self,
        path: Option<&DocumentPath>,
        scan: Scan,
        before: &mut BTreeMap<DocumentPath, Option<FileState>>,
    ) {
        let Scan { mut files, unreadable, too_large, unsettled, editors, .. } = scan;
        let now = Instant::now();
        for path in unsettled {
            // A file that is being written keeps its last whole state until the next look.
            if let Some(&state) = self.files.get(&path) {
                files.insert(path.clone(), state);
            }
            self.touches.touch(now, Some(path));
        }
        for (known, new) in [(&mut self.unreadable, unreadable), (&mut self.too_large, too_large)] {
            for path in at_or_below(known, path) {
                known.remove(&path);
            }
            known.extend(new);
        }
        for path in at_or_below(&self.editors, path) {
            self.editors.remove(&path);
        }
        self.editors.extend(editors);
        for gone in at_or_below(&self.files, path) {
            let root = || DocumentPath::new(Vec::new());
            let is_unseen = || ancestors(&gone).chain([root()]).any(|folder| self.unreadable.contains_key(&folder));
            let is_held = self.held.iter().any(|folder| covers(folder, &gone));
            if !files.contains_key(&gone) && !is_held && (self.unreadable.is_empty() || !is_unseen()) {
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

/// Tells whether a rule file at the root itself is among the paths.
fn touches_everything(paths: &BTreeSet<DocumentPath>) -> bool {
    paths.iter().any(|path| path.folder().is_empty() && is_rule_file(path.as_bytes()))
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

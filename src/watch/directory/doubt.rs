//! Decides whether missing files count as deleted, or a disk may have been removed.
//!
//! In: the known files, the result of a look, and the file systems of both. Out: the losses that are held back for now.
//!
//! | a look finds | action |
//! |---|---|
//! | the root or a folder is on another file system, and known files are missing there | held back |
//! | all files are missing, of three or more | held back |
//! | the same loss again, [`Pace::second_look`](super::Pace) later or when the user confirms it | accepted |
//! | anything else | accepted at once |
//!
//! **Invariant:** a file whose loss is in doubt keeps its last known state. A file system number means nothing after a restart of
//! the machine, so a changed number causes a second look only if files are missing too.

use super::scan::Scan;
use crate::watch::FileState;
use dataflows::data::DocumentPath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// So many missing files, if they are all, need a second look. An edit may empty a folder of one or two files.
const SOME: usize = 3;

/// State that survives from look to look, and from start to start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Looks {
    /// The file systems of the root and of folders below it at the last accepted look.
    pub mounts: Vec<Mount>,
    /// The loss that is held back.
    pub doubt: Option<Doubt>,
}

/// A folder at which a file system begins.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Mount {
    /// The folder's path below the root, in bytes; empty for the root itself.
    pub path: Vec<u8>,
    /// The number of the file system.
    pub device: u64,
}

/// A loss that is not accepted yet.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Doubt {
    /// The time of its first observation, in seconds since 1970.
    pub since: i64,
    /// The observation, in one line.
    pub what: String,
}

/// The result of weighing a look.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::watch) struct Weighed {
    /// Folders of held-back files, which keep their last known state.
    pub(in crate::watch) held: Vec<DocumentPath>,
    /// A loss that was in doubt and is accepted now.
    pub(in crate::watch) taken_over: Option<String>,
}

/// Tells whether a path is the folder itself or lies below it; the empty path is the root.
pub(in crate::watch) fn covers(folder: &DocumentPath, path: &DocumentPath) -> bool {
    let (folder, path) = (folder.as_bytes(), path.as_bytes());
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Tells whether the missing files are all known files, and too many for an edit.
pub(super) const fn is_loss(known: usize, gone: usize) -> bool {
    known >= SOME && gone == known
}

/// Weighs the result of a full scan; `now` in seconds since 1970.
pub(in crate::watch) fn weigh(
    looks: &mut Looks,
    known: &BTreeMap<DocumentPath, FileState>,
    found: &Scan,
    now: i64,
    second_look: Duration,
    accepts: bool,
) -> Weighed {
    let mut lost: Vec<(DocumentPath, String)> = Vec::new();
    let was: BTreeMap<DocumentPath, u64> =
        looks.mounts.iter().map(|mount| (DocumentPath::new(mount.path.as_slice()), mount.device)).collect();
    // Without an earlier look the file systems are unknown.
    let folders = was.keys().chain(found.devices.keys().filter(|folder| !was.contains_key(*folder)));
    for folder in folders.filter(|_| !was.is_empty()) {
        let (before, after) = (was.get(folder), found.devices.get(folder));
        let is_unreadable = || found.unreadable.iter().any(|(path, _)| covers(path, folder));
        if before == after || lost.iter().any(|(above, _)| covers(above, folder)) || is_unreadable() {
            continue;
        }
        let gone = known.keys().filter(|path| covers(folder, path) && !found.files.contains_key(*path)).count();
        if gone > 0 {
            let place = if folder.as_bytes().is_empty() { "the directory".into() } else { folder.display() };
            let on = if after.is_some() { "stands on another file system" } else { "has lost its file system" };
            lost.push((folder.clone(), format!("{place} {on}, and {gone} files that were there are gone")));
        }
    }
    let is_empty = found.files.is_empty() && found.unreadable.is_empty();
    if lost.is_empty() && is_empty && is_loss(known.len(), known.len()) {
        lost.push((DocumentPath::new(Vec::new()), format!("all {} files are gone at once", known.len())));
    }
    let mounts = |held: &[DocumentPath]| {
        let is_held = |folder: &DocumentPath| held.iter().any(|above| covers(above, folder));
        let kept = was.iter().filter(|(folder, _)| is_held(folder));
        let new = found.devices.iter().filter(|(folder, _)| !is_held(folder));
        kept.chain(new).map(|(path, &device)| Mount { path: path.as_bytes().to_vec(), device }).collect()
    };
    if lost.is_empty() {
        *looks = Looks { mounts: mounts(&[]), doubt: None };
        return Weighed::default();
    }
    let what = lost.iter().map(|(_, what)| what.as_str()).collect::<Vec<_>>().join("; ");
    // A clock that was set back starts the wait again.
    let same = looks.doubt.take().filter(|doubt| doubt.what == what && doubt.since <= now);
    let doubt = same.unwrap_or(Doubt { since: now, what: what.clone() });
    if accepts || now.abs_diff(doubt.since) >= second_look.as_secs().max(1) {
        *looks = Looks { mounts: mounts(&[]), doubt: None };
        return Weighed { held: Vec::new(), taken_over: Some(what) };
    }
    let held: Vec<DocumentPath> = lost.into_iter().map(|(folder, _)| folder).collect();
    *looks = Looks { mounts: mounts(&held), doubt: Some(doubt) };
    Weighed { held, taken_over: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::FileMode;

    const LATER: Duration = Duration::from_secs(60);

    fn files(paths: &[&str]) -> BTreeMap<DocumentPath, FileState> {
        let state = FileState { content: Default::default(), mode: FileMode::Regular };
        paths.iter().map(|&path| (path.into(), state)).collect()
    }

    fn found(paths: &[&str], devices: &[(&str, u64)]) -> Scan {
        let devices = devices.iter().map(|&(folder, device)| (folder.into(), device)).collect();
        Scan { files: files(paths), devices, ..Scan::default() }
    }

    fn held(weighed: &Weighed) -> Vec<String> {
        weighed.held.iter().map(|path| path.display().into_owned()).collect()
    }

    /// Weighs a look after one that found `before` on file systems 1 and, in `disk`, 2.
    fn after(looks: &mut Looks, scan: &Scan, now: i64, accepts: bool) -> Weighed {
        let known = files(&["a", "disk/b", "disk/c", "x/d"]);
        if looks.mounts.is_empty() {
            let first = found(&["a", "disk/b", "disk/c", "x/d"], &[("", 1), ("disk", 2)]);
            assert_eq!(weigh(looks, &BTreeMap::new(), &first, 0, LATER, false), Weighed::default());
        }
        weigh(looks, &known, scan, now, LATER, accepts)
    }

    #[test]
    fn a_loss_is_held_back_where_a_file_system_went_and_taken_over_at_once_elsewhere() {
        let check = |scan: Scan, expected: &[&str]| {
            assert_eq!(held(&after(&mut Looks::default(), &scan, 1, false)), expected, "{scan:?}");
        };
        let both = [("", 1), ("disk", 2)];
        check(found(&["a", "disk/b"], &both), &[]);
        check(found(&["a", "x/d"], &both), &[]);
        check(found(&["a", "x/d"], &[("", 1)]), &["disk"]);
        check(found(&["a", "disk/b", "x/d"], &[("", 1), ("disk", 3)]), &["disk"]);
        check(found(&["a", "disk/b", "disk/c", "x/d"], &[("", 7), ("disk", 8)]), &[]);
        check(found(&["disk/b", "disk/c"], &[("", 1), ("disk", 2), ("x", 5)]), &["x"]);
        check(found(&["README"], &[("", 4)]), &[""]);
        check(found(&[], &both), &[""]);
    }

    #[test]
    fn a_second_look_or_the_users_word_takes_a_loss_over_and_another_loss_begins_anew() {
        let gone = found(&["a", "x/d"], &[("", 1)]);
        let mut looks = Looks::default();
        assert_eq!(held(&after(&mut looks, &gone, 100, false)), ["disk"]);
        assert_eq!(held(&after(&mut looks, &gone, 159, false)), ["disk"]);
        assert_eq!(looks.doubt.as_ref().map(|doubt| doubt.since), Some(100));
        let taken = after(&mut looks.clone(), &gone, 160, false);
        assert!(taken.held.is_empty() && taken.taken_over.is_some_and(|what| what.contains("2 files")), "{looks:?}");
        assert!(after(&mut looks.clone(), &gone, 101, true).taken_over.is_some());
        let empty = found(&[], &[("", 1), ("disk", 2)]);
        assert_eq!(held(&after(&mut looks, &empty, 200, false)), [""]);
        assert_eq!(looks.doubt.as_ref().map(|doubt| doubt.since), Some(200));
        // Files that come back end the doubt.
        let whole = found(&["a", "disk/b", "disk/c", "x/d"], &[("", 1), ("disk", 2)]);
        assert_eq!(after(&mut looks, &whole, 201, false), Weighed::default());
        assert_eq!((looks.doubt, looks.mounts.len()), (None, 2));
    }

    #[test]
    fn two_files_are_deleted_by_an_edit() {
        let (mut looks, known) = (Looks::default(), files(&["a", "b"]));
        assert_eq!(weigh(&mut looks, &known, &found(&[], &[("", 1)]), 0, LATER, false), Weighed::default());
    }
}

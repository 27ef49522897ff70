//! Unseen files are not deletions: removed disks, all files missing at once, unreadable ignore files.

use super::*;
use std::collections::BTreeMap;
use std::time::Duration;

const PACE: Pace = Pace { reconcile: Duration::ZERO, poll: Duration::ZERO, second_look: Duration::from_secs(1) };

fn watcher(path: &Path) -> DirectoryWatcher {
    let mut watcher = DirectoryWatcher::start(&open(path), BTreeMap::new(), PACE);
    watcher.collect().unwrap();
    watcher
}

fn names(watcher: &DirectoryWatcher) -> Vec<String> {
    watcher.files().keys().map(|path| path.display().into_owned()).collect()
}

#[test]
fn files_that_are_all_gone_at_once_are_held_back_until_that_is_seen_again() {
    let folder = folder(&[("a", "1"), ("b", "2"), ("c/d", "3")]);
    let mut watcher = watcher(folder.path());
    let all = names(&watcher);
    let away = folder.path().join(".git");
    fs::create_dir(&away).unwrap();
    for name in ["a", "b", "c"] {
        fs::rename(folder.path().join(name), away.join(name)).unwrap();
    }
    let batch = watcher.collect().unwrap();
    assert!(batch.changes.is_empty() && batch.taken_over.is_none());
    assert_eq!(names(&watcher), all);
    assert!(watcher.looks().doubt.as_ref().is_some_and(|doubt| doubt.what == "all 3 files are gone at once"));
    // Files that come back end the doubt, and nothing has moved.
    for name in ["a", "b", "c"] {
        fs::rename(away.join(name), folder.path().join(name)).unwrap();
    }
    assert!(watcher.collect().unwrap().changes.is_empty());
    assert_eq!(watcher.looks().doubt, None);
    for name in ["a", "b"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    fs::remove_dir_all(folder.path().join("c")).unwrap();
    assert!(watcher.collect().unwrap().changes.is_empty());
    let taken = loop {
        let batch = watcher.collect().unwrap();
        if !batch.changes.is_empty() {
            break batch;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((taken.changes.len(), names(&watcher).len()), (3, 0));
    assert!(taken.taken_over.is_some_and(|what| what.contains("3 files")));
}

#[test]
fn a_loss_is_remembered_over_a_start_and_taken_over_on_the_users_word() {
    let folder = folder(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let first = watcher(folder.path());
    let (known, looks) = (first.files().clone(), first.looks().clone());
    assert_eq!(looks.mounts.len(), 1);
    let other = Mount { path: Vec::new(), device: looks.mounts[0].device + 1 };
    fs::remove_file(folder.path().join("a")).unwrap();
    // The root was on another file system at its last look.
    let start = |accepts: bool| {
        let looks = Looks { mounts: vec![other.clone()], doubt: None };
        let mut watcher = DirectoryWatcher::start(&open(folder.path()), known.clone(), PACE).with_looks(looks, accepts);
        let changes = watcher.collect().unwrap().changes.len();
        (changes, watcher.looks().doubt.is_some())
    };
    assert_eq!(start(false), (0, true));
    assert_eq!(start(true), (1, false));
}

#[test]
fn an_ignore_file_that_is_none_changes_nothing_and_one_of_the_root_that_cannot_be_read_fails_the_look() {
    let folder = folder(&[("a", "1"), ("sub/b", "2"), (".gitignore", "->.gitignore"), ("sub/.ignore", "->nowhere")]);
    fs::create_dir(folder.path().join("sub/.gitignore")).unwrap();
    let watcher = watcher(folder.path());
    assert_eq!(names(&watcher), [".gitignore", "a", "sub/.ignore", "sub/b"]);
}

//! A live directory: after usual file operations, events alone bring the watcher to the state of the disk.

use super::*;
use crate::watch::{FileChange, changes};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// Far longer than a batch takes, so that a busy machine is no failure.
const PATIENCE: Duration = Duration::from_secs(5);
/// No periodic scan makes up for a lost event while a test runs.
const EVENTS_ONLY: Pace = Pace {
    reconcile: Duration::from_secs(3600),
    poll: Duration::from_secs(3600),
    second_look: Duration::from_secs(3600),
};

struct Live {
    folder: tempfile::TempDir,
    watcher: DirectoryWatcher,
}

impl Live {
    async fn start(files: &[(&str, &str)]) -> Self {
        let folder = folder(files);
        let mut watcher = DirectoryWatcher::start(&open(folder.path()), BTreeMap::new(), EVENTS_ONLY);
        timeout(PATIENCE, watcher.changed()).await.expect("the first batch is due at once");
        assert!(watcher.collect().unwrap().reconciled);
        assert_eq!(watcher.state().warning, None);
        Self { folder, watcher }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// Collects batches until the watcher's state is the disk's; returns the batches, which must lead there.
    async fn settle(&mut self) -> Vec<Vec<FileChange>> {
        let disk = open(self.folder.path()).scan().unwrap().files;
        let mut batches = Vec::new();
        let settled = async {
            while *self.watcher.files() != disk {
                self.watcher.changed().await;
                let before = self.watcher.files().clone();
                let batch = self.watcher.collect().unwrap();
                let at_root = |change: &FileChange| [".ignore", ".gitignore"].contains(&change.path.display().as_ref());
                assert!(!batch.reconciled || batch.changes.iter().any(at_root), "events suffice");
                assert_eq!(batch.changes, changes(&before, self.watcher.files()));
                batches.push(batch.changes);
            }
        };
        if timeout(PATIENCE, settled).await.is_err() {
            panic!("still different: {:#?}", changes(self.watcher.files(), &disk));
        }
        batches.retain(|changes| !changes.is_empty());
        batches
    }

    /// Settles and returns what changed, sorted by path; on a machine that is slow enough, one burst may be two batches.
    async fn changes(&mut self) -> Vec<String> {
        let mut changes = self.settle().await.concat();
        changes.sort_unstable();
        assert!(changes.is_sorted_by(|one, next| one.path != next.path), "no path changes twice: {changes:#?}");
        let sign = |change: &FileChange| match (change.before, change.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        changes.iter().map(|change| format!("{}{}", sign(change), change.path)).collect()
    }
}

#[tokio::test]
async fn a_burst_settles_into_one_batch() {
    let mut live = Live::start(&[("a", "0")]).await;
    for number in 0..500 {
        live.write(&format!("folder/{}/{number}", number % 7), &number.to_string());
        live.write("a", &number.to_string());
    }
    let batches = live.settle().await;
    assert!(batches.len() <= 2, "{} batches", batches.len());
    let changes = batches.concat();
    assert_eq!(changes.len(), 501);
    assert_eq!(changes.iter().filter(|change| change.path == "a".into()).count(), 1);
}

#[tokio::test]
async fn what_editors_do_to_save_a_file_is_one_change() {
    let mut live = Live::start(&[("a", "old"), ("b", "old")]).await;
    // By a rename over the file, and by way of a backup.
    live.write("a.tmp", "new");
    fs::rename(live.path("a.tmp"), live.path("a")).unwrap();
    fs::rename(live.path("b"), live.path("b~")).unwrap();
    live.write("b", "new");
    fs::remove_file(live.path("b~")).unwrap();
    assert_eq!(live.changes().await, ["~a", "~b"]);
    // A save without a change is none.
    live.write("a", "new");
    fs::set_permissions(live.path("b"), fs::Permissions::from_mode(0o755)).unwrap();
    live.write("c", "1");
    assert_eq!(live.changes().await, ["+c"]);
    fs::rename(live.path("a"), live.path("swap")).unwrap();
    fs::rename(live.path("c"), live.path("a")).unwrap();
    fs::rename(live.path("swap"), live.path("c")).unwrap();
    assert_eq!(live.changes().await, ["~a", "~c"]);
    fs::rename(live.path("a"), live.path("A")).unwrap();
    assert_eq!(live.changes().await, ["+A", "-a"]);
}

#[tokio::test]
async fn folders_are_followed_wherever_they_go() {
    let mut live = Live::start(&[("a/x", "1"), ("a/deep/y", "2"), ("a.b", "beside")]).await;
    fs::rename(live.path("a"), live.path("b")).unwrap();
    fs::rename(live.path("b"), live.path("c")).unwrap();
    assert_eq!(live.changes().await, ["-a/deep/y", "-a/x", "+c/deep/y", "+c/x"]);
    live.write("c/deep/y", "changed where it moved to");
    assert_eq!(live.changes().await, ["~c/deep/y"]);
    // Out of the tree, and in from outside; changes outside do not count.
    let outside = tempfile::tempdir().unwrap();
    fs::rename(live.path("c"), outside.path().join("c")).unwrap();
    assert_eq!(live.changes().await, ["-c/deep/y", "-c/x"]);
    fs::write(outside.path().join("c/x"), "3").unwrap();
    fs::rename(outside.path().join("c"), live.path("d")).unwrap();
    assert_eq!(live.changes().await, ["+d/deep/y", "+d/x"]);
    live.write("d/deep/y", "watched again");
    assert_eq!(live.changes().await, ["~d/deep/y"]);
    fs::remove_dir_all(live.path("d")).unwrap();
    assert_eq!(live.changes().await, ["-d/deep/y", "-d/x"]);
    live.write("d/x", "made again");
    assert_eq!(live.changes().await, ["+d/x"]);
    live.write("d/x", "and changed");
    live.write("e/f/g/h", "with folders made on the way");
    assert_eq!(live.changes().await, ["~d/x", "+e/f/g/h"]);
    live.write("e/f/g/h", "and changed");
    assert_eq!(live.changes().await, ["~e/f/g/h"]);
}

#[tokio::test]
async fn a_file_becomes_a_folder_a_link_and_a_file_again() {
    let mut live = Live::start(&[("a", "1"), ("other/b", "2")]).await;
    fs::remove_file(live.path("a")).unwrap();
    live.write("a/inside", "1");
    assert_eq!(live.changes().await, ["-a", "+a/inside"]);
    fs::remove_dir_all(live.path("a")).unwrap();
    live.write("a", "2");
    assert_eq!(live.changes().await, ["+a", "-a/inside"]);
    fs::remove_file(live.path("a")).unwrap();
    symlink("other", live.path("a")).unwrap();
    assert_eq!(live.changes().await, ["~a"]);
    // A change behind a link is one change, at its real path.
    live.write("other/b", "3");
    assert_eq!(live.changes().await, ["~other/b"]);
    fs::rename(live.path("other"), live.path("moved")).unwrap();
    symlink("moved", live.path("other")).unwrap();
    assert_eq!(live.changes().await, ["+moved/b", "+other", "-other/b"]);
}

#[tokio::test]
async fn a_changed_ignore_file_moves_everything_below_it() {
    let mut live = Live::start(&[("a.log", "1"), ("sub/b.log", "1"), ("sub/c", "1"), ("target/d", "1")]).await;
    live.write("sub/.gitignore", "*.log\n");
    assert_eq!(live.changes().await, ["+sub/.gitignore", "-sub/b.log"]);
    live.write(".ignore", "*.log\ntarget\n");
    assert_eq!(live.changes().await, ["+.ignore", "-a.log", "-target/d"]);
    live.write("target/e", "ignored");
    live.write("sub/x.log", "ignored");
    live.write("sub/c", "2");
    assert_eq!(live.changes().await, ["~sub/c"]);
    fs::remove_file(live.path(".ignore")).unwrap();
    assert_eq!(live.changes().await, ["-.ignore", "+a.log", "+target/d", "+target/e"]);
    live.write("target/e", "watched");
    assert_eq!(live.changes().await, ["~target/e"]);
}

#[tokio::test]
async fn a_restart_reports_what_changed_meanwhile_and_nothing_else() {
    let live = Live::start(&[("a", "1"), ("b", "1"), ("c", "1")]).await;
    let known = live.watcher.files().clone();
    let Live { folder, watcher } = live;
    drop(watcher);
    fs::write(folder.path().join("a"), "2").unwrap();
    fs::remove_file(folder.path().join("b")).unwrap();
    let mut watcher = DirectoryWatcher::start(&open(folder.path()), known, EVENTS_ONLY);
    watcher.changed().await;
    let batch = watcher.collect().unwrap();
    assert_eq!(batch.changes.iter().map(|change| change.path.to_string()).collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn a_scan_finds_what_events_lost_and_a_root_that_is_gone_deletes_nothing() {
    let folder = folder(&[("a", "1")]);
    let pace = Pace { reconcile: Duration::from_millis(150), poll: Duration::from_millis(50), ..Pace::default() };
    let mut watcher = DirectoryWatcher::start(&open(folder.path()), BTreeMap::new(), pace);
    watcher.collect().unwrap();
    let mut scans = 0;
    timeout(PATIENCE, async {
        while scans < 3 {
            watcher.changed().await;
            scans += u32::from(watcher.collect().unwrap().reconciled);
        }
    })
    .await
    .expect("scans come by themselves");
    let aside = folder.path().with_extension("aside");
    // An event of a file is on its way when the root vanishes.
    fs::write(folder.path().join("a"), "2").unwrap();
    fs::rename(folder.path(), &aside).unwrap();
    timeout(PATIENCE, async {
        loop {
            watcher.changed().await;
            if watcher.collect().is_err() {
                return;
            }
        }
    })
    .await
    .expect("the root's absence is reported");
    assert_eq!(watcher.files().len(), 1);
    fs::rename(&aside, folder.path()).unwrap();
    fs::write(folder.path().join("b"), "2").unwrap();
    timeout(PATIENCE, async {
        while watcher.files().len() != 2 {
            watcher.changed().await;
            let _ = watcher.collect();
        }
    })
    .await
    .expect("the root is followed again");
}

/// A small generator of fixed numbers (Knuth, The Art of Computer Programming 2, section 3.3.4, MMIX's multiplier).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

#[tokio::test]
async fn random_edits_always_lead_to_what_is_on_disk() {
    let mut live = Live::start(&[]).await;
    let mut numbers = Numbers(42);
    let names = ["a", "b", "a/b", "a/c", "b/c/d", "a.b", "a/.gitignore", "b/.ignore", "c/c", "c/a/b", "c/a"];
    for _ in 0..12 {
        for _ in 0..=numbers.below(12) {
            let [one, other] = [0, 1].map(|_| live.path(names[numbers.below(names.len())]));
            // Impossible steps are skipped: a file in the way, nothing to move.
            match numbers.below(6) {
                0 => drop(fs::remove_file(&one)),
                1 => drop(fs::remove_dir_all(&one)),
                2 => drop(fs::rename(&one, &other)),
                3 => drop(symlink(&one, &other)),
                _ => {
                    drop(fs::create_dir_all(one.parent().unwrap()));
                    drop(fs::write(&one, ["a\n", "b\n", "*\n", ""][numbers.below(4)]));
                }
            }
        }
        live.settle().await;
    }
}

//! Work trees against git itself: what a look finds is what `git add -A` would commit.

use super::*;
use crate::watch::testing::Repo;
use crate::watch::{Content, Contents};
use std::time::Duration;

fn watcher(repo: &Repo) -> WorktreeWatcher {
    let source = GitSource::open(repo.path()).unwrap();
    WorktreeWatcher::start(&source, &repo.path().join(".tidemill"), BTreeMap::new(), Pace::default()).unwrap()
}

/// Returns what `git add -A` would commit, without touching the repository's own index.
fn would_commit(repo: &Repo) -> Files {
    let index = repo.beside("index");
    std::fs::copy(repo.path().join(".git/index"), &index).unwrap();
    let index = format!("GIT_INDEX_FILE={}", index.display());
    let script = "git add -A -- . ':!.tidemill' ':!nested' && git write-tree";
    let output = std::process::Command::new("env")
        .args([&index, "GIT_CONFIG_GLOBAL=/dev/null", "sh", "-c", script])
        .current_dir(repo.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    repo.ls_tree(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap())
}

#[test]
fn a_look_finds_what_git_would_commit() {
    let repo = Repo::new();
    repo.write(".gitignore", "ignored/\n*.log\n");
    for path in ["kept.txt", "edited.txt", "deleted.txt", "link.txt", "folder/a.txt", "same.txt"] {
        repo.write(path, &format!("{path} as committed\n"));
    }
    repo.write("ignored/tracked.txt", "tracked although ignored\n");
    repo.git(&["add", "-f", "ignored/tracked.txt"]);
    repo.commit("first");
    let mut watcher = watcher(&repo);
    let first = watcher.collect().unwrap();
    assert!(first.is_clean && first.head.is_some_and(|head| head.id == repo.id("HEAD")));
    assert_eq!(*watcher.files(), would_commit(&repo));

    repo.write("edited.txt", "edited\n");
    repo.write("same.txt", "same.txt as committed\n");
    repo.write("ignored/tracked.txt", "edited although ignored\n");
    repo.write("ignored/other.txt", "ignored\n");
    repo.write("new/deep/er.txt", "new\n");
    repo.write("new.log", "ignored\n");
    repo.write(".tidemill/store", "the tracker's own\n");
    std::fs::remove_file(repo.path().join("deleted.txt")).unwrap();
    std::fs::remove_file(repo.path().join("link.txt")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", repo.path().join("link.txt")).unwrap();
    std::fs::remove_dir_all(repo.path().join("folder")).unwrap();
    repo.write("folder", "a file now\n");
    repo.git(&["init", "-q", "nested"]);
    repo.write("nested/x.txt", "another repository's\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    let batch = watcher.collect().unwrap();
    assert_eq!(*watcher.files(), would_commit(&repo));
    assert!(!batch.is_clean);
    let paths: Vec<String> = batch.changes.iter().map(|change| change.path.to_string()).collect();
    let changed = ["deleted.txt", "edited.txt", "folder", "folder/a.txt", "ignored/tracked.txt", "link.txt"];
    assert_eq!(paths, [&changed[..], &["new/deep/er.txt", "staged.txt"]].concat());
    let edited = watcher.files()[&DocumentPath::from("edited.txt")].content;
    assert_eq!(watcher.contents().read(edited, 100).unwrap(), Content::Bytes(b"edited\n".to_vec()));
    assert_eq!(watcher.collect().unwrap().changes, []);

    repo.git(&["add", "-A", "--", ".", ":!.tidemill", ":!nested"]);
    repo.git(&["commit", "-q", "-m", "second"]);
    let batch = watcher.collect().unwrap();
    assert_eq!(batch.changes, [], "a commit of what was there moves nothing");
    assert!(batch.is_clean);
}

#[test]
fn line_endings_of_the_checkout_change_nothing() {
    let repo = Repo::new();
    repo.write(".gitattributes", "*.txt text eol=crlf\n");
    repo.write("a.txt", "one\ntwo\n");
    repo.commit("first");
    std::fs::remove_file(repo.path().join("a.txt")).unwrap();
    repo.git(&["checkout", "--", "a.txt"]);
    assert_eq!(std::fs::read(repo.path().join("a.txt")).unwrap(), b"one\r\ntwo\r\n");
    assert!(watcher(&repo).collect().unwrap().is_clean);
}

#[test]
fn a_repository_without_a_commit_has_its_files_and_a_bare_one_is_refused() {
    let repo = Repo::new();
    repo.write("a.txt", "1");
    let mut watcher = watcher(&repo);
    let batch = watcher.collect().unwrap();
    assert_eq!((batch.changes.len(), batch.head, batch.is_clean), (1, None, false));
    let bare = Repo::with(&["init", "-q", "--bare", "repo"]);
    let source = GitSource::open(bare.path()).unwrap();
    let refused = WorktreeWatcher::start(&source, bare.path(), BTreeMap::new(), Pace::default());
    assert!(refused.err().unwrap().to_string().contains("has no work tree"));
}

#[tokio::test]
async fn a_save_is_seen_within_a_second_also_in_a_folder_just_made() {
    let repo = Repo::new();
    repo.commit_file("src/a.txt", "1");
    let mut watcher = watcher(&repo);
    watcher.collect().unwrap();
    for path in ["src/a.txt", "made/just/now.txt", "made/just/now.txt", "src/b.txt"] {
        repo.write(path, &format!("saved at {:?}", Instant::now()));
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            tokio::time::timeout(deadline.saturating_duration_since(Instant::now()), watcher.changed())
                .await
                .unwrap_or_else(|_| panic!("the save of {path} was not seen"));
            let batch = watcher.collect().unwrap();
            if batch.changes.iter().any(|change| change.path.as_bytes() == path.as_bytes()) {
                break;
            }
        }
    }
}

#[test]
fn a_repository_or_a_work_tree_that_is_gone_is_an_error_and_all_files_gone_at_once_are_held_back() {
    let repo = Repo::new();
    for path in ["a.txt", "b.txt", "c.txt"] {
        repo.write(path, path);
    }
    repo.commit("first");
    let mut watcher = watcher(&repo);
    watcher.collect().unwrap();
    let known = watcher.files().clone();
    std::fs::rename(repo.path().join(".git/objects"), repo.beside("objects")).unwrap();
    assert!(watcher.collect().is_err());
    std::fs::rename(repo.beside("objects"), repo.path().join(".git/objects")).unwrap();
    std::fs::rename(repo.path(), repo.beside("away")).unwrap();
    assert!(watcher.collect().is_err());
    std::fs::rename(repo.beside("away"), repo.path()).unwrap();
    assert!(watcher.collect().unwrap().changes.is_empty());
    for path in ["a.txt", "b.txt", "c.txt"] {
        std::fs::remove_file(repo.path().join(path)).unwrap();
    }
    assert!(watcher.collect().unwrap().changes.is_empty());
    assert_eq!((watcher.files(), watcher.looks().doubt.is_some()), (&known, true));
    // One that is back is proof that the disk is there.
    repo.write("a.txt", "a.txt");
    assert_eq!(watcher.collect().unwrap().changes.len(), 2);
    assert_eq!(watcher.looks().doubt, None);
}

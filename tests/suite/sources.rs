//! Special sources: partial clones, LFS pointers, remotes, work trees, and sources that the configuration adds and removes.
//! Missing content is named, and is found once it exists; a removed source answers nothing.

use crate::histories::repository::{Node, Repository, Tree};
use crate::histories::tracked::{Fate, Tracked, source};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidemill::config::{Backfill, SourceConfig};
use tidemill::store::TrackerState;

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| (path.as_bytes().to_vec(), Node::File(text.as_bytes().to_vec(), false))).collect()
}

fn fate(tracked: &Tracked, commit: &str, path: &str) -> Fate {
    tracked.documents(commit)[path.as_bytes()].1
}

fn found(tracked: &Tracked, word: &str, view: &str) -> Vec<String> {
    tracked.paths_in(word, view).into_iter().map(|path| String::from_utf8(path).unwrap()).collect()
}

#[test]
fn a_blob_that_a_partial_clone_lacks_is_a_fault_until_it_is_there() {
    let mut origin = Repository::new();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    origin.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let commit = origin.commit("main", &[], &tree(&[("late.txt", "tardyword\n"), ("later.txt", "sluggishword\n")]));
    let clone = origin.beside("partial.git");
    let url = format!("file://{}", origin.path().display());
    origin.git(&["clone", "-q", "--bare", "--filter=blob:none", &url, &clone.to_string_lossy()]);
    let mut tracked = Tracked::new(&clone, &origin.beside("store"));
    let first = tracked.step();
    assert_eq!((first.len(), first[0].receipt.faults), (1, 2));
    assert_eq!(fate(&tracked, &commit, "late.txt"), Fate::Fault);
    assert!(tracked.step().is_empty(), "what is still missing moves nothing");

    // Git fetches a missing object when it is asked for its content.
    origin.git_at(&clone, &["cat-file", "-p", &format!("{commit}:late.txt")]);
    let second = tracked.step();
    assert_eq!(second.len(), 1);
    assert_eq!((second[0].repaired, second[0].receipt.cleaned, second[0].receipt.embedded), (true, 1, 1));
    assert_eq!(fate(&tracked, &commit, "late.txt"), Fate::File);
    assert_eq!(fate(&tracked, &commit, "later.txt"), Fate::Fault);
    assert_eq!(found(&tracked, "tardyword", "main"), ["late.txt"]);

    tracked.stop();
    origin.git_at(&clone, &["cat-file", "-p", &format!("{commit}:later.txt")]);
    assert_eq!(tracked.step().len(), 1, "a start looks again too");
    assert_eq!(found(&tracked, "sluggishword", "main"), ["later.txt"]);
    assert!(tracked.step().is_empty());
}

/// Returns the file of a loose object.
fn loose(repository: &Repository, bytes: &str) -> PathBuf {
    let id = repository.blob_id(bytes.as_bytes());
    repository.path().join("objects").join(&id[..2]).join(&id[2..])
}

fn replace(file: &Path, bytes: &[u8]) {
    std::fs::remove_file(file).unwrap();
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_blob_that_is_there_and_damaged_is_a_fault_until_it_is_whole() {
    let words: String =
        (0..4000_u64).map(|number| format!("{:x}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let text = format!("brittleword\n{words}");
    for kind in ["a body that does not inflate", "another content", "a whole copy that comes in a pack"] {
        let mut origin = Repository::new();
        let commit = origin.commit("main", &[], &tree(&[("damaged.txt", &text), ("whole.txt", "soundword\n")]));
        let (clone, url) = (origin.beside("clone.git"), format!("file://{}", origin.path().display()));
        origin.git(&["clone", "-q", "--bare", &url, &clone.to_string_lossy()]);
        let file = loose(&origin, &text);
        let whole = std::fs::read(&file).unwrap();
        let mut bytes = whole.clone();
        if kind == "another content" {
            bytes = std::fs::read(loose(&origin, "soundword\n")).unwrap();
        } else {
            let late = bytes.len() * 3 / 4;
            bytes[late] ^= 0xff;
        }
        replace(&file, &bytes);
        let mut tracked = Tracked::new(&origin.path(), &origin.beside("store"));
        let first = tracked.step();
        assert_eq!((first.len(), first[0].receipt.faults), (1, 1), "{kind}");
        assert_eq!(fate(&tracked, &commit, "damaged.txt"), Fate::Fault, "{kind}");
        assert_eq!(found(&tracked, "soundword", "main"), ["whole.txt"], "{kind}");
        assert!(tracked.step().is_empty(), "{kind}: what is still damaged moves nothing");

        if kind == "a whole copy that comes in a pack" {
            let packs = std::fs::read_dir(clone.join("objects/pack")).unwrap().map(|entry| entry.unwrap());
            let copied = packs.map(|pack| {
                std::fs::copy(pack.path(), origin.path().join("objects/pack").join(pack.file_name())).unwrap()
            });
            assert!(copied.count() >= 2, "a pack and its index");
        } else {
            replace(&file, &whole);
        }
        let second = tracked.step();
        assert_eq!((second.len(), second[0].repaired), (1, true), "{kind}");
        assert_eq!(found(&tracked, "brittleword", "main"), ["damaged.txt"], "{kind}");
    }
}

#[test]
fn past_snapshots_are_mended_by_a_backfill_once_what_they_lacked_is_there() {
    let mut origin = Repository::new();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    origin.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let past = origin.commit("main", &[], &tree(&[("a.txt", "pastword\n"), ("still.txt", "stillword\n")]));
    let between = origin.commit("main", &[&past], &tree(&[("a.txt", "betweenword\n"), ("still.txt", "stillword\n")]));
    origin.commit("main", &[&between], &tree(&[("a.txt", "nowword\n"), ("still.txt", "stillword\n")]));
    let clone = origin.beside("partial.git");
    let url = format!("file://{}", origin.path().display());
    origin.git(&["clone", "-q", "--bare", "--filter=blob:none", &url, &clone.to_string_lossy()]);
    let config = SourceConfig { backfill: Some(Backfill::All), ..source(&clone) };
    let mut tracked = Tracked::of(vec![config], &origin.beside("store"));
    assert_eq!(tracked.step().len(), 3);
    tracked.stop();
    assert!(tracked.step().is_empty(), "what is still missing moves nothing");
    tracked.stop();

    // Git fetches a missing object when it is asked for its content.
    origin.git_at(&clone, &["cat-file", "-p", &format!("{past}:a.txt")]);
    origin.git_at(&clone, &["cat-file", "-p", &format!("{past}:still.txt")]);
    assert_eq!(tracked.step().len(), 3);
    assert_eq!(fate(&tracked, &past, "a.txt"), Fate::File);
    assert_eq!((fate(&tracked, &between, "a.txt"), fate(&tracked, &between, "still.txt")), (Fate::Fault, Fate::File));
    tracked.stop();
    assert!(tracked.step().is_empty());
}

#[test]
fn an_lfs_pointer_stands_for_its_object_once_that_is_there() {
    let object = "words of a large fileword\n";
    let oid: String = Sha256::digest(object).iter().map(|byte| format!("{byte:02x}")).collect();
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {}\n", object.len());
    let about = format!("A pointer, as in aboutword:\n\n{pointer}");
    let mut repository = Repository::new();
    let commit =
        repository.commit("main", &[], &tree(&[("big.txt", &pointer), ("twin.txt", &pointer), ("lfs.md", &about)]));
    let mut tracked = Tracked::new(&repository.path(), &repository.beside("store"));
    tracked.step();
    assert_eq!(fate(&tracked, &commit, "big.txt"), Fate::LfsMissing);
    assert_eq!(found(&tracked, "aboutword", "main"), ["lfs.md"]);
    assert!(found(&tracked, "hawser", "main").is_empty());

    let folder = repository.path().join("lfs/objects").join(&oid[..2]).join(&oid[2..4]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(&oid), object.to_uppercase()).unwrap();
    assert!(tracked.step().is_empty(), "an object that does not hash to its name is none");
    assert_eq!(fate(&tracked, &commit, "big.txt"), Fate::LfsMissing);

    std::fs::write(folder.join(&oid), object).unwrap();
    assert_eq!(tracked.step().len(), 1);
    assert_eq!(found(&tracked, "fileword", "main"), ["big.txt", "twin.txt"]);
    assert_eq!(fate(&tracked, &commit, "big.txt"), Fate::File);
    tracked.stop();
    assert!(tracked.step().is_empty());
}

/// Clones a repository bare and tracks the clone, which fetches.
fn fetching(origin: &Repository) -> (PathBuf, Tracked) {
    let clone = origin.beside("clone.git");
    origin.git(&["clone", "-q", "--bare", &origin.path().to_string_lossy(), &clone.to_string_lossy()]);
    let tracked = Tracked::of(
        vec![SourceConfig { fetch_seconds: Some(0.2), name: Some("clone".to_owned()), ..source(&clone) }],
        &origin.beside("store"),
    );
    (clone, tracked)
}

#[test]
fn what_the_remote_has_is_fetched_first_and_a_remote_that_is_gone_stops_nothing() {
    let mut origin = Repository::new();
    let first = origin.commit("main", &[], &tree(&[("a.txt", "firstword\n")]));
    let (clone, mut tracked) = fetching(&origin);
    tracked.step();
    let second = origin.commit("main", &[&first], &tree(&[("a.txt", "secondword\n")]));
    assert_eq!(tracked.step().len(), 1);
    assert_eq!(tracked.views()["main"], second);
    let fetch =
        |tracked: &Tracked| TrackerState::read(&tracked.layout).unwrap().sources["clone"].fetch.clone().unwrap();
    assert_eq!((fetch(&tracked).failures, fetch(&tracked).error), (0, None));

    std::fs::rename(origin.path(), origin.beside("gone.git")).unwrap();
    let tree_id = origin.git_at(&clone, &["rev-parse", "main^{tree}"]);
    let third = origin.git_at(&clone, &["commit-tree", "-p", &second, "-m", "x", &tree_id]);
    origin.git_at(&clone, &["update-ref", "refs/heads/main", &third]);
    assert_eq!(tracked.step().len(), 1, "what is here is tracked all the same");
    let failed = fetch(&tracked);
    assert!(failed.failures == 1 && failed.last.is_some());
    assert!(failed.error.unwrap().starts_with("cannot fetch from origin; see whether `git fetch origin` works"));
}

#[test]
fn while_following_a_remote_is_fetched_on_its_interval_and_rewrites_are_followed() {
    let mut origin = Repository::new();
    let first = origin.commit("main", &[], &tree(&[("a.txt", "firstword\n")]));
    let (_, mut tracked) = fetching(&origin);
    tracked.follow(|tracked| {
        origin.commit("main", &[&first], &tree(&[("a.txt", "secondword\n")]));
        tracked.wait("the remote's commit", |tracked| found(tracked, "secondword", "main") == ["a.txt"]);
        origin.commit("main", &[&first], &tree(&[("b.txt", "thirdword\n")]));
        tracked.wait("the remote's rewrite", |tracked| found(tracked, "thirdword", "main") == ["b.txt"]);
        assert!(found(tracked, "secondword", "main").is_empty());
    });
}

/// A repository with a work tree, as a user has it.
struct Checkout {
    repository: Repository,
    path: PathBuf,
}

impl Checkout {
    fn new() -> Self {
        let repository = Repository::new();
        let path = repository.beside("checkout");
        repository.git_at(&repository.beside(""), &["init", "-q", "-b", "main", "checkout"]);
        Self { repository, path }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.repository.git_at(&self.path, arguments)
    }

    fn commit(&self) -> String {
        self.git(&["add", "-A", "--", ".", ":!.tidemill"]);
        self.git(&["commit", "-q", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn tracked(&self, worktree: bool) -> Tracked {
        // The store inside the work tree is not part of it.
        Tracked::of(vec![SourceConfig { worktree, ..source(&self.path) }], &self.path.join(".tidemill"))
    }
}

#[test]
fn a_work_tree_is_a_view_on_top_of_head() {
    let checkout = Checkout::new();
    let long: String = (0..400).map(|n| format!("fn item{n}() -> u32 {{\n    {n}\n}}\n\n")).collect();
    checkout.write("src/lib.rs", &long);
    checkout.write(".gitignore", "target/\n");
    let head = checkout.commit();
    let mut tracked = checkout.tracked(true);
    tracked.step();
    assert_eq!(tracked.views()["worktree"], head, "without changes it stands at HEAD");

    checkout.write("src/lib.rs", &long.replace("fn item7()", "fn savedword()"));
    checkout.write("src/new.rs", "fn newword() {}\n");
    checkout.write("target/out.rs", "fn ignoredword() {}\n");
    let lines = tracked.step();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].version.parent.map(|parent| parent.to_string()), Some(head.clone()));
    assert!(lines[0].receipt.embedded <= 3 && lines[0].receipt.inserted <= 3, "{:?}", lines[0].receipt);
    assert_eq!(found(&tracked, "savedword", "worktree"), ["src/lib.rs"]);
    assert_eq!(found(&tracked, "newword", "worktree"), ["src/new.rs"]);
    assert!(found(&tracked, "ignoredword", "worktree").is_empty());
    assert!(found(&tracked, "savedword", "main").is_empty(), "the branch stays at its commit");

    tracked.stop();
    std::fs::remove_file(checkout.path.join("src/new.rs")).unwrap();
    tracked.step();
    assert!(found(&tracked, "newword", "worktree").is_empty());
    assert_eq!(found(&tracked, "savedword", "worktree"), ["src/lib.rs"]);

    let next = checkout.commit();
    let lines = tracked.step();
    assert!(lines.iter().all(|line| line.receipt.embedded == 0));
    assert_eq!((&tracked.views()["worktree"], &tracked.views()["main"]), (&next, &next));

    let mut without = checkout.tracked(false);
    tracked.stop();
    without.step();
    assert!(!without.views().contains_key("worktree"), "a work tree that is not tracked any more is not served");
}

#[test]
fn a_save_in_a_work_tree_is_searchable_within_a_second() {
    let checkout = Checkout::new();
    checkout.write("a.txt", "committed\n");
    checkout.commit();
    let mut tracked = checkout.tracked(true);
    tracked.follow(|tracked| {
        for (path, word) in
            [("a.txt", "editedword"), ("made/now/b.txt", "createdword"), ("made/now/c.txt", "besideword")]
        {
            checkout.write(path, &format!("{word}\n"));
            let took = tracked.wait(word, |tracked| found(tracked, word, "worktree") == [path]);
            assert!(took < Duration::from_secs(3), "{word} took {took:?}");
        }
        std::fs::remove_dir_all(checkout.path.join("made")).unwrap();
        tracked.wait("the removal", |tracked| found(tracked, "createdword", "worktree").is_empty());
        let head = checkout.commit();
        tracked.wait("the commit", |tracked| tracked.views()["worktree"] == head && tracked.views()["main"] == head);
    });
}

fn directory(folder: &Path, name: &str, word: &str) -> SourceConfig {
    let path = folder.join(name);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("a.txt"), format!("{word}\n")).unwrap();
    SourceConfig { path: format!("dir:{}", path.display()), ..SourceConfig::default() }
}

#[test]
fn a_source_that_leaves_the_configuration_is_taken_back_and_a_renamed_one_is_not_embedded_again() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, removed) =
        (directory(folder.path(), "kept", "keptword"), directory(folder.path(), "removed", "removedword"));
    let mut tracked = Tracked::of(vec![kept.clone(), removed.clone()], &folder.path().join("store"));
    tracked.config.is_complete = true;
    tracked.step();
    assert_eq!(found(&tracked, "removedword", "."), ["a.txt"]);

    // Another source on the command line retracts nothing.
    tracked.stop();
    tracked.config.is_complete = false;
    tracked.config.sources = vec![kept.clone()];
    tracked.step();
    assert_eq!(found(&tracked, "removedword", "."), ["a.txt"]);

    tracked.stop();
    tracked.config.is_complete = true;
    tracked.config.sources = vec![SourceConfig { name: Some("renamed".to_owned()), ..kept }];
    let lines = tracked.step();
    assert!(lines.is_empty(), "a name is no part of an entry");
    assert!(found(&tracked, "removedword", ".").is_empty());
    assert_eq!(found(&tracked, "keptword", "."), ["a.txt"]);

    // And back again: nothing is forgotten, so nothing is computed.
    tracked.stop();
    tracked.config.sources.push(removed);
    let lines = tracked.step();
    assert!(lines.iter().all(|line| line.receipt.embedded + line.receipt.cleaned == 0), "{lines:?}");
    assert_eq!(found(&tracked, "removedword", "."), ["a.txt"]);
}

#[test]
fn tags_that_come_faster_than_they_are_published_all_get_their_snapshot() {
    let mut repository = Repository::new();
    let mut expected = Vec::new();
    repository.commit("main", &[], &tree(&[("a.txt", "mainword\n")]));
    let mut tracked = Tracked::new(&repository.path(), &repository.beside("store"));
    tracked.follow(|tracked| {
        for number in 0..12 {
            // Each a history of its own, so that every tag has to pass through the graph.
            let commit = repository.commit("passing", &[], &tree(&[("a.txt", &format!("words of tag{number}\n"))]));
            repository.git(&["tag", &format!("t{number}"), &commit]);
            expected.push((format!("t{number}"), commit));
        }
        repository.git(&["update-ref", "-d", "refs/heads/passing"]);
        tracked.wait("all tags", |tracked| {
            let views = tracked.views();
            !views.contains_key("passing") && expected.iter().all(|(tag, commit)| views.get(tag) == Some(commit))
        });
    });
}

//! Which repositories open (work trees, bare, linked, shallow, alternates), and which are refused in one line.

use super::*;
use crate::watch::{Content, Contents, FileState, ReadError};
use dataflows::data::ContentId;
use std::path::Path;

fn refusal(path: &Path) -> String {
    let error = GitSource::open(path).err().expect("it must be refused").to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn bare_linked_and_borrowing_repositories_give_the_same_files() {
    let repo = Repo::new();
    let head = repo.commit_file("a/b", "1");
    let files = source(&repo).files(head).unwrap();
    assert_eq!(files.len(), 1);
    for clone in [&["clone", "-q", "--bare", "repo", "bare"][..], &["clone", "-q", "--shared", "repo", "borrowing"]] {
        repo.git_at(repo.path().parent().unwrap(), clone);
        let source = GitSource::open(&repo.beside(clone[clone.len() - 1])).unwrap();
        assert_eq!(heads(&source, &[]).heads[0].commit.id, head);
        assert_eq!(source.files(head).unwrap(), files);
    }
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", "-b", "work", linked.to_str().unwrap()]);
    let source = GitSource::open(&linked).unwrap();
    assert_eq!(views(&source, &[]), ["work"]);
    assert_eq!(views(&source, &["*"]), ["main", "work"]);
}

#[test]
fn what_is_no_repository_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    assert!(refusal(folder.path()).starts_with("no git repository at "));
    assert!(refusal(&folder.path().join("missing")).starts_with("there is nothing at "));
    let repo = Repo::new();
    repo.commit_file("inside/a", "1");
    assert!(refusal(&repo.path().join("inside")).contains("is inside the repository"));
    let sha256 = Repo::with(&["init", "-q", "--object-format=sha256", "repo"]);
    assert!(refusal(sha256.path()).contains("SHA-256"));
    // A git that cannot make one (before 2.45) can still write the configuration of such a repository.
    let reftable = Repo::new();
    reftable.git(&["config", "core.repositoryFormatVersion", "1"]);
    reftable.git(&["config", "extensions.refStorage", "reftable"]);
    assert!(refusal(reftable.path()).contains("reftable"));
}

#[test]
fn a_repository_of_another_user_names_safe_directory() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    // Only root may give files away; without root there is nothing to test.
    let given =
        ["", ".git"].iter().all(|name| std::os::unix::fs::chown(repo.path().join(name), Some(1234), None).is_ok());
    if given {
        let full = repo.path().canonicalize().unwrap();
        let said = refusal(&full.join("..").join(full.file_name().unwrap()));
        assert!(said.contains(&format!("git config --global --add safe.directory '{}'", full.display())), "{said}");
    }
}

#[test]
fn a_shallow_clone_ends_where_its_history_does() {
    let repo = Repo::new();
    let line: Vec<CommitId> = (0..5).map(|step| repo.commit_file("a", &step.to_string())).collect();
    let url = format!("file://{}", repo.path().display());
    repo.git_at(repo.path().parent().unwrap(), &["clone", "-q", "--depth", "2", &url, "shallow"]);
    let source = GitSource::open(&repo.beside("shallow")).unwrap();
    let commits = source.first_parents(line[4], |_| false, None).unwrap();
    assert_eq!(ids(&commits), line[3..]);
    assert_eq!(commits[0].first_parent, Some(line[2]), "the parent is named, though it is not here");
    assert_eq!(ids(&source.new_commits(line[3], line[4]).unwrap()), [line[4]]);
    assert!(matches!(source.resolve("main~3"), Err(GitError::BeforeHistory { length: 2, .. })));
}

#[test]
fn a_missing_commit_tree_or_blob_is_named() {
    let repo = Repo::new();
    let first = repo.commit_file("folder/a", "one");
    let second = repo.commit_file("folder/a", "two");
    let object = |rev: &str| {
        let id = repo.git(&["rev-parse", rev]);
        (repo.path().join(".git/objects").join(&id[..2]).join(&id[2..]), id.parse::<CommitId>().unwrap())
    };
    let (blob_file, blob) = object("HEAD:folder/a");
    let content = ContentId::from_bytes(*blob.as_bytes());
    std::fs::remove_file(blob_file).unwrap();
    let fresh = source(&repo);
    assert_eq!(fresh.diff(Some(first), second).unwrap().len(), 1, "a missing blob is no concern of a diff");
    assert!(matches!(fresh.contents().read(content, 100), Err(ReadError::Missing(id)) if id == content));
    let (tree_file, tree) = object("HEAD:folder");
    std::fs::remove_file(tree_file).unwrap();
    let error = source(&repo).diff(Some(first), second).unwrap_err();
    assert!(matches!(error, GitError::MissingObject { kind: "tree", id } if id == tree), "{error}");
    std::fs::remove_file(object("HEAD~1").0).unwrap();
    let error = source(&repo).first_parents(second, |_| false, None).unwrap_err();
    assert!(matches!(error, GitError::MissingObject { kind: "commit", id } if id == first), "{error}");
}

#[test]
fn contents_are_the_blobs_bytes_whole_or_not_at_all() {
    let repo = Repo::new();
    repo.write(".gitattributes", "* text eol=crlf\n");
    let head = repo.commit_file("a.txt", "one\ntwo\n");
    let source = source(&repo);
    let contents = source.contents();
    let FileState { content, .. } =
        source.files(head).unwrap().into_iter().find(|(path, _)| path.as_bytes() == b"a.txt").unwrap().1;
    assert_eq!(contents.read(content, 8).unwrap(), Content::Bytes(b"one\ntwo\n".to_vec()));
    assert_eq!(contents.read(content, 7).unwrap(), Content::TooLarge(8));
    let commit = ContentId::from_bytes(*head.as_bytes());
    assert!(matches!(contents.read(commit, 1000), Err(ReadError::NotABlob(_, "commit"))));
    // Many threads read at once, each through its own handle.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| assert!(contents.read(content, 8).is_ok())));
        }
    });
}

#[test]
fn refs_are_absent_only_where_their_absence_is_seen() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    repo.git(&["branch", "side/one"]);
    repo.git(&["pack-refs", "--all"]);
    repo.commit_file("a", "2");
    let source = source(&repo);
    let git = repo.path().join(".git");
    let all = ["main", "side/one"];
    let standing = || source.standing(&all).map(|views| views.len());
    assert_eq!(standing().unwrap(), 2);
    for part in ["objects", "refs", "HEAD"] {
        std::fs::rename(git.join(part), git.join("away")).unwrap();
        assert!(matches!(standing(), Err(GitError::Unseen { .. })), "without {part}");
        assert!(matches!(source.check(), Err(GitError::Unseen { .. })), "without {part}");
        std::fs::rename(git.join("away"), git.join(part)).unwrap();
        assert_eq!(standing().unwrap(), 2);
    }
    // No user can see through a loop of links.
    for part in ["packed-refs", "refs/heads"] {
        std::fs::rename(git.join(part), git.join("away")).unwrap();
        std::os::unix::fs::symlink(git.join(part), git.join(part)).unwrap();
        assert!(matches!(standing(), Err(GitError::Unseen { .. })), "without {part}");
        std::fs::remove_file(git.join(part)).unwrap();
        std::fs::rename(git.join("away"), git.join(part)).unwrap();
    }
    // A malformed ref exists, and hides no other ref.
    let main = std::fs::read(git.join("refs/heads/main")).unwrap();
    std::fs::write(git.join("refs/heads/main"), "nonsense\n").unwrap();
    assert_eq!(standing().unwrap(), 2);
    let heads = heads(&source, &["*"]);
    assert_eq!(heads.heads.iter().map(|head| head.view.as_str()).collect::<Vec<_>>(), ["side/one"]);
    assert_eq!(heads.broken.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["refs/heads/main"]);
    std::fs::write(git.join("refs/heads/main"), main).unwrap();
    repo.git(&["branch", "-D", "side/one"]);
    assert_eq!(standing().unwrap(), 1, "what was deleted is gone");
}

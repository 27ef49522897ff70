//! A bare git repository whose commits are written from trees in memory.
//!
//! In: trees as maps from path to bytes. Out: commits. **Invariant:** a commit's id follows from its tree, its parents
//! and how many commits came before it: identity and dates are fixed.
//!
//! Commits are written through libgit2, which costs no process; what is *read* for comparison comes from the git program.

use dataflows::data::{ContentId, DocumentPath, FileMode, FileState};
use snapshots::CommitId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Files by path, as bytes. A path that ends with `.link` is a symbolic link.
pub(crate) type Tree = BTreeMap<Vec<u8>, Vec<u8>>;

/// The committer's time of the first commit: 2023-11-14T22:13:20Z.
const FIRST_TIME: i64 = 1_700_000_000;

/// A git repository that is deleted with its value.
pub(crate) struct Repository {
    _folder: TempDir,
    path: PathBuf,
    git: git2::Repository,
    time: Cell<i64>,
}

impl Repository {
    /// Makes an empty bare repository whose HEAD names the branch `main`.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.git");
        let git = git2::Repository::init_bare(&path).unwrap();
        git.set_head("refs/heads/main").unwrap();
        Self { _folder: folder, path, git, time: Cell::new(FIRST_TIME) }
    }

    /// Makes another repository that shares all objects, and whose only ref, `main`, stands at `commit`.
    pub(crate) fn at(&self, commit: CommitId) -> Self {
        let other = Self::new();
        let objects = self.path.join("objects");
        std::fs::write(other.path.join("objects/info/alternates"), format!("{}\n", objects.display())).unwrap();
        // Opened again, so that the alternates are read.
        let git = git2::Repository::open_bare(&other.path).unwrap();
        let other = Self { git, ..other };
        other.point("refs/heads/main", commit);
        other
    }

    /// Returns the repository's folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the repository's folder as an argument.
    pub(crate) fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Writes a commit a minute after the one before, and moves no ref.
    pub(crate) fn write(&self, parents: &[CommitId], tree: &Tree) -> CommitId {
        let tree = self.git.find_tree(self.write_tree(tree)).unwrap();
        let time = git2::Time::new(self.time.get(), 0);
        self.time.set(self.time.get() + 60);
        let who = git2::Signature::new("A", "a@example.org", &time).unwrap();
        let parents: Vec<_> = parents.iter().map(|parent| self.git.find_commit(oid(*parent)).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        let message = format!("at {}", time.seconds());
        commit_id(self.git.commit(None, &who, &who, &message, &tree, &parents).unwrap())
    }

    fn write_tree(&self, tree: &Tree) -> git2::Oid {
        let mut index = git2::Index::new().unwrap();
        for (path, bytes) in tree {
            let zero = git2::IndexTime::new(0, 0);
            let mode = if path.ends_with(b".link") { 0o120_000 } else { 0o100_644 };
            let entry = git2::IndexEntry {
                ctime: zero,
                mtime: zero,
                dev: 0,
                ino: 0,
                mode,
                uid: 0,
                gid: 0,
                file_size: 0,
                id: self.git.blob(bytes).unwrap(),
                flags: 0,
                flags_extended: 0,
                path: path.clone(),
            };
            index.add(&entry).unwrap();
        }
        index.write_tree_to(&self.git).unwrap()
    }

    /// Commits a tree on top of `main`.
    pub(crate) fn commit(&self, tree: &Tree) -> CommitId {
        let parent = self.git.refname_to_id("refs/heads/main").ok().map(commit_id);
        let commit = self.write(parent.as_slice(), tree);
        self.point("refs/heads/main", commit);
        commit
    }

    /// Points a ref at a commit, from any other.
    pub(crate) fn point(&self, reference: &str, commit: CommitId) {
        self.git.reference(reference, oid(commit), true, "test").unwrap();
    }

    /// Removes a ref.
    pub(crate) fn remove(&self, reference: &str) {
        self.git.find_reference(reference).unwrap().delete().unwrap();
    }

    /// Runs the git program, which must succeed, and returns what it printed.
    pub(crate) fn git(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new("git")
            .arg("--git-dir")
            .arg(&self.path)
            .args(arguments)
            .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("HOME", "/nonexistent")])
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// As [`Self::git`], as text without white space around it.
    pub(crate) fn git_text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.git(arguments)).unwrap().trim().to_owned()
    }
}

/// Makes a tree of text files.
pub(crate) fn tree<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tree {
    files.into_iter().map(|(path, text)| (path.as_bytes().to_vec(), text.as_bytes().to_vec())).collect()
}

/// Returns the files of a tree as a source gives them.
pub(crate) fn files(tree: &Tree) -> BTreeMap<DocumentPath, FileState> {
    let state = |path: &[u8], bytes: &[u8]| FileState {
        content: content_id(bytes),
        mode: if path.ends_with(b".link") { FileMode::Symlink } else { FileMode::Regular },
    };
    tree.iter().map(|(path, bytes)| (DocumentPath::new(path.as_slice()), state(path, bytes))).collect()
}

/// Returns the git blob id of bytes.
pub(crate) fn content_id(bytes: &[u8]) -> ContentId {
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, bytes).unwrap();
    ContentId::from_bytes(id.as_bytes().try_into().unwrap())
}

fn oid(commit: CommitId) -> git2::Oid {
    git2::Oid::from_bytes(commit.as_bytes()).unwrap()
}

fn commit_id(oid: git2::Oid) -> CommitId {
    oid.to_string().parse().unwrap()
}

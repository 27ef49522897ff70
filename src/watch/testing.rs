//! A real repository in a folder of its own, driven by the git program, for the tests of both kinds of source.
//!
//! In: git commands. Out: their output, and what `git ls-tree` says of a commit.
//! **Invariant:** no configuration of the machine is read, and commit times count up from a fixed second.

use super::{FileMode, FileState};
use dataflows::data::{ContentId, DocumentPath};
use snapshots::CommitId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The committer time of a repository's first commit.
pub(super) const FIRST_TIME: i64 = 1_700_000_000;

/// A git repository that is deleted with its value.
pub(super) struct Repo {
    folder: TempDir,
    path: PathBuf,
    time: Cell<i64>,
}

impl Repo {
    /// Makes an empty repository with a work tree and the branch `main`.
    pub(super) fn new() -> Self {
        Self::with(&["init", "-q", "-b", "main", "repo"])
    }

    /// Makes a repository in the folder `repo` with a command of one's own.
    pub(super) fn with(command: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("repo");
        run(folder.path(), FIRST_TIME, command);
        Self { folder, path, time: Cell::new(FIRST_TIME) }
    }

    /// Returns the repository's folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path beside the repository.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs git, which must succeed, and returns what it printed, trimmed.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        self.git_at(&self.path, arguments)
    }

    /// As [`Self::git`], in another folder.
    pub(super) fn git_at(&self, folder: &Path, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&run(folder, self.time.get(), arguments)).trim().to_owned()
    }

    /// Writes a file of the work tree, with the folders it needs.
    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.path.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Commits the whole work tree, a minute after the last commit; an empty commit is one too.
    pub(super) fn commit(&self, message: &str) -> CommitId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.time.set(self.time.get() + 60);
        self.id("HEAD")
    }

    /// Writes one file and commits.
    pub(super) fn commit_file(&self, path: &str, text: &str) -> CommitId {
        self.write(path, text);
        self.commit(path)
    }

    /// Returns what git takes a revision for.
    pub(super) fn id(&self, rev: &str) -> CommitId {
        self.git(&["rev-parse", &format!("{rev}^{{commit}}")]).parse::<CommitId>().unwrap()
    }

    /// Returns the id of any object.
    pub(super) fn id_of(&self, rev: &str) -> CommitId {
        self.git(&["rev-parse", rev]).parse::<CommitId>().unwrap()
    }

    /// Feeds a stream to `git fast-import`, which writes it as one pack.
    pub(super) fn import(&self, stream: &[u8]) {
        let mut command = Command::new("git");
        command.current_dir(&self.path).args(["fast-import", "--quiet"]).stdin(Stdio::piped());
        let mut import = command.spawn().unwrap();
        import.stdin.take().unwrap().write_all(stream).unwrap();
        assert!(import.wait().unwrap().success());
    }

    /// Returns the files of a commit as `git ls-tree -r -z` lists them.
    pub(super) fn ls_tree(&self, commit: CommitId) -> BTreeMap<DocumentPath, FileState> {
        let listing = run(&self.path, FIRST_TIME, &["ls-tree", "-r", "-z", "--full-tree", &commit.to_string()]);
        let lines = listing.split(|&byte| byte == 0).filter(|line| !line.is_empty());
        lines.map(ls_tree_line).collect()
    }
}

fn ls_tree_line(line: &[u8]) -> (DocumentPath, FileState) {
    let tab = line.iter().position(|&byte| byte == b'\t').unwrap();
    let head: Vec<&str> = std::str::from_utf8(&line[..tab]).unwrap().split(' ').collect();
    let mode = match head[0] {
        "100644" | "100755" => FileMode::Regular,
        "120000" => FileMode::Symlink,
        "160000" => FileMode::Submodule,
        other => panic!("git lists mode {other}"),
    };
    let content = ContentId::from_bytes(*head[2].parse::<CommitId>().unwrap().as_bytes());
    (DocumentPath::new(&line[tab + 1..]), FileState { content, mode })
}

fn run(folder: &Path, time: i64, arguments: &[&str]) -> Vec<u8> {
    let date = format!("{time} +0000");
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("HOME", "/nonexistent")])
        .envs([("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@example.org"), ("GIT_AUTHOR_DATE", &date)])
        .envs([("GIT_COMMITTER_NAME", "C"), ("GIT_COMMITTER_EMAIL", "c@example.org"), ("GIT_COMMITTER_DATE", &date)])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

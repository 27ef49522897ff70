//! A real folder that is tracked as a source.
//!
//! In: changes of files. Out: a tracker's output, and beside it the content of the disk, as the git program sees it.
//!
//! **Invariant:** the expectation is read from the disk by git's plumbing, and never from the store.

use super::{Live, Program};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder to be tracked, beside the store of the program.
pub(crate) struct Folder {
    pub(crate) program: Program,
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let program = Program::new();
        let path = program.folder().join("notes");
        fs::create_dir(&path).unwrap();
        Self { program, path }
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Catches up; returns the epochs' lines.
    pub(crate) fn track(&self) -> Vec<Value> {
        let mut lines = self.program.json(&["track", "dir:notes", "--once", "--json"]);
        assert!(lines.pop().unwrap().get("summary").is_some());
        lines
    }

    /// Starts a tracker that tracks the folder, with a full look every `poll`.
    pub(crate) fn follow(&self, poll: &str) -> Live {
        self.program.start(&["track", "dir:notes", "--json", "--poll", poll])
    }

    /// Returns the regular files on disk that no ignore file names.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let git_dir = tempfile::tempdir().unwrap();
        self.git(git_dir.path(), &["init", "-q"], b"");
        self.wanted(git_dir.path())
    }

    /// Returns the hash that git gives the tree of those files.
    pub(crate) fn tree_hash(&self) -> String {
        let git_dir = tempfile::tempdir().unwrap();
        self.git(git_dir.path(), &["init", "-q"], b"");
        let mut index = Vec::new();
        for (path, bytes) in self.wanted(git_dir.path()) {
            let blob = self.git(git_dir.path(), &["hash-object", "-w", "--stdin"], &bytes);
            write!(index, "100644 {}\t{path}\0", blob.trim()).unwrap();
        }
        self.git(git_dir.path(), &["update-index", "-z", "--index-info"], &index);
        self.git(git_dir.path(), &["write-tree"], b"").trim().to_owned()
    }

    /// Returns the paths of the hits for a word, in their order.
    pub(crate) fn hits(&self, word: &str, more: &[&str]) -> Vec<String> {
        let arguments = [&["search", word, "--json", "--mode", "bm25"], more].concat();
        let answer = self.program.json(&arguments).remove(0);
        let hits = answer["hits"].as_array().unwrap().iter();
        hits.map(|hit| hit["path"].as_str().unwrap().to_owned()).collect()
    }

    fn wanted(&self, git_dir: &Path) -> BTreeMap<String, Vec<u8>> {
        let listed = self.git(git_dir, &["ls-files", "-z", "--others", "--exclude-standard"], b"");
        let paths = listed.split('\0').filter(|path| !path.is_empty());
        let regular = paths.filter(|path| self.path.join(path).symlink_metadata().unwrap().is_file());
        regular.map(|path| (path.to_owned(), fs::read(self.path.join(path)).unwrap())).collect()
    }

    fn git(&self, git_dir: &Path, arguments: &[&str], input: &[u8]) -> String {
        let mut child = Command::new("git")
            .arg("--git-dir")
            .arg(git_dir.join("git"))
            .arg("--work-tree")
            .arg(&self.path)
            .args(arguments)
            .current_dir(&self.path)
            .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("HOME", "/nonexistent")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        OsStr::from_bytes(&output.stdout).to_str().expect("these tests use names that are UTF-8").to_owned()
    }
}

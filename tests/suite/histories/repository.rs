//! A bare repository that is driven by git plumbing, and the expectations from plumbing.
//!
//! In: trees and refs to write. Out: commit ids, refs, and the files of a commit as `git ls-tree` lists them.
//! **Invariant:** no configuration of the machine is read, and commit times count up from a fixed second.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An entry at a path of a tree to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// A file with these bytes, executable or not.
    File(Vec<u8>, bool),
    /// A symbolic link to this target.
    Link(Vec<u8>),
    /// A submodule at this commit.
    Module(String),
}

/// A tree to be written.
pub(crate) type Tree = BTreeMap<Vec<u8>, Node>;
/// The output of `git ls-tree -r`: mode and object id, by path.
pub(crate) type Listing = BTreeMap<Vec<u8>, (String, String)>;

/// A bare repository in a folder of its own.
pub(crate) struct Repository {
    folder: tempfile::TempDir,
    time: i64,
}

impl Repository {
    /// Makes an empty repository whose HEAD names `main`.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = Self { folder, time: 1_700_000_000 };
        let path = repository.path();
        run(repository.folder.path(), &["init", "-q", "--bare", "-b", "main", &path.to_string_lossy()], b"");
        repository
    }

    /// Returns the repository's folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("repo.git")
    }

    /// Returns a folder beside it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs git, which must succeed, and returns what it printed, trimmed.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_at(&self.path(), arguments)
    }

    /// As [`Self::git`], in another folder.
    pub(crate) fn git_at(&self, folder: &Path, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&run(folder, arguments, b"")).trim().to_owned()
    }

    /// Writes a commit of this tree and moves the branch to it, from any commit.
    pub(crate) fn commit(&mut self, branch: &str, parents: &[&str], tree: &Tree) -> String {
        self.time += 60;
        let mut stream = format!("commit refs/heads/{branch}\nmark :1\n").into_bytes();
        stream.extend(format!("committer C <c@example.org> {} +0000\ndata 1\nx\n", self.time).bytes());
        for (number, parent) in parents.iter().enumerate() {
            let verb = if number == 0 { "from" } else { "merge" };
            stream.extend(format!("{verb} {parent}\n").bytes());
        }
        stream.extend(b"deleteall\n");
        for (path, node) in tree {
            let (mode, inline): (&str, &[u8]) = match node {
                Node::File(bytes, false) => ("100644", bytes),
                Node::File(bytes, true) => ("100755", bytes),
                Node::Link(target) => ("120000", target),
                Node::Module(commit) => {
                    stream.extend(format!("M 160000 {commit} {}\n", quoted(path)).bytes());
                    continue;
                }
            };
            stream.extend(format!("M {mode} inline {}\ndata {}\n", quoted(path), inline.len()).bytes());
            stream.extend(inline);
            stream.push(b'\n');
        }
        stream.extend(b"\nget-mark :1\n");
        let said = run(&self.path(), &["fast-import", "--quiet", "--force"], &stream);
        String::from_utf8(said).unwrap().trim().to_owned()
    }

    /// Returns every ref with its commit, or nothing if it leads to a tree or a blob.
    pub(crate) fn refs(&self) -> BTreeMap<String, Option<String>> {
        let format = "--format=%(refname) %(objecttype) %(objectname) %(*objecttype) %(*objectname)";
        let listing = self.git(&["for-each-ref", format]);
        let line = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let commit = match (words[1], words.get(3)) {
                ("commit", _) => Some(words[2]),
                ("tag", Some(&"commit")) => Some(words[4]),
                _ => None,
            };
            (words[0].to_owned(), commit.map(str::to_owned))
        };
        listing.lines().map(line).collect()
    }

    /// Returns the files of a commit as `git ls-tree -r -z` lists them.
    pub(crate) fn ls_tree(&self, commit: &str) -> Listing {
        let listing = run(&self.path(), &["ls-tree", "-r", "-z", "--full-tree", commit], b"");
        let entry = |line: &[u8]| {
            let tab = line.iter().position(|&byte| byte == b'\t').unwrap();
            let head: Vec<&str> = std::str::from_utf8(&line[..tab]).unwrap().split(' ').collect();
            (line[tab + 1..].to_vec(), (head[0].to_owned(), head[2].to_owned()))
        };
        listing.split(|&byte| byte == 0).filter(|line| !line.is_empty()).map(entry).collect()
    }

    /// Tells whether the repository holds an object.
    pub(crate) fn has(&self, id: &str) -> bool {
        let said = run(&self.path(), &["cat-file", "--batch-check"], format!("{id}\n").as_bytes());
        !String::from_utf8(said).unwrap().contains("missing")
    }

    /// Returns the id that git gives these bytes.
    pub(crate) fn blob_id(&self, bytes: &[u8]) -> String {
        String::from_utf8(run(&self.path(), &["hash-object", "--stdin"], bytes)).unwrap().trim().to_owned()
    }
}

/// Quotes a path as fast-import reads it: in C style, every odd byte in octal.
fn quoted(path: &[u8]) -> String {
    let byte = |&byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'/' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    format!("\"{}\"", path.iter().map(byte).collect::<String>())
}

fn run(folder: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("git")
        .current_dir(folder)
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("HOME", "/nonexistent")])
        .envs([("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
        .envs([("GIT_COMMITTER_NAME", "C"), ("GIT_COMMITTER_EMAIL", "c@example.org")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

//! Writes commits into a bare repository by `git fast-import`, which packs as it goes.
//!
//! In: commits and files, in order. Out: a branch. **Invariant:** the time of a commit is its number, so its id follows from its
//! content.

use super::git;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Seconds of the first commit, and between two.
const FIRST: u64 = 1_700_000_000;
const BETWEEN: u64 = 3_600;

/// An import in progress.
pub(crate) struct Import {
    repository: PathBuf,
    process: Child,
    stream: BufWriter<ChildStdin>,
    branch: String,
    /// The parent of the next commit, if the branch does not exist yet.
    onto: Option<String>,
    commits: u64,
}

impl Import {
    /// Creates a bare repository, and begins its branch `main`.
    pub(crate) fn begin(repository: &Path) -> Self {
        std::fs::create_dir_all(repository).expect("the folder can be made");
        git(repository, &["init", "--quiet", "--bare", "--initial-branch=main", "."]);
        Self::start(repository, "main", None, 0)
    }

    /// Begins `branch` after another one, replacing its old commits.
    pub(crate) fn onto(repository: &Path, onto: &str, branch: &str) -> Self {
        let commits = git(repository, &["rev-list", "--count", "--first-parent", onto]);
        let onto = git(repository, &["rev-parse", onto]);
        Self::start(repository, branch, Some(onto), commits.parse().expect("git counts"))
    }

    fn start(repository: &Path, branch: &str, onto: Option<String>, commits: u64) -> Self {
        let mut command = Command::new("git");
        command.arg("-C").arg(repository).args(["-c", "core.compression=1", "fast-import", "--quiet", "--force"]);
        let mut process = command.stdin(Stdio::piped()).spawn().expect("git is installed");
        let stream = BufWriter::new(process.stdin.take().expect("it is piped"));
        Self { repository: repository.to_owned(), process, stream, branch: branch.to_owned(), onto, commits }
    }

    /// Begins a commit after the last one.
    pub(crate) fn commit(&mut self, message: &str) {
        let time = FIRST + BETWEEN * self.commits;
        let from = self.onto.take().map_or_else(String::new, |commit| format!("from {commit}\n"));
        self.write(format!(
            "commit refs/heads/{}\ncommitter bench <bench@localhost> {time} +0000\ndata {}\n{message}\n{from}",
            self.branch,
            message.len()
        ));
        self.commits += 1;
    }

    /// Writes a file of the commit that was begun last.
    pub(crate) fn file(&mut self, path: &str, text: &str) {
        assert!(!path.starts_with('"') && !path.contains('\n'), "the path needs no quotes: {path}");
        self.write(format!("M 100644 inline {path}\ndata {}\n", text.len()));
        self.write(text);
        self.write("\n");
    }

    /// Waits until everything is in the repository.
    pub(crate) fn end(mut self) {
        self.write("done\n");
        drop(self.stream);
        let status = self.process.wait().expect("it was started");
        assert!(status.success(), "git fast-import into {}: {status}", self.repository.display());
    }

    fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("git takes what it is given");
    }
}

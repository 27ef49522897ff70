//! What the system refuses to show is no deletion: folders, files and ignore files without permission, below a directory, in a
//! work tree, and among the refs of a repository.
//!
//! The program runs as a user who is subject to permissions; if the tests run as root, `setpriv` switches to one.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with the program in it, and everything owned by a user without rights.
struct Plain {
    folder: TempDir,
    is_root: bool,
}

impl Plain {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(env!("CARGO_BIN_EXE_tidemill"), folder.path().join("tm")).unwrap();
        for name in ["tm", "."] {
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let plain = Self { folder, is_root };
        plain.own();
        plain
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// Gives everything to the user that the program runs as.
    fn own(&self) {
        if self.is_root {
            let status = Command::new("chown").args(["-R", "65534:65534"]).arg(self.folder.path()).status().unwrap();
            assert!(status.success());
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = if self.is_root {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.folder.path()).env_remove("TIDEMILL_DATA").env("HOME", self.folder.path());
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let program = self.path("tm");
        self.command(program.to_str().unwrap()).args(arguments).output().unwrap()
    }

    /// Tracks once; returns the exit status and what it said.
    fn track(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.run(&[&["track", "--once"], arguments].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    fn hits(&self, word: &str, more: &[&str]) -> Vec<String> {
        let answer = self.json(&[&["search", word, "--mode", "bm25", "--json"], more].concat());
        let mut paths: Vec<_> =
            answer["hits"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap().to_owned()).collect();
        paths.sort_unstable();
        paths
    }

    fn git(&self, arguments: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let output = self.command("git").args(["-C", "r"]).args(who).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns the paths that `status` says cannot be read.
    fn unreadable(&self) -> Vec<String> {
        let status = self.json(&["status", "--json"]);
        let paths = status["sources"][0]["unreadable"].as_array().unwrap();
        paths.iter().map(|path| path["path"].as_str().unwrap().to_owned()).collect()
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn documents_below_what_cannot_be_read_stay_and_status_names_it() {
    // The forbidden path, how it is forbidden, and the path in `status`.
    for (forbidden, bits, named) in [
        ("s/sub", 0o000, "sub"),
        ("s/sub", 0o444, "sub"),
        ("s/sub", 0o111, "sub"),
        ("s/sub/deep", 0o000, "sub/deep"),
        ("s/sub/1.md", 0o000, "sub/1.md"),
        ("s/sub/.gitignore", 0o000, "sub"),
    ] {
        let plain = Plain::new();
        for path in ["s/sub/1.md", "s/sub/2.md", "s/sub/deep/3.md"] {
            plain.write(path, "a secretword\n");
        }
        plain.write("s/sub/.gitignore", "noise.log\n");
        plain.write("s/sub/noise.log", "a secretword in noise\n");
        plain.write("s/top.md", "topword\n");
        plain.own();
        assert_eq!(plain.track(&["dir:s"]).0, Some(0));
        let all = ["sub/1.md", "sub/2.md", "sub/deep/3.md"];
        assert_eq!(plain.hits("secretword", &[]), all);
        mode(&plain.path(forbidden), bits);
        fs::remove_file(plain.path("s/top.md")).unwrap();
        plain.write("s/new.md", "newword\n");
        plain.own();
        let (code, said) = plain.track(&["dir:s"]);
        assert_eq!((code, plain.hits("secretword", &[]).as_slice()), (Some(0), &all.map(str::to_owned)[..]), "{said}");
        assert!(said.contains("cannot read sub"), "{forbidden} {bits:o}: {said}");
        assert!(plain.unreadable().contains(&named.to_owned()), "{forbidden} {bits:o}: {:?}", plain.unreadable());
        assert!(plain.hits("topword", &[]).is_empty(), "what is seen to be gone is gone");
        assert_eq!(plain.hits("newword", &[]), ["new.md"]);
        // It recovers, and files that were deleted meanwhile are removed then.
        mode(&plain.path(forbidden), 0o755);
        fs::remove_file(plain.path("s/sub/2.md")).unwrap();
        assert_eq!(plain.track(&["dir:s"]).0, Some(0));
        assert_eq!(plain.hits("secretword", &[]), ["sub/1.md", "sub/deep/3.md"]);
        assert!(plain.unreadable().is_empty());
    }
}

#[test]
fn a_root_or_its_ignore_file_that_cannot_be_read_moves_nothing() {
    for (forbidden, bits) in [("s", 0o000), ("s/.gitignore", 0o000)] {
        let plain = Plain::new();
        plain.write("s/a.md", "a secretword\n");
        plain.write("s/.gitignore", "noise.log\n");
        plain.own();
        plain.track(&["dir:s"]);
        mode(&plain.path(forbidden), bits);
        let (code, said) = plain.track(&["dir:s"]);
        assert_eq!((code, plain.hits("secretword", &[])), (Some(1), vec!["a.md".to_owned()]), "{said}");
        mode(&plain.path(forbidden), 0o755);
        assert_eq!(plain.track(&["dir:s"]).0, Some(0));
    }
}

#[test]
fn a_work_tree_keeps_what_git_cannot_read() {
    for (forbidden, bits) in [("r/sub", 0o000), ("r/sub", 0o111), ("r/sub/deep", 0o000), ("r/sub/1.md", 0o000)] {
        let plain = Plain::new();
        for path in ["r/sub/1.md", "r/sub/2.md", "r/sub/deep/3.md", "r/top.md"] {
            plain.write(path, "a secretword\n");
        }
        plain.own();
        plain.git(&["init", "-q", "-b", "main"]);
        plain.git(&["add", "-A"]);
        plain.git(&["commit", "-qm", "x"]);
        plain.write("r/sub/1.md", "an edited secretword\n");
        plain.write("r/sub/deep/untracked.md", "a secretword that git does not know\n");
        plain.own();
        let track = ["r", "--worktree"];
        assert_eq!(plain.track(&track).0, Some(0));
        let hits = || plain.hits("secretword", &["--view", "worktree"]);
        assert_eq!(hits().len(), 5);
        mode(&plain.path(forbidden), bits);
        fs::remove_file(plain.path("r/top.md")).unwrap();
        let (code, said) = plain.track(&track);
        assert_eq!((code, hits().len()), (Some(0), 4), "{forbidden} {bits:o}: {said} {:?}", hits());
        assert_eq!(plain.hits("edited", &["--view", "worktree"]), ["sub/1.md"]);
        assert!(said.contains("cannot read sub"), "{forbidden} {bits:o}: {said}");
        assert!(!plain.unreadable().is_empty());
        mode(&plain.path(forbidden), 0o755);
        plain.track(&track);
        assert_eq!((hits().len(), plain.unreadable().len()), (4, 0));
    }
}

#[test]
fn refs_that_cannot_be_read_drop_no_view() {
    for forbidden in ["r/.git/refs/heads/side", "r/.git/refs", "r/.git/refs/heads/side/one", "r/.git/packed-refs"] {
        let plain = Plain::new();
        plain.write("r/a.md", "a secretword\n");
        plain.own();
        plain.git(&["init", "-q", "-b", "main"]);
        plain.git(&["add", "-A"]);
        plain.git(&["commit", "-qm", "x"]);
        plain.git(&["tag", "v1"]);
        plain.git(&["pack-refs", "--all"]);
        plain.git(&["branch", "side/one"]);
        let track = ["r", "--ref", "*"];
        assert_eq!(plain.track(&track).0, Some(0));
        let views = || {
            let status = plain.json(&["status", "--json"]);
            status["sources"][0]["views"].as_array().unwrap().len()
        };
        assert_eq!(views(), 3);
        mode(&plain.path(forbidden), 0o000);
        let (code, said) = plain.track(&track);
        assert!(matches!(code, Some(1 | 3)), "{forbidden}: {said}");
        assert_eq!(views(), 3, "{forbidden}: {said}");
        mode(&plain.path(forbidden), 0o755);
        assert_eq!((plain.track(&track).0, views()), (Some(0), 3));
    }
}

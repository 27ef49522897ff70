//! The whole binary, run by users other than the tracking one, or in a restricted environment.
//!
//! In: a folder that every user may enter, with the program in it. Out: shells that run it there, as root or as another user.
//!
//! **Invariant:** nothing outside the folder changes: mounts belong to a namespace that ends with the shell.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Seconds after which a run is taken for one that hangs.
const PATIENCE: &str = "60";

/// A folder with the program as `./tidemill`, a directory `docs` with a line on herons, and no store yet.
pub(crate) struct Outside {
    folder: TempDir,
}

/// The result of a shell.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outside {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_tidemill"), folder.path().join("tidemill")).unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        fs::write(folder.path().join("docs/heron.md"), "The heron waits at the weir.\n").unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a script of the shell in the folder, as root with mounts of its own; `tidemill` is the program, the store `store`.
    pub(crate) fn shell(&self, script: &str) -> Ended {
        self.run("unshare", &["-m", "timeout", "--kill-after=5", PATIENCE, "sh", "-c", script])
    }

    /// Runs a script of the shell in the folder, without any permission.
    pub(crate) fn other_user(&self, user: u32, group: u32, script: &str) -> Ended {
        let (user, group) = (user.to_string(), group.to_string());
        let who = ["--reuid", &user, "--regid", &group, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
        self.run("setpriv", &[&who[..], &["timeout", "--kill-after=5", PATIENCE, "sh", "-c", script]].concat())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Ended {
        let path = format!("{}:{}", self.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path()).env("PATH", path).env("TIDEMILL_DATA", "store");
        // It would start a thread for each processor, before the program.
        command.env("OPENBLAS_NUM_THREADS", "1");
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints UTF-8");
        Ended { status: status.code(), out: text(stdout), err: text(stderr) }
    }
}

impl Ended {
    /// Fails unless it ended well; returns what it printed.
    #[track_caller]
    pub(crate) fn well(self) -> String {
        assert_eq!(self.status, Some(0), "{self:?}");
        self.out
    }

    /// Fails unless it ended with status 1 and one line, on standard error, that holds every one of `words`.
    #[track_caller]
    pub(crate) fn refused(self, words: &[&str]) {
        assert_eq!((self.status, self.err.lines().count()), (Some(1), 1), "{self:?}");
        assert!(self.err.starts_with("tidemill: "), "{self:?}");
        assert!(words.iter().all(|word| self.err.contains(word)), "{words:?}: {self:?}");
    }
}

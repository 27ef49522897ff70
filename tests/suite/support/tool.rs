//! Requirements of a test on the machine: a program, root permissions, a clone.
//!
//! In: a requirement. Out: whether it is met.
//!
//! **Invariant:** in CI (`TIDEMILL_GATE=1`, which `.ci/run` sets, or `CI=true`) a test with an unmet requirement fails. Elsewhere
//! it says on standard error that it was skipped, bypassing the test harness, which would hide that.

use std::io::Write;
use std::process::{Command, Stdio};

/// A requirement of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// `strace`, and the right to trace.
    Strace,
    /// Root, who may become another user and mount file systems of its own: `setpriv`, `unshare`, `prlimit`.
    Root,
    /// A git repository around the sources.
    OwnHistory,
}

impl Need {
    const fn what(self) -> &'static str {
        match self {
            Self::Strace => "strace, and the right to trace",
            Self::Root => "root, setpriv, unshare and prlimit",
            Self::OwnHistory => "a git repository around the sources",
        }
    }

    fn is_met(self) -> bool {
        let ends_well = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        match self {
            Self::Strace => {
                let disturbed = ["-f", "-qq", "-o", "/dev/null", "-e", "inject=write:error=ENOSPC:when=1", "echo"];
                let traced = Command::new("strace").args(disturbed).output();
                traced.is_ok_and(|output| output.stdout.is_empty() && !output.status.success())
            }
            Self::Root => {
                let other =
                    ["--reuid", "65534", "--regid", "65534", "--clear-groups", "prlimit", "--nproc=64:64", "true"];
                ends_well("setpriv", &other) && ends_well("unshare", &["-m", "mount", "-t", "tmpfs", "t", "/mnt"])
            }
            Self::OwnHistory => ends_well("git", &["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"]),
        }
    }
}

/// Returns whether a requirement is met; if not, fails in CI, and elsewhere says that the test is skipped.
#[track_caller]
pub(crate) fn has(need: Need) -> bool {
    if need.is_met() {
        return true;
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let what = need.what();
    let is_set = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    assert!(!is_set("TIDEMILL_GATE", "1") && !is_set("CI", "true"), "{test} needs {what}, and the gate skips nothing");
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it needs {what}");
    false
}

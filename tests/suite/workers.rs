//! Worker processes: the results of a parser's crash, a limit, a stop and a wrong program.
//!
//! Fake workers send the real greeting and then do what a hostile text would cause.

use dataflows::code::{InProcess, Outline, OutlineError, Outliner};
use dataflows::data::NoSyntax;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidemill::workers::{WorkerError, Workers};

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tidemill"))
}

/// A program that greets as a worker does, notes that it was started, and then does what `script` says.
struct Pretender {
    folder: TempDir,
}

impl Pretender {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("greeting"), greeting()).unwrap();
        let path = folder.path().join("worker");
        let home = folder.path().display();
        let text = format!("#!/bin/sh\necho started >> {home}/starts\ncat {home}/greeting\n{script}\n");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("worker")
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("starts")).unwrap().lines().count()
    }
}

/// Returns the greeting of a real worker.
fn greeting() -> Vec<u8> {
    let mut worker =
        Command::new(program()).arg("--worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut size = [0; 4];
    let mut pipe = worker.stdout.take().unwrap();
    pipe.read_exact(&mut size).unwrap();
    let mut rest = vec![0; u32::from_le_bytes(size) as usize];
    pipe.read_exact(&mut rest).unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    [&size[..], &rest].concat()
}

fn reason(error: &OutlineError) -> &str {
    match error {
        OutlineError::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn workers_and_this_process_find_the_same_items() {
    let workers = Workers::start(program()).unwrap();
    for (language, text) in [
        ("rust", "struct A;\n\nimpl A {\n    fn b() {}\n}\n".to_owned()),
        ("cpp", "UCLASS()\nclass X_API A { void b(); };\n".to_owned()),
        ("python", "class A:\n    def b(self): pass\n".repeat(2_000)),
        ("c", "(a)(b)*".repeat(20_000)),
        ("rust", "r#\"".repeat(100_000)),
        ("fortran", "end\n".to_owned()),
        ("rust", String::new()),
    ] {
        let expected = InProcess.outline(language, &text);
        assert!(expected.is_ok());
        assert_eq!(workers.outline(language, &text), expected, "{language}");
    }
}

#[test]
fn a_crash_belongs_to_a_text_that_crashed_a_new_process_as_well() {
    let pretender = Pretender::new("kill -SEGV $$");
    let workers = Workers::start(&pretender.path()).unwrap();
    assert_eq!(workers.outline("rust", "fn a() {}"), Ok(Outline::Without(NoSyntax::Crash)));
    assert_eq!(pretender.starts(), 2);
}

#[test]
fn a_worker_that_something_else_ended_costs_nothing_and_a_new_one_a_fault() {
    let pretender = Pretender::new("kill -KILL $$");
    let workers = Workers::start(&pretender.path()).unwrap();
    let error = workers.outline("rust", "fn a() {}").unwrap_err();
    assert!(reason(&error).contains("signal 9"), "{error}");
    assert_eq!(pretender.starts(), 2, "one that had nothing to do may have been ended for that");
}

#[test]
fn a_text_that_takes_too_much_processor_time_is_a_fault() {
    let pretender = Pretender::new("while :; do :; done");
    let workers = Workers::start(&pretender.path()).unwrap();
    let error = workers.outline("rust", "fn a() {}").unwrap_err();
    assert!(reason(&error).contains("2 s of processor time"), "{error}");
    assert_eq!(pretender.starts(), 1, "it would take as long again");
}

#[test]
fn a_halt_ends_what_is_under_way() {
    let pretender = Pretender::new("exec sleep 600");
    let workers = Workers::start(&pretender.path()).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| workers.outline("rust", &"fn a() {}\n".repeat(100_000)));
        let begun = Instant::now();
        workers.halt();
        assert_eq!(waits.join().unwrap(), Err(OutlineError::Halted));
        assert!(begun.elapsed() < Duration::from_secs(5));
    });
    assert_eq!(workers.outline("rust", ""), Err(OutlineError::Halted));
}

#[test]
fn what_is_no_worker_is_refused_by_name() {
    let missing = Workers::start(Path::new("/nonexistent/tidemill")).err().unwrap();
    assert!(matches!(missing, WorkerError::Start { .. }), "{missing}");
    let other = Workers::start(Path::new("/bin/true")).err().unwrap().to_string();
    assert!(other.contains("/bin/true") && other.contains("exit status: 0"), "{other}");
}

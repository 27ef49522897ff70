//! *A crash loses nothing, at whichever write it comes*: the program is ended in front of its n-th write, sync, rename or removal, for n
//! from the first to the last, or told that the disk is full at its n-th call that only files get; what was published answers
//! as it did, and the next start ends where an undisturbed one does.
//!
//! `strace` counts the calls of each thread and disturbs one of them. Where it is missing or may not trace, the tests say so and
//! look at nothing; the gate installs it.

use crate::support::{Picture, Repository, Store, git, tree};
use dataflows::embed::Embedder;
use snapshots::CommitId;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tidemill::config::Backfill;
use tidemill::embedders::StaticModel;
use tidemill::index::audit::audit;
use tidemill::search::Searcher;
use tidemill::store::Layout;

/// Whatever changes a file or a folder, or makes a change durable.
const WRITES: &str =
    "write,pwrite64,writev,pwritev,fsync,fdatasync,msync,rename,renameat,renameat2,unlink,unlinkat,ftruncate";
/// Those of them that are only ever made on files: threads wake each other by `write`, which no full disk stops.
const WRITES_TO_DISK: &str = "pwrite64,pwritev,fsync,fdatasync,msync,rename,renameat,renameat2,ftruncate";
/// Every so-manieth write is tried; every one with `TIDEMILL_HEAVY=1`.
const STRIDE: usize = 4;
/// Seconds after which a run is taken for one that hangs.
const PATIENCE: &str = "60";
/// No thread writes more often than this in what is run here.
const MOST_WRITES: usize = 3000;

/// What happens to the n-th write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Killed,
    DiskFull,
}

impl Fault {
    /// Runs the program under it.
    fn run(self, number: usize, arguments: &[&str], folder: &Path) -> Output {
        let (calls, what) = match self {
            Self::Killed => (WRITES, "signal=KILL"),
            Self::DiskFull => (WRITES_TO_DISK, "error=ENOSPC"),
        };
        Command::new("timeout")
            .args(["--kill-after=5", PATIENCE, "strace"])
            .args(["-f", "-qq", "-o", "/dev/null", "-e"])
            .arg(format!("trace={calls}"))
            .arg("-e")
            .arg(format!("inject={calls}:{what}:when={number}"))
            .arg(env!("CARGO_BIN_EXE_tidemill"))
            .args(arguments)
            .current_dir(folder)
            .env_remove("TIDEMILL_DATA")
            .output()
            .unwrap()
    }
}

/// Whether strace is there and may do its work.
fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=write",
            "-e",
            "inject=write:error=ENOSPC:when=1",
            "echo",
            "tide",
        ])
        .output();
    let able = traced.is_ok_and(|output| output.stdout.is_empty());
    if !able {
        eprintln!("strace is missing or may not trace: crash points are not looked at");
    }
    able
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").args(["-a", "--sparse=always"]).arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// A repository with a line of commits, a store that has the first few, and what each commit must answer.
struct World {
    repository: Repository,
    line: Vec<CommitId>,
    pictures: Vec<Picture>,
}

impl World {
    fn new() -> Self {
        let repository = Repository::new();
        let mut line = Vec::new();
        for number in 0..6 {
            let code = |word: &str| {
                format!("/// Turns the {word}.\npub fn {word}_{number}(tide: u32) -> u32 {{\n    tide + {number}\n}}\n")
            };
            let guide =
                format!("# Guide\n\nThe mill grinds {number} sacks.\n\n## Gears\n\nA gear has {} teeth.\n", number / 2);
            let files = [("src/mill.rs", code("wheel")), ("src/gear.rs", code("gear")), ("docs/guide.md", guide)];
            line.push(repository.commit(&tree(files.iter().map(|(path, text)| (*path, text.as_str())))));
        }
        let whole = Store::new();
        whole.track(git(repository.path(), &["main"], Some(Backfill::All)));
        let searcher = whole.searcher();
        let pictures = line.iter().map(|commit| Picture::of(&searcher, Some(&commit.to_string()))).collect();
        Self { repository, line, pictures }
    }

    /// Fails unless each commit that has a snapshot answers as it must; returns how many have one.
    fn look(&self, layout: &Layout, context: &str) -> usize {
        let searcher = Searcher::open(layout).unwrap_or_else(|error| panic!("{context}: {error}"));
        let mut seen = 0;
        for (commit, picture) in self.line.iter().zip(&self.pictures) {
            let known =
                searcher.reader().with_archive(|archive| archive.kept().any(|version| version.commit == *commit));
            if known {
                Picture::of(&searcher, Some(&commit.to_string())).assert_equals(picture, commit);
                seen += 1;
            }
        }
        seen
    }

    fn is_sound(&self, layout: &Layout, context: &str) {
        let model = StaticModel::new();
        let checked = audit(layout, model.fingerprint(), u32::try_from(model.dimensions()).unwrap()).unwrap();
        assert_eq!(checked.findings, [], "{context}");
    }
}

/// Disturbs every so-manieth write of a command on a copy of `store`, until one run is left undisturbed.
fn disturb(
    world: &World,
    store: &Path,
    fault: Fault,
    arguments: &dyn Fn(&str) -> Vec<String>,
    settled: &dyn Fn(&Layout, &str),
) -> usize {
    let heavy = std::env::var_os("TIDEMILL_HEAVY").is_some_and(|value| value == "1");
    for (disturbed, number) in (1..MOST_WRITES).step_by(if heavy { 1 } else { STRIDE }).enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("store");
        copy(store, &data);
        let layout = Layout::new(&data);
        let arguments = arguments(data.to_str().unwrap());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        assert_eq!(arguments[0], "--data", "is_beyond names another store there");
        let output = fault.run(number, &arguments, folder.path());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let context = format!("{fault:?} at write {number} of {arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{context}");
        assert_ne!(output.status.code(), Some(124), "{context}: it hangs");
        world.look(&layout, &context);
        let again =
            Command::new(env!("CARGO_BIN_EXE_tidemill")).args(&arguments).current_dir(folder.path()).output().unwrap();
        assert!(again.status.success(), "{context}; then: {}", String::from_utf8_lossy(&again.stderr));
        settled(&layout, &context);
        world.is_sound(&layout, &context);
        if output.status.success() && is_beyond(fault, store, number, &arguments) {
            return disturbed;
        }
    }
    panic!("{arguments:?} writes without end", arguments = arguments("STORE"));
}

/// Whether no thread comes to an n-th write, so that nothing was disturbed; a write that fails may end nothing.
fn is_beyond(fault: Fault, store: &Path, number: usize, arguments: &[&str]) -> bool {
    if fault == Fault::Killed {
        return true;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("store");
    copy(store, &data);
    let mut arguments = arguments.to_vec();
    arguments[1] = data.to_str().unwrap();
    Fault::Killed.run(number, &arguments, folder.path()).status.success()
}

fn track(world: &World) -> impl Fn(&str) -> Vec<String> {
    let repository = world.repository.name().to_owned();
    move |data| {
        ["--data", data, "track", &repository, "--once", "--name", "engine", "--backfill", "5"]
            .map(str::to_owned)
            .to_vec()
    }
}

/// Returns a store that has the first commits, in a folder of its own.
fn half_tracked(world: &World) -> Store {
    let store = Store::new();
    let data = store.layout().root().to_str().unwrap().to_owned();
    let head = *world.line.last().unwrap();
    world.repository.point("refs/heads/main", world.line[2]);
    let arguments = track(world)(&data);
    let run = Command::new(env!("CARGO_BIN_EXE_tidemill")).args(&arguments).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    world.repository.point("refs/heads/main", head);
    store
}

fn tracking(fault: Fault) {
    if !can_trace() {
        return;
    }
    let world = World::new();
    let store = half_tracked(&world);
    let all = world.line.len();
    let settled = |layout: &Layout, context: &str| assert_eq!(world.look(layout, context), all, "{context}");
    let disturbed = disturb(&world, store.layout().root(), fault, &track(&world), &settled);
    assert!(disturbed >= 3, "{disturbed} runs were disturbed");
}

#[test]
fn a_tracker_may_be_killed_at_any_write() {
    tracking(Fault::Killed);
}

#[test]
fn a_tracker_may_find_the_disk_full_at_any_write() {
    tracking(Fault::DiskFull);
}

fn collecting(fault: Fault) {
    if !can_trace() {
        return;
    }
    let world = World::new();
    let store = half_tracked(&world);
    let data = store.layout().root().to_str().unwrap().to_owned();
    let run = Command::new(env!("CARGO_BIN_EXE_tidemill")).args(track(&world)(&data)).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("tidemill.toml");
    let text =
        format!("[retention]\nnewest = 2\n[[source]]\npath = \"{}\"\nname = \"engine\"\n", world.repository.name());
    fs::write(&settings, text).unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    let collect = |data: &str| ["--data", data, "--config", &settings, "snapshots", "gc"].map(str::to_owned).to_vec();
    let settled = |layout: &Layout, context: &str| assert_eq!(world.look(layout, context), 2, "{context}");
    let disturbed = disturb(&world, store.layout().root(), fault, &collect, &settled);
    assert!(disturbed >= 2, "{disturbed} runs were disturbed");
}

#[test]
fn a_collection_may_be_killed_at_any_write() {
    collecting(Fault::Killed);
}

#[test]
fn a_collection_may_find_the_disk_full_at_any_write() {
    collecting(Fault::DiskFull);
}

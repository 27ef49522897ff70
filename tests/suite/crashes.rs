//! *A crash at any write loses nothing.* The program is ended before a write, sync, rename or removal, or told that the disk is
//! full, for each of these crash points in turn. Published versions answer as before, and the next start ends where an
//! undisturbed one does.
//!
//! If `strace` is missing or may not trace, the tests fail in CI, which installs it, and elsewhere say that they are skipped. A
//! full disk never stops the `write` by which threads wake each other, so of all writes only those to the version log get that
//! error.

use crate::support::{Fault, Need, Picture, Repository, Store, git, has, stride, tree};
use dataflows::embed::Embedder;
use snapshots::CommitId;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use tidemill::config::Backfill;
use tidemill::embedders::StaticModel;
use tidemill::index::audit::audit;
use tidemill::search::Searcher;
use tidemill::store::Layout;

/// The store's folder, in the folder where the program runs.
const STORE: &str = "store";

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").args(["-a", "--sparse=always"]).arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// A repository with a line of commits, a store that has the first few, and the required answers of each commit.
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

    /// Fails unless each commit with a snapshot answers as required; returns how many have one.
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

/// Disturbs every n-th write of a command on a copy of `store`; returns how many runs did not end well.
fn disturb(world: &World, store: &Path, fault: Fault, arguments: &[&str], settled: &dyn Fn(&Layout, &str)) -> usize {
    let copied = || {
        let folder = tempfile::tempdir().unwrap();
        copy(store, &folder.path().join(STORE));
        folder
    };
    let places = fault.places(arguments, &Path::new(STORE).join("versions/versions.log"), &copied);
    let mut ended = 0;
    for place in places.iter().step_by(stride(places.len())) {
        let folder = copied();
        let layout = Layout::new(folder.path().join(STORE));
        let output = fault.run(place, arguments, folder.path());
        ended += usize::from(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let context = format!("{fault:?} at {place:?} of {arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{context}");
        assert_ne!(output.status.code(), Some(124), "{context}: it hangs");
        world.look(&layout, &context);
        let again = run(arguments, folder.path());
        assert!(again.status.success(), "{context}; then: {}", String::from_utf8_lossy(&again.stderr));
        settled(&layout, &context);
        world.is_sound(&layout, &context);
    }
    eprintln!(
        "{fault:?}: {} places, of which every {}th was tried; {ended} runs ended there",
        places.len(),
        stride(places.len())
    );
    ended
}

fn run(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    command.args(arguments).current_dir(folder).env_remove("TIDEMILL_DATA").output().unwrap()
}

/// Returns the command that brings a store, `STORE` in the folder where it runs, up to the head.
fn track(world: &World) -> [&str; 9] {
    ["--data", STORE, "track", world.repository.name(), "--once", "--name", "engine", "--backfill", "5"]
}

/// Returns a folder with a store that has the first commits.
fn half_tracked(world: &World) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let head = *world.line.last().unwrap();
    world.repository.point("refs/heads/main", world.line[2]);
    let run = run(&track(world), folder.path());
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    world.repository.point("refs/heads/main", head);
    folder
}

fn tracking(fault: Fault) {
    if !has(Need::Strace) {
        return;
    }
    let world = World::new();
    let folder = half_tracked(&world);
    let all = world.line.len();
    let settled = |layout: &Layout, context: &str| assert_eq!(world.look(layout, context), all, "{context}");
    let ended = disturb(&world, &folder.path().join(STORE), fault, &track(&world), &settled);
    assert!(ended >= 5, "{ended} runs ended there");
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
    if !has(Need::Strace) {
        return;
    }
    let world = World::new();
    let folder = half_tracked(&world);
    let tracked = run(&track(&world), folder.path());
    assert!(tracked.status.success(), "{}", String::from_utf8_lossy(&tracked.stderr));
    let settings = folder.path().join("tidemill.toml");
    let text =
        format!("[retention]\nnewest = 2\n[[source]]\npath = \"{}\"\nname = \"engine\"\n", world.repository.name());
    fs::write(&settings, text).unwrap();
    let collect = ["--data", STORE, "--config", settings.to_str().unwrap(), "snapshots", "gc"];
    let settled = |layout: &Layout, context: &str| assert_eq!(world.look(layout, context), 2, "{context}");
    let ended = disturb(&world, &folder.path().join(STORE), fault, &collect, &settled);
    assert!(ended >= 5, "{ended} runs ended there");
}

#[test]
fn a_collection_may_be_killed_at_any_write() {
    collecting(Fault::Killed);
}

#[test]
fn a_collection_may_find_the_disk_full_at_any_write() {
    collecting(Fault::DiskFull);
}

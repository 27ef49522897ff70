//! Directories as sources: the tracked content is that of the disk, and a state is named by its git tree hash.
//!
//! Whole binaries track a real folder; the expected hash comes from the git program.

use crate::support::{Folder, Program, Repository, tree};
use serde_json::Value;
use std::fs;
use std::time::Duration;

fn counts(line: &Value) -> [u64; 3] {
    ["added", "changed", "removed"].map(|key| line["documents"][key].as_u64().unwrap())
}

#[test]
fn a_directory_is_scanned_and_its_version_is_named_by_the_tree_hash() {
    let folder = Folder::new();
    folder.write("guide.md", "# Guide\n\nAbout tides.\n");
    folder.write("deep/er/mill.rs", "fn grind() {\n    turn();\n}\n");
    folder.write(".gitignore", "*.log\n");
    folder.write("noise.log", "tides and tides\n");
    let lines = folder.track();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["commit"], folder.tree_hash());
    assert_eq!(lines[0]["source"], "notes");
    assert_eq!(counts(&lines[0]), [3, 0, 0], "what is ignored is no document");
    assert_eq!(folder.hits("tides", &[]), ["guide.md"]);
    assert!(folder.track().is_empty(), "nothing changed, nothing to say");
}

#[test]
fn live_edits_renames_and_deletions_are_epochs() {
    let folder = Folder::new();
    folder.write("a.md", "# One\n\nAbout tides.\n");
    folder.write("b.txt", "about mills\n");
    let mut live = folder.follow("500ms");
    assert_eq!(counts(&live.line()), [2, 0, 0]);

    folder.write("a.md", "# One\n\nAbout currents.\n");
    let line = live.line();
    assert_eq!((counts(&line), &line["commit"]), ([0, 1, 0], &folder.tree_hash().into()));
    assert_eq!((folder.hits("tides", &[]), folder.hits("currents", &[])), (vec![], vec!["a.md".to_owned()]));

    fs::rename(folder.path.join("a.md"), folder.path.join("c.md")).unwrap();
    let line = live.line();
    assert_eq!((counts(&line), &line["work"]["embedded"]), ([1, 0, 1], &0.into()), "a rename embeds nothing");
    assert_eq!(folder.hits("currents", &[]), ["c.md"]);

    // As editors save: a new file beside, then moved over the old one.
    folder.write("c.md.tmp~", "# One\n\nAbout whirlpools.\n");
    fs::rename(folder.path.join("c.md.tmp~"), folder.path.join("c.md")).unwrap();
    while folder.hits("whirlpools", &[]) != ["c.md"] {
        live.line();
    }

    fs::remove_file(folder.path.join("b.txt")).unwrap();
    while !folder.hits("mills", &[]).is_empty() {
        live.line();
    }
    folder.write("new/er/d.txt", "a folder made with its file\n");
    while folder.hits("folder", &[]).is_empty() {
        live.line();
    }
    live.signal("TERM");
    assert_eq!(live.end(), Some(0));
    assert!(folder.track().is_empty(), "what was followed is what a scan finds");
}

#[test]
fn a_burst_is_a_few_epochs_and_nothing_is_lost() {
    let folder = Folder::new();
    folder.write("first.txt", "first\n");
    let live = folder.follow("500ms");
    live.line();
    for number in 0..500 {
        folder.write(&format!("d{}/f{number}.txt", number % 7), &format!("burst number{number}\n"));
    }
    let mut epochs = 0;
    let mut added = 0;
    while added < 500 {
        let line = live.line();
        added += counts(&line)[0];
        epochs += 1;
    }
    assert_eq!(added, 500);
    assert!(epochs <= 30, "{epochs} epochs for one burst");
    assert_eq!(folder.hits("number499", &["-k", "1"]), ["d2/f499.txt"]);
}

#[test]
fn what_changed_while_the_tracker_was_off_is_seen_at_the_next_start() {
    let folder = Folder::new();
    for name in ["stays", "changes", "goes", "moves"] {
        folder.write(&format!("{name}.txt"), &format!("this file {name}\n"));
    }
    folder.track();
    // The same size, so that only the content differs.
    folder.write("changes.txt", "this file CHANGED\n".replace("CHANGED", "altered").as_str());
    fs::remove_file(folder.path.join("goes.txt")).unwrap();
    fs::rename(folder.path.join("moves.txt"), folder.path.join("moved.txt")).unwrap();
    folder.write("comes.txt", "this file comes\n");
    let lines = folder.track();
    assert_eq!(lines.len(), 1, "one look, one epoch");
    assert_eq!((counts(&lines[0]), &lines[0]["commit"]), ([2, 1, 2], &folder.tree_hash().into()));
    assert_eq!(lines[0]["work"]["embedded"], 2, "a new text each for the changed file and the new one");
    assert!(folder.hits("goes", &[]).is_empty());
    assert_eq!(folder.hits("moves", &[]), ["moved.txt"]);
}

#[test]
fn a_state_of_the_past_answers_by_its_hash() {
    let folder = Folder::new();
    let mut states = Vec::new();
    for word in ["ebb", "flow", "ebb again"] {
        folder.write("tide.txt", &format!("now {word}\n"));
        folder.write("still.txt", "nothing moves here\n");
        folder.track();
        states.push((folder.tree_hash(), folder.program.run(&["dump", "--json"]).out));
    }
    for (hash, dump) in &states {
        for rev in [hash.as_str(), &hash[..12]] {
            let then = folder.program.run(&["dump", "--json", "--at", rev]);
            assert_eq!((then.status, &then.out), (Some(0), dump));
        }
    }
    assert_eq!(folder.hits("flow", &["--at", &states[1].0]), ["tide.txt"]);
    assert!(folder.hits("flow", &[]).is_empty());
    let listed: Vec<Value> =
        folder.program.json(&["snapshots", "--json"]).iter().map(|line| line["commit"].clone()).collect();
    assert_eq!(listed, states.iter().map(|(hash, _)| Value::from(hash.as_str())).collect::<Vec<_>>());
}

#[test]
fn a_state_that_comes_back_costs_nothing_and_has_the_version_that_it_had() {
    let folder = Folder::new();
    folder.write("tide.txt", "ebb\n");
    let first = folder.track().remove(0);
    folder.write("tide.txt", "flow\n");
    folder.track();
    folder.write("tide.txt", "ebb\n");
    let again = folder.track();
    assert_eq!(again.len(), 1, "a view that moves prints a line");
    assert_eq!((&again[0]["commit"], &again[0]["digest"]), (&first["commit"], &first["digest"]));
    assert_eq!([&again[0]["work"]["embedded"], &again[0]["work"]["cleaned"]], [0, 0]);
    assert_eq!(folder.program.json(&["snapshots", "--json"]).len(), 2);
}

#[test]
fn a_directory_and_a_repository_with_the_same_files_have_the_same_digest() {
    let files = [("src/mill.rs", "fn grind() {\n    turn();\n}\n"), ("guide.md", "# Guide\n\nAbout tides.\n")];
    let folder = Folder::new();
    for (path, text) in files {
        folder.write(path, text);
    }
    let repository = Repository::new();
    repository.commit(&tree(files));
    let program = Program::new();
    let tracked = program.json(&["track", repository.name(), "--once", "--json"]).remove(0);
    let scanned = folder.track().remove(0);
    assert_eq!(scanned["digest"], tracked["digest"]);
    assert_eq!(scanned["live_entries"], tracked["live_entries"]);
}

#[test]
fn an_empty_directory_is_a_version_too() {
    let folder = Folder::new();
    let lines = folder.track();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["commit"], folder.tree_hash());
    assert_eq!(lines[0]["live_entries"], 0);
    folder.write("a.txt", "words\n");
    assert_eq!(folder.track().len(), 1);
    let mut live = folder.follow("500ms");
    assert!(live.line_within(Duration::from_millis(300)).is_none());
    fs::remove_file(folder.path.join("a.txt")).unwrap();
    assert_eq!(live.line()["commit"], lines[0]["commit"]);
    live.kill();
}

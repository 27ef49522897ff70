//! *Incremental equals rebuilt*, with whole binaries on a real history: that of this project, or of any repository.
//!
//! One store tracks the last commits one by one; other stores know one of these commits only. Their dumps and their ranks must be
//! equal, to the last bit of each score. Without a repository around the sources (as in a released archive) the first test is
//! skipped, and says so; in CI it fails.
//!
//! `TIDEMILL_WHOLE_REPO=/path/to/engine.git`, with `--run-ignored all`, also tracks the last `TIDEMILL_WHOLE_COMMITS` (500)
//! commits of that repository, and rebuilds at every `TIDEMILL_WHOLE_EVERY` (25)th of them: some minutes.

use crate::support::{Need, Program, has};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The number of commits before the head that get snapshots, and the interval of rebuilds.
const BACKFILL: usize = 6;
const EVERY: usize = 3;

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the lines of a dump without the field that depends on history.
fn dump(program: &Program, at: &str) -> Vec<Value> {
    let mut lines = program.json(&["dump", "--json", "--at", at]);
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("introduced_in");
    }
    lines
}

/// Returns the hits of each question by words, by vectors and by both, of the whole version and under a filter.
fn answers(program: &Program, at: &str, questions: &[&str]) -> Vec<Value> {
    let mut hits = Vec::new();
    for question in questions {
        for mode in ["bm25", "vector", "hybrid"] {
            for filter in [&[][..], &["--where", "path:*s*"]] {
                let search = ["search", question, "--json", "-k", "20", "--at", at, "--mode", mode];
                let answer = program.json(&[&search[..], filter].concat()).remove(0);
                hits.extend(answer["hits"].as_array().unwrap().clone());
            }
        }
    }
    for hit in &mut hits {
        hit.as_object_mut().unwrap().remove("introduced_in");
    }
    hits
}

/// Tracks the last commits of the repository at `origin`, and rebuilds every n-th of them; fails at any difference.
fn follow_and_rebuild(origin: &Path, backfill: usize, every: usize, questions: &[&str]) {
    let clone = Program::new();
    let bare = clone.folder().join("project.git");
    let (origin, bare_path) = (origin.to_str().unwrap(), bare.to_str().unwrap());
    git(clone.folder(), &["clone", "-q", "--bare", "--no-hardlinks", origin, bare_path]).expect("it can be cloned");
    let commits = git(&bare, &["rev-list", "--first-parent", "HEAD"]).expect("a clone has commits");
    let commits: Vec<&str> = commits.lines().take(backfill + 1).collect();
    git(&bare, &["update-ref", "--no-deref", "HEAD", commits[0]]).unwrap();
    let followed = Program::new();
    let backfill = (commits.len() - 1).to_string();
    let track = ["track", bare_path, "--once", "--json", "--ref", "HEAD", "--name", "project"];
    let lines = followed.json(&[&track[..], &["--backfill", &backfill]].concat());
    assert_eq!(lines.len(), commits.len() + 1);
    for commit in commits.iter().step_by(every) {
        git(&bare, &["update-ref", "--no-deref", "HEAD", commit]).unwrap();
        let fresh = Program::new();
        let alone = fresh.json(&track).remove(0);
        let line = lines.iter().find(|line| line["commit"] == **commit).unwrap();
        assert_eq!((&line["digest"], &line["live_entries"]), (&alone["digest"], &alone["live_entries"]), "{commit}");
        assert_eq!(dump(&followed, commit), dump(&fresh, commit), "{commit}");
        let [found, expected] = [&followed, &fresh].map(|program| answers(program, commit, questions));
        assert!(found.len() > questions.len(), "the questions find something");
        assert_eq!(found, expected, "{commit}");
        println!("{commit}: {} entries and {} hits are equal", line["live_entries"], found.len());
    }
}

#[test]
fn a_store_that_followed_this_projects_history_equals_stores_built_at_its_commits() {
    if !has(Need::OwnHistory) {
        return;
    }
    let questions = ["how is a version digested", "merge vector segments", "TODO", "bitmap of live ordinals"];
    follow_and_rebuild(Path::new(env!("CARGO_MANIFEST_DIR")), BACKFILL, EVERY, &questions);
}

#[test]
#[ignore = "follows the repository that TIDEMILL_WHOLE_REPO names, for minutes"]
fn a_store_that_followed_an_engines_history_equals_stores_built_at_its_commits() {
    let origin = std::env::var_os("TIDEMILL_WHOLE_REPO").expect("TIDEMILL_WHOLE_REPO names a repository");
    let number = |name: &str, usual| std::env::var(name).map_or(usual, |number| number.parse().unwrap());
    let (commits, every) = (number("TIDEMILL_WHOLE_COMMITS", 500), number("TIDEMILL_WHOLE_EVERY", 25));
    // Words and identifiers, phrases, the name of an item, a word of every entry and one of hardly any.
    let questions = [
        "spawn camera",
        "how are systems ordered",
        "\"render graph\"",
        "World::spawn",
        "fn",
        "TODO",
        "the",
        "\"the world\" shader",
        "despawn_recursive",
        "mesh vertex attribute",
    ];
    follow_and_rebuild(Path::new(&origin), commits, every, &questions);
}

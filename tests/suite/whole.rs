//! *Incremental equals rebuilt*, with whole binaries on a real history: that of this project.
//!
//! One store follows the last commits one by one; others know one of these commits only. What they dump, and what they
//! rank, must be the same. Without a repository around the sources (as in a released archive) there is nothing to do.

use crate::support::Program;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// How many commits before the head get snapshots, and every how many of them is rebuilt.
const BACKFILL: usize = 6;
const EVERY: usize = 3;

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the lines of a dump without the field that tells of histories.
fn dump(program: &Program, at: &str) -> Vec<Value> {
    let mut lines = program.json(&["dump", "--json", "--at", at]);
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("introduced_in");
    }
    lines
}

fn answers(program: &Program, at: &str) -> Vec<Value> {
    let mut hits = Vec::new();
    for question in ["how is a version digested", "merge vector segments", "TODO", "bitmap of live ordinals"] {
        for mode in ["bm25", "vector", "hybrid"] {
            let answer =
                program.json(&["search", question, "--json", "-k", "20", "--at", at, "--mode", mode]).remove(0);
            hits.extend(answer["hits"].as_array().unwrap().clone());
        }
    }
    for hit in &mut hits {
        hit.as_object_mut().unwrap().remove("introduced_in");
    }
    hits
}

#[test]
fn a_store_that_followed_this_projects_history_equals_stores_built_at_its_commits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let clone = Program::new();
    let bare = clone.folder().join("project.git");
    let bare_path = bare.to_str().unwrap();
    if git(root, &["clone", "-q", "--bare", "--no-hardlinks", ".", bare_path]).is_none() {
        return;
    }
    let Some(commits) = git(&bare, &["rev-list", "--first-parent", "HEAD"]) else { return };
    let commits: Vec<&str> = commits.lines().take(BACKFILL + 1).collect();
    git(&bare, &["update-ref", "--no-deref", "HEAD", commits[0]]).unwrap();
    let followed = Program::new();
    let backfill = (commits.len() - 1).to_string();
    let track = ["track", bare_path, "--once", "--json", "--ref", "HEAD", "--name", "project"];
    let lines = followed.json(&[&track[..], &["--backfill", &backfill]].concat());
    assert_eq!(lines.len(), commits.len() + 1);
    for commit in commits.iter().step_by(EVERY) {
        git(&bare, &["update-ref", "--no-deref", "HEAD", commit]).unwrap();
        let fresh = Program::new();
        let alone = fresh.json(&track).remove(0);
        let line = lines.iter().find(|line| line["commit"] == **commit).unwrap();
        assert_eq!((&line["digest"], &line["live_entries"]), (&alone["digest"], &alone["live_entries"]), "{commit}");
        assert_eq!(dump(&followed, commit), dump(&fresh, commit), "{commit}");
        assert_eq!(answers(&followed, commit), answers(&fresh, commit), "{commit}");
    }
}

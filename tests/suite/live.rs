//! A running tracker: its output, signals, the lock, and concurrent searches.

use crate::commands::three_commits;
use crate::support::{Program, Repository, Tree, tree};
use serde_json::Value;
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

#[test]
fn a_second_tracker_is_refused_and_told_who_holds_the_lock_while_readers_are_welcome() {
    let (repository, [.., third]) = three_commits();
    let program = Program::new();
    let mut live = program.start(&["track", repository.name(), "--json"]);
    assert_eq!(live.line()["commit"], third.to_string());
    let holder = format!("process {}", live.id());
    program.refuses(&["track", repository.name(), "--once"], &[&holder, "--data"]);
    assert_eq!(program.json(&["search", "entity", "--json"])[0]["at"][0]["commit"], third.to_string());
    assert_eq!(program.json(&["status", "--json"])[0]["sources"][0]["views"][0]["behind"], 0);
    live.signal("TERM");
    assert_eq!(live.end(), Some(0));
    assert_eq!(program.json(&["track", repository.name(), "--once", "--json"]).len(), 1, "the lock is free again");
}

/// A repository in which a file changes with every commit; returns its commits, oldest first.
fn long_history(commits: usize) -> (Repository, Vec<CommitId>) {
    let repository = Repository::new();
    let mut files = Tree::new();
    for number in 0..40 {
        let text: String = (0..20)
            .map(|item| format!("/// Part {item}.\nfn part_{number}_{item}() {{\n    run({item});\n}}\n\n"))
            .collect();
        files.insert(format!("src/file{number}.rs").into_bytes(), text.into_bytes());
    }
    let commits = (0..commits)
        .map(|number| {
            let path = format!("src/file{}.rs", number % 40).into_bytes();
            let text = format!("/// Marks.\nfn mark_{number}() {{\n    marker{number}();\n}}\n");
            files.insert(path, text.into_bytes());
            repository.commit(&files)
        })
        .collect();
    (repository, commits)
}

fn digests(program: &Program) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    program.json(&["snapshots", "--json"]).iter().map(|line| (text(&line["commit"]), text(&line["digest"]))).collect()
}

#[test]
fn a_live_tracker_says_what_it_publishes_at_once_and_ends_well_when_asked() {
    let (repository, _) = three_commits();
    let program = Program::new();
    let mut live = program.start(&["track", repository.name(), "--json", "--poll", "200ms"]);
    live.line();
    for number in 0..3 {
        let text = format!("entity number {number}\n");
        let commit = repository.commit(&tree([("notes.txt", text.as_str())]));
        let line = live.line();
        assert_eq!(line["commit"], commit.to_string());
        // The line is printed when the epoch is published: a search from now on sees it.
        let answer = program.json(&["search", "entity", "--json", "--mode", "bm25"]).remove(0);
        assert_eq!(answer["at"][0]["commit"], commit.to_string());
        assert_eq!(answer["hits"][0]["text"].as_str().unwrap().trim(), text.trim());
    }
    for signal in ["INT", "TERM"] {
        live.signal(signal);
        assert_eq!(live.end(), Some(0), "{signal}");
        live = program.start(&["track", repository.name(), "--json"]);
        assert!(live.line_within(Duration::from_millis(300)).is_none(), "an unchanged head prints no line");
    }
}

#[test]
fn an_interrupted_backfill_loses_nothing_that_was_published_and_goes_on() {
    let (repository, commits) = long_history(80);
    let program = Program::new();
    let mut live = program.start(&["track", repository.name(), "--once", "--json", "--backfill", "all"]);
    let mut printed = vec![live.line()];
    live.signal("TERM");
    while let Some(line) = live.line_within(Duration::from_secs(5)) {
        printed.push(line);
    }
    assert_eq!(live.end(), Some(0));
    let printed: Vec<&Value> = printed.iter().filter(|line| line.get("commit").is_some()).collect();
    let stored = program.json(&["snapshots", "--json"]);
    assert_eq!(stored.len(), printed.len(), "what was published was printed, and nothing else");
    program.json(&["track", repository.name(), "--once", "--json", "--backfill", "all"]);
    assert_eq!(digests(&program).len(), commits.len());
}

#[test]
fn a_killed_tracker_heals_and_its_snapshots_equal_those_of_a_fresh_store() {
    let (repository, commits) = long_history(60);
    let fresh = Program::new();
    fresh.json(&["track", repository.name(), "--once", "--json", "--backfill", "all"]);
    let expected = digests(&fresh);
    assert_eq!(expected.len(), commits.len());
    let program = Program::new();
    let track = ["track", repository.name(), "--once", "--json", "--backfill", "all"];
    for wait in [3, 17, 31, 60] {
        let mut live = program.start(&track);
        // Some milliseconds into the work, at any point: during the start, the load or a publish.
        let until = Instant::now() + Duration::from_millis(wait);
        let mut printed = Vec::new();
        while Instant::now() < until {
            printed.extend(live.line_within(Duration::from_millis(1)));
        }
        live.kill();
        if printed.iter().any(|line| line.get("commit").is_some()) {
            let known = digests(&program);
            for line in printed.iter().filter(|line| line.get("commit").is_some()) {
                let commit = line["commit"].as_str().unwrap();
                assert_eq!(known.get(commit).map(String::as_str), line["digest"].as_str(), "{commit} was published");
            }
        }
    }
    program.json(&track);
    assert_eq!(digests(&program), expected);
    let questions = |program: &Program| {
        let ask = |question: &str| program.json(&["search", question, "--json", "-k", "30"])[0]["hits"].clone();
        ["marker47", "part run", "marks"].map(ask)
    };
    assert_eq!(questions(&program), questions(&fresh));
}

/// Returns whether every hit's text is in its file at the commit that answered.
fn hits_are_true(repository: &Repository, answer: &Value) {
    let commit = answer["at"][0]["commit"].as_str().unwrap();
    for hit in answer["hits"].as_array().unwrap() {
        let path = hit["path"].as_str().unwrap();
        let file = repository.git_text(&["show", &format!("{commit}:{path}")]);
        let text = hit["text"].as_str().unwrap().trim();
        assert!(file.contains(text), "{path} at {commit} does not hold {text:?}");
    }
}

#[test]
fn questions_asked_while_commits_are_published_are_answered_from_one_version() {
    let (repository, commits) = long_history(40);
    let program = Program::new();
    let live = program.start(&["track", repository.name(), "--json", "--poll", "100ms"]);
    live.line();
    let mut answered = BTreeSet::new();
    let mut files = tree([("src/file0.rs", "fn mark_40() {\n    marker40();\n}\n")]);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut answers = Vec::new();
            for _ in 0..60 {
                answers.extend(program.json(&["search", "marks marker part", "--json"]));
            }
            answers
        });
        for number in 41..81 {
            let text = format!("/// Marks.\nfn mark_{number}() {{\n    marker{number}();\n}}\n");
            files.insert(b"src/file1.rs".to_vec(), text.into_bytes());
            let commit = repository.commit(&files).to_string();
            while live.line()["commit"] != commit {}
        }
        for answer in asking.join().unwrap() {
            hits_are_true(&repository, &answer);
            answered.insert(answer["at"][0]["commit"].as_str().unwrap().to_owned());
        }
    });
    assert!(answered.len() > 1, "versions moved while questions were asked: {}", answered.len());
    assert!(commits.len() == 40);
}

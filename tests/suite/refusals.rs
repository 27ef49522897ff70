//! Bad input: refused in one line that names the thing, the reason and the next step, with status 1, and nothing changed.

use crate::commands::three_commits;
use crate::support::{Program, Repository, tree};
use snapshots::CommitId;
use std::collections::BTreeMap;

#[test]
fn without_a_store_every_question_says_how_to_make_one() {
    let program = Program::new();
    for command in [&["search", "x"][..], &["status"], &["dump"], &["snapshots"], &["explain", "a.rs"]] {
        program.refuses(command, &["no store", "tidemill track"]);
        program.refuses(&[command, &["--json"]].concat(), &["no store", "tidemill track"]);
    }
    assert!(!program.store().exists(), "a question makes no store");
}

#[test]
fn a_source_that_cannot_be_tracked_leaves_no_store_behind() {
    let program = Program::new();
    std::fs::create_dir(program.folder().join("plain")).unwrap();
    std::fs::write(program.folder().join("plain/a.txt"), "words\n").unwrap();
    let unborn = Repository::new();
    let (repository, _) = three_commits();
    let inside = repository.path().join("refs");
    let once = |source: &str, more: &[&str], words: &[&str]| {
        program.refuses(&[&["track", source, "--once"], more].concat(), words);
    };
    once("plain", &[], &["no git repository", "dir:plain"]);
    once("nowhere", &[], &["nowhere"]);
    once("dir:nowhere", &[], &["nowhere"]);
    once("plain/a.txt", &[], &["plain/a.txt"]);
    once(inside.to_str().unwrap(), &[], &["refs"]);
    once(unborn.name(), &[], &["no commit", "main", "--ref"]);
    once(repository.name(), &["--ref", "nothing/*"], &["matches", "--ref"]);
    once(repository.name(), &["--ref", "[broken"], &["pattern", "[broken"]);
    once(repository.name(), &["--backfill", "nosuchrevision"], &["nosuchrevision"]);
    let stray = repository.write(&[], &tree([("a.txt", "words of another line\n")])).to_string();
    once(repository.name(), &["--backfill", &stray], &[&stray, "main"]);
    program.refuses(&["track", "--once"], &["no source", "tidemill.toml"]);
    std::fs::write(program.folder().join("tidemill.toml"), "workers = \"many\"\n").unwrap();
    program.refuses(&["track", "--once"], &["tidemill.toml", "workers"]);
    std::fs::remove_file(program.folder().join("tidemill.toml")).unwrap();
    program.refuses(&["status"], &["tidemill track"]);
}

#[test]
fn bad_questions_are_refused_in_one_line_and_change_nothing() {
    let (repository, [first, _, third]) = three_commits();
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let before = (program.run(&["dump", "--json"]).out, program.run(&["snapshots", "--json"]).out);
    program.refuses(&["search", ""], &["empty", "words"]);
    program.refuses(&["search", "  \t "], &["empty"]);
    for (option, number) in [("-k", "0"), ("-k", "10001"), ("-k", "-1"), ("--per-doc", "0")] {
        for command in [&["search", "x"][..], &["bisect", "x", "--expect", "p", "--good", "main", "--bad", "main"]] {
            let run = program.run(&[command, &[&format!("{option}={number}")]].concat());
            assert_eq!((run.status, run.out.as_str()), (Some(2), ""), "{option} {number}");
            assert!(run.err.contains(&format!("'{option} <")) && run.err.contains(number), "{}", run.err);
        }
    }
    program.refuses(&["search", "x", "--at", "nosuchrevision"], &["nosuchrevision", "snapshots list"]);
    program.refuses(&["search", "x", "--view", "nosuchview"], &["nosuchview", "main"]);
    program.refuses(&["search", "x", "--source", "nosuchsource"], &["nosuchsource", "engine"]);
    program.refuses(&["search", "x", "--where", "nonsense"], &["nonsense"]);
    program.refuses(&["snapshots", "diff", "main", "nosuchrevision"], &["nosuchrevision"]);
    program.refuses(&["dump", "--at", "1999-01-01T00:00"], &["1999"]);
    program.refuses(&["track", repository.name(), "--once", "--ref", "nosuch*"], &["--ref"]);
    // A commit without a snapshot names the nearest one that has it, and the backfill that would make it.
    let (first, third) = (first.to_string(), third.to_string());
    for rev in [first.as_str(), "main~2"] {
        program.refuses(&["search", "x", "--at", rev], &[&first, "no snapshot", &third, "--backfill 2"]);
    }
    program.json(&["track", repository.name(), "--once", "--json"]);
    assert_eq!((program.run(&["dump", "--json"]).out, program.run(&["snapshots", "--json"]).out), before);
    // And the hint's command works.
    program.json(&["track", repository.name(), "--once", "--json", "--backfill", "2"]);
    assert_eq!(program.json(&["search", "x", "--at", &first, "--json"])[0]["at"][0]["commit"], first);
}

#[test]
fn an_ambiguous_hash_names_the_commits_that_it_may_be() {
    let repository = Repository::new();
    let files = tree([("a.txt", "words\n")]);
    let mut known: BTreeMap<String, CommitId> = BTreeMap::new();
    let (left, right) = loop {
        let commit = repository.write(&[], &files);
        if let Some(other) = known.insert(commit.to_string()[..4].to_owned(), commit) {
            break (other, commit);
        }
    };
    repository.point("refs/heads/main", left);
    repository.point("refs/heads/other", right);
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json", "--ref", "*"]);
    let (left, right) = (left.to_string(), right.to_string());
    program.refuses(&["search", "words", "--at", &left[..4]], &["ambiguous", &left, &right]);
    assert_eq!(program.json(&["search", "words", "--json", "--at", &left])[0]["at"][0]["commit"], left);
}

#[test]
fn a_store_of_another_format_is_refused_by_all_and_left_alone() {
    let (repository, _) = three_commits();
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let format = program.store().join("FORMAT");
    let known = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, "tidemill store format 999\n").unwrap();
    for command in [&["search", "x"][..], &["status"], &["dump"], &["track", repository.name(), "--once"]] {
        program.refuses(command, &["format 999", "format 4"]);
    }
    std::fs::write(&format, known).unwrap();
    assert_eq!(program.json(&["track", repository.name(), "--once", "--json"]).len(), 1, "nothing was lost");
}

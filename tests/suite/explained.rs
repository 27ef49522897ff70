//! `explain` says how it read a path, and why the path has no document.

use crate::support::{Program, Repository, Tree, tree};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// A directory source beside the store, tracked.
fn notes(files: &[(&str, &str)]) -> Program {
    let program = Program::new();
    for (path, text) in files {
        let path = program.folder().join("notes").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    program.json(&["track", "dir:notes", "--once", "--json"]);
    program
}

fn explained(program: &Program, path: &str) -> Value {
    program.json(&["explain", path, "--json"]).remove(0)
}

#[test]
fn a_path_is_taken_from_the_root_the_current_folder_or_absolute() {
    let program = notes(&[("deep/a.md", "the heron\n"), ("b.md", "the weir\n")]);
    let absolute = program.folder().join("notes/deep/a.md");
    for (asked, path, taken) in [
        ("deep/a.md", "deep/a.md", "source"),
        ("./deep/../b.md", "b.md", "source"),
        ("notes/deep/a.md", "deep/a.md", "folder"),
        (absolute.to_str().unwrap(), "deep/a.md", "absolute"),
    ] {
        let line = explained(&program, asked);
        assert_eq!((&line["path"], &line["taken"], &line["outcome"]), (&path.into(), &taken.into(), &"indexed".into()));
        assert_eq!((&line["source"], &line["view"]), (&"notes".into(), &".".into()));
    }
    let shown = program.run(&["explain", "notes/deep/a.md"]).out;
    assert!(
        shown.starts_with("deep/a.md in notes as of ") && shown.contains("taken from the current folder"),
        "{shown}"
    );
    program.refuses(&["explain", "/nowhere/a.md"], &["/nowhere/a.md lies in no source", "notes ("]);
}

#[test]
fn what_is_no_document_says_why_and_what_is_near() {
    let files = [
        ("deep/a.md", "the heron\n"),
        ("build/c.md", "built\n"),
        (".gitignore", "# made\nbuild/\n"),
        ("Read.md", "x\n"),
    ];
    let program = notes(&files);
    let notes = program.folder().join("notes");
    std::os::unix::fs::symlink("deep", notes.join("link")).unwrap();
    program.json(&["track", "dir:notes", "--once", "--json"]);
    std::fs::write(notes.join("late.md"), "late\n").unwrap();
    for (asked, reason) in [
        ("build/c.md", "build is ignored by `build/`, line 2 of .gitignore"),
        ("deep", "it is a folder: one file stands below it"),
        ("link/a.md", "link is a symlink, and nothing below it is read"),
        (".git/config", "no file stands at this path in this version"),
        ("late.md", "it is on disk now, and came after this version"),
        ("a.md", "no file stands at this path in this version"),
    ] {
        let line = explained(&program, asked);
        assert_eq!(line["outcome"], "absent", "{asked}");
        assert!(line["reason"].as_str().unwrap().contains(reason), "{asked}: {}", line["reason"]);
    }
    assert_eq!(explained(&program, "a.md")["near"][0]["path"], "deep/a.md", "the same name elsewhere");
    assert_eq!(explained(&program, "read.md")["near"][0]["path"], "Read.md", "but for its case");
}

#[test]
fn a_path_in_another_unicode_form_finds_its_twin() {
    let program = notes(&[("u\u{308}ber.md", "the heron\n")]);
    let line = explained(&program, "\u{fc}ber.md");
    assert_eq!((&line["outcome"], &line["path"]), (&"indexed".into(), &"u\u{308}ber.md".into()));
}

#[test]
fn a_path_that_is_no_text_can_be_asked_for() {
    let repository = Repository::new();
    let odd = b"na\xefve.txt";
    repository.commit(&Tree::from([(odd.to_vec(), b"naive words\n".to_vec())]));
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let output = Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .current_dir(program.folder())
        .args(["explain", "--json"])
        .arg(OsStr::from_bytes(odd))
        .env_remove("TIDEMILL_DATA")
        .output()
        .unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["outcome"], &line["path_bytes"]), (&"indexed".into(), &"bmHvdmUudHh0".into()));
}

#[test]
fn a_file_of_a_work_tree_that_is_in_no_commit_says_so() {
    let program = Program::new();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(program.folder()).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
        assert!(command.args(arguments).status().unwrap().success(), "{arguments:?}");
    };
    git(&["init", "-q", "-b", "main", "work"]);
    for (path, text) in tree([("a.md", "the heron\n"), (".gitignore", "*.log\n")]) {
        std::fs::write(program.folder().join("work").join(OsStr::from_bytes(&path)), text).unwrap();
    }
    git(&["-C", "work", "add", "-A"]);
    git(&["-C", "work", "commit", "-q", "-m", "x"]);
    program.json(&["track", "work", "--once", "--json"]);
    for name in ["new.md", "x.log"] {
        std::fs::write(program.folder().join("work").join(name), "x\n").unwrap();
    }
    let reason = |path: &str| explained(&program, path)["reason"].as_str().unwrap().to_owned();
    assert!(reason("new.md").contains("in no commit up to this version"));
    assert!(reason("work/x.log").contains("git ignores it; `git check-ignore -v x.log`"));
    assert_eq!(explained(&program, "work/a.md")["outcome"], "indexed");
}

#[test]
fn status_counts_what_was_cut_without_its_syntax_by_reason() {
    let grown = |unit: &str| unit.repeat(200_000 / unit.len());
    let program = notes(&[
        ("plain.rs", "fn heron() {}\n"),
        ("scanned.rs", grown("r#\"").as_str()),
        ("one.c", grown("(a)(b)*").as_str()),
        ("two.c", (grown("(a)(b)*") + ";\n").as_str()),
    ]);
    let status = program.json(&["status", "--json"]).remove(0);
    let counted = &status["sources"][0]["without_syntax"];
    assert_eq!(*counted, serde_json::json!({"read": 1, "steps": 2}));
    assert_eq!(status["sources"][0]["documents"], 4, "they are documents all the same");
    let shown = program.run(&["status"]).out;
    assert!(shown.contains("  cut without their syntax: 1 read, 2 steps ("), "{shown}");
    std::fs::remove_file(program.folder().join("notes/scanned.rs")).unwrap();
    program.json(&["track", "dir:notes", "--once", "--json"]);
    assert!(program.run(&["status"]).out.contains("  cut without their syntax: 2 steps ("));
}

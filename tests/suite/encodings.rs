//! Promise: a document is read in its own encoding; if that is an uncertain guess, `status` says so and how to fix it.

use crate::support::Program;
use std::fs;
use std::path::Path;
use std::process::Command;

/// 着色 (shading), and KOI8-R for Привет, which cannot be distinguished from other encodings.
const GBK: &[u8] = b"\xD7\xC5\xC9\xAB\n";
const KOI8: &[u8] = b"\xF0\xD2\xC9\xD7\xC5\xD4\n";

#[test]
fn a_guess_from_little_is_told_and_a_rule_settles_it() {
    let program = Program::new();
    let notes = program.folder().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("shader.txt"), GBK).unwrap();
    fs::write(notes.join("hello.txt"), KOI8).unwrap();
    fs::write(notes.join("plain.txt"), "Größe\n").unwrap();
    let track = ["track", "dir:notes", "--once", "--json"];
    program.json(&track);

    let status = &program.json(&["status", "--json"])[0]["sources"][0];
    assert_eq!(status["unsure"]["count"], 2, "{status}");
    assert_eq!(status["unsure"]["first"][0]["path"], "hello.txt", "{status}");
    let shown = program.run(&["status"]).out;
    assert!(shown.contains("encoding guessed from few characters in 2 documents: hello.txt"), "{shown}");
    assert!(shown.contains("match = [\"hello.txt\"], like = \"text\", charset = "), "{shown}");
    let explained = |path: &str| {
        let explained = program.json(&["explain", path, "--json"]).remove(0);
        ["encoding", "encoding_because"].map(|key| explained[key].as_str().unwrap().to_owned())
    };
    assert_eq!(explained("plain.txt"), ["utf-8", "its bytes are that"]);
    assert_eq!(explained("hello.txt")[1], "guessed from few characters, and may be wrong");

    // The line that `status` shows, with the encoding that a person knows.
    let rules = "rule = [{ name = 'told', match = ['hello.txt'], like = 'text', charset = 'koi8-r' }, \
                 { name = 'chinese', match = ['shader.txt'], like = 'text', charset = 'gb2312' }]\n";
    fs::write(program.folder().join("rules.toml"), rules).unwrap();
    fs::write(program.folder().join("tidemill.toml"), "rules = \"rules.toml\"\n").unwrap();
    program.json(&track);
    assert_eq!(explained("hello.txt"), ["koi8-r", "the rule says so"]);
    assert_eq!(program.json(&["status", "--json"])[0]["sources"][0]["unsure"]["count"], 0);
    for (query, path) in [("привет", "hello.txt"), ("着色", "shader.txt")] {
        let answer = program.json(&["search", query, "--mode", "bm25", "--json"]).remove(0);
        assert_eq!(answer["hits"][0]["path"], path, "{answer}");
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let mut command = Command::new("git");
    command.current_dir(folder).args(settings).args(arguments);
    command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
    assert!(command.status().unwrap().success(), "{arguments:?}");
}

#[test]
fn an_editorconfig_settles_it_for_the_commits_that_have_it() {
    let program = Program::new();
    let repository = program.folder().join("r");
    let git = |arguments: &[&str]| git(&repository, arguments);
    fs::create_dir(&repository).unwrap();
    git(&["init", "-q", "-b", "main"]);
    let commit = || {
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "x"]);
    };
    fs::create_dir(repository.join("ru")).unwrap();
    fs::write(repository.join("ru/hello.txt"), KOI8).unwrap();
    fs::write(repository.join("plain.txt"), "Größe\n").unwrap();
    commit();
    fs::write(repository.join(".editorconfig"), "root = true\n[*]\ncharset = utf-8\n[ru/*]\ncharset = koi8-r\n")
        .unwrap();
    commit();
    program.json(&["track", "r", "--once", "--backfill", "1", "--json"]);
    let encoding = |rev: &str| {
        let explained = program.json(&["explain", "ru/hello.txt", "--at", rev, "--json"]).remove(0);
        ["encoding", "encoding_because"].map(|key| explained[key].as_str().unwrap().to_owned())
    };
    assert_eq!(encoding("main"), ["koi8-r", "an .editorconfig says so"]);
    assert_eq!(encoding("main~1")[1], "guessed from few characters, and may be wrong");
    let hits = |rev: &str| {
        let answer = program.json(&["search", "привет", "--mode", "bm25", "--at", rev, "--json"]).remove(0);
        answer["hits"].as_array().unwrap().len()
    };
    assert_eq!(hits("main"), 1);
    // Garbage collection keeps the cleaned text, and an export contains it.
    program.run(&["snapshots", "gc"]);
    assert_eq!(encoding("main")[0], "koi8-r");
    program.run(&["snapshots", "export", "main", "copy"]);
    let copy = program.folder().join("copy");
    let there = Program::new();
    there.run(&["snapshots", "import", copy.to_str().unwrap()]);
    let answer = there.json(&["search", "привет", "--mode", "bm25", "--json"]).remove(0);
    assert_eq!(answer["hits"][0]["path"], "ru/hello.txt", "{answer}");
}

#[test]
fn what_editors_leave_is_counted_explained_and_taken_in_by_a_rule() {
    let program = Program::new();
    let notes = program.folder().join("notes");
    fs::create_dir(&notes).unwrap();
    for (name, text) in [("a.md", "A heron."), ("a.md~", "A stork."), ("#a.md#", "A crane."), ("old.bak", "A bittern.")]
    {
        fs::write(notes.join(name), text).unwrap();
    }
    let skipped = || {
        program.json(&["track", "dir:notes", "--once", "--json"]);
        program.json(&["status", "--json"])[0]["sources"][0]["skipped"]["editor"].as_u64()
    };
    assert_eq!(skipped(), Some(3));
    let why = program.run(&["explain", "old.bak"]);
    assert!(why.out.contains("what an editor leaves (`*.bak`)") && why.out.contains("exclude = false"), "{}", why.out);
    let rules = "rule = [{ name = 'backups', match = ['*.bak'], like = 'text', exclude = false }]\n";
    fs::write(program.folder().join("rules.toml"), rules).unwrap();
    fs::write(program.folder().join("tidemill.toml"), "rules = \"rules.toml\"\n").unwrap();
    assert_eq!(skipped(), Some(2));
    let answer = program.json(&["search", "bittern", "--mode", "bm25", "--json"]).remove(0);
    assert_eq!(answer["hits"][0]["path"], "old.bak", "{answer}");
}

//! Promise: a document is read in its own encoding; if that is an uncertain guess, `status` says so and how to fix it.

use crate::support::Program;
use std::fs;

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

//! The identity of a source: its name stands for one kind, one location and one history, and no source silently replaces another.
//!
//! In user operations: whole binaries track repositories and folders that share a name, move, become links, or hold stores.

use crate::support::Program;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A folder in which the program runs, with repositories beside each other.
struct Desk {
    program: Program,
}

impl Desk {
    fn new() -> Self {
        Self { program: Program::new() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.program.folder().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// Runs a shell script in the folder, which must succeed.
    fn run(&self, script: &str) {
        let who = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
        let output = Command::new("sh")
            .args(["-ec", script])
            .envs(who.map(|name| (name, "a@b")))
            .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
            .current_dir(self.program.folder())
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes a repository whose one file holds a word.
    fn repository(&self, path: &str, word: &str) {
        self.run(&format!(
            "git init -q -b main {path}; cd {path}; echo {word} > a.md; git add -A; git commit -qm {word}"
        ));
    }

    fn track(&self, arguments: &[&str]) {
        self.program.json(&[&["track", "--once", "--json"], arguments].concat());
    }

    fn refused(&self, arguments: &[&str], words: &[&str]) -> String {
        self.program.refuses(&[&["track", "--once"], arguments].concat(), words)
    }

    fn sources(&self) -> Vec<String> {
        let status = self.program.json(&["status", "--json"]).pop().unwrap();
        let sources = status["sources"].as_array().unwrap().iter();
        sources.map(|source| source["name"].as_str().unwrap().to_owned()).collect()
    }

    fn finds(&self, word: &str) -> bool {
        !self.program.json(&["search", word, "--mode", "bm25", "--json"])[0]["hits"].as_array().unwrap().is_empty()
    }

    /// Runs the command that a refusal names.
    fn run_hint(&self, refusal: &str) {
        let from = refusal.find("tidemill track").expect("the refusal names a command");
        let command = refusal[from..].split(';').next().unwrap().trim();
        let binary = env!("CARGO_BIN_EXE_tidemill");
        self.run(&format!("{} --once", command.replacen("tidemill", binary, 1)));
    }
}

#[test]
fn a_second_source_of_one_name_is_refused_with_both_places_and_the_way_out() {
    let desk = Desk::new();
    desk.repository("alpha/docs", "heron");
    desk.repository("beta/docs", "bittern");
    desk.track(&["alpha/docs"]);
    desk.refused(&["beta/docs"], &["alpha/docs", "beta/docs", "--name"]);
    desk.refused(&["alpha/docs", "beta/docs"], &["alpha/docs", "beta/docs", "--name"]);
    desk.refused(&["dir:alpha/docs"], &["alpha/docs", "git", "--name"]);
    assert!(desk.finds("heron") && !desk.finds("bittern"));
    desk.track(&["beta/docs", "--name", "other"]);
    assert_eq!(
        (desk.sources(), desk.finds("heron"), desk.finds("bittern")),
        (vec!["docs".into(), "other".into()], true, true)
    );
    // A clone has the same history and is a separate source.
    desk.run("git clone -q alpha/docs gamma/docs");
    desk.refused(&["gamma/docs"], &["alpha/docs", "gamma/docs", "--name"]);
    desk.write("one/notes/a.md", "curlew");
    desk.write("two/notes/a.md", "plover");
    desk.track(&["dir:one/notes"]);
    desk.refused(&["dir:two/notes"], &["one/notes", "two/notes", "--name"]);
    desk.refused(&["dir:one/notes", "--name", "docs"], &["one/notes", "alpha/docs", "git"]);
    desk.write("tidemill.toml", "[[source]]\npath = \"alpha/docs\"\n[[source]]\npath = \"dir:two/notes\"\n");
    // With several sources the rest is still tracked.
    let run = desk.program.run(&["track", "--once"]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.err.contains("one/notes") && run.err.contains("two/notes"), "{run:?}");
    assert!(desk.finds("curlew") && !desk.finds("plover"));
}

#[test]
fn one_repository_is_one_source_however_its_path_is_written() {
    let desk = Desk::new();
    desk.repository("work/engine", "heron");
    desk.run("cd work/engine; git worktree add -q -b side ../../linked/engine; cd ../..; ln -s work/engine engine; mkdir sub");
    for path in [
        "work/engine",
        "work/engine/",
        "./work/engine/.",
        "work/engine/.git",
        "sub/../work/engine",
        "engine",
        "linked/engine",
    ] {
        desk.track(&[path]);
        assert_eq!(desk.sources(), ["engine"], "{path}");
    }
}

#[test]
fn what_was_moved_is_followed_once_that_is_said_and_the_refusal_says_how() {
    for (kind, name) in [("", None), ("dir:", None), ("", Some("the engine")), ("dir:", Some("it's notes"))] {
        let desk = Desk::new();
        let named = name.map_or(Vec::new(), |name| vec!["--name", name]);
        desk.repository("old/docs", "heron");
        desk.track(&[&[format!("{kind}old/docs").as_str()], named.as_slice()].concat());
        desk.run("mkdir 'new place'; mv old/docs 'new place/docs'");
        let place = format!("{kind}new place/docs");
        let arguments = [&[place.as_str()], named.as_slice()].concat();
        let refusal = desk.refused(&arguments, &["old/docs", "new place/docs", "--moved-from", "--name"]);
        desk.run_hint(&refusal);
        assert_eq!(desk.sources(), [name.unwrap_or("docs")]);
        desk.track(&arguments);
        desk.track(&[&["--moved-from", "old/docs"], arguments.as_slice()].concat());
        // Renamed during the move: the name follows the path.
        if name.is_none() {
            desk.run("mv 'new place/docs' handbook");
            desk.track(&[&format!("{kind}handbook"), "--moved-from", "new place/docs"]);
            assert_eq!((desk.sources(), desk.finds("heron")), (vec!["handbook".to_owned()], true));
        }
        let moved = if name.is_none() { format!("{kind}handbook") } else { place };
        desk.refused(&[&moved, "--moved-from", "no/where", "--name", "else"], &["no/where", "knows"]);
    }
}

#[test]
fn a_configured_source_is_moved_by_its_configuration() {
    let desk = Desk::new();
    desk.repository("old/docs", "heron");
    desk.write("tidemill.toml", "[[source]]\npath = \"old/docs\"\n");
    desk.track(&[]);
    desk.run("mkdir new; mv old/docs new/docs");
    desk.write("tidemill.toml", "[[source]]\npath = \"new/docs\"\n");
    desk.refused(&[], &["old/docs", "--moved-from"]);
    desk.write("tidemill.toml", "[[source]]\npath = \"new/docs\"\nmoved_from = \"old/docs\"\n");
    desk.track(&[]);
    desk.track(&[]);
    assert_eq!(desk.sources(), ["docs"]);
}

#[test]
fn another_repository_at_the_same_place_takes_it_only_when_that_is_said() {
    let desk = Desk::new();
    desk.repository("docs", "heron");
    desk.track(&["docs"]);
    desk.run("rm -rf docs");
    desk.repository("docs", "bittern");
    let refusal = desk.refused(&["docs"], &["another repository", "--name", "--moved-from"]);
    assert!(desk.finds("heron"));
    desk.run_hint(&refusal);
    assert!(desk.finds("bittern"));
    desk.track(&["docs"]);
    // A repository with a completely rewritten history is the same while it holds a tracked commit.
    desk.run("cd docs; git checkout -q --orphan fresh; echo curlew > a.md; git add -A; git commit -qm fresh; git branch -M main");
    desk.track(&["docs"]);
    assert!(desk.finds("curlew"));
}

#[test]
fn a_shallow_clone_is_known_by_its_place() {
    let desk = Desk::new();
    desk.repository("origin", "heron");
    desk.run("git clone -q --depth 1 file://$PWD/origin clone");
    desk.track(&["clone"]);
    desk.run("cd origin; echo bittern > a.md; git commit -qam two; cd ..; rm -rf clone; git clone -q --depth 1 file://$PWD/origin clone");
    desk.track(&["clone"]);
    assert!(desk.finds("bittern"));
}

#[test]
fn a_link_keeps_its_name_and_is_followed_at_each_start() {
    let desk = Desk::new();
    desk.write("monday/a.md", "heron");
    desk.write("tuesday/a.md", "bittern");
    symlink("monday", desk.path("notes")).unwrap();
    desk.track(&["dir:notes"]);
    assert_eq!((desk.sources(), desk.finds("heron")), (vec!["notes".to_owned()], true));
    fs::remove_file(desk.path("notes")).unwrap();
    symlink("tuesday", desk.path("notes")).unwrap();
    desk.track(&["dir:notes"]);
    assert_eq!((desk.sources(), desk.finds("heron"), desk.finds("bittern")), (vec!["notes".to_owned()], false, true));

    desk.repository("first", "curlew");
    desk.repository("second", "plover");
    desk.run("git clone -q first third; ln -s first engine");
    desk.track(&["engine"]);
    desk.run("ln -sfn third engine");
    desk.track(&["engine"]);
    desk.run("ln -sfn second engine");
    desk.refused(&["engine"], &["engine", "another repository"]);
    assert_eq!(desk.sources(), ["notes", "engine"]);
}

#[test]
fn a_store_in_a_tracked_folder_is_hidden_from_git_and_from_every_tracker() {
    let desk = Desk::new();
    desk.repository("r", "heron");
    let data = |name: &str| desk.path("r").join(name).to_str().unwrap().to_owned();
    let (one, two, three) = (data(".tidemill"), data("index"), data("third"));
    desk.track(&["r", "--data", &one]);
    desk.run("cd r; test -z \"$(git status --short)\"; test -f .tidemill/CACHEDIR.TAG");
    desk.track(&["dir:r", "--data", &two]);
    desk.track(&["r", "--worktree", "--data", &three]);
    let paths = |data: &str, at: &[&str]| {
        let entries = desk.program.json(&[&["dump", "--json", "--data", data], at].concat());
        entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&two, &[]), ["a.md"]);
    assert_eq!(paths(&three, &["--at", "worktree"]), ["a.md"]);

    // A store of an earlier build does not hide itself.
    for name in [".gitignore", "CACHEDIR.TAG"] {
        fs::remove_file(desk.path("r/.tidemill").join(name)).unwrap();
    }
    desk.track(&["dir:r", "--data", &two]);
    desk.track(&["r", "--worktree", "--data", &three]);
    assert_eq!((paths(&two, &[]), paths(&three, &["--at", "worktree"])), (vec!["a.md".into()], vec!["a.md".into()]));
    let status = desk.program.json(&["status", "--json", "--data", &two]).pop().unwrap();
    assert_eq!(status["sources"][0]["skipped"]["store"], 2, "beside its own: {status}");
    let explained = desk.program.json(&["explain", ".tidemill/FORMAT", "--json", "--data", &two]).pop().unwrap();
    assert!(explained["reason"].as_str().unwrap().starts_with(".tidemill is a store of tidemill"), "{explained}");
    desk.refused(&["dir:r/third", "--data", &two], &["third", "store"]);
    desk.refused(&["dir:r/third/memo", "--data", &two], &["memo", "store"]);
}

#[test]
fn two_trackers_of_one_folder_with_their_stores_in_it_come_to_rest() {
    let desk = Desk::new();
    desk.write("notes/a.md", "heron");
    let data = |name: &str| desk.path("notes").join(name).to_str().unwrap().to_owned();
    let (one, two) = (data("one"), data("two"));
    let start = |data: &str| desk.program.start(&["track", "dir:notes", "--json", "--data", data]);
    let (first, second) = (start(&one), start(&two));
    assert_eq!(first.line()["documents"]["added"], 1);
    assert_eq!(second.line()["documents"]["added"], 1);
    assert!(
        first.line_within(Duration::from_secs(3)).is_none() && second.line_within(Duration::from_secs(1)).is_none()
    );
    desk.write("notes/b.md", "bittern");
    for live in [first, second] {
        assert_eq!(live.line()["documents"]["added"], 1, "what people write is seen");
    }
}

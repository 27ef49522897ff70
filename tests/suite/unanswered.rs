//! A source whose file system hangs holds up no other, is named by `status`, and goes on when it answers.
//!
//! Opening a pipe waits until its other end is opened: an object that is one stands for a file on a network disk that went away.

use crate::commands::three_commits;
use crate::support::{Live, Program, Repository, tree};
use serde_json::Value;
use snapshots::CommitId;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a commit of one source may take, whatever becomes of another.
const DELAY: Duration = Duration::from_secs(3);
/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// An object whose reader hangs.
struct Hung {
    object: PathBuf,
    whole: PathBuf,
    pipe: PathBuf,
}

impl Hung {
    fn new(repository: &Repository, id: &str) -> Self {
        let object = repository.path().join("objects").join(&id[..2]).join(&id[2..]);
        let [whole, pipe] = ["whole", "pipe"].map(|name| repository.path().join(format!("{name}-{id}")));
        fs::rename(&object, &whole).unwrap();
        assert!(Command::new("mkfifo").arg(&object).status().unwrap().success());
        fs::hard_link(&object, &pipe).unwrap();
        Self { object, whole, pipe }
    }

    /// Puts the object back, and lets go of those that wait for the pipe, which give them nothing.
    fn answers(&self) {
        fs::rename(&self.whole, &self.object).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            // Without waiting: it fails where none has it open for reading.
            drop(OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&self.pipe));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Two repositories that are followed.
struct Two {
    program: Program,
    live: Live,
    hanging: Repository,
    other: Repository,
}

impl Two {
    fn follow() -> Self {
        let (hanging, _) = three_commits();
        let (other, _) = three_commits();
        let program = Program::new();
        let source = |name: &str, repository: &Repository| {
            format!("[[source]]\nname = \"{name}\"\npath = \"{}\"\npoll_seconds = 0.2\n", repository.name())
        };
        let settings = source("hanging", &hanging) + &source("other", &other);
        fs::write(program.folder().join("tidemill.toml"), settings).unwrap();
        let live = program.start(&["track", "--json"]);
        live.line();
        live.line();
        Self { program, live, hanging, other }
    }

    /// Writes a commit that adds a file, and returns its id with those of its tree and the file's content.
    fn commit(&self, text: &str) -> [String; 3] {
        let parent = git2::Repository::open(self.hanging.path()).unwrap().refname_to_id("refs/heads/main").unwrap();
        let parent: CommitId = parent.to_string().parse().unwrap();
        let commit = self.hanging.write(&[parent], &tree([("late.txt", text)]));
        let id = |of: &str| {
            let printed = self.hanging.git(&["rev-parse", &format!("{commit}{of}")]);
            String::from_utf8(printed).unwrap().trim().to_owned()
        };
        [commit.to_string(), id("^{tree}"), id(":late.txt")]
    }

    fn point(&self, commit: &str) {
        fs::write(self.hanging.path().join("refs/heads/main"), format!("{commit}\n")).unwrap();
    }

    /// Commits to the other repository, and returns the lines of the first one that came in front.
    fn other_goes_on(&self, text: &str) -> Vec<Value> {
        let commit = self.other.commit(&tree([("notes.txt", text)])).to_string();
        let (begun, mut before) = (Instant::now(), Vec::new());
        loop {
            let line = self.live.line();
            assert!(begun.elapsed() < DELAY, "{text}: {:?}", begun.elapsed());
            if line["commit"] == commit {
                return before;
            }
            assert_eq!(line["source"], "hanging", "{line}");
            before.push(line);
        }
    }

    fn status(&self) -> Value {
        let status = self.program.json(&["status", "--json"]).remove(0);
        status["sources"].as_array().unwrap().iter().find(|source| source["name"] == "hanging").unwrap().clone()
    }

    fn hits(&self, word: &str) -> usize {
        let answer = self.program.json(&["search", word, "--json", "--mode", "bm25"]).remove(0);
        answer["hits"].as_array().unwrap().len()
    }
}

fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_repository_whose_commits_or_trees_hang_holds_up_no_other() {
    for what in ["commit", "tree"] {
        let two = Two::follow();
        let [commit, tree_id, _] = two.commit("a weir that answers late\n");
        let hung = Hung::new(&two.hanging, if what == "commit" { &commit } else { &tree_id });
        two.point(&commit);
        for number in 0..4 {
            assert!(two.other_goes_on(&format!("entity beside a {what}, {number}\n")).is_empty());
            std::thread::sleep(Duration::from_millis(700));
        }
        // `status` asks the repository how far behind it is, and would wait for the commit.
        if what == "tree" {
            wait("the trouble", || {
                two.status()["trouble"]["what"].as_str().is_some_and(|what| what.contains("does not answer"))
            });
        }
        hung.answers();
        assert_eq!(two.live.line_within(PATIENCE).unwrap()["commit"], commit);
        wait("the end of the trouble", || two.status()["trouble"].is_null());
        assert_eq!(two.hits("weir"), 1);
        two.live.signal("INT");
    }
}

#[test]
fn a_content_that_hangs_is_a_fault_until_it_answers_and_holds_up_no_other() {
    let mut two = Two::follow();
    let [commit, _, content] = two.commit("a weir that answers late\n");
    let hung = Hung::new(&two.hanging, &content);
    two.point(&commit);
    let mut lines = Vec::new();
    for number in 0..4 {
        lines.extend(two.other_goes_on(&format!("entity beside a content, {number}\n")));
        std::thread::sleep(Duration::from_millis(700));
    }
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["commit"], &lines[0]["work"]["faults"]), (&commit.clone().into(), &1.into()));
    let faults = two.status()["faults"].clone();
    assert_eq!(faults[0]["path"], "late.txt");
    assert!(faults[0]["error"].as_str().unwrap().contains("does not answer"), "{faults}");
    hung.answers();
    wait("the document", || two.hits("weir") == 1);
    two.live.signal("INT");
    assert_eq!(two.live.end(), Some(0));
}

#[test]
fn what_hangs_is_left_out_of_one_look_and_of_no_interrupt() {
    let mut two = Two::follow();
    let [commit, tree_id, _] = two.commit("a weir that never answers\n");
    let _hung = Hung::new(&two.hanging, &tree_id);
    two.point(&commit);
    wait("the trouble", || two.status()["trouble"].is_object());
    two.live.signal("INT");
    let asked = Instant::now();
    assert_eq!(two.live.end(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    let commit = two.other.commit(&tree([("notes.txt", "entity at last\n")])).to_string();
    let run = two.program.run(&["track", "--once", "--json"]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.out.contains(&commit) && run.err.contains("hanging is left out: "), "{run:?}");
}

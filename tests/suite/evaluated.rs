//! Evaluation as a user runs it: questions drawn from a repository, asked, judged, and compared across commits.
//!
//! Whole binaries run on a small repository whose right answers are known.

use crate::support::{Program, Repository, tree};
use serde_json::Value;
use snapshots::CommitId;
use std::process::Command;

const WORLD: &str = "//! The world.\n\npub struct World;\n\nimpl World {\n    /// Makes one more entity without any component.\n    #[must_use]\n    pub fn spawn_empty(&mut self) -> u32 {\n        self.entities.allocate()\n    }\n\n    /// Takes away an entity and everything below it.\n    pub fn despawn(&mut self, entity: u32) -> bool {\n        self.entities.free(entity)\n    }\n\n    /// Short.\n    pub fn clear_all(&mut self) {\n        self.entities.clear();\n    }\n}\n";
const NODE: &str = "#pragma once\n\n/// A node of the scene.\nclass Node\n{\npublic:\n    /// Return the child at an index, or null.\n    Node* GetChild(unsigned index) const;\n};\n";
const NODE_CPP: &str = "#include \"Node.h\"\n\nNode* Node::GetChild(unsigned index) const\n{\n    return index < children_.Size() ? children_[index] : nullptr;\n}\n";
const GUIDE: &str = "# Entity guide\n\nEntities are numbers.\n\n## How they are made\n\nWith the world.\n\n## How they go\n\nWith despawn.\n";

/// Two commits; the second changes the guide.
fn engine() -> (Repository, [CommitId; 2]) {
    let repository = Repository::new();
    let files = |guide: &str| {
        tree([("src/world.rs", WORLD), ("scene/Node.h", NODE), ("scene/Node.cpp", NODE_CPP), ("guide.md", guide)])
    };
    let first = repository.commit(&files(GUIDE));
    let second = repository.commit(&files(&GUIDE.replace("are numbers", "are names of rows, each a number")));
    (repository, [first, second])
}

fn questions(program: &Program, folder: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(program.folder().join(folder).join("questions.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn comments_become_questions_and_are_in_no_text_that_is_searched() {
    let (repository, _) = engine();
    let program = Program::new();
    let made = program.json(&["eval", "init", "doc-comments", repository.name(), "--out", "drawn", "--json"]);
    assert_eq!((&made[0]["questions"], &made[0]["of"]), (&3.into(), &3.into()));
    let mut drawn = questions(&program, "drawn");
    drawn.sort_by_key(|question| question["text"].to_string());
    let told: Vec<(&str, &str, [u64; 2])> = drawn
        .iter()
        .map(|question| {
            let right = &question["judgments"][0];
            let line = |at: usize| right["lines"][at].as_u64().unwrap();
            (question["text"].as_str().unwrap(), right["path"].as_str().unwrap(), [line(0), line(1)])
        })
        .collect();
    let expected = [
        ("Makes one more entity without any component", "src/world.rs", [7, 9]),
        ("Return the child at an index, or null", "scene/Node.h", [7, 7]),
        ("Takes away an entity and everything below it", "src/world.rs", [11, 13]),
    ];
    assert_eq!(told, expected);
    assert_eq!(drawn[1]["judgments"][0]["or"][0]["path"], "scene/Node.cpp");
    let copy = program.folder().join("drawn/copy.git");
    let show = |path: &str| {
        let shown = Command::new("git").arg("-C").arg(&copy).args(["show", &format!("main:{path}")]).output().unwrap();
        String::from_utf8(shown.stdout).unwrap()
    };
    let world = show("src/world.rs");
    assert!(!world.contains("///") && world.contains("//! The world.") && world.contains("#[must_use]"), "{world}");
    assert!(show("scene/Node.h").contains("/// A node of the scene."));
    assert_eq!(show("guide.md"), GUIDE.replace("are numbers", "are names of rows, each a number"));

    program.json(&["eval", "init", "doc-comments", repository.name(), "--out", "again", "--no-index", "--json"]);
    assert_eq!(questions(&program, "again"), questions(&program, "drawn"), "the same bytes");
    assert!(!program.folder().join("again/store").exists());
    let under = ["--under", "scene", "--out", "under", "--no-index", "--json"];
    program.json(&[&["eval", "init", "doc-comments", repository.name()][..], &under].concat());
    assert_eq!(questions(&program, "under").len(), 1);
    program
        .refuses(&["eval", "init", "doc-comments", repository.name(), "--out", "drawn"], &["drawn is there already"]);
}

#[test]
fn names_headings_and_the_log_become_questions() {
    let (repository, [first, second]) = engine();
    let (tree, parent) = (format!("{second}^{{tree}}"), first.to_string());
    let who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "commit-tree"];
    let told = repository.git_text(&[&who[..], &[&tree, "-p", &parent, "-m", "Say what entities are (#7)"]].concat());
    repository.git_text(&["update-ref", "refs/heads/main", told.trim()]);
    let program = Program::new();
    let drawn = |what: &str| {
        program.json(&["eval", "init", what, repository.name(), "--out", what, "--json"]);
        let mut drawn: Vec<String> = questions(&program, what)
            .iter()
            .map(|question| {
                format!(
                    "{} {} {}",
                    question["kind"].as_str().unwrap(),
                    question["text"].as_str().unwrap(),
                    question["judgments"][0]["path"].as_str().unwrap()
                )
            })
            .collect();
        drawn.sort();
        drawn
    };
    let symbols = [
        "bare GetChild scene/Node.cpp",
        "bare Node scene/Node.h",
        "bare World src/world.rs",
        "bare clear_all src/world.rs",
        "bare despawn src/world.rs",
        "bare spawn_empty src/world.rs",
        "qualified Node::GetChild scene/Node.cpp",
        "qualified World::clear_all src/world.rs",
        "qualified World::despawn src/world.rs",
        "qualified World::spawn_empty src/world.rs",
    ];
    assert_eq!(drawn("symbols"), symbols);
    let headings =
        ["heading Entity guide guide.md", "heading How they are made guide.md", "heading How they go guide.md"];
    assert_eq!(drawn("headings"), headings);
    let log = drawn("log");
    assert_eq!(log, ["log Say what entities are guide.md"]);
    assert_eq!(questions(&program, "log")[0]["at"], first.to_string());
    let asked = &program.json(&["eval", "log/questions.jsonl", "--data", "log/store", "--modes", "bm25", "--json"])[0];
    assert_eq!((&asked["questions"], &asked["at"]), (&1.into(), &Value::Array(Vec::new())));
}

#[test]
fn questions_are_asked_compared_and_held_against_what_must_be_reached() {
    let (repository, [first, second]) = engine();
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json", "--backfill", "all"]);
    let lines = [
        r#"{"id":"a","text":"spawn_empty","kind":"name","lang":"en","judgments":[{"grade":3,"symbol":"World::spawn_empty"}],"must_not":[{"path":"nowhere/"}]}"#,
        r#"{"id":"b","text":"names of rows","kind":"words","lang":"en","judgments":[{"grade":2,"path":"guide.md","text":"each a number"}]}"#,
        r#"{"id":"c","text":"despawn","kind":"words","judgments":[{"grade":3,"path":"src/gone.rs"}]}"#,
    ];
    std::fs::write(program.folder().join("q.jsonl"), lines.join("\n")).unwrap();
    let found = program.json(&[
        "eval",
        "q.jsonl",
        "--json",
        "--page",
        "q.html",
        "--with",
        "deep:mode=bm25,per-doc=9",
        "--modes",
        "bm25,hybrid",
    ]);
    let names: Vec<&str> = found.iter().map(|line| line["config"].as_str().unwrap()).collect();
    assert_eq!(names, ["bm25", "hybrid", "deep"]);
    let bm25 = &found[0];
    assert_eq!((&bm25["questions"], &bm25["at"][0]), (&3.into(), &second.to_string().into()));
    let mean = |metric: &str| bm25["metrics"][metric]["mean"].as_f64().unwrap();
    assert!((mean("hit@5") - 2.0 / 3.0).abs() < 1e-9, "{bm25}");
    assert!((mean("kept_out@5") - 1.0).abs() < 1e-9);
    assert!(mean("ndcg@5") <= 2.0 / 3.0 + 1e-9 && mean("ndcg@5") > 0.0);
    assert_eq!(bm25["by"]["kind"]["words"]["questions"], 2);
    assert_eq!(bm25["by"]["lang"]["en"]["metrics"]["hit@5"]["mean"], 1.0);
    assert_eq!(bm25["against"]["deep"]["hit@5"]["p"], 1.0);
    assert_eq!(found[1]["lost"]["not-in-corpus"], 1, "{}", found[1]);
    let page = std::fs::read_to_string(program.folder().join("q.html")).unwrap();
    assert!(page.contains("not in the corpus") && page.contains("src/gone.rs"));

    let once = |threads: &str| program.run(&["eval", "q.jsonl", "--threads", threads]).out;
    assert_eq!(once("1"), once("3"), "threads change nothing");
    let status = |floor: &str| program.run(&["eval", "q.jsonl", "--fail-under", floor]).status;
    assert_eq!(
        [status("hit@5=0.6"), status("hit@5=0.7"), status("bm25:mrr=0.7"), status("speed=1")],
        [Some(0), Some(3), Some(3), Some(2)]
    );

    let range = format!("{first}..{second}");
    let rows = program.json(&["eval", "q.jsonl", "--at", &range, "--json"]);
    let hits: Vec<(&str, f64)> = rows
        .iter()
        .map(|row| (row["commit"].as_str().unwrap(), row["metrics"]["hit@5"]["mean"].as_f64().unwrap()))
        .collect();
    assert_eq!(hits, [(first.to_string().as_str(), 1.0 / 3.0), (second.to_string().as_str(), 2.0 / 3.0)]);
    assert_eq!((&rows[0]["moved"], &rows[1]["made_otherwise"]), (&Value::Null, &false.into()));

    std::fs::write(program.folder().join("bad.jsonl"), format!("{}\n{{\"id\":\"x\",\"text\":7}}\n", lines[0])).unwrap();
    program.refuses(&["eval", "bad.jsonl"], &["cannot read bad.jsonl", "line 2", "`text`: expected a text"]);
    program.refuses(&["eval", "q.jsonl", "--at", "nothing"], &["nothing"]);
    program.refuses(&["eval", "q.jsonl", "--with", "a:", "--with", "a:"], &["two configurations are called `a`"]);
}

#[test]
fn grades_are_taken_from_standard_input_and_a_session_goes_on() {
    let (repository, _) = engine();
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let line = r#"{"id":"a","text":"how an entity goes","judgments":[{"grade":1,"path":"none"}]}"#;
    std::fs::write(program.folder().join("q.jsonl"), line).unwrap();
    let judge = |input: &str, out: &str| {
        program.run_fed(&["eval", "judge", "q.jsonl", "--modes", "hybrid", "--depth", "3", "--out", out], input)
    };
    let first = judge("x\nf\n3\nq\n", "one.jsonl");
    assert_eq!(first.status, Some(0), "{}", first.err);
    assert!(first.out.contains("question 1 of 1, hit 1 of") && first.out.contains("1 grade written to one.jsonl"));
    let second = judge("0\n0\n0\n0\n0\n0\n", "one.jsonl");
    assert_eq!(second.status, Some(0), "{}", second.err);
    let grades = std::fs::read_to_string(program.folder().join("one.jsonl")).unwrap();
    let count = grades.lines().count();
    assert!(count >= 2 && grades.lines().next().unwrap().ends_with("\"grade\":3}"), "{grades}");
    let third = judge("", "one.jsonl");
    assert!(third.out.contains("0 grades written") && !third.out.contains("hit 1"), "nothing is asked twice");

    judge(&"0\n".repeat(9), "two.jsonl");
    let kappa = &program.json(&["eval", "kappa", "one.jsonl", "two.jsonl", "--json"])[0];
    assert_eq!(kappa["items"], count);
    assert!((kappa["agreement"].as_f64().unwrap() - (count as f64 - 1.0) / count as f64).abs() < 1e-9);
    let with = program.json(&["eval", "q.jsonl", "--judged", "one.jsonl", "--modes", "hybrid", "--json"]);
    assert_eq!(with[0]["metrics"]["hit@5"]["mean"], 1.0);
    let without = program.json(&["eval", "q.jsonl", "--modes", "hybrid", "--json"]);
    assert_eq!(without[0]["metrics"]["hit@5"]["mean"], 0.0);
}

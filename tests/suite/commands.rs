//! The command line as scripts use it: JSON fields, flags and exit statuses.
//!
//! Whole binaries run against real repositories; their output is compared with that of the git program.

use crate::support::{Program, Repository, Tree, tree};
use serde_json::Value;
use snapshots::CommitId;
use std::collections::BTreeSet;

const LIBRARY: &str =
    "/// Spawns an entity.\npub fn spawn_entity(world: &mut World) -> Entity {\n    world.spawn()\n}\n";
const GUIDE: &str = "# Guide\n\nHow an entity is spawned.\n";

/// Three commits: two files; one changed; one added and one removed.
pub(crate) fn three_commits() -> (Repository, [CommitId; 3]) {
    let repository = Repository::new();
    let first = repository.commit(&tree([("src/lib.rs", LIBRARY), ("docs/guide.md", GUIDE)]));
    let changed = LIBRARY.replace("world.spawn()", "world.spawn_empty()");
    let second = repository.commit(&tree([("src/lib.rs", changed.as_str()), ("docs/guide.md", GUIDE)]));
    let third = repository.commit(&tree([("src/lib.rs", changed.as_str()), ("notes.txt", "entity notes\n")]));
    (repository, [first, second, third])
}

/// Fails unless an object has exactly these fields.
fn fields(value: &Value, expected: &[&str]) {
    let found: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, expected.iter().copied().collect(), "{value}");
}

#[test]
fn track_prints_a_line_an_epoch_and_a_summary() {
    let (repository, commits) = three_commits();
    let program = Program::new();
    let lines = program.json(&["track", repository.name(), "--once", "--json", "--backfill", "all"]);
    let (summary, epochs) = lines.split_last().unwrap();
    assert_eq!(epochs.len(), 3);
    for (number, (epoch, commit)) in epochs.iter().zip(commits).enumerate() {
        fields(
            epoch,
            &[
                "epoch",
                "source",
                "view",
                "commit",
                "parent",
                "time",
                "documents",
                "work",
                "live_entries",
                "digest",
                "ms",
            ],
        );
        assert_eq!(epoch["epoch"], number as u64 + 1);
        assert_eq!(epoch["source"], "engine", "the last part of the path without .git");
        assert_eq!(epoch["view"], "main");
        assert_eq!(epoch["commit"], commit.to_string());
        let parent = number.checked_sub(1).map(|before| commits[before].to_string());
        assert_eq!(epoch["parent"].as_str().map(str::to_owned), parent);
        let seconds: i64 = repository.git_text(&["show", "-s", "--format=%ct", &commit.to_string()]).parse().unwrap();
        assert_eq!(epoch["time"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second(), seconds);
        fields(&epoch["documents"], &["added", "changed", "removed"]);
        fields(&epoch["work"], &["cleaned", "chunked", "embedded", "inserted", "retracted", "cache_hits", "faults"]);
        fields(&epoch["ms"], &["diff", "clean", "chunk", "embed", "apply", "total", "waited"]);
        assert!(epoch["ms"].as_object().unwrap().values().all(|number| number.as_f64().unwrap() >= 0.0));
        assert!(epoch["digest"].as_str().unwrap().len() == 64);
    }
    let documents =
        |epoch: &Value| ["added", "changed", "removed"].map(|key| epoch["documents"][key].as_u64().unwrap());
    assert_eq!(
        [documents(&epochs[0]), documents(&epochs[1]), documents(&epochs[2])],
        [[2, 0, 0], [0, 1, 0], [1, 0, 1]]
    );
    let work = |epoch: &Value, key: &str| epoch["work"][key].as_u64().unwrap();
    assert_eq!([work(&epochs[1], "inserted"), work(&epochs[1], "retracted"), work(&epochs[1], "embedded")], [1, 1, 1]);
    fields(summary, &["summary"]);
    let summary = &summary["summary"];
    fields(summary, &["epochs", "inserted", "retracted", "embedded", "seconds"]);
    assert_eq!(summary["epochs"], 3);
    for key in ["inserted", "retracted", "embedded"] {
        assert_eq!(summary[key], epochs.iter().map(|epoch| work(epoch, key)).sum::<u64>(), "{key}");
    }

    let again = program.json(&["track", repository.name(), "--once", "--json"]);
    assert_eq!(again.len(), 1, "an unchanged head prints no line: {again:?}");
    assert_eq!(again[0]["summary"]["epochs"], 0);
}

#[test]
fn search_answers_with_hits_and_where_they_come_from() {
    let (repository, [first, second, third]) = three_commits();
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json", "--backfill", "2"]);
    let answer = &program.json(&["search", "spawn entity", "--json"])[0];
    fields(
        answer,
        &[
            "query",
            "mode",
            "at",
            "exact",
            "without_vector",
            "unknown_terms",
            "dropped_terms",
            "empty_filters",
            "took_ms",
            "hits",
        ],
    );
    assert_eq!(
        (&answer["query"], &answer["mode"], &answer["exact"]),
        (&"spawn entity".into(), &"hybrid".into(), &true.into())
    );
    let at = &answer["at"][0];
    fields(at, &["source", "view", "commit", "epoch", "lag_ms"]);
    assert_eq!((&at["commit"], &at["view"], &at["lag_ms"]), (&third.to_string().into(), &"main".into(), &0.into()));
    let hits = answer["hits"].as_array().unwrap();
    for (number, hit) in hits.iter().enumerate() {
        fields(
            hit,
            &[
                "rank",
                "score",
                "source",
                "path",
                "lines",
                "kind",
                "language",
                "symbol",
                "labels",
                "introduced_in",
                "points",
                "text",
                "from",
            ],
        );
        assert_eq!(hit["rank"], number as u64 + 1);
    }
    let best = &hits[0];
    assert_eq!(
        (&best["path"], &best["symbol"], &best["kind"]),
        (&"src/lib.rs".into(), &"spawn_entity".into(), &"code".into())
    );
    assert_eq!((&best["language"], &best["lines"]), (&"rust".into(), &serde_json::json!([1, 4])));
    assert_eq!(best["introduced_in"], second.to_string());
    for list in ["bm25", "vector"] {
        fields(&best["from"][list], &["rank", "score"]);
    }
    let old = &program.json(&["search", "spawn entity", "--json", "--at", "main~2", "--mode", "bm25"])[0];
    assert_eq!(old["at"][0]["commit"], first.to_string());
    assert!(old["hits"][0]["text"].as_str().unwrap().contains("world.spawn()"));
    assert_eq!(old["hits"][0]["introduced_in"], first.to_string());
    fields(&old["hits"][0]["from"], &["bm25"]);
    let few = &program.json(&["search", "spawn entity", "--json", "-k", "1"])[0];
    assert_eq!(few["hits"].as_array().unwrap().len(), 1);
    let none = &program.json(&["search", "zyxwv", "--json", "--mode", "bm25"])[0];
    assert_eq!(none["hits"], serde_json::json!([]), "no hit is an answer");
}

#[test]
fn snapshots_dump_and_status_have_the_fields_that_scripts_rely_on() {
    let (repository, commits) = three_commits();
    let program = Program::new();
    let tracked = program.json(&["track", repository.name(), "--once", "--json", "--backfill", "all"]);
    let list = program.json(&["snapshots", "list", "--json"]);
    assert_eq!(list.len(), 3);
    for (snapshot, (epoch, commit)) in list.iter().zip(tracked.iter().zip(commits)) {
        fields(
            snapshot,
            &[
                "commit",
                "source",
                "views",
                "epoch",
                "time",
                "parent",
                "live_entries",
                "inserted",
                "retracted",
                "digest",
                "bytes",
            ],
        );
        assert_eq!(snapshot["commit"], commit.to_string(), "oldest first");
        for key in ["digest", "epoch", "live_entries", "time", "parent", "source"] {
            assert_eq!(snapshot[key], epoch[key], "{key}");
        }
        for key in ["inserted", "retracted"] {
            assert_eq!(snapshot[key], epoch["work"][key], "{key}");
        }
    }
    assert_eq!([&list[0]["views"], &list[2]["views"]], [&serde_json::json!([]), &serde_json::json!(["main"])]);

    let diff = program.json(&["snapshots", "diff", "main~1", "main", "--json"]);
    assert!(diff.iter().all(|line| {
        fields(line, &["source", "view", "op", "path", "kind", "symbol", "text"]);
        line["op"] == "+" || line["op"] == "-"
    }));
    let changed: Vec<(&str, &str)> =
        diff.iter().map(|line| (line["op"].as_str().unwrap(), line["path"].as_str().unwrap())).collect();
    assert_eq!(changed, [("-", "docs/guide.md"), ("+", "notes.txt")]);

    let dump = program.json(&["dump", "--json"]);
    assert_eq!(dump.len() as u64, list[2]["live_entries"].as_u64().unwrap());
    for line in &dump {
        fields(line, &["source", "path", "kind", "symbol", "lines", "text_hash", "vector_hash", "introduced_in"]);
    }
    let paths: Vec<&str> = dump.iter().map(|line| line["path"].as_str().unwrap()).collect();
    assert!(paths.is_sorted());

    let status = &program.json(&["status", "--json"])[0];
    fields(status, &["sources", "entries", "bytes", "work", "tracker"]);
    let source = &status["sources"][0];
    let told = ["skipped_tags", "broken_refs", "watches", "trouble", "left_out", "unreadable", "unreadable_paths"];
    fields(
        source,
        &[&["name", "kind", "views", "documents", "skipped", "without_syntax", "unsure", "faults"][..], &told].concat(),
    );
    assert_eq!((&source["name"], &source["kind"], &source["documents"]), (&"engine".into(), &"git".into(), &2.into()));
    let view = &source["views"][0];
    fields(view, &["name", "commit", "epoch", "behind", "live_entries"]);
    assert_eq!((&view["commit"], &view["behind"]), (&commits[2].to_string().into(), &0.into()));
    repository.commit(&Tree::new());
    let status = &program.json(&["status", "--json"])[0];
    assert_eq!(status["sources"][0]["views"][0]["behind"], 1, "status never calls a view current that is not");
}

#[test]
fn skipped_files_are_counted_by_reason() {
    let repository = Repository::new();
    let mut files = tree([("a.txt", "words\n"), ("a.link", "a.txt")]);
    files.insert(b"program.bin".to_vec(), b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0".to_vec());
    files.insert(b"huge.txt".to_vec(), b"many words\n".repeat(200_000));
    repository.commit(&files);
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json"]);
    let status = &program.json(&["status", "--json"])[0]["sources"][0];
    assert_eq!(status["documents"], 1);
    assert_eq!(status["skipped"], serde_json::json!({"binary": 1, "symlink": 1, "too-large": 1}));
    assert_eq!(status["faults"], serde_json::json!([]));
}

#[test]
fn global_flags_stand_before_or_behind_the_command() {
    let (repository, _) = three_commits();
    let program = Program::new();
    let source = repository.name();
    program.json(&["--json", "--data", "one", "track", source, "--once"]);
    program.json(&["track", source, "--once", "--data", "one", "--json"]);
    let before = program.run(&["--json", "--data", "one", "dump"]);
    let behind = program.run(&["dump", "--data", "one", "--json"]);
    assert_eq!((before.status, &before.out), (Some(0), &behind.out));
    assert_eq!(program.run(&["-q", "--data", "one", "search", "entity"]).status, Some(0));
    assert_eq!(program.run(&["search", "entity", "--data", "one", "-v"]).status, Some(0));
    assert!(!program.store().exists(), "--data moves the store");
    std::fs::write(program.folder().join("other.toml"), format!("[[source]]\npath = \"{source}\"\n")).unwrap();
    let lines = program.json(&["--config", "other.toml", "track", "--once", "--json"]);
    assert_eq!(lines.len(), 2, "the configuration names the source");
}

#[test]
fn wrong_usage_is_two_and_help_is_a_result() {
    let program = Program::new();
    for arguments in
        [&[][..], &["sing"], &["search"], &["search", "x", "-k", "many"], &["track", "--poll", "soon", "."]]
    {
        let run = program.run(arguments);
        assert_eq!((run.status, run.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(!run.err.is_empty(), "{arguments:?}");
    }
    for arguments in [&["--help"][..], &["track", "--help"], &["--version"]] {
        let run = program.run(arguments);
        assert_eq!((run.status, run.err.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(run.out.contains("tidemill"), "{arguments:?}");
    }
}

#[test]
fn a_path_that_is_not_utf8_comes_with_its_bytes() {
    use base64::Engine;
    let repository = Repository::new();
    let odd = b"src/na\xefve\n\x1b[31m.txt";
    repository.commit(&Tree::new());
    repository.commit(&Tree::from([(odd.to_vec(), b"naive words\n".to_vec())]));
    let program = Program::new();
    program.json(&["track", repository.name(), "--once", "--json", "--backfill", "all"]);
    let hit = program.json(&["search", "naive", "--json"])[0]["hits"][0].clone();
    let dump = program.json(&["dump", "--json"]).remove(0);
    let diff = program.json(&["snapshots", "diff", "main~1", "main", "--json"]).remove(0);
    for value in [hit, dump, diff] {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value["path_bytes"].as_str().unwrap()).unwrap();
        assert_eq!(bytes, odd);
        assert_eq!(value["path"], String::from_utf8_lossy(odd).into_owned());
    }
    let shown = program.run(&["search", "naive"]);
    assert_eq!(shown.status, Some(0));
    assert!(!shown.out.contains('\x1b'), "a file name cannot drive the terminal");
}

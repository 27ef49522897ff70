//! The command line as scripts see it: fields of JSON, exit statuses, one-line errors, signals.
//!
//! Whole binaries run against real repositories; what they say is compared with what the git program says.

use crate::support::{Live, Program, Repository, Tree, tree};
use serde_json::Value;
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const LIBRARY: &str =
    "/// Spawns an entity.\npub fn spawn_entity(world: &mut World) -> Entity {\n    world.spawn()\n}\n";
const GUIDE: &str = "# Guide\n\nHow an entity is spawned.\n";

/// Three commits: two files, one changed, one more and one gone.
fn three_commits() -> (Repository, [CommitId; 3]) {
    let repository = Repository::new();
    let first = repository.commit(&tree([("src/lib.rs", LIBRARY), ("docs/guide.md", GUIDE)]));
    let changed = LIBRARY.replace("world.spawn()", "world.spawn_empty()");
    let second = repository.commit(&tree([("src/lib.rs", changed.as_str()), ("docs/guide.md", GUIDE)]));
    let third = repository.commit(&tree([("src/lib.rs", changed.as_str()), ("notes.txt", "entity notes\n")]));
    (repository, [first, second, third])
}

fn path(repository: &Repository) -> &str {
    repository.path().to_str().unwrap()
}

/// Fails unless an object has exactly these fields.
fn fields(value: &Value, expected: &[&str]) {
    let found: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, expected.iter().copied().collect(), "{value}");
}

fn git_text(repository: &Repository, arguments: &[&str]) -> String {
    String::from_utf8(repository.git(arguments)).unwrap().trim().to_owned()
}

#[test]
fn track_prints_a_line_an_epoch_and_a_summary() {
    let (repository, commits) = three_commits();
    let program = Program::new();
    let lines = program.json(&["track", path(&repository), "--once", "--json", "--backfill", "all"]);
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
        let seconds: i64 = git_text(&repository, &["show", "-s", "--format=%ct", &commit.to_string()]).parse().unwrap();
        assert_eq!(epoch["time"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second(), seconds);
        fields(&epoch["documents"], &["added", "changed", "removed"]);
        fields(&epoch["work"], &["cleaned", "chunked", "embedded", "inserted", "retracted", "cache_hits", "faults"]);
        fields(&epoch["ms"], &["diff", "clean", "chunk", "embed", "apply", "total"]);
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

    let again = program.json(&["track", path(&repository), "--once", "--json"]);
    assert_eq!(again.len(), 1, "an unchanged head prints no line: {again:?}");
    assert_eq!(again[0]["summary"]["epochs"], 0);
}

#[test]
fn search_answers_with_hits_and_where_they_come_from() {
    let (repository, [first, second, third]) = three_commits();
    let program = Program::new();
    program.json(&["track", path(&repository), "--once", "--json", "--backfill", "2"]);
    let answer = &program.json(&["search", "spawn entity", "--json"])[0];
    fields(answer, &["query", "mode", "at", "exact", "took_ms", "hits"]);
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
    let tracked = program.json(&["track", path(&repository), "--once", "--json", "--backfill", "all"]);
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
        fields(line, &["op", "path", "kind", "symbol", "text"]);
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
    fields(status, &["sources", "entries", "bytes", "work"]);
    let source = &status["sources"][0];
    fields(source, &["name", "kind", "views", "documents", "skipped", "faults"]);
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
    program.json(&["track", path(&repository), "--once", "--json"]);
    let status = &program.json(&["status", "--json"])[0]["sources"][0];
    assert_eq!(status["documents"], 1);
    assert_eq!(status["skipped"], serde_json::json!({"binary": 1, "symlink": 1, "too-large": 1}));
    assert_eq!(status["faults"], serde_json::json!([]));
}

#[test]
fn global_flags_stand_before_or_behind_the_command() {
    let (repository, _) = three_commits();
    let program = Program::new();
    let source = path(&repository);
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
    once(path(&unborn), &[], &["no commit", "main", "--ref"]);
    once(path(&repository), &["--ref", "nothing/*"], &["matches", "--ref"]);
    once(path(&repository), &["--ref", "[broken"], &["pattern", "[broken"]);
    once(path(&repository), &["--backfill", "nosuchrevision"], &["nosuchrevision"]);
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
    program.json(&["track", path(&repository), "--once", "--json"]);
    let before = (program.run(&["dump", "--json"]).out, program.run(&["snapshots", "--json"]).out);
    program.refuses(&["search", ""], &["empty", "words"]);
    program.refuses(&["search", "  \t "], &["empty"]);
    program.refuses(&["search", "x", "-k", "0"], &["-k", "at least 1"]);
    program.refuses(&["search", "x", "--at", "nosuchrevision"], &["nosuchrevision", "snapshots list"]);
    program.refuses(&["search", "x", "--view", "nosuchview"], &["nosuchview", "main"]);
    program.refuses(&["search", "x", "--source", "nosuchsource"], &["nosuchsource", "engine"]);
    program.refuses(&["search", "x", "--where", "nonsense"], &["nonsense"]);
    program.refuses(&["snapshots", "diff", "main", "nosuchrevision"], &["nosuchrevision"]);
    program.refuses(&["dump", "--at", "1999-01-01T00:00"], &["1999"]);
    program.refuses(&["track", path(&repository), "--once", "--ref", "nosuch*"], &["--ref"]);
    // A commit without a snapshot names the nearest one that has it, and the backfill that would make it.
    let (first, third) = (first.to_string(), third.to_string());
    for rev in [first.as_str(), "main~2"] {
        program.refuses(&["search", "x", "--at", rev], &[&first, "no snapshot", &third, "--backfill 2"]);
    }
    program.json(&["track", path(&repository), "--once", "--json"]);
    assert_eq!((program.run(&["dump", "--json"]).out, program.run(&["snapshots", "--json"]).out), before);
    // And what the hint says works.
    program.json(&["track", path(&repository), "--once", "--json", "--backfill", "2"]);
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
    program.json(&["track", path(&repository), "--once", "--json", "--ref", "*"]);
    let (left, right) = (left.to_string(), right.to_string());
    program.refuses(&["search", "words", "--at", &left[..4]], &["ambiguous", &left, &right]);
    assert_eq!(program.json(&["search", "words", "--json", "--at", &left])[0]["at"][0]["commit"], left);
}

#[test]
fn a_store_of_another_format_is_refused_by_all_and_left_alone() {
    let (repository, _) = three_commits();
    let program = Program::new();
    program.json(&["track", path(&repository), "--once", "--json"]);
    let format = program.store().join("FORMAT");
    let known = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, "tidemill store format 999\n").unwrap();
    for command in [&["search", "x"][..], &["status"], &["dump"], &["track", path(&repository), "--once"]] {
        program.refuses(command, &["format 999", "format 1"]);
    }
    std::fs::write(&format, known).unwrap();
    assert_eq!(program.json(&["track", path(&repository), "--once", "--json"]).len(), 1, "nothing was lost");
}

#[test]
fn a_second_tracker_is_refused_and_told_who_holds_the_lock_while_readers_are_welcome() {
    let (repository, [.., third]) = three_commits();
    let program = Program::new();
    let mut live = program.start(&["track", path(&repository), "--json"]);
    assert_eq!(live.line()["commit"], third.to_string());
    let holder = format!("process {}", live.id());
    program.refuses(&["track", path(&repository), "--once"], &[&holder, "--data"]);
    assert_eq!(program.json(&["search", "entity", "--json"])[0]["at"][0]["commit"], third.to_string());
    assert_eq!(program.json(&["status", "--json"])[0]["sources"][0]["views"][0]["behind"], 0);
    live.signal("TERM");
    assert_eq!(live.end(), Some(0));
    assert_eq!(program.json(&["track", path(&repository), "--once", "--json"]).len(), 1, "the lock is free again");
}

#[test]
fn a_path_that_is_not_utf8_comes_with_its_bytes() {
    use base64::Engine;
    let repository = Repository::new();
    let odd = b"src/na\xefve\n\x1b[31m.txt";
    repository.commit(&Tree::new());
    repository.commit(&Tree::from([(odd.to_vec(), b"naive words\n".to_vec())]));
    let program = Program::new();
    program.json(&["track", path(&repository), "--once", "--json", "--backfill", "all"]);
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
    let mut live = program.start(&["track", path(&repository), "--json", "--poll", "200ms"]);
    live.line();
    for number in 0..3 {
        let text = format!("entity number {number}\n");
        let commit = repository.commit(&tree([("notes.txt", text.as_str())]));
        let line = live.line();
        assert_eq!(line["commit"], commit.to_string());
        // The line is printed when the epoch is published: a question asked now is answered from it.
        let answer = program.json(&["search", "entity", "--json", "--mode", "bm25"]).remove(0);
        assert_eq!(answer["at"][0]["commit"], commit.to_string());
        assert_eq!(answer["hits"][0]["text"].as_str().unwrap().trim(), text.trim());
    }
    for signal in ["INT", "TERM"] {
        live.signal(signal);
        assert_eq!(live.end(), Some(0), "{signal}");
        live = program.start(&["track", path(&repository), "--json"]);
        assert!(live.line_within(Duration::from_millis(300)).is_none(), "an unchanged head prints no line");
    }
}

#[test]
fn an_interrupted_backfill_loses_nothing_that_was_published_and_goes_on() {
    let (repository, commits) = long_history(80);
    let program = Program::new();
    let mut live = program.start(&["track", path(&repository), "--once", "--json", "--backfill", "all"]);
    let mut printed = vec![live.line()];
    live.signal("TERM");
    while let Some(line) = live.line_within(Duration::from_secs(5)) {
        printed.push(line);
    }
    assert_eq!(live.end(), Some(0));
    let printed: Vec<&Value> = printed.iter().filter(|line| line.get("commit").is_some()).collect();
    let stored = program.json(&["snapshots", "--json"]);
    assert_eq!(stored.len(), printed.len(), "what was published was printed, and nothing else");
    program.json(&["track", path(&repository), "--once", "--json", "--backfill", "all"]);
    assert_eq!(digests(&program).len(), commits.len());
}

#[test]
fn a_killed_tracker_heals_and_its_snapshots_equal_those_of_a_fresh_store() {
    let (repository, commits) = long_history(60);
    let fresh = Program::new();
    fresh.json(&["track", path(&repository), "--once", "--json", "--backfill", "all"]);
    let expected = digests(&fresh);
    assert_eq!(expected.len(), commits.len());
    let program = Program::new();
    let track = ["track", path(&repository), "--once", "--json", "--backfill", "all"];
    for wait in [3, 17, 31, 60] {
        let mut live = program.start(&track);
        // Some milliseconds into the work, wherever that is: during the start, the load or a publish.
        let until = std::time::Instant::now() + Duration::from_millis(wait);
        let mut printed = Vec::new();
        while std::time::Instant::now() < until {
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

/// Returns whether every hit's text stands in its file at the commit that answered.
fn hits_are_true(repository: &Repository, answer: &Value) {
    let commit = answer["at"][0]["commit"].as_str().unwrap();
    for hit in answer["hits"].as_array().unwrap() {
        let path = hit["path"].as_str().unwrap();
        let file = git_text(repository, &["show", &format!("{commit}:{path}")]);
        let text = hit["text"].as_str().unwrap().trim();
        assert!(file.contains(text), "{path} at {commit} does not hold {text:?}");
    }
}

#[test]
fn questions_asked_while_commits_are_published_are_answered_from_one_version() {
    let (repository, commits) = long_history(40);
    let program = Program::new();
    let live: Live = program.start(&["track", path(&repository), "--json", "--poll", "100ms"]);
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

//! The meaning of a revision, a time, a source and a view, in every command: one thing, or an error that lists several.
//!
//! Whole binaries run against real repositories; their answers are compared with the git program's.

use crate::support::{Program, Repository, tree};
use snapshots::{Archive, CommitId, ViewId};
use std::path::Path;
use std::process::Command;

/// Commits a file with this word, once for each word.
fn words(repository: &Repository, words: &[&str]) -> Vec<CommitId> {
    words.iter().map(|word| repository.commit(&tree([("a.md", format!("{word} weir\n").as_str())]))).collect()
}

/// Returns the commit that answers a search as of a revision.
fn at(program: &Program, rev: &str, more: &[&str]) -> String {
    let answer = program.json(&[&["search", "weir", "--json", "--at", rev], more].concat()).remove(0);
    answer["at"][0]["commit"].as_str().unwrap().to_owned()
}

fn tracked(repository: &Repository, more: &[&str]) -> Program {
    let program = Program::new();
    program.json(&[&["track", repository.name(), "--once", "--json"], more].concat());
    program
}

#[test]
fn a_name_of_the_repository_comes_before_a_time_and_never_hides_a_hash() {
    let repository = Repository::new();
    let [first, second, third] = words(&repository, &["one", "two", "three"])[..] else { panic!() };
    let date = "2023-11-15";
    repository.point(&format!("refs/tags/{date}"), first);
    let (seven, four) = (&first.to_string()[..7], &first.to_string()[..4]);
    repository.point(&format!("refs/heads/{seven}"), third);
    repository.point(&format!("refs/heads/{four}"), second);
    let program = tracked(&repository, &["--backfill", "all"]);
    assert_eq!(at(&program, date, &[]), first.to_string());
    assert_eq!(at(&program, &format!("{date}T00:00"), &[]), third.to_string(), "a time with its hour is one");
    let both = [format!("refs/heads/{seven} ({third})"), first.to_string(), "ambiguous".to_owned()];
    let both: Vec<&str> = both.iter().map(String::as_str).collect();
    program.refuses(&["search", "weir", "--at", seven], &both);
    program.refuses(&["search", "weir", "--at", &format!("{seven}~1")], &["ambiguous"]);
    assert_eq!(at(&program, &format!("heads/{seven}"), &[]), third.to_string());
    assert_eq!(at(&program, &first.to_string(), &[]), first.to_string());
    assert_eq!(at(&program, four, &[]), second.to_string(), "four digits are no abbreviation that git would write");
    assert_eq!(at(&program, &first.to_string()[..8], &[]), first.to_string());
}

#[test]
fn a_branch_and_a_tag_of_one_name_are_refused_with_both_also_when_the_repository_is_gone() {
    let repository = Repository::new();
    let [first, second] = words(&repository, &["one", "two"])[..] else { panic!() };
    repository.point("refs/tags/both", first);
    repository.point("refs/heads/both", second);
    let program = tracked(&repository, &["--backfill", "all", "--ref", "*"]);
    let said = |gone: bool| {
        let (tag, branch) = (format!("tags/both ({first})"), format!("heads/both ({second})"));
        program.refuses(&["search", "weir", "--at", "both"], &["ambiguous", &tag, &branch]);
        assert_eq!(at(&program, "tags/both", &[]), first.to_string(), "{gone}");
        assert_eq!(at(&program, "heads/both", &[]), second.to_string(), "{gone}");
        assert_eq!(at(&program, "heads/both~1", &[]), first.to_string(), "{gone}");
        assert_eq!(at(&program, "main~1", &[]), first.to_string(), "{gone}");
    };
    said(false);
    std::fs::rename(repository.path(), repository.path().with_extension("gone")).unwrap();
    said(true);
    let error = program.refuses(&["search", "weir", "--at", "HEAD^"], &["HEAD^", "engine"]);
    assert!(error.contains("repository cannot be asked"), "{error}");
}

#[test]
fn what_counts_from_a_view_counts_from_where_it_stands() {
    let repository = Repository::new();
    let commits = words(&repository, &["one", "two", "three"]);
    let program = tracked(&repository, &["--backfill", "all"]);
    for (rev, back) in [("@", 0), ("HEAD^", 1), ("HEAD~2", 2), ("main^^", 2), ("main^{commit}", 0), ("main~1^{}", 1)] {
        assert_eq!(at(&program, rev, &[]), commits[2 - back].to_string(), "{rev}");
    }
    words(&repository, &["four"]);
    assert_eq!(at(&program, "main", &[]), commits[2].to_string(), "the store has not taken the new commit");
    assert_eq!(at(&program, "main~1", &[]), commits[1].to_string());
    for rev in ["main~1..main", "^main", "main^!"] {
        program.refuses(&["search", "weir", "--at", rev], &["names several commits", rev]);
    }
    program.refuses(&["search", "weir", "--at", "main:a.md"], &["cannot find the revision", "main:a.md"]);
}

/// Runs the hint of a refusal in a shell, and returns the commit that then answers.
fn hinted(program: &Program, rev: &str, more: &[&str]) -> String {
    let said = program.refuses(&[&["search", "weir", "--at", rev], more].concat(), &["no snapshot"]);
    let path = said.trim().rsplit("where PATH is ").next().unwrap();
    let commands: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
    assert!(!commands.is_empty(), "{said}");
    for command in commands {
        let command = command.replace(" PATH ", &format!(" {path} ")).replace("track PATH", &format!("track {path}"));
        let (command, once) = match command.strip_prefix("tidemill ") {
            Some(rest) => (format!("{} {rest}", env!("CARGO_BIN_EXE_tidemill")), " --once"),
            None => (command, ""),
        };
        let output = Command::new("bash")
            .args(["-c", &format!("{command}{once}")])
            .current_dir(program.folder())
            .env_remove("TIDEMILL_DATA")
            .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    at(program, rev, more)
}

#[test]
fn the_hint_for_a_commit_without_a_snapshot_is_a_command_that_makes_it() {
    let repository = Repository::new();
    let main = words(&repository, &["one", "two", "three", "four"]);
    let text = |word: &str| tree([("a.md", format!("{word} weir\n").as_str())]);
    let fix = repository.write(&[main[1]], &text("fix"));
    let release = repository.write(&[fix], &text("release"));
    repository.point("refs/heads/release/1", release);
    repository.point("refs/tags/v1", release);
    let lost = repository.write(&[main[1]], &text("lost"));
    let program = tracked(&repository, &[]);
    assert_eq!(hinted(&program, "v1", &[]), release.to_string(), "a tag off the tracked branch");
    assert_eq!(hinted(&program, &fix.to_string(), &[]), fix.to_string(), "on the line of another branch");
    assert_eq!(hinted(&program, "main~2", &[]), main[1].to_string(), "before the tracked branch's head");
    assert_eq!(hinted(&program, &lost.to_string(), &[]), lost.to_string(), "on no ref's line");
    words(&repository, &["five"]);
    assert_eq!(hinted(&program, &main[0].to_string(), &[]), main[0].to_string(), "while the branch has moved on");
}

#[test]
fn the_hint_names_the_source_and_the_store_as_they_are() {
    let repository = Repository::new();
    let commits = words(&repository, &["one", "two"]);
    let odd = repository.path().with_file_name("it's an engine");
    std::fs::rename(repository.path(), &odd).unwrap();
    let program = Program::new();
    let store = ["--data", "a store"];
    let track = ["track", odd.to_str().unwrap(), "--once", "--json", "--name", "mill"];
    program.json(&[&track[..], &store].concat());
    assert_eq!(hinted(&program, "main~1", &store), commits[0].to_string());
    let list = program.json(&["snapshots", "list", "--json", "--data", "a store"]);
    assert!(list.len() == 2 && list.iter().all(|snapshot| snapshot["source"] == "mill"), "{list:?}");
}

/// Two sources of two commits each.
fn two_sources() -> (Program, [Repository; 2]) {
    let repositories = [Repository::new(), Repository::new()];
    let program = Program::new();
    for (repository, name) in repositories.iter().zip(["one", "two"]) {
        words(repository, &[&format!("{name} old"), &format!("{name} new")]);
        program.json(&["track", repository.name(), "--name", name, "--once", "--json", "--backfill", "all"]);
    }
    (program, repositories)
}

#[test]
fn a_command_that_needs_one_source_asks_which_and_lists_them() {
    let (program, repositories) = two_sources();
    let asks = ["several sources have main~1: one, two", "--source"];
    program.refuses(&["snapshots", "diff", "main~1", "main"], &asks);
    program.refuses(&["snapshots", "show", "main~1"], &asks);
    program.refuses(&["snapshots", "export", "main~1", "copy"], &asks);
    program.refuses(&["bisect", "old", "--expect", "a.md", "--good", "main~1", "--bad", "main"], &asks);
    assert!(!program.folder().join("copy").exists());
    for name in ["one", "two"] {
        let of = ["--source", name];
        let diff = program.json(&[&["snapshots", "diff", "main~1", "main", "--json"][..], &of].concat());
        assert!(diff.iter().all(|line| line["source"] == name && line["view"] == "main"), "{diff:?}");
        assert!(diff.iter().all(|line| line["text"].as_str().unwrap().contains(name)), "{diff:?}");
        let show = program.json(&[&["snapshots", "show", "main", "--json"][..], &of].concat());
        assert_eq!(show[0]["source"], name);
        let dump = program.json(&[&["dump", "--json"][..], &of].concat());
        assert!(dump.iter().all(|line| line["source"] == name));
        let list = program.json(&[&["snapshots", "list", "--json"][..], &of].concat());
        assert!(list.len() == 2 && list.iter().all(|line| line["source"] == name));
        let folder = format!("copy-{name}");
        let export = program.json(&[&["snapshots", "export", "main~1", &folder, "--json"][..], &of].concat());
        assert_eq!(export[0]["source"], name);
        let explained = program.json(&[&["explain", "a.md", "--json"][..], &of].concat());
        assert_eq!((explained.len(), &explained[0]["source"]), (1, &name.into()));
        let args =
            ["bisect", "old", "--expect", "a.md", "--good", "main~1", "--bad", "main", "--json", "--mode", "bm25"];
        let bisected = program.json(&[&args[..], &of].concat());
        assert_eq!((&bisected[0]["source"], &bisected[0]["view"]), (&name.into(), &"main".into()));
        assert_eq!(program.run(&[&["snapshots", "verify"][..], &of].concat()).status, Some(0));
        let trace = format!("{name}.trace");
        program.json(&[&["record", &trace, "--from", "main~1", "--view", "main", "--json"][..], &of].concat());
        program.refuses(&[&["search", "weir", "--view", "nothing"][..], &of].concat(), &["no view `nothing`", "main"]);
    }
    // If all can answer, all do.
    assert_eq!(program.json(&["search", "weir", "--json"])[0]["at"].as_array().unwrap().len(), 2);
    assert_eq!(program.json(&["explain", "a.md", "--json"]).len(), 2);
    assert_eq!(program.json(&["snapshots", "list", "--json"]).len(), 4);
    // A revision of one source selects that source.
    let first = repositories[0].git_text(&["rev-parse", "main~1"]);
    let diff = program.json(&["snapshots", "diff", &first, "main", "--json"]);
    assert!(!diff.is_empty() && diff.iter().all(|line| line["source"] == "one"), "{diff:?}");
    program.refuses(&["snapshots", "show", "main", "--source", "three"], &["no source `three`", "one, two"]);
    program.refuses(&["search", "weir", "--at", "nothing"], &["`nothing`", "one, two"]);
}

#[test]
fn a_view_lists_the_snapshots_of_its_line() {
    let repository = Repository::new();
    let main = words(&repository, &["one", "two", "three"]);
    let side = repository.write(&[main[0]], &tree([("a.md", "side weir\n")]));
    repository.point("refs/heads/side", side);
    let program = tracked(&repository, &["--backfill", "all", "--ref", "*"]);
    let commits = |more: &[&str]| -> Vec<String> {
        let list = program.json(&[&["snapshots", "list", "--json"], more].concat());
        list.iter().map(|line| line["commit"].as_str().unwrap().to_owned()).collect()
    };
    let hex = |commits: &[CommitId]| commits.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(commits(&["--view", "main"]), hex(&main));
    assert_eq!(commits(&["--view", "side"]), hex(&[main[0], side]));
    assert_eq!(commits(&[]).len(), 4);
    for before in [&["snapshots", "--view", "side", "--json"][..], &["snapshots", "--view", "side", "list", "--json"]] {
        assert_eq!(program.json(before).len(), 2, "{before:?}");
    }
    program.refuses(&["snapshots", "list", "--view", "nothing"], &["no view `nothing`", "main, side"]);
}

/// Tracks a folder in which a file holds each of these words, one after the other.
fn saved(program: &Program, words: &[&str], more: &[&str]) {
    let folder = program.folder().join("notes");
    std::fs::create_dir_all(&folder).unwrap();
    for word in words {
        std::fs::write(folder.join("a.md"), format!("{word} weir\n")).unwrap();
        let lines = program.json(&[more, &["track", "dir:notes", "--once", "--json"]].concat());
        assert!(lines.len() > 1, "{word} is a new state: {lines:?}");
    }
}

/// Returns the milliseconds at which the view of a store's one directory moved.
fn moves(store: &Path) -> Vec<i64> {
    let archive = Archive::open_reader(&store.join("versions")).unwrap();
    archive.moves(ViewId::new(0)).iter().map(|moved| moved.time.unwrap()).collect()
}

fn text_at(program: &Program, milliseconds: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(milliseconds).unwrap().to_string();
    let answer = program.json(&["search", "weir", "--mode", "bm25", "--json", "--at", &time]).remove(0);
    answer["hits"][0]["text"].as_str().unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn as_of_a_time_a_directory_answers_with_what_it_held_then() {
    let program = Program::new();
    saved(&program, &["alpha", "beta", "alpha", "gamma"], &[]);
    let times = moves(&program.store());
    assert!(times.len() == 4 && times.is_sorted());
    for (time, held) in times.iter().zip(["alpha", "beta", "alpha", "gamma"]) {
        assert_eq!(text_at(&program, *time), held);
    }
    assert_eq!(text_at(&program, times[2] - 1), "beta", "until it came back");
    assert_eq!(text_at(&program, times[3] + 3_600_000), "gamma");
    program.refuses(&["search", "weir", "--at", "2000-01-01"], &["no snapshot of notes is as old", "2000-01-01"]);
    program.refuses(&["search", "weir", "--at", ".~1"], &["a directory, which has hashes, times and its view"]);
}

#[test]
fn as_of_a_time_ends_where_states_came_back_after_a_change_of_rules() {
    let program = Program::new();
    saved(&program, &["alpha", "beta"], &[]);
    let rules = "[[rule]]\nname=\"m\"\nmatch=[\"**/*.md\"]\nlike=\"markdown\"\nlabels={v=\"1\"}\n";
    std::fs::write(program.folder().join("rules.toml"), rules).unwrap();
    std::fs::write(program.folder().join("t.toml"), "rules=\"rules.toml\"\n").unwrap();
    saved(&program, &["alpha", "beta", "alpha"], &["--config", "t.toml"]);
    program.refuses(&["search", "weir", "--at", "2000-01-01"], &["no snapshot of notes is as old"]);
    let times = moves(&program.store());
    assert_eq!(text_at(&program, times[1]), "beta");
    assert_eq!(text_at(&program, *times.last().unwrap()), "alpha");
    assert_eq!(program.run(&["snapshots", "list"]).status, Some(0));
}

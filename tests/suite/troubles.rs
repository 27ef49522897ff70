//! Sources fail independently: the trouble of one is logged once, shown by `status`, tried again, and never affects another.

use crate::commands::three_commits;
use crate::support::{Program, Repository, Tree, tree};
use serde_json::Value;
use snapshots::CommitId;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn wait(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    started.elapsed()
}

fn status(program: &Program) -> Value {
    let run = program.run(&["status", "--json"]);
    serde_json::from_str(&run.out).unwrap_or_default()
}

/// Returns a source's part of `status`.
fn source(program: &Program, name: &str) -> Value {
    let status = status(program);
    let found = status["sources"].as_array().into_iter().flatten().find(|source| source["name"] == name);
    found.cloned().unwrap_or_default()
}

fn hits(program: &Program, word: &str) -> Vec<String> {
    let run = program.run(&["search", word, "--json", "--mode", "bm25"]);
    let answer: Value = serde_json::from_str(&run.out).unwrap_or_default();
    let hits = answer["hits"].as_array().into_iter().flatten();
    hits.map(|hit| hit["path"].as_str().unwrap().to_owned()).collect()
}

fn warnings(log: &Path) -> Vec<String> {
    std::fs::read_to_string(log).unwrap().lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect()
}

/// Writes settings that track these sources, by name and path.
fn settings(program: &Program, sources: &[(&str, &str)]) {
    let source =
        |(name, path): &(&str, &str)| format!("[[source]]\nname = \"{name}\"\npath = \"{path}\"\npoll_seconds = 0.2\n");
    let text: String = sources.iter().map(source).collect();
    std::fs::write(program.folder().join("tidemill.toml"), text).unwrap();
}

/// Writes ten-way trees, nine deep, over one file, and commits the outermost on top of `parents`.
fn bomb(repository: &Repository, parents: &[CommitId]) -> CommitId {
    let git = git2::Repository::open(repository.path()).unwrap();
    let level = |id: git2::Oid, mode: i32| {
        let mut tree = git.treebuilder(None).unwrap();
        for name in b'0'..=b'9' {
            tree.insert(&[name][..], id, mode).unwrap();
        }
        tree.write().unwrap()
    };
    let blob = git.blob(b"x").unwrap();
    let top = (0..8).fold(level(blob, 0o100_644), |tree, _| level(tree, 0o040_000));
    commit_of(&git, top, parents)
}

fn commit_of(git: &git2::Repository, tree: git2::Oid, parents: &[CommitId]) -> CommitId {
    let parents: String = parents.iter().map(|parent| format!("parent {parent}\n")).collect();
    let text = format!("tree {tree}\n{parents}author A <a> 1700009000 +0000\ncommitter A <a> 1700009000 +0000\n\nx\n");
    let id = git.odb().unwrap().write(git2::ObjectType::Commit, text.as_bytes()).unwrap();
    id.to_string().parse().unwrap()
}

/// Runs `track --once`; returns the exit status, the commits of its lines, and the lines on standard error.
fn once(program: &Program, arguments: &[&str]) -> (Option<i32>, Vec<String>, Vec<String>) {
    let run = program.run(&[&["track", "--once", "--json"], arguments].concat());
    let lines = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let commits = lines.filter_map(|line| line["commit"].as_str().map(str::to_owned)).collect();
    (run.status, commits, run.err.lines().map(str::to_owned).collect())
}

#[test]
fn a_source_that_is_missing_empty_or_damaged_leaves_the_others_alone() {
    let (repository, [.., third]) = three_commits();
    let (unborn, damaged) = (Repository::new(), Repository::new());
    damaged.commit(&tree([("a.txt", "damaged words\n")]));
    std::fs::write(damaged.path().join("HEAD"), "nonsense\n").unwrap();
    for broken in ["nowhere", "dir:nowhere", unborn.name(), damaged.name()] {
        for sources in
            [[("broken", broken), ("whole", repository.name())], [("whole", repository.name()), ("broken", broken)]]
        {
            let program = Program::new();
            settings(&program, &sources);
            let (code, commits, errors) = once(&program, &[]);
            assert_eq!((code, commits), (Some(3), vec![third.to_string()]), "{broken}: {errors:?}");
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(errors[0].contains("broken is left out: "), "{errors:?}");
            let shown = source(&program, "broken");
            assert!(shown["trouble"]["what"].as_str().is_some_and(|what| !what.is_empty()), "{broken}: {shown}");
            assert_eq!(hits(&program, "notes"), ["notes.txt"]);
        }
    }
    // Alone, and new, it is a mistake.
    let program = Program::new();
    settings(&program, &[("broken", "nowhere"), ("unborn", unborn.name())]);
    program.refuses(&["track", "--once"], &["nowhere"]);
    assert!(!program.store().exists());
}

#[test]
fn a_bomb_and_a_missing_tree_are_left_out_and_the_rest_of_their_repository_goes_on() {
    let (repository, [.., third]) = three_commits();
    repository.point("refs/heads/bomb", bomb(&repository, &[]));
    let git = git2::Repository::open(repository.path()).unwrap();
    let treeless = commit_of(&git, git2::Oid::from_str(&"7".repeat(40)).unwrap(), &[]);
    std::fs::write(repository.path().join("refs/heads/treeless"), format!("{treeless}\n")).unwrap();
    let program = Program::new();
    let track = [repository.name(), "--ref", "*"];
    let started = Instant::now();
    let (code, commits, errors) = once(&program, &track);
    assert_eq!((code, commits), (Some(3), vec![third.to_string()]), "{errors:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
    let left_out = |program: &Program| {
        let shown = source(program, "engine");
        let left_out = shown["left_out"].as_array().unwrap().clone();
        let mut views: Vec<_> = left_out.iter().map(|left_out| left_out["view"].as_str().unwrap().to_owned()).collect();
        views.sort_unstable();
        views
    };
    assert_eq!(left_out(&program), ["bomb", "treeless"], "{errors:?}");

    // In the middle of a line it is skipped, and the next commit is compared with the last indexed one.
    let middle = bomb(&repository, &[third]);
    let files: Tree = tree([("notes.txt", "words behind the bomb\n"), ("b.txt", "more\n")]);
    let last = repository.write(&[middle], &files);
    repository.point("refs/heads/main", last);
    let (code, commits, errors) = once(&program, &track);
    assert_eq!((code, commits), (Some(3), vec![last.to_string()]), "{errors:?}");
    assert_eq!(hits(&program, "behind"), ["notes.txt"]);
    let fresh = Program::new();
    assert_eq!(once(&fresh, &[repository.name()]).0, Some(0));
    assert_eq!(
        program.run(&["dump", "--json", "--at", "main"]).out.lines().count(),
        fresh.run(&["dump", "--json"]).out.lines().count()
    );
    let digest = |program: &Program| {
        let lines = program.json(&["snapshots", "--json"]);
        lines.into_iter().find(|line| line["commit"] == last.to_string()).map(|line| line["digest"].clone())
    };
    assert_eq!(digest(&program), digest(&fresh));

    // A head that moves away from it is indexed.
    repository.point("refs/heads/bomb", third);
    repository.point("refs/heads/treeless", third);
    let (code, _, errors) = once(&program, &track);
    assert_eq!((code, left_out(&program).len()), (Some(0), 0), "{errors:?}");
}

/// Returns the views and commits that `status` says are left out of a source.
fn left_out(program: &Program, name: &str) -> Vec<(String, Option<String>)> {
    let shown = source(program, name);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let left_out = shown["left_out"].as_array().into_iter().flatten();
    left_out.map(|one| (text(&one["view"]).unwrap(), text(&one["commit"]))).collect()
}

#[test]
fn a_ref_whose_commit_git_refuses_is_left_out_with_its_reason() {
    let (repository, [.., third]) = three_commits();
    let git = git2::Repository::open(repository.path()).unwrap();
    // No tree: git itself says `bogus commit object`.
    let text = b"author A <a> 1700009000 +0000\ncommitter A <a> 1700009000 +0000\n\nx\n";
    let refused = git.odb().unwrap().write(git2::ObjectType::Commit, text).unwrap();
    for (reference, track) in [("refs/heads/refused", &["--ref", "*"][..]), ("refs/heads/main", &[][..])] {
        std::fs::write(repository.path().join(reference), format!("{refused}\n")).unwrap();
        let program = Program::new();
        let (other, _) = three_commits();
        settings(&program, &[("other", other.name())]);
        assert_eq!(once(&program, &[]).0, Some(0));
        let (code, commits, errors) = once(&program, &[&[repository.name(), "--name", "engine"], track].concat());
        let expected = if track.is_empty() { vec![] } else { vec![third.to_string()] };
        assert_eq!((code, commits), (Some(3), expected), "{errors:?}");
        assert!(errors[0].contains("refused") || errors[0].contains("main"), "{errors:?}");
        assert!(errors[0].contains("cannot read commit"), "{errors:?}");
        assert_eq!(left_out(&program, "engine"), [(reference.to_owned(), None)], "{}", status(&program));
        assert!(program.run(&["status"]).out.contains("cannot read commit"));
        repository.point(reference, third);
    }
    // As a parent it hides what is behind it: the commits since the last that was taken cannot be named.
    let program = Program::new();
    assert_eq!(once(&program, &[repository.name()]).0, Some(0));
    let tree_id = git.find_commit(git2::Oid::from_bytes(third.as_bytes()).unwrap()).unwrap().tree_id();
    let behind = commit_of(&git, tree_id, &[refused.to_string().parse().unwrap()]);
    repository.point("refs/heads/main", behind);
    let (code, commits, errors) = once(&program, &[repository.name()]);
    assert_eq!((code, commits), (Some(3), vec![behind.to_string()]), "{errors:?}");
    assert!(errors[0].contains("only its head is taken"), "{errors:?}");
    assert_eq!(once(&program, &[repository.name()]).0, Some(0), "it is where it should be");
}

#[test]
fn a_commit_leaves_status_when_its_view_moves_on_or_it_is_mended() {
    let (repository, [.., third]) = three_commits();
    let program = Program::new();
    settings(&program, &[("engine", repository.name())]);
    let live = program.start(&["track", "--json"]);
    assert_eq!(live.line()["commit"], third.to_string());
    let shows = |commits: &[CommitId]| {
        let expected: Vec<_> = commits.iter().map(|commit| ("main".to_owned(), Some(commit.to_string()))).collect();
        wait(&format!("status shows {expected:?}"), || left_out(&program, "engine") == expected);
    };
    // Behind a bomb comes another commit.
    let first_bomb = bomb(&repository, &[third]);
    repository.point("refs/heads/main", first_bomb);
    shows(&[first_bomb]);
    let behind = repository.write(&[first_bomb], &tree([("notes.txt", "words behind the bomb\n")]));
    repository.point("refs/heads/main", behind);
    assert_eq!(live.line()["commit"], behind.to_string());
    shows(&[]);
    // The ref goes back to where it stood; and it moves from one bomb to another.
    let bombs = [bomb(&repository, &[behind]), bomb(&repository, &[third])];
    for bomb in bombs {
        repository.point("refs/heads/main", bomb);
        shows(&[bomb]);
    }
    repository.point("refs/heads/main", behind);
    shows(&[]);
    // What was missing comes.
    let git = git2::Repository::open(repository.path()).unwrap();
    let blob = git.blob(b"words of a late tree\n").unwrap();
    let entry = [b"100644 late.txt\0".as_slice(), blob.as_bytes()].concat();
    let late = git2::Oid::hash_object(git2::ObjectType::Tree, &entry).unwrap();
    let treeless = commit_of(&git, late, &[behind]);
    repository.point("refs/heads/main", treeless);
    shows(&[treeless]);
    assert_eq!(git.odb().unwrap().write(git2::ObjectType::Tree, &entry).unwrap(), late);
    assert_eq!(live.line()["commit"], treeless.to_string());
    shows(&[]);
}

#[test]
fn sources_that_come_later_are_taken_up_while_the_others_are_followed() {
    let (repository, [.., third]) = three_commits();
    let unborn = Repository::new();
    let program = Program::new();
    settings(&program, &[("late", "dir:late"), ("whole", repository.name()), ("unborn", unborn.name())]);
    let log = program.folder().join("log");
    let live = program.start_logged(&["track", "--json"], &log);
    assert_eq!(live.line()["commit"], third.to_string());
    wait("the missing source in status", || source(&program, "late")["trouble"]["next_try"].is_string());
    wait("the empty repository in status", || {
        source(&program, "unborn")["trouble"]["what"].as_str().is_some_and(|what| what.contains("no commit"))
    });
    let running = status(&program)["tracker"].clone();
    assert_eq!((&running["running"], &running["process"]), (&true.into(), &live.id().into()));

    let first = unborn.commit(&tree([("u.txt", "first commit of the unborn\n")])).to_string();
    assert_eq!(live.line()["commit"], first);
    std::fs::create_dir(program.folder().join("late")).unwrap();
    std::fs::write(program.folder().join("late/l.txt"), "words that came late\n").unwrap();
    assert_eq!(live.line()["source"], "late");
    assert_eq!(hits(&program, "late"), ["l.txt"]);
    std::fs::write(program.folder().join("late/m.txt"), "followed from now on\n").unwrap();
    assert_eq!(live.line()["source"], "late");
    wait("the end of the trouble in status", || source(&program, "late")["trouble"].is_null());
    let warnings = warnings(&log);
    let of = |name: &str| warnings.iter().filter(|line| line.contains(name)).count();
    assert_eq!(
        (of(" late: "), of(" unborn: "), warnings.len()),
        (2, 2, 4),
        "once when it begins, once when it ends: {warnings:#?}"
    );
}

#[test]
fn a_repository_that_vanishes_keeps_its_views_and_is_followed_again_when_it_returns() {
    let (repository, [.., third]) = three_commits();
    let (other, _) = three_commits();
    let program = Program::new();
    settings(&program, &[("gone", repository.name()), ("other", other.name())]);
    let log = program.folder().join("log");
    let live = program.start_logged(&["track", "--json"], &log);
    live.line();
    live.line();
    let away = repository.path().with_file_name("away");
    std::fs::rename(repository.path(), &away).unwrap();
    wait("the trouble", || source(&program, "gone")["trouble"]["what"].is_string());
    let view = source(&program, "gone")["views"][0].clone();
    assert_eq!((&view["commit"], &view["behind"]), (&third.to_string().into(), &Value::Null));
    assert!(view["unknown"].is_string(), "{view}");
    // The other source is tracked meanwhile.
    let commit = other.commit(&tree([("notes.txt", "entity words meanwhile\n")])).to_string();
    assert_eq!(live.line()["commit"], commit);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(warnings(&log).len(), 1, "{:?}", warnings(&log));
    std::fs::rename(&away, repository.path()).unwrap();
    let commit = repository.commit(&tree([("notes.txt", "words after the return\n")])).to_string();
    assert_eq!(live.line()["commit"], commit);
    assert_eq!(hits(&program, "return"), ["notes.txt"]);
    wait("the end of the trouble in status", || source(&program, "gone")["trouble"].is_null());
    assert_eq!(warnings(&log).len(), 2, "{:?}", warnings(&log));
}

#[test]
fn a_directory_that_lost_everything_is_kept_until_that_is_accepted() {
    let program = Program::new();
    let folder = program.folder().join("disk");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..5 {
        std::fs::write(folder.join(format!("{number}.txt")), format!("heron number {number}\n")).unwrap();
    }
    assert_eq!(once(&program, &["dir:disk"]).0, Some(0));
    let state = status(&program);
    assert!(state["sources"][0]["views"][0]["looked_at"].is_string(), "{state}");
    assert_eq!(state["tracker"]["running"], false);
    assert!(!program.run(&["status"]).out.contains("cannot be asked"));
    std::fs::rename(&folder, program.folder().join("away")).unwrap();
    std::fs::create_dir(&folder).unwrap();
    for _ in 0..2 {
        let (code, commits, errors) = once(&program, &["dir:disk"]);
        assert_eq!((code, commits.len(), errors.len()), (Some(3), 0, 1), "{errors:?}");
        assert!(errors[0].contains("all 5 files are gone") && errors[0].contains("--accept-loss"), "{errors:?}");
        assert_eq!(hits(&program, "heron").len(), 5);
        assert!(source(&program, "disk")["trouble"]["what"].is_string());
    }
    let (code, commits, _) = once(&program, &["dir:disk", "--accept-loss"]);
    assert_eq!((code, commits.len()), (Some(0), 1));
    assert!(hits(&program, "heron").is_empty());
}

#[test]
fn a_commit_of_one_source_does_not_wait_for_the_load_of_another() {
    let (repository, _) = three_commits();
    let program = Program::new();
    let large = program.folder().join("large");
    std::fs::create_dir(&large).unwrap();
    settings(&program, &[("large", "dir:large"), ("small", repository.name())]);
    let live = program.start(&["track", "--json"]);
    live.line();
    live.line();
    for number in 0..6_000 {
        let text: String = (0..40)
            .map(|item| format!("/// Item {item} of {number}.\npub fn item_{number}_{item}(x: u32) -> u32 {{\n    x + {item}\n}}\n\n"))
            .collect();
        std::fs::write(large.join(format!("f{number}.rs")), text).unwrap();
    }
    // The load is in progress: the view moves when it is done, and not before.
    std::thread::sleep(Duration::from_secs(3));
    let mut slowest = Duration::ZERO;
    for number in 0..3 {
        let commit = repository.commit(&tree([("notes.txt", format!("entity words {number}\n").as_str())])).to_string();
        let started = Instant::now();
        loop {
            let line = live.line();
            if line["commit"] == commit {
                break;
            }
            assert_eq!(line["source"], "large", "{line}");
        }
        slowest = slowest.max(started.elapsed());
    }
    println!("slowest {slowest:?}");
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
}

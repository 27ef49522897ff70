//! Promise: a store of an earlier build opens, is consistent, answers as before, and can be tracked further.
//!
//! A fixture is a whole store, packed: the files of its folder in sequence, compressed. It was made from the repository that
//! [`repository`] makes again, so its required content is known.
//!
//! Those of formats 2 and 3 were made by the first analyzer and the first rules: the next tracker indexes their texts again, and
//! records the head anew, without embedding anything. One more of format 3 was made by its last build.

use crate::support::{Fault, Need, Program, Repository, Tree, has, stride, tree};
use expect_test::expect;
use serde_json::Value;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidemill::store::{Layout, Lease, STORE_FORMAT};

/// The content of an open store, and nothing of a closed one.
const TRANSIENT: [&str; 5] = ["LOCK", "lock.mdb", "versions.lock", "tracker.json", ".tantivy-writer.lock"];

/// The last build of store format 3: today's analyzer and rules.
const LATEST_3: &str = "3-latest";

fn fixture(format: impl Display) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/store-format-{format}.zst"))
}

const MILL: &str = "//! A mill on the tide.\n\n/// Turns the wheel while the water falls.\npub fn turn_wheel(tide: u32) -> u32 {\n    tide / 2\n}\n\npub struct Sluice;\n\nimpl Sluice {\n    /// Lets the water in.\n    pub fn open(&mut self) {}\n}\n";
const GUIDE: &str = "# Guide\n\nHow a mill is run.\n\n## Milling\n\nOpen the sluice at high water; the wheel turns when it falls.\n\n## 潮汐\n\n涨潮时打开水闸，落潮时水轮转动。\n";

/// Returns the commits of the fixture: three files; one edit and a C++ header; a file removed; all as at first.
fn trees() -> [Tree; 4] {
    let first = [("Cargo.toml", "[package]\nname = \"mill\"\n"), ("src/mill.rs", MILL), ("docs/guide.md", GUIDE)];
    let edited = MILL.replace("tide / 2", "tide / 3");
    let header = "#pragma once\n/** Grinds the corn. */\nclass Stone {\n  void Grind(float Weight);\n};\n";
    let second = [
        ("Cargo.toml", first[0].1),
        ("src/mill.rs", edited.as_str()),
        ("docs/guide.md", GUIDE),
        ("native/stone.h", header),
    ];
    let third = [second[0], second[1], second[3]];
    [tree(first), tree(second), tree(third), tree(first)]
}

fn repository() -> Repository {
    let repository = Repository::new();
    for tree in trees() {
        repository.commit(&tree);
    }
    repository
}

fn track(program: &Program, repository: &Repository) -> Vec<Value> {
    program.json(&["track", repository.name(), "--once", "--backfill", "all", "--json"])
}

/// Returns the files of a store, by path.
fn files(root: &Path, below: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<_> = std::fs::read_dir(below).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            files(root, &path, found);
        } else if !TRANSIENT.contains(&name.as_str()) && !path.starts_with(root.join("leases")) {
            let relative = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.push((relative, std::fs::read(&path).unwrap()));
        }
    }
}

fn pack(root: &Path) -> Vec<u8> {
    let (mut found, mut packed) = (Vec::new(), Vec::new());
    files(root, root, &mut found);
    for (path, bytes) in found {
        packed.extend_from_slice(format!("{} {}\n", bytes.len(), path).as_bytes());
        packed.extend_from_slice(&bytes);
    }
    zstd::encode_all(packed.as_slice(), 19).unwrap()
}

fn unpack(packed: &[u8], root: &Path) {
    let packed = zstd::decode_all(packed).unwrap();
    let mut rest = packed.as_slice();
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap();
        let (length, path) = std::str::from_utf8(&rest[..end]).unwrap().split_once(' ').unwrap();
        let (bytes, behind) = rest[end + 1..].split_at(length.parse().unwrap());
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), bytes).unwrap();
        rest = behind;
    }
}

#[test]
#[ignore = "writes the fixture anew; run it only when a new format gets its own file"]
fn write_fixture() {
    let program = Program::new();
    assert_eq!(track(&program, &repository()).len(), 5, "four commits and the summary");
    std::fs::write(fixture(STORE_FORMAT), pack(&program.store())).unwrap();
}

/// Returns the hits of a search, one a line; by reciprocal ranks, as the builds that wrote the fixtures fused.
fn hits(program: &Program, arguments: &[&str]) -> String {
    let answer = program.json(&[&["search", "--json", "-k", "3", "--fusion", "rrf"], arguments].concat()).remove(0);
    let line = |hit: &Value| {
        let text = |name: &str| hit[name].as_str().unwrap_or_default().to_owned();
        format!("{:.4} {} {} {}\n", hit["score"].as_f64().unwrap(), text("path"), hit["lines"], text("symbol"))
    };
    answer["hits"].as_array().unwrap().iter().map(line).collect()
}

/// Returns the content of a store at its head and before, for a comparison of two stores: without the epochs and the bases of
/// versions.
fn held(program: &Program) -> Vec<Value> {
    let mut versions = program.json(&["snapshots", "list", "--json"]);
    for version in &mut versions {
        for of_the_log in ["bytes", "epoch", "inserted", "retracted"] {
            version.as_object_mut().unwrap().remove(of_the_log);
        }
    }
    versions.sort_by_key(|version| version["time"].as_str().unwrap().to_owned());
    let commits: Vec<String> = versions.iter().map(|version| version["commit"].as_str().unwrap().to_owned()).collect();
    for commit in &commits {
        let mut entries = program.json(&["dump", "--at", commit, "--json"]);
        // Known along versions of one set of rules.
        entries.iter_mut().for_each(|entry| drop(entry.as_object_mut().unwrap().remove("introduced_in")));
        versions.extend(entries);
    }
    versions
}

/// Tracks the repository of the fixture: there is no work; then one more paragraph, which costs one paragraph.
fn is_tracked_onwards(program: &Program, fresh: &Program, repository: &Repository) {
    let unchanged = track(program, repository);
    assert_eq!(unchanged.len(), 1, "a start finds nothing to do: {unchanged:?}");
    let mut next = trees()[3].clone();
    next.insert(b"docs/guide.md".to_vec(), GUIDE.replace("high water", "flood").into_bytes());
    repository.commit(&next);
    let line = track(program, repository).remove(0);
    let work = ["cleaned", "embedded", "inserted", "retracted"].map(|name| line["work"][name].as_u64().unwrap());
    assert_eq!(work, [1, 1, 1, 1], "one paragraph changed: {line}");
    assert_eq!(program.run(&["snapshots", "verify"]).status, Some(0));
    track(fresh, repository);
    assert_eq!(held(program), held(fresh));
}

/// Fails unless a store has the fixtures' content, and answers as required.
fn is_as_it_was(program: &Program, fresh: &Program, repository: &Repository) {
    let verified = program.run(&["snapshots", "verify"]);
    assert_eq!(verified.status, Some(0), "{verified:?}");
    assert_eq!(held(program), held(fresh), "what it holds is what the repository gives today");
    let commits = repository.git_text(&["rev-list", "--reverse", "main"]);
    let second = commits.lines().nth(1).unwrap();
    expect![[r#"
        4.1943 src/mill.rs [3,6] turn_wheel
        3.0716 docs/guide.md [5,7] 
        0.8567 src/mill.rs [1,1] 
    "#]]
    .assert_eq(&hits(program, &["turns the wheel", "--mode", "bm25"]));
    expect![[r#"
        0.3918 docs/guide.md [9,11] 
        0.2914 src/mill.rs [10,13] Sluice::open
        0.2763 docs/guide.md [5,7] 
    "#]]
    .assert_eq(&hits(program, &["水闸", "--mode", "vector"]));
    expect![[r#"
        0.0328 native/stone.h [2,5] Stone
        0.0161 docs/guide.md [5,7] 
        0.0159 src/mill.rs [8,8] Sluice
    "#]]
    .assert_eq(&hits(program, &["grind corn", "--at", second]));
}

/// Tracks the head of a store of an earlier release, then every commit, and fails if that embeds anything, or if a commit answers
/// otherwise than in a new store.
fn is_brought_here(program: &Program, fresh: &Program, repository: &Repository) {
    let embedded = |lines: &[Value]| lines.iter().filter_map(|line| line["work"]["embedded"].as_u64()).sum::<u64>();
    let head = program.json(&["track", repository.name(), "--once", "--json"]);
    assert_eq!((head.len(), embedded(&head)), (2, 0), "the head is recorded under the rules of today: {head:?}");
    let commits = repository.git_text(&["rev-list", "--reverse", "main"]);
    for commit in commits.lines() {
        for query in ["turns the wheel", "\"high water\"", "grind", "潮汐", "world.spawn #pragma"] {
            let ask = |program| hits(program, &[query, "--mode", "bm25", "--at", commit]);
            assert_eq!(ask(program), ask(fresh), "{query} at {commit}");
        }
    }
    let verified = program.run(&["snapshots", "verify"]);
    assert_eq!(verified.status, Some(0), "{verified:?}");
    let all = track(program, repository);
    assert_eq!((all.len(), embedded(&all)), (4, 0), "three commits under the rules of today, and the summary: {all:?}");
    assert_eq!(track(program, repository).len(), 1, "a start finds nothing to do");
}

#[test]
fn what_store_format_3_wrote_opens_answers_and_is_tracked_onwards() {
    let (repository, program, fresh) = (repository(), Program::new(), Program::new());
    unpack(&std::fs::read(fixture(3)).unwrap(), &program.store());
    track(&fresh, &repository);
    // A reader changes nothing.
    program.refuses(&["search", "wheel"], &["format 3", "format 4", "tidemill track"]);
    is_brought_here(&program, &fresh, &repository);
    is_as_it_was(&program, &fresh, &repository);
    is_tracked_onwards(&program, &fresh, &repository);
}

#[test]
fn what_the_last_build_of_store_format_3_wrote_is_brought_to_this_one_without_any_work() {
    let (repository, program, fresh) = (repository(), Program::new(), Program::new());
    unpack(&std::fs::read(fixture(LATEST_3)).unwrap(), &program.store());
    track(&fresh, &repository);
    program.refuses(&["search", "wheel"], &["format 3", "format 4", "tidemill track"]);
    // It knows its repository, which stood elsewhere.
    let refused = program.run(&["track", repository.name(), "--once"]);
    let (_, behind) = refused.err.split_once("--moved-from ").expect("the refusal says what to do");
    let (before, _) = behind.split_once(';').unwrap();
    let arguments = ["track", repository.name(), "--moved-from", before, "--once", "--backfill", "all", "--json"];
    // The rules grew since then, so each commit gets a version of this build; nothing is cleaned, cut or embedded for it.
    let lines = program.json(&arguments);
    let (summary, epochs) = lines.split_last().unwrap();
    let is_idle = |epoch: &Value| ["cleaned", "chunked", "embedded"].iter().all(|stage| epoch["work"][stage] == 0);
    assert!(epochs.iter().all(is_idle), "{epochs:?}");
    assert_eq!(summary["summary"]["embedded"], 0);
    is_as_it_was(&program, &fresh, &repository);
    is_tracked_onwards(&program, &fresh, &repository);
}

#[test]
fn what_store_format_2_wrote_is_brought_to_this_one_by_the_next_tracker_and_holds_what_it_held() {
    let (repository, program, fresh) = (repository(), Program::new(), Program::new());
    unpack(&std::fs::read(fixture(2)).unwrap(), &program.store());
    track(&fresh, &repository);
    // A reader never changes it.
    program.refuses(&["search", "wheel"], &["format 2", "format 4", "tidemill track"]);
    program.refuses(&["snapshots", "verify"], &["format 2", "tidemill track"]);
    is_brought_here(&program, &fresh, &repository);
    is_as_it_was(&program, &fresh, &repository);
    is_tracked_onwards(&program, &fresh, &repository);
}

/// Makes the lexical index name another analyzer, of which only the last digit differs.
fn pretend_another_analyzer(program: &Program) {
    let path = program.store().join("lexical/meta.json");
    let meta = std::fs::read_to_string(&path).unwrap();
    let at = meta.find("analyzer").expect("the payload names it");
    let digits = |byte: &u8| byte.is_ascii_hexdigit();
    // Behind the name, its quotes and the colon.
    let from = at + 8 + meta.as_bytes()[at + 8..].iter().position(digits).unwrap();
    let to = from + meta.as_bytes()[from..].iter().take_while(|byte| digits(byte)).count();
    let last = if meta.as_bytes()[to - 1] == b'0' { "1" } else { "0" };
    assert_eq!(to - from, 32, "{meta}");
    std::fs::write(path, [&meta[..to - 1], last, &meta[to..]].concat()).unwrap();
}

#[test]
fn a_store_of_another_analyzer_is_not_touched_while_somebody_reads_it() {
    let (repository, program) = (repository(), Program::new());
    track(&program, &repository);
    pretend_another_analyzer(&program);
    let indexed = || {
        ["lexical/meta.json", "versions/versions.log"].map(|file| std::fs::read(program.store().join(file)).unwrap())
    };
    let before = indexed();
    program.refuses(&["search", "wheel"], &["analyzer", "tidemill track"]);
    let lease = Lease::take(&Layout::new(program.store())).unwrap();
    program.refuses(&["track", repository.name(), "--once"], &["cannot index", "another process reads it"]);
    assert!(indexed() == before, "a refused tracker indexes and counts nothing");
    drop(lease);
    track(&program, &repository);
    assert_eq!(program.run(&["snapshots", "verify"]).status, Some(0));
}

#[test]
fn a_store_of_an_older_format_is_not_touched_while_somebody_reads_it() {
    for format in ["2", "3"] {
        let (repository, program) = (repository(), Program::new());
        unpack(&std::fs::read(fixture(format)).unwrap(), &program.store());
        let lease = Lease::take(&Layout::new(program.store())).unwrap();
        program.refuses(&["track", repository.name(), "--once"], &["format 4", "another process reads it"]);
        let says = std::fs::read_to_string(program.store().join("FORMAT")).unwrap();
        assert_eq!(says, format!("tidemill store format {format}\n"));
        drop(lease);
        track(&program, &repository);
        assert_eq!(program.run(&["snapshots", "verify"]).status, Some(0));
    }
}

#[test]
fn a_store_of_format_2_may_be_killed_or_find_the_disk_full_while_it_is_brought_to_this_one() {
    may_be_disturbed("2", 120, &|store| std::fs::read_to_string(store.join("FORMAT")).unwrap().ends_with("format 4\n"));
}

#[test]
fn a_store_of_format_3_may_be_killed_or_find_the_disk_full_while_it_is_brought_to_this_one() {
    let is_behind = |store: &Path| std::fs::read_to_string(store.join("FORMAT")).unwrap().ends_with("format 4\n");
    may_be_disturbed("3", 120, &is_behind);
}

#[test]
fn a_store_may_be_killed_or_find_the_disk_full_while_its_texts_are_indexed_again() {
    // The log's ninth byte is its format, which is the newest after a recount.
    may_be_disturbed("3", 160, &|store| std::fs::read(store.join("versions/versions.log")).unwrap()[8] == 4);
}

/// Disturbs the tracker that opens a fixture at some of its first writes: the next one must complete the job. `is_behind` tells
/// whether that is done.
fn may_be_disturbed(format: &str, writes: usize, is_behind: &dyn Fn(&Path) -> bool) {
    if !has(Need::Strace) {
        return;
    }
    let (repository, fresh) = (repository(), Program::new());
    track(&fresh, &repository);
    let expected = held(&fresh);
    let packed = std::fs::read(fixture(format)).unwrap();
    let arguments = ["--data", "store", "track", repository.name(), "--once", "--backfill", "all"];
    let unpacked = || {
        let folder = tempfile::tempdir().unwrap();
        unpack(&packed, &folder.path().join("store"));
        folder
    };
    let mut left_at = [0, 0];
    for fault in [Fault::Killed, Fault::DiskFull] {
        let places = fault.places(&arguments, Path::new("store/versions/versions.log"), &unpacked);
        // Later writes are those of any start, which `crashes` tests.
        for place in places.iter().take(writes).step_by(stride(places.len()).div_ceil(2) * writes / 40) {
            let folder = unpacked();
            let output = fault.run(place, &arguments, folder.path());
            let context = format!("{fault:?} at {place:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(!context.contains("panicked"), "{context}");
            left_at[usize::from(is_behind(&folder.path().join("store")))] += 1;
            let program = Program::new();
            std::fs::rename(folder.path().join("store"), program.store()).unwrap();
            track(&program, &repository);
            assert_eq!(track(&program, &repository).len(), 1, "{context}");
            let verified = program.run(&["snapshots", "verify"]);
            assert_eq!(verified.status, Some(0), "{context}: {verified:?}");
            assert_eq!(held(&program), expected, "{context}");
        }
    }
    assert!(
        left_at.iter().all(|runs| *runs >= 3),
        "runs that ended in front of what was tried, and behind it: {left_at:?}"
    );
}

#[test]
fn a_store_opens_where_address_space_is_limited() {
    let program = Program::new();
    track(&program, &repository());
    // In KiB: less than the database maps where it may, and more than the least it asks for.
    let limited = format!("ulimit -v {}; exec {} status --data .tidemill", 48 << 20, env!("CARGO_BIN_EXE_tidemill"));
    let output = Command::new("sh").args(["-c", &limited]).current_dir(program.folder()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

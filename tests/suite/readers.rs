//! *Readers need no write permission*: a store gives users who may only read it the same answers as its owner, and nothing that
//! they read is collected meanwhile.

use crate::support::{Ended, Need, Outside, Picture, Program, Repository, Store, git, has, tree};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tidemill::config::Backfill;

/// The reading commands, each with a part of its answer.
const COMMANDS: [(&str, &str); 8] = [
    ("search heron", "heron.md:1-1"),
    ("search heron --mode vector", "heron.md:1-1"),
    ("status", "docs"),
    ("dump --json", "heron.md"),
    ("snapshots list", "docs"),
    ("snapshots verify", ""),
    ("explain heron.md", "heron.md"),
    ("snapshots gc --dry-run", ""),
];

/// Tracks, with the umask that most systems have.
fn tracked() -> Outside {
    let outside = Outside::new();
    outside.shell("umask 022; tidemill track dir:docs --once").well();
    outside
}

/// Fails unless each command answers as required, and says once that it leaves no lease.
fn answers(run: impl Fn(&str) -> Ended) {
    for (command, expected) in COMMANDS {
        let ended = run(&format!("tidemill {command}"));
        assert_eq!(ended.status, Some(0), "{command}: {ended:?}");
        assert!(ended.out.contains(expected), "{command}: {ended:?}");
        assert_eq!(ended.err.matches("reading without a lease").count(), 1, "{command}: {ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{command}: {ended:?}");
    }
}

#[test]
fn another_user_searches_a_store_that_only_its_owner_may_write_to() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    let before = outside.shell("find store | sort").well();
    answers(|script| outside.other_user(65534, 65534, script));
    // Nor may it look who else reads.
    outside.shell("chmod 700 store/leases").well();
    answers(|script| outside.other_user(65534, 65534, script));
    assert_eq!(outside.shell("find store | sort").well(), before);
}

#[test]
fn a_store_on_a_read_only_mount_is_searched_whatever_of_its_lock_files_is_there() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    let read_only = |script: &str| {
        outside.shell(&format!("mount --bind store store && mount -o remount,ro,bind store && cd . && {script}"))
    };
    answers(read_only);
    outside.shell("rm -r store/leases store/memo/lock.mdb store/lexical/.tantivy-meta.lock store/LOCK").well();
    answers(read_only);
}

#[test]
fn a_store_is_searched_where_no_inode_and_no_byte_is_left() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    let full = "mkdir -p full; mount -t tmpfs -o size=8m,nr_inodes=64 t full; cp -r store full/store; \
                head -c 16m /dev/zero > full/zeros 2>/dev/null; i=0; while touch full/$i 2>/dev/null; do i=$((i+1)); done; \
                export TIDEMILL_DATA=full/store; ";
    answers(|script| outside.shell(&format!("{full} {script}")));
}

#[test]
fn a_store_that_a_group_shares_takes_the_leases_of_all_its_members() {
    if !has(Need::Root) {
        return;
    }
    let outside = Outside::new();
    outside.shell("mkdir store; chgrp 50000 store; chmod 2775 store; umask 022; tidemill track dir:docs --once").well();
    for member in [50001, 50002] {
        let ended = outside.other_user(member, 50000, "umask 077; tidemill search heron");
        assert!(ended.status == Some(0) && ended.out.contains("heron.md") && ended.err.is_empty(), "{ended:?}");
    }
    let mode = |file: &str| fs::metadata(outside.path().join(file)).unwrap().mode() & 0o7777;
    assert_eq!((mode("store/leases"), mode("store/memo/lock.mdb")), (0o2775, 0o664));
}

#[test]
fn what_a_reader_without_a_lease_reads_is_not_collected_until_it_ends() {
    let repository = Repository::new();
    let commit = |number: usize| {
        let text = format!("# Gate {number}\n\nThe sluice has {number} gates.\n");
        repository.commit(&tree([("gate.md", text.as_str())]))
    };
    let line: Vec<_> = (0..6).map(commit).collect();
    let store = Store::new();
    store.track(git(repository.path(), &["main"], Some(Backfill::All)));
    let leases = store.layout().leases();
    fs::remove_dir_all(&leases).unwrap();
    // No reader can write a lease into a folder that does not exist and cannot be created.
    std::os::unix::fs::symlink("/proc/self/nowhere", &leases).unwrap();
    let searcher = store.searcher();
    let first = line[0].to_string();
    let before = Picture::of(&searcher, Some(&first));
    let collected = |held_back: bool| {
        let run = Program::new();
        let settings = run.folder().join("tidemill.toml");
        fs::write(&settings, "[retention]\nnewest = 1\n").unwrap();
        let data = store.layout().root().to_str().unwrap().to_owned();
        let answer = run.json(&["--data", &data, "snapshots", "gc", "--json"]).remove(0);
        assert_eq!(answer["readers"].as_u64().unwrap() > 0, held_back, "{answer}");
        assert_eq!(answer["held_back"].as_u64().unwrap() > 0, held_back, "{answer}");
    };
    collected(true);
    Picture::of(&searcher, Some(&first)).assert_equals(&before, line[0]);
    drop(searcher);
    collected(false);
}

#[test]
fn a_part_that_a_writer_may_not_write_is_named_with_the_next_step() {
    if !has(Need::Root) {
        return;
    }
    let outside = tracked();
    outside.shell("echo 'A heron more.' >> docs/heron.md").well();
    for part in ["lexical", "memo", "vectors", "versions", "."] {
        let script = format!(
            "mount --bind store/{part} store/{part} && mount -o remount,ro,bind store/{part} && cd . && tidemill track dir:docs --once"
        );
        outside.shell(&script).refused(&[
            "store",
            part.trim_matches('.'),
            "Read-only file system",
            "; mount it for writing",
        ]);
    }
    fs::set_permissions(outside.path().join("store"), Permissions::from_mode(0o755)).unwrap();
    let other = outside.other_user(65534, 65534, "tidemill track dir:docs --once");
    other.refused(&["store/", "Permission denied", "give the user 65534 the right"]);
}

#[test]
fn a_tracked_repository_keeps_every_byte() {
    let program = Program::new();
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).current_dir(program.folder()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let commit = "git -C engine add -A && git -C engine -c user.name=a -c user.email=a@example.org commit -qm x";
    shell(&format!(
        "git init -q -b main engine && echo one > engine/a.md && {commit} && echo two > engine/a.md && {commit}"
    ));
    shell("git -C engine repack -adq && git -C engine tag first HEAD~1 && echo three > engine/a.md");
    // Times of change, also of the files inside.
    let picture = || shell("find engine -printf '%p %s %m %T@ %C@\\n' | sort");
    let before = picture();
    let track = ["track", "engine", "--once", "--worktree", "--ref", "*", "--backfill", "all", "--json"];
    assert_eq!(program.json(&track).len(), 5, "two commits, the tag, the work tree and the summary");
    for reads in [&["search", "three"][..], &["status"], &["explain", "a.md"], &["dump", "--at", "first"]] {
        assert_eq!(program.run(reads).status, Some(0), "{reads:?}");
    }
    assert_eq!(picture(), before);
}

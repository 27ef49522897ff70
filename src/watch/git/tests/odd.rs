//! Commits, tags and trees that git accepts and libgit2 does not, written as raw objects.

use super::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// Writes an object unchanged, whatever it contains; returns its id.
fn raw(repo: &Repo, kind: &str, bytes: &[u8]) -> CommitId {
    let mut command = Command::new("git");
    command.current_dir(repo.path()).args(["hash-object", "-t", kind, "-w", "--stdin", "--literally"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// Writes a commit of HEAD's tree on top of `parent` with these lines after its `parent` lines.
fn commit(repo: &Repo, parent: CommitId, rest: &[u8]) -> CommitId {
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    raw(repo, "commit", &[format!("tree {tree}\nparent {parent}\n").as_bytes(), rest].concat())
}

/// The bytes after the parents of commits that git reads, with git's own `%ct`.
const ODD: [&[u8]; 15] = [
    b"author A <a@b> 1 +0000\ncommitter C <c@d> 99999999999999999999 +0000\n\noverflow\n",
    b"author A <a@b> 1 +0000\ncommitter C <c@d> -1 +0000\n\nnegative\n",
    b"author A <a@b> 99999999999999999999 +0000\ncommitter C <c@d> 12 +0000\n\nauthor's overflow\n",
    b"author A <a@b> 1 +0000\ncommitter C <c@d> 12\n\nno time zone\n",
    b"author A <a@b> 1 +0000\ncommitter C <c@d> 12 +99999999999\n\ntime zone\n",
    b"author A <a@b> 1 +0000\ncommitter C <c@d>\n\nno time\n",
    b"author A <a@b> 1 +0000\ncommitter C c@d 12 +0000\n\nno brackets\n",
    b"author A\ncommitter C <c@d> 12 +0000\n\nauthor without anything\n",
    b"author A >a@b< 1 +0000\ncommitter C <c@d> 12 +0000\n\nbrackets the other way\n",
    b"committer C <c@d> 12 +0000\n\nno author\n",
    b"author A <a@b> 1 +0000\n\nno committer\n",
    b"\nneither\n",
    b"author A <a@b> 1 +0000\ncommitter C <c@d> 12 +0000\nencoding no-such\nx-extra\n y\n\n\xff\xfe\0nul\n",
    b"author A\0 <a@b> 1 +0000\ncommitter C <c@d> 12 +0000\n\nnul in the header\n",
    b"author A <a@b> 1 +0000\nauthor A <a@b> 1 +0000\ncommitter C <c@d> 12 +0000\nmergetag object 0\n\ntwo authors\n",
];

#[test]
fn commits_that_git_reads_are_read_wherever_they_stand() {
    let repo = Repo::new();
    let first = repo.commit_file("a", "1");
    repo.git(&["checkout", "-q", "-b", "side"]);
    let side = repo.commit_file("a", "2");
    let mut line = Vec::new();
    for odd in ODD {
        line.push(commit(&repo, line.last().copied().unwrap_or(first), odd));
    }
    let head = *line.last().unwrap();
    repo.git(&["update-ref", "refs/heads/main", &head.to_string()]);
    repo.write(".git/refs/tags/odd", &format!("{}\n", line[0]));
    let source = source(&repo);
    let found = heads(&source, &["*"]);
    assert_eq!(found.broken, []);
    let at = |view: &str| found.heads.iter().find(|head| head.view == view).unwrap().commit.id;
    assert_eq!((at("main"), at("odd")), (head, line[0]));
    assert_eq!(source.head_commit().unwrap().unwrap().id, side);
    assert_eq!(source.resolve("main~3").unwrap(), line[line.len() - 4]);
    assert_eq!(source.resolve(&head.to_string()[..12]).unwrap(), head);

    let walked = source.first_parents(head, |_| false, None).unwrap();
    assert_eq!(ids(&walked), [&[first][..], &line].concat());
    assert_eq!((walked[3].time, walked[4].time, walked[6].time), (12, 12, 0));
    assert_eq!((walked[1].time, walked[2].time), (i64::MAX, -1));
    assert_eq!(ids(&source.new_commits(first, head).unwrap()), line);
    assert_eq!(ids(&source.new_commits(line[7], head).unwrap()), line[8..]);
    assert_eq!(ids(&source.new_commits(side, head).unwrap()), line, "to a line that does not hold the known head");
    assert_eq!(ids(&source.new_commits(head, side).unwrap()), [side], "and away from it");
    assert!(source.is_ancestor(line[2], head).unwrap() && !source.is_ancestor(side, head).unwrap());
    for commit in &line {
        assert_eq!(source.files(*commit).unwrap().len(), 1);
        assert_eq!(repo.git(&["rev-parse", &format!("{commit}^{{commit}}")]), commit.to_string(), "git reads it");
    }
    assert_eq!(source.diff(Some(first), head).unwrap().len(), 1);
}

#[test]
fn entries_of_any_mode_are_what_git_takes_them_for() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    let blob = repo.id_of("HEAD:a");
    let modes =
        ["100644", "100664", "100600", "0100644", "100755", "120000", "120777", "160000", "140000", "644", "40000"];
    let mut bytes = Vec::new();
    for (number, mode) in modes.iter().enumerate() {
        let id = if mode.ends_with("40000") && mode.len() == 5 { repo.id_of("HEAD^{tree}") } else { blob };
        bytes.extend([format!("{mode} entry{number:02}\0").as_bytes(), id.as_bytes()].concat());
    }
    let tree = raw(&repo, "tree", &bytes);
    let commit = raw(&repo, "commit", format!("tree {tree}\n\nx\n").as_bytes());
    let files: BTreeMap<_, _> = source(&repo).files(commit).unwrap().into_iter().collect();
    assert_eq!(files.len(), modes.len());
    assert_eq!(files, repo.ls_tree(commit));
}

#[test]
fn tags_of_any_form_lead_where_git_follows_them() {
    let repo = Repo::new();
    let head = repo.commit_file("a", "1");
    let tags: [(&str, &str); 4] = [
        ("old", "tag old\n\nwithout a tagger\n"),
        ("dated", "tag dated\ntagger T <t@u> 99999999999999999999 +0000\n\nx\n"),
        ("bare", "tag bare\n"),
        ("noted", "tag noted\ntagger nobody at all\nextra x\n\n\0\n"),
    ];
    for (name, rest) in tags {
        let tag = raw(&repo, "tag", format!("object {head}\ntype commit\n{rest}").as_bytes());
        let outer = raw(&repo, "tag", format!("object {tag}\ntype tag\n{rest}").as_bytes());
        repo.write(&format!(".git/refs/tags/{name}"), &format!("{tag}\n"));
        repo.write(&format!(".git/refs/tags/{name}-outer"), &format!("{outer}\n"));
    }
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let of_tree = raw(&repo, "tag", format!("object {tree}\ntype tree\ntag tree\n\nx\n").as_bytes());
    repo.write(".git/refs/tags/tree", &format!("{of_tree}\n"));
    let found = heads(&source(&repo), &["refs/tags/*"]);
    assert_eq!((found.broken.len(), found.skipped_tags), (0, 1));
    assert_eq!(found.heads.len(), 8);
    assert!(found.heads.iter().all(|tag| tag.commit.id == head && tag.is_tag));
}

#[test]
fn what_git_refuses_is_one_broken_ref_with_its_reason() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    let bad: [(&str, &[u8]); 3] = [
        ("nothing", b""),
        ("no-tree", b"author A <a@b> 1 +0000\ncommitter C <c@d> 1 +0000\n\nx\n"),
        ("bad-parent", b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 12\n\nx\n"),
    ];
    for (name, bytes) in bad {
        let id = raw(&repo, "commit", bytes);
        repo.write(&format!(".git/refs/heads/{name}"), &format!("{id}\n"));
    }
    let found = heads(&source(&repo), &["*"]);
    assert_eq!(found.heads.len(), 1);
    let broken: Vec<&str> = found.broken.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(broken, ["refs/heads/bad-parent", "refs/heads/no-tree", "refs/heads/nothing"]);
    assert!(
        found.broken[0].1.contains("cannot read commit") && found.broken[0].1.contains("no object id"),
        "{found:?}"
    );
}

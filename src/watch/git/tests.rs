//! Promises of git sources, against the git program: names, histories, what opens and what is refused.

mod odd;
mod opening;
mod refs;
mod trees;

use super::*;
use crate::watch::testing::{FIRST_TIME, Repo};

fn source(repo: &Repo) -> GitSource {
    GitSource::open(repo.path()).unwrap()
}

fn heads(source: &GitSource, patterns: &[&str]) -> Heads {
    let patterns: Vec<RefPattern> = patterns.iter().map(|pattern| RefPattern::parse(pattern).unwrap()).collect();
    source.heads(&patterns).unwrap()
}

fn views(source: &GitSource, patterns: &[&str]) -> Vec<String> {
    heads(source, patterns).heads.into_iter().map(|head| head.view).collect()
}

fn ids(commits: &[Commit]) -> Vec<CommitId> {
    commits.iter().map(|commit| commit.id).collect()
}

#[test]
fn patterns_match_short_names_across_slashes_and_full_names_when_they_start_with_refs() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    for branch in ["release/0.16/fixes", "shared", "feature"] {
        repo.git(&["branch", branch]);
    }
    repo.git(&["tag", "v1.0"]);
    repo.git(&["tag", "-a", "-m", "annotated", "shared"]);
    repo.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let source = source(&repo);
    assert_eq!(views(&source, &[]), ["main"]);
    assert_eq!(views(&source, &["release/*"]), ["release/0.16/fixes"]);
    assert_eq!(
        views(&source, &["*"]),
        ["feature", "main", "release/0.16/fixes", "heads/shared", "tags/shared", "v1.0"]
    );
    assert_eq!(views(&source, &["refs/remotes/*"]), ["remotes/origin/main"]);
    assert_eq!(views(&source, &["refs/tags/v*", "main"]), ["main", "v1.0"]);
    assert_eq!(views(&source, &["nothing"]), [] as [&str; 0]);
    let tag = heads(&source, &["shared"]).heads.pop().unwrap();
    assert_eq!((tag.commit.id, tag.is_tag), (repo.id("main"), true));
}

#[test]
fn a_view_name_is_unique_even_against_branches_that_look_like_one() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    for branch in ["x", "heads/x"] {
        repo.git(&["branch", branch]);
    }
    repo.git(&["tag", "x"]);
    assert_eq!(views(&source(&repo), &["*x"]), ["refs/heads/heads/x", "refs/heads/x", "tags/x"]);
}

#[test]
fn tags_that_are_no_commits_are_counted_and_broken_refs_hide_nothing() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    repo.git(&["tag", "tree", "HEAD^{tree}"]);
    repo.git(&["tag", "-a", "-m", "a blob", "blob", "HEAD:a"]);
    repo.git(&["tag", "good"]);
    repo.write(".git/refs/heads/lost", "0123456789012345678901234567890123456789\n");
    repo.write(".git/refs/heads/garbage", "garbage\n");
    repo.write(".git/refs/heads/main.lock", "");
    let heads = heads(&source(&repo), &["*"]);
    assert_eq!(heads.heads.iter().map(|head| head.view.as_str()).collect::<Vec<_>>(), ["main", "good"]);
    assert_eq!(heads.skipped_tags, 2);
    assert_eq!(
        heads.broken.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["refs/heads/garbage", "refs/heads/lost"]
    );
}

#[test]
fn an_unborn_head_has_no_heads_and_a_detached_one_is_a_view() {
    let repo = Repo::new();
    let source = source(&repo);
    assert_eq!(source.head().unwrap(), HeadState::Unborn("refs/heads/main".to_owned()));
    assert_eq!(views(&source, &[]), [] as [&str; 0]);
    let first = repo.commit_file("a", "1");
    assert_eq!(source.head_branch().unwrap().as_deref(), Some("refs/heads/main"));
    repo.commit_file("a", "2");
    repo.git(&["checkout", "-q", "--detach", "HEAD~1"]);
    assert_eq!(source.head().unwrap(), HeadState::Detached(first));
    assert_eq!(views(&source, &[]), ["HEAD"]);
    assert_eq!(views(&source, &["HEAD", "main"]), ["main", "HEAD"]);
    repo.git(&["checkout", "-q", "--orphan", "other"]);
    assert_eq!(source.head().unwrap(), HeadState::Unborn("refs/heads/other".to_owned()));
}

#[test]
fn packed_refs_and_moved_refs_are_seen_by_an_open_source() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    let source = source(&repo);
    let second = repo.commit_file("a", "2");
    repo.git(&["pack-refs", "--all"]);
    assert_eq!(heads(&source, &[]).heads[0].commit.id, second);
    let third = repo.commit_file("a", "3");
    repo.git(&["gc", "-q"]);
    assert_eq!(heads(&source, &[]).heads[0].commit.id, third);
    assert_eq!(source.files(third).unwrap().len(), 1);
}

#[test]
fn new_commits_are_the_first_parents_that_the_known_head_does_not_reach() {
    let repo = Repo::new();
    let root = repo.commit_file("a", "1");
    repo.git(&["checkout", "-q", "-b", "side"]);
    let side = [repo.commit_file("b", "1"), repo.commit_file("b", "2")];
    repo.git(&["checkout", "-q", "main"]);
    let main = repo.commit_file("a", "2");
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    let merge = repo.commit_file("a", "3");
    let source = source(&repo);
    let new = |known, head| ids(&source.new_commits(known, head).unwrap());

    assert_eq!(new(main, merge), [repo.id("main~1"), merge], "what the merge brings in is no step of the view");
    assert_eq!(new(merge, merge), []);
    assert_eq!(new(merge, root), [], "a reset to an older commit");
    assert_eq!(new(merge, side[1]), [], "the second parent reaches it");
    assert_eq!(new(main, side[1]), side, "a force-push to the other side");

    repo.git(&["reset", "-q", "--hard", "main~1"]);
    let rewritten = [repo.commit_file("a", "4"), repo.commit_file("a", "5")];
    assert_eq!(new(merge, rewritten[1]), rewritten, "a rebase");
    repo.git(&["checkout", "-q", "--orphan", "island"]);
    let island = repo.commit_file("c", "1");
    assert_eq!(new(merge, island), [island], "an orphan branch");
    assert!(source.is_ancestor(side[0], merge).unwrap());
    assert!(source.is_ancestor(merge, merge).unwrap());
    assert!(!source.is_ancestor(merge, side[0]).unwrap());
    let lost = CommitId::from_bytes([7; 20]);
    assert!(matches!(source.new_commits(lost, merge), Err(GitError::MissingObject { id, .. }) if id == lost));
}

#[test]
fn first_parents_end_at_the_stop_the_limit_or_the_start() {
    let repo = Repo::new();
    let line: Vec<CommitId> = (0..5).map(|step| repo.commit_file("a", &step.to_string())).collect();
    let source = source(&repo);
    let walk =
        |stop: Option<CommitId>, limit| ids(&source.first_parents(line[4], |id| Some(*id) == stop, limit).unwrap());
    assert_eq!(walk(None, None), line);
    assert_eq!(walk(Some(line[1]), None), line[2..]);
    assert_eq!(walk(None, Some(2)), line[3..]);
    assert_eq!(walk(None, Some(0)), []);
    let commits = source.first_parents(line[4], |_| false, None).unwrap();
    assert_eq!((commits[0].first_parent, commits[0].time), (None, FIRST_TIME));
    assert_eq!((commits[1].first_parent, commits[1].time), (Some(line[0]), FIRST_TIME + 60));
    let at = |time| source.first_parent_at(line[4], FIRST_TIME + time).unwrap().map(|commit| commit.id);
    assert_eq!(
        (at(-1), at(0), at(119), at(120), at(9999)),
        (None, Some(line[0]), Some(line[1]), Some(line[2]), Some(line[4]))
    );
}

#[test]
fn a_revision_is_one_commit_or_an_error_that_names_the_candidates() {
    let repo = Repo::new();
    let first = repo.commit_file("a", "1");
    repo.git(&["tag", "-a", "-m", "annotated", "v1"]);
    let second = repo.commit_file("a", "2");
    repo.git(&["branch", "both"]);
    repo.git(&["tag", "both", "HEAD~1"]);
    repo.git(&["tag", "tree", "HEAD^{tree}"]);
    let source = source(&repo);
    let resolve = |rev: &str| source.resolve(rev).ok();
    let hex = second.to_string();
    for rev in ["main", "HEAD", "heads/both", "refs/heads/main", &hex, &hex[..9], &hex[..9].to_uppercase(), "main~0"] {
        assert_eq!(resolve(rev), Some(second), "{rev}");
    }
    for rev in ["v1", "main~1", "HEAD~", "tags/both", "heads/both~1", &format!("{hex}~1")] {
        assert_eq!(resolve(rev), Some(first), "{rev}");
    }
    for rev in
        ["", "~", "~1", "nothing", "main~x", "tree", "main~-1", "123456", "12", ":/zzz", "main@{9}", "main\0", "HEAD:a"]
    {
        assert_eq!(resolve(rev), None, "{rev}");
    }
    let error = source.resolve("both").unwrap_err().to_string();
    assert!(error.contains("refs/heads/both") && error.contains("refs/tags/both"), "{error}");
    let error = source.resolve("main~7").unwrap_err().to_string();
    assert_eq!(error, r#""main~7" lies before the history's start: main has 2 first-parent commits"#);
}

#[test]
fn a_short_hash_counts_commits_only_and_names_all_of_them() {
    let repo = Repo::new();
    let repository = Repository::open(repo.path()).unwrap();
    let who = git2::Signature::new("A", "a@example.org", &git2::Time::new(FIRST_TIME, 0)).unwrap();
    let tree = repository.treebuilder(None).unwrap().write().unwrap();
    let tree = repository.find_tree(tree).unwrap();
    let commit = |step: u32| repository.commit(None, &who, &who, &step.to_string(), &tree, &[]).unwrap();
    let commits: Vec<CommitId> = (0..400).map(|step| commit_id(commit(step))).collect();
    let source = source(&repo);
    let mut prefixes: Vec<String> = commits.iter().map(|id| id.to_string()[..4].to_owned()).collect();
    prefixes.sort_unstable();
    let shared = prefixes.windows(2).find(|pair| pair[0] == pair[1] && pair[0].contains(|c: char| c.is_alphabetic()));
    let shared = &shared.expect("400 commits share a 4-digit prefix; the hashes are fixed")[0];
    let error = source.resolve(shared).unwrap_err();
    let GitError::AmbiguousRevision { candidates, .. } = error else { panic!("{error}") };
    assert!(candidates.len() >= 2 && candidates.iter().all(|id| id.starts_with(shared.as_str())));
}

#[test]
fn times_are_utc_unless_they_say_otherwise() {
    for (text, seconds) in [
        ("2026-11-29T10:00", Some(1_795_946_400)),
        ("2026-11-29T10:00Z", Some(1_795_946_400)),
        ("2026-11-29 10:00:01", Some(1_795_946_401)),
        ("2026-11-29T12:00+02:00", Some(1_795_946_400)),
        ("2026-11-29", Some(1_795_910_400)),
        ("2026-11", None),
        ("1234567", None),
        ("release-2026-11-29", None),
    ] {
        assert_eq!(parse_time(text).map(|time| time.as_second()), seconds, "{text}");
    }
}

#[test]
fn what_git_rev_parse_understands_is_understood_as_git_does() {
    let repo = Repo::new();
    repo.commit_file("a", "1");
    repo.git(&["tag", "-a", "-m", "annotated", "v1"]);
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.commit_file("b", "fix: the sluice");
    repo.git(&["checkout", "-q", "main"]);
    repo.commit("mend the wheel");
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    repo.commit_file("a", "2");
    repo.git(&["update-ref", "refs/remotes/origin/main", "HEAD~1"]);
    repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
    repo.git(&["config", "remote.origin.url", "nowhere"]);
    repo.git(&["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
    repo.git(&["branch", "-q", "--set-upstream-to=origin/main", "main"]);
    repo.git(&["checkout", "-q", "side"]);
    repo.git(&["checkout", "-q", "main"]);
    let source = source(&repo);
    let described = repo.git(&["describe", "--long", "HEAD"]);
    let revisions = [
        "HEAD^",
        "HEAD~2",
        "@",
        "@~1",
        "@^^",
        "HEAD^1",
        "HEAD~1^2",
        "HEAD~1^2~1",
        "main^0",
        "v1^{commit}",
        "v1^{}",
        "v1~0",
        "HEAD@{0}",
        "HEAD@{1}",
        "main@{1}",
        "@{1}",
        "@{-1}",
        "main@{upstream}",
        "@{u}",
        "main@{now}",
        "HEAD@{yesterday}",
        ":/wheel",
        "main^{/wheel}",
        "origin",
        "origin/main",
        "refs/heads/side",
        "heads/side~1",
        &described,
    ];
    for rev in revisions {
        let as_git = repo.git(&["rev-parse", rev]).parse::<CommitId>().unwrap();
        assert_eq!(source.resolve(rev).ok(), Some(as_git), "{rev}");
    }
    for rev in ["main..side", "main...side", "^main", "main^!", "main^@", "main^-", "HEAD@{1}..", "..main"] {
        let error = source.resolve(rev).unwrap_err();
        assert!(matches!(error, GitError::SeveralCommits { .. }), "{rev}: {error}");
    }
    for rev in ["main:a", "main^{tree}", "main^3", "main~99^2", "@{7}", "nothing@{u}", "v9-1-gabcdef0", "main^{/zzz}"] {
        let error = source.resolve(rev).unwrap_err();
        assert!(matches!(error, GitError::NoRevision { .. }), "{rev}: {error}");
    }
}

#[test]
fn a_branch_that_is_called_like_a_hash_is_taken_as_git_does_or_refused() {
    let repo = Repo::new();
    let first = repo.commit_file("a", "1");
    let second = repo.commit_file("a", "2");
    let (seven, four) = (&first.to_string()[..7], &first.to_string()[..4]);
    repo.git(&["branch", seven]);
    repo.git(&["branch", four]);
    repo.git(&["branch", "2024"]);
    repo.git(&["tag", "2026-01-02"]);
    let source = source(&repo);
    let error = source.resolve(seven).unwrap_err().to_string();
    assert!(error.contains(&format!("refs/heads/{seven} ({second})")) && error.contains(&first.to_string()), "{error}");
    assert!(source.resolve(&format!("{seven}~1")).is_err(), "nor is anything counted from it");
    for rev in [four, "2024", "2026-01-02", &format!("heads/{seven}")] {
        assert_eq!(source.resolve(rev).ok(), Some(second), "{rev}");
    }
    assert_eq!(source.resolve(&first.to_string()).ok(), Some(first));
    repo.git(&["branch", "-f", seven, &first.to_string()]);
    assert_eq!(source.resolve(seven).ok(), Some(first), "both mean the same");
}

//! Work trees against git itself: what a look finds is what `git add -A` would commit.

use super::*;
use crate::watch::testing::Repo;
use crate::watch::{Content, Contents, FileMode};
use std::time::Duration;

fn watcher(repo: &Repo) -> WorktreeWatcher {
    let source = GitSource::open(repo.path()).unwrap();
    WorktreeWatcher::start(&source, &repo.path().join(".tidemill"), BTreeMap::new(), Pace::default()).unwrap()
}

/// Returns what `git add -A` would commit, without touching the repository's own index; nothing if git fails.
fn would_commit(repo: &Repo) -> Option<Files> {
    let copy = repo.beside("index");
    // With its times: they tell which files may have changed in the tick in which it was written. In a sparse checkout git
    // reports the files that it leaves out, and adds the rest.
    let script = r#"rm -f "$GIT_INDEX_FILE"; if [ -e .git/index ]; then cp -p .git/index "$GIT_INDEX_FILE"; fi
        { git add -A -- . ':!.tidemill' ':!nested' || [ "$(git config core.sparseCheckout)" = true ]; } && git write-tree"#;
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .envs([("GIT_INDEX_FILE", copy.as_os_str()), ("GIT_CONFIG_GLOBAL", OsStr::new("/dev/null"))])
        .current_dir(repo.path())
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| repo.ls_tree(tree.trim().parse().unwrap()))
}

/// Runs a shell script in the work tree.
fn run(repo: &Repo, script: &str) -> bool {
    let author = [("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_NAME", "a")];
    let output = std::process::Command::new("sh")
        .args(["-ec", script])
        .envs(author)
        .envs([("GIT_COMMITTER_EMAIL", "a@b"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .current_dir(repo.path())
        .output()
        .unwrap();
    output.status.success()
}

/// Compares the result of a look with what git would commit, after a script that must succeed.
fn check(watcher: &mut WorktreeWatcher, repo: &Repo, script: &str) {
    assert!(run(repo, script), "{script}");
    watcher.collect().unwrap_or_else(|error| panic!("{script}: {error}"));
    assert_eq!(Some(watcher.files()), would_commit(repo).as_ref(), "{script}");
}

#[test]
fn a_look_finds_what_git_would_commit() {
    let repo = Repo::new();
    repo.write(".gitignore", "ignored/\n*.log\n");
    for path in ["kept.txt", "edited.txt", "deleted.txt", "link.txt", "folder/a.txt", "same.txt"] {
        repo.write(path, &format!("{path} as committed\n"));
    }
    repo.write("ignored/tracked.txt", "tracked although ignored\n");
    repo.git(&["add", "-f", "ignored/tracked.txt"]);
    repo.commit("first");
    let mut watcher = watcher(&repo);
    let first = watcher.collect().unwrap();
    assert!(first.is_clean && first.head.is_some_and(|head| head.id == repo.id("HEAD")));
    assert_eq!(Some(watcher.files()), would_commit(&repo).as_ref());

    repo.write("edited.txt", "edited\n");
    repo.write("same.txt", "same.txt as committed\n");
    repo.write("ignored/tracked.txt", "edited although ignored\n");
    repo.write("ignored/other.txt", "ignored\n");
    repo.write("new/deep/er.txt", "new\n");
    repo.write("new.log", "ignored\n");
    repo.write(".tidemill/store", "the tracker's own\n");
    std::fs::remove_file(repo.path().join("deleted.txt")).unwrap();
    std::fs::remove_file(repo.path().join("link.txt")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", repo.path().join("link.txt")).unwrap();
    std::fs::remove_dir_all(repo.path().join("folder")).unwrap();
    repo.write("folder", "a file now\n");
    repo.git(&["init", "-q", "nested"]);
    repo.write("nested/x.txt", "another repository's\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    let batch = watcher.collect().unwrap();
    assert_eq!(Some(watcher.files()), would_commit(&repo).as_ref());
    assert!(!batch.is_clean);
    let paths: Vec<String> = batch.changes.iter().map(|change| change.path.to_string()).collect();
    let changed = ["deleted.txt", "edited.txt", "folder", "folder/a.txt", "ignored/tracked.txt", "link.txt"];
    assert_eq!(paths, [&changed[..], &["new/deep/er.txt", "staged.txt"]].concat());
    let edited = watcher.files()[&DocumentPath::from("edited.txt")].content;
    assert_eq!(watcher.contents().read(edited, 100).unwrap(), Content::Bytes(b"edited\n".to_vec()));
    assert_eq!(watcher.collect().unwrap().changes, []);

    repo.git(&["add", "-A", "--", ".", ":!.tidemill", ":!nested"]);
    repo.git(&["commit", "-q", "-m", "second"]);
    let batch = watcher.collect().unwrap();
    assert_eq!(batch.changes, [], "a commit of what was there moves nothing");
    assert!(batch.is_clean);
}

/// A repository whose commit holds files in three folders.
fn three_folders() -> Repo {
    let repo = Repo::new();
    for path in ["a.txt", "b.txt", "core/a.txt", "core/deep/b.txt", "far/a.txt", "far/deep/b.txt", "far/deep/er/c.txt"]
    {
        repo.write(path, &format!("{path} as committed\n"));
    }
    repo.commit("first");
    repo
}

#[test]
fn entries_whose_bits_say_so_are_as_in_the_index_whatever_is_on_disk() {
    for bit in ["--skip-worktree", "--assume-unchanged"] {
        let repo = three_folders();
        let mut watcher = watcher(&repo);
        check(&mut watcher, &repo, &format!("git update-index {bit} a.txt b.txt core/a.txt far/a.txt; rm a.txt"));
        check(&mut watcher, &repo, "echo edited > b.txt");
        check(&mut watcher, &repo, "rm -r core far; echo a file > far");
        check(&mut watcher, &repo, &format!("git update-index --no-{} b.txt", &bit[2..]));
        let repo = three_folders();
        let mut watcher = self::watcher(&repo);
        let staged = format!("echo staged > a.txt; git add a.txt; git update-index {bit} a.txt; rm a.txt");
        check(&mut watcher, &repo, &staged);
        assert!(!watcher.collect().unwrap().is_clean);
    }
}

#[test]
fn a_sparse_checkout_is_what_its_index_holds() {
    for set in [
        "git sparse-checkout set --no-sparse-index core",
        "git sparse-checkout set --sparse-index core",
        "git sparse-checkout set --sparse-index far/deep",
        "git sparse-checkout set --no-cone '/*' '!/far/*' '/far/deep/er/' '!b.txt'",
    ] {
        let repo = three_folders();
        let mut watcher = watcher(&repo);
        check(&mut watcher, &repo, set);
        assert_eq!(watcher.collect().unwrap().changes, [], "{set}");
        assert_eq!(watcher.files().len(), 7, "{set}: nothing is deleted");
        check(&mut watcher, &repo, "echo edited > a.txt; mkdir -p core; echo new > core/new.txt");
        // Outside: neither an edit nor a new file counts.
        check(&mut watcher, &repo, "mkdir -p far/deep/er; echo edited > far/a.txt; echo new > far/deep/er/new.txt");
        check(&mut watcher, &repo, "git config sparse.expectFilesOutsideOfPatterns true; echo edited > far/deep/b.txt");
        check(&mut watcher, &repo, "rm a.txt; rm -f .git/info/sparse-checkout");
        check(
            &mut watcher,
            &repo,
            "git config --unset sparse.expectFilesOutsideOfPatterns; git sparse-checkout disable",
        );
        check(&mut watcher, &repo, "rm -r far");
    }
}

#[test]
fn every_form_of_an_index_is_read() {
    for form in [
        "git update-index --split-index; echo two > a.txt; git add a.txt; git rm -q --cached b.txt; echo new > c; git add c",
        "git update-index --index-version 4",
        "git update-index --index-version 3; git add -N far/a.txt; echo x > n; git add -N n; echo y > m; git add -N m; rm m",
        "git update-index --untracked-cache; git status > /dev/null",
        "git -c index.skipHash=true update-index --force-write-index; git -c index.skipHash=true add a.txt",
        "git -c index.threads=2 -c feature.manyFiles=true add .; git read-tree HEAD",
        "rm .git/index",
        "git rm -qr --cached .",
    ] {
        let repo = three_folders();
        let mut watcher = watcher(&repo);
        check(&mut watcher, &repo, form);
        check(&mut watcher, &repo, "echo edited > far/deep/b.txt; rm -f core/a.txt; echo new > core/new.txt");
        check(&mut watcher, &repo, "git add -A");
        check(&mut watcher, &repo, "git commit -qm second");
        assert!(watcher.collect().unwrap().is_clean, "{form}");
    }
    let repo = three_folders();
    std::fs::write(repo.path().join(".git/index"), "DIRC and nothing that follows it").unwrap();
    let error = watcher(&repo).collect().unwrap_err().to_string();
    assert!(error.starts_with("cannot read the index") && error.contains("git status"), "{error}");
}

#[test]
fn both_sides_of_a_conflict_are_the_file_that_is_on_disk() {
    let repo = three_folders();
    let mut watcher = watcher(&repo);
    let branch =
        "git checkout -qb other; echo theirs > a.txt; git rm -q b.txt; git commit -qam theirs; git checkout -q main";
    check(&mut watcher, &repo, &format!("{branch}; echo ours > a.txt; echo ours > b.txt; git commit -qam ours"));
    check(&mut watcher, &repo, "git merge -q other || [ -n \"$(git ls-files -u)\" ]");
    check(&mut watcher, &repo, "rm a.txt; echo merged > b.txt");
}

#[test]
fn bytes_are_named_as_git_would_store_them() {
    for settings in
        ["true", "git config core.autocrlf true", "git config core.autocrlf input", "git config core.eol crlf"]
    {
        let repo = three_folders();
        let mut watcher = watcher(&repo);
        check(&mut watcher, &repo, settings);
        check(
            &mut watcher,
            &repo,
            r"printf 'one\r\ntwo\r\n' > a.txt; printf 'one\r\ntwo\n' > new.txt; printf 'a\r\0b\r\n' > binary",
        );
        let attributes = [
            "* text=auto",
            "*.txt text\n*.bin -text",
            "*.txt eol=crlf",
            "*.txt text=auto eol=lf",
            "*.txt crlf=input",
            "*.txt ident",
            "*.txt text ident",
            "u.* working-tree-encoding=UTF-16LE\nv.* text working-tree-encoding=UTF-16",
            "*.txt working-tree-encoding=ISO-8859-1 -text",
        ];
        for attributes in attributes {
            check(&mut watcher, &repo, &format!("printf '{attributes}\n' > .gitattributes"));
            check(&mut watcher, &repo, r"printf 'x $Id: 0123 $ y\r\n$Id$\r\n' > b.txt; printf 'x\r\n' > core/new.txt");
            check(&mut watcher, &repo, r"printf 'a\0b\0\r\0\n\0' > u.md; printf '\376\377\0a\0\r\0\n' > v.md");
            let found = watcher.files().clone();
            for state in found.values().filter(|state| state.mode == FileMode::Regular) {
                let read = watcher.contents().read(state.content, 1000);
                // Unchanged files are read from the repository.
                let Ok(Content::Bytes(bytes)) = read else { continue };
                assert_eq!(super::super::directory::hash_bytes(&bytes), state.content);
            }
        }
        assert!(run(&repo, "git add -A; git commit -qm second"));
        assert!(watcher.collect().unwrap().is_clean);
    }
}

#[test]
fn contents_that_git_would_convert_are_found_again_on_disk() {
    let repo = three_folders();
    repo.write(".gitattributes", "* text=auto\n");
    repo.write("a.txt", "one\r\ntwo\r\n");
    let mut watcher = watcher(&repo);
    watcher.collect().unwrap();
    let content = watcher.files()[&DocumentPath::from("a.txt")].content;
    watcher.readings.forget_bytes();
    assert_eq!(watcher.contents().read(content, 100).unwrap(), Content::Bytes(b"one\ntwo\n".to_vec()));
}

#[test]
fn links_and_folders_in_place_of_files_are_as_git_has_them() {
    let repo = three_folders();
    let mut watcher = watcher(&repo);
    check(&mut watcher, &repo, "rm a.txt; mkdir a.txt; echo inside > a.txt/inside");
    check(&mut watcher, &repo, "rm -r far; ln -s core far; ln -s nowhere b.lnk; git add b.lnk");
    check(&mut watcher, &repo, "git config core.symlinks false; rm b.lnk; printf elsewhere > b.lnk");
    check(&mut watcher, &repo, "git config core.fileMode false; chmod +x b.txt; chmod -x core/a.txt");
    check(&mut watcher, &repo, "rm b.txt; mkfifo b.txt 2>/dev/null; rm b.txt; echo back > b.txt");
}

#[test]
fn submodules_stand_at_the_commit_that_is_checked_out() {
    let repo = three_folders();
    let mut watcher = watcher(&repo);
    let add = "git init -q ../module; git -C ../module commit -q --allow-empty -m one; \
               git -c protocol.file.allow=always submodule --quiet add ../module sub; git commit -qam sub";
    check(&mut watcher, &repo, add);
    check(&mut watcher, &repo, "git -C sub commit -q --allow-empty -m two; echo x > sub/x");
    check(&mut watcher, &repo, "rm -rf sub; mkdir sub");
    check(&mut watcher, &repo, "rm -rf sub");
}

#[test]
fn a_path_of_the_index_that_leads_out_is_no_file() {
    let repo = three_folders();
    std::fs::write(repo.beside("secret"), "secret\n").unwrap();
    let blob = repo.git(&["hash-object", "-w", "a.txt"]);
    // As long as the path that git lets in, which is then written over.
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},ab/secret")]);
    let index = std::fs::read(repo.path().join(".git/index")).unwrap();
    let at = index.windows(9).position(|bytes| bytes == b"ab/secret").unwrap();
    let mut forged = index.clone();
    forged[at..at + 9].copy_from_slice(b"../secret");
    let end = forged.len() - 20;
    forged[end..].fill(0);
    std::fs::write(repo.path().join(".git/index"), forged).unwrap();
    let mut watcher = watcher(&repo);
    watcher.collect().unwrap();
    assert_eq!(watcher.files().len(), 7, "{:?}", watcher.files());
}

#[test]
fn stores_in_the_work_tree_are_left_out_whoever_writes_to_them() {
    let repo = three_folders();
    let mut watcher = watcher(&repo);
    watcher.collect().unwrap();
    let before = watcher.files().clone();
    repo.write("made/.other/FORMAT", "tidemill store format 3\n");
    repo.write("made/.other/memo/data.mdb", "rows\n");
    watcher.collect().unwrap();
    assert_eq!((watcher.files(), watcher.left_out().stores), (&before, 1));
    // A file that was committed by mistake stays as committed.
    repo.git(&["add", "-f", "made"]);
    repo.git(&["commit", "-q", "-m", "a store"]);
    watcher.collect().unwrap();
    let committed = watcher.files().clone();
    assert_eq!(committed.len(), before.len() + 2);
    repo.write("made/.other/memo/data.mdb", "other rows\n");
    assert_eq!(watcher.collect().unwrap().changes, []);
    assert_eq!(*watcher.files(), committed);
}

#[test]
fn random_edits_and_bits_always_lead_to_what_git_would_commit() {
    const PATHS: [&str; 9] =
        ["a.txt", "b.txt", "core/a.txt", "core/new", "far", "far/a.txt", "far/deep/b.txt", "far/deep/er", "new/x"];
    const STEPS: [&str; 24] = [
        "mkdir -p $(dirname P); echo N > P",
        "mkdir -p $(dirname P); printf 'N\\r\\nx\\r\\n' > P",
        "rm -rf P",
        "rm -rf P; mkdir -p P; echo N > P/inside",
        "rm -rf P; mkdir -p $(dirname P); ln -s Q P",
        "git add P",
        "git add -N P",
        "git rm -qr --cached P",
        "git update-index --skip-worktree P",
        "git update-index --no-skip-worktree P",
        "git update-index --assume-unchanged P",
        "git update-index --no-assume-unchanged P",
        "git add -A; git commit -qm N",
        "git checkout -q -f HEAD -- .",
        "git stash -q",
        "git sparse-checkout set --no-sparse-index core far/deep",
        "git sparse-checkout set --sparse-index core",
        "git sparse-checkout set --no-cone '/*' '!far/deep' 'a.txt'",
        "git sparse-checkout disable",
        "git update-index --split-index",
        "git update-index --index-version 4",
        "printf '* text=auto\\n' > .gitattributes",
        "printf 'new/\\n*.log\\n/far/*\\n!/far/deep\\n' > .gitignore",
        "git config core.autocrlf input",
    ];
    let (mut compared, mut random) = (0, 0x2545_f491_4f6c_dd1d_u64);
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % 1_000_003).unwrap() % below
    };
    for _ in 0..10 {
        let repo = three_folders();
        let mut watcher = watcher(&repo);
        let mut story = Vec::new();
        for number in 0..24 {
            let (step, path, other) = (STEPS[next(STEPS.len())], PATHS[next(PATHS.len())], PATHS[next(PATHS.len())]);
            let script = step.replace('P', path).replace('Q', other).replace('N', &number.to_string());
            // Git refuses many of them in the current state; the part that it did gives a state like any other.
            story.push((run(&repo, &script), script));
            if number % 3 != 2 {
                continue;
            }
            if let Some(expected) = would_commit(&repo) {
                watcher.collect().unwrap_or_else(|error| panic!("{story:#?}: {error}"));
                assert_eq!(*watcher.files(), expected, "{story:#?}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 60, "only {compared} states could be compared");
}

#[test]
fn line_endings_of_the_checkout_change_nothing() {
    let repo = Repo::new();
    repo.write(".gitattributes", "*.txt text eol=crlf\n");
    repo.write("a.txt", "one\ntwo\n");
    repo.commit("first");
    std::fs::remove_file(repo.path().join("a.txt")).unwrap();
    repo.git(&["checkout", "--", "a.txt"]);
    assert_eq!(std::fs::read(repo.path().join("a.txt")).unwrap(), b"one\r\ntwo\r\n");
    assert!(watcher(&repo).collect().unwrap().is_clean);
}

#[test]
fn a_repository_without_a_commit_has_its_files_and_a_bare_one_is_refused() {
    let repo = Repo::new();
    repo.write("a.txt", "1");
    let mut watcher = watcher(&repo);
    let batch = watcher.collect().unwrap();
    assert_eq!((batch.changes.len(), batch.head, batch.is_clean), (1, None, false));
    let bare = Repo::with(&["init", "-q", "--bare", "repo"]);
    let source = GitSource::open(bare.path()).unwrap();
    let refused = WorktreeWatcher::start(&source, bare.path(), BTreeMap::new(), Pace::default());
    assert!(refused.err().unwrap().to_string().contains("has no work tree"));
}

#[tokio::test]
async fn a_save_is_seen_within_a_second_also_in_a_folder_just_made() {
    let repo = Repo::new();
    repo.commit_file("src/a.txt", "1");
    let mut watcher = watcher(&repo);
    watcher.collect().unwrap();
    for path in ["src/a.txt", "made/just/now.txt", "made/just/now.txt", "src/b.txt"] {
        repo.write(path, &format!("saved at {:?}", Instant::now()));
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            tokio::time::timeout(deadline.saturating_duration_since(Instant::now()), watcher.changed())
                .await
                .unwrap_or_else(|_| panic!("the save of {path} was not seen"));
            let batch = watcher.collect().unwrap();
            if batch.changes.iter().any(|change| change.path.as_bytes() == path.as_bytes()) {
                break;
            }
        }
    }
}

#[test]
fn a_repository_or_a_work_tree_that_is_gone_is_an_error_and_all_files_gone_at_once_are_held_back() {
    let repo = Repo::new();
    for path in ["a.txt", "b.txt", "c.txt"] {
        repo.write(path, path);
    }
    repo.commit("first");
    let mut watcher = watcher(&repo);
    watcher.collect().unwrap();
    let known = watcher.files().clone();
    std::fs::rename(repo.path().join(".git/objects"), repo.beside("objects")).unwrap();
    assert!(watcher.collect().is_err());
    std::fs::rename(repo.beside("objects"), repo.path().join(".git/objects")).unwrap();
    std::fs::rename(repo.path(), repo.beside("away")).unwrap();
    assert!(watcher.collect().is_err());
    std::fs::rename(repo.beside("away"), repo.path()).unwrap();
    assert!(watcher.collect().unwrap().changes.is_empty());
    for path in ["a.txt", "b.txt", "c.txt"] {
        std::fs::remove_file(repo.path().join(path)).unwrap();
    }
    assert!(watcher.collect().unwrap().changes.is_empty());
    assert_eq!((watcher.files(), watcher.looks().doubt.is_some()), (&known, true));
    // A file that is back proves that the disk is there.
    repo.write("a.txt", "a.txt");
    assert_eq!(watcher.collect().unwrap().changes.len(), 2);
    assert_eq!(watcher.looks().doubt, None);
}

#[test]
fn what_editors_leave_counts_only_where_git_knows_it() {
    let repo = Repo::new();
    repo.write("kept.orig", "committed on purpose\n");
    repo.commit("first");
    let mut watcher = watcher(&repo);
    watcher.collect().unwrap();
    repo.write("kept.orig", "edited\n");
    repo.write("left.rs~", "a backup\n");
    repo.write("added.bak", "staged on purpose\n");
    repo.git(&["add", "added.bak"]);
    let batch = watcher.collect().unwrap();
    let changed: Vec<String> = batch.changes.iter().map(|change| change.path.display().into_owned()).collect();
    assert_eq!(changed, ["added.bak", "kept.orig"]);
}

//! Promises of directory sources, against the disk and against git's own tree hash.

mod live;
mod unseen;

use super::*;
use crate::watch::testing::Repo;
use crate::watch::{Content, Contents, FileMode, ReadError};
use dataflows::data::{ContentId, DocumentPath};
use snapshots::CommitId;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn open(path: &Path) -> DirectorySource {
    DirectorySource::open(path, &DirectoryOptions::default()).unwrap()
}

fn paths(source: &DirectorySource) -> Vec<String> {
    source.scan().unwrap().files.keys().map(|path| path.display().into_owned()).collect()
}

/// Makes a folder with files; a text that starts with `->` makes a link.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("->") {
            Some(target) => symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    folder
}

#[test]
fn what_editors_leave_is_no_file_unless_an_ignore_file_takes_it_in() {
    let folder = folder(&[
        ("notes.md", "saved"),
        ("notes.md~", "as it was before"),
        ("#notes.md#", "not saved yet"),
        (".#notes.md", "->somebody@somewhere"),
        ("a/.notes.md.swp", "swapped"),
        ("4913", "a test of vim's"),
        ("old.bak", "a backup"),
        ("kept.bak", "taken in"),
        (".ignore", "!kept.bak\n"),
    ]);
    let source = open(folder.path());
    assert_eq!(paths(&source), [".ignore", "kept.bak", "notes.md"]);
    let mut look = source.look();
    for (path, expected) in [("notes.md~", 0), ("kept.bak", 1), ("a/.notes.md.swp", 0)] {
        let (scan, _) = look.at(&path.into(), &mut |_| {}).unwrap();
        assert_eq!(scan.files.len(), expected, "a look at {path} says what a scan says");
    }
    let why = source.why_not(&"old.bak".into()).unwrap();
    assert_eq!(
        why,
        "old.bak is what an editor leaves (`*.bak`); a rule with `exclude = false` takes it in, or a line `!old.bak` in .ignore"
    );
}

#[test]
fn a_rule_takes_in_what_an_editor_left_and_the_rest_is_counted() {
    let folder = folder(&[("a.md", "saved"), ("a.md~", "before"), ("old.bak", "kept"), ("x/.a.md.swp", "swapped")]);
    let rules = "[[rule]]\nname = 'backups'\nmatch = ['*.bak']\nlike = 'text'\nexclude = false\n\
                 [[rule]]\nname = 'all'\nmatch = ['**']\nlike = 'text'\n";
    let source = open(folder.path()).with_rules(Arc::new(Rules::parse(rules).unwrap()));
    assert_eq!(paths(&source), ["a.md", "old.bak"], "a rule that merely matches takes nothing in");
    assert_eq!(source.why_not(&"old.bak".into()).as_deref().map(|why| why.contains("editor")), Some(false));
    let mut watcher = DirectoryWatcher::start(&source, std::collections::BTreeMap::new(), Pace::default());
    watcher.collect().unwrap();
    assert_eq!(watcher.left_out(), crate::watch::LeftOut { stores: 0, editors: 2 });
}

/// Returns the contents of a directory's files, by path, as its readers give them.
fn contents(source: &DirectorySource) -> Vec<(String, String)> {
    let contents = source.contents();
    let read = |content| match contents.read(content, 1 << 20).unwrap() {
        Content::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    let files = source.scan().unwrap().files.into_iter();
    files.map(|(path, state)| (path.display().into_owned(), read(state.content))).collect()
}

#[test]
fn a_working_tree_encoding_gives_the_contents_that_git_would_store() {
    let repo = Repo::new();
    let (chinese, wide) = (b"\xD7\xC5\xC9\xAB\n", b"\xFF\xFEh\0i\0\n\0");
    for (path, bytes) in [("a.txt", &chinese[..]), ("sub/b.txt", chinese), ("sub/c.txt", wide), ("d.md", chinese)] {
        repo.write(path, "");
        fs::write(repo.path().join(path), bytes).unwrap();
    }
    repo.write(".gitattributes", "[attr]gb working-tree-encoding=gbk\n*.txt gb\n");
    repo.write("sub/.gitattributes", "c.txt working-tree-encoding=UTF-16\n");
    let source = open(repo.path());
    repo.git(&["add", "-A"]);
    let written = repo.git(&["write-tree"]);
    assert_eq!(tree_hash(&source.scan().unwrap().files).to_string(), written.trim());
    let of = |source: &DirectorySource, path: &str| {
        contents(source).into_iter().find(|(name, _)| name == path).map(|(_, text)| text).unwrap()
    };
    assert_eq!(["a.txt", "sub/b.txt", "sub/c.txt"].map(|path| of(&source, path)), ["着色\n", "着色\n", "hi\n"]);
    source.readings.forget_bytes();
    assert_eq!(of(&source, "sub/b.txt"), "着色\n", "from disk as from memory");
    repo.write(".gitattributes", "a.txt working-tree-encoding=gbk\n");
    let fresh = open(repo.path());
    assert_eq!(source.scan().unwrap().files, fresh.scan().unwrap().files, "a scan says what one from nothing says");
    let mut look = source.look();
    let (scan, _) = look.at(&"sub/b.txt".into(), &mut |_| {}).unwrap();
    assert_eq!(scan.files[&"sub/b.txt".into()], fresh.scan().unwrap().files[&"sub/b.txt".into()]);
}

#[test]
fn a_scan_names_the_tree_that_git_would_write() {
    let repo = Repo::new();
    for (path, text) in [
        ("README.md", "hello\n"),
        ("a.txt", ""),
        ("a/b/c.txt", "deep"),
        ("a-b/x", "between a and a/"),
        ("a0", "behind a/"),
        ("a/名前 🦀", "names"),
        (".github/workflow.yml", "hidden"),
        (".gitignore", "/target\n*.log\n!keep.log\n"),
        ("target/out", "ignored"),
        ("x.log", "ignored"),
        ("keep.log", "negated"),
        ("a/.gitignore", "secret\n!*.log\n"),
        ("a/secret", "ignored"),
        ("a/y.log", "re-included by the nearer file"),
    ] {
        repo.write(path, text);
    }
    repo.git(&["add", "-A"]);
    let written = repo.git(&["write-tree"]);
    let source = open(repo.path());
    let files = source.scan().unwrap().files;
    assert_eq!(tree_hash(&files).to_string(), written);
    let commit = repo.commit("all");
    assert_eq!(files, repo.ls_tree(commit), "a directory and a repository have the same documents");
}

#[test]
fn links_and_executable_bits_do_not_change_the_name_of_a_state() {
    let plain = folder(&[("a", "1"), ("folder/b", "2")]);
    let linked = folder(&[("a", "1"), ("folder/b", "2"), ("link", "->a"), ("loop", "->."), ("folder/out", "->/etc")]);
    fs::set_permissions(linked.path().join("a"), fs::Permissions::from_mode(0o755)).unwrap();
    let files = open(linked.path()).scan().unwrap().files;
    assert_eq!(tree_hash(&files), tree_hash(&open(plain.path()).scan().unwrap().files));
    let links: Vec<_> = files.iter().filter(|(_, state)| state.mode == FileMode::Symlink).collect();
    assert_eq!(links.len(), 3, "links are counted and never followed");
    assert_eq!(files.len(), 5);
}

#[test]
fn ignore_files_count_without_a_repository_and_those_above_do_not() {
    let folder = folder(&[
        (".gitignore", "inner\n"),
        ("inner/.ignore", "*.tmp\n"),
        ("inner/a.tmp", ""),
        ("inner/b", ""),
        ("inner/.git/config", ""),
        ("inner/sub/.git", "gitdir: elsewhere"),
        ("inner/sub/c", ""),
    ]);
    assert_eq!(paths(&open(folder.path())), [".gitignore"]);
    assert_eq!(paths(&open(&folder.path().join("inner"))), [".ignore", "b", "sub/c"]);
}

#[test]
fn own_globs_hidden_names_and_the_store_are_left_out() {
    let folder = folder(&[
        ("docs/a.md", ""),
        ("docs/b.txt", ""),
        ("docs/old/c.md", ""),
        ("src/.hidden/d.md", ""),
        ("src/e.rs", ""),
        (".tidemill/texts/f.md", ""),
    ]);
    let check = |options: DirectoryOptions, expected: &[&str]| {
        assert_eq!(paths(&DirectorySource::open(folder.path(), &options).unwrap()), expected);
    };
    let list = |globs: &[&str]| globs.iter().map(|&glob| glob.to_owned()).collect::<Vec<_>>();
    let store = Some(folder.path().join(".tidemill"));
    let all = DirectoryOptions { store, ..DirectoryOptions::default() };
    check(all.clone(), &["docs/a.md", "docs/b.txt", "docs/old/c.md", "src/.hidden/d.md", "src/e.rs"]);
    check(
        DirectoryOptions { include: list(&["*.md"]), exclude: list(&["old/"]), ..all.clone() },
        &["docs/a.md", "src/.hidden/d.md"],
    );
    check(
        DirectoryOptions { include: list(&["/docs/"]), ..all.clone() },
        &["docs/a.md", "docs/b.txt", "docs/old/c.md"],
    );
    check(DirectoryOptions { hidden: Hidden::Skip, exclude: list(&["*.md"]), ..all }, &["docs/b.txt", "src/e.rs"]);
    let bad = DirectoryOptions { include: list(&["{a"]), ..DirectoryOptions::default() };
    assert!(
        matches!(DirectorySource::open(folder.path(), &bad), Err(DirectoryError::Glob { glob, .. }) if glob == "{a")
    );
}

#[test]
fn what_is_no_file_is_left_alone() {
    let folder = folder(&[("a", "1")]);
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    assert_eq!(paths(&open(folder.path())), ["a"]);
}

#[test]
fn a_root_that_is_gone_is_an_error_and_no_deletion() {
    let folder = folder(&[("a", "1")]);
    let source = open(folder.path());
    fs::remove_dir_all(folder.path()).unwrap();
    assert!(matches!(source.scan(), Err(DirectoryError::Root { .. })));
    assert!(matches!(
        DirectorySource::open(folder.path(), &DirectoryOptions::default()),
        Err(DirectoryError::Root { .. })
    ));
}

#[test]
fn contents_hash_to_their_id_or_are_refused() {
    let folder = folder(&[("a", "one"), ("b", "one"), ("large", "0123456789")]);
    let source = open(folder.path());
    let files = source.scan().unwrap().files;
    let content = |path: &str| files[&DocumentPath::from(path)].content;
    let contents = source.contents();
    assert_eq!(contents.read(content("a"), 3).unwrap(), Content::Bytes(b"one".to_vec()));
    assert_eq!(contents.read(content("large"), 9).unwrap(), Content::TooLarge(10));
    let unknown = ContentId::from_bytes([1; 20]);
    assert!(matches!(contents.read(unknown, 9), Err(ReadError::Missing(id)) if id == unknown));
}

#[test]
fn contents_that_left_the_stash_are_read_again_and_checked() {
    let large = "x".repeat(usize::try_from(readings::STASH_FILE_BYTES).unwrap() + 1);
    let folder = folder(&[("a", &large), ("b", &large)]);
    let source = open(folder.path());
    let content = source.scan().unwrap().files[&DocumentPath::from("a")].content;
    let read = || source.contents().read(content, u64::MAX);
    assert_eq!(read().unwrap(), Content::Bytes(large.clone().into_bytes()));
    fs::write(folder.path().join("a"), "changed").unwrap();
    assert_eq!(read().unwrap(), Content::Bytes(large.clone().into_bytes()), "the other place still holds it");
    fs::remove_file(folder.path().join("b")).unwrap();
    assert!(matches!(read(), Err(ReadError::Changed(id)) if id == content));
    assert_eq!(source.contents().read(content, 9).unwrap(), Content::TooLarge(large.len() as u64));
}

#[test]
fn a_rewrite_of_the_same_size_within_the_clocks_tick_is_seen() {
    let folder = folder(&[("a", "0000")]);
    let source = open(folder.path());
    let path = folder.path().join("a");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    for number in 1..20 {
        source.scan().unwrap();
        fs::write(&path, format!("{number:04}")).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        let content = source.scan().unwrap().files[&DocumentPath::from("a")].content;
        assert_eq!(content, hash::hash_bytes(format!("{number:04}").as_bytes()));
    }
}

#[test]
fn a_file_at_rest_is_not_read_again() {
    let folder = folder(&[("a", "1")]);
    let source = open(folder.path());
    // A file comes to rest when the coarsest tick has passed since its last change.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    let first = source.scan().unwrap();
    let stamp = hash::Stamp::of(&fs::metadata(folder.path().join("a")).unwrap());
    assert_eq!(source.readings.unchanged(&"a".into(), &stamp, None), Some(first.files[&"a".into()].content));
    let told = Some(crate::watch::encoding::DiskEncoding::Utf16ByMark);
    assert_eq!(source.readings.unchanged(&"a".into(), &stamp, told), None, "what is said of its encoding counts too");
    assert_eq!(source.scan().unwrap(), first);
    fs::write(folder.path().join("a"), "2").unwrap();
    assert_ne!(source.scan().unwrap(), first);
}

#[test]
fn bytes_hash_as_git_hashes_them() {
    let id = |text: &[u8]| CommitId::from_bytes(*hash::hash_bytes(text).as_bytes()).to_string();
    assert_eq!(id(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    assert_eq!(id(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

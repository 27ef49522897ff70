//! Files and changes against `git ls-tree`, over random histories and by hand-made trees.

use super::*;
use crate::watch::git::tree::MAX_DEPTH;
use crate::watch::{FileChange, FileMode, FileState, changes};
use dataflows::data::DocumentPath;
use git2::{Repository, Signature};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;

/// Names that go wrong somewhere: order, quoting, encoding.
const NAMES: &[&[u8]] = &[
    b"a",
    b"a.b",
    b"a-",
    b"a0",
    b"A",
    b"a b",
    b"-x",
    b"new\nline",
    b"quo\"te",
    b"\xff\xfe",
    b"tab\t",
    b"\\",
    "\u{e9}".as_bytes(),
    "e\u{301}".as_bytes(),
    "名前".as_bytes(),
    "🦀".as_bytes(),
];

/// One step of a history: an entry is put at a path, removed, or moved.
#[derive(Clone, Debug)]
enum Edit {
    Put { path: Vec<u8>, mode: i32, text: u8 },
    Delete { at: prop::sample::Index },
    Rename { at: prop::sample::Index, to: Vec<u8> },
    ChangeMode { at: prop::sample::Index },
}

type Model = BTreeMap<Vec<u8>, (i32, u8)>;

fn path() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(NAMES), 1..4).prop_map(|names| names.join(&b'/'))
}

fn edit() -> impl Strategy<Value = Edit> {
    let mode = prop::sample::select(vec![0o100_644, 0o100_644, 0o100_755, 0o120_000, 0o160_000]);
    prop_oneof![
        4 => (path(), mode, 0..4_u8).prop_map(|(path, mode, text)| Edit::Put { path, mode, text }),
        1 => any::<prop::sample::Index>().prop_map(|at| Edit::Delete { at }),
        1 => (any::<prop::sample::Index>(), path()).prop_map(|(at, to)| Edit::Rename { at, to }),
        1 => any::<prop::sample::Index>().prop_map(|at| Edit::ChangeMode { at }),
    ]
}

/// Puts an entry even if a file or a whole folder is in the way, which a file system would not allow but a history does.
fn put(model: &mut Model, path: Vec<u8>, entry: (i32, u8)) {
    let below = [path.as_slice(), b"/"].concat();
    model.retain(|other, _| !other.starts_with(&below) && !path.starts_with(&[other.as_slice(), b"/"].concat()));
    model.insert(path, entry);
}

fn apply(model: &mut Model, edit: Edit) {
    let key = |model: &Model, at: prop::sample::Index| {
        (!model.is_empty()).then(|| model.keys().nth(at.index(model.len())).unwrap().clone())
    };
    match edit {
        Edit::Put { path, mode, text } => put(model, path, (mode, text)),
        Edit::Delete { at } => drop(key(model, at).and_then(|key| model.remove(&key))),
        Edit::Rename { at, to } => {
            if let Some(entry) = key(model, at).and_then(|key| model.remove(&key)) {
                put(model, to, entry);
            }
        }
        Edit::ChangeMode { at } => {
            if let Some(entry) = key(model, at).and_then(|key| model.get_mut(&key)) {
                entry.0 = if entry.0 == 0o100_644 { 0o100_755 } else { 0o100_644 };
            }
        }
    }
}

fn write_tree(repository: &Repository, model: &Model) -> Oid {
    let mut builder = repository.treebuilder(None).unwrap();
    let mut folders: BTreeMap<&[u8], Model> = BTreeMap::new();
    for (path, &(mode, text)) in model {
        match path.iter().position(|&byte| byte == b'/') {
            Some(slash) => {
                folders.entry(&path[..slash]).or_default().insert(path[slash + 1..].to_vec(), (mode, text));
            }
            None => {
                // The commit of a submodule is in another repository and need not exist.
                let id = if mode == 0o160_000 {
                    Oid::from_bytes(&[text + 1; 20]).unwrap()
                } else {
                    repository.blob(&[text; 3]).unwrap()
                };
                builder.insert(path.as_slice(), id, mode).unwrap();
            }
        }
    }
    for (name, model) in folders {
        builder.insert(name, write_tree(repository, &model), 0o040_000).unwrap();
    }
    builder.write().unwrap()
}

fn commit_tree(repository: &Repository, tree: Oid) -> CommitId {
    let tree = repository.find_tree(tree).unwrap();
    let who = Signature::new("A", "a@example.org", &git2::Time::new(FIRST_TIME, 0)).unwrap();
    commit_id(repository.commit(None, &who, &who, "step", &tree, &[]).unwrap())
}

fn map(files: Vec<(DocumentPath, FileState)>) -> BTreeMap<DocumentPath, FileState> {
    assert!(files.is_sorted_by(|one, next| one.0 < next.0), "paths ascend");
    files.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_diff_is_the_difference_of_what_git_lists(history in prop::collection::vec(prop::collection::vec(edit(), 1..12), 1..5)) {
        let repo = Repo::new();
        let repository = Repository::open(repo.path()).unwrap();
        let source = source(&repo);
        let mut model = Model::new();
        let mut states = Vec::new();
        for edits in history {
            edits.into_iter().for_each(|edit| apply(&mut model, edit));
            let commit = commit_tree(&repository, write_tree(&repository, &model));
            let listed = repo.ls_tree(commit);
            prop_assert_eq!(&map(source.files(commit).unwrap()), &listed);
            states.push((commit, listed));
        }
        for (from, before) in &states {
            prop_assert_eq!(source.diff(None, *from).unwrap(), changes(&BTreeMap::new(), before));
            for (to, after) in &states {
                prop_assert_eq!(source.diff(Some(*from), *to).unwrap(), changes(before, after));
            }
        }
    }
}

#[test]
fn a_commit_that_only_changes_modes_changes_nothing() {
    let repo = Repo::new();
    let first = repo.commit_file("run.sh", "true");
    repo.git(&["update-index", "--chmod=+x", "run.sh"]);
    repo.git(&["commit", "-q", "-m", "executable"]);
    assert_eq!(source(&repo).diff(Some(first), repo.id("HEAD")).unwrap(), []);
}

#[test]
fn a_file_that_becomes_a_folder_is_one_change_at_each_path() {
    let repo = Repo::new();
    let first = repo.commit_file("a", "1");
    std::fs::remove_file(repo.path().join("a")).unwrap();
    let second = repo.commit_file("a/b", "1");
    let (before, after) = (repo.ls_tree(first), repo.ls_tree(second));
    let state = before[&DocumentPath::from("a")];
    assert_eq!(
        source(&repo).diff(Some(first), second).unwrap(),
        [
            FileChange { path: "a".into(), before: Some(state), after: None },
            FileChange { path: "a/b".into(), before: None, after: after.get(&"a/b".into()).copied() },
        ]
    );
}

/// Writes a tree object unchanged, even if git would refuse it.
fn raw_tree(repository: &Repository, entries: &[(&str, &[u8], Oid)]) -> Oid {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend([mode.as_bytes(), b" ", name, b"\0", id.as_bytes()].concat());
    }
    repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
}

#[test]
fn unsorted_and_doubled_entries_of_old_trees_are_put_in_order() {
    let repo = Repo::new();
    let repository = Repository::open(repo.path()).unwrap();
    let [one, two] = [b"1", b"2"].map(|text| repository.blob(text).unwrap());
    let sorted = raw_tree(&repository, &[("100644", b"a", one), ("100664", b"b", two), ("100644", b"c", one)]);
    let unsorted = raw_tree(
        &repository,
        &[("100644", b"c", one), ("100644", b"a", one), ("100644", b"b", two), ("100644", b"b", two)],
    );
    let (sorted, unsorted) = (commit_tree(&repository, sorted), commit_tree(&repository, unsorted));
    let source = source(&repo);
    assert_eq!(source.files(sorted).unwrap(), source.files(unsorted).unwrap());
    assert_eq!(source.diff(Some(sorted), unsorted).unwrap(), []);
}

#[test]
fn very_deep_trees_are_walked_and_bottomless_ones_refused() {
    let repo = Repo::new();
    let source = source(&repo);
    let files = |folders: usize| {
        let commit = format!("commit refs/heads/deep{folders}\ncommitter C <c> 0 +0000\ndata 0\n");
        repo.import(format!("{commit}M 100644 inline {}file\ndata 4\ndeep\n", "d/".repeat(folders)).as_bytes());
        source.files(repo.id(&format!("deep{folders}")))
    };
    let deep = files(MAX_DEPTH - 1).unwrap();
    assert_eq!(deep[0].0.as_bytes().len(), 2 * (MAX_DEPTH - 1) + 4);
    let error = files(MAX_DEPTH).unwrap_err();
    assert!(
        matches!(error, GitError::TreeTooLarge { id, .. } if id == repo.id(&format!("deep{MAX_DEPTH}"))),
        "{error}"
    );
}

#[test]
fn odd_entries_never_hide_their_siblings() {
    let repo = Repo::new();
    let repository = Repository::open(repo.path()).unwrap();
    let blob = repository.blob(b"x").unwrap();
    let entries: &[(&str, &[u8], Oid)] = &[
        ("100644", b"..", blob),
        ("100644", b".git", blob),
        ("100644", b"a/b", blob),
        ("100644", &[b'l'; 5_000], blob),
        ("100644", b"z", blob),
    ];
    let files = source(&repo).files(commit_tree(&repository, raw_tree(&repository, entries))).unwrap();
    assert!(files.iter().any(|(path, state)| path.as_bytes() == b"z" && state.mode == FileMode::Regular));
    assert!(files.iter().all(|(path, _)| path.as_bytes() != b"a/b"), "no path that a folder could also give");
}

/// Writes ten-way trees of so many levels over one file, and commits the outermost.
fn bomb(repository: &Repository, levels: usize, name: &[u8]) -> CommitId {
    let file = repository.blob(b"x").unwrap();
    let names: Vec<Vec<u8>> = (b'0'..=b'9').map(|digit| [name, &[digit]].concat()).collect();
    let level = |mode: &'static str, id: Oid| {
        let entries: Vec<(&str, &[u8], Oid)> = names.iter().map(|name| (mode, name.as_slice(), id)).collect();
        raw_tree(repository, &entries)
    };
    let tree = (1..levels).fold(level("100644", file), |tree, _| level("40000", tree));
    commit_tree(repository, tree)
}

#[test]
fn a_few_objects_that_name_very_many_paths_are_refused_at_once_and_remembered() {
    let repo = Repo::new();
    let repository = Repository::open(repo.path()).unwrap();
    let source = source(&repo);
    let [nine, small, wordy, folders] = [
        bomb(&repository, 9, b"f"),
        bomb(&repository, 6, b"f"),
        // Few paths, and gigabytes of them.
        bomb(&repository, 5, &[b'w'; 4_000]),
        {
            let empty = raw_tree(&repository, &[]);
            let names: Vec<[u8; 1]> = (b'0'..=b'9').map(|digit| [digit]).collect();
            let level = |id: Oid| {
                let entries: Vec<(&str, &[u8], Oid)> = names.iter().map(|name| ("40000", &name[..], id)).collect();
                raw_tree(&repository, &entries)
            };
            commit_tree(&repository, (0..9).fold(empty, |tree, _| level(tree)))
        },
    ];
    let ordinary = repo.commit_file("a/b.txt", "words");
    let started = std::time::Instant::now();
    for bomb in [nine, small, wordy, folders] {
        for _ in 0..20 {
            for error in [source.files(bomb).unwrap_err(), source.diff(Some(ordinary), bomb).unwrap_err()] {
                assert!(matches!(error, GitError::TreeTooLarge { id, .. } if id == bomb), "{error}");
            }
        }
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(4), "{:?}", started.elapsed());
    assert!(source.diff(Some(nine), small).is_err());
    assert_eq!(source.files(ordinary).unwrap().len(), 1, "the others are read as before");
}

#[test]
fn a_tree_of_very_many_files_is_walked() {
    let repo = Repo::new();
    let repository = Repository::open(repo.path()).unwrap();
    let blob = repository.blob(b"x").unwrap();
    let names: Vec<Vec<u8>> = (0..400).map(|number| format!("name{number:03}").into_bytes()).collect();
    let files: Vec<(&str, &[u8], Oid)> = names.iter().map(|name| ("100644", name.as_slice(), blob)).collect();
    let folder = raw_tree(&repository, &files);
    // The same folder two hundred times, as in converted repositories with tags.
    let folders: Vec<(&str, &[u8], Oid)> = names[..200].iter().map(|name| ("40000", name.as_slice(), folder)).collect();
    let commit = commit_tree(&repository, raw_tree(&repository, &folders));
    assert_eq!(source(&repo).files(commit).unwrap().len(), 80_000);
}

//! A repository, the store that tracks it, and the expectations from git's own plumbing.
//!
//! In: git operations. Out: a panic if the store disagrees with git.

use super::repository::{Listing, Node, Repository, Tree};
use super::tracked::{Fate, Tracked};
use std::collections::{BTreeMap, BTreeSet};
use tidemill::engine::EngineError;

pub(super) const BRANCHES: [&str; 4] = ["main", "topic", "release/0.1", "odd-世界"];
/// One tag shares its name with a branch.
pub(super) const TAGS: [&str; 3] = ["v1", "topic", "nightly/2"];
/// Files that are folders elsewhere, names that are not UTF-8, and names that break naive parsers.
pub(super) const PATHS: [&[u8]; 14] = [
    b"README.md",
    b"src/lib.rs",
    b"src/deep/er/mod.rs",
    b"src",
    b"a",
    b"a/b",
    b"a/b/c.txt",
    b"Cargo.toml",
    b"caf\xe9.txt",
    b"\xff\xfe/\x80.md",
    b"new\nline \"quoted\"\\.txt",
    "世界/🦀.rs".as_bytes(),
    b" leading and trailing ",
    b"-rf",
];

#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// Writes a new version of a file.
    Write(usize),
    /// Writes an earlier version of some file.
    Again(usize, usize),
    Delete(usize),
    Rename(usize, usize),
    /// Turns the executable bit.
    Mode(usize),
    Link(usize),
    Module(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Commit(usize, Vec<Edit>),
    /// Commits with the tree of the parent's parent.
    Revert(usize),
    Merge(usize, Vec<usize>, Vec<Edit>),
    /// Replaces the last commit.
    Amend(usize, Vec<Edit>),
    /// Puts the last commits of a branch on top of another.
    Rebase(usize, usize),
    /// A branch without a parent in the repository.
    Orphan(usize, Vec<Edit>),
    /// Moves (or creates) a branch to any commit that ever existed.
    Force(usize, usize),
    RenameBranch(usize, usize),
    DeleteBranch(usize),
    /// Creates or moves a tag, annotated or not.
    Tag(usize, usize, bool),
    TagOfTree(usize, usize),
    DeleteTag(usize),
    /// Packs refs and objects.
    Pack,
    /// Removes unreachable objects.
    Prune,
    /// Stops the tracker; it starts again with the next look.
    Restart,
    /// The tracker does not see the next step at once.
    Unseen,
}

pub(super) struct World {
    repository: Repository,
    tracked: Tracked,
    /// Every commit that was made: id, parents, tree.
    commits: Vec<(String, Vec<usize>, Tree)>,
    /// The targets of branches, as numbers of commits.
    tips: BTreeMap<&'static str, usize>,
    tags: BTreeSet<&'static str>,
    /// The unique word of each blob, by its id.
    words: BTreeMap<String, Option<String>>,
    contents: Vec<Vec<u8>>,
    listings: BTreeMap<String, Listing>,
    /// The branches at the last look, by the refs' full names.
    seen: BTreeMap<String, String>,
    /// Versions whose files and words were compared.
    compared: BTreeSet<String>,
}

impl World {
    pub(super) fn new() -> Self {
        let repository = Repository::new();
        let tracked = Tracked::new(&repository.path(), &repository.beside("store"));
        let mut world = Self {
            repository,
            tracked,
            commits: Vec::new(),
            tips: BTreeMap::new(),
            tags: BTreeSet::new(),
            words: BTreeMap::new(),
            contents: Vec::new(),
            listings: BTreeMap::new(),
            seen: BTreeMap::new(),
            compared: BTreeSet::new(),
        };
        world.commit(0, &[], Tree::new(), &[Edit::Write(0), Edit::Write(1)]);
        world
    }

    fn is_there(&self, commit: usize) -> bool {
        self.repository.has(&self.commits[commit].0)
    }

    /// Writes a file version with a unique word, in turn as prose, code, manifest, binary and empty.
    fn content(&mut self) -> Vec<u8> {
        let number = self.contents.len();
        // Consonants only: no stemming, no part of another word.
        let digits = (0..5).map(|digit| b"bdfghjkm"[(number >> (3 * digit)) % 8]);
        let word = format!("zq{}", String::from_utf8(digits.collect()).unwrap());
        let (text, word) = match number % 9 {
            0 | 5 => {
                (format!("# Heading\n\nWords of all, and {word}.\n\n## More\n\nThe same everywhere.\n"), Some(word))
            }
            1 | 6 => (format!("fn shared() -> u32 {{\n    1\n}}\n\nfn {word}() -> u32 {{\n    2\n}}\n"), Some(word)),
            2 => (format!("[package]\nname = \"{word}\"\nversion = \"0.1.0\"\n"), Some(word)),
            3 => (format!("binary \0 {word}"), None),
            4 => (String::new(), None),
            _ => (format!("windows {word}\r\nlines\r\n"), Some(word)),
        };
        let bytes = text.into_bytes();
        self.words.insert(self.repository.blob_id(&bytes), word);
        self.contents.push(bytes.clone());
        bytes
    }

    fn edit(&mut self, tree: &mut Tree, edit: &Edit) {
        match *edit {
            Edit::Write(path) => {
                let bytes = self.content();
                put(tree, PATHS[path], Node::File(bytes, false));
            }
            Edit::Again(path, number) => {
                let bytes = self.contents[number % self.contents.len()].clone();
                put(tree, PATHS[path], Node::File(bytes, false));
            }
            Edit::Delete(path) => {
                tree.remove(PATHS[path]);
            }
            Edit::Rename(from, to) => {
                if let Some(node) = tree.remove(PATHS[from]) {
                    put(tree, PATHS[to], node);
                }
            }
            Edit::Mode(path) => {
                if let Some(Node::File(_, executable)) = tree.get_mut(PATHS[path]) {
                    *executable = !*executable;
                }
            }
            Edit::Link(path) => put(tree, PATHS[path], Node::Link(b"/etc/passwd".to_vec())),
            Edit::Module(path) => {
                let commit = self.commits.first().map_or("1".repeat(40), |(id, ..)| id.clone());
                put(tree, PATHS[path], Node::Module(commit));
            }
        }
    }

    fn commit(&mut self, branch: usize, parents: &[usize], mut tree: Tree, edits: &[Edit]) {
        for edit in edits {
            self.edit(&mut tree, edit);
        }
        let ids: Vec<String> = parents.iter().map(|&parent| self.commits[parent].0.clone()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let id = self.repository.commit(BRANCHES[branch], &ids, &tree);
        self.tips.insert(BRANCHES[branch], self.commits.len());
        self.commits.push((id, parents.to_vec(), tree));
    }

    fn tip(&self, branch: usize) -> Option<usize> {
        self.tips.get(BRANCHES[branch]).copied()
    }

    /// Takes a step, if it is possible now.
    pub(super) fn take(&mut self, step: &Step) -> Option<()> {
        match step {
            Step::Commit(branch, edits) => {
                let parent = self.tip(*branch)?;
                self.commit(*branch, &[parent], self.commits[parent].2.clone(), edits);
            }
            Step::Revert(branch) => {
                let parent = self.tip(*branch)?;
                let before = *self.commits[parent].1.first()?;
                self.commit(*branch, &[parent], self.commits[before].2.clone(), &[]);
            }
            Step::Merge(branch, others, edits) => {
                let mut parents = vec![self.tip(*branch)?];
                parents.extend(others.iter().filter_map(|&other| self.tip(other)));
                parents.dedup();
                let mut tree = self.commits[parents[0]].2.clone();
                for &parent in &parents[1..] {
                    for (path, node) in self.commits[parent].2.clone() {
                        put(&mut tree, &path, node);
                    }
                }
                self.commit(*branch, &parents, tree, edits);
            }
            Step::Amend(branch, edits) => {
                let (_, parents, tree) = self.commits[self.tip(*branch)?].clone();
                self.commit(*branch, &parents, tree, edits);
            }
            Step::Rebase(branch, onto) => {
                let (last, mut onto) = (self.tip(*branch)?, self.tip(*onto)?);
                let first = self.commits[last].1.first().copied();
                for commit in first.into_iter().chain([last]) {
                    let mut tree = self.commits[onto].2.clone();
                    for (path, node) in self.commits[commit].2.clone() {
                        put(&mut tree, &path, node);
                    }
                    self.commit(*branch, &[onto], tree, &[]);
                    onto = self.commits.len() - 1;
                }
            }
            Step::Orphan(branch, edits) => self.commit(*branch, &[], Tree::new(), edits),
            Step::Force(branch, commit) => {
                let commit = commit % self.commits.len();
                if !self.is_there(commit) {
                    return None;
                }
                let name = format!("refs/heads/{}", BRANCHES[*branch]);
                self.repository.git(&["update-ref", &name, &self.commits[commit].0]);
                self.tips.insert(BRANCHES[*branch], commit);
            }
            Step::RenameBranch(from, to) => {
                let tip = self.tip(*from)?;
                self.repository.git(&["branch", "-M", BRANCHES[*from], BRANCHES[*to]]);
                // HEAD follows a rename; it is set back so that the branch that HEAD names may be missing.
                self.repository.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
                self.tips.remove(BRANCHES[*from]);
                self.tips.insert(BRANCHES[*to], tip);
            }
            Step::DeleteBranch(branch) => {
                self.tip(*branch)?;
                let name = format!("refs/heads/{}", BRANCHES[*branch]);
                self.repository.git(&["update-ref", "-d", &name]);
                self.tips.remove(BRANCHES[*branch]);
            }
            Step::Tag(tag, branch, annotated) => {
                let id = self.commits[self.tip(*branch)?].0.clone();
                let message: &[&str] = if *annotated { &["-a", "-m", "x"] } else { &[] };
                self.repository.git(&[&["tag", "-f"], message, &[TAGS[*tag], &id]].concat());
                self.tags.insert(TAGS[*tag]);
            }
            Step::TagOfTree(tag, branch) => {
                let tree = format!("{}^{{tree}}", self.commits[self.tip(*branch)?].0);
                self.repository.git(&["tag", "-f", TAGS[*tag], &tree]);
                self.tags.insert(TAGS[*tag]);
            }
            Step::DeleteTag(tag) => {
                if self.tags.remove(TAGS[*tag]) {
                    self.repository.git(&["tag", "-d", TAGS[*tag]]);
                }
            }
            Step::Pack => {
                self.repository.git(&["pack-refs", "--all"]);
                // Unreachable objects are packed as well, so that an object never lacks those it refers to.
                self.repository.git(&["repack", "-q", "-a", "-d", "-k"]);
            }
            Step::Prune => {
                self.repository.git(&["prune", "--expire=now"]);
            }
            Step::Restart => self.tracked.stop(),
            Step::Unseen => {}
        }
        Some(())
    }

    /// Lets the tracker look, and compares the store with git.
    pub(super) fn look(&mut self) {
        let expected = self.expected_views();
        let branches = self.branches();
        let required = self.required(&branches);
        match self.tracked.catch_up() {
            // A justified refusal, but only once nothing is left to retract.
            Err(EngineError::NoRefs { .. }) => assert!(expected.is_empty(), "there are refs: {expected:?}"),
            taken => taken.unwrap(),
        }
        self.tracked.refresh();
        assert_eq!(self.tracked.views(), expected);
        let commits = self.tracked.commits();
        for commit in &required {
            assert!(commits.contains(commit), "{commit} was passed and has no snapshot");
        }
        for commit in expected.values().chain(&required) {
            self.compare(commit);
        }
        self.seen = branches;
    }

    /// Names views as documented: by short name, with the kind before it if a branch and a tag share it.
    fn expected_views(&self) -> BTreeMap<String, String> {
        let refs = self.repository.refs();
        let short = |name: &str| name.splitn(3, '/').nth(2).unwrap().to_owned();
        let name = |full: &String| match refs.keys().filter(|other| short(other) == short(full)).count() {
            1 => short(full),
            _ => full.strip_prefix("refs/").unwrap().to_owned(),
        };
        refs.iter().filter_map(|(full, commit)| Some((name(full), commit.clone()?))).collect()
    }

    fn branches(&self) -> BTreeMap<String, String> {
        let refs = self.repository.refs().into_iter().filter(|(name, _)| name.starts_with("refs/heads/"));
        refs.filter_map(|(name, commit)| Some((name, commit?))).collect()
    }

    /// Returns the commits that must get snapshots at a look: for a known branch, whatever its view was called, all first parents
    /// that its last commit does not reach.
    fn required(&self, branches: &BTreeMap<String, String>) -> BTreeSet<String> {
        let mut required = BTreeSet::new();
        let number = |id: &String| self.commits.iter().position(|(known, ..)| known == id).unwrap();
        for (branch, commit) in branches {
            let Some(before) = self.seen.get(branch) else { continue };
            // A pruned commit cannot be the start.
            if !self.is_there(number(before)) {
                continue;
            }
            let reached = self.reached(number(before));
            let mut next = Some(number(commit));
            while let Some(commit) = next.filter(|commit| !reached.contains(commit)) {
                required.insert(self.commits[commit].0.clone());
                next = self.commits[commit].1.first().copied();
            }
        }
        required
    }

    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(commit) = open.pop() {
            if reached.insert(commit) {
                open.extend(&self.commits[commit].1);
            }
        }
        reached
    }

    /// Compares one snapshot's files with `git ls-tree`.
    fn compare(&mut self, commit: &str) {
        if !self.listings.contains_key(commit) {
            self.listings.insert(commit.to_owned(), self.repository.ls_tree(commit));
        }
        let fate = |mode: &str| match mode {
            "120000" => Fate::Link,
            "160000" => Fate::Module,
            _ => Fate::File,
        };
        let expected: BTreeMap<_, _> =
            self.listings[commit].iter().map(|(path, (mode, id))| (path.clone(), (id.clone(), fate(mode)))).collect();
        assert_eq!(self.tracked.documents(commit), expected, "the files of {commit}");
        self.compared.insert(commit.to_owned());
    }

    /// Searches every word in every snapshot that was ever compared.
    pub(super) fn compare_words(&self) {
        for commit in &self.compared {
            let mut holders: BTreeMap<&str, BTreeSet<Vec<u8>>> = BTreeMap::new();
            for (path, (mode, id)) in &self.listings[commit] {
                if mode.starts_with("100") {
                    holders.entry(id).or_default().insert(path.clone());
                }
            }
            for (id, word) in self.words.iter().filter_map(|(id, word)| Some((id, word.as_ref()?))) {
                let expected = holders.get(id.as_str()).cloned().unwrap_or_default();
                assert_eq!(self.tracked.paths_with(word, commit), expected, "{word} as of {commit}");
            }
        }
    }
}

/// Puts a node at a path, and removes whatever cannot exist beside it.
fn put(tree: &mut Tree, path: &[u8], node: Node) {
    let is_inside = |inner: &[u8], outer: &[u8]| {
        inner.len() > outer.len() && inner.starts_with(outer) && inner[outer.len()] == b'/'
    };
    tree.retain(|other, _| !is_inside(other, path) && !is_inside(path, other));
    tree.insert(path.to_vec(), node);
}

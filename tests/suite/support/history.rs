//! Random histories of a repository: operations on branches, tags and files, as steps.
//!
//! In: steps. Out: a real repository, and beside it the content of each commit and the commits that must have a snapshot.
//!
//! **Invariant:** the expectation is computed from the steps alone: parents and trees are remembered here and never read back
//! from the repository or the store.

use super::repository::{Repository, Tree};
use proptest::prelude::*;
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One operation. Numbers are taken modulo the number of candidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Rewrites a file.
    Write(usize, u64),
    /// Replaces one line of a file.
    Line(usize, usize, u64),
    /// Adds lines at the top of a file.
    Top(usize, u64),
    /// Deletes a file.
    Delete(usize),
    /// Moves a file, also over another one.
    Rename(usize, usize),
    /// Commits the tree of an earlier commit again.
    Revert(usize),
    /// Commits nothing.
    Empty,
    /// Goes to a branch, which starts here if it is new.
    Switch(usize),
    /// Merges another branch, whose files win.
    Merge(usize),
    /// Puts a tag here, or moves it here.
    Tag(usize),
    /// Moves the branch to an earlier commit, of any branch.
    Force(usize),
    /// Starts the branch over with a commit that has no parent.
    Orphan(usize, u64),
    /// Deletes a branch that is not the current one.
    Drop(usize),
    /// Lets the tracker catch up.
    Sync,
    /// Ends the tracker and starts another one.
    Restart,
}

/// Returns a strategy of histories with `length` steps.
pub(crate) fn steps(length: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let number = 0..64_usize;
    let seed = 0..6_u64;
    let step = prop_oneof![
        6 => (number.clone(), seed.clone()).prop_map(|(path, seed)| Step::Write(path, seed)),
        6 => (number.clone(), 0..400_usize, seed.clone()).prop_map(|(path, line, seed)| Step::Line(path, line, seed)),
        2 => (number.clone(), seed.clone()).prop_map(|(path, seed)| Step::Top(path, seed)),
        3 => number.clone().prop_map(Step::Delete),
        3 => (number.clone(), number.clone()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => number.clone().prop_map(Step::Revert),
        1 => Just(Step::Empty),
        3 => number.clone().prop_map(Step::Switch),
        2 => number.clone().prop_map(Step::Merge),
        1 => number.clone().prop_map(Step::Tag),
        2 => number.clone().prop_map(Step::Force),
        1 => (number.clone(), seed).prop_map(|(path, seed)| Step::Orphan(path, seed)),
        1 => number.prop_map(Step::Drop),
        7 => Just(Step::Sync),
        2 => Just(Step::Restart),
    ];
    prop::collection::vec(step, length)
}

const PATHS: [&[u8]; 17] = [
    b"src/camera.rs",
    b"src/render/graph.rs",
    b"src/render/mod.rs",
    b"Cargo.toml",
    b"src/render/Cargo.toml",
    b"src",
    b"engine/Physics.cpp",
    b"engine/Physics.h",
    b"tools/build.py",
    b"docs/guide.md",
    b"docs/\xe6\x8c\x87\xe5\x8d\x97.md",
    b"notes.txt",
    b"shaders/mesh.wgsl",
    b"odd\xff\nname.txt",
    b"latest.link",
    b"assets/picture.bin",
    b"Source/Engine/Engine.Build.cs",
];
const BRANCHES: [&str; 3] = ["main", "feature/x", "release-1"];
const TAGS: [&str; 3] = ["v1.0", "v1.1", "docs/v1"];

/// A repository, its current branch, and the content of every commit.
pub(crate) struct History {
    pub(crate) repository: Repository,
    /// The content of every commit ever written.
    pub(crate) trees: BTreeMap<CommitId, Tree>,
    parents: BTreeMap<CommitId, Vec<CommitId>>,
    order: Vec<CommitId>,
    branches: BTreeMap<&'static str, CommitId>,
    tags: BTreeMap<&'static str, CommitId>,
    current: &'static str,
    /// The commit at which a tracker last saw each branch.
    seen: BTreeMap<&'static str, CommitId>,
    /// Commits that must have a snapshot.
    pub(crate) expected: BTreeSet<CommitId>,
}

impl History {
    /// Begins with one commit of a few files.
    pub(crate) fn new() -> Self {
        let mut history = Self {
            repository: Repository::new(),
            trees: BTreeMap::new(),
            parents: BTreeMap::new(),
            order: Vec::new(),
            branches: BTreeMap::new(),
            tags: BTreeMap::new(),
            current: "main",
            seen: BTreeMap::new(),
            expected: BTreeSet::new(),
        };
        let mut tree = Tree::new();
        for path in [0, 1, 3, 6, 9, 11] {
            put(&mut tree, PATHS[path], text(PATHS[path], path as u64));
        }
        history.commit(Vec::new(), tree);
        history
    }

    /// Takes a step of the repository; those of the tracker are the caller's.
    pub(crate) fn take(&mut self, step: Step) {
        let head = self.head();
        let mut tree = self.trees[&head].clone();
        match step {
            Step::Write(path, seed) => {
                let path = PATHS[path % PATHS.len()];
                put(&mut tree, path, text(path, seed));
            }
            Step::Line(path, line, seed) => edit(&mut tree, path, |lines| {
                let line = line % lines.len().max(1);
                if let Some(line) = lines.get_mut(line) {
                    *line = format!("    let word{seed} = spawn(camera, {seed}); // the tide mill turns");
                }
            }),
            Step::Top(path, seed) => {
                edit(&mut tree, path, |lines| lines.insert(0, format!("// word{seed} in front\n")));
            }
            Step::Delete(path) => {
                if let Some(path) = tree.keys().nth(path % tree.len().max(1)).cloned() {
                    tree.remove(&path);
                }
            }
            Step::Rename(from, to) => {
                if let Some(from) = tree.keys().nth(from % tree.len().max(1)).cloned()
                    && let Some(bytes) = tree.remove(&from)
                {
                    put(&mut tree, PATHS[to % PATHS.len()], bytes);
                }
            }
            Step::Revert(commit) => tree = self.trees[&self.order[commit % self.order.len()]].clone(),
            Step::Empty => {}
            Step::Switch(branch) => {
                self.current = BRANCHES[branch % BRANCHES.len()];
                let at = *self.branches.entry(self.current).or_insert(head);
                return self.repository.point(&format!("refs/heads/{}", self.current), at);
            }
            Step::Merge(branch) => {
                let Some(&other) = self.branches.get(BRANCHES[branch % BRANCHES.len()]) else { return };
                for (path, bytes) in self.trees[&other].clone() {
                    put(&mut tree, &path, bytes);
                }
                return self.commit(vec![head, other], tree);
            }
            Step::Tag(tag) => {
                let tag = TAGS[tag % TAGS.len()];
                self.tags.insert(tag, head);
                return self.repository.point(&format!("refs/tags/{tag}"), head);
            }
            Step::Force(commit) => {
                let commit = self.order[commit % self.order.len()];
                self.branches.insert(self.current, commit);
                return self.repository.point(&format!("refs/heads/{}", self.current), commit);
            }
            Step::Orphan(path, seed) => {
                let path = PATHS[path % PATHS.len()];
                tree = Tree::from([(path.to_vec(), text(path, seed))]);
                return self.commit(Vec::new(), tree);
            }
            Step::Drop(branch) => {
                let branch = BRANCHES[branch % BRANCHES.len()];
                if branch != "main" && branch != self.current && self.branches.remove(branch).is_some() {
                    self.repository.remove(&format!("refs/heads/{branch}"));
                }
                return;
            }
            Step::Sync | Step::Restart => return,
        }
        self.commit(vec![head], tree);
    }

    fn commit(&mut self, parents: Vec<CommitId>, tree: Tree) {
        let commit = self.repository.write(&parents, &tree);
        self.repository.point(&format!("refs/heads/{}", self.current), commit);
        self.branches.insert(self.current, commit);
        self.trees.insert(commit, tree);
        self.parents.insert(commit, parents);
        self.order.push(commit);
    }

    /// Returns the commit of the current branch.
    pub(crate) fn head(&self) -> CommitId {
        self.branches[self.current]
    }

    /// Notes that a tracker has caught up: a known view gets every first parent that its last commit does not reach, a new one
    /// its head. Returns these commits.
    pub(crate) fn synced(&mut self) -> BTreeSet<CommitId> {
        let mut made = BTreeSet::new();
        for (branch, head) in &self.branches {
            made.insert(*head);
            if let Some(last) = self.seen.get(branch) {
                let reached = self.reached(*last);
                let new: Vec<CommitId> = self.line(*head).take_while(|commit| !reached.contains(commit)).collect();
                made.extend(new);
            }
        }
        made.extend(self.tags.values());
        self.expected.extend(&made);
        self.seen = self.branches.clone();
        made
    }

    /// Returns the commits of every branch and tag.
    pub(crate) fn heads(&self) -> impl Iterator<Item = CommitId> {
        self.branches.values().chain(self.tags.values()).copied()
    }

    /// Returns a commit and the first parents before it.
    pub(crate) fn line(&self, from: CommitId) -> impl Iterator<Item = CommitId> {
        std::iter::successors(Some(from), |commit| self.parents[commit].first().copied())
    }

    fn reached(&self, from: CommitId) -> BTreeSet<CommitId> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(commit) = open.pop() {
            if reached.insert(commit) {
                open.extend(&self.parents[&commit]);
            }
        }
        reached
    }
}

/// Writes a file; a file and a folder of one name displace each other.
fn put(tree: &mut Tree, path: &[u8], bytes: Vec<u8>) {
    let below = [path, b"/"].concat();
    tree.retain(|known, _| !known.starts_with(&below) && !path.starts_with(&[known, b"/".as_slice()].concat()));
    tree.insert(path.to_vec(), bytes);
}

fn edit(tree: &mut Tree, path: usize, change: impl FnOnce(&mut Vec<String>)) {
    let files = tree.len().max(1);
    let Some(bytes) = tree.values_mut().nth(path % files) else { return };
    let mut lines: Vec<String> = String::from_utf8_lossy(bytes).split('\n').map(str::to_owned).collect();
    change(&mut lines);
    *bytes = lines.join("\n").into_bytes();
}

/// Returns a content for a path: of its kind, and one of a few, so that contents come back and occur at several paths.
fn text(path: &[u8], seed: u64) -> Vec<u8> {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let ending = name.rsplit(|&byte| byte == b'.').next().unwrap_or(name);
    let items = 2 + seed % 4;
    let mut out = String::new();
    match ending {
        b"rs" => {
            out.push_str("//! The render graph of the tide mill.\n\nuse std::fmt;\n\n");
            for item in 0..items {
                let number = (item * 7 + seed) % 9;
                out.push_str(&format!(
                    "/// Spawns camera {number}.\npub fn spawn_camera_{number}(world: &mut World) -> u32 {{\n    let word{number} = world.spawn();\n    word{number} + {seed}\n}}\n\n"
                ));
            }
            out.push_str("impl World {\n    fn despawn(&mut self) {}\n    fn despawn(&mut self) {}\n}\n");
        }
        b"cpp" | b"h" => {
            out.push_str("#include <vector>\n\nnamespace engine {\n\n");
            for item in 0..items {
                let number = (item * 5 + seed) % 9;
                out.push_str(&format!(
                    "void Physics::step{number}(float word{number}) {{\n    integrate(word{number} * {seed});\n}}\n\n"
                ));
            }
            out.push_str("}  // namespace engine\n");
        }
        b"py" => {
            for item in 0..items {
                let number = (item * 3 + seed) % 9;
                out.push_str(&format!(
                    "def build_{number}(target):\n    \"\"\"Builds word{number}.\"\"\"\n    return {seed}\n\n"
                ));
            }
        }
        b"md" => {
            out.push_str("# Guide\n\nHow the render graph is sorted, and what the tide mill does.\n\n");
            for item in 0..items {
                let number = (item * 4 + seed) % 9;
                out.push_str(&format!(
                    "## Part {number}\n\nwords about word{number}, {seed}.\n\n渲染 设置 {number}。\n\n"
                ));
            }
        }
        b"toml" => out.push_str(&format!("[package]\nname = \"module_{}\"\nversion = \"0.{seed}.0\"\n", seed % 2)),
        b"link" => out.push_str("docs/guide.md"),
        b"bin" => return vec![0, 1, 2, u8::try_from(seed).unwrap_or(0)],
        b"cs" => out.push_str(&format!("public class Engine : ModuleRules {{ int word{seed}; }}\n")),
        b"wgsl" => out.push_str(&format!("@vertex\nfn vertex(word{seed}: vec3f) -> vec4f {{\n    return spawn;\n}}\n")),
        _ if seed == 0 => {}
        _ if seed == 1 => {
            // UTF-16 with CR LF, as engine projects on Windows hold it.
            let text = "\u{feff}tide mill in UTF-16\r\n\r\nword7 in front of the camera\r\n";
            return text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        }
        _ => {
            for paragraph in 0..items * 3 {
                let number = (paragraph * 11 + seed) % 9;
                out.push_str(&format!(
                    "A paragraph about word{number}, the camera and the tide mill.\nIt goes on, {seed}.\n\n"
                ));
            }
        }
    }
    out.into_bytes()
}

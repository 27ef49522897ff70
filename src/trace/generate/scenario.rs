//! The scenarios: the events of a generated tree, epoch by epoch.
//!
//! In: a scenario and its settings. Out: a trace. **Invariant:** each scenario stresses one property:
//!
//! | scenario | events | expectation |
//! |---|---|---|
//! | `steady` | the whole tree, then commits of five files | a commit costs the same in a tree of any size |
//! | `growth` | the tree grows from a tenth to its full size | a commit's cost does not grow with the tree |
//! | `hot-file` | one item of one large file changes repeatedly | one edit moves a chunk or two |
//! | `mass-rename` | a module moves to another folder and back | the move back costs only its entries |
//! | `branch-storm` | branches are created, advance and are deleted | a branch costs its own commits |
//! | `format-sweep` | line ends of all files change, then their indentation | the first moves no entry |
//! | `burst` | commits arrive fifty at a time | waiting commits share one publish |
//! | `revert` | a commit is reverted and made again | nothing is embedded twice |

use super::super::format::{About, EpochRecord, Stored, TraceError, TraceStep, blob_id};
use super::super::write::{TraceWriter, Written};
use super::text::File;
use super::{GENERATOR, Numbers, tree};
use crate::watch::{FileMode, FileState};
use dataflows::data::{DocumentPath, FileChange};
use snapshots::CommitId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The committer's time of the first commit: 2023-11-14T22:13:20Z.
const FIRST_TIME: i64 = 1_700_000_000;
/// Files that an ordinary commit changes.
const COMMIT_FILES: usize = 5;
/// Commits of one burst.
const BURST: usize = 50;

/// The scenarios.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the table above says what each is")]
pub enum Scenario {
    Steady,
    Growth,
    HotFile,
    MassRename,
    BranchStorm,
    FormatSweep,
    Burst,
    Revert,
}

impl Scenario {
    /// Every scenario, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Steady,
        Self::Growth,
        Self::HotFile,
        Self::MassRename,
        Self::BranchStorm,
        Self::FormatSweep,
        Self::Burst,
        Self::Revert,
    ];

    /// Returns the scenario's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Growth => "growth",
            Self::HotFile => "hot-file",
            Self::MassRename => "mass-rename",
            Self::BranchStorm => "branch-storm",
            Self::FormatSweep => "format-sweep",
            Self::Burst => "burst",
            Self::Revert => "revert",
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|scenario| scenario.as_str() == name);
        known.ok_or_else(|| {
            format!("there is no scenario `{name}`; there are {}", Self::ALL.map(Self::as_str).join(", "))
        })
    }
}

/// Size, length and seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Files of the tree.
    pub files: u64,
    /// Epochs, the first load among them.
    pub epochs: usize,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Writes the trace of a scenario.
///
/// # Errors
/// If the file cannot be written.
pub fn generate(path: &Path, scenario: Scenario, settings: Settings) -> Result<Written, TraceError> {
    let Settings { files, epochs, seed } = settings;
    let about = About {
        source: scenario.to_string(),
        range: format!("{scenario} --files {files} --epochs {epochs} --seed {seed}, generator {GENERATOR}"),
        fingerprint: [0; 16],
        model: [0; 16],
        rules: String::new(),
        redacted: false,
        corpus: [0; 32],
    };
    let mut story = Story {
        writer: TraceWriter::create(path, about)?,
        scenario,
        settings: Settings { files: files.max(1), ..settings },
        numbers: Numbers::of(seed, scenario as u64),
        heads: BTreeMap::new(),
        moved: BTreeMap::new(),
        epoch: 0,
    };
    story.tell()?;
    story.writer.finish()
}

#[derive(Clone, Default)]
struct Head {
    files: BTreeMap<DocumentPath, (File, FileState)>,
    at: Option<CommitId>,
}

struct Story {
    writer: TraceWriter,
    scenario: Scenario,
    settings: Settings,
    numbers: Numbers,
    heads: BTreeMap<String, Head>,
    /// How often each module was moved.
    moved: BTreeMap<u64, u32>,
    epoch: usize,
}

/// A file that is written or removed.
type Edit = (DocumentPath, Option<File>);

const MAIN: &str = "main";

impl Story {
    fn tell(&mut self) -> Result<(), TraceError> {
        let Settings { files, epochs, .. } = self.settings;
        let first = match self.scenario {
            Scenario::Growth => files.div_ceil(10),
            _ => files,
        };
        let load = self.files(0..first);
        self.commit(MAIN, load)?;
        let mut there = first;
        let mut saved = Vec::new();
        while self.epoch < epochs {
            let edits = match self.scenario {
                Scenario::Steady | Scenario::Burst => self.ordinary(MAIN),
                Scenario::Growth => {
                    let left = (epochs - self.epoch) as u64;
                    let next = there + (files - there).div_ceil(left);
                    let mut edits = self.files(there..next);
                    edits.extend(self.ordinary(MAIN));
                    there = next;
                    edits
                }
                Scenario::HotFile => self.hot(),
                Scenario::MassRename => self.rename(),
                Scenario::BranchStorm => {
                    self.branch()?;
                    continue;
                }
                Scenario::FormatSweep => self.sweep(),
                Scenario::Revert if saved.is_empty() => {
                    let edits = self.ordinary(MAIN);
                    saved = edits.iter().map(|(path, _)| (path.clone(), self.file(MAIN, path))).collect();
                    edits
                }
                Scenario::Revert => std::mem::take(&mut saved),
            };
            self.commit(MAIN, edits)?;
        }
        Ok(())
    }

    fn file(&self, view: &str, path: &DocumentPath) -> Option<File> {
        self.heads.get(view)?.files.get(path).map(|(file, _)| file.clone())
    }

    /// Returns the files of these numbers as they are first written.
    fn files(&self, numbers: std::ops::Range<u64>) -> Vec<Edit> {
        numbers.map(|number| tree::file(self.settings.seed, number, 0)).map(|(path, file)| (path, Some(file))).collect()
    }

    /// Edits an item in each of a few files, in one commit out of ten twice as many.
    fn ordinary(&mut self, view: &str) -> Vec<Edit> {
        let Some(head) = self.heads.get(view) else { return Vec::new() };
        let wanted = COMMIT_FILES.min(head.files.len());
        let mut chosen = BTreeSet::new();
        for _ in 0..wanted * 4 {
            // By number and not by position: a step over a million paths would cost more than the commit.
            let number = self.numbers.next() % self.settings.files;
            let moved = self.moved.get(&tree::module_of(number)).copied().unwrap_or(0);
            let (path, file) = tree::file(self.settings.seed, number, moved);
            if chosen.len() < wanted && file.items > 0 && head.files.contains_key(&path) {
                chosen.insert(path);
            }
        }
        let edits = chosen.into_iter().filter_map(|path| {
            let mut file = head.files.get(&path)?.0.clone();
            let item = self.numbers.below(file.items as usize) as u32;
            file.edit(item);
            Some((path, Some(file)))
        });
        edits.collect()
    }

    /// Edits one item of the one large file.
    fn hot(&mut self) -> Vec<Edit> {
        let number = 30 % self.settings.files;
        let (path, mut file) = tree::file(self.settings.seed, number, 0);
        file.items = 400;
        let mut file = self.file(MAIN, &path).filter(|known| known.items == 400).unwrap_or(file);
        let item = self.numbers.below(400) as u32;
        file.edit(item);
        vec![(path, Some(file))]
    }

    /// Moves a module to another folder, or back again.
    fn rename(&mut self) -> Vec<Edit> {
        let seed = self.settings.seed;
        let modules = tree::module_of(self.settings.files - 1) + 1;
        let module = self.numbers.next() % modules;
        let before = self.moved.get(&module).copied().unwrap_or(0);
        let after = 1 - before;
        self.moved.insert(module, after);
        let prefix = |moved: u32| format!("{}/", tree::folder(seed, module, moved)).into_bytes();
        let (from, to) = (prefix(before), prefix(after));
        let Some(head) = self.heads.get(MAIN) else { return Vec::new() };
        let start = DocumentPath::new(from.clone());
        let inside = head.files.range(start..).take_while(|(path, _)| path.as_bytes().starts_with(&from));
        let moves = inside.flat_map(|(path, (file, _))| {
            let there = DocumentPath::new([&to[..], &path.as_bytes()[from.len()..]].concat());
            [(path.clone(), None), (there, Some(file.clone()))]
        });
        moves.collect()
    }

    /// Changes the line ends of all files, or their indentation.
    fn sweep(&mut self) -> Vec<Edit> {
        let ends = self.epoch % 2 == 1;
        let Some(head) = self.heads.get(MAIN) else { return Vec::new() };
        let swept = head.files.iter().map(|(path, (file, _))| {
            let mut file = file.clone();
            if ends {
                file.carriage = !file.carriage;
            } else {
                file.tabs = !file.tabs;
            }
            (path.clone(), Some(file))
        });
        swept.collect()
    }

    /// Creates a branch, advances one, or deletes one.
    fn branch(&mut self) -> Result<(), TraceError> {
        let branches: Vec<String> = self.heads.keys().filter(|view| *view != MAIN).cloned().collect();
        match self.numbers.below(8) {
            0 | 1 if branches.len() < 12 => {
                let view = format!("feature/{}", self.epoch);
                let edits = self.ordinary(MAIN);
                let head = self.heads.get(MAIN).cloned().unwrap_or_default();
                // The branch is new to the graph, so all of its files are inserted.
                let mut all: BTreeMap<DocumentPath, Option<File>> =
                    head.files.into_iter().map(|(path, (file, _))| (path, Some(file))).collect();
                all.extend(edits);
                self.heads.insert(view.clone(), Head { files: BTreeMap::new(), at: head.at });
                self.commit(&view, all.into_iter().collect())
            }
            2 if branches.len() > 4 => {
                let view = &branches[self.numbers.below(branches.len())];
                self.leave(view)
            }
            3..=5 if !branches.is_empty() => {
                let view = branches[self.numbers.below(branches.len())].clone();
                let edits = self.ordinary(&view);
                self.commit(&view, edits)
            }
            _ => {
                let edits = self.ordinary(MAIN);
                self.commit(MAIN, edits)
            }
        }
    }

    fn leave(&mut self, view: &str) -> Result<(), TraceError> {
        let head = self.heads.remove(view).unwrap_or_default();
        let gone =
            head.files.into_iter().map(|(path, (_, state))| FileChange { path, before: Some(state), after: None });
        let step = TraceStep::Leave { view: Some(view.to_owned()) };
        self.write(step, gone.collect())
    }

    /// Commits edits to a view.
    fn commit(&mut self, view: &str, edits: Vec<Edit>) -> Result<(), TraceError> {
        let mut head = self.heads.remove(view).unwrap_or_default();
        let mut changes = Vec::with_capacity(edits.len());
        for (path, file) in edits {
            let before = head.files.get(&path).map(|(_, state)| *state);
            let after = match file {
                None => {
                    head.files.remove(&path);
                    None
                }
                Some(file) => {
                    let bytes = file.bytes();
                    let state = FileState { content: blob_id(&bytes), mode: FileMode::Regular };
                    self.writer.content(state.content, &Stored::Whole(bytes))?;
                    head.files.insert(path.clone(), (file, state));
                    Some(state)
                }
            };
            if before != after {
                changes.push(FileChange { path, before, after });
            }
        }
        changes.sort_unstable();
        let hash = blake3::Hasher::new()
            .update(self.scenario.as_str().as_bytes())
            .update(&self.settings.seed.to_le_bytes())
            .update(&(self.epoch as u64).to_le_bytes())
            .finalize();
        let commit = CommitId::from_bytes(std::array::from_fn(|at| hash.as_bytes()[at]));
        let step = TraceStep::Commit {
            view: Some(view.to_owned()),
            passes: false,
            commit,
            parent: head.at.replace(commit),
            time: FIRST_TIME + 60 * self.epoch as i64,
            digest: None,
        };
        self.heads.insert(view.to_owned(), head);
        self.write(step, changes)
    }

    fn write(&mut self, step: TraceStep, changes: Vec<FileChange>) -> Result<(), TraceError> {
        let second = match self.scenario {
            Scenario::Burst => self.epoch / BURST * 10,
            _ => self.epoch,
        };
        self.writer.epoch(&EpochRecord { arrived: second as u64 * 1000, step, changes })?;
        self.epoch += 1;
        Ok(())
    }
}

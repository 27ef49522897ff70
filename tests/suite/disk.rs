//! A live directory: after any change by people and programs, the answers are those of the disk.
//!
//! Random steps change a real folder under a tracker that is occasionally killed; git's plumbing reads the expectation from the
//! disk. The tracker's own full scan is an hour away, so events alone must bring the changes while it runs.

use crate::support::{Folder, Live, cases};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the tracker may take to agree with the disk: far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The vocabulary of the files.
const WORDS: [&str; 6] = ["current", "estuary", "gearwheel", "lighthouse", "millstone", "sluice"];

const FOLDERS: [&str; 5] = ["", "engine", "engine/render", "docs", "docs/deep/er"];
const NAMES: [&str; 6] = ["mesh.rs", "Mesh.rs", "guide.md", "notes.txt", "指南.md", "odd name.log"];

/// One operation on the folder. Numbers are taken modulo the number of candidates.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Writes a file, with the folders above it.
    Write(usize, usize),
    /// Overwrites a file with as many other bytes.
    SameSize(usize, usize),
    /// Saves as most editors do: a new file beside the old one, moved over it.
    SaveByRename(usize, usize),
    /// Saves as some editors do: the old file set aside, a new one written, the old one deleted.
    SaveWithBackup(usize, usize),
    /// Swaps two files.
    Swap(usize, usize),
    /// Moves a file, also over another one.
    Rename(usize, usize),
    /// Changes the case of a file's name.
    ChangeCase(usize),
    Delete(usize),
    /// Moves a folder aside and, under a third name, back into another place: two renames at once.
    MoveFolderTwice(usize, usize),
    /// Moves a folder out of the directory, and an earlier one back in.
    MoveOutAndIn(usize),
    DeleteFolder(usize),
    /// Deletes a folder and makes it again at once with one file.
    RemakeFolder(usize, usize),
    /// Replaces a folder by a file, or a file by a folder with a file.
    ChangeKind(usize, usize),
    /// Makes folders and writes into the innermost at once.
    Deep(usize, usize),
    /// Writes many files at once.
    Burst(usize),
    /// Makes a link that leads back to the directory.
    LinkLoop(usize),
    /// Writes or deletes ignore rules.
    Ignore(usize),
    /// Ends the tracker as `kill -9` does; the next look starts a new one.
    Kill,
    /// Waits until the tracker agrees with the disk.
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = 0..64_usize;
    let two = (number.clone(), number.clone());
    let step = prop_oneof![
        6 => two.clone().prop_map(|(path, word)| Step::Write(path, word)),
        2 => two.clone().prop_map(|(path, word)| Step::SameSize(path, word)),
        2 => two.clone().prop_map(|(path, word)| Step::SaveByRename(path, word)),
        2 => two.clone().prop_map(|(path, word)| Step::SaveWithBackup(path, word)),
        2 => two.clone().prop_map(|(one, other)| Step::Swap(one, other)),
        2 => two.clone().prop_map(|(from, to)| Step::Rename(from, to)),
        1 => number.clone().prop_map(Step::ChangeCase),
        2 => number.clone().prop_map(Step::Delete),
        2 => two.clone().prop_map(|(from, to)| Step::MoveFolderTwice(from, to)),
        2 => number.clone().prop_map(Step::MoveOutAndIn),
        1 => number.clone().prop_map(Step::DeleteFolder),
        1 => two.clone().prop_map(|(folder, word)| Step::RemakeFolder(folder, word)),
        2 => two.clone().prop_map(|(path, word)| Step::ChangeKind(path, word)),
        2 => two.clone().prop_map(|(path, word)| Step::Deep(path, word)),
        1 => number.clone().prop_map(Step::Burst),
        1 => number.clone().prop_map(Step::LinkLoop),
        2 => number.prop_map(Step::Ignore),
        2 => Just(Step::Kill),
        6 => Just(Step::Look),
    ];
    prop::collection::vec(step, 24..48)
}

/// The folder, the running tracker if any, and the number of writes.
struct World {
    folder: Folder,
    tracker: Option<Live>,
    writes: usize,
}

impl World {
    fn new() -> Self {
        let world = Self { folder: Folder::new(), tracker: None, writes: 0 };
        world.folder.write("guide.md", "# Guide\n\nAbout the millstone.\n");
        world
    }

    fn root(&self) -> &Path {
        &self.folder.path
    }

    /// Returns a possible path of a file.
    fn place(&self, number: usize) -> PathBuf {
        self.root().join(FOLDERS[number % FOLDERS.len()]).join(NAMES[number / FOLDERS.len() % NAMES.len()])
    }

    /// Returns one of the files on disk.
    fn file(&self, number: usize) -> Option<PathBuf> {
        let mut files = Vec::new();
        entries_below(self.root(), &mut files, &mut Vec::new());
        (!files.is_empty()).then(|| files[number % files.len()].clone())
    }

    /// Returns one of the folders below the root.
    fn inner_folder(&self, number: usize) -> Option<PathBuf> {
        let mut folders = Vec::new();
        entries_below(self.root(), &mut Vec::new(), &mut folders);
        (!folders.is_empty()).then(|| folders[number % folders.len()].clone())
    }

    fn text(&mut self, word: usize) -> String {
        self.writes += 1;
        format!("The {} turns for the {}th time.\n", WORDS[word % WORDS.len()], self.writes)
    }

    /// Writes a file, and removes whatever is in its way.
    fn write(&mut self, path: &Path, word: usize) {
        let text = self.text(word);
        make_room(self.root(), path);
        fs::write(path, text).unwrap();
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Write(path, word) => self.write(&self.place(path), word),
            Step::SameSize(path, word) => {
                if let Some(path) = self.file(path) {
                    let bytes = fs::metadata(&path).unwrap().len() as usize;
                    let text: String = WORDS[word % WORDS.len()].chars().cycle().take(bytes).collect();
                    fs::write(path, text).unwrap();
                }
            }
            Step::SaveByRename(path, word) => {
                let path = self.place(path);
                make_room(self.root(), &path);
                let beside = path.with_extension("tmp~");
                self.write(&beside, word);
                fs::rename(beside, path).unwrap();
            }
            Step::SaveWithBackup(path, word) => {
                if let Some(path) = self.file(path) {
                    let beside = path.with_extension("bak");
                    fs::rename(&path, &beside).unwrap();
                    self.write(&path, word);
                    let _ = fs::remove_file(beside);
                }
            }
            Step::Swap(one, other) => {
                if let (Some(one), Some(other)) = (self.file(one), self.file(other))
                    && one != other
                {
                    let aside = self.root().join("aside.tmp");
                    fs::rename(&one, &aside).unwrap();
                    fs::rename(&other, &one).unwrap();
                    fs::rename(&aside, &other).unwrap();
                }
            }
            Step::Rename(from, to) => {
                if let Some(from) = self.file(from) {
                    let aside = self.folder.program.folder().join("aside");
                    fs::rename(from, &aside).unwrap();
                    let to = self.place(to);
                    make_room(self.root(), &to);
                    fs::rename(aside, to).unwrap();
                }
            }
            Step::ChangeCase(path) => {
                if let Some(path) = self.file(path) {
                    let name = path.file_name().unwrap().to_str().unwrap();
                    let upper = name.to_uppercase();
                    let other = if upper == name { name.to_lowercase() } else { upper };
                    let other = path.with_file_name(other);
                    if !other.is_dir() {
                        fs::rename(&path, other).unwrap();
                    }
                }
            }
            Step::Delete(path) => {
                if let Some(path) = self.file(path) {
                    fs::remove_file(path).unwrap();
                }
            }
            Step::MoveFolderTwice(from, to) => {
                if let Some(from) = self.inner_folder(from) {
                    let between = self.root().join("between");
                    fs::rename(from, &between).unwrap();
                    let to = self.root().join(format!("moved{}", to % 3)).join("to");
                    move_folder(self.root(), &between, &to);
                }
            }
            Step::MoveOutAndIn(folder) => {
                let outside = self.folder.program.folder().join("outside");
                if outside.exists() {
                    move_folder(self.root(), &outside, &self.root().join("back").join("in"));
                }
                if let Some(folder) = self.inner_folder(folder) {
                    fs::rename(folder, outside).unwrap();
                }
            }
            Step::DeleteFolder(folder) => {
                if let Some(folder) = self.inner_folder(folder) {
                    fs::remove_dir_all(folder).unwrap();
                }
            }
            Step::RemakeFolder(folder, word) => {
                if let Some(folder) = self.inner_folder(folder) {
                    fs::remove_dir_all(&folder).unwrap();
                    self.write(&folder.join("again.txt"), word);
                }
            }
            Step::ChangeKind(number, word) => {
                if let Some(folder) = self.inner_folder(number).filter(|_| number % 2 == 0) {
                    self.write(&folder, word);
                } else if let Some(file) = self.file(number) {
                    self.write(&file.join("inside.txt"), word);
                }
            }
            Step::Deep(number, word) => {
                let path = self.root().join(format!("a{}/b/c/d/e/f.txt", number % 3));
                self.write(&path, word);
            }
            Step::Burst(number) => {
                for file in 0..200 {
                    let path = self.root().join(format!("burst{}/d{}/f{file}.txt", number % 2, file % 9));
                    self.write(&path, file);
                }
            }
            Step::LinkLoop(number) => {
                let link = self.place(number).with_extension("link");
                make_room(self.root(), &link);
                std::os::unix::fs::symlink(self.root(), link).unwrap();
            }
            Step::Ignore(number) => {
                let path = self.root().join(FOLDERS[number % 2]).join(".gitignore");
                match number % 4 {
                    0 | 1 => {
                        make_room(self.root(), &path);
                        let rules = ["*.log\n!odd*\n", "docs/\n", "*.txt\n!notes.txt\n", "/mesh.rs\nburst1/*/\n"];
                        fs::write(path, rules[number / 4 % rules.len()]).unwrap();
                    }
                    _ if path.is_file() => fs::remove_file(path).unwrap(),
                    _ => {}
                }
            }
            Step::Kill => {
                if let Some(mut tracker) = self.tracker.take() {
                    tracker.kill();
                }
            }
            Step::Look => self.look(),
        }
    }

    /// Waits until the tracker has published the state of the disk, and compares the answers.
    fn look(&mut self) {
        if self.tracker.is_none() {
            self.tracker = Some(self.folder.follow("1h"));
        }
        let expected = self.folder.tree_hash();
        let begun = Instant::now();
        while self.published() != expected {
            assert!(begun.elapsed() < PATIENCE, "published {}, on disk {expected}", self.published());
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut by_word: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let files = self.folder.files();
        for (path, bytes) in &files {
            let text = String::from_utf8_lossy(bytes);
            for word in WORDS.into_iter().filter(|word| text.split([' ', '.', '\n']).any(|part| part == *word)) {
                by_word.entry(word).or_default().insert(path.clone());
            }
        }
        for word in WORDS {
            let found: BTreeSet<String> =
                self.folder.hits(word, &["-k", "10000", "--per-doc", "1"]).into_iter().collect();
            assert_eq!(found, by_word.remove(word).unwrap_or_default(), "{word}");
        }
        let dump = self.folder.program.json(&["dump", "--json"]);
        let indexed: BTreeSet<&str> = dump.iter().map(|entry| entry["path"].as_str().unwrap()).collect();
        let written: BTreeSet<&str> =
            files.iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(path, _)| path.as_str()).collect();
        assert_eq!(indexed, written);
    }

    fn published(&self) -> String {
        let status = self.folder.program.run(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.out).unwrap_or_default();
        status["sources"][0]["views"][0]["commit"].as_str().unwrap_or_default().to_owned()
    }
}

/// Lists the regular files and the folders below a folder, sorted; links are neither.
fn entries_below(folder: &Path, files: &mut Vec<PathBuf>, folders: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            folders.push(entry.path());
            entries_below(&entry.path(), files, folders);
        } else if kind.is_file() && entry.file_name() != ".gitignore" {
            files.push(entry.path());
        }
    }
}

/// Moves a folder into the directory, over an existing one.
fn move_folder(root: &Path, from: &Path, to: &Path) {
    make_room(root, to);
    if to.is_file() {
        fs::remove_file(to).unwrap();
    }
    fs::rename(from, to).unwrap();
}

/// Removes whatever is in the way of a file or folder, and creates the folders above it.
fn make_room(root: &Path, path: &Path) {
    let below = path.strip_prefix(root).unwrap();
    let mut above = root.to_owned();
    for part in below.parent().unwrap() {
        above.push(part);
        if above.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(&above).unwrap();
        }
    }
    fs::create_dir_all(&above).unwrap();
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(found) if found.is_symlink() => fs::remove_file(path).unwrap(),
        _ => {}
    }
}

proptest! {
    #![proptest_config(cases(4))]
    #[test]
    fn whatever_happens_to_a_live_directory_what_answers_is_what_the_disk_holds(steps in steps()) {
        let mut world = World::new();
        world.look();
        for step in steps {
            world.take(step);
        }
        world.look();
    }
}

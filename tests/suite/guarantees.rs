//! *Each guarantee names an existing test*: `docs/guarantees.md` against the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the source files below a folder of the packages.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Returns the names of the functions after `#[test]`.
fn tests(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        let line = line.strip_prefix("async ").unwrap_or(line);
        if let Some((name, _)) = line.strip_prefix("fn ").and_then(|rest| rest.split_once('('))
            && std::mem::take(&mut is_test)
        {
            names.insert(name.to_owned());
        }
    }
    names
}

/// Returns the text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_guarantee_names_tests_and_files_that_are_there() {
    let folders = ["src", "dataflows", "snapshots", "tests", "benches"].map(|folder| root().join(folder));
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| sources(folder)).collect();
    let known: BTreeSet<String> = files.iter().flat_map(|file| tests(&fs::read_to_string(file).unwrap())).collect();
    assert!(known.len() > 400, "{} tests were found", known.len());
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let mut wrong = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| **")) {
        let held_by = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
        let is_name = |word: &&str| word.contains('_') && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let names: Vec<&str> = quoted(held_by).filter(is_name).filter(|name| !name.starts_with("TIDEMILL")).collect();
        wrong.extend(
            names.iter().filter(|name| !known.contains(**name)).map(|name| format!("no test is called {name}")),
        );
        if names.is_empty() {
            wrong.push(format!("names no test: {row}"));
        }
        for file in quoted(held_by).filter(|word| word.ends_with(".rs")) {
            if !files.iter().any(|known| known.ends_with(file)) {
                wrong.push(format!("no file is called {file}"));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/guarantees.md:\n{}", wrong.join("\n"));
}

#[test]
fn tests_are_read_as_the_compiler_reads_them() {
    let text = "fn helper() {}\n    #[test]\n    #[ignore]\n    fn one() {}\n#[test]\nfn two(steps in steps(1..2)) {}\nfn other() {}\n#[tokio::test]\nasync fn three() {}\n";
    assert_eq!(tests(text), ["one", "three", "two"].map(str::to_owned).into());
}

//! The order of the modules, and that no law is forgotten.
//!
//! A module imports from modules before it in the flow of data, never from a later one. The lists below *are* that order; a new
//! module, or a new arrow against the flow, fails here until the lists change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The product, in the order in which data flows (`src/lib.rs` draws it).
const PRODUCT: [&str; 16] = [
    "resources",
    "config",
    "telemetry",
    "watch",
    "trace",
    "store",
    "workers",
    "embedders",
    "index",
    "engine",
    "replay",
    "search",
    "eval",
    "api",
    "cli",
    "main",
];
/// The middle, from values to the reference.
const DATAFLOWS: [&str; 12] =
    ["data", "embed", "memo", "rules", "clean", "code", "chunk", "work", "stage", "graph", "run", "reference"];
/// The archive, from names to checks.
const SNAPSHOTS: [&str; 19] = [
    "identity",
    "error",
    "ordinal",
    "digest",
    "codec",
    "bitmaps",
    "tokens",
    "version",
    "history",
    "lock",
    "log",
    "checkpoint",
    "lineage",
    "archive",
    "retention",
    "moves",
    "diff",
    "verify",
    "recount",
];
/// Modules that must not import each other, although their order would allow it.
const STRANGERS: [(&str, &str); 2] = [("search", "engine"), ("engine", "cli")];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Returns whether a file holds only tests.
fn is_test(file: &Path) -> bool {
    file.iter().any(|part| part == "tests" || part == "tests.rs" || part == "testing.rs")
}

/// Returns the files of a package's product.
fn product_files(folder: &str) -> Vec<PathBuf> {
    rust_files(&root().join(folder)).into_iter().filter(|file| !is_test(file.strip_prefix(root()).unwrap())).collect()
}

/// Returns the code of a file: no comments, and nothing after the start of its unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = product.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the modules that a file names after `crate::`, or after the name of the library.
fn imports(code: &str, library: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for prefix in ["crate::", &format!("{library}::")] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            if let Some(list) = rest.strip_prefix('{') {
                modules.extend(list_heads(list));
            } else {
                modules.insert(word(rest));
            }
        }
    }
    modules
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Returns the first word of every member of a list in braces.
fn list_heads(list: &str) -> Vec<String> {
    let (mut depth, mut heads, mut expected) = (0, Vec::new(), true);
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expected = true,
            c if expected && !c.is_whitespace() => {
                heads.push(word(&list[at..]));
                expected = false;
            }
            _ => {}
        }
    }
    heads
}

fn check(folder: &str, library: &str, order: &[&str]) {
    let place: BTreeMap<&str, usize> = order.iter().enumerate().map(|(place, module)| (*module, place)).collect();
    let files = product_files(folder);
    let folder = root().join(folder);
    let mut found = BTreeSet::new();
    let mut wrong = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&folder).unwrap();
        let first = Path::new(inside.iter().next().unwrap()).file_stem().unwrap().to_str().unwrap().to_owned();
        if first == "lib" {
            continue;
        }
        let Some(&own) = place.get(first.as_str()) else {
            wrong.push(format!("{}: module `{first}` has no place in the order", inside.display()));
            continue;
        };
        found.insert(first.clone());
        for module in imports(&code(&file), library) {
            match place.get(module.as_str()) {
                // Items that the library itself exports under its own name (`crate::Epoch`) are no modules.
                None => {}
                Some(&other) if other <= own && !STRANGERS.contains(&(first.as_str(), module.as_str())) => {}
                Some(_) => wrong.push(format!("{}: `{first}` imports from `{module}`", inside.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "against the flow of data in {}:\n{}", folder.display(), wrong.join("\n"));
    let expected: BTreeSet<String> = order.iter().map(|module| (*module).to_owned()).collect();
    assert_eq!(found, expected, "modules of {}", folder.display());
}

#[test]
fn imports_follow_the_flow_of_data() {
    check("src", "tidemill", &PRODUCT);
    check("dataflows/src", "dataflows", &DATAFLOWS);
    check("snapshots/src", "snapshots", &SNAPSHOTS);
}

#[test]
fn the_command_line_reads_the_store_through_the_service() {
    for file in product_files("src/cli") {
        let code = code(&file);
        for room in ["Searcher::open", "IndexReader", "Catalogue", "Archive::", "Database", "Memo"] {
            assert!(!code.contains(room), "{} names {room}", file.display());
        }
    }
}

#[test]
fn the_middle_and_the_archive_know_nothing_of_the_product_or_each_other() {
    for (folder, strangers) in
        [("dataflows/src", ["tidemill::", "snapshots::"]), ("snapshots/src", ["tidemill::", "dataflows::"])]
    {
        for file in product_files(folder) {
            let code = code(&file);
            for stranger in strangers {
                assert!(!code.contains(stranger), "{} names {stranger}", file.display());
            }
        }
    }
}

#[test]
fn the_middle_and_the_archive_leave_clock_and_network_alone_and_the_middle_the_disk() {
    let edges = ["std::net", "SystemTime", "std::process", "git2::", "tokio::"];
    for (folder, more) in [("dataflows/src", Some("std::fs")), ("snapshots/src", None)] {
        for file in product_files(folder) {
            let code = code(&file);
            for edge in edges.into_iter().chain(more) {
                assert!(!code.contains(edge), "{} touches {edge}", file.display());
            }
        }
    }
}

/// Returns the modules that a file declares.
fn declared(file: &Path) -> BTreeSet<String> {
    let code = code(file);
    code.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).map(str::to_owned).collect()
}

#[test]
fn no_law_is_forgotten() {
    let suite = root().join("tests/suite");
    for (folder, list) in [(suite.clone(), "main.rs"), (suite.join("support"), "mod.rs")] {
        let listed = declared(&folder.join(list));
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let is_list = path.file_name().is_some_and(|file| file == list);
            assert!(is_list || listed.contains(&name), "{} is not listed in {list}", path.display());
        }
    }
}

#[test]
fn every_file_opens_by_saying_what_it_promises() {
    for folder in ["src", "dataflows/src", "snapshots/src", "tests/suite"] {
        for file in rust_files(&root().join(folder)) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.starts_with("//! "), "{} does not open with `//!`", file.display());
        }
    }
}

#[test]
fn lists_of_imports_are_read_as_the_compiler_reads_them() {
    let code = "use crate::{data::{A, B}, memo, rules::Rules};\nlet x = crate::stage::Pool; use mycrate::nothing;";
    let expected = ["data", "memo", "rules", "stage"].map(str::to_owned);
    assert_eq!(imports(code, "library"), BTreeSet::from(expected));
}

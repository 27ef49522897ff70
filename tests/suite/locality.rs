//! The promise, as a test: **an edit moves the chunks that it touches, and no others.**
//!
//! A file of 4,000 lines is tracked, one thing about it changes, and the receipt of that commit says how many texts were embedded
//! and how many entries were inserted and retracted. Start reading at [`one_changed_line_moves_at_most_four_entries`].
//!
//! The receipt counts the work that the user waits for: everything else in the store stays.

use crate::support::{Picture, Repository, Running, Store, Tree, entries, git, tree, work};
use std::collections::BTreeSet;
use std::fmt::Write;
use tidemill::search::{Request, Searcher};

/// Lines of the file that is edited.
const LINES: usize = 4_000;

/// Every kind of text with its own cutter; `blob` has no structure at all.
const FILES: [&str; 8] = [
    "src/world.rs",
    "engine/world.cpp",
    "tools/world.py",
    "docs/world.md",
    "notes.txt",
    "data/world.json",
    "shaders/world.wgsl",
    "data/blob",
];

/// Returns a file of its kind with 4,000 lines, no two items alike.
fn long_file(path: &str) -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.lines().count() < LINES {
        for _ in 0..16 {
            item(&mut text, path, number);
            number += 1;
        }
    }
    let mut text: String = text.lines().take(LINES).collect::<Vec<_>>().join("\n");
    text.push('\n');
    text
}

fn item(text: &mut String, path: &str, number: usize) {
    let ending = path.rsplit('.').next().unwrap_or(path);
    // Items of three to seventeen lines, so that some are joined and some stay alone.
    let length = 3 + number * 7 % 15;
    let line = |text: &mut String, words: std::fmt::Arguments<'_>| text.write_fmt(words).unwrap();
    match ending {
        "rs" => line(text, format_args!("/// Moves part {number}.\nfn move_part_{number}(world: &mut World) {{\n")),
        "cpp" => line(text, format_args!("// Moves part {number}.\nvoid World::movePart{number}(float time) {{\n")),
        "py" => line(text, format_args!("def move_part_{number}(world):\n    \"\"\"Moves part {number}.\"\"\"\n")),
        "md" => line(text, format_args!("## Part {number}\n\n")),
        "json" => line(text, format_args!("  \"part_{number}\": {{\n")),
        "wgsl" => line(text, format_args!("fn move_part_{number}(time: f32) -> f32 {{\n")),
        _ => {}
    }
    for row in 0..length {
        let (a, b) = (number * 31 + row * 7, number * 13 + row);
        match ending {
            "md" | "txt" => line(text, format_args!("Row {row} of part {number} says {a} and then {b}.\n")),
            "json" => line(text, format_args!("    \"row_{row}\": [{a}, {b}],\n")),
            "py" => line(text, format_args!("    world.set_{row}({a}, {b})\n")),
            // Nothing but words: neither blank lines nor indentation nor sentences.
            "data/blob" => line(text, format_args!("value {a} weight {b} row {row} part {number}\n")),
            _ => line(text, format_args!("    world.set_{row}({a}, {b});\n")),
        }
    }
    match ending {
        "rs" | "cpp" | "wgsl" => text.push_str("}\n\n"),
        "json" => text.push_str("  },\n"),
        "data/blob" => {}
        _ => text.push('\n'),
    }
}

/// A repository with one long file, and a tracker that follows it.
struct Bench {
    repository: Repository,
    store: Store,
    running: Option<Running>,
    tree: Tree,
}

impl Bench {
    fn new(path: &str, text: &str) -> Self {
        // A manifest above and a neighbour beside: neither may move with the edit.
        let manifest = ("Cargo.toml", "[package]\nname = \"world\"\n");
        let tree = tree([(path, text), manifest, ("other.txt", "something else altogether\n")]);
        let mut bench = Self { repository: Repository::new(), store: Store::new(), running: None, tree };
        bench.commit();
        bench
    }

    /// Commits the tree as it is, and returns its receipt.
    fn commit(&mut self) -> [u64; 5] {
        self.repository.commit(&self.tree);
        let running = self.running.get_or_insert_with(|| self.store.open(git(self.repository.path(), &[], None)));
        let published = running.catch_up();
        assert_eq!(published.len(), 1, "a commit is one epoch");
        work(&published[0])
    }

    /// Commits a file with another text.
    fn write(&mut self, path: &str, text: &str) -> [u64; 5] {
        self.tree.insert(path.as_bytes().to_vec(), text.as_bytes().to_vec());
        self.commit()
    }

    /// Commits a file under another name.
    fn rename(&mut self, from: &str, to: &str) -> [u64; 5] {
        let text = self.tree.remove(from.as_bytes()).unwrap();
        self.tree.insert(to.as_bytes().to_vec(), text);
        self.commit()
    }

    /// Ends the tracker and opens the store for questions.
    fn searcher(&mut self) -> Searcher {
        self.running = None;
        self.store.searcher()
    }

    /// Returns every entry of a path as (symbol, text), with its first line.
    fn entries(&mut self, path: &str) -> Vec<((String, String), u32)> {
        let lines = entries(&self.searcher()).into_iter().filter(|line| line.path == path);
        lines.map(|line| ((line.symbol, line.text), line.lines.first)).collect()
    }
}

/// Returns the text with one line replaced.
fn with_line(text: &str, line: usize, replacement: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines[line] = replacement;
    lines.join("\n") + "\n"
}

/// Lines all over the file: both ends, round numbers, and some that fall on borders of items by chance.
fn positions() -> Vec<usize> {
    [0, 1, 2, 3, LINES - 1, LINES - 2].into_iter().chain((0..10).map(|step| 17 + step * 397)).collect()
}

#[test]
fn one_changed_line_moves_at_most_four_entries() {
    for path in FILES {
        let text = long_file(path);
        let mut bench = Bench::new(path, &text);
        for line in positions() {
            let old = text.lines().nth(line).unwrap();
            // One more word at the end of the line: the line stays a line of the same kind.
            let changed = with_line(&text, line, &format!("{old} changed"));
            let [cleaned, chunked, embedded, inserted, retracted] = bench.write(path, &changed);
            assert_eq!([cleaned, chunked], [1, 1], "{path}:{line}");
            assert!(embedded <= 2, "{path}:{line} embedded {embedded} texts");
            assert!(inserted + retracted <= 4, "{path}:{line} moved +{inserted} -{retracted} entries");
            let [cleaned, chunked, embedded, back_in, back_out] = bench.write(path, &text);
            assert_eq!([cleaned, chunked, embedded], [0; 3], "{path}:{line}: a revert computes nothing");
            assert_eq!([back_in, back_out], [retracted, inserted], "{path}:{line}: and moves back what moved");
        }
    }
}

#[test]
fn lines_added_at_the_top_move_no_other_entry() {
    let top = |path: &str| match path.rsplit('.').next().unwrap_or(path) {
        "rs" => "/// Comes first.\nfn comes_first() {\n    first();\n}\n\n",
        "cpp" => "// Comes first.\nvoid comesFirst() {\n    first();\n}\n\n",
        "py" => "def comes_first():\n    \"\"\"Comes first.\"\"\"\n    return 1\n\n",
        "md" => "## Comes first\n\nAn opening.\n\n",
        _ => "Comes first, before anything else.\n\n",
    };
    for path in FILES {
        let text = long_file(path);
        let mut bench = Bench::new(path, &text);
        let before = bench.entries(path);
        let added = top(path);
        let [_, _, embedded, inserted, retracted] = bench.write(path, &format!("{added}{text}"));
        // New lines are a separate entry or join the first one; nothing after them moves.
        assert!(embedded <= 2 && inserted <= 2, "{path}: +{inserted}, {embedded} embedded");
        assert!(retracted <= 1, "{path}: -{retracted}");
        let after: BTreeSet<_> = bench.entries(path).into_iter().collect();
        let shift = u32::try_from(added.lines().count()).unwrap();
        let stayed = before.iter().filter(|(entry, line)| after.contains(&(entry.clone(), line + shift))).count();
        assert_eq!(stayed + retracted as usize, before.len(), "{path}: the others stand {shift} lines further down");
    }
}

#[test]
fn a_rename_inside_its_folder_embeds_nothing() {
    for (from, to) in
        [("src/world.rs", "src/planet.rs"), ("docs/world.md", "docs/planet.md"), ("notes.txt", "news.txt")]
    {
        let mut bench = Bench::new(from, &long_file(from));
        let entries = bench.entries(from).len() as u64;
        let [cleaned, chunked, embedded, inserted, retracted] = bench.rename(from, to);
        assert_eq!([cleaned, chunked, embedded], [0; 3], "{from} → {to}");
        assert_eq!([inserted, retracted], [entries, entries], "every entry is at its new path: {from} → {to}");
        assert_eq!(bench.rename(to, from), [0, 0, 0, entries, entries], "and back");
    }
}

#[test]
fn an_edit_that_cleaning_takes_away_moves_nothing() {
    let path = "src/world.rs";
    let text = long_file(path);
    let mut bench = Bench::new(path, &text);
    let digest = |bench: &mut Bench| Picture::of(&bench.searcher(), None).digest;
    let before = digest(&mut bench);
    for (what, changed) in
        [("line ends of Windows", text.replace('\n', "\r\n")), ("a byte order mark", format!("\u{feff}{text}"))]
    {
        let [cleaned, chunked, embedded, inserted, retracted] = bench.write(path, &changed);
        assert_eq!(cleaned, 1, "{what}");
        assert_eq!([chunked, embedded, inserted, retracted], [0; 4], "{what}");
        assert_eq!(digest(&mut bench), before, "{what}");
    }
}

#[test]
fn a_section_renamed_moves_its_section_and_no_other() {
    let path = "docs/world.md";
    let text = long_file(path);
    let mut bench = Bench::new(path, &text);
    let [.., inserted, retracted] = bench.write(path, &text.replacen("## Part 40\n", "## The fortieth part\n", 1));
    assert!((1..=2).contains(&inserted) && (1..=2).contains(&retracted), "+{inserted} -{retracted}");
}

#[test]
fn a_module_renamed_moves_what_it_holds_and_nothing_is_cut_again() {
    let mut bench = Bench::new("src/world.rs", &long_file("src/world.rs"));
    let entries = bench.entries("src/world.rs").len() as u64 + 1; // and the manifest's own
    let [cleaned, chunked, embedded, inserted, retracted] = bench.write("Cargo.toml", "[package]\nname = \"planet\"\n");
    assert_eq!([cleaned, chunked], [1, 1], "the manifest itself");
    assert_eq!([embedded, inserted, retracted], [entries + 1; 3], "every card names the module");
    let [_, _, embedded, inserted, retracted] =
        bench.write("Cargo.toml", "[package]\nname = \"planet\"\nversion = \"2.0.0\"\n");
    assert_eq!([embedded, inserted, retracted], [1; 3], "a manifest that changes anything else moves itself only");
}

#[test]
fn what_an_edit_brings_is_found_and_what_it_takes_away_is_not() {
    let path = "src/world.rs";
    let text = long_file(path);
    let mut bench = Bench::new(path, &text);
    let hits = |bench: &mut Bench, word: &str| {
        let request = Request { mode: tidemill::search::Mode::Bm25, ..Request::new(word) };
        bench.searcher().search(&request).unwrap().hits.len()
    };
    assert_eq!(hits(&mut bench, "quicksilver"), 0);
    bench.write(path, &with_line(&text, 2_000, "// quicksilver"));
    assert_eq!(hits(&mut bench, "quicksilver"), 1);
    bench.write(path, &text);
    assert_eq!(hits(&mut bench, "quicksilver"), 0);
}

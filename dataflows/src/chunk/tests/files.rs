//! Texts to cut: files like code, documents, tables and walls of words.
//!
//! In: a seed and a size. Out: a text for each way of cutting.
//!
//! **Invariant:** a text follows from its seed, on every machine.

use crate::rules::{Rule, Rules};

/// A small generator with a fixed seed.
pub(in crate::chunk) struct Words(pub(in crate::chunk) u64);

impl Words {
    pub(in crate::chunk) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::chunk::cut::hash(&self.0.to_le_bytes())
    }

    pub(in crate::chunk) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn word(&mut self) -> &'static str {
        const WORDS: [&str; 24] = [
            "entity", "world", "render", "pass", "buffer", "query", "node", "light", "shadow", "mesh", "frame", "task",
            "system", "index", "spawn", "view", "camera", "asset", "handle", "layer", "vertex", "state", "graph",
            "time",
        ];
        WORDS[self.below(24) as usize]
    }

    pub(super) fn sentence(&mut self) -> String {
        let words: Vec<&str> = (0..4 + self.below(12)).map(|_| self.word()).collect();
        format!("The {} {}.", words.join(" "), self.below(1000))
    }

    pub(super) fn statement(&mut self, indent: usize) -> String {
        let (a, b, number) = (self.word(), self.word(), self.below(100_000));
        format!("{:indent$}let {a}_{number} = {b}({number});\n", "")
    }
}

fn rust_file(words: &mut Words, items: usize) -> String {
    let mut text = String::from("//! A file.\n\nuse std::fmt;\nuse std::mem;\n\n");
    for number in 0..items {
        let (name, lines) = (words.word(), 1 + words.below(30));
        match words.below(5) {
            0 => text += &format!("const {}_{number}: u32 = {};\n", name.to_uppercase(), words.below(99)),
            1 => {
                text += &format!("\nimpl {name}{number} {{\n");
                for member in 0..3 {
                    text += &format!("    /// {}\n    fn {name}_{member}(&self) {{\n", words.sentence());
                    (0..lines).for_each(|_| text.push_str(&words.statement(8)));
                    text.push_str("    }\n\n");
                }
                text.push_str("}\n\n");
            }
            _ => {
                text += &format!("\n/// {}\npub fn {name}_{number}() {{\n", words.sentence());
                (0..lines).for_each(|_| text.push_str(&words.statement(4)));
                text.push_str("}\n\n");
            }
        }
    }
    text
}

fn python_file(words: &mut Words, items: usize) -> String {
    let mut text = String::from("import os\nimport sys\n\n");
    for number in 0..items {
        let (name, lines) = (words.word(), 1 + words.below(20));
        text += &format!("def {name}_{number}(x):\n    \"\"\"{}\"\"\"\n", words.sentence());
        for _ in 0..lines {
            text += &format!("    {}_{} = {}\n", words.word(), words.below(9999), words.below(9999));
        }
        text.push_str("\n\n");
    }
    text
}

fn cpp_file(words: &mut Words, items: usize) -> String {
    let mut text = String::from("#pragma once\n#include <vector>\n\nnamespace engine {\n\n");
    for number in 0..items {
        let (name, lines) = (words.word(), 1 + words.below(20));
        if words.below(3) == 0 {
            text += &format!("class {name}{number} {{\npublic:\n");
            (0..lines).for_each(|n| text += &format!("    int {}_{n} = {};\n", words.word(), words.below(999)));
            text.push_str("};\n\n");
        } else {
            text += &format!("// {}\nvoid {name}_{number}(int x)\n{{\n", words.sentence());
            for _ in 0..lines {
                text += &format!("    {}({});\n", words.word(), words.below(99_999));
            }
            text.push_str("}\n\n");
        }
    }
    text + "}\n"
}

fn markdown_file(words: &mut Words, items: usize) -> String {
    let mut text = String::from("# Guide\n\n");
    for number in 0..items {
        text += &format!("## Section {} {number}\n\n", words.word());
        for _ in 0..1 + words.below(6) {
            for _ in 0..1 + words.below(5) {
                text += &format!("{}\n", words.sentence());
            }
            text.push('\n');
        }
        if words.below(4) == 0 {
            text += &format!("```rust\n# not a heading\n{}```\n\n", words.statement(0));
        }
    }
    text
}

fn prose_file(words: &mut Words, items: usize) -> String {
    let mut text = String::new();
    for _ in 0..items {
        for _ in 0..1 + words.below(8) {
            text += &format!("{}\n", words.sentence());
        }
        text.push('\n');
    }
    text
}

/// A text of about `items` parts for one of the ways of cutting.
pub(super) fn file(path: &str, seed: u64, items: usize) -> String {
    let words = &mut Words(seed);
    match path {
        "a.rs" => rust_file(words, items),
        "a.py" => python_file(words, items),
        "a.cpp" => cpp_file(words, items),
        "a.md" => markdown_file(words, items),
        "wall.txt" => (0..items * 10).map(|_| words.sentence() + "\n").collect(),
        "giant.rs" => {
            let body: String = (0..items * 10).map(|_| words.statement(4)).collect();
            format!("fn main() {{\n{body}}}\n")
        }
        "table.c" => {
            let rows: String =
                (0..items * 10).map(|_| format!("    ROW({}, {}),\n", words.next(), words.below(9))).collect();
            format!("static const long table[] = {{\n{rows}}};\n")
        }
        "a.lock" => {
            let record = |words: &mut Words| {
                let (name, number) = (words.word(), words.below(999));
                format!("[[package]]\nname = \"{name}-{number}\"\nversion = \"1.{}.0\"\n\n", words.below(30))
            };
            (0..items).map(|_| record(words)).collect()
        }
        "objects.json" => {
            let rows: String = (0..items * 2)
                .map(|_| format!("  {{\n    \"name\": \"{}\",\n    \"value\": {}\n  }},\n", words.word(), words.next()))
                .collect();
            format!("[\n{rows}  {{\n  }}\n]\n")
        }
        "a.json" => {
            let rows: String =
                (0..items * 4).map(|n| format!("  \"{}{n}\": {},\n", words.word(), words.below(99_999))).collect();
            format!("{{\n{rows}  \"end\": 0\n}}\n")
        }
        _ => prose_file(words, items),
    }
}

pub(super) const KINDS: [&str; 11] =
    ["a.rs", "a.py", "a.cpp", "a.md", "a.txt", "wall.txt", "giant.rs", "table.c", "a.json", "a.lock", "objects.json"];

/// Calls `on_text` with name, rule and cleaned text of every file below the folder that `TIDEMILL_CORPUS` names.
pub(in crate::chunk) fn each_of_corpus(mut on_text: impl FnMut(&str, &Rule, &str)) {
    let root = std::env::var_os("TIDEMILL_CORPUS").expect("TIDEMILL_CORPUS names a folder");
    let (rules, mut folders) = (Rules::built_in(), vec![std::path::PathBuf::from(root)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder can be read").flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
                continue;
            }
            let name = path.to_string_lossy();
            let rule = rules.rule(rules.for_path(&name.as_ref().into()));
            if let Ok(text) = crate::clean::clean(rule, &std::fs::read(&path).unwrap_or_default()) {
                on_text(&name, rule, &text);
            }
        }
    }
}

//! The promises of cutting: everything is covered, nothing is too large, an edit moves only what it touches.

pub(super) mod files;

use super::cut::HARD_CAP;
use super::payload::Condensed;
use super::*;
use crate::data::TextHash;
use crate::rules::Rules;
use expect_test::{Expect, expect};
use files::{KINDS, Words, each_of_corpus, file};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::time::Instant;

fn chunks(path: &str, text: &str) -> Vec<TextChunk> {
    let rules = Rules::built_in();
    chunk(rules.rule(rules.for_path(&path.into())), text)
}

/// Asserts the properties of the chunks of any text.
fn check_cover(path: &str, text: &str, chunks: &[TextChunk]) {
    let condensed = Condensed::of(text);
    let text = condensed.text();
    let mut at = 0;
    for TextChunk { chunk, text: slice } in chunks {
        let start = at + text[at..].find(slice.as_str()).expect("chunks are slices in order");
        assert!(text[at..start].trim().is_empty(), "{path}: only blank text lies between chunks");
        assert!(!slice.trim().is_empty(), "{path}: no chunk is blank");
        assert!(slice.len() <= HARD_CAP, "{path}: a chunk has {} bytes", slice.len());
        assert_eq!(chunk.text, TextHash::of(slice));
        let line_at = |end: usize| text[..end].matches('\n').count() + condensed.hidden(0..end) as usize + 1;
        let (first, last) = (line_at(start), line_at(start + slice.len()));
        assert_eq!((chunk.lines.first as usize, chunk.lines.last as usize), (first, last), "{path}");
        at = start + slice.len();
    }
    assert!(text[at..].trim().is_empty(), "{path}: the end is covered");
}

/// Returns how many chunks an edit removes and adds, ignoring lines.
fn moved(before: &[TextChunk], after: &[TextChunk]) -> (usize, usize) {
    let mut counts: BTreeMap<(&str, &str, &str), i64> = BTreeMap::new();
    for (chunks, sign) in [(before, -1), (after, 1)] {
        for TextChunk { chunk, text } in chunks {
            *counts.entry((&chunk.symbol, &chunk.name, text)).or_default() += sign;
        }
    }
    let sum = |sign: i64| counts.values().map(|count| (count * sign).max(0)).sum::<i64>();
    (sum(-1) as usize, sum(1) as usize)
}

/// Returns `text` with a number in its `index`-th line changed, or nothing if the line has none.
fn edit(text: &str, index: usize, number: u64) -> Option<String> {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let line = lines[index];
    let end = line.rfind(|c: char| c.is_ascii_digit())? + 1;
    let changed = format!("{}{number}{}", &line[..end], &line[end..]);
    lines[index] = &changed;
    Some(lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// Any text is covered, however broken.
    #[test]
    fn chunks_cover_the_text(kind in 0..KINDS.len(), seed: u64, from in 0_usize..100, count in 0_usize..30, noise in "[{}()\"'#`/*\n a-zé]{0,60}") {
        let path = KINDS[kind];
        let text = file(path, seed, 20);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let from = from.min(lines.len());
        let to = (from + count).min(lines.len());
        let broken = lines[..from].concat() + &noise + &lines[to..].concat();
        for text in [&text, &broken, &noise] {
            check_cover(path, text, &chunks(path, text));
        }
    }

    #[test]
    fn lines_on_top_move_no_other_chunk(kind in 0..KINDS.len(), seed: u64, count in 1_usize..50) {
        let path = KINDS[kind];
        let text = file(path, seed, 100);
        let comment = match path { "a.py" => "# x\n", "a.rs" | "a.cpp" | "giant.rs" | "table.c" => "// x\n", _ => "x\n" };
        let longer = comment.repeat(count) + "\n" + &text;
        let (before, after) = (chunks(path, &text), chunks(path, &longer));
        let (gone, new) = moved(&before, &after);
        // The first stretch grows at its head, and may be cut there if its start was too near before.
        prop_assert!(gone <= 2 && new <= 3, "{path}: {gone} gone, {new} new");
        for (chunk, shifted) in before.iter().rev().zip(after.iter().rev()).take(before.len() - 2) {
            prop_assert_eq!(&chunk.text, &shifted.text);
            prop_assert_eq!(chunk.chunk.lines.first as usize + count + 1, shifted.chunk.lines.first as usize);
        }
    }
}

/// One changed line changes the chunk it is in, and at most one beside it, if the text has structure.
///
/// In text without structure (one function, one table, no blank lines) a changed line whose border is a cut, or becomes one, may
/// move its neighbours' cuts. Measured with every third line of each kind: 19 such edits in 5,349, of four chunks at most.
#[test]
fn one_line_in_four_thousand_changes_two_chunks() {
    let (mut edits, mut beyond) = (0, 0);
    for path in KINDS {
        let (mut text, mut items) = (String::new(), 100);
        while text.lines().count() < 4_000 {
            text = file(path, 7, items);
            items += items / 2;
        }
        let before = chunks(path, &text);
        let structured = matches!(path, "a.rs" | "a.py" | "a.cpp" | "a.md");
        let parsed = structured || matches!(path, "giant.rs" | "table.c");
        for index in (0..4_000).step_by(if parsed { 173 } else { 15 }) {
            // Renaming the type of an `impl` renames its members.
            let renames = text.lines().nth(index).is_none_or(|line| line.starts_with("impl"));
            let Some(changed) = edit(&text, index, index as u64).filter(|_| !renames) else { continue };
            let (gone, new) = moved(&before, &chunks(path, &changed));
            assert!(gone.max(new) <= if structured { 2 } else { 4 }, "{path}:{index}: {gone} gone, {new} new");
            edits += 1;
            beyond += usize::from(gone.max(new) > 2);
        }
    }
    assert!(edits > 800 && beyond * 100 <= edits, "{beyond} of {edits} edits move more than two chunks");
}

#[test]
fn long_lines_are_cut_by_content_and_find_their_cuts_again() {
    let words = &mut Words(3);
    let prose: String = (0..3_000).map(|_| words.sentence() + " ").collect();
    let minified: String = (0..9_000).map(|_| format!("{}({});", words.word(), words.below(9_999))).collect();
    // A run without a border anywhere; payload would be left out.
    let blob: String = (0..12_000).map(|_| format!("{:x}", words.next())).collect();
    let rules = Rules::built_in();
    let whole = |path: &str, text: &str| {
        let rule = rules.rule(rules.for_path(&path.into()));
        piece::assemble(&Condensed::whole(text), Vec::new(), Vec::new(), &shape_of(rule))
    };
    for (path, text) in [("a.txt", prose), ("a.js", minified), ("a.bin", blob)] {
        let is_run = path == "a.bin";
        let cut = |text: &str| if is_run { whole(path, text) } else { chunks(path, text) };
        let before = cut(&text);
        if is_run {
            assert_eq!(
                before.iter().map(|chunk| chunk.text.as_str()).collect::<String>(),
                text,
                "all of it is covered"
            );
        } else {
            check_cover(path, &text, &before);
        }
        assert!(before.len() > text.len() / 2_500);
        for at in (1..50).map(|step| text.len() / 50 * step) {
            let changed = format!("{}inserted words, {}", &text[..at], &text[at..]);
            let (gone, new) = moved(&before, &cut(&changed));
            assert!(gone <= 3 && new <= 3, "{path}: {gone} gone, {new} new");
        }
    }
}

#[test]
fn a_line_that_makes_an_item_too_long_splits_it_in_two() {
    let words = &mut Words(5);
    let mut body = String::new();
    let mut counts = Vec::new();
    for _ in 0..200 {
        body.push_str(&words.statement(4));
        counts.push(chunks("a.rs", &format!("fn a() {{\n{body}}}\n")).len());
    }
    assert!(counts.windows(2).all(|pair| pair[1].abs_diff(pair[0]) <= 1), "{counts:?}");
    assert_eq!(counts[40], 1, "an item under the limit is whole");
}

/// One MiB, the size limit of a document, of text without structure and of the hardest input for the grammars.
///
/// The bounds are far above the time on a quiet machine: they separate quadratic from linear, not fast from slow.
#[test]
fn hostile_text_is_cut_in_time() {
    const MEBIBYTE: usize = 1 << 20;
    let timed = |path: &str, part: &str| {
        let text = part.repeat(MEBIBYTE / part.len());
        let start = Instant::now();
        let found = chunks(path, &text);
        let taken = start.elapsed().as_secs_f64();
        assert!(taken < 10.0, "{path} of {part:?}: {taken} s");
        assert!(found.iter().all(|chunk| chunk.text.len() <= HARD_CAP && !chunk.text.trim().is_empty()));
    };
    for part in ["{", "#", "x", "\n", " ", "a\n", "ß", "> ", "[a](", "```\n", "# a\n", "*a_"] {
        for path in ["a.md", "a.txt", "a.json"] {
            timed(path, part);
        }
    }
    for path in ["a.rs", "a.c", "a.cpp", "a.py"] {
        let hard = [
            "\n",
            "{",
            "\"",
            "#if X\n",
            "fn a() {}",
            "impl A {\n",
            "U\u{3000}",
            "UCLASS(",
            "/*",
            "<",
            "[",
            "class A:\n ",
            "a\n",
            "r#\"",
            "a::",
            "a?b:",
            "(a)(b)*",
        ];
        for part in hard {
            timed(path, part);
        }
    }
}

/// Shows each chunk as its lines, symbol, name and the first words of its text.
fn check(path: &str, text: &str, expected: Expect) {
    let mut shown = String::new();
    for TextChunk { chunk, text } in chunks(path, text) {
        let head: String = text.chars().take(20).collect();
        let (first, last) = (chunk.lines.first, chunk.lines.last);
        shown += &format!("{first}-{last} {:?} {:?} {head:?}\n", chunk.symbol, chunk.name);
    }
    expected.assert_eq(&shown);
}

#[test]
fn sections_are_named_by_their_headings() {
    let text = "\
---
title: Guide
---

Before any heading.

# Guide to `ECS`

## Queries

One.

```sh
# no heading
```

Setext
------

Two.

### Deep

> # quoted

## Last
";
    check(
        "a.md",
        text,
        expect![[r####"
        1-5 "" "" "---\ntitle: Guide\n---"
        7-15 "" "Guide to ECS > Queries" "# Guide to `ECS`\n\n##"
        17-20 "" "Guide to ECS > Setext" "Setext\n------\n\nTwo."
        22-24 "" "Guide to ECS > Setext > Deep" "### Deep\n\n> # quoted"
        26-26 "" "Guide to ECS > Last" "## Last"
    "####]],
    );
}

#[test]
fn small_pieces_share_a_chunk_and_items_do_not() {
    let text = "\
use a;
use b;

const A: u32 = 1;
const B: u32 = 2;

fn f() {}

const C: u32 = 3;

impl X {
    fn g() {}
    fn h() {}
}
";
    check(
        "a.rs",
        text,
        expect![[r#"
        1-5 "" "" "use a;\nuse b;\n\nconst"
        7-7 "f" "fn f()" "fn f() {}"
        9-9 "C" "const C: u32" "const C: u32 = 3;"
        11-12 "X::g" "fn g()" "impl X {\n    fn g() "
        13-14 "X::h" "fn h()" "    fn h() {}\n}"
    "#]],
    );
}

#[test]
fn a_long_item_continues_under_its_symbol_alone() {
    let words = &mut Words(11);
    let body: String = (0..150).map(|_| words.statement(8)).collect();
    let text = format!("impl World {{\n    pub fn spawn(&mut self, n: u32) {{\n{body}    }}\n}}\n");
    check(
        "a.rs",
        &text,
        expect![[r#"
            1-13 "World::spawn" "pub fn spawn(&mut self, n: u32)" "impl World {\n    pub"
            14-67 "World::spawn" "World::spawn" "        let frame_17"
            68-79 "World::spawn" "World::spawn" "        let frame_55"
            80-88 "World::spawn" "World::spawn" "        let index_89"
            89-100 "World::spawn" "World::spawn" "        let query_68"
            101-154 "World::spawn" "World::spawn" "        let query_63"
        "#]],
    );
}

/// Measures a corpus: `TIDEMILL_CORPUS=folder cargo test --release corpus -- --ignored --nocapture`.
#[test]
#[ignore = "measures a folder that the environment names"]
fn corpus() {
    let mut totals: BTreeMap<String, (usize, usize, usize, f64)> = BTreeMap::new();
    each_of_corpus(|name, rule, text| {
        let start = Instant::now();
        let found = chunk(rule, text);
        let seconds = start.elapsed().as_secs_f64();
        check_cover(name, text, &found);
        let total = totals.entry(format!("{}/{}", rule.chunker(), rule.language())).or_default();
        *total = (total.0 + 1, total.1 + text.len(), total.2 + found.len(), total.3 + seconds);
    });
    for (kind, (files, bytes, chunks, seconds)) in totals {
        let speed = bytes as f64 / 1e6 / seconds;
        eprintln!(
            "{kind:20} {files:6} files {bytes:10} bytes {chunks:7} chunks of {:5} {speed:6.1} MB/s",
            bytes / chunks.max(1)
        );
    }
}

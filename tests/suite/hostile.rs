//! Hostile texts: any text costs at most 2 s of processor time and 200 MB, and a crash costs no more.
//!
//! Texts are repetitions of each grammar's tokens, up to the size limit of a document. Texts that once needed a fix are listed by
//! name; the rest follows from a seed. `TIDEMILL_FUZZ_SECONDS=3600` tests for an hour.
//!
//! The limits are those of workers: a text that exceeds one has no outline, and fails here.

use crate::workers::program;
use dataflows::chunk::cut_text;
use dataflows::clean::clean;
use dataflows::code::{Outline, OutlineError, Outliner, module_name};
use dataflows::data::{NoSyntax, SplitMix};
use dataflows::rules::Rules;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use tidemill::workers::Workers;
use tree_sitter::Language;

/// The size limit of a document.
const LARGEST: usize = 1 << 20;

/// The allowed cost of a text.
const PROCESSOR: Duration = Duration::from_secs(2);
const MEMORY: u64 = 200 << 20;

/// Tokens that no grammar lists: of literals, comments and layout, and some names and numbers.
const MORE_TOKENS: [&str; 32] = [
    "a",
    "1",
    "a ",
    "\n",
    " ",
    "\t",
    "\"",
    "'",
    "'a",
    "'a'",
    "r#\"",
    "r#",
    "R\"(",
    "b\"",
    "f\"",
    "'''",
    "\"\"\"",
    "//",
    "///",
    "/*",
    "*/",
    "#",
    "#if\n",
    "#if X\n",
    "#endif\n",
    "#define A ",
    "\\\n",
    "\\",
    "é",
    "\u{3000}",
    "\0",
    "UCLASS(",
];

/// Texts that once took too long, too much or the process: language, what comes first, and what is repeated.
const NAMED: [(&str, &str, &str); 26] = [
    // Errors that are few a byte, of long tokens.
    ("rust", "", "_raw_string_literal_start\nuse_bounds_repeat1\n%=\n..\n"),
    // The time of each line continuation grows with their number.
    ("python", "", "\\\nstring_content_repeat1"),
    // An ambiguity that never resolves: its stack was freed by recursion.
    ("c", "", "(a)(b)*"),
    ("cpp", "", "(a)(b)*"),
    // External scanners that search for an end up to the end of the text.
    ("rust", "", "r#\""),
    ("rust", "", "r##\""),
    ("rust", "", "/*"),
    ("cpp", "", "R\"("),
    ("python", "", "\n #"),
    // Recovery at each token.
    ("rust", "", "\""),
    ("rust", "", "a?b:"),
    ("c", "", "a::"),
    ("cpp", "", "a<"),
    ("cpp", "", "a*b,"),
    ("rust", "fn ordinary() {}\n", "\""),
    // Nesting.
    ("rust", "", "{"),
    ("c", "", "{"),
    ("python", "", "if a:\n "),
    ("python", "", "["),
    ("rust", "", "impl A {\n"),
    ("cpp", "", "template<class T>"),
    ("c", "", "#if X\n"),
    // After the parser: many spaces before many items, long names, unclosed macros.
    ("rust", "\u{3000}", "fn a() {}"),
    (
        "python",
        "",
        "class aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:\n ",
    ),
    ("cpp", "", "UCLASS("),
    ("cpp", "", "UCLASS(\""),
];

/// Texts for the cutters that need no grammar, and for what leaves out runs without words.
const PLAIN: [&str; 37] = [
    "{",
    "#",
    "x",
    "\n",
    " ",
    "a\n",
    "ß",
    "> ",
    ">",
    "[a](",
    "[",
    "```\n",
    "`",
    "# a\n",
    "*a_",
    "*",
    "_",
    "|",
    "|a|\n|-|\n",
    "<a ",
    "<!--",
    "- ",
    "1. ",
    "- a\n ",
    "[a]: b\n",
    "![",
    "&amp;",
    "\\",
    "a  \n",
    "---\n",
    "QUJD",
    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3ODkw\n",
    "\\x4f",
    "AAAA,CAAC;",
    "0x4f, ",
    "1.5 -2e3\n",
    "00000010: 0011 2233 4455 6677 8899 aabb ccdd eeff  ................\n",
];

/// A file of each language whose cutting asks a parser.
const CODE: [(&str, &str); 4] = [("rust", "a.rs"), ("c", "a.c"), ("cpp", "a.cpp"), ("python", "a.py")];

fn language(name: &str) -> Language {
    match name {
        "rust" => tree_sitter_rust::LANGUAGE.into(),
        "c" => tree_sitter_c::LANGUAGE.into(),
        "cpp" => tree_sitter_cpp::LANGUAGE.into(),
        _ => tree_sitter_python::LANGUAGE.into(),
    }
}

/// Returns the tokens of a grammar: the nodes that have no name of their own.
fn tokens(name: &str) -> Vec<String> {
    let language = language(name);
    let kinds = (0..language.node_kind_count()).filter_map(|id| u16::try_from(id).ok());
    let anonymous = kinds.filter(|id| !language.node_kind_is_named(*id));
    let mut tokens: Vec<String> = anonymous.filter_map(|id| language.node_kind_for_id(id)).map(str::to_owned).collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens.extend(MORE_TOKENS.map(str::to_owned));
    tokens
}

/// The same draws on every machine.
struct Draw(SplitMix);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    /// Returns one to four tokens, with or without blanks between them.
    fn unit(&mut self, tokens: &[String]) -> String {
        let between = ["", "", " ", "\n"][self.below(4)];
        let parts: Vec<&str> = (0..1 + self.below(4)).map(|_| tokens[self.below(tokens.len())].as_str()).collect();
        parts.join(between) + between
    }

    /// Returns a text of one repeated unit; sometimes another unit precedes it as often.
    fn text(&mut self, tokens: &[String]) -> (String, String) {
        let size = [LARGEST, LARGEST, LARGEST / 4, LARGEST / 16][self.below(4)];
        let unit = self.unit(tokens);
        if self.below(4) > 0 {
            return (format!("{unit:?} to {size} bytes"), grown("", &unit, size));
        }
        let first = self.unit(tokens);
        let text = grown("", &first, size / 2) + &grown("", &unit, size / 2);
        (format!("{first:?}, then {unit:?}, to {size} bytes"), text)
    }
}

/// Returns `first` and then `unit` over and over, up to so many bytes.
fn grown(first: &str, unit: &str, size: usize) -> String {
    first.to_owned() + &unit.repeat(size.saturating_sub(first.len()) / unit.len().max(1))
}

/// Workers on a machine that has much else to do: one that got no processor for a minute says nothing of its text.
struct Patient(Workers);

impl Outliner for Patient {
    fn outline(&self, language: &str, text: &str) -> Result<Outline, OutlineError> {
        let got_no_processor = |outline: &Result<Outline, OutlineError>| matches!(outline, Err(OutlineError::Failed { reason }) if reason.ends_with("more than 60 s"));
        let mut tries = (0..5).map(|_| self.0.outline(language, text));
        tries.find(|outline| !got_no_processor(outline)).unwrap_or_else(|| self.0.outline(language, text))
    }
}

fn workers() -> Patient {
    Patient(Workers::start(program()).unwrap())
}

/// Returns a number of kilobytes that the system knows of this process.
fn kilobytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Cleans and cuts a text as a tracker does, and holds it against the limits: a worker keeps those of the parser.
fn check(workers: &Patient, path: &str, what: &str, text: &str) {
    let rules = Rules::built_in();
    let rule = rules.rule(rules.for_path(&path.into()));
    // Resets the peak of resident memory.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let (memory, clock) = (kilobytes("VmRSS"), || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap());
    let begun = clock();
    let Ok(cleaned) = clean(rule, text.as_bytes()) else { return };
    let cut = cut_text(rule, &cleaned, workers).unwrap_or_else(|error| panic!("{path}, {what}: {error}"));
    let taken = clock() - begun;
    assert!(taken < PROCESSOR, "{path}, {what}: {taken:?}");
    assert_ne!(cut.no_syntax, Some(NoSyntax::Crash), "{path}, {what}: it crashes the parser");
    let grown = kilobytes("VmHWM").saturating_sub(memory) << 10;
    // Without nextest other tests share the process, and what they hold counts too.
    if std::env::var_os("NEXTEST").is_some() {
        assert!(grown < MEMORY, "{path}, {what}: {} MB", grown >> 20);
    }
    let is_chunk = |text: &str| text.len() <= 4_000 && !text.trim().is_empty();
    assert!(cut.chunks.iter().all(|chunk| is_chunk(&chunk.text)), "{path}, {what}");
}

#[test]
fn texts_that_once_cost_too_much_are_cut_within_the_limits() {
    let workers = workers();
    for (language, first, unit) in NAMED {
        let (_, path) = CODE.into_iter().find(|(name, _)| *name == language).unwrap();
        check(&workers, path, &format!("{unit:?}"), &grown(&first.repeat(100), unit, LARGEST));
    }
    for unit in PLAIN {
        for path in ["a.md", "a.txt", "a.json"] {
            check(&workers, path, &format!("{unit:?}"), &grown("", unit, LARGEST));
        }
    }
}

#[test]
fn random_repetitions_are_cut_within_the_limits() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let budget = Duration::from_secs(number("TIDEMILL_FUZZ_SECONDS").unwrap_or(30));
    let mut draw = Draw(SplitMix::new(number("TIDEMILL_FUZZ_SEED").unwrap_or(20)));
    let workers = workers();
    let code = CODE.map(|(language, path)| (path, tokens(language)));
    let plain: Vec<String> = PLAIN.into_iter().chain(MORE_TOKENS).map(str::to_owned).collect();
    let begun = Instant::now();
    let mut looked_at = 0;
    while begun.elapsed() < budget {
        for (path, tokens) in &code {
            let (what, text) = draw.text(tokens);
            check(&workers, path, &what, &text);
        }
        let path = ["a.md", "a.md", "a.txt", "a.json", "a.toml"][draw.below(5)];
        let (what, text) = draw.text(&plain);
        check(&workers, path, &what, &text);
        looked_at += 1 + code.len();
    }
    println!("{looked_at} texts");
}

#[test]
fn manifests_that_nest_or_repeat_name_nothing_within_the_limit() {
    for (path, unit) in [
        ("Cargo.toml", "a."),
        ("Cargo.toml", "[a]\n"),
        ("Cargo.toml", "a = {"),
        ("package.json", "{\"a\":"),
        ("setup.cfg", "["),
    ] {
        let begun = clock_gettime(ClockId::ThreadCPUTime);
        assert_eq!(module_name(&path.into(), &grown("", unit, LARGEST)), None, "{path}, {unit:?}");
        let taken = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime) - begun).unwrap();
        assert!(taken < PROCESSOR, "{path}, {unit:?}: {taken:?}");
    }
}

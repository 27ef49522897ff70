//! The grammars, and one parser per thread.
//!
//! In: a language's name and a text. Out: its syntax tree, or the count whose budget was spent first.
//!
//! **Invariant:** the text alone decides whether it is parsed: budgets count the parser's steps, the bytes it reads and the
//! errors it meets, so a slow or busy machine gives the same tree. The parser recovers from errors, so a tree does not mean that
//! the text is correct.
//!
//! Three things cost time and one costs memory, and each has its count:
//!
//! ```text
//!  steps        ambiguity: the parser follows several readings at once   reported every hundred, compared with the bytes reached
//!  bytes read   an external scanner that looks ahead to the text's end   the text is handed out in small slices
//!  errors       recovery tries every token of the grammar at each        counted in a second parse, of one step in 33
//!  open tokens  nesting and other unfinished tokens, in memory           counted in the same second parse
//! ```
//!
//! The budgets of steps and errors grow with the parser's position, so an expensive text is abandoned near its beginning. None
//! grows above [`LARGEST`] bytes: a rule may allow larger files, and they cost no more.

use crate::data::NoSyntax;
use crate::rules::GRAMMARS;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use tree_sitter::{Language, LogType, ParseOptions, ParseState, Parser, Tree};

/// Text size in bytes up to which budgets grow.
const LARGEST: usize = 1 << 20;

/// Allowed reports per byte up to the parser's position, and a fixed number beside that; the parser reports every hundred steps.
///
/// Of 19,700 files of published Rust, C, C++ and Python code the median takes 0.006 reports a byte and all but two take fewer
/// than 0.029; two tables of numbers take 0.057. Ambiguous text takes up to 0.18.
const REPORTS_PER_BYTE: f64 = 0.03;
const SPARE_REPORTS: f64 = 300.0;

/// Bytes handed to the parser at once. Repeated reads inside one slice are not seen, so a slice is small; handing out slices
/// costs less than a hundredth of a parse.
const SLICE: usize = 256;

/// Bytes that may be handed out per byte of the text, and a fixed number beside that.
///
/// Of the same files the median takes 1.5 bytes a byte, all but one in a thousand fewer than 6.4, and the most 21.6 in 69 KB:
/// Python's scanner reads comments again to find the end of a block. A scanner that searches the end of an unclosed literal reads
/// the whole rest of the text each time. The fixed number takes some 0.4 s, and lets a comment of hundreds of lines pass.
const READ_PER_BYTE: f64 = 16.0;
const SPARE_READ: f64 = 33_554_432.0;

/// Most unfinished tokens: each takes some 300 bytes.
const MOST_OPEN: i64 = 200_000;

/// How often the parser reports per byte of code at the most, but for one file in some; errors come with more, mostly.
const USUAL_REPORTS_PER_BYTE: f64 = 0.009;

/// One report in so many is examined, because reporting a step takes ten times as long as the step.
const COUNTED_OF: u64 = 33;

/// Allowed errors per byte up to the parser's position, and a fixed number beside that.
///
/// A header full of macros that the grammar does not know has 0.04 a byte. Text that is no code at all has one or two a byte,
/// each of which takes as long as a hundred steps.
const ERRORS_PER_BYTE: f64 = 0.05;
const SPARE_ERRORS: f64 = 10_000.0;

/// A language that can be cut by its syntax.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Grammar {
    Rust,
    C,
    Cpp,
    Python,
}

impl Grammar {
    /// Returns the grammar for a language name of the rules.
    pub(super) fn named(language: &str) -> Option<Self> {
        let index = GRAMMARS.iter().position(|grammar| grammar.0 == language)?;
        [Self::Rust, Self::C, Self::Cpp, Self::Python].get(index).copied()
    }

    /// Returns whether errors and open tokens are to be counted by now: not in a file of usual size, nor in one of up to some
    /// 200 KB with as many steps a byte as code has and no error that shows, where a second parse costs most and has nothing to
    /// find. Python's line continuations take longer with each that stands in front of them, so they are counted
    /// early.
    fn is_counted(self, meter: &Meter<'_>) -> bool {
        let reports = meter.reports.get();
        match self {
            Self::Rust | Self::C | Self::Cpp => {
                let is_dense = reports as f64 > USUAL_REPORTS_PER_BYTE * meter.reached.get() as f64;
                reports >= if is_dense || meter.has_error.get() { 600 } else { 1_500 }
            }
            Self::Python => reports >= 150,
        }
    }

    /// Returns the most errors of a text. Published headers have 34,000; Python's line continuations take 60 µs each after 4,000
    /// others.
    const fn most_errors(self) -> f64 {
        match self {
            Self::Rust | Self::C | Self::Cpp => 60_000.0,
            Self::Python => 4_000.0,
        }
    }

    /// Returns the grammar itself.
    pub(super) fn language(self) -> Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::Cpp => tree_sitter_cpp::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
        }
    }
}

thread_local! {
    static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
}

/// Returns the tree of `text`, or the count whose budget was spent.
pub(super) fn parse(grammar: Grammar, text: &str) -> Result<Tree, NoSyntax> {
    PARSER.with_borrow_mut(|parser| {
        let language = grammar.language();
        parser.set_language(&language).map_err(|_| NoSyntax::Grammar)?;
        let meter = Meter::new(text.as_bytes());
        let mut is_counted = false;
        let tree = meter.parse(parser, &mut || {
            if !is_counted && grammar.is_counted(&meter) {
                is_counted = true;
                meter.spent.set(meter.spent.get().or_else(|| spent_unseen(grammar, text.as_bytes())));
            }
            ControlFlow::Continue(())
        });
        // A stopped parser would resume on whatever text comes next.
        parser.reset();
        match (meter.spent.get(), tree) {
            (Some(spent), _) => Err(spent),
            (None, tree) => tree.ok_or(NoSyntax::Steps),
        }
    })
}

/// The counts of a parse so far.
struct Meter<'t> {
    text: &'t [u8],
    reports: Cell<u64>,
    reached: Cell<usize>,
    /// Whether a report came while tokens were skipped; not all errors show so.
    has_error: Cell<bool>,
    read: Cell<usize>,
    spent: Cell<Option<NoSyntax>>,
}

impl<'t> Meter<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            reports: Cell::new(0),
            reached: Cell::new(0),
            has_error: Cell::new(false),
            read: Cell::new(0),
            spent: Cell::new(None),
        }
    }

    /// Parses, or resumes a paused parse; returns nothing if a budget is spent or `pause` says so.
    fn parse(&self, parser: &mut Parser, pause: &mut dyn FnMut() -> ControlFlow<()>) -> Option<Tree> {
        let mut progress = |state: &ParseState| {
            self.report(state.current_byte_offset());
            self.has_error.set(self.has_error.get() || state.has_error());
            let paused = pause();
            if self.spent.get().is_some() { ControlFlow::Break(()) } else { paused }
        };
        let mut read = |offset: usize, _| self.slice(offset);
        parser.parse_with_options(&mut read, None, Some(ParseOptions::new().progress_callback(&mut progress)))
    }

    fn report(&self, offset: usize) {
        self.reports.set(self.reports.get() + 1);
        self.reached.set(self.reached.get().max(offset));
        if self.reports.get() as f64 > SPARE_REPORTS + REPORTS_PER_BYTE * self.counted() {
            self.spend(NoSyntax::Steps);
        }
    }

    /// Returns the slice at `offset`; nothing once a budget is spent, which ends any scanner's search.
    fn slice(&self, offset: usize) -> &'t [u8] {
        let rest = self.text.get(offset..).unwrap_or_default();
        let slice = &rest[..rest.len().min(SLICE)];
        self.read.set(self.read.get() + slice.len());
        if self.read.get() as f64 > SPARE_READ + READ_PER_BYTE * self.text.len().min(LARGEST) as f64 {
            self.spend(NoSyntax::Read);
        }
        if self.spent.get().is_some() { &[] } else { slice }
    }

    /// Returns the bytes up to the parser's position, as far as budgets grow with them.
    fn counted(&self) -> f64 {
        self.reached.get().min(LARGEST) as f64
    }

    fn spend(&self, what: NoSyntax) {
        self.spent.set(self.spent.get().or(Some(what)));
    }
}

/// The parser's reports on the examined steps.
#[derive(Default)]
struct Tally {
    errors: AtomicU64,
    /// Tokens and nodes on the stack that are not yet part of a larger node.
    open: AtomicI64,
}

impl Tally {
    /// Processes one log line of the parser (`LOG` in tree-sitter's `parser.c`, whose version `rules/version.rs` names).
    fn take(&self, step: &str) {
        if step.starts_with("detect_error") || step.starts_with("skip_token") {
            self.errors.fetch_add(1, Ordering::Relaxed);
        } else if step.starts_with("shift") {
            self.open.fetch_add(1, Ordering::Relaxed);
        } else if let Some((_, children)) = step.strip_prefix("reduce ").and_then(|step| step.rsplit_once(':')) {
            self.open.fetch_sub(children.parse().unwrap_or(1) - 1, Ordering::Relaxed);
        }
    }
}

/// Receives the parser's log lines.
type Logger = Box<dyn FnMut(LogType, &str) + Send>;

/// Parses `text` a second time, examines one report in [`COUNTED_OF`], and returns the spent count, if any.
///
/// A parser reports errors and shifts only if it reports every step. It is paused to switch reporting on and again to switch it
/// off. A pause may change how an ambiguity is resolved, so this parse only counts; the one that gives the tree has no pauses.
fn spent_unseen(grammar: Grammar, text: &[u8]) -> Option<NoSyntax> {
    let mut parser = Parser::new();
    parser.set_language(&grammar.language()).ok()?;
    let meter = Meter::new(text);
    let tally = Arc::new(Tally::default());
    let mut is_told = false;
    loop {
        let count = tally.clone();
        parser.set_logger(is_told.then(|| -> Logger { Box::new(move |_, step| count.take(step)) }));
        let begun = meter.reports.get();
        let end = begun + if is_told { 1 } else { COUNTED_OF - 1 };
        let tree = meter.parse(&mut parser, &mut || match meter.reports.get() < end {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
        if tree.is_some() || meter.spent.get().is_some() || meter.reports.get() == begun {
            return meter.spent.get();
        }
        let errors = tally.errors.load(Ordering::Relaxed) * COUNTED_OF;
        if errors as f64 > (SPARE_ERRORS + ERRORS_PER_BYTE * meter.counted()).min(grammar.most_errors()) {
            return Some(NoSyntax::Errors);
        }
        if tally.open.load(Ordering::Relaxed) * COUNTED_OF as i64 > MOST_OPEN {
            return Some(NoSyntax::Open);
        }
        is_told = !is_told;
    }
}

//! What a text's items are, whatever process parses it.
//!
//! In: a cleaned text and its language. Out: marks, or why there are none.
//!
//! **Invariant:** an outline is a function of language and text. An error is none: it is owed to the moment (a limit of time
//! or memory, a process that could not be started) and never stored.

use super::language::{Grammar, parse};
use super::mask::mask;
use super::{Mark, item};
use crate::data::NoSyntax;
use serde::{Deserialize, Serialize};

/// The stack of a thread that parses, in bytes: one constant, so that a text overflows it everywhere or nowhere.
pub const PARSER_STACK: usize = 16 << 20;

/// Texts with more bytes are parsed on a stack of [`PARSER_STACK`]; shorter ones fit into any thread's.
const SHORT: usize = 16 << 10;

/// What parsing made of a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outline {
    /// Where its items start, in order.
    Marks(Vec<Mark>),
    /// It is to be cut without its syntax.
    Without(NoSyntax),
}

/// Why a text has no outline for now.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutlineError {
    /// The parser did not come to an end.
    #[error("cannot parse the text: {reason}; the next start tries again")]
    Failed {
        /// What became of the parser.
        reason: String,
    },
    /// The work is to end, and this text was not parsed.
    #[error("cannot parse the text: the tracker is stopping")]
    Halted,
}

/// Parses texts. Every method may be called from any thread.
pub trait Outliner: Send + Sync + 'static {
    /// Returns the outline of a text.
    ///
    /// # Errors
    /// Where that is owed to the moment.
    fn outline(&self, language: &str, text: &str) -> Result<Outline, OutlineError>;

    /// Ends what is under way: every call returns soon.
    fn halt(&self) {}
}

/// Parses in this process, which a text that crashes the parser takes with it.
#[derive(Clone, Copy, Default, Debug)]
pub struct InProcess;

impl Outliner for InProcess {
    fn outline(&self, language: &str, text: &str) -> Result<Outline, OutlineError> {
        if text.len() <= SHORT {
            return Ok(outline(language, text));
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(PARSER_STACK);
            let failed = |reason: String| OutlineError::Failed { reason };
            let parsing = thread.spawn_scoped(scope, || outline(language, text));
            let parsing = parsing.map_err(|error| failed(format!("no thread can be started: {error}")))?;
            parsing.join().map_err(|_| failed("the parser panicked".to_owned()))
        })
    }
}

/// Returns the outline of a text, parsed on this thread.
#[must_use]
pub fn outline(language: &str, text: &str) -> Outline {
    let Some(grammar) = Grammar::named(language) else { return Outline::Without(NoSyntax::Grammar) };
    let masked = mask(grammar, text);
    let marks = parse(grammar, &masked).and_then(|tree| item::marks(grammar, text, &tree));
    marks.map_or_else(Outline::Without, Outline::Marks)
}

//! The items of a text, independent of the process that parses it.
//!
//! In: a cleaned text and its language. Out: marks, or the reason why there are none.
//!
//! **Invariant:** an outline is a function of language and text. An error is not an outline: it is transient (a limit of time or
//! memory, a process that could not be started) and never stored.

use super::language::{Grammar, parse};
use super::mask::mask;
use super::{Mark, item};
use crate::data::NoSyntax;
use serde::{Deserialize, Serialize};

/// The stack of a parsing thread, in bytes: one constant, so that a text overflows it everywhere or nowhere.
pub const PARSER_STACK: usize = 16 << 20;

/// Larger texts are parsed on a stack of [`PARSER_STACK`]; shorter ones fit into any thread's stack.
const SHORT: usize = 16 << 10;

/// The result of parsing a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outline {
    /// The starts of its items, in order.
    Marks(Vec<Mark>),
    /// It is to be cut without its syntax.
    Without(NoSyntax),
}

/// Reason why a text has no outline for now.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutlineError {
    /// The parser did not finish.
    #[error("cannot parse the text: {reason}; the next start tries again")]
    Failed {
        /// The failure.
        reason: String,
    },
    /// The tracker stops, and this text was not parsed.
    #[error("cannot parse the text: the tracker is stopping")]
    Halted,
}

/// Parses texts. Every method may be called from any thread.
pub trait Outliner: Send + Sync + 'static {
    /// Returns the outline of a text.
    ///
    /// # Errors
    /// If the failure is transient.
    fn outline(&self, language: &str, text: &str) -> Result<Outline, OutlineError>;

    /// Stops the work in progress: every call returns soon.
    fn halt(&self) {}
}

/// Parses in this process; a text that crashes the parser ends the process too.
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

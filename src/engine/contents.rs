//! The contents of all sources behind one interface.
//!
//! In: a content id, from the clean stage. Out: its bytes, from any source that holds them: a content is the same in every
//! source.
//!
//! **Invariant:** where several sources are tracked, one that does not answer holds up a reader for [`PATIENCE`] once, and is passed
//! over from then on until it does ([`beside`](super::beside)).

use super::beside::Beside;
use crate::resources::chain;
use crate::watch;
use dataflows::data::ContentId;
use dataflows::memo::{Content, Contents, ReadError};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The most bytes of a content that are read as a check: a larger one counts as readable if its header is.
const LARGEST: u64 = 64 << 20;

/// How long a source is waited for. An epoch of another source may wait behind this one.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// The result of checking a content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// It can be read.
    Readable,
    /// No source holds it.
    Missing,
    /// A source has it, and its bytes do not match the id.
    Damaged(String),
}

/// The contents of every source that is tracked.
#[derive(Clone, Default)]
pub(super) struct AllContents(Arc<RwLock<Vec<Held>>>);

/// The contents of one source.
#[derive(Clone)]
struct Held {
    contents: Arc<dyn watch::Contents>,
    beside: Arc<Beside>,
    /// Whether it is the only source, which holds up no other.
    is_alone: bool,
}

impl Held {
    /// Asks the source; nothing comes of it where it does not answer.
    fn ask<T: Send + 'static>(&self, call: impl FnOnce(&dyn watch::Contents) -> T + Send + 'static) -> Option<T> {
        if self.is_alone {
            return Some(call(&*self.contents));
        }
        let contents = self.contents.clone();
        self.beside.ask(PATIENCE, move || call(&*contents))
    }

    fn read(&self, content: ContentId, max_bytes: u64) -> Option<Result<Content, watch::ReadError>> {
        self.ask(move |contents| contents.read(content, max_bytes))
    }
}

impl AllContents {
    /// Adds a source's contents, which are read on these threads where there are others.
    pub(super) fn add(&self, contents: Arc<dyn watch::Contents>, beside: Arc<Beside>) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_alone = held.is_empty();
        held.push(Held { contents, beside, is_alone });
        if let [first, _, ..] = &mut held[..] {
            first.is_alone = false;
        }
    }

    /// Reads a content to its end, at most [`LARGEST`] bytes, and returns the result.
    pub(super) fn look(&self, content: ContentId) -> Look {
        let mut look = Look::Missing;
        for source in self.sources() {
            match source.read(content, LARGEST) {
                Some(Ok(Content::Absent(_))) => {}
                Some(Ok(_)) => return Look::Readable,
                Some(Err(error @ watch::ReadError::Object { .. })) => {
                    look = Look::Damaged(chain(&error));
                }
                Some(Err(_)) | None => {}
            }
        }
        look
    }

    /// Returns what [`watch::Contents::stamp`] says, of all sources that answer.
    pub(super) fn stamp(&self, content: ContentId) -> u64 {
        let stamps = self.sources().into_iter().filter_map(|source| source.ask(move |all| all.stamp(content)));
        stamps.fold(0, |all, stamp| all ^ stamp)
    }

    fn sources(&self) -> Vec<Held> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The reason and the advice for a content that no source has.
const NOT_HELD: &str = "fetch it (a shallow or partial clone lacks it), or wait for the next change of its file";
/// Why a content is missing that a source may have.
const UNANSWERED: &str =
    "a source does not answer, and is asked again when it does; see whether its file system is there";

impl Contents for AllContents {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        let mut failure = ReadError::Missing { content, reason: NOT_HELD.to_owned() };
        let mut absent = None;
        for source in &self.sources() {
            match source.read(content, max_bytes) {
                // Another source may hold what this one only points to.
                Some(Ok(Content::Absent(reason))) => absent = Some(reason),
                Some(Ok(found)) => return Ok(found),
                Some(Err(watch::ReadError::Changed(_))) => failure = ReadError::Changed { content },
                // The final message already says this of each source.
                Some(Err(watch::ReadError::Missing(_))) => {}
                Some(Err(error)) => failure = ReadError::Missing { content, reason: chain(&error) },
                None => failure = ReadError::Missing { content, reason: UNANSWERED.to_owned() },
            }
        }
        absent.map_or(Err(failure), |reason| Ok(Content::Absent(reason)))
    }
}

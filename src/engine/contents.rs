//! The contents of all sources behind one interface.
//!
//! In: a content id, from the clean stage. Out: its bytes, from any source that holds them: a content is the same in every
//! source.

use crate::resources::chain;
use crate::watch;
use dataflows::data::ContentId;
use dataflows::memo::{Content, Contents, ReadError};
use std::sync::{Arc, PoisonError, RwLock};

/// The most bytes of a content that are read as a check: a larger one counts as readable if its header is.
const LARGEST: u64 = 64 << 20;

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
pub(super) struct AllContents(Arc<RwLock<Vec<Arc<dyn watch::Contents>>>>);

impl AllContents {
    /// Adds a source's contents.
    pub(super) fn add(&self, contents: Arc<dyn watch::Contents>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(contents);
    }

    /// Reads a content to its end, at most [`LARGEST`] bytes, and returns the result.
    pub(super) fn look(&self, content: ContentId) -> Look {
        let mut look = Look::Missing;
        for source in self.sources() {
            match source.read(content, LARGEST) {
                Ok(Content::Absent(_)) => {}
                Ok(_) => return Look::Readable,
                Err(error @ watch::ReadError::Object { .. }) => {
                    look = Look::Damaged(chain(&error));
                }
                Err(_) => {}
            }
        }
        look
    }

    /// Returns the combined [`watch::Contents::stamp`] of all sources.
    pub(super) fn stamp(&self, content: ContentId) -> u64 {
        self.sources().iter().fold(0, |all, source| all ^ source.stamp(content))
    }

    fn sources(&self) -> Vec<Arc<dyn watch::Contents>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The reason and the advice for a content that no source has.
const NOT_HELD: &str = "fetch it (a shallow or partial clone lacks it), or wait for the next change of its file";

impl Contents for AllContents {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        let sources = self.sources();
        let mut failure = ReadError::Missing { content, reason: NOT_HELD.to_owned() };
        let mut absent = None;
        for source in &sources {
            match source.read(content, max_bytes) {
                // Another source may hold what this one only points to.
                Ok(Content::Absent(reason)) => absent = Some(reason),
                Ok(found) => return Ok(found),
                Err(watch::ReadError::Changed(_)) => failure = ReadError::Changed { content },
                // The final message already says this of each source.
                Err(watch::ReadError::Missing(_)) => {}
                Err(error) => failure = ReadError::Missing { content, reason: chain(&error) },
            }
        }
        absent.map_or(Err(failure), |reason| Ok(Content::Absent(reason)))
    }
}

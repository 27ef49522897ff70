//! Contents of all sources behind one door.
//!
//! In: a content id, from the clean stage. Out: its bytes, from whichever source holds them: a content is the same
//! wherever it lies.

use super::error::chain;
use crate::watch;
use dataflows::data::ContentId;
use dataflows::memo::{Content, Contents, ReadError};
use std::sync::{Arc, PoisonError, RwLock};

/// The contents of every source that is tracked.
#[derive(Clone, Default)]
pub(super) struct AllContents(Arc<RwLock<Vec<Arc<dyn watch::Contents>>>>);

impl AllContents {
    /// Adds a source's contents.
    pub(super) fn add(&self, contents: Arc<dyn watch::Contents>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(contents);
    }

    /// Tells whether a content can be read now, for the price of its header.
    pub(super) fn has(&self, content: ContentId) -> bool {
        !matches!(self.read(content, 0), Err(_) | Ok(Content::Absent(_)))
    }
}

impl Contents for AllContents {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, ReadError> {
        let sources = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut failure = ReadError::Missing { content, reason: "no source holds it".to_owned() };
        let mut absent = None;
        for source in &sources {
            match source.read(content, max_bytes) {
                // Another source may hold what this one only points to.
                Ok(Content::Absent(reason)) => absent = Some(reason),
                Ok(found) => return Ok(found),
                Err(watch::ReadError::Changed(_)) => failure = ReadError::Changed { content },
                Err(error) => failure = ReadError::Missing { content, reason: chain(&error) },
            }
        }
        absent.map_or(Err(failure), |reason| Ok(Content::Absent(reason)))
    }
}

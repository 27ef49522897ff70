//! What the catalogue tells of entries, sources, views and epochs.
//!
//! In and out: plain values. **Invariant:** a value that is stored is decoded as it was encoded: fields are neither moved nor left out
//! within a format of the store.

use dataflows::data::Entry;
use serde::{Deserialize, Serialize};
use snapshots::{SourceId, Tokens};

/// What the indexes hold under one ordinal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryRecord {
    /// The entry.
    pub entry: Entry,
    /// Tokens by field, exactly as the analyzer counted them.
    pub tokens: Tokens<u32>,
    /// Whether the model gave it a vector.
    pub has_vector: bool,
}

/// What kind of source it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SourceKind {
    /// A git repository.
    Git,
    /// A directory.
    Directory,
    /// A trace.
    Trace,
}

impl SourceKind {
    /// Returns the word that stands for the kind in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Directory => "directory",
            Self::Trace => "trace",
        }
    }
}

/// A source that is or was tracked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SourceRecord {
    /// Its name: it labels results and is no part of any identity.
    pub name: String,
    /// What kind it is.
    pub kind: SourceKind,
    /// Where it is: the path as bytes.
    pub location: Vec<u8>,
}

/// A view of a source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ViewRecord {
    /// The source it belongs to.
    pub source: SourceId,
    /// Its short name.
    pub name: String,
}

/// What publishing one epoch took: the line that `track` prints, kept for later.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Receipt {
    /// Documents that came.
    pub added: u64,
    /// Documents whose content changed.
    pub changed: u64,
    /// Documents that went.
    pub removed: u64,
    /// Contents that were cleaned.
    pub cleaned: u64,
    /// Texts that were cut.
    pub chunked: u64,
    /// Texts that were given to the model.
    pub embedded: u64,
    /// Entries that came to life.
    pub inserted: u64,
    /// Entries that died.
    pub retracted: u64,
    /// Inputs that the memo answered.
    pub cache_hits: u64,
    /// Inputs that ended as a fault.
    pub faults: u64,
    /// Milliseconds spent on finding what changed, cleaning, chunking, embedding, applying, and from start to end.
    pub ms: [f32; 6],
}

//! The catalogue's records of entries, sources, views and epochs.
//!
//! In and out: plain values. **Invariant:** a stored value is decoded as it was encoded: fields are neither moved nor omitted
//! within a store format.

use dataflows::data::Entry;
use serde::{Deserialize, Serialize};
use snapshots::{SourceId, Tokens};

/// The indexed data of one ordinal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryRecord {
    /// The entry.
    pub entry: Entry,
    /// Tokens by field, exactly as the analyzer counted them.
    pub tokens: Tokens<u32>,
    /// Whether the model gave it a vector.
    pub has_vector: bool,
}

/// The kind of a source.
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
    /// Returns the name of the kind in JSON.
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
    /// Its name: it labels results and is not part of any identity.
    pub name: String,
    /// Its kind.
    pub kind: SourceKind,
    /// Its location: the path as bytes.
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

/// The cost of publishing one epoch: the line that `track` prints, stored.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Receipt {
    /// Added documents.
    pub added: u64,
    /// Documents whose content changed.
    pub changed: u64,
    /// Removed documents.
    pub removed: u64,
    /// Contents that were cleaned.
    pub cleaned: u64,
    /// Texts that were cut.
    pub chunked: u64,
    /// Texts that the model embedded.
    pub embedded: u64,
    /// Inserted entries.
    pub inserted: u64,
    /// Retracted entries.
    pub retracted: u64,
    /// Inputs that the memo answered.
    pub cache_hits: u64,
    /// Inputs that ended as a fault.
    pub faults: u64,
    /// Milliseconds spent on finding changes, cleaning, chunking, embedding, applying, and from start to end.
    pub ms: [f32; 6],
}

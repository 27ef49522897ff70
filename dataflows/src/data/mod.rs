//! Every value that flows through the graph, and what names it.

mod chunk;
mod entry;
mod hash;
mod path;

pub use chunk::{Chunk, ChunkKind, Cleaned, Lines, SkipReason};
pub use entry::{Card, EmbedId, Entry, PlacedEntry, place};
pub use hash::{CardHash, ChunkingId, ContentId, DocumentId, EntryId, Fingerprint, Hasher, TextHash};
pub use path::DocumentPath;

//! Every value that flows through the graph, and its identity.
//!
//! In the order of the flow: a [`File`] of a view becomes a [`Document`], a document [`Chunk`]s, and a chunk at a path an
//! [`Entry`]. **Invariant:** values here are plain data; nothing in this folder reads a disk or a clock.

mod card;
mod charset;
mod chunk;
mod document;
mod entry;
mod file;
mod hash;
mod path;
mod split_mix;

pub use card::{Card, Frame};
pub use charset::Charset;
pub use chunk::{Chunk, ChunkKind, Cleaned, Conversion, Evidence, Lines, NoSyntax, SkipReason};
pub use document::{Document, Outcome, StageName};
pub(crate) use entry::shared;
pub use entry::{CardedEntry, Entry, PlacedEntry, place};
pub use file::{Epoch, File, FileChange, FileMode, FileState, View};
pub use hash::{
    CardHash, ChunkingId, ContentId, DocumentId, EmbedInput, EntryId, Fingerprint, Hasher, ModelId, TextHash,
};
pub use path::{DocumentPath, folders_up};
pub use split_mix::SplitMix;

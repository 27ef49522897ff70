//! A snapshot as a folder of its own: written on one machine, verified and published on another.
//!
//! In: a version of an open store. Out: a folder that holds everything that version needs; and from such a folder, once
//! all of it is proven, the same documents, entries and results again.
//!
//! ```text
//!  version ─► documents ─► chunk lists ─► texts        DIR.partial ──all written, synced──► DIR
//!                 └──────► cleaned        vectors
//!
//!  DIR ─► manifest ─► BLAKE3 of every file ─► entries, digest, tokens computed again ─► results into the memo
//! ```
//!
//! **Invariant:** a copy is read only if its digest, its counts and its token totals follow from its documents, chunk lists
//! and texts; entries and cards are not written at all, since they follow too. Reading is bounded by the sizes that the
//! manifest names and the files have, and no path of a copy is ever used as a path of the file system.
//!
//! The sums tell damage, not forgery: vectors and chunk lists are taken as the exporting machine made them, so import
//! only what comes from machines that are trusted with the index. Publishing is left to the engine.

mod format;
mod read;
mod write;

pub use format::{CopyError, Manifest};
pub use read::SnapshotCopy;
pub use write::{Exported, export};

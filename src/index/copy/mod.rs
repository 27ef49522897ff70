//! A snapshot as a separate folder: written on one machine, verified and published on another.
//!
//! In: a version of an open store. Out: a folder with everything that the version needs. And from such a folder, once all of it
//! is verified, the same documents, entries and results again.
//!
//! ```text
//!  version ─► documents ─► chunk lists ─► texts        DIR.partial ──all written, synced──► DIR
//!                 └──────► cleaned        vectors
//!
//!  DIR ─► manifest ─► BLAKE3 of every file ─► entries, digest, tokens computed again ─► results into the memo
//! ```
//!
//! **Invariant:** a copy is accepted only if its digest, its counts and its token totals follow from its documents, chunk lists
//! and texts. Entries and cards are not written, because they follow too. Reading is bounded by the sizes in the manifest and of
//! the files, and no path of a copy is ever used as a path of the file system.
//!
//! The checksums detect damage, not forgery: vectors and chunk lists are used as the exporting machine made them, so import only
//! from machines that you trust with the index. The engine publishes the imported copy.

mod format;
mod read;
mod write;

pub use format::{CopyError, Manifest};
pub use read::SnapshotCopy;
pub use write::{Exported, export};

//! The archive of tidemill: the entries alive at each commit.
//!
//! In: for each commit, the inserted and retracted ordinals of entries and documents, with statistics and a digest. Out: the live
//! ordinals of any commit, as bitmaps.
//!
//! **Invariant:** a version is a set of ordinals that never changes. Ordinals are never reused, so a bit means the same entry in
//! every version, and live and past versions are read the same way. The version log is the commit point of everything: what no
//! whole group names was never published, and what no group drops is kept.
//!
//! It knows ordinals and versions only. The caller knows the entries, their words and vectors, the repositories and the names of
//! views. The caller also ensures the write-ahead order: everything that a version refers to must be durable before
//! [`Archive::append`].
//!
//! ```
//! use snapshots::*;
//! # let folder = tempfile::tempdir()?;
//! let mut archive = Archive::create_or_open_writer(folder.path())?;
//! let mut ordinals = OrdinalCounter::resume(archive.used_entries());
//! let mut version = NewVersion {
//!     epoch: archive.next_epoch(),
//!     source: SourceId::new(0),
//!     commit: "3fa9c1f1e2c0b2d4a5968778695a4b3c2d1e0f10".parse()?,
//!     parent: None,
//!     base: None,
//!     base_is_parent: true,
//!     time: 1_764_000_000,
//!     live_tokens: [1_200, 40].into(),
//!     digest: Digest::of([&[1; 16], &[2; 16]]),
//!     fingerprint: [0; 16],
//!     model: [0; 16],
//!     changes: Changes::default(),
//! };
//! version.changes.entries.inserted.insert_range(ordinals.take(2)?);
//! let (view, to, time) = (ViewId::new(0), archive.next_version(), Some(1_764_000_060_000));
//! let view = Record::View { epoch: version.epoch, view, version: to, time };
//! archive.append(&[Record::Version(version), view])?;
//!
//! let head = archive.view(ViewId::new(0)).expect("the view was just moved");
//! assert_eq!(archive.bitmaps(head)?.entries.len(), 2);
//! assert_eq!(archive.introduced(head, &[Ordinal::new(1)])?, [Introduced::At(head)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod bitmaps;
mod checkpoint;
mod codec;
mod diff;
mod digest;
mod error;
mod history;
mod identity;
mod lineage;
mod lock;
mod log;
mod moves;
mod ordinal;
mod recount;
mod retention;
mod tokens;
mod verify;
mod version;

pub use archive::Archive;
pub use bitmaps::{Bitmaps, Changes, Delta, Moved};
pub use digest::Digest;
pub use error::{ArchiveError, Refusal};
pub use identity::{CommitId, Epoch, NotACommitId, SourceId, VersionId, ViewId};
pub use lineage::Introduced;
pub use lock::lock_for_writer;
pub use log::FORMAT;
pub use ordinal::{Ordinal, OrdinalCounter, OrdinalsExhausted};
pub use tokens::{MOST_FIELDS, Tokens};
pub use verify::{Damage, EntryOf, TokensOf};
pub use version::{Move, NewVersion, Record, Statistics, Version, ViewHead};

//! The tracker: it keeps a store in step with its sources.
//!
//! In: sources and their movements. Out: published versions, one per epoch, in order.
//!
//! ```text
//!   refs, file events ──► plan (steps) ──► diff ──► graph (dataflows) ──► publisher ──► published
//!        ▲                                              ▲                     │
//!        └──── wait for the next movement               └─ contents, memo ────┘ store
//!
//!   Opened ──restore──► Idle ──something moved──► Feeding ──all published──► Idle ──stop──► Closed
//! ```
//!
//! **Invariant:** the store is the only lasting state. A tracker that is killed at any point and started again continues from the
//! last published version: it feeds that version's content to the graph, compares the result with the version's bitmaps, and
//! plans from there.

mod acting;
mod asking;
mod beside;
mod board;
mod collect;
mod collector;
mod contents;
mod directory;
mod error;
mod feeding;
mod fetching;
mod follow;
mod git;
mod identity;
mod import;
mod job;
mod missing;
mod omitted;
mod open;
mod pace;
mod place;
mod publisher;
mod recording;
mod recover;
mod retention;
mod retry;
mod slices;
mod slot;
mod standing;
mod step;
mod store;
mod trace;
mod tracker;
mod transient;
mod trouble;

pub use collect::{Collection, collect, estimate};
pub use error::EngineError;
pub use import::{Imported, import};
pub use open::{fingerprint, load_rules};
pub use publisher::OnPublished;
pub use trace::TraceFeed;
pub use tracker::{Extras, Stop, Tracker, TrackerOptions};

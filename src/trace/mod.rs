//! Traces: a recorded history in one file, to be replayed anywhere.
//!
//! In: the epochs of a source in order, with the contents that they name. Out: the same from a file, without repository or store.
//!
//! ```text
//!  git range, tracked source ─► record ─┬─► recorder (redact) ─► write ─► FILE.tmtrace
//!  a source that is followed ─► live ───┘                         ▲            │
//!  scenario, seed            ─► generate ─────────────────────────┘            │
//!                                                                              ▼ read, every sum checked first
//!                  bound: what it must cost at least ◄── epochs, contents ──► a source of the engine
//!
//!  FILE  magic │ about │ content … content epoch │ content epoch │ … │ index │ end
//! ```
//!
//! **Invariant:** a content is written once, before the first epoch that names it. So a truncated file is complete up to its last
//! whole epoch, and is read up to there. Wrong bytes are found and named before a replay begins.
//!
//! Read `format` (the layout), then `write`, `read`, [`record`], [`live`], `recorder`, [`redact`](mod@redact) and [`bound`]. The
//! module `replay` runs a trace through the engine.

pub mod bound;
mod format;
pub mod generate;
pub mod live;
mod read;
pub mod record;
mod recorder;
pub mod redact;
mod write;

pub use format::{About, EpochRecord, FORMAT, Stored, TraceError, TraceStep};
pub use read::{Trace, TraceContents};
pub use write::{TraceWriter, Written};

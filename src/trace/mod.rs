//! Traces: a recorded history in one file of its own, to be replayed anywhere.
//!
//! In: the epochs of a source as they came, with the contents that they name. Out: the same again, from a file that needs
//! neither repository nor store.
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
//! **Invariant:** whatever an epoch names was written before it, and each content once; so a file that was cut is whole up
//! to its last whole epoch, and is read up to there. A byte that is not what was written is found before anything is
//! replayed, and named.
//!
//! Read `format` (the layout), then `write`, `read`, [`record`], [`live`], `recorder`, [`redact`](mod@redact) and [`bound`]. How a trace
//! is run through the engine is left to `replay`.

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

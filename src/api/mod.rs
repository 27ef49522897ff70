//! What tidemill answers, whatever door asks: one request in, one plain answer out.
//!
//! In: requests as plain values, from the command line today, from HTTP and MCP later. Out: the shapes of [`wire`], complete:
//! a door prints or sends them and adds nothing.
//!
//! ```text
//!  door: arguments ─► request ─► Service ─► search, index, store, engine
//!  door: text or JSON ◄─ answer (wire) or ApiError, whose kind maps to an exit status and an HTTP status
//! ```
//!
//! **Invariant:** every answer comes from one [`Searcher`](crate::search::Searcher), which never changes while the answer is made. A door reads no
//! catalogue, archive or memo by itself.

mod bisect;
mod copy;
mod dump;
mod error;
mod explain;
mod record;
mod service;
mod snapshots;
mod status;
mod verify;
pub mod wire;

pub use copy::import;
pub use error::{ApiError, Kind};
pub use explain::ExplainRequest;
pub use record::{Recordable, recordable};
pub use service::{Place, Service};
pub use snapshots::Snapshot;
pub use verify::verify;

//! tidemill keeps a hybrid index of a large repository in step with every commit and every saved file, and the index of
//! every commit as a snapshot.
//!
//! The product in the order in which data flows; a module imports from those before it:
//!
//! ```text
//!  config ──► watch ──► engine ──► dataflows (graph) ──► index::apply ──► snapshots (log)
//!             what       steps      files to entries      both indexes      the commit point
//!             moved         ▲            │                     │
//!                           └── store ◄──┴──── results, catalogue, receipts
//!
//!  workers: processes that run what a hostile document may crash, beside the graph's pool
//!
//!  trace: histories recorded or generated       replay: a trace through the engine, and what it took
//!
//!  search ──► index (views of any version) + store          api ──► answers          cli ──► what people and scripts see
//! ```
//!
//! **Invariant:** the version log is the only commit point. What it names is complete in both indexes; what it does not
//! name does not exist.

pub mod api;
pub mod cli;
pub mod config;
pub mod embedders;
pub mod engine;
pub mod index;
pub mod replay;
pub mod resources;
pub mod search;
pub mod store;
pub mod telemetry;
pub mod trace;
pub mod watch;
pub mod workers;

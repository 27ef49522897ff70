//! tidemill keeps a hybrid index of a large repository in step with every commit and every saved file, and the index of
//! every commit as a snapshot.
//!
//! The product in the order in which data flows; a module imports from those before it:
//!
//! ```text
//!  config ──► watch ──► engine ──► dataflows (graph) ──► index::apply ──► snapshots (log)
//!             moved      steps      files to entries      both indexes      the commit point
//!             heads         ▲            │                     │
//!                           └── store ◄──┴──── results, catalogue, receipts
//!
//!  workers: processes that run parsers, which a hostile document may crash, beside the graph's pool
//!
//!  trace: recorded or generated histories       replay: a trace through the engine, measured
//!
//!  search ──► index (views of any version) + store          api ──► answers          cli ──► output for people and scripts
//!
//!  eval: judged questions ──► search ──► measures
//! ```
//!
//! **Invariant:** the version log is the only commit point. What it names is complete in both indexes; what it does not
//! name does not exist.

pub mod api;
pub mod cli;
pub mod config;
pub mod embedders;
pub mod engine;
pub mod eval;
pub mod index;
pub mod replay;
pub mod resources;
pub mod search;
pub mod store;
pub mod telemetry;
pub mod trace;
pub mod watch;
pub mod workers;

//! Replay: a trace goes through the real engine, and the digest is compared after every epoch.
//!
//! In: a trace and settings. Out: a report.
//!
//! ```text
//!            ┌─ run: a source of the engine ─► graph ─► publisher ─► store      every epoch measured
//!  trace ────┼─ graph: the graph alone, nothing published (`--index off`)          │
//!            ├─ work: the least that it must cost, and the digests, from the trace ┼─► report ─► terminal, JSON, page
//!            └─ rebuild: some epochs again, each from nothing                      │
//! ```
//!
//! **Invariant:** an epoch counts as proven only if the engine's digest equals the recorded one and the one that follows from the
//! trace without the engine. No other part of the replay runs during a measurement: the bound and the rebuilds come after it.

mod graph;
mod page;
mod plot;
mod rebuild;
mod reckon;
mod report;
mod run;
mod sample;
mod work;

pub use page::{page, plot_files};
pub(crate) use plot::{STYLE, escape};
pub use report::{
    AgainstRebuild, Differing, FirstLoad, Histogram, ProofReport, Ratio, RebuildRow, Report, Setting, StageTimes,
    TraceFacts, Trend, WorkReport,
};
pub use run::{Knobs, Model, replay};
pub use sample::Sample;

use crate::engine::EngineError;
use crate::store::StoreError;
use crate::trace::TraceError;
use dataflows::run::MillError;
use std::path::PathBuf;

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The graph stopped.
    #[error(transparent)]
    Mill(#[from] MillError),
    /// This build cannot parse the rules inside the trace.
    #[error("cannot read the rules of the trace {}; replay it with the release that recorded it", path.display())]
    Rules {
        /// The trace.
        path: PathBuf,
        /// The error.
        source: dataflows::rules::RuleError,
    },
    /// A folder for the store cannot be made.
    #[error("cannot make a temporary folder; name one with --store")]
    Folder(#[source] std::io::Error),
}

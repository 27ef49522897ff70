//! Replay: a trace through the real engine, the digest compared after every epoch, and what it took.
//!
//! In: a trace and some knobs. Out: a report.
//!
//! ```text
//!            ┌─ run: a source of the engine ─► graph ─► publisher ─► store      every epoch measured
//!  trace ────┼─ graph: the graph alone, nothing published (`--index off`)          │
//!            ├─ work: the least that it must cost, and the digests, from the trace ┼─► report ─► terminal, JSON, page
//!            └─ rebuild: some epochs again, each from nothing                      │
//! ```
//!
//! **Invariant:** an epoch counts as proven only if the digest that came out of the engine is the recorded one, and the one
//! that follows from the trace without the engine. Nothing of a measurement is taken while something else of the replay
//! runs: the bound and the rebuilds come after it.

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
    /// The trace refused.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The graph stopped.
    #[error(transparent)]
    Mill(#[from] MillError),
    /// The rules inside the trace are no rules of this build.
    #[error("cannot read the rules of the trace {}; replay it with the release that recorded it", path.display())]
    Rules {
        /// The trace.
        path: PathBuf,
        /// What is wrong with them.
        source: dataflows::rules::RuleError,
    },
    /// A folder for the store cannot be made.
    #[error("cannot make a temporary folder; name one with --store")]
    Folder(#[source] std::io::Error),
}

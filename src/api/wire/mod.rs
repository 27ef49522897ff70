//! The shapes of JSON that scripts rely on: the only public types that are serialised.
//!
//! In: results of earlier modules. Out: one struct for each line that a command prints.
//!
//! **Invariant:** a released field keeps its name and meaning; new fields may be added. A path is shown with replacement
//! characters; if it is not UTF-8, its bytes are beside it in base64.

mod explain;
mod replay;
mod search;
mod snapshots;
mod store;
mod track;
mod verify;

pub use explain::{ChunkLine, ExplanationLine};
pub use replay::RecordLine;
pub use search::{At, SearchAnswer, WireHit, WireRank};
pub use snapshots::{
    BisectAnswer, BisectChange, BisectStepLine, CollectionLine, CopyLine, DiffLine, SnapshotLine, StoredBytes,
};
pub use store::{
    CollectedStatus, DumpLine, FaultStatus, FetchStatus, LeftOutStatus, RunningStatus, SourceStatus, StatusAnswer,
    TrackerStatus, TroubleStatus, UnreadableStatus, UnsureFile, UnsureStatus, ViewStatus, WatchStatus,
};
pub use track::{EpochLine, Summary, SummaryLine, WorkCounts};
pub use verify::{FindingLine, VerifySummary, VerifySummaryLine};

use base64::Engine;
use dataflows::data::DocumentPath;
use serde::Serialize;

/// A path, with its bytes if it is not UTF-8.
#[derive(Clone, Debug, Serialize)]
pub struct WirePath {
    /// As text.
    pub path: String,
    /// In standard padded base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
}

impl From<&DocumentPath> for WirePath {
    fn from(path: &DocumentPath) -> Self {
        let bytes = path.as_bytes();
        let odd = std::str::from_utf8(bytes).is_err();
        Self {
            path: path.display().into_owned(),
            path_bytes: odd.then(|| base64::engine::general_purpose::STANDARD.encode(bytes)),
        }
    }
}

/// Returns nothing for an empty text.
#[must_use]
pub fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

//! The receipt of the work: for every epoch, the work of each stage.
//!
//! In: calls and cache hits, reported by the stages. Out: one [`Work`] per epoch.
//!
//! **Invariant:** a call is counted once, where it is made, under the epoch that first needed it. So the sum of `calls` over
//! epochs equals the number of distinct inputs that no memo had.

use crate::data::{Epoch, StageName};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The work of one stage for one epoch.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct StageWork {
    /// Inputs that the stage's function was called with.
    pub calls: u64,
    /// Inputs whose result was in the memo.
    pub cache_hits: u64,
    /// Inputs that ended as a fault.
    pub faults: u64,
    /// Time spent in the stage's function, summed over the pool's threads.
    pub time: Duration,
}

/// The work of the expensive stages for one epoch.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Work {
    /// From content to cleaned text.
    pub clean: StageWork,
    /// From cleaned text to chunks.
    pub chunk: StageWork,
    /// From card and text to a vector.
    pub embed: StageWork,
}

impl Work {
    /// Returns the part of one stage.
    pub fn stage_mut(&mut self, stage: StageName) -> &mut StageWork {
        match stage {
            StageName::Clean => &mut self.clean,
            StageName::Chunk => &mut self.chunk,
            StageName::Embed => &mut self.embed,
        }
    }

    /// Adds the work of another epoch, if several count as one.
    pub fn add(&mut self, mut other: Self) {
        for stage in [StageName::Clean, StageName::Chunk, StageName::Embed] {
            let more = *other.stage_mut(stage);
            let sum = self.stage_mut(stage);
            sum.calls += more.calls;
            sum.cache_hits += more.cache_hits;
            sum.faults += more.faults;
            sum.time += more.time;
        }
    }

    /// Returns how many inputs of all stages the memo answered.
    #[must_use]
    pub const fn cache_hits(&self) -> u64 {
        self.clean.cache_hits + self.chunk.cache_hits + self.embed.cache_hits
    }

    /// Returns how many inputs of all stages ended as a fault.
    #[must_use]
    pub const fn faults(&self) -> u64 {
        self.clean.faults + self.chunk.faults + self.embed.faults
    }
}

/// Gathers work by epoch until the epoch is done; shared by the workers and the pool.
#[derive(Default)]
pub struct Ledger(Mutex<BTreeMap<Epoch, Work>>);

impl Ledger {
    /// Changes the record of one stage in one epoch.
    pub fn note(&self, epoch: Epoch, stage: StageName, change: impl FnOnce(&mut StageWork)) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(open.entry(epoch).or_default().stage_mut(stage));
    }

    /// Returns the record of a finished epoch, and removes it.
    pub fn take(&self, epoch: Epoch) -> Work {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&epoch).unwrap_or_default()
    }
}

//! The proof beside the measurement: the least cost and the expected result of every epoch, from the trace alone.
//!
//! In: a trace. Out: one [`Least`] per epoch. **Invariant:** the engine has no part in it.

use super::ReplayError;
use crate::trace::bound::{Bound, Least};
use crate::trace::{Trace, TraceContents};
use dataflows::rules::Rules;
use std::sync::Arc;

/// The results that follow from a trace without the engine.
pub(super) struct Proof(Vec<Least>);

impl Proof {
    /// Follows the trace from its first epoch to its last.
    pub(super) fn compute(trace: &Arc<Trace>, rules: Arc<Rules>) -> Result<Self, ReplayError> {
        let mut bound = Bound::new(rules, Arc::new(TraceContents(trace.clone())));
        let mut all = Vec::with_capacity(trace.len());
        for record in trace.epochs() {
            all.push(bound.take(&record?));
        }
        Ok(Self(all))
    }

    /// Returns the expectation for an epoch.
    pub(super) fn of(&self, number: usize) -> Least {
        self.0.get(number).copied().unwrap_or_default()
    }
}

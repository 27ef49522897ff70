//! The targets of views over time.
//!
//! In: the moves of views, in the order of the log. Out: the target of a view as of a time. **Invariant:** the order is that of
//! the log, whatever the clocks said: of the moves seen by a time, the last in the log counts. A move without a known time never
//! answers.
//!
//! Logs of formats 1 and 2 have no times of moves. The time of a version is used for the move that first pointed at it; a later
//! move back to it has none.

use crate::archive::Archive;
use crate::identity::ViewId;
use crate::version::Move;

impl Archive {
    /// Returns every move of a view, in the order of the log.
    #[must_use]
    pub fn moves(&self, view: ViewId) -> &[Move] {
        self.history.moves.get(&view).map_or(&[], Vec::as_slice)
    }

    /// Returns the time at which a move was seen, in milliseconds since 1970, if it is known.
    #[must_use]
    pub fn time_of(&self, moved: &Move) -> Option<i64> {
        let brought = || {
            let version = self.version(moved.version?).filter(|version| version.epoch == moved.epoch)?;
            Some(version.time.saturating_mul(1000))
        };
        moved.time.or_else(brought)
    }

    /// Returns the last move of a view that was seen at `time` or before, in milliseconds since 1970.
    #[must_use]
    pub fn last_move(&self, view: ViewId, time: i64) -> Option<&Move> {
        self.moves(view).iter().rev().find(|moved| self.time_of(moved).is_some_and(|seen| seen <= time))
    }
}

//! The trouble of a source, or of a part of it, with the time of the next try.
//!
//! In: failures and successes. Out: messages, data for `status`, and the time of the next try.
//!
//! | state | it fails | it works |
//! |---|---|---|
//! | well | troubled: logged once, tried again in a second | well |
//! | troubled | logged again only if the cause changed; the wait doubles, up to a minute | well: logged once |
//!
//! **Invariant:** however often the same thing fails, it is logged once when it begins and once when it ends.

use super::board::now;
use crate::store::{LeftOutState, TroubleState};
use snapshots::CommitId;
use std::time::{Duration, Instant};

/// Time before the first retry.
const SHORTEST: Duration = Duration::from_secs(1);
/// Longest time between two tries.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// The problem, its first time, and the time of the next try.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) what: String,
    /// In seconds since 1970.
    since: i64,
    failures: u32,
    next: Option<Instant>,
}

impl Trouble {
    /// Notes a failure; `wait` is set if the caller decides the time until the next try. Returns whether to log it.
    pub(super) fn note(trouble: &mut Option<Self>, what: String, wait: Option<Duration>) -> bool {
        let (since, failures) = trouble.as_ref().map_or_else(|| (now(), 0), |known| (known.since, known.failures));
        let is_new = trouble.as_ref().is_none_or(|known| known.what != what);
        let wait = wait.unwrap_or_else(|| SHORTEST.saturating_mul(1 << failures.min(16)).min(LONGEST));
        let next = Some(Instant::now() + wait);
        *trouble = Some(Self { what, since, failures: failures.saturating_add(1), next });
        is_new
    }

    /// Disables retries until something moves.
    pub(super) fn for_good(self) -> Self {
        Self { next: None, ..self }
    }

    /// Sets the first time, if it is known from elsewhere.
    pub(super) fn since(self, since: i64) -> Self {
        Self { since, ..self }
    }

    /// Brings the next try forward: something moved.
    pub(super) fn hurry(&mut self) {
        let soon = Instant::now() + SHORTEST;
        self.next = self.next.map(|next| next.min(soon));
    }

    /// Returns whether the next try is due.
    pub(super) fn is_due(&self) -> bool {
        self.next.is_some_and(|next| next <= Instant::now())
    }

    /// Returns it as `status` shows it.
    pub(super) fn state(&self) -> TroubleState {
        let left = |next: Instant| next.saturating_duration_since(Instant::now()).as_secs();
        let next_try = self.next.map(|next| now().saturating_add_unsigned(left(next)));
        TroubleState { what: self.what.clone(), since: self.since, next_try }
    }
}

/// A head or a commit that is left out while the rest of its repository is tracked.
#[derive(Clone, Debug)]
pub(super) struct LeftOut {
    /// The view, or the ref.
    pub(super) view: String,
    pub(super) commit: Option<CommitId>,
    pub(super) trouble: Trouble,
}

impl LeftOut {
    /// Returns it in one line.
    pub(super) fn line(&self) -> String {
        let Self { view, commit, trouble } = self;
        match commit {
            Some(commit) => format!("commit {commit} of {view} is left out: {}", trouble.what),
            None => format!("{view} is left out: {}", trouble.what),
        }
    }

    /// Returns it as `status` shows it.
    pub(super) fn state(&self) -> LeftOutState {
        let commit = self.commit.map(|commit| commit.to_string());
        LeftOutState { view: self.view.clone(), commit, trouble: self.trouble.state() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_is_said_once_and_tried_later_each_time_up_to_a_minute() {
        let mut trouble = None;
        let mut waits = Vec::new();
        for failure in 0..10 {
            assert_eq!(Trouble::note(&mut trouble, "gone".to_owned(), None), failure == 0);
            let next = trouble.as_ref().and_then(|trouble| trouble.next).unwrap();
            waits.push(next.saturating_duration_since(Instant::now()).as_secs_f64().ceil() as u64);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        assert!(Trouble::note(&mut trouble, "unreadable".to_owned(), None), "another cause is said");
        let state = trouble.unwrap().state();
        assert_eq!((state.what.as_str(), state.next_try.is_some()), ("unreadable", true));
    }

    #[test]
    fn what_never_changes_is_not_tried_again() {
        let mut trouble = None;
        Trouble::note(&mut trouble, "too large".to_owned(), Some(Duration::ZERO));
        let trouble = trouble.unwrap();
        assert!(trouble.is_due());
        let trouble = trouble.for_good();
        assert_eq!((trouble.is_due(), trouble.state().next_try), (false, None));
    }
}

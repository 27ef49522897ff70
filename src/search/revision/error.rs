//! Reasons why a revision gives no version.
//!
//! In: the revision. Out: one line with its possible meanings, or the advice.

use snapshots::CommitId;

/// Reason why a revision gives no version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionError {
    /// No source has this name.
    #[error("there is no source `{name}`; the store has {known}")]
    Source {
        /// The requested name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// No source has a view of this name.
    #[error("there is no view `{name}`; the store has {known}")]
    View {
        /// The requested name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// Several sources have the revision, and one is required.
    #[error("several sources have {rev}: {sources}; say which with --source")]
    SeveralSources {
        /// The revision.
        rev: String,
        /// The sources that have it.
        sources: String,
    },
    /// An ambiguous name or short hash.
    #[error("`{rev}` is ambiguous: it may be {candidates}; name one of them so")]
    Ambiguous {
        /// The revision.
        rev: String,
        /// The possible meanings, each in an unambiguous form.
        candidates: String,
    },
    /// A range, or another set of commits.
    #[error("`{rev}` names several commits; name one, as in `main~3`")]
    SeveralCommits {
        /// The revision.
        rev: String,
    },
    /// A commit that has no snapshot.
    #[error("commit {commit} has no snapshot; {hint}")]
    NoSnapshot {
        /// The commit.
        commit: CommitId,
        /// The nearest commits with a snapshot, and how to make this one's.
        hint: String,
    },
    /// A commit whose snapshot was dropped.
    #[error("the snapshot of commit {commit} was dropped by retention; {hint}")]
    Dropped {
        /// The commit.
        commit: CommitId,
        /// The nearest commits with a snapshot, and how to make this one's again.
        hint: String,
    },
    /// A time before the first snapshot.
    #[error("no snapshot of {place} is as old as {rev}; the oldest is {oldest}")]
    TooOld {
        /// The revision.
        rev: String,
        /// The source.
        place: String,
        /// The oldest commit with a snapshot, and its time.
        oldest: String,
    },
    /// A time at which the view was not tracked.
    #[error("at {rev} the view `{view}` of {place} stood nowhere; it was not tracked then")]
    Nowhere {
        /// The revision.
        rev: String,
        /// The view.
        view: String,
        /// The source.
        place: String,
    },
    /// Nothing of this name.
    #[error("cannot find the revision `{rev}` in {place}; `tidemill snapshots list` shows what there is")]
    Unknown {
        /// The revision.
        rev: String,
        /// The searched sources.
        place: String,
    },
}

impl RevisionError {
    /// Whether another source's answer makes up for this: with a revision, sources without it are left out.
    pub(super) const fn may_be_passed_over(&self) -> bool {
        !matches!(self, Self::Ambiguous { .. } | Self::SeveralCommits { .. })
    }

    /// Whether nothing of this name was found.
    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

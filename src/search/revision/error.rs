//! Why a revision gives no version.
//!
//! In: what was asked for. Out: one line that says what it may mean, or what to do.

use snapshots::CommitId;

/// Why a revision gives no version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionError {
    /// No source has this name.
    #[error("there is no source `{name}`; the store has {known}")]
    Source {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No source has a view of this name.
    #[error("there is no view `{name}`; the store has {known}")]
    View {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Several sources answer where one must.
    #[error("several sources have {rev}: {sources}; say which with --source")]
    SeveralSources {
        /// What was asked for.
        rev: String,
        /// The sources that have it.
        sources: String,
    },
    /// A name or short hash that means several commits.
    #[error("`{rev}` is ambiguous: it may be {candidates}; name one of them so")]
    Ambiguous {
        /// What was asked for.
        rev: String,
        /// What it may mean, each as it can be said.
        candidates: String,
    },
    /// A range, or another set of commits.
    #[error("`{rev}` names several commits; name one, as in `main~3`")]
    SeveralCommits {
        /// What was asked for.
        rev: String,
    },
    /// A commit that has no snapshot.
    #[error("commit {commit} has no snapshot; {hint}")]
    NoSnapshot {
        /// The commit.
        commit: CommitId,
        /// The nearest commits that have one, and how to make this one's.
        hint: String,
    },
    /// A commit whose snapshot was dropped.
    #[error("the snapshot of commit {commit} was dropped by retention; {hint}")]
    Dropped {
        /// The commit.
        commit: CommitId,
        /// The nearest commits that have one, and how to make this one's again.
        hint: String,
    },
    /// A time before the first snapshot.
    #[error("no snapshot of {place} is as old as {rev}; the oldest is {oldest}")]
    TooOld {
        /// What was asked for.
        rev: String,
        /// The source.
        place: String,
        /// The oldest commit with a snapshot, and its time.
        oldest: String,
    },
    /// A time at which the view was not tracked.
    #[error("at {rev} the view `{view}` of {place} stood nowhere; it was not tracked then")]
    Nowhere {
        /// What was asked for.
        rev: String,
        /// The view.
        view: String,
        /// The source.
        place: String,
    },
    /// Nothing of this name.
    #[error("cannot find the revision `{rev}` in {place}; `tidemill snapshots list` shows what there is")]
    Unknown {
        /// What was asked for.
        rev: String,
        /// Where it was looked for.
        place: String,
    },
}

impl RevisionError {
    /// Whether another source's answer makes up for this: with a revision, sources that do not have it take no part.
    pub(super) const fn may_be_passed_over(&self) -> bool {
        !matches!(self, Self::Ambiguous { .. } | Self::SeveralCommits { .. })
    }

    /// Whether nothing of this name was found.
    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

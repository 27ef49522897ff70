//! Reasons why a tracker stops.

use crate::index::apply::ApplyError;
use crate::index::copy::CopyError;
use crate::index::lexical::LexicalError;
use crate::index::vector::VectorError;
use crate::store::StoreError;
use crate::trace::TraceError;
use crate::watch::directory::DirectoryError;
use crate::watch::git::GitError;
use crate::watch::worktree::WorktreeError;
use crate::workers::WorkerError;
use dataflows::rules::RuleError;
use dataflows::run::MillError;
use snapshots::{ArchiveError, CommitId};
use std::path::PathBuf;

/// Reason why tracking cannot start or continue; published versions stay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A stop was requested, and the work in progress could not finish in the remaining time.
    #[error("stopped before all was published; what was published stays, and the next start goes on from there")]
    Interrupted,
    /// No worker process can start.
    #[error(transparent)]
    Workers(#[from] WorkerError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The version log failed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The lexical index failed.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The vector index failed.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// A batch could not be published.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The graph stopped.
    #[error(transparent)]
    Mill(#[from] MillError),
    /// A repository failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A directory failed.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A work tree failed.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The rules of the configuration cannot be parsed.
    #[error("cannot read the rules {}", path.display())]
    Rules {
        /// The file.
        path: PathBuf,
        /// The error.
        source: RuleError,
    },
    /// A file that the configuration names cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No source is configured.
    #[error("there is no source to track; name a repository (`tidemill track PATH`), or list sources in tidemill.toml")]
    NoSource,
    /// Two sources have one name.
    #[error(
        "two sources are called {source_name}, {} and {}; give one of them another name with --name or in tidemill.toml",
        one.display(),
        other.display()
    )]
    SameName {
        /// The name.
        source_name: String,
        /// The path of one.
        one: PathBuf,
        /// The path of the other.
        other: PathBuf,
    },
    /// The store has a source of this name and another kind.
    #[error(
        "cannot track {} as {source_name}: the store knows {source_name} as a {known}, {}; give this source another name with --name",
        here.display(),
        there.display()
    )]
    OtherKind {
        /// The name.
        source_name: String,
        /// Its kind in the store.
        known: &'static str,
        /// Its location in the store.
        there: PathBuf,
        /// The path to track.
        here: PathBuf,
    },
    /// The store has another source of this name.
    #[error(
        "cannot track {} as {source_name}: the store knows {source_name} at {}, which is another source; give this one another name with --name, or track it into another --data folder",
        here.display(),
        there.display()
    )]
    NameTaken {
        /// The name.
        source_name: String,
        /// The path to track.
        here: PathBuf,
        /// The location of the stored source.
        there: PathBuf,
    },
    /// The store knows another source of the name that a copy has.
    #[error(
        "cannot import into {source_name}: the store knows {source_name} {}, which is another source; import the copy under another name with --name",
        if there.as_os_str().is_empty() { "from another copy".to_owned() } else { format!("at {}", there.display()) }
    )]
    OtherHistory {
        /// The name.
        source_name: String,
        /// Where the source is that the store knows; nothing of one that was imported.
        there: PathBuf,
    },
    /// The stored source is not at its old location.
    #[error(
        "cannot track {} as {source_name}: the store knows {source_name} at {}, where it is not any more; if it was moved, say so once with: {command}; if not, give this one another name with --name",
        here.display(),
        there.display()
    )]
    Moved {
        /// The name.
        source_name: String,
        /// The path to track.
        here: PathBuf,
        /// The old location.
        there: PathBuf,
        /// The command that declares the move.
        command: String,
    },
    /// Another repository is at the location of the stored one.
    #[error(
        "cannot track {} as {source_name}: it is another repository than the one that the store knows by that name and place, and holds none of its commits; give it another name with --name, or let it take that one's place with: {command}",
        here.display()
    )]
    OtherRepository {
        /// The name.
        source_name: String,
        /// The location.
        here: PathBuf,
        /// The command that lets it replace the old one.
        command: String,
    },
    /// No source had the stated old location.
    #[error("the store knows no source at {}, the place behind --moved-from; it knows those at: {known}", from.display())]
    NotThere {
        /// The location.
        from: PathBuf,
        /// The locations of sources.
        known: String,
    },
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The store was not filled from this trace.
    #[error("the store's source {source_name} stands behind no epoch of this trace; replay it into a new folder")]
    OtherTrace {
        /// The name.
        source_name: String,
    },
    /// A copy of a snapshot cannot be imported.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The store has another snapshot of the imported commit.
    #[error(
        "the store has another snapshot of commit {commit} of {source_name}, made under other rules; import into a new folder, or under another --name"
    )]
    OtherSnapshot {
        /// The source.
        source_name: String,
        /// The commit.
        commit: CommitId,
    },
    /// The tracker that was asked to collect has other retention settings.
    #[error(
        "cannot collect: {holder} tracks into the store with other settings of retention; stop it (nothing is lost) and start it again with these, then collect"
    )]
    OtherSettings {
        /// Its name.
        holder: String,
    },
    /// The tracker that was asked to collect failed.
    #[error("{holder} tracks into the store and could not collect: {reason}")]
    NotCollected {
        /// Its name.
        holder: String,
        /// The reason.
        reason: String,
    },
    /// A thread of the collector failed.
    #[error("a thread that looked for what can be collected panicked")]
    CollectorPanicked,
    /// A repository whose tags are needed is missing.
    #[error("the repository of {source_name} is gone; set `tags = false` in its retention, or bring it back")]
    RepositoryGone {
        /// The source.
        source_name: String,
    },
    /// A pattern of the retention settings is invalid.
    #[error("cannot read the pattern `{pattern}` of [retention.views]")]
    RetentionPattern {
        /// The pattern.
        pattern: String,
        /// The error.
        source: globset::Error,
    },
    /// The repository has no commit yet.
    #[error("{source_name} has no commit on {branch} yet; commit something, or name other refs with --ref")]
    Unborn {
        /// The source.
        source_name: String,
        /// The branch that HEAD names.
        branch: String,
    },
    /// No ref matches.
    #[error("no branch or tag of {source_name} matches --ref; `git branch -a` and `git tag` list what there is")]
    NoRefs {
        /// The source.
        source_name: String,
    },
    /// The start revision is not in the history of the view.
    #[error("{revision} is no first-parent commit of {view}; `git log --first-parent {view}` lists those that are")]
    NotOnLine {
        /// The requested revision.
        revision: String,
        /// The view.
        view: String,
    },
    /// Every source failed.
    #[error("{what}")]
    LeftOut {
        /// The problem of the first of them.
        what: String,
    },
    /// A source does not answer.
    #[error("{path} does not answer within {seconds} s; see whether its file system is there")]
    Unanswered {
        /// The source's path.
        path: String,
        /// The waiting time.
        seconds: u64,
    },
    /// The publishing thread is gone.
    #[error("the publishing thread has stopped; start again to continue from the last published version")]
    PublisherStopped,
    /// The process may open too few files.
    #[error("cannot open the files that a writer needs")]
    Files {
        /// The system's error.
        source: std::io::Error,
    },
    /// The operating system gave no thread.
    #[error("cannot start a thread")]
    Thread {
        /// The system's error.
        source: std::io::Error,
    },
}

impl EngineError {
    /// Returns whether the settings give a source a name that the store uses for another one.
    pub(super) const fn is_of_name(&self) -> bool {
        matches!(
            self,
            Self::OtherKind { .. }
                | Self::NameTaken { .. }
                | Self::Moved { .. }
                | Self::OtherRepository { .. }
                | Self::NotThere { .. }
        )
    }

    /// Returns whether it concerns one source only, so that tracking continues with the rest.
    pub(super) const fn is_of_source(&self) -> bool {
        self.is_of_name()
            || matches!(
                self,
                Self::Git(_)
                    | Self::Directory(_)
                    | Self::Worktree(_)
                    | Self::RepositoryGone { .. }
                    | Self::Unborn { .. }
                    | Self::NoRefs { .. }
                    | Self::NotOnLine { .. }
                    | Self::Unanswered { .. }
            )
    }

    /// Returns whether it concerns one commit only, so that the rest of its repository is still tracked.
    pub(super) const fn is_of_commit(&self) -> bool {
        matches!(
            self,
            Self::Git(
                GitError::MissingObject { .. }
                    | GitError::TreeTooLarge { .. }
                    | GitError::FolderTooLarge { .. }
                    | GitError::Read { .. }
            )
        )
    }
}

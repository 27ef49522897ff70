//! What stops a tracker.

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

/// Why tracking cannot start or go on; whatever was published stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A stop was asked for, and what was under way could not end in the time that is left to it then.
    #[error("stopped before all was published; what was published stays, and the next start goes on from there")]
    Interrupted,
    /// No worker process can be had.
    #[error(transparent)]
    Workers(#[from] WorkerError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The version log refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The lexical index refused.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The vector index refused.
    #[error(transparent)]
    Vector(#[from] VectorError),
    /// A batch could not be published.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The graph stopped.
    #[error(transparent)]
    Mill(#[from] MillError),
    /// A repository refused.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A directory refused.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A work tree refused.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The rules of the configuration are no rules.
    #[error("cannot read the rules {}", path.display())]
    Rules {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: RuleError,
    },
    /// A file that the configuration names cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Nothing to do.
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
        /// Where one is.
        one: PathBuf,
        /// Where the other is.
        other: PathBuf,
    },
    /// The store knows a source of this name that is something else.
    #[error(
        "cannot track {} as {source_name}: the store knows {source_name} as a {known}, {}; give this source another name with --name",
        here.display(),
        there.display()
    )]
    OtherKind {
        /// The name.
        source_name: String,
        /// What it is in the store.
        known: &'static str,
        /// Where that is.
        there: PathBuf,
        /// What was to be tracked.
        here: PathBuf,
    },
    /// The store knows another source of this name.
    #[error(
        "cannot track {} as {source_name}: the store knows {source_name} at {}, which is another source; give this one another name with --name, or track it into another --data folder",
        here.display(),
        there.display()
    )]
    NameTaken {
        /// The name.
        source_name: String,
        /// What was to be tracked.
        here: PathBuf,
        /// Where the source is that the store knows.
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
    /// The source that the store knows is not where it was.
    #[error(
        "cannot track {} as {source_name}: the store knows {source_name} at {}, where it is not any more; if it was moved, say so once with: {command}; if not, give this one another name with --name",
        here.display(),
        there.display()
    )]
    Moved {
        /// The name.
        source_name: String,
        /// What was to be tracked.
        here: PathBuf,
        /// Where the source was.
        there: PathBuf,
        /// What says that it was moved.
        command: String,
    },
    /// Another repository stands where the one was that the store knows.
    #[error(
        "cannot track {} as {source_name}: it is another repository than the one that the store knows by that name and place, and holds none of its commits; give it another name with --name, or let it take that one's place with: {command}",
        here.display()
    )]
    OtherRepository {
        /// The name.
        source_name: String,
        /// The place.
        here: PathBuf,
        /// What lets it take the other's place.
        command: String,
    },
    /// No source was where it is said to have been.
    #[error("the store knows no source at {}, the place behind --moved-from; it knows those at: {known}", from.display())]
    NotThere {
        /// The place.
        from: PathBuf,
        /// Where sources are.
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
    /// The store has a snapshot of the commit that is not the one to import.
    #[error(
        "the store has another snapshot of commit {commit} of {source_name}, made under other rules; import into a new folder, or under another --name"
    )]
    OtherSnapshot {
        /// The source.
        source_name: String,
        /// The commit.
        commit: CommitId,
    },
    /// The tracker that was asked to collect keeps other snapshots.
    #[error(
        "cannot collect: {holder} tracks into the store with other settings of retention; stop it (nothing is lost) and start it again with these, then collect"
    )]
    OtherSettings {
        /// Who it is.
        holder: String,
    },
    /// The tracker that was asked to collect could not.
    #[error("{holder} tracks into the store and could not collect: {reason}")]
    NotCollected {
        /// Who it is.
        holder: String,
        /// Why not.
        reason: String,
    },
    /// A thread of the collector ended badly.
    #[error("a thread that looked for what can be collected panicked")]
    CollectorPanicked,
    /// A repository whose tags are to be asked for is gone.
    #[error("the repository of {source_name} is gone; set `tags = false` in its retention, or bring it back")]
    RepositoryGone {
        /// The source.
        source_name: String,
    },
    /// A pattern of the retention is none.
    #[error("cannot read the pattern `{pattern}` of [retention.views]")]
    RetentionPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
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
    /// The revision to begin with is not in the history of the view.
    #[error("{revision} is no first-parent commit of {view}; `git log --first-parent {view}` lists those that are")]
    NotOnLine {
        /// What was asked for.
        revision: String,
        /// The view.
        view: String,
    },
    /// Every source failed.
    #[error("{what}")]
    LeftOut {
        /// What is wrong with the first of them.
        what: String,
    },
    /// A source does not answer.
    #[error("{path} does not answer within {seconds} s; see whether its file system is there")]
    Unanswered {
        /// The source's path.
        path: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The publishing thread is gone.
    #[error("the publishing thread has stopped; start again to continue from the last published version")]
    PublisherStopped,
    /// The process may open too few files.
    #[error("cannot open the files that a writer needs")]
    Files {
        /// What the system said.
        source: std::io::Error,
    },
    /// The operating system gave no thread.
    #[error("cannot start a thread")]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
}

impl EngineError {
    /// Returns whether the settings give a source a name that the store has for another.
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

    /// Returns whether it is the trouble of one source, and no reason to stop tracking the others.
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

    /// Returns whether it is the trouble of one commit, and no reason to pass over the others of its repository.
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

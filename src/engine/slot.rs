//! One tracked source with the tracker's state of it: its work, its trouble, and whether it is watched.
//!
//! In: a source that was found, or a missing one. Out: its next work.
//!
//! **Invariant:** a slot keeps its number while the tracker runs; a source that is found later takes the slot of the missing one,
//! and its trouble never affects another slot.

use super::EngineError;
use super::beside::Awaited;
use super::directory::{DirectoryTracker, Found};
use super::git::GitTracker;
use super::job::Job;
use super::open::Opened;
use super::trace::TraceTracker;
use super::trouble::Trouble;
use crate::config::SourceConfig;
use crate::resources::chain;
use crate::store::SourceKind;
use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// A source of any kind.
pub(super) enum Source {
    Git(Box<GitTracker>, Duration),
    Directory(Box<DirectoryTracker>, Duration),
    Trace(Box<TraceTracker>),
    /// It is configured and not found yet.
    Missing(Box<Missing>),
}

/// A source that is not found yet.
pub(super) struct Missing {
    pub(super) config: SourceConfig,
    /// The separate thread that searches for it: a hanging file system must not delay anything else.
    pub(super) opening: Option<Receiver<Result<Opened, EngineError>>>,
}

/// A tracked source.
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) trouble: Option<Trouble>,
    /// A loss of files that is held back for a second look.
    pub(super) held: Option<Trouble>,
    /// Whether a look is wanted.
    pub(super) is_wanted: bool,
    /// Found states of a directory that are not taken yet.
    pub(super) found: VecDeque<Found>,
    pub(super) job: Option<Job>,
    /// What is read beside before a plan is made.
    pub(super) rehearsal: Option<Awaited<()>>,
    /// Whether the graph has its stored state.
    pub(super) is_restored: bool,
    /// Whether a task waits for its movements.
    pub(super) is_watched: bool,
}

impl Slot {
    pub(super) fn new(name: String, source: Source) -> Self {
        Self {
            name,
            source,
            trouble: None,
            held: None,
            is_wanted: true,
            found: VecDeque::new(),
            job: None,
            rehearsal: None,
            is_restored: false,
            is_watched: false,
        }
    }

    /// Returns whether there is work now.
    pub(super) fn has_work(&self) -> bool {
        if self.awaited_since().is_some() {
            let is_ready =
                self.job.as_ref().and_then(|job| job.looking.as_ref()).is_some_and(|(_, diff)| diff.is_ready());
            return is_ready || self.rehearsal.as_ref().is_some_and(Awaited::is_ready);
        }
        if self.job.is_some() || !self.found.is_empty() {
            return true;
        }
        let is_left_alone = self.trouble.as_ref().is_some_and(|trouble| !trouble.is_due());
        self.is_wanted && !is_left_alone && !matches!(self.source, Source::Missing(_))
    }

    /// Returns since when an answer of its file system is waited for, if one is.
    pub(super) fn awaited_since(&self) -> Option<Instant> {
        let diff = self.job.as_ref().and_then(|job| job.looking.as_ref()).map(|(_, diff)| diff.since());
        diff.or_else(|| self.rehearsal.as_ref().map(Awaited::since))
    }

    /// Notes a failure; `says` is whether that is logged. The current step is still fed to its end, because half of it is in the
    /// graph.
    pub(super) fn fails(&mut self, what: String, wait: Option<Duration>, says: bool) {
        self.is_wanted = true;
        let name = &self.name;
        if Trouble::note(&mut self.trouble, what, wait) && says {
            let what = self.trouble.as_ref().map_or("", |trouble| &trouble.what);
            tracing::warn!("{name}: {what}; it is tried again, at first in a second, later once a minute");
        }
    }

    /// As [`Self::fails`], with an error.
    pub(super) fn fails_with(&mut self, error: &EngineError, says: bool) {
        self.fails(chain(error), None, says);
    }

    /// Returns whether no look at it succeeded.
    pub(super) fn has_failed(&self) -> bool {
        self.trouble.is_some()
    }

    /// Notes that it works.
    pub(super) fn works(&mut self, says: bool) {
        if let Some(trouble) = self.trouble.take()
            && says
        {
            tracing::warn!("{}: it can be read again, after: {}", self.name, trouble.what);
        }
    }

    /// Returns `git`, `directory` or `trace`.
    pub(super) fn kind(&self) -> &'static str {
        match &self.source {
            Source::Git(..) => SourceKind::Git.as_str(),
            Source::Directory(..) => SourceKind::Directory.as_str(),
            Source::Trace(_) => SourceKind::Trace.as_str(),
            Source::Missing(missing) if missing.config.path.starts_with("dir:") => SourceKind::Directory.as_str(),
            Source::Missing(_) => SourceKind::Git.as_str(),
        }
    }
}

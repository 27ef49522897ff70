//! As of a time: the target of a view then.
//!
//! In: a view and a time. Out: one version.
//!
//! **Invariant:** two kinds of time, never mixed. A view of commits has the committers' times: the answer is the last first
//! parent whose time is not after the requested one, no matter when it was tracked. A view of files (a directory, a work tree)
//! has the times of its moves: a state that comes back counts again from its return on, and not before.

use super::Selected;
use super::error::RevisionError;
use super::meaning::Look;
use crate::store::SourceKind;
use crate::watch::worktree::WORKTREE_VIEW;
use jiff::Timestamp;
use snapshots::ViewId;

impl Look<'_> {
    /// Returns the target of a view as of a time.
    pub(super) fn at_time(&self, rev: &str, time: Timestamp, view: Option<&str>) -> Result<Selected, RevisionError> {
        let (id, name) = self.view(view).ok_or_else(|| self.unknown(rev))?;
        if self.is_of_files(name) {
            return self.stood(rev, time, (id, name));
        }
        let head = self.archive.view(id).and_then(|version| self.archive.version(version));
        let head = head.ok_or_else(|| self.unknown(rev))?;
        let select = |commit| {
            let version = self.archive.by_commit(self.id, commit).and_then(|version| self.archive.version(version));
            let version = version.ok_or_else(|| self.without(commit))?;
            Ok(self.selected(version, Some(name), version.id == head.id))
        };
        // The line of the log is that of the commits, as far as it goes, and a look at it is much cheaper.
        let mut oldest = head;
        for version in self.archive.first_parents(head.id) {
            if version.time <= time.as_second() {
                return select(version.commit);
            }
            oldest = version;
        }
        if let Some(git) = self.repository()
            && let Ok(Some(commit)) = git.first_parent_at(head.commit, time.as_second())
        {
            return select(commit.id);
        }
        Err(self.too_old(rev, &format!("{} of {}", oldest.commit, show_time(oldest.time))))
    }

    /// Whether a view is one of files on disk.
    fn is_of_files(&self, name: &str) -> bool {
        match self.record.kind {
            SourceKind::Directory => true,
            SourceKind::Trace => false,
            // A ref may have this name too; then the work tree has no view.
            SourceKind::Git => {
                let refs = || self.repository().and_then(|git| git.refs_called(WORKTREE_VIEW).ok());
                name == WORKTREE_VIEW && refs().is_none_or(|refs| refs.is_empty())
            }
        }
    }

    /// Returns the target of a view after its moves up to a time.
    fn stood(&self, rev: &str, time: Timestamp, (view, name): (ViewId, &str)) -> Result<Selected, RevisionError> {
        let Some(moved) = self.archive.last_move(view, time.as_millisecond()) else {
            let moves = self.archive.moves(view).iter();
            let oldest = moves.filter_map(|moved| {
                let commit = self.archive.version(moved.version?)?.commit;
                let time = self.archive.time_of(moved)?;
                Some(format!("{commit} of {}", Timestamp::from_millisecond(time).ok()?))
            });
            return Err(self.too_old(rev, &oldest.into_iter().next().unwrap_or_else(|| "not known".to_owned())));
        };
        let commit = moved.version.and_then(|version| self.archive.version(version)).map(|version| version.commit);
        let (view_name, place) = (name.to_owned(), self.record.name.clone());
        let commit = commit.ok_or(RevisionError::Nowhere { rev: rev.to_owned(), view: view_name, place })?;
        let version = self.archive.by_commit(self.id, commit).and_then(|version| self.archive.version(version));
        let version = version.ok_or_else(|| self.without(commit))?;
        Ok(self.selected(version, Some(name), self.archive.view(view) == Some(version.id)))
    }

    fn too_old(&self, rev: &str, oldest: &str) -> RevisionError {
        let (rev, place) = (rev.to_owned(), self.record.name.clone());
        RevisionError::TooOld { rev, place, oldest: oldest.to_owned() }
    }
}

/// Formats seconds since 1970 as a time.
pub(crate) fn show_time(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

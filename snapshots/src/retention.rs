//! The kept versions, and the ordinals that they need.
//!
//! In: the log, with the dropped versions. Out: ordinals that must stay, for the kept versions or for selected ones.
//! **Invariant:** every ordinal of a kept version is reached, even if its bases were dropped: deltas stay in the log, so every
//! bitmap can still be rebuilt, and only ordinals that no kept version holds are excluded.
//!
//! A delta of a kept version may move ordinals that only a dropped base held. A caller that looks these up (for digests, or for
//! the entries of a document) asks for the changes against the nearest kept base.

use crate::archive::Archive;
use crate::bitmaps::{Bitmaps, Changes, Delta};
use crate::error::ArchiveError;
use crate::history::find;
use crate::identity::{CommitId, SourceId, VersionId, ViewId};
use crate::version::Version;
use roaring::RoaringBitmap;
use std::collections::HashSet;

impl Archive {
    /// As [`Self::find_commits`], of commits whose versions were all dropped.
    #[must_use]
    pub fn find_dropped(&self, prefix: &str) -> Vec<(SourceId, VersionId)> {
        let mut found = find(&self.history.last_of_commit, prefix);
        found.retain(|(source, version)| {
            self.version(*version).is_some_and(|version| self.by_commit(*source, version.commit).is_none())
        });
        found
    }

    /// Returns the newest version that a commit has or had, dropped or not.
    #[must_use]
    pub fn last_of_commit(&self, source: SourceId, commit: CommitId) -> Option<VersionId> {
        self.history.last_of_commit.get(&(source, commit)).copied()
    }

    /// Returns a version and its first parents, newest first, as far as they have or had versions, including dropped ones. It
    /// ends where the line comes back to a version: a directory may return to an earlier state.
    pub fn first_parents(&self, head: VersionId) -> impl Iterator<Item = &Version> {
        let mut seen = HashSet::new();
        let parent = |version: &&Version| {
            let parent = self.last_of_commit(version.source, version.parent?)?;
            self.version(parent)
        };
        std::iter::successors(self.version(head), parent).take_while(move |version| seen.insert(version.id))
    }

    /// Returns whether a version was dropped. Its record and its bitmaps stay; the entries that only it held may be gone.
    #[must_use]
    pub fn is_dropped(&self, version: VersionId) -> bool {
        self.history.dropped.contains_key(&version)
    }

    /// Returns every dropped version, with the bytes of the log up to the end of the group that dropped it. A reader that has
    /// read less of the log still considers the version kept.
    pub fn dropped(&self) -> impl Iterator<Item = (VersionId, u64)> + '_ {
        self.history.dropped.iter().map(|(version, end)| (*version, *end))
    }

    /// Returns the first view that pointed at a version; nothing if no view did.
    #[must_use]
    pub fn first_view(&self, version: VersionId) -> Option<ViewId> {
        self.history.first_views.get(&version).copied()
    }

    /// Returns every version that is not dropped, in order of [`VersionId`].
    pub fn kept(&self) -> impl Iterator<Item = &Version> {
        self.versions().iter().filter(|version| !self.is_dropped(version.id))
    }

    /// Returns every ordinal that some kept version holds: the store must have a row for each.
    ///
    /// The cost is one read of every change, and the bitmaps of kept versions whose base was dropped.
    ///
    /// # Errors
    /// Fails if a change cannot be read.
    pub fn reached(&self) -> Result<Bitmaps, ArchiveError> {
        self.reached_by(|version| !self.is_dropped(version))
    }

    /// Returns every ordinal of the selected versions; costs as much as [`Self::reached`].
    ///
    /// # Errors
    /// Fails if a change cannot be read.
    pub fn reached_by(&self, is_wanted: impl Fn(VersionId) -> bool) -> Result<Bitmaps, ArchiveError> {
        let mut reached = Bitmaps::default();
        for version in self.versions().iter().filter(|version| is_wanted(version.id)) {
            // Beside its inserted ordinals, a version holds only those of its base.
            if version.base.is_none_or(&is_wanted) {
                let changes = self.changes(version.id)?;
                reached.entries |= changes.entries.inserted;
                reached.documents |= changes.documents.inserted;
            } else {
                let alive = self.bitmaps(version.id)?;
                reached.entries |= &alive.entries;
                reached.documents |= &alive.documents;
            }
        }
        Ok(reached)
    }

    /// Returns the nearest version along the bases that is not dropped.
    #[must_use]
    pub fn kept_base(&self, version: VersionId) -> Option<VersionId> {
        let base = |version: &VersionId| self.version(*version).and_then(|version| version.base);
        std::iter::successors(base(&version), base).find(|base| !self.is_dropped(*base))
    }

    /// Returns the changes of a version against [`Self::kept_base`]. Both are kept, so every ordinal has its row.
    ///
    /// # Errors
    /// Fails if there is no such version, or if a delta does not fit its base.
    pub fn changes_since_kept(&self, version: VersionId) -> Result<Changes, ArchiveError> {
        let kept = self.kept_base(version);
        if self.version(version).is_some_and(|known| known.base == kept) {
            return self.changes(version);
        }
        let now = self.bitmaps(version)?;
        let before = kept.map(|kept| self.bitmaps(kept)).transpose()?.unwrap_or_default();
        let delta =
            |before: &RoaringBitmap, now: &RoaringBitmap| Delta { inserted: now - before, retracted: before - now };
        Ok(Changes {
            entries: delta(&before.entries, &now.entries),
            documents: delta(&before.documents, &now.documents),
        })
    }
}

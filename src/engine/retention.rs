//! Retention: decides which snapshots are kept, by the settings.
//!
//! In: the version log, the settings of each source, its views and tags, and the time. Out: the versions to drop.
//!
//! ```text
//!  a view points at it · a tag names it ─────────────────────────────────────► kept
//!  saved, not committed, and saves have a rule ── younger than the limit ────► kept, else dropped
//!  on a view's first-parent line ── newest N · days · daily · weekly ────────► kept, else dropped
//!  on no line (rewritten, deleted branch) ── days ───────────────────────────► kept, else dropped
//! ```
//!
//! **Invariant:** a snapshot that no rule limits is kept, and if something cannot be found out, the whole source is kept. The
//! decision is a function of the log, the settings, the repository and `now`, so repeating it drops nothing more.
//!
//! Lines include dropped versions: a commit whose snapshot was dropped still counts, and the line continues over it.
//!
//! The age of a commit is that of its committer time. The age of a saved state is that of the last move of its view to it:
//! returning to an old state saves it again. The line of a directory is the sequence of its view's states, the last first.

use super::EngineError;
use super::directory::WORKTREE_VIEW;
use super::place::source_name;
use crate::config::{Config, Keep, Retention};
use crate::store::{SourceKind, SourceRecord};
use crate::watch::git::{GitSource, RefPattern};
use dataflows::data::{Fingerprint, Hasher};
use globset::Glob;
use roaring::RoaringBitmap;
use snapshots::{Archive, CommitId, SourceId, Version, VersionId, ViewId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// 1970-01-01 was a Thursday: a week begins on Monday, four days later.
const FIRST_MONDAY: i64 = 4 * DAY;

/// Most consecutive commits without a snapshot that a line may cross.
const LONGEST_GAP: usize = 100_000;

/// Returns an identifier of retention settings: equal identifiers keep the same.
pub(super) fn name_of_settings(config: &Config) -> String {
    // The time of collections does not affect what is kept.
    let kept = |retention: &Retention| format!("{:?}", Retention { at_start: false, every: None, ..retention.clone() });
    let own = config.sources.iter().filter_map(|source| Some((source_name(source), kept(source.retention.as_ref()?))));
    let mut hasher = Hasher::new("retention").part(kept(&config.retention).as_bytes());
    for (name, kept) in own.collect::<BTreeMap<_, _>>() {
        hasher = hasher.part(name.as_bytes()).part(kept.as_bytes());
    }
    Fingerprint::from_words(hasher.finish()).to_string()
}

/// A source, with all inputs of its retention.
pub(super) struct Kept<'a> {
    pub(super) id: SourceId,
    pub(super) record: &'a SourceRecord,
    pub(super) views: Vec<(ViewId, &'a str)>,
    pub(super) retention: &'a Retention,
    /// The repository, if it is one and still exists.
    pub(super) git: Option<GitSource>,
}

impl Kept<'_> {
    /// Adds the versions of this source to drop.
    pub(super) fn drop_into(
        &self,
        archive: &Archive,
        now: i64,
        dropped: &mut RoaringBitmap,
    ) -> Result<(), EngineError> {
        if !self.retention.limits_anything() {
            return Ok(());
        }
        let tags = match self.tags() {
            Ok(tags) => tags,
            Err(error) => {
                tracing::warn!("{}: nothing is dropped, since its tags cannot be read: {error}", self.record.name);
                return Ok(());
            }
        };
        let heads: HashSet<VersionId> = archive.views().map(|(_, head)| head.version).collect();
        let lines = self.lines(archive, now)?;
        let saved = self.saved(archive);
        let is_limited = self.retention.keep.is_limited() || !self.retention.views.is_empty();
        for version in archive.kept().filter(|version| version.source == self.id) {
            let save = saved.get(&version.id).filter(|_| self.is_save(archive, version));
            let age = now.saturating_sub(save.copied().unwrap_or(version.time));
            let is_replaced = archive.by_commit(self.id, version.commit) != Some(version.id);
            let stays = heads.contains(&version.id)
                || (tags.contains(&version.commit) && !is_replaced)
                || match self.retention.saves_hours {
                    Some(hours) if self.is_save(archive, version) => age < hours.saturating_mul(HOUR),
                    _ if !is_limited => true,
                    _ if is_replaced => false,
                    _ => lines.contains(&version.id) || is_younger(age, self.retention.keep.days, DAY),
                };
            if !stays {
                dropped.insert(version.id.get());
            }
        }
        Ok(())
    }

    /// Returns the commits of the repository's tags.
    fn tags(&self) -> Result<HashSet<CommitId>, EngineError> {
        match (&self.git, self.record.kind) {
            // A trace records commits and no tags.
            (_, SourceKind::Directory | SourceKind::Trace) => Ok(HashSet::new()),
            _ if !self.retention.tags => Ok(HashSet::new()),
            // An imported source that was never tracked here has no tags.
            (None, _) if self.record.location.is_empty() => Ok(HashSet::new()),
            (None, _) => Err(EngineError::RepositoryGone { source_name: self.record.name.clone() }),
            (Some(git), _) => {
                let heads = git.heads(&[RefPattern::parse("refs/tags/*")?])?;
                Ok(heads.heads.iter().map(|head| head.commit.id).collect())
            }
        }
    }

    /// Whether a version is of files that were saved and not committed.
    fn is_save(&self, archive: &Archive, version: &Version) -> bool {
        match self.record.kind {
            SourceKind::Directory => true,
            SourceKind::Trace => false,
            SourceKind::Git => {
                let first = archive.first_view(version.id);
                let worktree = self.views.iter().find(|(_, name)| *name == WORKTREE_VIEW).map(|(id, _)| *id);
                let is_commit = || self.git.as_ref().is_some_and(|git| git.commit(version.commit).is_ok());
                first.is_some() && first == worktree && !is_commit()
            }
        }
    }

    /// Returns the versions on the views' lines that their rules keep.
    fn lines(&self, archive: &Archive, now: i64) -> Result<HashSet<VersionId>, EngineError> {
        let mut kept = HashSet::new();
        for (view, name) in &self.views {
            let Some(head) = archive.view(*view) else { continue };
            let rule = self.rule(name)?;
            let mut days = BTreeSet::new();
            let mut weeks = BTreeSet::new();
            for (position, (version, time)) in self.line(archive, *view, head).into_iter().enumerate() {
                let age = now.saturating_sub(time);
                if archive.is_dropped(version) {
                    continue;
                }
                // The first one of a day on the way back is its last.
                let is_of_day = is_younger(age, rule.daily, DAY) && days.insert(time.div_euclid(DAY));
                let is_of_week = is_younger(age, rule.weekly, WEEK)
                    && weeks.insert(time.saturating_sub(FIRST_MONDAY).div_euclid(WEEK));
                if !rule.is_limited()
                    || rule.newest.is_some_and(|newest| position < newest)
                    || is_younger(age, rule.days, DAY)
                    || is_of_day
                    || is_of_week
                {
                    kept.insert(version);
                }
            }
        }
        Ok(kept)
    }

    /// Returns the rule of a view: the first whose pattern matches its name, else that of the source.
    fn rule(&self, name: &str) -> Result<&Keep, EngineError> {
        for (pattern, keep) in &self.retention.views {
            let glob = Glob::new(pattern)
                .map_err(|source| EngineError::RetentionPattern { pattern: pattern.clone(), source })?;
            if glob.compile_matcher().is_match(name) {
                return Ok(keep);
            }
        }
        Ok(&self.retention.keep)
    }

    /// Returns the time when the views of saved files last moved to a version, in seconds since 1970.
    fn saved(&self, archive: &Archive) -> HashMap<VersionId, i64> {
        let of_saves = |name: &str| self.record.kind == SourceKind::Directory || name == WORKTREE_VIEW;
        let views = self.views.iter().filter(|(_, name)| of_saves(name));
        let moves = views.flat_map(|(view, _)| archive.moves(*view));
        moves.filter_map(|moved| Some((moved.version?, archive.time_of(moved)?.div_euclid(1000)))).collect()
    }

    /// Returns the versions on the line of a view with their times, newest first, including dropped ones: for a directory the
    /// view's states, for commits the head and its first parents.
    fn line(&self, archive: &Archive, view: ViewId, head: VersionId) -> Vec<(VersionId, i64)> {
        let committed = || {
            let line = self.commits(archive, head).into_iter();
            line.filter_map(|version| archive.version(version)).map(|version| (version.id, version.time))
        };
        if self.record.kind != SourceKind::Directory {
            return committed().collect();
        }
        let stood = archive.moves(view).iter().rev().filter_map(|moved| {
            let version = archive.version(moved.version?)?;
            let time = archive.time_of(moved).map_or(version.time, |time| time.div_euclid(1000));
            // A state that was indexed again under other rules counts once.
            Some((archive.last_of_commit(self.id, version.commit)?, time))
        });
        let mut seen = HashSet::new();
        stood.chain(committed()).filter(|(version, _)| seen.insert(*version)).collect()
    }

    /// Returns a version and those of its first parents, newest first; over commits that never had a snapshot the repository
    /// continues the line.
    fn commits(&self, archive: &Archive, head: VersionId) -> Vec<VersionId> {
        let mut line = vec![head];
        let mut seen = HashSet::from([head]);
        let mut at = archive.version(head);
        while let Some(parent) = at.and_then(|version| version.parent) {
            let known = archive.last_of_commit(self.id, parent).or_else(|| {
                let has = |commit: &CommitId| archive.last_of_commit(self.id, *commit).is_some();
                let passed = self.git.as_ref()?.first_parents(parent, has, Some(LONGEST_GAP)).ok()?;
                archive.last_of_commit(self.id, passed.first()?.first_parent?)
            });
            // A directory may return to an old state: its line ends there.
            let Some(version) = known.filter(|version| seen.insert(*version)) else { break };
            line.push(version);
            at = archive.version(version);
        }
        line
    }
}

/// Whether an age is below so many units; never, if there is no limit.
fn is_younger(age: i64, limit: Option<u32>, unit: i64) -> bool {
    limit.is_some_and(|limit| age < i64::from(limit).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use snapshots::{Changes, Digest, NewVersion, Record};

    const VIEW: ViewId = ViewId::new(0);

    fn tree(name: u8) -> CommitId {
        CommitId::from_bytes([name; 20])
    }

    /// Returns the dropped states of a directory that had each of these, by the hour of the move.
    fn dropped(moves: &[(u8, i64)], retention: &Retention, now: i64) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::create_or_open_writer(folder.path()).unwrap();
        let mut at = None;
        for &(state, hour) in moves {
            let epoch = archive.next_epoch();
            let known = archive.by_commit(SourceId::new(0), tree(state));
            let version = known.unwrap_or_else(|| archive.next_version());
            let time = Some(hour * HOUR * 1000);
            let moved = Record::View { epoch, view: VIEW, version, time };
            let new = known.is_none().then(|| NewVersion {
                epoch,
                source: SourceId::new(0),
                commit: tree(state),
                parent: at,
                base: None,
                base_is_parent: at.is_none(),
                time: hour * HOUR,
                live_tokens: [0; 2].into(),
                digest: Digest::EMPTY,
                fingerprint: [0; 16],
                model: [0; 16],
                changes: Changes::default(),
            });
            archive.append(&new.map(Record::Version).into_iter().chain([moved]).collect::<Vec<_>>()).unwrap();
            at = Some(tree(state));
        }
        let record = SourceRecord { name: "notes".to_owned(), kind: SourceKind::Directory, location: Vec::new() };
        let kept = Kept { id: SourceId::new(0), record: &record, views: vec![(VIEW, ".")], retention, git: None };
        let mut dropped = RoaringBitmap::new();
        kept.drop_into(&archive, now * HOUR, &mut dropped).unwrap();
        dropped.iter().map(|version| archive.version(VersionId::new(version)).unwrap().commit.as_bytes()[0]).collect()
    }

    #[test]
    fn a_state_that_came_back_is_as_old_as_its_return_and_hides_none_between() {
        let moves = [(b'a', 0), (b'b', 10), (b'a', 20), (b'c', 21)];
        let newest =
            |newest| Retention { keep: Keep { newest: Some(newest), ..Keep::default() }, ..Retention::default() };
        assert_eq!(dropped(&moves, &newest(3), 22), b"", "three states were there");
        assert_eq!(dropped(&moves, &newest(2), 22), b"b", "the return is younger");
        let saves = Retention { saves_hours: Some(5), ..Retention::default() };
        assert_eq!(dropped(&moves, &saves, 22), b"b");
        assert_eq!(dropped(&moves, &saves, 26), b"ab");
        let days = Retention { keep: Keep { days: Some(1), ..Keep::default() }, ..Retention::default() };
        assert_eq!(dropped(&moves, &days, 33), b"");
        assert_eq!(dropped(&moves, &days, 35), b"b");
        let daily = Retention { keep: Keep { daily: Some(9), ..Keep::default() }, ..Retention::default() };
        assert_eq!(dropped(&moves, &daily, 30), b"ab", "the last of the day stays");
    }
}

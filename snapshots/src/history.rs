//! The content of the log in memory, and a group of records that is being added.
//!
//! In: decoded records. Out: versions, views and packed changes by id. **Invariant:** a group is added as a whole or not at all.
//! While it is encoded or decoded it is on top of the history as a [`Staging`], so that its records can refer to each other.
//! Changes stay packed (a few tens of bytes a version) and are unpacked during a walk.
//!
//! A dropped version keeps its place: later versions may have it as their base, and numbers are never reused. Only the look-up by
//! commit no longer finds it.

use crate::identity::{CommitId, Epoch, HexPrefix, SourceId, VersionId, ViewId};
use crate::tokens::{LEAST_FIELDS, Tokens};
use crate::version::{Move, Version, ViewHead};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// The format of a log without drops and without times of moves.
pub(crate) const FIRST_FORMAT: u32 = 1;
/// The format since the first drop.
const DROPPING_FORMAT: u32 = 2;
/// The format since the first move with a time.
const TIMED_FORMAT: u32 = 3;
/// The format since the first recount.
const RECOUNT_FORMAT: u32 = 4;
/// The format from the first version on that has tokens in more fields than two.
pub(crate) const LISTED_FORMAT: u32 = 5;

/// Identifies the log up to a frame: a hash over the checksums of all frames so far.
pub(crate) type Chain = [u8; 16];

/// The content of all whole groups.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) versions: Vec<Version>,
    /// By version, the chain up to its frame.
    chains: Vec<Chain>,
    /// The packed changes of all versions in sequence, and by version their position.
    packed: Vec<u8>,
    spans: Vec<Range<usize>>,
    /// By commit the newest version that is not dropped.
    pub(crate) by_commit: HashMap<(SourceId, CommitId), VersionId>,
    /// By commit the newest version, dropped or not.
    pub(crate) last_of_commit: HashMap<(SourceId, CommitId), VersionId>,
    /// By dropped version, the end of the dropping frame in the log.
    pub(crate) dropped: BTreeMap<VersionId, u64>,
    /// By version, the first view that pointed at it.
    pub(crate) first_views: HashMap<VersionId, ViewId>,
    pub(crate) views: BTreeMap<ViewId, ViewHead>,
    /// By view every move, in the order of the log.
    pub(crate) moves: HashMap<ViewId, Vec<Move>>,
    /// The time of the last move that has one; 0 before the first.
    last_move: i64,
    /// The epoch of the last record; 0 before the first.
    pub(crate) epoch: Epoch,
    /// One more than the largest ordinal ever inserted: of entries, of document rows.
    pub(crate) used_ordinals: [u64; 2],
}

/// The decoded records of one group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    versions: Vec<Version>,
    packed: Vec<u8>,
    spans: Vec<Range<usize>>,
    moves: Vec<(ViewId, Move)>,
    dropped: BTreeSet<VersionId>,
    /// The recounted tokens of every settled version.
    recounted: Option<Vec<Tokens>>,
    epoch: Option<Epoch>,
    used_ordinals: [u64; 2],
}

impl Group {
    /// Returns the oldest format that can hold the group.
    pub(crate) fn needs(&self) -> u32 {
        let counted = self.versions.iter().map(|version| &version.statistics.live_tokens);
        let mut counted = counted.chain(self.recounted.iter().flatten());
        if counted.any(|tokens| tokens.as_list().len() > LEAST_FIELDS) {
            LISTED_FORMAT
        } else if self.recounted.is_some() {
            RECOUNT_FORMAT
        } else if self.moves.iter().any(|(_, moved)| moved.time.is_some()) {
            TIMED_FORMAT
        } else if self.dropped.is_empty() {
            FIRST_FORMAT
        } else {
            DROPPING_FORMAT
        }
    }
}

impl History {
    /// Adds a group that ends with the frame `chain`, at byte `end` of the log.
    pub(crate) fn take(&mut self, group: Group, chain: Chain, end: u64) {
        let moved_by = self.packed.len();
        self.packed.extend_from_slice(&group.packed);
        self.spans.extend(group.spans.iter().map(|span| span.start + moved_by..span.end + moved_by));
        self.chains.resize(self.chains.len() + group.versions.len(), chain);
        let of_commit = || group.versions.iter().map(|version| ((version.source, version.commit), version.id));
        self.by_commit.extend(of_commit());
        self.last_of_commit.extend(of_commit());
        self.versions.extend(group.versions);
        for (view, moved) in group.moves {
            match moved.version {
                Some(version) => {
                    self.first_views.entry(version).or_insert(view);
                    self.views.insert(view, ViewHead { version, epoch: moved.epoch })
                }
                None => self.views.remove(&view),
            };
            self.last_move = moved.time.unwrap_or(self.last_move);
            self.moves.entry(view).or_default().push(moved);
        }
        self.drop_all(&group.dropped, end);
        for (version, tokens) in self.versions.iter_mut().zip(group.recounted.into_iter().flatten()) {
            version.statistics.live_tokens = tokens;
        }
        self.epoch = group.epoch.unwrap_or(self.epoch);
        for (used, by_group) in self.used_ordinals.iter_mut().zip(group.used_ordinals) {
            *used = by_group.max(*used);
        }
    }

    /// Removes dropped versions from the look-up by commit; an earlier kept version of the commit is found again.
    fn drop_all(&mut self, dropped: &BTreeSet<VersionId>, end: u64) {
        self.dropped.extend(dropped.iter().map(|&version| (version, end)));
        let key = |version: &Version| (version.source, version.commit);
        let mut lost = HashSet::new();
        for version in dropped.iter().filter_map(|version| self.versions.get(version.index())) {
            if self.by_commit.get(&key(version)) == Some(&version.id) {
                self.by_commit.remove(&key(version));
                lost.insert(key(version));
            }
        }
        if !lost.is_empty() {
            let stay = self.versions.iter().filter(|version| !self.dropped.contains_key(&version.id));
            let found = stay.map(|version| (key(version), version.id)).filter(|(commit, _)| lost.contains(commit));
            self.by_commit.extend(found);
        }
    }

    /// Returns the chain up to the frame of a version.
    pub(crate) fn chain(&self, id: VersionId) -> Option<Chain> {
        self.chains.get(id.index()).copied()
    }
}

/// Returns the versions of commits that begin with `prefix`, in order of [`VersionId`]; none for malformed text.
pub(crate) fn find(commits: &HashMap<(SourceId, CommitId), VersionId>, prefix: &str) -> Vec<(SourceId, VersionId)> {
    let Some(prefix) = HexPrefix::parse(prefix) else { return Vec::new() };
    let of_prefix = commits.iter().filter(|((_, commit), _)| commit.begins_with(&prefix));
    let mut found: Vec<_> = of_prefix.map(|((source, _), version)| (*source, *version)).collect();
    found.sort_unstable_by_key(|(_, version)| *version);
    found
}

/// The history with a group on top of it.
pub(crate) struct Staging<'a> {
    history: &'a History,
    group: Group,
}

impl<'a> Staging<'a> {
    /// Starts an empty group.
    pub(crate) fn new(history: &'a History) -> Self {
        Self { history, group: Group::default() }
    }

    /// Ends the group.
    pub(crate) fn finish(self) -> Group {
        self.group
    }

    /// Returns the id of the next version.
    pub(crate) fn next_version(&self) -> u64 {
        (self.history.versions.len() + self.group.versions.len()) as u64
    }

    /// Returns the epoch of the last record.
    pub(crate) fn epoch(&self) -> Epoch {
        self.group.epoch.unwrap_or(self.history.epoch)
    }

    /// Returns a version by its id.
    pub(crate) fn version(&self, id: VersionId) -> Option<&Version> {
        let settled = self.history.versions.len();
        if id.index() < settled {
            self.history.versions.get(id.index())
        } else {
            self.group.versions.get(id.index() - settled)
        }
    }

    /// Returns the packed changes of a version.
    pub(crate) fn packed(&self, id: VersionId) -> Option<&[u8]> {
        let settled = self.history.spans.len();
        if id.index() < settled {
            self.history.spans.get(id.index()).map(|span| &self.history.packed[span.clone()])
        } else {
            self.group.spans.get(id.index() - settled).map(|span| &self.group.packed[span.clone()])
        }
    }

    /// Returns whether a version is dropped, by the group or before.
    pub(crate) fn is_dropped(&self, id: VersionId) -> bool {
        self.history.dropped.contains_key(&id) || self.group.dropped.contains(&id)
    }

    /// Returns the targets of all views, each with one of its views.
    pub(crate) fn heads(&self) -> HashMap<VersionId, ViewId> {
        let mut heads = self.history.views.clone();
        for (view, moved) in &self.group.moves {
            match moved.version {
                Some(version) => heads.insert(*view, ViewHead { version, epoch: moved.epoch }),
                None => heads.remove(view),
            };
        }
        heads.into_iter().map(|(view, head)| (head.version, view)).collect()
    }

    /// Returns the newest settled version of a commit.
    pub(crate) fn by_commit(&self, source: SourceId, commit: CommitId) -> Option<VersionId> {
        self.history.by_commit.get(&(source, commit)).copied()
    }

    /// Returns the chain up to the frame of a version; nothing until that frame is written.
    pub(crate) fn chain(&self, id: VersionId) -> Option<Chain> {
        self.history.chain(id)
    }

    /// Adds a version, with its packed changes and the upper ends of its inserted ordinals.
    pub(crate) fn push_version(&mut self, version: Version, packed: &[u8], used_ordinals: [u64; 2]) {
        let start = self.group.packed.len();
        self.group.packed.extend_from_slice(packed);
        self.group.spans.push(start..self.group.packed.len());
        self.group.epoch = Some(version.epoch);
        self.group.versions.push(version);
        for (used, by_version) in self.group.used_ordinals.iter_mut().zip(used_ordinals) {
            *used = by_version.max(*used);
        }
    }

    /// Drops a version.
    pub(crate) fn push_dropped(&mut self, epoch: Epoch, version: VersionId) {
        self.group.epoch = Some(epoch);
        self.group.dropped.insert(version);
    }

    /// Returns whether the group holds a record.
    pub(crate) fn is_begun(&self) -> bool {
        self.group.epoch.is_some()
    }

    /// Returns whether the group holds a recount.
    pub(crate) fn is_recounted(&self) -> bool {
        self.group.recounted.is_some()
    }

    /// Sets the recounted tokens of every settled version.
    pub(crate) fn push_recount(&mut self, epoch: Epoch, live_tokens: Vec<Tokens>) {
        self.group.epoch = Some(epoch);
        self.group.recounted = Some(live_tokens);
    }

    /// Points a view at a version, or removes it.
    pub(crate) fn push_view(&mut self, view: ViewId, moved: Move) {
        self.group.epoch = Some(moved.epoch);
        self.group.moves.push((view, moved));
    }

    /// Returns the time of the last move that has one.
    pub(crate) fn last_move(&self) -> i64 {
        let in_group = self.group.moves.iter().rev().find_map(|(_, moved)| moved.time);
        in_group.unwrap_or(self.history.last_move)
    }
}

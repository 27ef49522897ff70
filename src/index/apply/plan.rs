//! Plans the log records of a batch: for every epoch its version, or the move of a view.
//!
//! In: the live ordinals after each epoch. Out: the records of one group, and the heads after it is written.
//!
//! **Invariant:** a version's delta, statistics and digest are relative to its base and computed from the delta alone, so they
//! cost as much as the commit. The base is the parent's version if there is one, whatever the view pointed at before.

use super::part::Parts;
use super::target::{CommitTarget, Purpose, Target, in_hand};
use super::{ApplyError, Batch, Head, IndexWriter};
use crate::store::Receipt;
use dataflows::data::{Document, EntryId, Outcome, View};
use dataflows::run::EpochDone;
use dataflows::work::Work;
use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};
use snapshots::{
    Bitmaps, Changes, CommitId, Delta, Digest, Epoch, NewVersion, Ordinal, Record, SourceId, Tokens, VersionId, ViewId,
};
use std::time::{Duration, Instant};

/// Most document rows in memory while those of an epoch are counted.
const LOOK_ROWS: usize = 8192;

/// The records of a batch for the log, and the changes in memory once they are written.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) records: Vec<Record>,
    pub(super) published: Vec<Draft>,
    pub(super) heads: FxHashMap<View, Head>,
    pub(super) gone: Vec<View>,
}

/// A line of `track` whose version has a number but is not in the log yet.
pub(super) struct Draft {
    pub(super) epoch: Epoch,
    pub(super) view: Option<ViewId>,
    pub(super) version: VersionId,
    pub(super) receipt: Receipt,
    pub(super) waited: Duration,
    pub(super) repaired: bool,
}

/// An epoch, and the earlier parts of the step that it ends.
#[derive(Clone, Copy)]
struct Step<'a> {
    target: &'a Target,
    done: &'a EpochDone,
    parts: Option<&'a Parts>,
    /// Its time in the graph.
    graph: Duration,
}

/// The data of a version of this batch before it is in the log.
struct Staged {
    alive: Bitmaps,
    tokens: Tokens,
    digest: Digest,
}

impl IndexWriter {
    /// Decides the log records of each epoch.
    pub(super) fn plan(
        &self,
        epochs: &[(Target, EpochDone)],
        heads: Vec<Bitmaps>,
        batch: &Batch,
        started: Instant,
    ) -> Result<Plan, ApplyError> {
        let mut planner = Planner {
            writer: self,
            batch,
            plan: Plan::default(),
            staged: FxHashMap::default(),
            commits: FxHashMap::default(),
            used: FxHashSet::default(),
            next_version: self.archive.next_version().get(),
            next_epoch: self.archive.next_epoch().get(),
            graph_free: self.graph_free,
            share: started.elapsed() / u32::try_from(epochs.len().max(1)).unwrap_or(u32::MAX),
        };
        for ((target, done), alive) in epochs.iter().zip(heads) {
            planner.epoch(target, done, alive)?;
        }
        Ok(planner.plan)
    }
}

struct Planner<'a> {
    writer: &'a IndexWriter,
    batch: &'a Batch,
    plan: Plan,
    staged: FxHashMap<VersionId, Staged>,
    commits: FxHashMap<(SourceId, CommitId), VersionId>,
    /// Heads whose parts an epoch of this batch has used.
    used: FxHashSet<View>,
    next_version: u32,
    next_epoch: u64,
    /// The time when the previous epoch left the graph.
    graph_free: Option<Instant>,
    share: Duration,
}

impl<'a> Planner<'a> {
    fn epoch(&mut self, target: &Target, done: &EpochDone, alive: Bitmaps) -> Result<(), ApplyError> {
        let graph = in_hand(done, self.graph_free.replace(done.finished));
        let step = Step { target, done, parts: self.parts_of(target.graph_view), graph };
        match &target.purpose {
            Purpose::Commit(commit) => {
                let known = self.known(commit.source, commit.commit);
                let version = match known {
                    Some(version) if self.is_current(version) && self.alive(version)? == alive => version,
                    // The existing snapshot was made under other rules, or is damaged: the newest one counts. If the rules give
                    // the same entries, the new record is short, and tells the next start so.
                    _ => self.new_version(step, commit, &alive)?,
                };
                self.publish(step, commit, version, known == Some(version), known.is_some())?;
                self.stand(target.graph_view, Some(version), alive);
            }
            Purpose::Restore { version, again } => {
                let mut version = *version;
                if !self.is_current(version) || self.alive(version)? != alive {
                    version = self.new_version(step, again, &alive)?;
                    self.publish(step, again, version, false, true)?;
                }
                self.stand(target.graph_view, Some(version), alive);
            }
            Purpose::Point { view, source, commit } => {
                let unknown = ApplyError::Unexpected("a view was to move to a commit that has no snapshot");
                let version = self.known(*source, *commit).ok_or(unknown)?;
                let epoch = self.take_epoch();
                self.plan.records.push(Record::View { epoch, view: *view, version, time: Some(target.seen) });
                let (ms, waited) = timings(target, &done.work, step.graph, self.share);
                let receipt = Receipt { ms, ..Receipt::default() };
                self.plan.published.push(Draft { epoch, view: Some(*view), version, receipt, waited, repaired: false });
            }
            Purpose::Part => return Err(ApplyError::Unexpected("a part of a step was to be published by itself")),
            Purpose::Aside => {
                let earlier = self.plan.heads.get(&target.graph_view);
                let earlier = earlier.or_else(|| self.writer.heads.get(&target.graph_view));
                let version = earlier.and_then(|head| head.version);
                self.stand(target.graph_view, version, alive);
            }
            Purpose::Leave { view } => {
                self.plan.heads.remove(&target.graph_view);
                self.plan.gone.push(target.graph_view);
                if let Some(view) = *view {
                    let epoch = self.take_epoch();
                    self.plan.records.push(Record::ViewGone { epoch, view, time: Some(target.seen) });
                }
            }
        }
        Ok(())
    }

    /// Returns the parts of a head's step, for the epoch that ends the step.
    fn parts_of(&mut self, head: View) -> Option<&'a Parts> {
        if self.used.insert(head) { self.writer.parts.get(&head) } else { None }
    }

    /// Notes the version of a head of the graph; a head that left earlier in the batch is back.
    fn stand(&mut self, graph_view: View, version: Option<VersionId>, alive: Bitmaps) {
        self.plan.gone.retain(|gone| *gone != graph_view);
        self.plan.heads.insert(graph_view, Head { version, alive });
    }

    fn take_epoch(&mut self) -> Epoch {
        let epoch = Epoch::new(self.next_epoch);
        self.next_epoch += 1;
        epoch
    }

    fn known(&self, source: SourceId, commit: CommitId) -> Option<VersionId> {
        let staged = self.commits.get(&(source, commit)).copied();
        staged.or_else(|| self.writer.archive.by_commit(source, commit))
    }

    fn alive(&self, version: VersionId) -> Result<Bitmaps, ApplyError> {
        match self.staged.get(&version) {
            Some(staged) => Ok(staged.alive.clone()),
            None => Ok((*self.writer.archive.bitmaps(version)?).clone()),
        }
    }

    /// Returns tokens and digest of a known version.
    fn totals(&self, version: VersionId) -> Result<(Tokens, Digest), ApplyError> {
        if let Some(staged) = self.staged.get(&version) {
            return Ok((staged.tokens, staged.digest));
        }
        let version = self.writer.archive.version(version).ok_or(ApplyError::Unexpected("a base is not in the log"))?;
        Ok((version.statistics.live_tokens, version.digest))
    }

    fn is_current(&self, version: VersionId) -> bool {
        // Versions of this batch were made under today's rules.
        self.staged.contains_key(&version)
            || self.writer.archive.version(version).is_some_and(|version| {
                version.fingerprint == self.writer.fingerprint.to_bytes()
                    && version.model == self.writer.model.to_bytes()
            })
    }

    /// Adds a version for a commit: its delta, statistics and digest against the best available base.
    fn new_version(&mut self, step: Step<'_>, commit: &CommitTarget, alive: &Bitmaps) -> Result<VersionId, ApplyError> {
        let target = step.target;
        let parent = commit.parent.and_then(|parent| self.known(commit.source, parent));
        let earlier = self.plan.heads.get(&target.graph_view).or_else(|| self.writer.heads.get(&target.graph_view));
        let base = parent.or_else(|| earlier.and_then(|head| head.version));
        let before = base.map(|base| self.alive(base)).transpose()?.unwrap_or_default();
        let changes = Changes {
            entries: delta(&before.entries, &alive.entries),
            documents: delta(&before.documents, &alive.documents),
        };
        let (mut tokens, mut digest) = base.map(|base| self.totals(base)).transpose()?.unwrap_or_default();
        let (mut came, mut went) = (changes.entries.inserted.clone(), changes.entries.retracted.clone());
        if let Some(parts) = step.parts {
            // The entries that are summed already; those that did not live to the end are subtracted again.
            digest.add_all(parts.digest);
            tokens.add(parts.tokens);
            went |= &parts.entries - &came;
            came -= &parts.entries;
        }
        self.each(&came, |id, counts| {
            digest.add(&id.to_bytes());
            tokens.add(counts);
        })?;
        self.each(&went, |id, counts| {
            digest.remove(&id.to_bytes());
            tokens.remove(counts);
        })?;
        let version = VersionId::new(self.next_version);
        self.next_version += 1;
        self.staged.insert(version, Staged { alive: alive.clone(), tokens, digest });
        self.commits.insert((commit.source, commit.commit), version);
        self.plan.records.push(Record::Version(NewVersion {
            epoch: Epoch::new(self.next_epoch),
            source: commit.source,
            commit: commit.commit,
            parent: commit.parent,
            base,
            base_is_parent: match base {
                None => commit.parent.is_none(),
                Some(base) => parent == Some(base) && self.is_current(base),
            },
            time: commit.time,
            live_tokens: tokens,
            digest,
            fingerprint: self.writer.fingerprint.to_bytes(),
            model: self.writer.model.to_bytes(),
            changes,
        }));
        Ok(version)
    }

    /// Calls `look` with identity and tokens of each ordinal: from this batch, else from the catalogue.
    fn each(&self, ordinals: &RoaringBitmap, mut look: impl FnMut(EntryId, Tokens<u32>)) -> Result<(), ApplyError> {
        let mut stored = RoaringBitmap::new();
        for ordinal in ordinals {
            match self.batch.touched.get(&Ordinal::new(ordinal)) {
                Some((id, tokens)) => look(*id, *tokens),
                None => stored.extend([ordinal]),
            }
        }
        let stored = stored.iter().map(Ordinal::new);
        self.writer.catalogue.for_each_entry(stored, |_, record, _| look(record.entry.id(), record.tokens))?;
        Ok(())
    }

    /// Adds the views' moves and the line with the cost of the epoch.
    fn publish(
        &mut self,
        step: Step<'_>,
        commit: &CommitTarget,
        version: VersionId,
        was_known: bool,
        repaired: bool,
    ) -> Result<(), ApplyError> {
        let (mut work, mut graph, mut apply) = (step.done.work, step.graph, self.share);
        if let Some(parts) = step.parts {
            work.add(parts.work);
            graph += parts.graph;
            apply += parts.apply;
        }
        let (ms, waited) = timings(step.target, &work, graph, apply);
        let epoch = self.take_epoch();
        let time = Some(step.target.seen);
        self.plan.records.extend(commit.view.map(|view| Record::View { epoch, view, version, time }));
        let mut receipt = Receipt {
            cleaned: work.clean.calls,
            chunked: work.chunk.calls,
            embedded: work.embed.calls,
            retried: work.embed.retried,
            cache_hits: work.cache_hits(),
            faults: work.faults(),
            ms,
            ..Receipt::default()
        };
        if !was_known {
            let appended = self.plan.records.iter().rev().find_map(|record| match record {
                Record::Version(new) if new.epoch == epoch => Some(&new.changes),
                _ => None,
            });
            let changes = appended.ok_or(ApplyError::Unexpected("a new version has no record"))?;
            receipt.inserted = changes.entries.inserted.len();
            receipt.retracted = changes.entries.retracted.len();
            let documents = changes.documents.clone();
            self.count_documents(&documents, &mut receipt)?;
        }
        let repaired = repaired && !was_known;
        self.plan.published.push(Draft { epoch, view: commit.view, version, receipt, waited, repaired });
        Ok(())
    }

    /// Counts documents that were added, changed and removed.
    fn count_documents(&self, changes: &Delta, receipt: &mut Receipt) -> Result<(), ApplyError> {
        let rows = |ordinals: &RoaringBitmap| -> Result<FxHashMap<_, _>, ApplyError> {
            let mut rows = FxHashMap::default();
            let mut take = |row: &Document| {
                if matches!(row.outcome, Outcome::Indexed { .. } | Outcome::Fault { .. }) {
                    rows.insert(row.path.clone(), row.content);
                }
            };
            let mut stored = Vec::new();
            for ordinal in ordinals.iter().map(Ordinal::new) {
                match self.batch.rows.get(&ordinal) {
                    Some(document) => take(document),
                    None => stored.push(ordinal),
                }
            }
            for part in stored.chunks(LOOK_ROWS) {
                self.writer.catalogue.documents(part.iter().copied())?.iter().for_each(&mut take);
            }
            Ok(rows)
        };
        let (came, went) = (rows(&changes.inserted)?, rows(&changes.retracted)?);
        let both: FxHashSet<_> = came.keys().filter(|path| went.contains_key(*path)).collect();
        receipt.added = (came.len() - both.len()) as u64;
        receipt.removed = (went.len() - both.len()) as u64;
        // A row also changes if its module does; a document changes with its content.
        receipt.changed = both.iter().filter(|path| came.get(**path) != went.get(**path)).count() as u64;
        Ok(())
    }
}

fn delta(before: &RoaringBitmap, after: &RoaringBitmap) -> Delta {
    Delta { inserted: after - before, retracted: before - after }
}

/// Returns the milliseconds of a receipt: diff, clean, chunk, embed, apply, and from the first look until now; and how much of
/// the last was spent on other epochs.
fn timings(target: &Target, work: &Work, graph: Duration, apply: Duration) -> ([f32; 6], Duration) {
    let total = target.begun.elapsed();
    let stages = [target.diff, work.clean.time, work.chunk.time, work.embed.time, apply, total];
    (stages.map(milliseconds), total.saturating_sub(target.diff + graph + apply))
}

fn milliseconds(duration: Duration) -> f32 {
    duration.as_secs_f32() * 1000.0
}

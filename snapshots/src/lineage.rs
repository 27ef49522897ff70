//! Walks along the bases: what is alive in a version, and which commit brought it.
//!
//! In: a version. Out: its bitmaps, or where ordinals came to life.
//! **Invariant:** a base is always an earlier version, so every walk ends; the answer is that of the log alone, whatever
//! checkpoints there are.

use crate::bitmaps::Bitmaps;
use crate::checkpoint::Checkpoints;
use crate::codec::{CodecError, Reader};
use crate::error::ArchiveError;
use crate::history::Staging;
use crate::identity::VersionId;
use crate::ordinal::Ordinal;
use crate::version::Version;
use std::collections::HashMap;
use std::sync::Arc;

/// The commit that introduced an entry, as far as the log knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Introduced {
    /// The commit of this version introduced it.
    At(VersionId),
    /// It was there at this version's commit, and the log does not say since when.
    Before(VersionId),
    /// It is not alive in the version asked about.
    Absent,
}

/// How many rebuilt versions are kept: the heads of a few views, and what was asked about last.
const RECENT: usize = 8;

/// After how many deltas of a long replay containers of runs are turned into plain bits.
const RUNS_TO_BITS_EVERY: usize = 64;

/// The bitmaps that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// In order of use, the latest last.
    kept: Vec<(VersionId, Arc<Bitmaps>)>,
}

impl Recent {
    /// Returns the bitmaps of a version, if they are kept.
    pub(crate) fn get(&mut self, version: VersionId) -> Option<Arc<Bitmaps>> {
        let at = self.kept.iter().position(|(kept, _)| *kept == version)?;
        let found = self.kept.remove(at);
        let bitmaps = Arc::clone(&found.1);
        self.kept.push(found);
        Some(bitmaps)
    }

    /// Keeps the bitmaps of a version, and lets go of the ones used longest ago.
    pub(crate) fn put(&mut self, version: VersionId, bitmaps: Arc<Bitmaps>) {
        self.kept.retain(|(kept, _)| *kept != version);
        if self.kept.len() >= RECENT {
            self.kept.remove(0);
        }
        self.kept.push((version, bitmaps));
    }

    /// Forgets versions that the log does not have.
    pub(crate) fn truncate(&mut self, versions: usize) {
        self.kept.retain(|(kept, _)| kept.index() < versions);
    }
}

/// Rebuilds the bitmaps of a version from the nearest version that is kept or has a checkpoint, else from nothing.
pub(crate) fn rebuild(
    staging: &Staging<'_>,
    version: VersionId,
    recent: &mut Recent,
    checkpoints: Option<&Checkpoints>,
) -> Result<Arc<Bitmaps>, ArchiveError> {
    let mut path = Vec::new();
    let mut at = Some(version);
    let mut bitmaps = Arc::new(Bitmaps::default());
    while let Some(here) = at {
        if let Some(found) = recent.get(here).or_else(|| from_checkpoint(staging, here, checkpoints?)) {
            bitmaps = found;
            break;
        }
        path.push(here);
        at = staging.version(here).and_then(|version| version.base);
    }
    if !path.is_empty() {
        let moving = Arc::make_mut(&mut bitmaps);
        for (step, &here) in path.iter().rev().enumerate() {
            // A container of runs is split by every ordinal that dies inside a run, at the cost of moving all runs
            // behind it; as plain bits it takes each change at once (seven times faster at a million entries).
            if step % RUNS_TO_BITS_EVERY == 1 {
                moving.entries.remove_run_compression();
                moving.documents.remove_run_compression();
            }
            let packed = staging.packed(here).unwrap_or_default();
            if !moving.apply(packed).map_err(|_| ArchiveError::Inexact { version: here })? {
                return Err(ArchiveError::Inexact { version: here });
            }
        }
    }
    recent.put(version, Arc::clone(&bitmaps));
    Ok(bitmaps)
}

fn from_checkpoint(staging: &Staging<'_>, version: VersionId, checkpoints: &Checkpoints) -> Option<Arc<Bitmaps>> {
    let chain = staging.chain(version).filter(|_| checkpoints.has(version))?;
    match checkpoints.read(version, chain) {
        Ok(bitmaps) => Some(Arc::new(bitmaps)),
        Err(why) => {
            tracing::warn!(%version, folder = %checkpoints.folder().display(), %why, "passed over a checkpoint");
            None
        }
    }
}

/// Finds, in one walk along the bases, where each ordinal came to life in the lineage of `version`, where all are alive.
///
/// The walk follows first parents. Where a version's base is not its parent's version it ends: whatever is still looked
/// for was there before that commit, and older versions are of commits that need not be its ancestors. Only a version
/// that repeats its base's commit, under other rules, lets the walk go on. A commit without a parent is where its history
/// begins: whatever is still looked for came with it, whatever the version was stored against.
pub(crate) fn introduced(
    staging: &Staging<'_>,
    version: VersionId,
    ordinals: &[Ordinal],
) -> Result<HashMap<Ordinal, Introduced>, CodecError> {
    let mut wanted: Vec<u32> = ordinals.iter().map(|ordinal| ordinal.get()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut answers = HashMap::with_capacity(wanted.len());
    let mut at = staging.version(version);
    while let Some(here) = at.filter(|_| !wanted.is_empty()) {
        let begins = here.parent.is_none();
        let answer = if here.base_is_parent || begins { Introduced::At(here.id) } else { Introduced::Before(here.id) };
        let known = answers.len();
        // What a version inserts stands first in its changes.
        Reader::new(staging.packed(here.id).unwrap_or_default()).set(|run| {
            let from = wanted.partition_point(|ordinal| ordinal < run.start());
            let inside = wanted[from..].iter().take_while(|ordinal| run.contains(ordinal));
            answers.extend(inside.map(|&ordinal| (Ordinal::new(ordinal), answer)));
        })?;
        if answers.len() > known {
            wanted.retain(|&ordinal| !answers.contains_key(&Ordinal::new(ordinal)));
        }
        let base = here.base.and_then(|base| staging.version(base));
        let is_again = |base: &Version| (base.source, base.commit) == (here.source, here.commit);
        let goes_on = |base: &&Version| !begins && (here.base_is_parent || is_again(base));
        at = base.filter(goes_on);
        if at.is_none() {
            let rest = if begins { answer } else { Introduced::Before(here.id) };
            answers.extend(wanted.drain(..).map(|ordinal| (Ordinal::new(ordinal), rest)));
        }
    }
    Ok(answers)
}

//! Walks along the bases: the live ordinals of a version, and the commit that introduced each.
//!
//! In: a version. Out: its bitmaps, or the versions that introduced ordinals. **Invariant:** a base is always an earlier version,
//! so every walk ends. The answer follows from the log alone; checkpoints never change it.

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
    /// It was there at this version's commit, and the log does not reach further back.
    Before(VersionId),
    /// It is not alive in the requested version.
    Absent,
}

/// How many rebuilt versions are cached: the heads of a few views, and the last requests.
const RECENT: usize = 8;

/// After so many deltas of a long replay, run containers are converted to plain bitmaps.
const RUNS_TO_BITS_EVERY: usize = 64;

/// The bitmaps of the last requests.
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

    /// Caches the bitmaps of a version, and evicts the least recently used.
    pub(crate) fn put(&mut self, version: VersionId, bitmaps: Arc<Bitmaps>) {
        self.kept.retain(|(kept, _)| *kept != version);
        if self.kept.len() >= RECENT {
            self.kept.remove(0);
        }
        self.kept.push((version, bitmaps));
    }

    /// Removes versions that the log lacks.
    pub(crate) fn truncate(&mut self, versions: usize) {
        self.kept.retain(|(kept, _)| kept.index() < versions);
    }
}

/// Rebuilds the bitmaps of a version from the nearest version that is cached or has a checkpoint, else from nothing.
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
            // Every ordinal that dies inside a run splits the run, which moves all later runs of the container. A plain bitmap
            // takes each change at once (seven times faster at a million entries).
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

/// Finds, in one walk along the bases, the version that introduced each ordinal in the lineage of `version`, where all are alive.
///
/// The walk follows first parents. It ends where a version's base is not its parent's version: the remaining ordinals were there
/// before that commit, and older versions need not be of its ancestors. Only a version that repeats its base's commit, under
/// other rules, lets the walk continue. A commit without a parent begins the history: it introduced all remaining ordinals,
/// whatever its base is.
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
        // A version's inserted ordinals are first in its changes.
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

//! Identifies a configured source: the stored one of that name, a new one, or neither.
//!
//! In: the opened source, and the store's sources. Out: the source's number, or a refusal that names both locations and the way
//! out.
//!
//! **Invariant:** no source silently replaces another. A name stands for one kind and one location; for a git repository also for
//! one history, identified by its root commits and by the commits of its views.
//!
//! | the store has the name … | and | then |
//! |---|---|---|
//! | not | | a new source |
//! | as another kind | | refused |
//! | at this location | git: the repository holds one of its commits, or cannot say | this source |
//! | at this location | git: the repository holds none of its commits | refused: another repository |
//! | elsewhere | git: both share one git folder (a linked work tree) | this source, at its new location |
//! | elsewhere | it exists there | refused: two sources |
//! | elsewhere | it is missing there | refused, with the command that declares a move |
//!
//! A source of an earlier build that is missing from its location is taken for the one that claims its name (git: if the
//! repository holds one of its commits), because such builds knew names only. `moved_from` names the old location and overrules
//! the table except for the kind. A shallow clone has no roots to compare and often lacks the old commits, so its location
//! decides. A directory is its location: a link that leads elsewhere is new content.

use super::EngineError;
use super::place::{is_same_place, name_of, place_of};
use super::recover::Registry;
use crate::store::{SourceKind, SourceRecord, SourceRoots};
use crate::watch::git::{GitSource, RefPattern};
use snapshots::{Archive, CommitId, SourceId};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An opened source that needs its number.
pub(super) struct Claim<'a> {
    pub(super) record: SourceRecord,
    /// Whether the user gave the name, so that it does not follow from the path.
    pub(super) is_named: bool,
    /// Its old location.
    pub(super) moved_from: Option<&'a Path>,
    /// The repository and its tracked refs, if it is one.
    pub(super) git: Option<(&'a GitSource, &'a [RefPattern])>,
}

impl Claim<'_> {
    fn place(&self) -> PathBuf {
        place(&self.record)
    }

    /// Returns the command that declares that the source was moved.
    fn command(&self, from: &Path) -> String {
        let kind = if self.record.kind == SourceKind::Directory { "dir:" } else { "" };
        let name = if self.is_named { format!(" --name {}", quoted(&self.record.name)) } else { String::new() };
        let to = quoted(&format!("{kind}{}", self.place().display()));
        format!("tidemill track {to}{name} --moved-from {}", quoted(&from.display().to_string()))
    }
}

/// Returns a word quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-:+,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn place(record: &SourceRecord) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&record.location))
}

impl Registry {
    /// Returns the number of a source, and assigns one to a new source.
    pub(super) fn claim(&mut self, claim: &Claim<'_>, archive: &Archive) -> Result<SourceId, EngineError> {
        let known = match claim.moved_from.map(|from| self.moved(claim, from)).transpose()?.flatten() {
            Some(id) => {
                if let Some((_, other)) = self.named(&claim.record.name).filter(|(other, _)| *other != id) {
                    return Err(taken(claim, other));
                }
                Some(id)
            }
            None => self.known(claim, archive)?,
        };
        let id = known.unwrap_or_else(|| self.next_source());
        let roots = self.database().source_roots(id)?;
        let roots = match (claim.git, roots) {
            (Some((git, patterns)), roots)
                if !roots.as_ref().is_some_and(|roots| roots.is_known && any(git, roots.roots())) =>
            {
                roots_of(git, patterns)
            }
            (None, None) => SourceRoots::default(),
            (_, Some(roots)) => roots,
            (Some(_), None) => SourceRoots::default(),
        };
        self.put(id, &claim.record, &roots)?;
        Ok(id)
    }

    /// Checks whether a snapshot that was copied elsewhere may join the source that the store knows by this name.
    ///
    /// They are one source where they share a commit, or a git history begins alike; a repository without roots cannot say, and its
    /// name decides. A directory is its place, which a copy has none of.
    pub(super) fn may_join(
        &self,
        name: &str,
        kind: SourceKind,
        commit: CommitId,
        parent: Option<CommitId>,
        roots: &SourceRoots,
        archive: &Archive,
    ) -> Result<(), EngineError> {
        let Some((id, known)) = self.named(name).filter(|(_, known)| known.kind == kind) else { return Ok(()) };
        let own = self.database().source_roots(*id)?.unwrap_or_default();
        let shares_commit =
            [Some(commit), parent].into_iter().flatten().any(|commit| archive.by_commit(*id, commit).is_some());
        let is_one = shares_commit
            || match kind {
                SourceKind::Trace => true,
                SourceKind::Directory => known.location.is_empty(),
                SourceKind::Git => {
                    let tells = own.is_known && roots.is_known;
                    !tells || own.roots().any(|own| roots.roots().any(|other| own == other))
                }
            };
        let taken = || EngineError::OtherHistory { source_name: name.to_owned(), there: place(known) };
        if is_one { Ok(()) } else { Err(taken()) }
    }

    /// Returns the source that had a location before.
    fn moved(&self, claim: &Claim<'_>, from: &Path) -> Result<Option<SourceId>, EngineError> {
        let from = place_of(from);
        let mut there: Vec<&(SourceId, SourceRecord)> =
            self.sources().iter().filter(|(_, known)| is_same_place(&place(known), &from)).collect();
        if there.len() > 1 {
            there.retain(|(_, known)| known.name == claim.record.name);
        }
        match there.as_slice() {
            [(id, known)] if known.kind == claim.record.kind => Ok(Some(*id)),
            [(_, known)] => Err(other_kind(claim, known)),
            // This was declared before, and still holds.
            [] if self
                .named(&claim.record.name)
                .is_some_and(|(_, known)| is_same_place(&place(known), &claim.place())) =>
            {
                Ok(None)
            }
            _ => {
                let known = self.sources().iter().filter(|(_, known)| !known.location.is_empty());
                let known: Vec<String> = known.map(|(_, known)| place(known).display().to_string()).collect();
                Err(EngineError::NotThere { from, known: known.join(", ") })
            }
        }
    }

    /// Returns the stored source of the name, if this may be it.
    fn known(&self, claim: &Claim<'_>, archive: &Archive) -> Result<Option<SourceId>, EngineError> {
        let here = claim.place();
        let Some((id, known)) = self.named(&claim.record.name) else { return self.under_former_name(claim, &here) };
        if known.kind != claim.record.kind {
            return Err(other_kind(claim, known));
        }
        // An imported source has no location yet; a trace is identified by its epochs.
        if known.location.is_empty() || known.kind == SourceKind::Trace {
            return Ok(Some(*id));
        }
        let there = place(known);
        let moved = || {
            let (source_name, there) = (known.name.clone(), there.clone());
            EngineError::Moved { source_name, command: claim.command(&there), here: here.clone(), there }
        };
        let is_early = self.database().source_roots(*id)?.is_none();
        let Some((git, _)) = claim.git else {
            return match is_same_place(&there, &here) {
                true => Ok(Some(*id)),
                false if is_early && there.symlink_metadata().is_err() => Ok(Some(*id)),
                false if there.symlink_metadata().is_ok() => Err(taken(claim, known)),
                false => Err(moved()),
            };
        };
        let is_known = || self.is_known_history(*id, git, archive);
        if is_same_place(&there, &here) {
            return match is_known()? {
                Some(false) => Err(EngineError::OtherRepository {
                    source_name: known.name.clone(),
                    command: claim.command(&here),
                    here,
                }),
                _ => Ok(Some(*id)),
            };
        }
        match GitSource::open(&there) {
            Ok(other) if other.common_folder()? == git.common_folder()? => Ok(Some(*id)),
            Ok(_) => Err(taken(claim, known)),
            Err(_) => match is_known()? {
                Some(false) => Err(taken(claim, known)),
                Some(true) if is_early => Ok(Some(*id)),
                _ => Err(moved()),
            },
        }
    }

    /// Returns the source that an earlier build named after the target of a link.
    fn under_former_name(&self, claim: &Claim<'_>, here: &Path) -> Result<Option<SourceId>, EngineError> {
        let Some(real) = here.canonicalize().ok().filter(|real| real != here && !claim.is_named) else {
            return Ok(None);
        };
        let former = |known: &SourceRecord| {
            known.kind == claim.record.kind && place(known) == real && known.name == name_of(&real)
        };
        let Some((id, known)) = self.sources().iter().find(|(_, known)| former(known)) else { return Ok(None) };
        if self.database().source_roots(*id)?.is_some() {
            return Ok(None);
        }
        tracing::info!("the source {} is called {} from now on, as the path says", known.name, claim.record.name);
        Ok(Some(*id))
    }

    /// Tells whether a repository holds a commit of a source's history; nothing if it cannot tell.
    fn is_known_history(&self, id: SourceId, git: &GitSource, archive: &Archive) -> Result<Option<bool>, EngineError> {
        let heads = self.views_of(id).filter_map(|(view, _)| archive.version(archive.view(view)?));
        let versions = archive.versions().iter().rev().filter(|version| version.source == id).take(MAX_ASKED);
        let commits: Vec<CommitId> = heads.chain(versions).map(|version| version.commit).collect();
        let roots = self.database().source_roots(id)?.unwrap_or_default();
        if commits.is_empty() && roots.roots().next().is_none() {
            return Ok(None);
        }
        if any(git, commits.into_iter().chain(roots.roots())) {
            return Ok(Some(true));
        }
        let can_tell = !git.is_shallow()? && !git.heads(&[RefPattern::parse("refs/*")?])?.heads.is_empty();
        Ok(can_tell.then_some(false))
    }
}

/// Most versions of a source whose commits are looked up.
const MAX_ASKED: usize = 64;
/// Most heads whose roots are searched, and most commits that are read for it, once for each source.
const MAX_HEADS: usize = 4;
const MAX_COMMITS: usize = 50_000;

/// Returns the first commits of the tracked heads' first-parent lines.
fn roots_of(git: &GitSource, patterns: &[RefPattern]) -> SourceRoots {
    let heads = git.heads(patterns).unwrap_or_default().heads;
    if heads.is_empty() {
        return SourceRoots::default();
    }
    let mut roots: Vec<CommitId> =
        heads.iter().take(MAX_HEADS).filter_map(|head| git.root_of(head.commit.id, MAX_COMMITS)).collect();
    roots.sort_unstable();
    roots.dedup();
    SourceRoots::new(&roots)
}

fn any(git: &GitSource, mut commits: impl Iterator<Item = CommitId>) -> bool {
    commits.any(|commit| git.holds(commit))
}

fn taken(claim: &Claim<'_>, known: &SourceRecord) -> EngineError {
    EngineError::NameTaken { source_name: known.name.clone(), here: claim.place(), there: place(known) }
}

fn other_kind(claim: &Claim<'_>, known: &SourceRecord) -> EngineError {
    EngineError::OtherKind {
        source_name: known.name.clone(),
        known: known.kind.as_str(),
        there: place(known),
        here: claim.place(),
    }
}

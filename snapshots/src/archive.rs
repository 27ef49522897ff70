//! The archive: the handle through which versions are written and read.
//!
//! In: groups of records from the one writer. Out: versions, views, bitmaps, and the commit that introduced each entry.
//! **Invariant:** an archive answers from the whole groups of its log. A writer's answers change when [`Archive::append`]
//! returns, a reader's when [`Archive::refresh`] does, never in between.
//!
//! The folder holds `versions.log` (the truth), `checkpoints/` (a cache) and `versions.lock` (held while a writer lives). The
//! records stay in memory without their bitmaps: some 350 bytes a version.

use crate::bitmaps::{Bitmaps, Changes};
use crate::checkpoint::{self, Checkpoints};
use crate::codec::{CodecError, Reader};
use crate::error::{ArchiveError, Refusal};
use crate::history::{History, Staging, find};
use crate::identity::{CommitId, Epoch, SourceId, VersionId, ViewId};
use crate::lineage::{self, Introduced, Recent};
use crate::lock::lock_for_writer;
use crate::log::{self, LogFile};
use crate::ordinal::Ordinal;
use crate::version::{NewVersion, Record, Version, ViewHead};
use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smaller changes need no checkpoint: it would use a disk block to save reading one.
const CHECKPOINT_FLOOR_BYTES: usize = 4096;

/// The entries alive at each commit.
#[derive(Debug)]
pub struct Archive {
    pub(crate) history: History,
    pub(crate) log: LogFile,
    pub(crate) checkpoints: Checkpoints,
    /// Shared by readers of one handle; the lock is held during a rebuild.
    recent: Mutex<Recent>,
    tail_bytes: u64,
    /// Held until the handle or its process ends; the system releases it.
    _lock: Option<File>,
}

impl Archive {
    /// Opens the archive in `folder` as its one writer, and creates both where there are none.
    ///
    /// A torn end after a crash is truncated; [`Self::tail_bytes`] returns its size.
    ///
    /// # Errors
    /// Fails if another writer lives, if the log is of another format or damaged before its last group, and on any system error.
    pub fn create_or_open_writer(folder: &Path) -> Result<Self, ArchiveError> {
        fs::create_dir_all(folder).map_err(ArchiveError::io("create", folder))?;
        let path = folder.join("versions.lock");
        let lock = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(ArchiveError::io("open", &path))?;
        match lock_for_writer(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ArchiveError::Busy { path }),
            Err(TryLockError::Error(error)) => return Err(ArchiveError::io("lock", &path)(error)),
        }
        let log = LogFile::create_or_open_writer(&folder.join("versions.log"))?;
        let mut archive = Self::read(folder, log, Some(lock))?;
        if archive.tail_bytes > 0 {
            archive.log.cut_tail()?;
            tracing::warn!(bytes = archive.tail_bytes, log = %archive.log.path().display(), "cut a torn group");
        }
        archive.checkpoints.clear_strays(archive.history.versions.len())?;
        Ok(archive)
    }

    /// Opens the archive in `folder` for reading, beside any writer; nothing is ever written.
    ///
    /// # Errors
    /// Fails if there is no log, if it is of another format or damaged before its last group, and on any system error.
    pub fn open_reader(folder: &Path) -> Result<Self, ArchiveError> {
        let log = LogFile::open_reader(&folder.join("versions.log"))?;
        Self::read(folder, log, None)
    }

    fn read(folder: &Path, mut log: LogFile, lock: Option<File>) -> Result<Self, ArchiveError> {
        let mut history = History::default();
        let tail_bytes = log.read_on(&mut history)?;
        let checkpoints = Checkpoints::open(folder.join("checkpoints"))?;
        Ok(Self { history, log, checkpoints, recent: Mutex::default(), tail_bytes, _lock: lock })
    }

    /// Reads the log on from the last position; returns whether there was a new group.
    ///
    /// # Errors
    /// Fails if the log shrank or is damaged, and on any system error; the known state stays.
    pub fn refresh(&mut self) -> Result<bool, ArchiveError> {
        let end = self.log.end();
        self.tail_bytes = match self.log.read_on(&mut self.history) {
            // A writer may have truncated a torn group and appended meanwhile; a second read decides.
            Err(ArchiveError::Damaged { .. }) => self.log.read_on(&mut self.history)?,
            outcome => outcome?,
        };
        let moved = self.log.end() > end;
        if moved {
            self.checkpoints.list()?;
        }
        Ok(moved)
    }

    /// Returns the bytes of a torn group after the last whole one at the last read.
    #[must_use]
    pub const fn tail_bytes(&self) -> u64 {
        self.tail_bytes
    }

    /// Returns the bytes of the log, and those of all checkpoints; looks at every checkpoint's file.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.log.end(), self.checkpoints.bytes())
    }

    /// Returns the bytes of the log up to the end of its last whole group.
    #[must_use]
    pub const fn log_bytes(&self) -> u64 {
        self.log.end()
    }

    /// Returns every version, including dropped ones, in order of [`VersionId`].
    #[must_use]
    pub fn versions(&self) -> &[Version] {
        &self.history.versions
    }

    /// Returns a version by its id.
    #[must_use]
    pub fn version(&self, version: VersionId) -> Option<&Version> {
        self.history.versions.get(version.index())
    }

    /// Returns the id of the next version, which views of the same group may use.
    #[must_use]
    pub fn next_version(&self) -> VersionId {
        VersionId::new(u32::try_from(self.history.versions.len()).unwrap_or(u32::MAX))
    }

    /// Returns the version of a commit: the newest, if it was made again under other rules. Dropped versions are not found.
    #[must_use]
    pub fn by_commit(&self, source: SourceId, commit: CommitId) -> Option<VersionId> {
        self.history.by_commit.get(&(source, commit)).copied()
    }

    /// Returns the newest version of every commit whose hash begins with `prefix`, in order of [`VersionId`].
    ///
    /// Empty or non-hexadecimal text matches nothing. The cost is linear in the number of commits.
    #[must_use]
    pub fn find_commits(&self, prefix: &str) -> Vec<(SourceId, VersionId)> {
        find(&self.history.by_commit, prefix)
    }

    /// Returns the version that a view points at.
    #[must_use]
    pub fn view(&self, view: ViewId) -> Option<VersionId> {
        self.history.views.get(&view).map(|head| head.version)
    }

    /// Returns every view and its target, in order of [`ViewId`].
    pub fn views(&self) -> impl Iterator<Item = (ViewId, ViewHead)> + '_ {
        self.history.views.iter().map(|(view, head)| (*view, *head))
    }

    /// Returns the next epoch; the first is 1.
    #[must_use]
    pub const fn next_epoch(&self) -> Epoch {
        Epoch::new(self.history.epoch.get().saturating_add(1))
    }

    /// Returns the number of entry ordinals in the log: all of them are below it.
    #[must_use]
    pub fn used_entries(&self) -> u32 {
        u32::try_from(self.history.used_ordinals[0]).unwrap_or(u32::MAX)
    }

    /// Returns the number of document ordinals in the log: all of them are below it.
    #[must_use]
    pub fn used_documents(&self) -> u32 {
        u32::try_from(self.history.used_ordinals[1]).unwrap_or(u32::MAX)
    }

    /// Returns the changes of a version against its base.
    ///
    /// # Errors
    /// Fails if there is no such version.
    pub fn changes(&self, version: VersionId) -> Result<Changes, ArchiveError> {
        let staging = Staging::new(&self.history);
        let packed = staging.packed(version).ok_or_else(|| self.unknown(version))?;
        Changes::unpack(packed).map_err(|_| ArchiveError::Inexact { version })
    }

    /// Returns the live ordinals of a version.
    ///
    /// This is free for the last few requested versions, and otherwise costs a checkpoint and the deltas since.
    ///
    /// # Errors
    /// Fails if there is no such version, or if a delta does not fit its base.
    pub fn bitmaps(&self, version: VersionId) -> Result<Arc<Bitmaps>, ArchiveError> {
        self.version(version).ok_or_else(|| self.unknown(version))?;
        lineage::rebuild(&Staging::new(&self.history), version, &mut self.recent(), Some(&self.checkpoints))
    }

    /// Returns, for each ordinal, the commit that introduced the entry into the lineage of a version.
    ///
    /// The cost is one walk along the bases for all of them.
    ///
    /// # Errors
    /// Fails if there is no such version.
    pub fn introduced(&self, version: VersionId, entries: &[Ordinal]) -> Result<Vec<Introduced>, ArchiveError> {
        let alive = self.bitmaps(version)?;
        let alive = |ordinal: &Ordinal| alive.entries.contains(ordinal.get());
        let wanted: Vec<Ordinal> = entries.iter().copied().filter(alive).collect();
        let found = lineage::introduced(&Staging::new(&self.history), version, &wanted)
            .map_err(|_| ArchiveError::Inexact { version })?;
        Ok(entries.iter().map(|entry| found.get(entry).copied().unwrap_or(Introduced::Absent)).collect())
    }

    /// Appends a group of records, all or none, and makes it durable; returns the names of its versions.
    ///
    /// When this returns, the group is published: everything that the records refer to must be durable before.
    ///
    /// # Errors
    /// Fails if a record may not follow the log, if this handle is read-only, and if the system refuses to write. Then nothing is
    /// published, and the known state stays.
    pub fn append(&mut self, records: &[Record]) -> Result<Vec<VersionId>, ArchiveError> {
        self.log.may_append()?;
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.history.versions.len();
        match self.stage(records) {
            Ok((payload, group)) => {
                let raised = self.log.raise_format(group.needs());
                let chain = match raised.and_then(|()| self.log.append(&payload)) {
                    Ok(chain) => chain,
                    Err(error) => {
                        self.recent().truncate(known);
                        return Err(error);
                    }
                };
                self.history.take(group, chain, self.log.end());
                Ok(self.history.versions[known..].iter().map(|version| version.id).collect())
            }
            Err(error) => {
                self.recent().truncate(known);
                Err(error)
            }
        }
    }

    /// Encodes and checks a group record by record, each on top of the earlier ones.
    fn stage(&self, records: &[Record]) -> Result<(Vec<u8>, crate::history::Group), ArchiveError> {
        let mut staging = Staging::new(&self.history);
        let mut payload = Vec::new();
        for (position, record) in records.iter().enumerate() {
            let refused = |refusal| ArchiveError::Refused { position, refusal };
            may_follow(record, &staging).map_err(refused)?;
            let start = payload.len();
            log::record::encode(record, &staging, &mut payload);
            // The encoded bytes are decoded again, so the state in memory is what a reader of the log gets.
            log::record::decode(&mut Reader::new(&payload[start..]), &mut staging).map_err(|why| {
                refused(if why == CodecError::Number { Refusal::VersionsExhausted } else { Refusal::Inexact })
            })?;
            if let Record::Version(new) = record {
                let id = VersionId::new((staging.next_version() - 1) as u32);
                self.check_exact(&staging, id, new).map_err(|error| match error {
                    ArchiveError::Inexact { version } if version == id => refused(Refusal::Inexact),
                    other => other,
                })?;
            }
        }
        Ok((payload, staging.finish()))
    }

    /// Applies the changes of a staged version to its base, and keeps the result as the next base.
    fn check_exact(&self, staging: &Staging<'_>, id: VersionId, new: &NewVersion) -> Result<(), ArchiveError> {
        let Changes { entries, documents } = &new.changes;
        if !entries.inserted.is_disjoint(&entries.retracted) || !documents.inserted.is_disjoint(&documents.retracted) {
            return Err(ArchiveError::Inexact { version: id });
        }
        lineage::rebuild(staging, id, &mut self.recent(), Some(&self.checkpoints)).map(drop)
    }

    /// Writes a checkpoint of a version if the deltas since the last one are larger; returns its size in bytes.
    ///
    /// So checkpoints never take more bytes than the deltas in the log. If every head is offered, a rebuild reads no more delta
    /// bytes than the size of the bitmaps, or 4 KiB.
    ///
    /// # Errors
    /// Fails if there is no such version, if this handle is read-only, and if the system refuses to write. A missing checkpoint
    /// loses nothing else.
    pub fn maybe_checkpoint(&mut self, version: VersionId) -> Result<Option<u64>, ArchiveError> {
        self.log.may_append()?;
        let bitmaps = self.bitmaps(version)?;
        let due = (bitmaps.serialized_size() + checkpoint::OVERHEAD_BYTES).max(CHECKPOINT_FLOOR_BYTES);
        let staging = Staging::new(&self.history);
        let (mut at, mut deltas) = (Some(version), 0);
        while let Some(here) = at.filter(|&here| deltas < due && !self.checkpoints.has(here)) {
            deltas += staging.packed(here).map_or(0, <[u8]>::len);
            at = staging.version(here).and_then(|version| version.base);
        }
        if deltas >= due { self.checkpoint(version).map(Some) } else { Ok(None) }
    }

    /// Writes a checkpoint of a version unconditionally; returns its size in bytes.
    ///
    /// # Errors
    /// As [`Self::maybe_checkpoint`].
    pub fn checkpoint(&mut self, version: VersionId) -> Result<u64, ArchiveError> {
        self.log.may_append()?;
        let bitmaps = self.bitmaps(version)?;
        let chain = self.history.chain(version).ok_or_else(|| self.unknown(version))?;
        self.checkpoints.write(version, chain, &bitmaps)
    }

    fn unknown(&self, version: VersionId) -> ArchiveError {
        ArchiveError::UnknownVersion { version, known: self.history.versions.len() }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        // The cache is consistent after every step, so a panic elsewhere does not spoil it.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks everything of a record that needs no bitmap.
fn may_follow(record: &Record, staging: &Staging<'_>) -> Result<(), Refusal> {
    let (epoch, names) = match record {
        Record::Version(new) => (new.epoch, new.base),
        Record::View { epoch, version, .. } => (*epoch, Some(*version)),
        Record::ViewGone { epoch, .. } => (*epoch, None),
        Record::Dropped { epoch, versions } => (*epoch, versions.max().map(VersionId::new)),
        Record::Recounted { epoch, .. } => (*epoch, None),
    };
    if epoch < staging.epoch() {
        return Err(Refusal::EpochGoesBack { epoch, last: staging.epoch() });
    }
    if let Some(version) = names.filter(|&version| staging.version(version).is_none()) {
        return Err(Refusal::NoSuchVersion { version });
    }
    match record {
        _ if staging.is_recounted() => Err(Refusal::Recount),
        Record::Recounted { live_tokens, .. } => {
            let is_whole = !staging.is_begun() && live_tokens.len() as u64 == staging.next_version();
            if is_whole { Ok(()) } else { Err(Refusal::Recount) }
        }
        Record::Version(new) if new.base_is_parent => {
            let base = new.base.and_then(|base| staging.version(base));
            let holds = match base {
                None => new.parent.is_none(),
                Some(base) => {
                    (base.source, Some(base.commit), base.fingerprint) == (new.source, new.parent, new.fingerprint)
                }
            };
            if holds { Ok(()) } else { Err(Refusal::BaseIsNotParent) }
        }
        Record::View { version, .. } if staging.is_dropped(*version) => Err(Refusal::Dropped { version: *version }),
        Record::Dropped { versions, .. } => {
            let mut versions = versions.iter().map(VersionId::new);
            if let Some(version) = versions.clone().find(|version| staging.is_dropped(*version)) {
                return Err(Refusal::Dropped { version });
            }
            let heads = staging.heads();
            match versions.find_map(|version| Some((version, *heads.get(&version)?))) {
                Some((version, view)) => Err(Refusal::InUse { version, view }),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

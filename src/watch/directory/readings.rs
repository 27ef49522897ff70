//! Cache of the files that were read: their stamps, the paths of each content, and some of the bytes.
//!
//! In: hashed files. Out: the id of a file whose stamp is unchanged, the paths of a content, and recent bytes.
//!
//! **Invariant:** memory is bounded by the number of files and [`STASH_BYTES`]. A cached id replaces a read only if the file was
//! at rest when it was read (see [`Stamp`]). A path that an event names is always read.

use super::hash::{Hashed, Stamp};
use crate::watch::encoding::DiskEncoding;
use dataflows::data::{ContentId, DocumentPath};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes of contents that are kept for the next reader.
const STASH_BYTES: usize = 256 << 20;
/// Largest file in the stash, so that one file cannot evict all the rest.
pub(in crate::watch) const STASH_FILE_BYTES: u64 = 8 << 20;

/// The cache, shared by the source, its watcher and its readers.
#[derive(Default)]
pub(in crate::watch) struct Readings(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    files: FxHashMap<DocumentPath, Reading>,
    /// Every file by its content, to find the paths of a content.
    places: BTreeSet<(ContentId, DocumentPath)>,
    stash: FxHashMap<ContentId, Arc<[u8]>>,
    /// Contents of the stash, oldest first.
    order: VecDeque<ContentId>,
    stashed_bytes: usize,
}

#[derive(Clone, Copy)]
struct Reading {
    content: ContentId,
    stamp: Stamp,
    at_rest: bool,
    /// Bytes of the content, which are not those on disk where these are converted.
    bytes: u64,
    encoding: Option<DiskEncoding>,
}

impl Readings {
    /// Returns the content of a file that provably has not changed since it was read, nor what is said of its encoding.
    pub(super) fn unchanged(
        &self,
        path: &DocumentPath,
        stamp: &Stamp,
        encoding: Option<DiskEncoding>,
    ) -> Option<ContentId> {
        let inner = self.lock();
        let reading = inner.files.get(path)?;
        let is_same = reading.at_rest && reading.stamp == *stamp && reading.encoding == encoding;
        is_same.then_some(reading.content)
    }

    /// Caches a file that was read, in place of the old state.
    pub(in crate::watch) fn remember(&self, path: &DocumentPath, hashed: Hashed) {
        let Hashed { content, stamp, at_rest, bytes, encoding } = hashed;
        let size = bytes.as_ref().map_or(stamp.bytes, |bytes| bytes.len() as u64);
        let mut inner = self.lock();
        inner.forget(path);
        inner.files.insert(path.clone(), Reading { content, stamp, at_rest, bytes: size, encoding });
        inner.places.insert((content, path.clone()));
        if let Some(bytes) = bytes {
            inner.stash(content, bytes.into());
        }
    }

    /// Removes a deleted file.
    pub(in crate::watch) fn forget(&self, path: &DocumentPath) {
        self.lock().forget(path);
    }

    /// Removes all bytes, as if many newer contents had evicted them.
    #[cfg(test)]
    pub(in crate::watch) fn forget_bytes(&self) {
        let mut inner = self.lock();
        inner.stash.clear();
        inner.order.clear();
        inner.stashed_bytes = 0;
    }

    /// Returns the bytes of a content, if they are still kept.
    pub(in crate::watch) fn stashed(&self, content: ContentId) -> Option<Arc<[u8]>> {
        self.lock().stash.get(&content).cloned()
    }

    /// Returns a path where a content stands that comes after `after` in order, if there is one, with the content's size and that of
    /// the file.
    pub(in crate::watch) fn place(
        &self,
        content: ContentId,
        after: Option<&DocumentPath>,
    ) -> Option<(DocumentPath, [u64; 2])> {
        let inner = self.lock();
        let first = DocumentPath::new(Vec::new());
        let start = (content, after.unwrap_or(&first).clone());
        let (found, path) = inner.places.range(start..).find(|(_, path)| Some(path) != after)?;
        let Reading { bytes, stamp, .. } = inner.files.get(path)?;
        (*found == content).then(|| (path.clone(), [*bytes, stamp.bytes]))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic between two updates costs a re-read at worst: every id is checked where its bytes are used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget(&mut self, path: &DocumentPath) {
        if let Some(reading) = self.files.remove(path) {
            self.places.remove(&(reading.content, path.clone()));
        }
    }

    fn stash(&mut self, content: ContentId, bytes: Arc<[u8]>) {
        if self.stash.contains_key(&content) {
            return;
        }
        self.stashed_bytes += bytes.len();
        self.stash.insert(content, bytes);
        self.order.push_back(content);
        while self.stashed_bytes > STASH_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.stashed_bytes -= self.stash.remove(&oldest).map_or(0, |bytes| bytes.len());
        }
    }
}

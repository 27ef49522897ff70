//! Reads a trace: first every frame's checksums, then any epoch and any content.
//!
//! In: an untrusted file. Out: a [`Trace`], or the error and its position.
//!
//! **Invariant:** when [`Trace::open`] returns, every frame up to the last whole epoch is correct, and every content is before
//! the epochs that name it. Memory holds positions only; contents are read on demand.

use super::format::{
    About, ContentHead, EpochRecord, FORMAT, HEAD_BYTES, Index, Kind, MAGIC, MAGIC_BYTES, MAX_EPOCH_BYTES, SUM_BYTES,
    Stored, TraceError, decode, frame_head, frame_sum, magic, unpack,
};
use crate::watch::{self, Content, FileState};
use dataflows::data::{ContentId, DocumentPath, FileChange};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A trace that can be replayed.
pub struct Trace {
    path: PathBuf,
    file: File,
    about: About,
    epochs: Vec<Place>,
    contents: FxHashMap<ContentId, (Place, u64)>,
    cut: Option<u64>,
    bytes: u64,
}

/// The position of a frame, and the length of its payload.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    length: u32,
}

/// One frame, read from a stream.
struct Frame {
    at: u64,
    kind: Kind,
    payload: Vec<u8>,
}

/// Frames of a stream, one after the other.
struct Frames<'a, R> {
    path: &'a Path,
    stream: R,
    at: u64,
}

impl<R: Read> Frames<'_, R> {
    /// Returns the next frame; nothing at the end, or if a frame is incomplete.
    fn next(&mut self) -> Result<Option<Frame>, TraceError> {
        let at = self.at;
        let mut head = [0; HEAD_BYTES as usize];
        if !self.fill(&mut head)? {
            return Ok(None);
        }
        let damaged = |reason: &str| TraceError::Damaged { path: self.path.to_owned(), at, reason: reason.to_owned() };
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        if frame_head(head[0], length) != head {
            return Err(damaged("the head of a frame does not fit its check"));
        }
        let kind = Kind::of(head[0]).ok_or_else(|| damaged("a frame is of a kind that this format does not have"))?;
        // Read in pieces, so that a forged length costs no memory.
        let mut payload = Vec::new();
        let wanted = u64::from(length) + SUM_BYTES;
        let read = self.stream.by_ref().take(wanted).read_to_end(&mut payload);
        read.map_err(TraceError::io("read", self.path))?;
        if (payload.len() as u64) < wanted {
            return Ok(None);
        }
        let sum = payload.split_off(length as usize);
        if frame_sum(&head, &payload)[..] != sum[..] {
            return Err(damaged("a frame does not fit its BLAKE3 sum"));
        }
        self.at = at + HEAD_BYTES + wanted;
        Ok(Some(Frame { at, kind, payload }))
    }

    /// Fills a buffer; returns whether there were enough bytes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, TraceError> {
        match self.stream.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(TraceError::io("read", self.path)(error)),
        }
    }
}

impl Trace {
    /// Opens a trace and checks all of it.
    ///
    /// Costs one pass over the file.
    ///
    /// # Errors
    /// If it is no trace, of another format, damaged, or ends before its first whole epoch.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(TraceError::io("open", path))?;
        let metadata = file.metadata().map_err(TraceError::io("read", path))?;
        let no_trace = || TraceError::NoTrace { path: path.to_owned() };
        if !metadata.is_file() {
            return Err(no_trace());
        }
        let mut frames = Frames { path, stream: BufReader::with_capacity(1 << 18, &file), at: 0 };
        let mut start = [0; MAGIC_BYTES as usize];
        if !frames.fill(&mut start)? || &start[..8] != MAGIC {
            return Err(no_trace());
        }
        let found = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
        let damaged = |at: u64, reason: String| TraceError::Damaged { path: path.to_owned(), at, reason };
        if start != magic(found) {
            return Err(damaged(0, "its first bytes do not fit their sum".to_owned()));
        }
        if found != FORMAT {
            return Err(TraceError::Format { path: path.to_owned(), found });
        }
        frames.at = MAGIC_BYTES;
        let mut about = None;
        let mut epochs = Vec::new();
        let mut contents: FxHashMap<ContentId, (Place, u64)> = FxHashMap::default();
        let mut index: Option<(u64, Index)> = None;
        let mut is_whole = false;
        let mut whole_bytes = 0;
        while let Some(Frame { at, kind, payload }) = frames.next()? {
            let place = Place { at, length: payload.len() as u32 };
            let misplaced = || damaged(at, format!("a frame of kind {} is out of place", kind as u8));
            if is_whole || (index.is_some() != (kind == Kind::End)) || (about.is_none() != (kind == Kind::About)) {
                return Err(misplaced());
            }
            match kind {
                Kind::About => about = Some(decode::<About>(&payload).map_err(|reason| damaged(at, reason))?),
                Kind::Content => {
                    let head = ContentHead::of(&payload).map_err(|reason| damaged(at, reason))?;
                    if contents.insert(head.id, (place, head.size)).is_some() {
                        return Err(damaged(at, format!("content {} is there twice", head.id)));
                    }
                }
                Kind::Epoch => {
                    epochs.push(place);
                    whole_bytes = frames.at;
                }
                Kind::Index => {
                    let unpacked = unpack(&payload, MAX_EPOCH_BYTES).and_then(|bytes| decode(&bytes));
                    index = Some((at, unpacked.map_err(|reason| damaged(at, reason))?));
                }
                Kind::End => {
                    let index_at = index.as_ref().map_or(0, |(at, _)| *at);
                    if payload != index_at.to_le_bytes() {
                        return Err(misplaced());
                    }
                    is_whole = true;
                    whole_bytes = frames.at;
                }
            }
        }
        let about = about.ok_or_else(|| TraceError::Empty { path: path.to_owned() })?;
        if let Some((at, index)) = &index {
            let known = |(id, at, size): &(ContentId, u64, u64)| {
                contents.get(id).is_some_and(|(place, known)| place.at == *at && known == size)
            };
            let fits = index.epochs.iter().copied().eq(epochs.iter().map(|place| place.at))
                && index.contents.len() == contents.len()
                && index.contents.iter().all(known);
            if !fits {
                return Err(damaged(*at, "the index is not that of this trace".to_owned()));
            }
        }
        if epochs.is_empty() {
            return Err(TraceError::Empty { path: path.to_owned() });
        }
        let bytes = metadata.len();
        if is_whole && bytes > whole_bytes {
            return Err(damaged(whole_bytes, "there are bytes behind its end".to_owned()));
        }
        let cut = (!is_whole).then(|| bytes.saturating_sub(whole_bytes));
        Ok(Self { path: path.to_owned(), file, about, epochs, contents, cut, bytes })
    }

    /// Returns the path of the trace.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the trace's description of itself.
    #[must_use]
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// Returns the number of whole epochs; there is at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a trace without an epoch is refused")]
    pub fn len(&self) -> usize {
        self.epochs.len()
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes after the last whole epoch of an unfinished or truncated trace.
    #[must_use]
    pub const fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Returns the number of contents and their bytes.
    #[must_use]
    pub fn contents_total(&self) -> (u64, u64) {
        (self.contents.len() as u64, self.contents.values().map(|(_, size)| size).sum())
    }

    /// Returns the size of a content, if the trace holds it.
    #[must_use]
    pub fn content_size(&self, content: ContentId) -> Option<u64> {
        self.contents.get(&content).map(|(_, size)| *size)
    }

    /// Reads an epoch; the first is number 0.
    ///
    /// # Errors
    /// If there is none, or the file changed since it was opened.
    pub fn epoch(&self, number: usize) -> Result<EpochRecord, TraceError> {
        let place = *self.epochs.get(number).ok_or_else(|| TraceError::Empty { path: self.path.clone() })?;
        let payload = self.payload(place)?;
        let record = unpack(&payload, MAX_EPOCH_BYTES).and_then(|bytes| EpochRecord::from_bytes(&bytes));
        record.map_err(|reason| self.damaged(place, reason))
    }

    /// Reads every epoch, one after the other.
    pub fn epochs(&self) -> impl Iterator<Item = Result<EpochRecord, TraceError>> + '_ {
        (0..self.len()).map(|number| self.epoch(number))
    }

    /// Reads a content, if the trace holds it.
    ///
    /// # Errors
    /// If the file changed since it was opened.
    pub fn content(&self, content: ContentId) -> Result<Option<Stored>, TraceError> {
        let Some((place, _)) = self.contents.get(&content) else { return Ok(None) };
        let payload = self.payload(*place)?;
        let (_, stored) = Stored::from_payload(&payload).map_err(|reason| self.damaged(*place, reason))?;
        Ok(Some(stored))
    }

    fn payload(&self, place: Place) -> Result<Vec<u8>, TraceError> {
        let mut frame = vec![0; HEAD_BYTES as usize + place.length as usize + SUM_BYTES as usize];
        self.file.read_exact_at(&mut frame, place.at).map_err(TraceError::io("read", &self.path))?;
        let sum = frame.split_off(frame.len() - SUM_BYTES as usize);
        let payload = frame.split_off(HEAD_BYTES as usize);
        if frame_sum(&frame, &payload)[..] != sum[..] {
            return Err(self.damaged(place, "a frame does not fit its BLAKE3 sum any more".to_owned()));
        }
        Ok(payload)
    }

    fn damaged(&self, place: Place, reason: String) -> TraceError {
        TraceError::Damaged { path: self.path.clone(), at: place.at, reason }
    }

    /// Returns the files of every head after the first `epochs` epochs, by the view's name; the head on which commits pass
    /// through has no name.
    ///
    /// # Errors
    /// As [`Self::epoch`].
    pub fn heads_after(
        &self,
        epochs: usize,
    ) -> Result<BTreeMap<Option<String>, BTreeMap<DocumentPath, FileState>>, TraceError> {
        let mut heads: BTreeMap<Option<String>, BTreeMap<DocumentPath, FileState>> = BTreeMap::new();
        for number in 0..epochs.min(self.len()) {
            let record = self.epoch(number)?;
            let head = record.head().map(str::to_owned);
            if record.changes.is_empty() {
                continue;
            }
            let files = heads.entry(head).or_default();
            for FileChange { path, after, .. } in record.changes {
                match after {
                    Some(state) => files.insert(path, state),
                    None => files.remove(&path),
                };
            }
        }
        Ok(heads)
    }
}

/// Gives the contents of a trace to the graph, from any thread.
#[derive(Clone)]
pub struct TraceContents(pub Arc<Trace>);

impl watch::Contents for TraceContents {
    fn read(&self, content: ContentId, max_bytes: u64) -> Result<Content, watch::ReadError> {
        let stored = match self.0.content(content) {
            Ok(stored) => stored,
            Err(error) => {
                let path = DocumentPath::new(self.0.path.as_os_str().as_encoded_bytes());
                let source = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
                return Err(watch::ReadError::File { content, path, source });
            }
        };
        stored.ok_or(watch::ReadError::Missing(content))?.answer(content, max_bytes)
    }
}

/// Reads the content whose frame begins at `at`.
pub(super) fn read_at(file: &File, at: u64) -> io::Result<Stored> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut head = [0; HEAD_BYTES as usize];
    file.read_exact_at(&mut head, at)?;
    let mut payload = vec![0; u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize];
    file.read_exact_at(&mut payload, at + HEAD_BYTES)?;
    Stored::from_payload(&payload).map(|(_, stored)| stored).map_err(invalid)
}

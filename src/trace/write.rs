//! Writes a trace: contents and epochs in order, then the index.
//!
//! In: contents, each before the first epoch that names it, and epochs in order. Out: a complete and durable file under its final
//! name.
//!
//! **Invariant:** until [`TraceWriter::finish`] the file is called `NAME.partial`. A killed recorder leaves a trace that can be
//! read up to its last whole epoch. Memory holds the index: some forty bytes a content.

use super::format::{
    About, EpochRecord, FORMAT, Index, Kind, MAGIC_BYTES, Stored, TraceError, TraceStep, encode, frame_head, frame_sum,
    magic, pack,
};
use dataflows::data::ContentId;
use rustc_hash::FxHashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A trace that is being written.
pub struct TraceWriter {
    path: PathBuf,
    partial: PathBuf,
    file: BufWriter<File>,
    at: u64,
    about: About,
    index: Index,
    known: FxHashSet<ContentId>,
    corpus: blake3::Hasher,
    /// Bytes of all contents.
    content_bytes: u64,
}

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct Written {
    /// How many epochs.
    pub epochs: u64,
    /// How many contents.
    pub contents: u64,
    /// How many bytes these have.
    pub content_bytes: u64,
    /// How many bytes the file has.
    pub bytes: u64,
    /// The hash over all events.
    pub corpus: [u8; 32],
}

impl TraceWriter {
    /// Begins a trace that will be called `path`.
    ///
    /// # Errors
    /// If there is a file of that name, or none can be made.
    pub fn create(path: &Path, about: About) -> Result<Self, TraceError> {
        if path.exists() {
            return Err(TraceError::Exists { path: path.to_owned() });
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        let file = BufWriter::new(File::create(&partial).map_err(TraceError::io("create", &partial))?);
        let about = About { corpus: [0; 32], ..about };
        let mut writer = Self {
            path: path.to_owned(),
            partial,
            file,
            at: 0,
            about,
            index: Index::default(),
            known: FxHashSet::default(),
            corpus: blake3::Hasher::new(),
            content_bytes: 0,
        };
        writer.write(|file| file.write_all(&magic(FORMAT)))?;
        writer.at = MAGIC_BYTES;
        let about = encode(&writer.about);
        writer.frame(Kind::About, &about)?;
        Ok(writer)
    }

    /// Returns whether a content was written already.
    #[must_use]
    pub fn has(&self, content: ContentId) -> bool {
        self.known.contains(&content)
    }

    /// Returns how many epochs were written so far.
    #[must_use]
    pub fn epochs(&self) -> u64 {
        self.index.epochs.len() as u64
    }

    /// Writes a content, unless it was written already; returns the position of its frame if it is new.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn content(&mut self, content: ContentId, stored: &Stored) -> Result<Option<u64>, TraceError> {
        if !self.known.insert(content) {
            return Ok(None);
        }
        let at = self.at;
        let payload = stored.to_payload(content).map_err(TraceError::io("pack a content for", &self.partial))?;
        self.index.contents.push((content, at, stored.size()));
        self.content_bytes += stored.size();
        self.frame(Kind::Content, &payload)?;
        Ok(Some(at))
    }

    /// Returns the path of the trace until it is finished.
    #[must_use]
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// Writes an epoch. Its contents must have been written.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn epoch(&mut self, epoch: &EpochRecord) -> Result<(), TraceError> {
        let bytes = epoch.to_bytes();
        let mut happened = epoch.clone();
        if let TraceStep::Commit { digest, .. } = &mut happened.step {
            *digest = None;
        }
        let happened = happened.to_bytes();
        self.corpus.update(&(happened.len() as u64).to_le_bytes()).update(&happened);
        let payload = pack(&bytes).map_err(TraceError::io("pack an epoch for", &self.partial))?;
        self.index.epochs.push(self.at);
        self.frame(Kind::Epoch, &payload)
    }

    /// Flushes the written bytes to the system, so that a reader in another process, or after a crash of this one, finds them.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.write(Write::flush)
    }

    /// Writes the index, syncs the file and gives it its final name.
    ///
    /// # Errors
    /// If the disk is full; the part that was written stays as `NAME.partial`.
    pub fn finish(mut self) -> Result<Written, TraceError> {
        let index_at = self.at;
        let index = pack(&encode(&self.index)).map_err(TraceError::io("pack the index of", &self.partial))?;
        self.frame(Kind::Index, &index)?;
        self.frame(Kind::End, &index_at.to_le_bytes())?;
        let corpus = *self.corpus.finalize().as_bytes();
        self.about.corpus = corpus;
        // The hash is an array, so the frame keeps its length and no later byte moves.
        let about = encode(&self.about);
        let bytes = self.at;
        self.write(|file| file.seek(SeekFrom::Start(MAGIC_BYTES)).map(drop))?;
        self.frame(Kind::About, &about)?;
        self.write(|file| {
            file.flush()?;
            file.get_ref().sync_all()
        })?;
        fs::rename(&self.partial, &self.path).map_err(TraceError::io("name", &self.path))?;
        Ok(Written {
            epochs: self.index.epochs.len() as u64,
            contents: self.index.contents.len() as u64,
            content_bytes: self.content_bytes,
            bytes,
            corpus,
        })
    }

    fn frame(&mut self, kind: Kind, payload: &[u8]) -> Result<(), TraceError> {
        let too_long = || io::Error::new(io::ErrorKind::InvalidData, "a frame is longer than 4 GiB");
        let length = u32::try_from(payload.len());
        let length = length.map_err(|_| TraceError::io("write", &self.partial)(too_long()))?;
        let head = frame_head(kind as u8, length);
        let sum = frame_sum(&head, payload);
        self.write(|file| {
            file.write_all(&head)?;
            file.write_all(payload)?;
            file.write_all(&sum)
        })?;
        self.at += (head.len() + payload.len() + sum.len()) as u64;
        Ok(())
    }

    fn write(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), TraceError> {
        write(&mut self.file).map_err(TraceError::io("write", &self.partial))
    }
}

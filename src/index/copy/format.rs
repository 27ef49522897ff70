//! The files of a copy.
//!
//! ```text
//! MANIFEST    one line of JSON, and one with its BLAKE3
//! documents   a row for each file of the version, by path          `Document`
//! cleaned     what cleaning made of each content                   `(DocumentId, Cleaned)`
//! chunks      the chunk list of each cleaned text                  `(ChunkingId, Chunked)`
//! texts       every cleaned text and chunk text                    UTF-8
//! vectors     the vector of each input of the model                input 16 bytes, components f16, or none
//! ```
//!
//! In format 1 a vector is named by card and text, of 16 bytes each, in place of the input.
//!
//! Every file but the manifest is a sequence of records: length u32, little endian, and so many bytes.
//!
//! **Invariant:** a record is returned only after its whole file was compared with the manifest's checksum, and it is checked
//! again during the read. No record is longer than [`MAX_RECORD_BYTES`].

use crate::store::SourceRoots;
use serde::{Deserialize, Serialize};
use snapshots::CommitId;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The format that this build writes.
pub(super) const FORMAT: u32 = 2;
/// The previous format, which this build reads too.
pub(super) const OLDER_FORMAT: u32 = 1;
/// The largest manifest that is read; the largest honest one has some kilobytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The largest record: a text is bounded by the rules' `max_bytes`, and may grow threefold when it is decoded.
pub(super) const MAX_RECORD_BYTES: usize = 64 << 20;

pub(super) const DOCUMENTS: &str = "documents";
pub(super) const CLEANED: &str = "cleaned";
pub(super) const CHUNKS: &str = "chunks";
pub(super) const TEXTS: &str = "texts";
pub(super) const VECTORS: &str = "vectors";
pub(super) const FILES: [&str; 5] = [DOCUMENTS, CLEANED, CHUNKS, TEXTS, VECTORS];

/// The manifest of a copy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub(super) format: u32,
    /// The source's name.
    pub source: String,
    /// `git` or `directory`.
    pub kind: String,
    pub(super) commit: String,
    pub(super) parent: Option<String>,
    /// The commits at which the source's history begins, if they are known: what tells it from another of its name.
    #[serde(default)]
    pub(super) roots: Vec<String>,
    /// The committer's time, in seconds since 1970.
    pub time: i64,
    /// The views that pointed at the commit.
    pub views: Vec<String>,
    /// The digest of all entries, in hexadecimal.
    pub digest: String,
    pub(super) fingerprint: String,
    pub(super) model: String,
    pub(super) analyzer: String,
    pub(super) dimensions: u32,
    /// How many entries there are.
    pub entries: u64,
    /// How many rows of documents there are.
    pub documents: u64,
    pub(super) tokens: Vec<u64>,
    pub(super) files: BTreeMap<String, FileSum>,
}

/// How long a file is, and its sum.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct FileSum {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) blake3: String,
}

/// Reason why a copy cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The file system failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder exists.
    #[error("{} is there already; export into a folder that is not", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no copy.
    #[error("{} holds no copy of a snapshot; `tidemill snapshots export REV DIR` writes one", path.display())]
    NoCopy {
        /// The folder.
        path: PathBuf,
    },
    /// A copy of another format.
    #[error("the copy in {} is format {found}, this build reads formats {OLDER_FORMAT} and {FORMAT}; export it again with this release", path.display())]
    Format {
        /// The folder.
        path: PathBuf,
        /// Its stated format.
        found: u64,
    },
    /// The bytes are not those that were written.
    #[error("{} is damaged: {reason}; copy it again from where it was exported", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The finding.
        reason: String,
    },
    /// The copy was made with other settings than this build's.
    #[error(
        "the copy's {what} is {found} and this build has {built}; export it again with this release, or track the source"
    )]
    Other {
        /// Model or analyzer.
        what: &'static str,
        /// The copy's value.
        found: String,
        /// This build's value.
        built: String,
    },
    /// The exporting store lacks something.
    #[error("the store has no {what}, which {path} needs; run `tidemill snapshots verify`")]
    Lost {
        /// The missing thing.
        what: &'static str,
        /// The document.
        path: String,
    },
    /// The exporting store cannot be read.
    #[error(transparent)]
    Reader(#[from] crate::index::ReaderError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
}

impl CopyError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    pub(super) fn damaged(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), reason: reason.into() }
    }
}

impl Manifest {
    /// Returns the commit, or a directory's tree hash.
    ///
    /// # Errors
    /// If it is none.
    pub fn commit(&self) -> Result<CommitId, CopyError> {
        self.commit.parse().map_err(|_| bad("its commit is no hash"))
    }

    /// Returns the commit's first parent.
    ///
    /// # Errors
    /// If it is no hash.
    pub fn parent(&self) -> Result<Option<CommitId>, CopyError> {
        self.parent.as_deref().map(str::parse).transpose().map_err(|_| bad("its parent is no hash"))
    }

    /// Returns the commits at which the source's history begins.
    ///
    /// # Errors
    /// Where one is no hash.
    pub fn roots(&self) -> Result<SourceRoots, CopyError> {
        let roots: Result<Vec<CommitId>, _> = self.roots.iter().map(|root| root.parse()).collect();
        let roots = roots.map_err(|_| bad("a root is no hash"))?;
        Ok(if roots.is_empty() { SourceRoots::default() } else { SourceRoots::new(&roots) })
    }

    /// Returns the fingerprint of the rules.
    ///
    /// # Errors
    /// If it is none.
    pub fn fingerprint(&self) -> Result<[u8; 16], CopyError> {
        let words = (self.fingerprint.len() == 32).then(|| u128::from_str_radix(&self.fingerprint, 16).ok()).flatten();
        words.map(u128::to_be_bytes).ok_or_else(|| bad("its fingerprint is none"))
    }

    /// Writes the manifest, durably.
    pub(super) fn write(&self, folder: &Path) -> Result<(), CopyError> {
        let path = folder.join("MANIFEST");
        let failed = CopyError::io("write", &path);
        let written = serde_json::to_string(self).map_err(io::Error::from).and_then(|line| {
            let sum = blake3::hash(line.as_bytes()).to_hex();
            let mut file = File::create(&path)?;
            write!(file, "{line}\n{sum}\n")?;
            file.sync_all()
        });
        written.map_err(failed)
    }

    /// Reads the manifest of a folder and checks its sum and its format.
    pub(super) fn read(folder: &Path) -> Result<Self, CopyError> {
        let path = folder.join("MANIFEST");
        if !path.exists() {
            return Err(CopyError::NoCopy { path: folder.to_owned() });
        }
        let mut text = String::new();
        let (file, _) = open_plain(&path)?;
        file.take(MAX_MANIFEST_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| CopyError::damaged(&path, error.to_string()))?;
        let mut lines = text.lines();
        let (line, sum) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        if blake3::hash(line.as_bytes()).to_hex().as_str() != sum {
            return Err(CopyError::damaged(path, "its BLAKE3 sum does not fit"));
        }
        // The format first: another one may have other fields.
        let value: serde_json::Value =
            serde_json::from_str(line).map_err(|error| CopyError::damaged(&path, error.to_string()))?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if [OLDER_FORMAT, FORMAT].map(u64::from).contains(&found) => {}
            Some(found) => return Err(CopyError::Format { path: folder.to_owned(), found }),
            None => return Err(CopyError::damaged(path, "it names no format")),
        }
        serde_json::from_value(value).map_err(|error| CopyError::damaged(&path, error.to_string()))
    }
}

fn bad(reason: &str) -> CopyError {
    CopyError::damaged("MANIFEST", reason)
}

/// Opens a regular file and returns its length; anything else with that name (a pipe would block) is refused.
fn open_plain(path: &Path) -> Result<(File, u64), CopyError> {
    let is_plain = fs::symlink_metadata(path).map_err(CopyError::io("read", path))?.is_file();
    if !is_plain {
        return Err(CopyError::damaged(path, "it is no plain file"));
    }
    let file = File::open(path).map_err(CopyError::io("open", path))?;
    let length = file.metadata().map_err(CopyError::io("read", path))?.len();
    Ok((file, length))
}

/// Writes records to a file.
pub(super) struct RecordWriter {
    path: PathBuf,
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    sum: FileSum,
}

impl RecordWriter {
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self, CopyError> {
        let path = folder.join(name);
        let file = BufWriter::new(File::create(&path).map_err(CopyError::io("create", &path))?);
        let sum = FileSum { records: 0, bytes: 0, blake3: String::new() };
        Ok(Self { path, file, hasher: blake3::Hasher::new(), sum })
    }

    pub(super) fn write(&mut self, record: &[u8]) -> Result<(), CopyError> {
        if record.len() > MAX_RECORD_BYTES {
            return Err(CopyError::damaged(
                &self.path,
                format!("a record of {} bytes is too long for it", record.len()),
            ));
        }
        for part in [&(record.len() as u32).to_le_bytes(), record] {
            self.file.write_all(part).map_err(CopyError::io("write", &self.path))?;
            self.hasher.update(part);
            self.sum.bytes += part.len() as u64;
        }
        self.sum.records += 1;
        Ok(())
    }

    /// Syncs the file and returns its entry in the manifest.
    pub(super) fn finish(mut self) -> Result<FileSum, CopyError> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.map_err(CopyError::io("write", &self.path))?;
        Ok(FileSum { blake3: self.hasher.finalize().to_hex().to_string(), ..self.sum })
    }
}

/// Compares a file with its entry in the manifest.
pub(super) fn check_sum(folder: &Path, name: &str, sum: &FileSum) -> Result<(), CopyError> {
    let path = folder.join(name);
    let (file, length) = open_plain(&path)?;
    if length != sum.bytes {
        return Err(CopyError::damaged(path, format!("it has {length} bytes instead of {}", sum.bytes)));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.take(sum.bytes)).map_err(CopyError::io("read", &path))?;
    if hasher.finalize().to_hex().as_str() == sum.blake3 {
        Ok(())
    } else {
        Err(CopyError::damaged(path, "its BLAKE3 sum does not fit"))
    }
}

/// Calls `look` with each record of a file, and compares the checksum at the end.
pub(super) fn for_each_record(
    folder: &Path,
    name: &str,
    sum: &FileSum,
    mut look: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), CopyError> {
    let path = folder.join(name);
    let damaged = |reason: String| CopyError::damaged(&path, reason);
    let (file, _) = open_plain(&path)?;
    let mut file = BufReader::new(file);
    let mut hasher = blake3::Hasher::new();
    let mut left = sum.bytes;
    let mut record = Vec::new();
    for number in 0..sum.records {
        let mut length = [0; 4];
        file.read_exact(&mut length).map_err(CopyError::io("read", &path))?;
        hasher.update(&length);
        let length = u32::from_le_bytes(length) as usize;
        left = left.checked_sub(4 + length as u64).ok_or_else(|| damaged(format!("record {number} has no end")))?;
        if length > MAX_RECORD_BYTES {
            return Err(damaged(format!("record {number} has {length} bytes")));
        }
        record.resize(length, 0);
        file.read_exact(&mut record).map_err(CopyError::io("read", &path))?;
        hasher.update(&record);
        look(&record).map_err(|reason| damaged(format!("record {number}: {reason}")))?;
    }
    if left > 0 || hasher.finalize().to_hex().as_str() != sum.blake3 {
        return Err(damaged("it is not what its sum says".to_owned()));
    }
    Ok(())
}

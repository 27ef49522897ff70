//! Export: writes a version of an open store to a folder.
//!
//! In: a reader, a version, the rules. Out: the folder, complete.
//!
//! **Invariant:** the folder gets its name only once everything in it is durable. Until then it is called `DIR.partial`, and the
//! next export of that name removes it.

use super::format::{self, CopyError, FORMAT, Manifest, RecordWriter};
use crate::index::{Given, IndexReader, ReaderError, lexical};
use crate::store::{SourceRecord, SourceRoots, encode};
use dataflows::data::{Cleaned, Document, DocumentPath, EmbedInput, Fingerprint, ModelId, Outcome, TextHash, place};
use dataflows::memo::{Chunked, Memo};
use dataflows::rules::Rules;
use rustc_hash::FxHashSet;
use snapshots::{Ordinal, VersionId};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The result of an export.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The copy's manifest.
    pub manifest: Manifest,
    /// Bytes of all files but the manifest.
    pub bytes: u64,
}

/// Writes a copy of a version into a folder that is not there yet.
///
/// `rules` lead from paths to the cleaning results of their contents. Under other rules than the version's the copy is complete,
/// but the importing store cleans the affected contents again.
///
/// # Errors
/// If the folder exists, the store lacks something, or the disk is full; nothing of that name is left then.
pub fn export(
    reader: &IndexReader,
    source: &SourceRecord,
    version: VersionId,
    views: Vec<String>,
    (rules, dimensions): (&Rules, u32),
    folder: &Path,
) -> Result<Exported, CopyError> {
    let is_free = match fs::read_dir(folder) {
        Ok(mut files) => files.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !is_free {
        return Err(CopyError::Exists { path: folder.to_owned() });
    }
    let mut partial = folder.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    match fs::remove_dir_all(&partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(CopyError::io("remove", &partial)(error));
        }
        _ => {}
    }
    fs::create_dir_all(&partial).map_err(CopyError::io("make", &partial))?;

    let (known, alive) = reader.with_archive(|archive| {
        let known = archive.version(version).cloned().ok_or(ReaderError::Empty)?;
        Ok::<_, ReaderError>((known, archive.bitmaps(version)?))
    })?;
    let mut documents = reader.catalogue().documents(alive.documents.iter().map(Ordinal::new))?;
    documents.sort();
    let roots = reader.database().source_roots(known.source)?;
    let mut writer = Writer::create(&partial)?;
    for document in &documents {
        writer.document(reader, rules, document)?;
    }
    let files = writer.finish()?;
    let bytes = files.values().map(|file| file.bytes).sum();
    let manifest = Manifest {
        format: FORMAT,
        source: source.name.clone(),
        kind: source.kind.as_str().to_owned(),
        commit: known.commit.to_string(),
        parent: known.parent.map(|parent| parent.to_string()),
        roots: roots.iter().flat_map(SourceRoots::roots).map(|root| root.to_string()).collect(),
        time: known.time,
        views,
        digest: known.digest.to_string(),
        fingerprint: Fingerprint::from_bytes(known.fingerprint).to_string(),
        model: ModelId::from_bytes(known.model).to_string(),
        analyzer: lexical::fingerprint().to_string(),
        dimensions,
        entries: known.statistics.live_entries,
        documents: known.statistics.live_documents,
        tokens: known.statistics.live_tokens.as_list().to_vec(),
        files,
    };
    manifest.write(&partial)?;
    sync(&partial)?;
    fs::rename(&partial, folder).map_err(CopyError::io("rename", &partial))?;
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync(parent)?;
    Ok(Exported { manifest, bytes })
}

fn sync(folder: &Path) -> Result<(), CopyError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(CopyError::io("sync", folder))
}

/// The five files being written; each result is written once.
struct Writer {
    documents: RecordWriter,
    cleaned: RecordWriter,
    chunks: RecordWriter,
    texts: RecordWriter,
    vectors: RecordWriter,
    known: FxHashSet<[u8; 16]>,
    embedded: FxHashSet<EmbedInput>,
}

impl Writer {
    fn create(folder: &Path) -> Result<Self, CopyError> {
        let file = |name| RecordWriter::create(folder, name);
        Ok(Self {
            documents: file(format::DOCUMENTS)?,
            cleaned: file(format::CLEANED)?,
            chunks: file(format::CHUNKS)?,
            texts: file(format::TEXTS)?,
            vectors: file(format::VECTORS)?,
            known: FxHashSet::default(),
            embedded: FxHashSet::default(),
        })
    }

    fn finish(self) -> Result<BTreeMap<String, format::FileSum>, CopyError> {
        let files = [self.documents, self.cleaned, self.chunks, self.texts, self.vectors];
        let sums = format::FILES.iter().zip(files).map(|(name, file)| Ok(((*name).to_owned(), file.finish()?)));
        sums.collect()
    }

    /// Writes a document's row and all of its results.
    fn document(&mut self, reader: &IndexReader, rules: &Rules, document: &Document) -> Result<(), CopyError> {
        let memo = reader.memo();
        self.documents.write(&encode(document))?;
        let Document { path, outcome, .. } = document;
        let id = rules.document_id(document);
        if let Some(cleaned) = memo.cleaned(id).filter(|cleaned| !matches!(cleaned, Cleaned::Fault(_)))
            && self.known.insert(id.to_bytes())
        {
            self.cleaned.write(&encode(&(id, &cleaned)))?;
            if let Some(text) = cleaned.text() {
                self.text(reader, text, path)?;
            }
        }
        let Outcome::Indexed { chunking, module, labels } = outcome else { return Ok(()) };
        let list = memo.chunks(*chunking);
        let Some(chunks) = list.as_deref().and_then(Chunked::chunks) else {
            return Err(lost(reader, "chunk list", path));
        };
        if self.known.insert(chunking.to_bytes()) {
            self.chunks.write(&encode(&(chunking, list.as_deref())))?;
        }
        for placed in place(path, module, labels, chunks) {
            self.text(reader, placed.entry.text, path)?;
            let input = placed.embed_input();
            if !self.embedded.insert(input) {
                continue;
            }
            let ordinal = reader.catalogue().entry_ordinal(placed.entry.id())?;
            let components = match reader.vector_of(ordinal.ok_or_else(|| lost(reader, "row", path))?)? {
                Given::Vector(components) => components,
                Given::NoVector => Vec::new(),
                // The importing store embeds it.
                Given::Owed(_) => continue,
            };
            let mut record = input.to_bytes().to_vec();
            record.extend(components.iter().flat_map(|component| component.to_le_bytes()));
            self.vectors.write(&record)?;
        }
        Ok(memo.check()?)
    }

    fn text(&mut self, reader: &IndexReader, hash: TextHash, path: &DocumentPath) -> Result<(), CopyError> {
        if self.known.insert(hash.to_bytes()) {
            let text = reader.memo().text(hash).ok_or_else(|| lost(reader, "text", path))?;
            self.texts.write(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Returns what is missing, or why the database failed.
fn lost(reader: &IndexReader, what: &'static str, path: &DocumentPath) -> CopyError {
    match reader.memo().check() {
        Err(error) => error.into(),
        Ok(()) => CopyError::Lost { what, path: path.to_string() },
    }
}

//! Import, the first half: reads a folder and verifies that its documents, entries and results are consistent.
//!
//! In: an untrusted folder. Out: a [`SnapshotCopy`], or the error.
//!
//! **Invariant:** when [`SnapshotCopy::open`] returns, the entries placed from documents and chunk lists have the manifest's
//! digest, every text that they need exists under its own hash, and the recounted tokens add up to the manifest's. Nothing has
//! been written yet.
//!
//! Texts and vectors are read twice, once to verify and once to store them, so that they never fill the memory.

use super::format::{self, CopyError, Manifest, check_sum, for_each_record};
use crate::index::lexical::{self, count_tokens, searched_name};
use crate::store::{StoreMemo, decode};
use dataflows::data::{
    Card, CardHash, CardedEntry, ChunkingId, Cleaned, Document, DocumentId, DocumentPath, EmbedInput, ModelId, Outcome,
    TextHash, place,
};
use dataflows::embed::Vector;
use dataflows::memo::{Chunked, Embedded, Keep, Memo};
use half::f16;
use rustc_hash::{FxHashMap, FxHashSet};
use snapshots::{Digest, Tokens};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A verified copy of a snapshot.
#[derive(Debug)]
pub struct SnapshotCopy {
    folder: PathBuf,
    /// The copy's manifest.
    pub manifest: Manifest,
    /// Every file of the version, by path.
    pub documents: Vec<Document>,
    /// Every entry with its card, by path and position.
    pub entries: Vec<CardedEntry>,
    cards: FxHashMap<CardHash, Arc<Card>>,
    chunks: FxHashMap<ChunkingId, Chunked>,
    cleaned: Vec<(DocumentId, Cleaned)>,
}

impl SnapshotCopy {
    /// Reads and checks a copy for a model.
    ///
    /// # Errors
    /// If it is no copy, of another format, model or analyzer, damaged, or inconsistent.
    pub fn open(folder: &Path, model: ModelId, dimensions: u32) -> Result<Self, CopyError> {
        let manifest = Manifest::read(folder)?;
        for (what, found, built) in [
            ("model", &manifest.model, model.to_string()),
            ("analyzer", &manifest.analyzer, lexical::fingerprint().to_string()),
            ("vector", &manifest.dimensions.to_string(), dimensions.to_string()),
        ] {
            if *found != built {
                return Err(CopyError::Other { what, found: found.chars().take(64).collect(), built });
            }
        }
        for name in format::FILES {
            check_sum(folder, name, manifest.sum(name)?)?;
        }
        let mut copy = Self {
            folder: folder.to_owned(),
            manifest,
            documents: Vec::new(),
            entries: Vec::new(),
            cards: FxHashMap::default(),
            chunks: FxHashMap::default(),
            cleaned: Vec::new(),
        };
        copy.manifest.commit()?;
        copy.manifest.parent()?;
        copy.manifest.fingerprint()?;
        copy.read_documents()?;
        copy.place_entries()?;
        copy.check_texts()?;
        copy.for_each_vector(|_, _| {})?;
        Ok(copy)
    }

    /// Puts every result of the copy into a memo, in which known results stay.
    ///
    /// # Errors
    /// If the copy changed since it was opened, or cannot be read any more.
    pub fn fill(&self, memo: &StoreMemo) -> Result<(), CopyError> {
        for_each_record(&self.folder, format::TEXTS, self.manifest.sum(format::TEXTS)?, |record| {
            let text = std::str::from_utf8(record).map_err(|error| error.to_string())?;
            memo.put_text(TextHash::of(text), text);
            Ok(())
        })?;
        self.cleaned.iter().for_each(|(id, cleaned)| memo.put_cleaned(*id, cleaned, None, Keep::Durable));
        for (id, chunked) in &self.chunks {
            memo.put_chunks(*id, None, chunked.clone(), Vec::new(), Keep::Durable);
        }
        self.for_each_vector(|input, embedded| memo.put_embedded(vec![(input, embedded)], Keep::Durable))?;
        // A vector that the exporting machine owed: the next tracker asks the model again.
        let owed = self.inputs().into_values().filter(|input| !memo.has_embedded(*input));
        let fault = Embedded::Fault("it was not in the copy that was imported".to_owned());
        let owed: Vec<_> = owed.map(|input| (input, fault.clone())).collect();
        memo.put_embedded(owed, Keep::WhileRunning);
        Ok(memo.check()?)
    }

    fn read_documents(&mut self) -> Result<(), CopyError> {
        let (folder, manifest) = (&self.folder, &self.manifest);
        let documents = &mut self.documents;
        for_each_record(folder, format::DOCUMENTS, manifest.sum(format::DOCUMENTS)?, |record| {
            let document: Document = decode(record).map_err(|error| error.to_string())?;
            check_path(&document.path)?;
            if documents.last().is_some_and(|last: &Document| last.path >= document.path) {
                return Err("its path does not come after the one before".to_owned());
            }
            documents.push(document);
            Ok(())
        })?;
        let chunks = &mut self.chunks;
        for_each_record(folder, format::CHUNKS, manifest.sum(format::CHUNKS)?, |record| {
            let (id, chunked): (ChunkingId, Option<Chunked>) = decode(record).map_err(|error| error.to_string())?;
            match chunked {
                Some(chunked @ (Chunked::Chunks(_) | Chunked::WithoutSyntax(..))) => {
                    chunks.insert(id, chunked);
                    Ok(())
                }
                _ => Err("it is no chunk list".to_owned()),
            }
        })?;
        let cleaned = &mut self.cleaned;
        for_each_record(folder, format::CLEANED, manifest.sum(format::CLEANED)?, |record| {
            let row: (DocumentId, Cleaned) = decode(record).map_err(|error| error.to_string())?;
            if matches!(row.1, Cleaned::Fault(_)) {
                return Err("a fault is not kept".to_owned());
            }
            cleaned.push(row);
            Ok(())
        })
    }

    /// Places the chunks of every document, and compares counts and digest with the manifest's.
    fn place_entries(&mut self) -> Result<(), CopyError> {
        let mut digest = Digest::EMPTY;
        for Document { path, outcome, .. } in &self.documents {
            let Outcome::Indexed { chunking, module, labels } = outcome else { continue };
            let Some(chunks) = self.chunks.get(chunking).and_then(Chunked::chunks) else {
                return Err(CopyError::damaged(self.folder.join(format::CHUNKS), format!("it has no list for {path}")));
            };
            for placed in place(path, module, labels, chunks) {
                digest.add(&placed.entry.id().to_bytes());
                let card = self.cards.entry(placed.entry.card).or_insert_with(|| Arc::new(placed.card)).clone();
                self.entries.push(CardedEntry { entry: placed.entry, card });
            }
        }
        let found = (self.documents.len() as u64, self.entries.len() as u64, digest.to_string());
        let named = (self.manifest.documents, self.manifest.entries, self.manifest.digest.clone());
        if found == named {
            Ok(())
        } else {
            let reason = format!("it names {named:?} for documents, entries and digest, and its files give {found:?}");
            Err(CopyError::damaged(self.folder.join("MANIFEST"), reason))
        }
    }

    /// Checks that every text is there, and that the tokens add up.
    fn check_texts(&self) -> Result<(), CopyError> {
        let path = self.folder.join(format::TEXTS);
        let mut counts: FxHashMap<TextHash, u32> = FxHashMap::default();
        let needed: FxHashSet<TextHash> = self.entries.iter().map(|carded| carded.entry.text).collect();
        let mut others = FxHashSet::default();
        for_each_record(&self.folder, format::TEXTS, self.manifest.sum(format::TEXTS)?, |record| {
            let text = std::str::from_utf8(record).map_err(|error| error.to_string())?;
            let hash = TextHash::of(text);
            if needed.contains(&hash) {
                counts.insert(hash, count_tokens(text, "")[0]);
            }
            others.insert(hash);
            Ok(())
        })?;
        for (_, cleaned) in &self.cleaned {
            if cleaned.text().is_some_and(|text| !others.contains(&text)) {
                return Err(CopyError::damaged(path, "it lacks a cleaned text"));
            }
        }
        let names: FxHashMap<CardHash, u32> =
            self.cards.iter().map(|(hash, card)| (*hash, count_tokens("", &searched_name(card))[1])).collect();
        let mut tokens = [0_u64; 2];
        for CardedEntry { entry, .. } in &self.entries {
            let Some(count) = counts.get(&entry.text) else {
                return Err(CopyError::damaged(path, format!("it lacks a text of {}", entry.path)));
            };
            tokens[0] += u64::from(*count);
            tokens[1] += u64::from(names.get(&entry.card).copied().unwrap_or_default());
        }
        if Tokens::from_list(&self.manifest.tokens) == Some(tokens.into()) {
            Ok(())
        } else {
            let reason = format!("it names {:?} tokens, and its texts have {tokens:?}", self.manifest.tokens);
            Err(CopyError::damaged(self.folder.join("MANIFEST"), reason))
        }
    }

    /// Returns what the model is asked for the entries, by card and text.
    fn inputs(&self) -> FxHashMap<(CardHash, TextHash), EmbedInput> {
        let input =
            |CardedEntry { entry, card }: &CardedEntry| ((entry.card, entry.text), card.embed_input(entry.text));
        self.entries.iter().map(input).collect()
    }

    /// Tells every vector, once it is one.
    fn for_each_vector(&self, mut look: impl FnMut(EmbedInput, Embedded)) -> Result<(), CopyError> {
        let dimensions = self.manifest.dimensions as usize;
        let inputs = self.inputs();
        let is_older = self.manifest.format == format::OLDER_FORMAT;
        let mut unknown: FxHashSet<EmbedInput> = inputs.values().copied().collect();
        let mut named: FxHashSet<(CardHash, TextHash)> = FxHashSet::default();
        for_each_record(&self.folder, format::VECTORS, self.manifest.sum(format::VECTORS)?, |record| {
            let (input, components) = if is_older {
                let (id, components) = record.split_first_chunk::<32>().ok_or("it is too short")?;
                let half = |at: usize| id[at..at + 16].try_into().expect("half of thirty-two bytes is sixteen");
                let id = (CardHash::from_bytes(half(0)), TextHash::from_bytes(half(16)));
                let input = inputs.get(&id).filter(|_| named.insert(id)).copied();
                // Cards that differ in what is not embedded had vectors of their own.
                if input.is_some_and(|input| !unknown.contains(&input)) {
                    return Ok(());
                }
                (input, components)
            } else {
                let (input, components) = record.split_first_chunk::<16>().ok_or("it is too short")?;
                (Some(EmbedInput::from_bytes(*input)), components)
            };
            let id = input.filter(|input| unknown.remove(input)).ok_or("no entry has its text, or it came before")?;
            if components.is_empty() {
                look(id, Embedded::NoVector);
                return Ok(());
            }
            if components.len() != 2 * dimensions {
                return Err(format!("it has {} bytes of components", components.len()));
            }
            let components: Vec<f16> =
                components.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect();
            look(id, Embedded::Vector(Vector::from_components(components).map_err(|error| error.to_string())?));
            Ok(())
        })
    }
}

impl Manifest {
    fn sum(&self, name: &str) -> Result<&format::FileSum, CopyError> {
        self.files.get(name).ok_or_else(|| CopyError::damaged("MANIFEST", format!("it does not name the file {name}")))
    }
}

/// Refuses a path that no source can give.
fn check_path(path: &DocumentPath) -> Result<(), String> {
    let mut parts = path.as_bytes().split(|&byte| byte == b'/');
    if parts.any(|part| part.is_empty() || part == b"." || part == b".." || part.contains(&0)) {
        return Err("its path is none".to_owned());
    }
    Ok(())
}

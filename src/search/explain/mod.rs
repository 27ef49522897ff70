//! Explains how a document got, or did not get, into the index.
//!
//! In: a path as typed, and a version. Out: the document, its rule, its outcome, its chunks with the commits that inserted them;
//! or the reason why there is no document, and similar paths.
//!
//! **Invariant:** the answer says which path it explains: the path inside the source, and how the typed path was read.

mod absent;
mod paths;

pub use paths::Taken;

use super::{IntroducedIn, SearchError, Searcher, Selected, document_of, introduced, placed_entries};
use crate::index::Given;
use crate::store::{SourceKind, SourceRecord};
use absent::Around;
use dataflows::data::{Card, Cleaned, Document, DocumentPath, Lines, NoSyntax, Outcome};
use dataflows::memo::Memo;
use dataflows::rules::Rules;
use paths::candidates;
use snapshots::Ordinal;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The explanation of a path in one version.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The version.
    pub at: Selected,
    /// The path inside the source.
    pub path: DocumentPath,
    /// How the typed path was read.
    pub taken: Taken,
    /// The document, if there is one.
    pub document: Option<Document>,
    /// The reason why there is none.
    pub reason: Option<String>,
    /// Similar paths, if there is none.
    pub near: Vec<DocumentPath>,
    /// The rule of the path: its name, cleaner and chunker.
    pub rule: [String; 3],
    /// The reason why the text was cut without its syntax, if its rule asks for syntax.
    pub without_syntax: Option<NoSyntax>,
    /// The encoding of the document's bytes, and the evidence for it.
    pub encoding: Option<(String, &'static str)>,
    /// Its chunks, in order.
    pub chunks: Vec<ExplainedChunk>,
}

/// A chunk of the document.
#[derive(Clone, Debug)]
pub struct ExplainedChunk {
    /// Its lines.
    pub lines: Lines,
    /// Its card.
    pub card: Card,
    /// Whether it has a vector: `present`, `missing`, or why it has none.
    pub vector: &'static str,
    /// The commit that inserted it.
    pub introduced_in: Option<IntroducedIn>,
}

impl Explanation {
    /// Returns the name of the path's outcome, with the reason.
    #[must_use]
    pub fn outcome(&self) -> (&'static str, Option<String>) {
        match self.document.as_ref().map(|document| &document.outcome) {
            None => ("absent", self.reason.clone()),
            Some(Outcome::Indexed { .. }) => ("indexed", None),
            Some(Outcome::Skipped(reason)) => ("skipped", Some(reason.as_str().to_owned())),
            Some(Outcome::Fault { stage, error }) => ("fault", Some(format!("{stage}: {error}"))),
        }
    }
}

/// Explains `asked`, typed in `folder`, in a version; nothing if it leads out of the source.
///
/// # Errors
/// If the store cannot be read.
pub fn explain(
    searcher: &Searcher,
    rules: &Arc<Rules>,
    selected: &Selected,
    asked: &OsStr,
    folder: &Path,
) -> Result<Option<Explanation>, SearchError> {
    let reader = searcher.reader();
    let source = searcher.revisions().sources().iter().find(|(id, _)| *id == selected.source).map(|(_, record)| record);
    let repository = source.and_then(|record| searcher.revisions().repository(record));
    let root = source.and_then(|record| root(record, repository.as_ref().and_then(|git| git.work_tree().ok())));
    let candidates = candidates(asked, folder, root.as_deref());
    let Some(first) = candidates.first() else { return Ok(None) };
    let alive = reader.with_archive(|archive| archive.bitmaps(selected.version))?;
    let mut found = None;
    for (taken, path) in &candidates {
        if let Some(placed) = document_of(reader, &alive.documents, path)? {
            found = Some((*taken, placed.document));
            break;
        }
    }
    let (mut reason, mut near) = (None, Vec::new());
    if found.is_none() {
        let around = Around::read(reader, &alive.documents)?;
        let twin = |(taken, path): &(Taken, DocumentPath)| Some((*taken, around.twin(path)?.clone()));
        found = candidates.iter().find_map(twin);
        if found.is_none() {
            let path = &on_disk(&candidates, root.as_deref()).unwrap_or(first).1;
            reason =
                source.map(|record| around.reason(path, record, repository.as_ref(), reader.layout().root(), rules));
            near = around.near(path);
        }
    }
    let (taken, path) = match &found {
        Some((taken, document)) => (*taken, document.path.clone()),
        None => on_disk(&candidates, root.as_deref()).unwrap_or(first).clone(),
    };
    let rule = rules.rule(rules.for_path(&path));
    let cleaned = found.as_ref().and_then(|(_, document)| reader.memo().cleaned(rules.document_id(document)));
    let encoding = cleaned.and_then(encoding);
    let rule = [rule.name(), rule.cleaner(), rule.chunker()].map(str::to_owned);
    let document = found.map(|(_, document)| document);
    let chunks =
        document.as_ref().map(|document| chunks(searcher, selected, document)).transpose()?.unwrap_or_default();
    let without_syntax = document.as_ref().and_then(|document| match &document.outcome {
        Outcome::Indexed { chunking, .. } => reader.memo().chunks(*chunking)?.no_syntax(),
        _ => None,
    });
    Ok(Some(Explanation {
        at: selected.clone(),
        path,
        taken,
        document,
        reason,
        near,
        rule,
        without_syntax,
        encoding,
        chunks,
    }))
}

/// Returns the encoding of a cleaned content, and the evidence for it.
fn encoding(cleaned: Cleaned) -> Option<(String, &'static str)> {
    match cleaned {
        Cleaned::Text { .. } => Some(("utf-8".to_owned(), "its bytes are that")),
        Cleaned::Converted { from, .. } => Some((from.encoding, from.by.as_str())),
        Cleaned::Skipped(_) | Cleaned::Fault(_) => None,
    }
}

/// Returns the folder from which a source's paths count, if it has one.
fn root(source: &SourceRecord, work_tree: Option<PathBuf>) -> Option<PathBuf> {
    match source.kind {
        SourceKind::Git => work_tree,
        SourceKind::Directory if !source.location.is_empty() => {
            // The location may be a link.
            let place = Path::new(OsStr::from_bytes(&source.location));
            Some(place.canonicalize().unwrap_or_else(|_| place.to_owned()))
        }
        SourceKind::Directory | SourceKind::Trace => None,
    }
}

/// Returns the candidate that exists on disk.
fn on_disk<'a>(candidates: &'a [(Taken, DocumentPath)], root: Option<&Path>) -> Option<&'a (Taken, DocumentPath)> {
    let stands = |path: &DocumentPath| {
        root.is_some_and(|root| root.join(OsStr::from_bytes(path.as_bytes())).symlink_metadata().is_ok())
    };
    candidates.iter().find(|(_, path)| stands(path))
}

fn chunks(searcher: &Searcher, selected: &Selected, document: &Document) -> Result<Vec<ExplainedChunk>, SearchError> {
    let reader = searcher.reader();
    let placed = placed_entries(reader, document)?;
    let ordinals = reader.catalogue().entry_ordinals(placed.iter().map(|placed| placed.entry.id()))?;
    let ordinals: Vec<Ordinal> = ordinals.into_iter().flatten().collect();
    let introduced = introduced(reader, selected, &ordinals)?;
    let mut explained = Vec::with_capacity(placed.len());
    for ((placed, introduced_in), ordinal) in placed.into_iter().zip(introduced).zip(ordinals) {
        let vector = match reader.vector_of(ordinal)? {
            Given::Vector(_) => "present",
            Given::NoVector => "none: no word that the model knows",
            Given::Owed(_) => "missing",
        };
        explained.push(ExplainedChunk { lines: placed.lines, vector, card: placed.card, introduced_in });
    }
    Ok(explained)
}

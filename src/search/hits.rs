//! Turns ordinals into hits, with all data of a result.
//!
//! In: ranked ordinals of a view. Out: hits with text, path, lines, symbol and the commit that introduced them.

use super::SearchError;
use super::lines::{document_of, lines_of};
use super::ranked::Ranks;
use super::revision::Selected;
use crate::index::{IndexReader, ReaderError};
use crate::store::EntryRecord;
use dataflows::data::{Card, ChunkKind, Document, DocumentPath, Lines};
use dataflows::memo::Memo;
use rustc_hash::FxHashMap;
use snapshots::{CommitId, Introduced, Ordinal};
use std::collections::hash_map::Entry as MapEntry;

/// A found entry, before its text is read.
#[derive(Clone, Debug)]
pub struct Found {
    /// The entry.
    pub ordinal: Ordinal,
    /// The score of its ranking.
    pub score: f32,
    /// Its places in the lists.
    pub ranks: Ranks,
    /// Whether it is weak: it has no word of the query, and a low cosine.
    pub weak: bool,
    /// What the score is made of, each part with its points; empty where a list's own score counts.
    pub points: Vec<(&'static str, f32)>,
}

impl Found {
    /// Returns an entry without any data.
    pub(super) fn new(ordinal: Ordinal) -> Self {
        Self { ordinal, score: 0.0, ranks: Ranks::default(), weak: false, points: Vec::new() }
    }
}

/// The commit that inserted an entry into a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntroducedIn {
    /// This very commit.
    Commit(CommitId),
    /// This commit or an earlier one: the log does not reach further back.
    Before(CommitId),
}

impl std::fmt::Display for IntroducedIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Commit(commit) => commit.fmt(f),
            Self::Before(commit) => write!(f, "before:{commit}"),
        }
    }
}

/// One hit.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The entry.
    pub entry: Ordinal,
    /// From 1.
    pub rank: usize,
    /// The score of its ranking.
    pub score: f32,
    /// The source that holds it.
    pub source: String,
    /// Its path.
    pub path: DocumentPath,
    /// With `fold`: every path of the same text in the searched versions that passes the filter, this one first.
    pub paths: Vec<DocumentPath>,
    /// Its lines in the searched version.
    pub lines: Option<Lines>,
    /// The kind of text that it belongs to.
    pub kind: ChunkKind,
    /// Its card.
    pub card: Card,
    /// The commit that inserted it into this line of history.
    pub introduced_in: Option<IntroducedIn>,
    /// The text.
    pub text: String,
    /// Its places in the lists, where they count towards the score.
    pub ranks: Ranks,
    /// Whether it is weak: it has no word of the query, and a low cosine.
    pub weak: bool,
    /// What the score is made of, each part with its points; empty where a list's own score counts.
    pub points: Vec<(&'static str, f32)>,
}

/// Returns for each ordinal the commit that inserted it into the line of history of a selected version.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn introduced(
    reader: &IndexReader,
    selected: &Selected,
    ordinals: &[Ordinal],
) -> Result<Vec<Option<IntroducedIn>>, SearchError> {
    reader.with_archive(|archive| {
        let commit = |version| archive.version(version).map(|version| version.commit);
        let introduced = archive.introduced(selected.version, ordinals)?;
        Ok(introduced
            .into_iter()
            .map(|introduced| match introduced {
                Introduced::At(version) => commit(version).map(IntroducedIn::Commit),
                Introduced::Before(version) => commit(version).map(IntroducedIn::Before),
                _ => None,
            })
            .collect())
    })
}

/// Reads the hits of found entries; an entry of two sources is a hit in each, unless identical texts are deduplicated.
pub(super) fn read(
    reader: &IndexReader,
    selected: &[Selected],
    found: &[Found],
    fold: bool,
) -> Result<Vec<Hit>, SearchError> {
    let mut hits = Vec::with_capacity(found.len());
    let records = reader.catalogue().entries_with_cards(found.iter().map(|found| found.ordinal))?;
    let ordinals: Vec<Ordinal> = found.iter().map(|found| found.ordinal).collect();
    let mut sources = Vec::with_capacity(selected.len());
    for selected in selected {
        let alive = reader.with_archive(|archive| archive.bitmaps(selected.version)).map_err(ReaderError::from)?;
        sources.push((selected, alive, introduced(reader, selected, &ordinals)?));
    }
    let (mut documents, memo) = (Documents::default(), reader.memo());
    for (position, (found, (record, card))) in found.iter().zip(&records).enumerate() {
        for (number, (selected, alive, introduced)) in sources.iter().enumerate() {
            if !alive.entries.contains(found.ordinal.get()) {
                continue;
            }
            let Some(text) = memo.text(record.entry.text) else {
                memo.check()?;
                continue;
            };
            hits.push(Hit {
                entry: found.ordinal,
                rank: 0,
                score: found.score,
                source: selected.source_name.clone(),
                path: record.entry.path.clone(),
                paths: Vec::new(),
                lines: documents.lines(reader, number, &alive.documents, record)?,
                kind: card.kind,
                card: card.clone(),
                introduced_in: introduced[position],
                text,
                ranks: found.ranks.clone(),
                weak: found.weak,
                points: found.points.clone(),
            });
            if fold {
                break;
            }
        }
    }
    Ok(hits)
}

/// The documents of the hits by source and path: hits often share one.
#[derive(Default)]
struct Documents(FxHashMap<(usize, DocumentPath), Option<Document>>);

impl Documents {
    fn lines(
        &mut self,
        reader: &IndexReader,
        source: usize,
        documents: &roaring::RoaringBitmap,
        record: &EntryRecord,
    ) -> Result<Option<Lines>, ReaderError> {
        let key = (source, record.entry.path.clone());
        let document = match self.0.entry(key) {
            MapEntry::Occupied(known) => known.into_mut(),
            MapEntry::Vacant(new) => {
                let placed = document_of(reader, documents, &record.entry.path)?;
                new.insert(placed.map(|placed| placed.document))
            }
        };
        document.as_ref().map_or(Ok(None), |document| lines_of(reader, document, &record.entry))
    }
}

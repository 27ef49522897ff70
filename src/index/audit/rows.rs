//! Checks the rows of the catalogue and their results by computing each again.
//!
//! In: the ordinals that versions reach. Out: the data of each entry for the other checks, and findings.
//!
//! **Invariant:** a row counts as known only if its identity leads back to its ordinal. Texts, cards and identities are hashed
//! again, tokens counted again; a document's chunk list must give exactly the entries that its versions move.

use super::{AGAIN, EXAMPLES, Finding, chain};
use crate::index::lexical;
use crate::store::{Catalogue, Database, StoreError, StoreMemo};
use dataflows::data::{Document, DocumentPath, EmbedInput, EntryId, ModelId, Outcome, TextHash, place};
use dataflows::memo::{Chunked, Memo};
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use snapshots::{Archive, Bitmaps, Changes, Ordinal, Tokens};

/// The kept data of an entry's row.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) id: EntryId,
    pub(super) input: EmbedInput,
    pub(super) tokens: Tokens<u32>,
}

/// The rows that were found.
pub(super) struct Rows {
    entries: FxHashMap<u32, Row>,
    catalogue: Catalogue,
}

/// Ordinals by problem.
#[derive(Default)]
struct Tally(Vec<(&'static str, &'static str, RoaringBitmap)>);

impl Tally {
    fn add(&mut self, part: &'static str, problem: &'static str, ordinal: u32) {
        match self.0.iter_mut().find(|(_, known, _)| *known == problem) {
            Some((_, _, ordinals)) => {
                ordinals.insert(ordinal);
            }
            None => self.0.push((part, problem, RoaringBitmap::from([ordinal]))),
        }
    }
}

impl Rows {
    /// Reads and checks every row that versions reach.
    pub(super) fn check(
        database: &Database,
        model: ModelId,
        archive: &Archive,
        reached: &Bitmaps,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut rows = Self { entries: FxHashMap::default(), catalogue: database.catalogue() };
        let memo = database.memo(model);
        let mut tally = Tally::default();
        for ordinal in &reached.entries {
            rows.check_entry(ordinal, &memo, &mut tally, findings);
        }
        for (part, problem, ordinals) in tally.0 {
            findings.extend(rows.finding(part, problem, AGAIN, &ordinals));
        }
        let mut tally = Tally::default();
        let mut of_document = FxHashMap::default();
        for ordinal in &reached.documents {
            if let Some(entries) = rows.check_document(ordinal, &memo, &mut tally, findings) {
                of_document.insert(ordinal, entries);
            }
        }
        for (part, problem, ordinals) in tally.0 {
            let mut finding = Finding::new(part, problem, AGAIN);
            finding.count = ordinals.len();
            let documents = ordinals.iter().filter_map(|ordinal| rows.catalogue.document(Ordinal::new(ordinal)).ok());
            finding.paths = paths(documents.map(|document| document.path));
            findings.push(finding);
        }
        rows.check_moves(archive, &of_document, findings);
        match database.lost_numbers() {
            Ok(lost) => {
                let finding =
                    |what: &str| Finding::new("catalogue", format!("{what} are not found by their number"), AGAIN);
                findings.extend(lost.into_iter().map(|(what, count)| Finding { count, ..finding(what) }));
            }
            Err(error) => findings.push(Finding::new("catalogue", chain(&error), AGAIN)),
        }
        match database.odd_columns() {
            Ok(0) => {}
            Ok(count) => {
                let finding = Finding::new("catalogue", "what filters look at differs from the rows of entries", AGAIN);
                findings.push(Finding { count, ..finding });
            }
            Err(error) => findings.push(Finding::new("catalogue", chain(&error), AGAIN)),
        }
        if let Err(error) = memo.check() {
            findings.push(Finding::new("results", chain(&error), AGAIN));
        }
        rows
    }

    fn check_entry(&mut self, ordinal: u32, memo: &StoreMemo, tally: &mut Tally, findings: &mut Vec<Finding>) {
        let (record, named) = match self.catalogue.entry_with_card(Ordinal::new(ordinal)) {
            Ok(row) => row,
            Err(error) => return note(&error, ordinal, "entries have no row", tally, findings),
        };
        let (text, id) = (record.entry.text, record.entry.id());
        if !matches!(self.catalogue.entry_ordinal(id), Ok(Some(found)) if found.get() == ordinal) {
            return tally.add("catalogue", "entries are not found by their identity", ordinal);
        }
        let row = Row { id, input: named.embed_input(text), tokens: record.tokens };
        self.entries.insert(ordinal, row);
        let Some(content) = memo.text(text) else {
            return tally.add("results", "entries have no text", ordinal);
        };
        if TextHash::of(&content) != text {
            tally.add("results", "texts are not what their names say", ordinal);
        } else if Tokens::from(lexical::count_tokens(&content, &lexical::searched_name(&named))) != record.tokens {
            tally.add("catalogue", "token counts are not those of the text and name", ordinal);
        }
    }

    /// Returns the entries of a document, if they are known.
    fn check_document(
        &self,
        ordinal: u32,
        memo: &StoreMemo,
        tally: &mut Tally,
        findings: &mut Vec<Finding>,
    ) -> Option<Vec<u32>> {
        let document = match self.catalogue.document(Ordinal::new(ordinal)) {
            Ok(document) => document,
            Err(error) => {
                note(&error, ordinal, "documents have no row", tally, findings);
                return None;
            }
        };
        if !matches!(self.catalogue.document_ordinal(&document), Ok(Some(found)) if found.get() == ordinal) {
            tally.add("catalogue", "documents are not found by their identity", ordinal);
            return None;
        }
        let Document { path, outcome, .. } = &document;
        let Outcome::Indexed { chunking, module, labels } = outcome else { return Some(Vec::new()) };
        let list = memo.chunks(*chunking);
        let Some(chunks) = list.as_deref().and_then(Chunked::chunks) else {
            tally.add("results", "documents have no chunk list", ordinal);
            return None;
        };
        let ids = place(path, module, labels, chunks).map(|placed| placed.entry.id());
        let entries = self.catalogue.entry_ordinals(ids).ok().and_then(|found| found.into_iter().collect());
        let Some(entries): Option<Vec<Ordinal>> = entries else {
            tally.add("results", "documents' chunk lists give entries that were never stored", ordinal);
            return None;
        };
        Some(entries.into_iter().map(Ordinal::get).collect())
    }

    /// Checks that each kept version moves exactly the entries of the documents that it moves, since the last kept one.
    fn check_moves(&self, archive: &Archive, of_document: &FxHashMap<u32, Vec<u32>>, findings: &mut Vec<Finding>) {
        for version in archive.kept() {
            let Ok(Changes { entries, documents }) = archive.changes_since_kept(version.id) else { continue };
            let mut moved: FxHashMap<u32, i32> = FxHashMap::default();
            let mut is_known = true;
            for (documents, change) in [(&documents.inserted, 1), (&documents.retracted, -1)] {
                for document in documents {
                    match of_document.get(&document) {
                        Some(entries) => entries.iter().for_each(|&entry| *moved.entry(entry).or_default() += change),
                        None => is_known = false,
                    }
                }
            }
            entries.inserted.iter().for_each(|entry| *moved.entry(entry).or_default() -= 1);
            entries.retracted.iter().for_each(|entry| *moved.entry(entry).or_default() += 1);
            let odd: RoaringBitmap = moved.into_iter().filter(|(_, rest)| *rest != 0).map(|(entry, _)| entry).collect();
            if is_known {
                let problem = "versions move entries that are not those of the documents they move";
                let finding = self.finding("log", problem, AGAIN, &odd);
                findings.extend(finding.map(|finding| Finding { version: Some(version.id), ..finding }));
            }
        }
    }

    /// Returns the data of an entry.
    pub(super) fn entry(&self, ordinal: Ordinal) -> Option<&Row> {
        self.entries.get(&ordinal.get())
    }

    /// Returns the catalogue.
    pub(super) const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns every entry that was found.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, &Row)> {
        self.entries.iter().map(|(ordinal, row)| (*ordinal, row))
    }

    /// Returns the finding about these entries, if there are any.
    pub(super) fn finding(
        &self,
        part: &'static str,
        problem: &'static str,
        next: &'static str,
        ordinals: &RoaringBitmap,
    ) -> Option<Finding> {
        let records = ordinals.iter().filter_map(|ordinal| self.catalogue.entry(Ordinal::new(ordinal)).ok());
        let finding = Finding::new(part, problem, next);
        let paths = paths(records.map(|record| record.entry.path));
        (!ordinals.is_empty()).then(|| Finding { count: ordinals.len(), paths, ..finding })
    }
}

/// Returns the first few distinct paths.
fn paths(all: impl Iterator<Item = DocumentPath>) -> Vec<DocumentPath> {
    let mut paths = Vec::new();
    for path in all {
        if !paths.contains(&path) {
            paths.push(path);
        }
        if paths.len() == EXAMPLES {
            break;
        }
    }
    paths
}

/// Counts a missing row, and reports any other failure with its own message.
fn note(error: &StoreError, ordinal: u32, missing: &'static str, tally: &mut Tally, findings: &mut Vec<Finding>) {
    match error {
        StoreError::Lost { table: "entries" | "documents", .. } => tally.add("catalogue", missing, ordinal),
        StoreError::Lost { .. } => tally.add("catalogue", "rows name what is not there by number", ordinal),
        StoreError::Damaged { .. } => tally.add("catalogue", "rows cannot be decoded", ordinal),
        error => {
            let finding = Finding::new("catalogue", chain(error), AGAIN);
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
}

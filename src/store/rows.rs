//! Converts the catalogue's rows to values, and back.
//!
//! In: packed rows, or entries with their cards, and documents. Out: the other.
//!
//! **Invariant:** reading gives exactly what was written. A number without a row is an error that names its table. A wrong number
//! gives an entry of another identity, which the look-up by identity does not return; so a check detects it.
//!
//! Neighbours mostly share path and place, so each of these is looked up once in a sequence.

use super::packing::{
    PackedDocument, PackedEntry, PackedOutcome, Place, head_and_place, pack_document, pack_head, pack_place,
    unpack_document, unpack_entry, unpack_place,
};
use super::records::EntryRecord;
use super::tables::Opened;
use super::texts::TextHashes;
use super::{CodecError, StoreError};
use dataflows::data::{Card, ChunkingId, Document, DocumentPath, Entry, Outcome};
use heed::{RoTxn, RwTxn};

/// Reads rows within one transaction.
pub(super) struct RowReader<'t> {
    tables: &'t Opened,
    txn: &'t RoTxn<'t>,
    hashes: TextHashes<'t>,
    path: Option<(u32, DocumentPath)>,
    place: Option<(u32, Place)>,
}

impl<'t> RowReader<'t> {
    pub(super) fn new(tables: &'t Opened, txn: &'t RoTxn<'t>) -> Self {
        Self { tables, txn, hashes: TextHashes::new(tables.texts.hashes), path: None, place: None }
    }

    /// Returns the entry of a row, with its card.
    pub(super) fn entry(&mut self, row: &[u8]) -> Result<(EntryRecord, Card), StoreError> {
        let entries = &self.tables.entries;
        let row = unpack_entry(row).ok_or_else(|| entries.damaged(CodecError::not("an entry")))?;
        let PackedEntry { path, head, place, text, occurrence, tokens } = row;
        let card = self.tables.head(self.txn, head)?.card(self.place(place)?);
        let text = self.hashes.get(self.txn, text)?;
        let entry = Entry { path: self.path(path)?, card: card.hash(), text, occurrence };
        Ok((EntryRecord { entry, tokens }, card))
    }

    /// Returns the number of the path of an entry's row.
    pub(super) fn path_of_entry(&self, row: &[u8]) -> Result<u32, StoreError> {
        let entries = &self.tables.entries;
        Ok(unpack_entry(row).ok_or_else(|| entries.damaged(CodecError::not("an entry")))?.path)
    }

    /// Returns the document of a row.
    pub(super) fn document(&mut self, row: &[u8]) -> Result<Document, StoreError> {
        let row = unpack_document(row).map_err(|source| self.tables.documents.damaged(source))?;
        let PackedDocument { path, content, outcome } = row;
        let (outcome, charset) = match outcome {
            PackedOutcome::Told { charset, outcome } => (*outcome, Some(charset)),
            outcome => (outcome, None),
        };
        let outcome = match outcome {
            PackedOutcome::Indexed { chunking, place } => {
                let Place { module, labels, .. } = self.place(place)?;
                Outcome::Indexed { chunking: ChunkingId::from_bytes(chunking), module, labels }
            }
            PackedOutcome::Skipped(reason) => Outcome::Skipped(reason),
            PackedOutcome::Fault { stage, error } => Outcome::Fault { stage, error },
            PackedOutcome::Told { .. } => {
                return Err(self.tables.documents.damaged(CodecError::not("a document")));
            }
        };
        Ok(Document { path: self.path(path)?, content, outcome, charset })
    }

    fn path(&mut self, number: u32) -> Result<DocumentPath, StoreError> {
        let paths = &self.tables.paths;
        shared(&mut self.path, number, || paths.value(self.txn, number).map(DocumentPath::new))
    }

    fn place(&mut self, number: u32) -> Result<Place, StoreError> {
        let places = &self.tables.places;
        shared(&mut self.place, number, || {
            unpack_place(places.value(self.txn, number)?).map_err(|source| places.values.damaged(source))
        })
    }
}

/// Returns the value of a number: the last one again, or the result of `look`.
fn shared<T: Clone>(
    last: &mut Option<(u32, T)>,
    number: u32,
    look: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match last {
        Some((known, value)) if *known == number => Ok(value.clone()),
        _ => Ok(last.insert((number, look()?)).1.clone()),
    }
}

/// Packs rows within one transaction, and assigns the numbers that they need.
#[derive(Default)]
pub(super) struct RowWriter {
    path: Option<(DocumentPath, u32)>,
    place: Option<(Place, u32)>,
}

impl RowWriter {
    /// Returns the row of an entry, whose text is stored already.
    pub(super) fn entry(
        &mut self,
        tables: &Opened,
        txn: &mut RwTxn<'_>,
        record: &EntryRecord,
        card: &Card,
    ) -> Result<PackedEntry, StoreError> {
        let EntryRecord { entry, tokens } = record;
        let (head, place) = head_and_place(card);
        let text = tables.texts.number(txn, entry.text)?.ok_or_else(|| tables.texts.rows.lost(entry.text))?;
        Ok(PackedEntry {
            path: self.path(tables, txn, &entry.path)?,
            head: tables.heads.number(txn, &pack_head(&head))?,
            place: self.place(tables, txn, place)?,
            text,
            occurrence: entry.occurrence,
            tokens: *tokens,
        })
    }

    /// Packs the row of a document; returns it after the number of its path.
    pub(super) fn document(
        &mut self,
        tables: &Opened,
        txn: &mut RwTxn<'_>,
        document: &Document,
    ) -> Result<(u32, Vec<u8>), StoreError> {
        let path = self.path(tables, txn, &document.path)?;
        let place = place_of(document).map(|place| self.place(tables, txn, place)).transpose()?;
        Ok((path, pack(document, path, place.unwrap_or_default())))
    }

    fn path(&mut self, tables: &Opened, txn: &mut RwTxn<'_>, path: &DocumentPath) -> Result<u32, StoreError> {
        match &self.path {
            Some((known, number)) if known == path => Ok(*number),
            _ => Ok(self.path.insert((path.clone(), tables.paths.number(txn, path.as_bytes())?)).1),
        }
    }

    fn place(&mut self, tables: &Opened, txn: &mut RwTxn<'_>, place: Place) -> Result<u32, StoreError> {
        match &self.place {
            Some((known, number)) if *known == place => Ok(*number),
            _ => {
                let number = tables.places.number(txn, &pack_place(&place))?;
                Ok(self.place.insert((place, number)).1)
            }
        }
    }
}

/// Returns the row that a document would have, after the number of its path, if all numbers exist.
pub(super) fn row_of(
    tables: &Opened,
    txn: &RoTxn<'_>,
    document: &Document,
) -> Result<Option<(u32, Vec<u8>)>, StoreError> {
    let Some(path) = tables.paths.find(txn, document.path.as_bytes())? else { return Ok(None) };
    let place = match place_of(document) {
        Some(place) => match tables.places.find(txn, &pack_place(&place))? {
            Some(place) => place,
            None => return Ok(None),
        },
        None => 0,
    };
    Ok(Some((path, pack(document, path, place))))
}

/// Returns the number of the path of a document's row.
pub(super) fn path_of_document(tables: &Opened, row: &[u8]) -> Result<u32, StoreError> {
    unpack_document(row).map(|row| row.path).map_err(|source| tables.documents.damaged(source))
}

/// Returns the place of a document's chunks, if it has any.
fn place_of(document: &Document) -> Option<Place> {
    match &document.outcome {
        Outcome::Indexed { module, labels, .. } => Some(Place {
            folder: String::from_utf8_lossy(document.path.folder()).into_owned(),
            module: module.clone(),
            labels: labels.clone(),
        }),
        Outcome::Skipped(_) | Outcome::Fault { .. } => None,
    }
}

fn pack(document: &Document, path: u32, place: u32) -> Vec<u8> {
    let outcome = match &document.outcome {
        Outcome::Indexed { chunking, .. } => PackedOutcome::Indexed { chunking: chunking.to_bytes(), place },
        Outcome::Skipped(reason) => PackedOutcome::Skipped(*reason),
        Outcome::Fault { stage, error } => PackedOutcome::Fault { stage: *stage, error: error.clone() },
    };
    let outcome = match document.charset {
        Some(charset) => PackedOutcome::Told { charset, outcome: Box::new(outcome) },
        None => outcome,
    };
    pack_document(&PackedDocument { path, content: document.content, outcome })
}

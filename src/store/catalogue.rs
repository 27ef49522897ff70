//! Maps ordinals to entries and documents, and holds sources, views and receipts.
//!
//! In: rows, inside a publish's transaction. Out: the same rows, by ordinal or by identity.
//!
//! **Invariant:** an identity has at most one ordinal at a time, and an ordinal one identity, for ever: an entry that comes back
//! gets its old ordinal, or a new one if its row was collected meanwhile. Rows beyond the version log's last ordinal belong to an
//! unfinished publish. A row does not prove that the indexes have the entry: they do for entries of kept versions, and a publish
//! ensures it for those it names.

use super::columns::blocks;
use super::mapped::Mapped;
use super::numbering::number_of;
use super::packing::{PackedEntry, pack_entry, unpack_entry};
use super::records::{EntryRecord, Receipt, SourceRecord, ViewRecord, receipt_from};
use super::rows::{RowReader, RowWriter, path_of_document, row_of};
use super::tables::{Table, Tables};
use super::{CodecError, StoreError, WriteTransaction};
use dataflows::data::{Card, Document, DocumentPath, EntryId, Hasher};
use roaring::RoaringBitmap;
use snapshots::{Bitmaps, Epoch, Ordinal, SourceId, Tokens, ViewId};
use std::cmp::Ordering;

/// Entries and documents by ordinal, sources, views and receipts.
#[derive(Clone)]
pub struct Catalogue {
    mapped: Mapped,
}

impl Catalogue {
    pub(super) const fn new(mapped: Mapped) -> Self {
        Self { mapped }
    }

    pub(super) fn tables(&self) -> Result<Tables, StoreError> {
        self.mapped.tables()
    }

    /// Returns the ordinal that an entry has or had.
    ///
    /// # Errors
    /// If the database fails.
    pub fn entry_ordinal(&self, id: EntryId) -> Result<Option<Ordinal>, StoreError> {
        let tables = self.tables()?;
        Ok(tables.entry_ids.get(&*tables.read()?, id.to_bytes())?.map(Ordinal::new))
    }

    /// Returns the ordinals of many entries, in one read transaction.
    ///
    /// # Errors
    /// If the database fails.
    pub fn entry_ordinals(&self, ids: impl Iterator<Item = EntryId>) -> Result<Vec<Option<Ordinal>>, StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        ids.map(|id| Ok(tables.entry_ids.get(&txn, id.to_bytes())?.map(Ordinal::new))).collect()
    }

    /// Returns the entry of an ordinal.
    ///
    /// # Errors
    /// If the database fails or has no such row.
    pub fn entry(&self, ordinal: Ordinal) -> Result<EntryRecord, StoreError> {
        Ok(self.entry_with_card(ordinal)?.0)
    }

    /// Returns the entry of an ordinal, with its card.
    ///
    /// # Errors
    /// As [`Self::entry`].
    pub fn entry_with_card(&self, ordinal: Ordinal) -> Result<(EntryRecord, Card), StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        RowReader::new(&tables, &txn).entry(row(&tables.entries, &txn, ordinal)?)
    }

    /// Returns the entries of many ordinals, in one read transaction.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn entries(&self, ordinals: impl Iterator<Item = Ordinal>) -> Result<Vec<EntryRecord>, StoreError> {
        Ok(self.entries_with_cards(ordinals)?.into_iter().map(|(record, _)| record).collect())
    }

    /// Returns the entries of many ordinals, each with its card, in one read transaction.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn entries_with_cards(
        &self,
        ordinals: impl Iterator<Item = Ordinal>,
    ) -> Result<Vec<(EntryRecord, Card)>, StoreError> {
        let mut entries = Vec::new();
        self.for_each_entry(ordinals, |_, record, card| entries.push((record.clone(), card.clone())))?;
        Ok(entries)
    }

    /// Calls `look` with the entries of many ordinals and their cards, in one read transaction.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn for_each_entry(
        &self,
        ordinals: impl Iterator<Item = Ordinal>,
        mut look: impl FnMut(Ordinal, &EntryRecord, &Card),
    ) -> Result<(), StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        let mut rows = RowReader::new(&tables, &txn);
        for ordinal in ordinals {
            let (record, card) = rows.entry(row(&tables.entries, &txn, ordinal)?)?;
            look(ordinal, &record, &card);
        }
        Ok(())
    }

    /// Returns the number of each ordinal's text, in one read transaction: entries have the same one if and only if their texts
    /// are equal.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn text_numbers(&self, ordinals: impl Iterator<Item = Ordinal>) -> Result<Vec<u32>, StoreError> {
        let tables = self.tables()?;
        let (entries, txn) = (&tables.entries, tables.read()?);
        let number = |ordinal| {
            let row = unpack_entry(row(entries, &txn, ordinal)?);
            Ok(row.ok_or_else(|| entries.damaged(CodecError::not("an entry")))?.text)
        };
        ordinals.map(number).collect()
    }

    /// Returns which of two entries comes first by (path, identity).
    ///
    /// Reads two rows and, if they differ, two paths. Identities are computed from cards and texts, which takes longer, so they
    /// are compared within a path only.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn compare(&self, left: Ordinal, right: Ordinal) -> Result<Ordering, StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        let rows = [row(&tables.entries, &txn, left)?, row(&tables.entries, &txn, right)?];
        let mut reader = RowReader::new(&tables, &txn);
        let [left_path, right_path] = [reader.path_of_entry(rows[0])?, reader.path_of_entry(rows[1])?];
        if left_path != right_path {
            let paths = &tables.paths;
            return Ok(paths.value(&txn, left_path)?.cmp(paths.value(&txn, right_path)?));
        }
        Ok(reader.entry(rows[0])?.0.entry.id().cmp(&reader.entry(rows[1])?.0.entry.id()))
    }

    /// Returns the ordinal that a document's row has or had.
    ///
    /// # Errors
    /// If the database fails.
    pub fn document_ordinal(&self, document: &Document) -> Result<Option<Ordinal>, StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        let Some((path, row)) = row_of(&tables, &txn, document)? else { return Ok(None) };
        Ok(tables.document_ids.get::<u32>(&txn, &document_key(path, &row))?.map(Ordinal::new))
    }

    /// Returns the document of an ordinal.
    ///
    /// # Errors
    /// If the database fails or has no such row.
    pub fn document(&self, ordinal: Ordinal) -> Result<Document, StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        RowReader::new(&tables, &txn).document(row(&tables.documents, &txn, ordinal)?)
    }

    /// Returns the documents of many ordinals, in one read transaction.
    ///
    /// # Errors
    /// If the database fails or lacks one of the rows.
    pub fn documents(&self, ordinals: impl Iterator<Item = Ordinal>) -> Result<Vec<Document>, StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        let mut rows = RowReader::new(&tables, &txn);
        ordinals.map(|ordinal| rows.document(row(&tables.documents, &txn, ordinal)?)).collect()
    }

    /// Returns every row that a path ever had, in the order of insertion.
    ///
    /// # Errors
    /// If the database fails.
    pub fn documents_at(&self, path: &DocumentPath) -> Result<Vec<Ordinal>, StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        let Some(path) = tables.paths.find(&txn, path.as_bytes())? else { return Ok(Vec::new()) };
        let mut ordinals: Vec<u32> = tables.document_ids.all_with(&txn, &path.to_be_bytes())?;
        ordinals.sort_unstable();
        Ok(ordinals.into_iter().map(Ordinal::new).collect())
    }

    /// Returns the ordinal after the largest one that an entry has.
    ///
    /// # Errors
    /// If the database fails.
    pub fn next_entry(&self) -> Result<u32, StoreError> {
        let tables = self.tables()?;
        next(&tables.entries, &*tables.read()?)
    }

    /// Returns the ordinal after the largest one of a document.
    ///
    /// # Errors
    /// If the database fails.
    pub fn next_document(&self) -> Result<u32, StoreError> {
        let tables = self.tables()?;
        next(&tables.documents, &*tables.read()?)
    }

    /// Returns how many entries and how many documents have a row.
    ///
    /// # Errors
    /// If the database fails.
    pub fn counts(&self) -> Result<(u64, u64), StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        Ok((tables.entries.len(&txn)?, tables.documents.len(&txn)?))
    }

    /// Writes entries under new ordinals, each with its card. Their texts are stored already.
    ///
    /// # Errors
    /// If the disk is full, or a text is not stored.
    pub fn put_entries<'a>(
        &self,
        to: &mut WriteTransaction<'_>,
        entries: impl Iterator<Item = (Ordinal, &'a EntryRecord, &'a Card)>,
    ) -> Result<(), StoreError> {
        let tables = to.1.clone();
        let (mut rows, mut ids, mut columns) = (RowWriter::default(), Vec::new(), Vec::new());
        for (ordinal, record, card) in entries {
            let row = rows.entry(&tables, &mut to.0, record, card)?;
            tables.entries.put_bytes(&mut to.0, &key(ordinal), &pack_entry(&row))?;
            ids.push((record.entry.id().to_bytes(), ordinal.get()));
            columns.push((ordinal.get(), [row.path, row.head, row.place]));
        }
        tables.entry_ids.put_all(&mut to.0, ids)?;
        blocks::put(&tables, &mut to.0, columns)
    }

    /// Writes documents' rows under new ordinals.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn put_documents<'a>(
        &self,
        to: &mut WriteTransaction<'_>,
        documents: impl Iterator<Item = (Ordinal, &'a Document)>,
    ) -> Result<(), StoreError> {
        let tables = to.1.clone();
        let mut rows = RowWriter::default();
        for (ordinal, document) in documents {
            let (path, row) = rows.document(&tables, &mut to.0, document)?;
            tables.documents.put_bytes(&mut to.0, &key(ordinal), &row)?;
            tables.document_ids.put(&mut to.0, &document_key(path, &row), &ordinal.get())?;
        }
        Ok(())
    }

    /// Writes the token counts of entries into their rows; nothing else of a row changes.
    ///
    /// # Errors
    /// If the disk is full, or a row is missing.
    pub fn put_tokens(
        &self,
        to: &mut WriteTransaction<'_>,
        counted: &[(Ordinal, Tokens<u32>)],
    ) -> Result<(), StoreError> {
        let entries = to.1.entries;
        for (ordinal, tokens) in counted {
            let packed = unpack_entry(row(&entries, &to.0, *ordinal)?);
            let packed = packed.ok_or_else(|| entries.damaged(CodecError::not("an entry")))?;
            entries.put_bytes(&mut to.0, &key(*ordinal), &pack_entry(&PackedEntry { tokens: *tokens, ..packed }))?;
        }
        Ok(())
    }

    /// Removes the rows of these entries and documents, and their look-ups; returns how many there were of each. No look-up
    /// returns an ordinal without a row again: an entry that comes back gets a new one.
    ///
    /// # Errors
    /// If the database fails.
    pub fn remove(
        &self,
        to: &mut WriteTransaction<'_>,
        entries: impl Iterator<Item = Ordinal>,
        documents: impl Iterator<Item = Ordinal>,
    ) -> Result<(u64, u64), StoreError> {
        let tables = to.1.clone();
        let (mut removed_entries, mut removed_documents) = (0, 0);
        for ordinal in entries {
            if let Some(row) = tables.entries.bytes(&to.0, &key(ordinal))? {
                let id = RowReader::new(&tables, &to.0).entry(row)?.0.entry.id();
                tables.entries.remove(&mut to.0, &key(ordinal))?;
                tables.entry_ids.remove(&mut to.0, id.to_bytes())?;
                removed_entries += 1;
            }
        }
        for ordinal in documents {
            if let Some(row) = tables.documents.bytes(&to.0, &key(ordinal))? {
                let id = document_key(path_of_document(&tables, row)?, row);
                tables.documents.remove(&mut to.0, &key(ordinal))?;
                tables.document_ids.remove(&mut to.0, &id)?;
                removed_documents += 1;
            }
        }
        Ok((removed_entries, removed_documents))
    }

    /// Returns the ordinals of all entries and of all documents with a row.
    ///
    /// # Errors
    /// If the database fails.
    pub fn ordinals(&self) -> Result<Bitmaps, StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        let of = |table: &super::tables::Table| {
            let mut ordinals = RoaringBitmap::new();
            table.each(&txn, |key, _| {
                ordinals.extend(number_of(key));
                Ok(true)
            })?;
            Ok::<_, StoreError>(ordinals)
        };
        Ok(Bitmaps { entries: of(&tables.entries)?, documents: of(&tables.documents)? })
    }

    /// Returns every source, in the order in which they were first tracked.
    ///
    /// # Errors
    /// If the database fails.
    pub fn sources(&self) -> Result<Vec<(SourceId, SourceRecord)>, StoreError> {
        let tables = self.tables()?;
        let rows = tables.sources.all(&*tables.read()?)?;
        Ok(rows.into_iter().filter_map(|(key, row)| Some((SourceId::new(number_of(&key)?), row))).collect())
    }

    /// Returns every view, in the order in which they were first tracked.
    ///
    /// # Errors
    /// If the database fails.
    pub fn views(&self) -> Result<Vec<(ViewId, ViewRecord)>, StoreError> {
        let tables = self.tables()?;
        let rows = tables.views.all(&*tables.read()?)?;
        Ok(rows.into_iter().filter_map(|(key, row)| Some((ViewId::new(number_of(&key)?), row))).collect())
    }

    /// Writes a source's row.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn put_source(
        &self,
        to: &mut WriteTransaction<'_>,
        id: SourceId,
        record: &SourceRecord,
    ) -> Result<(), StoreError> {
        let tables = to.1.clone();
        tables.sources.put(&mut to.0, &id.get().to_be_bytes(), record)
    }

    /// Writes a view's row.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn put_view(&self, to: &mut WriteTransaction<'_>, id: ViewId, record: &ViewRecord) -> Result<(), StoreError> {
        let tables = to.1.clone();
        tables.views.put(&mut to.0, &id.get().to_be_bytes(), record)
    }

    /// Writes the receipt of an epoch.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn put_receipt(
        &self,
        to: &mut WriteTransaction<'_>,
        epoch: Epoch,
        receipt: &Receipt,
    ) -> Result<(), StoreError> {
        let tables = to.1.clone();
        tables.receipts.put(&mut to.0, &epoch.get().to_be_bytes(), receipt)
    }

    /// Returns the receipt of an epoch, if it is known.
    ///
    /// # Errors
    /// If the database fails.
    pub fn receipt(&self, epoch: Epoch) -> Result<Option<Receipt>, StoreError> {
        let tables = self.tables()?;
        let txn = tables.read()?;
        tables.receipts.bytes(&txn, &epoch.get().to_be_bytes())?.map(|bytes| read_receipt(&tables, bytes)).transpose()
    }

    /// Adds to the last receipt that texts were given to the model once more, outside any epoch.
    ///
    /// # Errors
    /// Where the disk is full, or the receipt is damaged.
    pub fn add_retried(&self, to: &mut WriteTransaction<'_>, retried: u64) -> Result<(), StoreError> {
        let tables = to.1.clone();
        let Some((key, bytes)) = tables.receipts.last(&to.0)? else { return Ok(()) };
        let (key, mut receipt) = (key.to_vec(), read_receipt(&tables, bytes)?);
        receipt.retried += retried;
        tables.receipts.put(&mut to.0, &key, &receipt)
    }

    /// Returns every receipt, in the order of epochs.
    ///
    /// # Errors
    /// If the database fails.
    pub fn receipts(&self) -> Result<Vec<Receipt>, StoreError> {
        let tables = self.tables()?;
        let mut receipts = Vec::new();
        tables.receipts.each(&*tables.read()?, |_, bytes| {
            receipts.push(read_receipt(&tables, bytes)?);
            Ok(true)
        })?;
        Ok(receipts)
    }
}

fn read_receipt(tables: &Tables, bytes: &[u8]) -> Result<Receipt, StoreError> {
    receipt_from(bytes).map_err(|source| tables.receipts.damaged(source))
}

const fn key(ordinal: Ordinal) -> [u8; 4] {
    ordinal.get().to_be_bytes()
}

/// Returns the row of an ordinal.
fn row<'t>(table: &Table, txn: &'t heed::RoTxn<'_>, ordinal: Ordinal) -> Result<&'t [u8], StoreError> {
    table.bytes(txn, &key(ordinal))?.ok_or_else(|| table.lost(ordinal.get()))
}

fn next(table: &Table, txn: &heed::RoTxn<'_>) -> Result<u32, StoreError> {
    Ok(table.last(txn)?.and_then(|(key, _)| number_of(key)).map_or(0, |last| last + 1))
}

/// Returns the key of a document's row: its path's number first, so that the rows of a path are adjacent.
fn document_key(path: u32, row: &[u8]) -> [u8; 20] {
    let mut key = [0; 20];
    key[..4].copy_from_slice(&path.to_be_bytes());
    key[4..].copy_from_slice(&EntryId::from_words(Hasher::new("document row").part(row).finish()).to_bytes());
    key
}

#[cfg(test)]
mod tests;

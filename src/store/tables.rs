//! The tables of the database, with their keys and values.
//!
//! In and out: bytes, by table. Keys are identities (sixteen bytes, already hashes, so their order means nothing) or ordinals and
//! numbers (four bytes, big endian, so that the last row is the largest).
//!
//! **Invariant:** a row is written once, but for counts that grow and for where a vector is. Results and catalogue rows are
//! never changed in place; what is written again is the same. What no kept version needs is removed, and comes back under the same key if it is ever made again.

use super::dictionaries::Dictionaries;
use super::identities::Identities;
use super::layout::io;
use super::numbering::Numbering;
use super::seen::Seen;
use super::texts::Texts;
use super::unlocked::{Holds, Pin, Reading, Rights, Watched, make_files};
use super::vectors::Vectors;
use super::{CodecError, StoreError, WriteTransaction, codec};
use crate::resources;
use heed::types::Bytes;
use heed::{CompactionOption, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::{Bound, Deref};
use std::path::Path;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Address space reserved for the map. The file grows only with the data; unused address space costs nothing, and a map that
/// never grows while in use needs no agreement between processes.
///
/// If that much is refused (a limit on address space; 128 GiB in all under valgrind), less is tried.
const MAP_BYTES: [usize; 5] = [256 << 30, 64 << 30, 16 << 30, 4 << 30, 1 << 30];
/// Most tables, with room for new ones.
const MAX_TABLES: u32 = 48;
/// Most open read transactions of all processes together.
const MAX_READERS: u32 = 510;

pub(super) type Env = heed::Env<WithoutTls>;
/// The rows of a table in LMDB.
pub(super) type Rows = heed::Database<Bytes, Bytes>;
/// A row in the map: its key and its bytes.
type Row<'t> = (&'t [u8], &'t [u8]);
/// Rows of a table in the order of keys.
pub(super) struct RowsFrom<'t>(heed::RoRange<'t, Bytes, Bytes>);

impl<'t> RowsFrom<'t> {
    /// Returns the next row.
    pub(super) fn next(&mut self) -> Result<Option<Row<'t>>, StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a table", source };
        self.0.next().transpose().map_err(failed)
    }
}

/// One table, with its name for messages.
#[derive(Clone, Copy)]
pub(super) struct Table {
    name: &'static str,
    rows: Rows,
}

/// The open environment and its tables; clones share both.
#[derive(Clone)]
pub(super) struct Tables(Arc<Opened>);

impl Deref for Tables {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

impl Tables {
    pub(super) fn new(opened: Opened) -> Self {
        Self(Arc::new(opened))
    }

    /// Opens the environment in `folder`, which no other code in this process uses.
    #[cfg(test)]
    pub(super) fn open(folder: &Path, is_writer: bool) -> Result<Self, StoreError> {
        Opened::open(folder, is_writer, Arc::default()).map(|(opened, _)| Self::new(opened))
    }

    /// As [`Self::open`], for a process with these permissions.
    #[cfg(test)]
    pub(super) fn open_as(folder: &Path, rights: Rights) -> Result<Self, StoreError> {
        Opened::open_as(folder, rights, Arc::default()).map(|(opened, _)| Self::new(opened))
    }

    /// Returns the open tables, if this is the last handle on them.
    pub(super) fn into_opened(self) -> Result<Opened, Self> {
        Arc::try_unwrap(self.0).map_err(Self)
    }

    /// Begins the transaction of one publish.
    pub(super) fn begin(&self) -> Result<WriteTransaction<'_>, StoreError> {
        Ok(WriteTransaction(self.write()?, self.clone()))
    }
}

/// The open environment and its tables.
pub(super) struct Opened {
    env: Env,
    /// `DocumentId` → `Cleaned`.
    pub(super) cleaned: Table,
    /// Texts, by number and by hash.
    pub(super) texts: Texts,
    /// `ChunkingId` → chunk list, with its heads and texts by number.
    pub(super) chunks: Table,
    /// Heads.
    pub(super) heads: Numbering,
    /// Places.
    pub(super) places: Numbering,
    /// Paths, as bytes.
    pub(super) paths: Numbering,
    /// Where vectors are, by what they are of.
    pub(super) vectors: Vectors,
    /// ordinal → `PackedEntry`.
    pub(super) entries: Table,
    /// ordinal / 1024 → path, head and place of so many entries; none before a writer has created it.
    pub(super) columns: Option<Table>,
    /// `EntryId` → ordinal.
    pub(super) entry_ids: Identities,
    /// ordinal → `PackedDocument`.
    pub(super) documents: Table,
    /// number of the path, hash of the row → ordinal.
    pub(super) document_ids: Table,
    /// number → `SourceRecord`.
    pub(super) sources: Table,
    /// number → `ViewRecord`.
    pub(super) views: Table,
    /// epoch → `Receipt`.
    pub(super) receipts: Table,
    /// `log` → bytes of the version log before the last publish.
    pub(super) marks: Table,
    /// Recently read numbers.
    pub(super) seen: Arc<Seen>,
    /// The writer's protection of pages for readers that are in no table.
    pin: Option<Pin>,
    /// The hold of such a reader while it reads.
    holds: Option<Holds>,
}

impl Opened {
    /// Opens the environment in `folder`; a writer creates missing parts. Also returns whether the file ended before its last
    /// page.
    pub(super) fn open(folder: &Path, writer: bool, seen: Arc<Seen>) -> Result<(Self, bool), StoreError> {
        let rights = if writer { Rights::Write } else { Rights::of(folder) };
        Self::open_as(folder, rights, seen)
    }

    fn open_as(folder: &Path, rights: Rights, seen: Arc<Seen>) -> Result<(Self, bool), StoreError> {
        let writer = rights == Rights::Write;
        let failed = |source| StoreError::Database { attempt: "open", source };
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.max_dbs(MAX_TABLES).max_readers(MAX_READERS);
        if writer {
            make_files(folder)?;
        }
        let flags = match rights {
            Rights::Write | Rights::Data => EnvFlags::empty(),
            Rights::Locks => EnvFlags::READ_ONLY,
            Rights::Nothing => EnvFlags::READ_ONLY | EnvFlags::NO_LOCK,
        };
        let pin = if writer { Some(Pin::begin(Watched::open(folder)?)?) } else { None };
        let holds = if rights == Rights::Nothing { Some(Holds::new(Watched::open(folder)?)) } else { None };
        let is_too_much = |error: &heed::Error| {
            use std::io::ErrorKind::{InvalidInput, OutOfMemory};
            matches!(error, heed::Error::Io(error) if matches!(error.kind(), InvalidInput | OutOfMemory))
        };
        // A map that takes all addresses leaves none for the work.
        let limit = resources::addresses();
        let fits = |bytes: &usize| limit.is_none_or(|limit| *bytes as u64 + resources::OWN_ADDRESSES <= limit);
        let mut sizes = MAP_BYTES.into_iter().filter(fits).chain(MAP_BYTES.last().copied());
        // The one place outside the FAISS module that needs it: mapping a file is unsafe, because another process could truncate
        // the file. Ours never do: the writer holds the lock, and readers only read.
        #[expect(unsafe_code, reason = "heed offers no safe way to map a file")]
        // SAFETY: the environment is opened once per process through `Mapped`, and every process changes its file only through
        // LMDB. Without LMDB's locks it is only read, under a hold that keeps the writer from reusing pages.
        let mut map = |bytes| unsafe { options.flags(flags).map_size(bytes).open(folder) };
        let mut opened = map(sizes.next().unwrap_or(MAP_BYTES[0]));
        for bytes in sizes {
            if opened.as_ref().err().is_some_and(is_too_much) {
                opened = map(bytes);
            }
        }
        let env = opened.map_err(|error| match error {
            heed::Error::Io(source) => io("open the database in", folder)(source),
            source => failed(source),
        })?;
        let was_short = is_short(&env)?;
        if was_short {
            if !writer {
                return Err(StoreError::Cut { path: env.path().to_owned() });
            }
            lengthen(&env)?;
        }
        if !writer {
            // So that killed readers take no slot from living ones. A reader without the permission leaves it to the writer.
            let _ = env.clear_stale_readers();
        }
        let mut write = if writer { Some(env.write_txn().map_err(failed)?) } else { None };
        if let Some(pin) = &pin {
            pin.look(&env)?;
        }
        let read = if writer { None } else { Some(begin_to_read(&env, holds.as_ref())?) };
        let mut find = |name: &'static str| -> Result<Option<Table>, StoreError> {
            let rows = match (&mut write, &read) {
                (Some(write), _) => Some(env.create_database(write, Some(name)).map_err(failed)?),
                (None, Some(read)) => env.open_database(read, Some(name)).map_err(failed)?,
                (None, None) => unreachable!("one of the two transactions was begun above"),
            };
            Ok(rows.map(|rows| Table { name, rows }))
        };
        let columns = find("columns")?;
        let mut open = |name: &'static str| -> Result<Table, StoreError> {
            find(name)?.ok_or_else(|| StoreError::Lost { table: name, key: "of any kind".to_owned() })
        };
        let mut opened = Self {
            cleaned: open("cleaned")?,
            texts: Texts {
                rows: open("text_rows")?,
                cleaned: open("cleaned_texts")?,
                hashes: open("text_hashes")?,
                numbers: Identities { rows: open("text_numbers")? },
                dictionaries: Dictionaries::new(open("dictionaries")?),
            },
            chunks: open("chunks")?,
            heads: Numbering { values: open("heads")?, names: open("head_names")? },
            places: Numbering { values: open("places")?, names: open("place_names")? },
            paths: Numbering { values: open("paths")?, names: open("path_names")? },
            vectors: Vectors {
                inputs: Identities { rows: open("vector_inputs")? },
                parked: open("parked_vectors")?,
                coverage: open("coverage")?,
                owed: open("owed_vectors")?,
            },
            entries: open("entries")?,
            columns,
            entry_ids: Identities { rows: open("entry_ids")? },
            documents: open("documents")?,
            document_ids: open("document_ids")?,
            sources: open("sources")?,
            views: open("views")?,
            receipts: open("receipts")?,
            marks: open("marks")?,
            seen,
            env: env.clone(),
            pin,
            holds: None,
        };
        match (write, read) {
            (Some(write), _) => write.commit().map_err(failed)?,
            // A table that a read transaction opened lasts only if that transaction is committed.
            (None, Some(read)) => read.commit().map_err(failed)?,
            (None, None) => {}
        }
        opened.holds = holds;
        Ok((opened, was_short))
    }

    /// Writes the data to another file, without free pages.
    pub(super) fn copy_to(&self, file: &Path) -> Result<std::fs::File, StoreError> {
        let failed = |source| StoreError::Database { attempt: "write the file anew", source };
        self.env.copy_to_path(file, CompactionOption::Enabled).map_err(failed)
    }

    /// Begins a read transaction (snapshot isolation), cheap, to be held for moments only.
    pub(super) fn read(&self) -> Result<Reading<'_>, StoreError> {
        begin_to_read(&self.env, self.holds.as_ref())
    }

    /// Returns a table of another format, if there is one.
    pub(super) fn other(&self, name: &str) -> Result<Option<Rows>, StoreError> {
        let txn = self.write()?;
        let rows = self.other_in(&txn, name)?;
        txn.commit().map_err(|source| StoreError::Database { attempt: "open a table", source })?;
        Ok(rows)
    }

    /// As [`Self::other`], inside a transaction, to be used in that one only.
    pub(super) fn other_in(&self, txn: &RwTxn<'_>, name: &str) -> Result<Option<Rows>, StoreError> {
        let failed = |source| StoreError::Database { attempt: "open a table", source };
        self.env.open_database(txn, Some(name)).map_err(failed)
    }

    /// Creates a table of another format, or returns the existing one.
    #[cfg(test)]
    pub(super) fn make_other(&self, name: &str) -> Rows {
        let mut txn = self.env.write_txn().unwrap();
        let rows = self.env.create_database(&mut txn, Some(name)).unwrap();
        txn.commit().unwrap();
        rows
    }

    /// Begins the write transaction; waits while another thread has one.
    pub(super) fn write(&self) -> Result<RwTxn<'_>, StoreError> {
        // The slot of a killed reader keeps its pages from being reused. Checking the slots takes some microseconds.
        let cleared = self.env.clear_stale_readers();
        cleared.map_err(|source| StoreError::Database { attempt: "look for readers that ended", source })?;
        let begun =
            self.env.write_txn().map_err(|source| StoreError::Database { attempt: "begin to write", source })?;
        if let Some(pin) = &self.pin {
            pin.look(&self.env)?;
        }
        Ok(begun)
    }

    /// Returns the folder of the database's file.
    pub(super) fn folder(&self) -> &Path {
        self.env.path()
    }

    /// Returns every table that there is.
    pub(super) fn all(&self) -> Vec<Table> {
        let tables = [
            self.cleaned,
            self.texts.rows,
            self.texts.cleaned,
            self.texts.hashes,
            self.texts.numbers.rows,
            self.texts.dictionaries.rows,
            self.chunks,
            self.heads.values,
            self.heads.names,
            self.places.values,
            self.places.names,
            self.paths.values,
            self.paths.names,
            self.vectors.inputs.rows,
            self.vectors.parked,
            self.vectors.coverage,
            self.vectors.owed,
            self.entries,
            self.entry_ids.rows,
            self.documents,
            self.document_ids,
            self.sources,
            self.views,
            self.receipts,
            self.marks,
        ];
        tables.into_iter().chain(self.columns).collect()
    }

    /// Returns the bytes of the pages that each table takes.
    pub(super) fn table_bytes(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let failed = |source| StoreError::Database { attempt: "measure a table", source };
        let txn = self.read()?;
        let bytes = |table: Table| {
            let stat = table.rows.stat(&txn).map_err(failed)?;
            let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
            Ok((table.name, (pages * stat.page_size as usize) as u64))
        };
        self.all().into_iter().map(bytes).collect()
    }

    /// Extends the file to the end of its pages, so that no reader takes it for a truncated one.
    ///
    /// Pages at the end that a transaction took and freed are never written; that is rare.
    pub(super) fn lengthen(&self) -> Result<(), StoreError> {
        if is_short(&self.env)? { lengthen(&self.env) } else { Ok(()) }
    }

    /// Returns the bytes of the file.
    pub(super) fn disk_bytes(&self) -> Result<u64, StoreError> {
        self.env.real_disk_size().map_err(|source| StoreError::Database { attempt: "measure the file", source })
    }
}

/// Begins a read transaction, under a hold if this process is in no table.
fn begin_to_read<'a>(env: &'a Env, holds: Option<&'a Holds>) -> Result<Reading<'a>, StoreError> {
    let hold = holds.map(Holds::take).transpose()?;
    let begun = env.read_txn().map_err(|source| StoreError::Database { attempt: "begin to read", source })?;
    Ok(Reading::new(begun, hold))
}

/// Returns the bytes of the file's pages, if all exist.
fn page_bytes(env: &Env) -> u64 {
    (env.info().last_page_number as u64 + 1) * u64::from(env.stat().page_size)
}

/// Returns whether the file ends before its last page: reading that page would end the process.
fn is_short(env: &Env) -> Result<bool, StoreError> {
    let size = env.real_disk_size().map_err(|source| StoreError::Database { attempt: "measure the file", source })?;
    Ok(size < page_bytes(env))
}

/// Fills a truncated file with zeros. LMDB rejects a page of zeros, so access to a lost page gives an error.
fn lengthen(env: &Env) -> Result<(), StoreError> {
    // No other process writes while this transaction is open, so the file does not grow between measuring and filling.
    let held = env.write_txn().map_err(|source| StoreError::Database { attempt: "begin to write", source })?;
    let path = env.path().join("data.mdb");
    if is_short(env)? {
        let file = std::fs::OpenOptions::new().write(true).open(&path);
        let filled = file.and_then(|file| file.set_len(page_bytes(env)));
        filled.map_err(|source| StoreError::Io { attempt: "lengthen", path, source })?;
    }
    held.abort();
    Ok(())
}

impl Table {
    /// Makes a table of rows of another format.
    pub(super) const fn old(name: &'static str, rows: Rows) -> Self {
        Self { name, rows }
    }

    /// Returns its name.
    #[cfg(test)]
    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns how many rows there are.
    pub(super) fn len(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        self.rows.len(txn).map_err(|source| StoreError::Database { attempt: "count the rows of a table", source })
    }

    /// Returns a row's bytes.
    pub(super) fn bytes<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<&'t [u8]>, StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a row", source };
        self.rows.get(txn, key).map_err(failed)
    }

    /// Returns a row, decoded.
    pub(super) fn get<T: DeserializeOwned>(&self, txn: &RoTxn<'_>, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.bytes(txn, key)?.map(|bytes| codec::decode(bytes).map_err(|source| self.damaged(source))).transpose()
    }

    /// Returns every row in the order of keys.
    pub(super) fn all<T: DeserializeOwned>(&self, txn: &RoTxn<'_>) -> Result<Vec<(Vec<u8>, T)>, StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a table", source };
        let mut rows = Vec::new();
        for row in self.rows.iter(txn).map_err(failed)? {
            let (key, bytes) = row.map_err(failed)?;
            rows.push((key.to_vec(), codec::decode(bytes).map_err(|source| self.damaged(source))?));
        }
        Ok(rows)
    }

    /// Calls `look` with each row in key order, until it returns false.
    pub(super) fn each(
        &self,
        txn: &RoTxn<'_>,
        mut look: impl FnMut(&[u8], &[u8]) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a table", source };
        for row in self.rows.iter(txn).map_err(failed)? {
            let (key, bytes) = row.map_err(failed)?;
            if !look(key, bytes)? {
                break;
            }
        }
        Ok(())
    }

    /// Calls `look` with each row from key `first` on, as [`Self::each`] does.
    pub(super) fn each_from(
        &self,
        txn: &RoTxn<'_>,
        first: &[u8],
        mut look: impl FnMut(&[u8], &[u8]) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a table", source };
        for row in self.rows.range(txn, &(Bound::Included(first), Bound::Unbounded)).map_err(failed)? {
            let (key, bytes) = row.map_err(failed)?;
            if !look(key, bytes)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the rows from that of `first` on.
    pub(super) fn rows_from<'t>(&self, txn: &'t RoTxn<'_>, first: &[u8]) -> Result<RowsFrom<'t>, StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a table", source };
        self.rows.range(txn, &(Bound::Included(first), Bound::Unbounded)).map(RowsFrom).map_err(failed)
    }

    /// Returns the rows whose keys begin with `prefix`, decoded, in the order of keys.
    pub(super) fn all_with<T: DeserializeOwned>(&self, txn: &RoTxn<'_>, prefix: &[u8]) -> Result<Vec<T>, StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a table", source };
        let rows = self.rows.prefix_iter(txn, prefix).map_err(failed)?;
        rows.map(|row| codec::decode(row.map_err(failed)?.1).map_err(|source| self.damaged(source))).collect()
    }

    /// Calls `look` with each row whose key begins with `prefix`, in the order of keys.
    pub(super) fn each_with(
        &self,
        txn: &RoTxn<'_>,
        prefix: &[u8],
        mut look: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a table", source };
        for row in self.rows.prefix_iter(txn, prefix).map_err(failed)? {
            let (key, bytes) = row.map_err(failed)?;
            look(key, bytes)?;
        }
        Ok(())
    }

    /// Returns the row of the largest key.
    pub(super) fn last<'t>(&self, txn: &'t RoTxn<'_>) -> Result<Option<Row<'t>>, StoreError> {
        self.rows.last(txn).map_err(|source| StoreError::Database { attempt: "read a table", source })
    }

    /// Returns the row of the largest key up to this one.
    pub(super) fn at_or_before<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<Row<'t>>, StoreError> {
        let failed = |source| StoreError::Database { attempt: "read a row", source };
        self.rows.get_lower_than_or_equal_to(txn, key).map_err(failed)
    }

    /// Writes a row as bytes.
    pub(super) fn put_bytes(&self, txn: &mut RwTxn<'_>, key: &[u8], bytes: &[u8]) -> Result<(), StoreError> {
        self.rows.put(txn, key, bytes).map_err(|source| StoreError::Database { attempt: "write a row", source })
    }

    /// Writes a row.
    pub(super) fn put<T: Serialize>(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &T) -> Result<(), StoreError> {
        self.put_bytes(txn, key, &codec::encode(value))
    }

    /// Removes a row, if it is there.
    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, key: &[u8]) -> Result<(), StoreError> {
        let failed = |source| StoreError::Database { attempt: "remove a row", source };
        self.rows.delete(txn, key).map(|_| ()).map_err(failed)
    }

    /// Wraps a codec error for a row of this table.
    pub(super) const fn damaged(&self, source: CodecError) -> StoreError {
        StoreError::Damaged { table: self.name, source }
    }

    /// Returns the error that no number is left for another row.
    pub(super) const fn full(&self) -> StoreError {
        StoreError::Full { table: self.name }
    }

    /// Returns the error of a missing row that must exist.
    pub(super) fn lost(&self, key: impl ToString) -> StoreError {
        StoreError::Lost { table: self.name, key: key.to_string() }
    }
}

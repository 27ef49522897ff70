//! Which entries can have no vector of a model, and why an entry that should have one has none yet.
//!
//! In: what a publish, or another attempt, found out. Out: bitmaps of ordinals, and reasons.
//!
//! ```text
//!  entries in scope ──┬─ has one            the vector files say so
//!                     ├─ can have none      a bitmap here, which only grows
//!                     └─ owed one           in neither: counted in answers, a fault in `status`, tried again
//! ```
//!
//! **Invariant:** an entry can have none if and only if the model knows no token of what is embedded for it, which never
//! changes. A reason is kept beside an owed entry for people; that an entry is owed follows from the other two alone.

use super::mapped::Mapped;
use super::numbering::number_of;
use super::tables::Table;
use super::vectors::MODEL_BYTES;
use super::{CodecError, StoreError, WriteTransaction};
use dataflows::data::ModelId;
use heed::RwTxn;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::collections::BTreeMap;

/// The longest reason that is kept, in bytes.
const REASON_BYTES: usize = 1000;

/// Which entries one model covers.
#[derive(Clone)]
pub struct Coverage {
    mapped: Mapped,
    model: [u8; MODEL_BYTES],
}

impl Coverage {
    pub(super) fn new(mapped: Mapped, model: ModelId) -> Self {
        Self { mapped, model: model.to_bytes() }
    }

    /// Returns the entries that can have no vector.
    ///
    /// # Errors
    /// Where the database fails, or a bitmap is damaged.
    pub fn without(&self) -> Result<RoaringBitmap, StoreError> {
        let tables = self.mapped.tables()?;
        let table = tables.vectors.coverage;
        let mut without = RoaringBitmap::new();
        table.each_with(&*tables.read()?, &self.model, |_, bytes| {
            without |= bitmap(bytes).ok_or_else(|| damaged(&table))?;
            Ok(())
        })?;
        Ok(without)
    }

    /// Takes note of entries that can have no vector.
    ///
    /// # Errors
    /// Where the disk is full.
    pub fn put_without(&self, to: &mut WriteTransaction<'_>, entries: &RoaringBitmap) -> Result<(), StoreError> {
        let table = to.1.vectors.coverage;
        put_without(&table, &mut to.0, self.model, entries.clone())
    }

    /// Returns the entries that are known to be owed a vector, each with the reason.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn owed(&self) -> Result<BTreeMap<u32, String>, StoreError> {
        let tables = self.mapped.tables()?;
        let mut owed = BTreeMap::new();
        tables.vectors.owed.each_with(&*tables.read()?, &self.model, |key, reason| {
            if let Some(ordinal) = number_of(&key[MODEL_BYTES..]) {
                owed.insert(ordinal, String::from_utf8_lossy(reason).into_owned());
            }
            Ok(())
        })?;
        Ok(owed)
    }

    /// Takes note of entries that are owed a vector, and why.
    ///
    /// # Errors
    /// Where the disk is full.
    pub fn put_owed<'a>(
        &self,
        to: &mut WriteTransaction<'_>,
        entries: impl IntoIterator<Item = (Ordinal, &'a str)>,
    ) -> Result<(), StoreError> {
        let table = to.1.vectors.owed;
        for (ordinal, reason) in entries {
            let most = reason.len().min(REASON_BYTES);
            let end = (0..=most).rev().find(|&at| reason.is_char_boundary(at)).unwrap_or(0);
            let reason = &reason[..end];
            table.put_bytes(&mut to.0, &self.key(ordinal.get()), reason.as_bytes())?;
        }
        Ok(())
    }

    /// Takes note that nothing is owed to these entries any more.
    ///
    /// # Errors
    /// Where the database fails.
    pub fn settle(&self, to: &mut WriteTransaction<'_>, entries: &RoaringBitmap) -> Result<(), StoreError> {
        let table = to.1.vectors.owed;
        entries.iter().try_for_each(|ordinal| table.remove(&mut to.0, &self.key(ordinal)))
    }

    fn key(&self, ordinal: u32) -> [u8; MODEL_BYTES + 4] {
        let mut key = [0; MODEL_BYTES + 4];
        key[..MODEL_BYTES].copy_from_slice(&self.model);
        key[MODEL_BYTES..].copy_from_slice(&ordinal.to_be_bytes());
        key
    }
}

fn damaged(table: &Table) -> StoreError {
    table.damaged(CodecError::not("a bitmap"))
}

/// Adds entries to those that can have no vector of a model.
pub(super) fn put_without(
    table: &Table,
    txn: &mut RwTxn<'_>,
    model: [u8; MODEL_BYTES],
    mut entries: RoaringBitmap,
) -> Result<(), StoreError> {
    while let Some(first) = entries.min() {
        let block = (first >> 16) as u16;
        let key = [&model[..], &block.to_be_bytes()].concat();
        let known = table.bytes(txn, &key)?.map(|bytes| bitmap(bytes).ok_or_else(|| damaged(table))).transpose()?;
        let mut of_block = known.unwrap_or_default();
        let (start, end) = (u32::from(block) << 16, u32::from(block) << 16 | 0xffff);
        of_block.extend(entries.range(start..=end));
        entries.remove_range(start..=end);
        let mut bytes = Vec::with_capacity(of_block.serialized_size());
        of_block.serialize_into(&mut bytes).expect("writing to memory does not fail");
        table.put_bytes(txn, &key, &bytes)?;
    }
    Ok(())
}

/// Returns the bitmap of a row; a row without bytes says only that the model is known.
fn bitmap(bytes: &[u8]) -> Option<RoaringBitmap> {
    if bytes.is_empty() { Some(RoaringBitmap::new()) } else { RoaringBitmap::deserialize_from(bytes).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Database, Layout};

    #[test]
    fn what_is_noted_of_one_model_is_read_and_no_other_model_knows_it() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        layout.create().unwrap();
        let database = Database::open_writer(&layout).unwrap();
        let models = [1, 2].map(|n| database.coverage(ModelId::from_words([n, 0])));
        let write = |change: &dyn Fn(&mut WriteTransaction<'_>)| {
            let mapping = database.mapping().unwrap();
            let mut transaction = mapping.write().unwrap();
            change(&mut transaction);
            transaction.commit().unwrap();
        };
        let parts: [RoaringBitmap; 2] = [[1, 65_535, 65_536, 9_000_000].into(), [2, 65_537, u32::MAX - 1].into()];
        for part in &parts {
            write(&|to| models[0].put_without(to, part).unwrap());
        }
        assert_eq!(models[0].without().unwrap(), &parts[0] | &parts[1]);
        assert!(models[1].without().unwrap().is_empty());

        let long = "é".repeat(REASON_BYTES);
        write(&|to| {
            models[0].put_owed(to, [(Ordinal::new(70_000), long.as_str()), (Ordinal::new(3), "it is away")]).unwrap();
            models[1].put_owed(to, [(Ordinal::new(4), "another")]).unwrap();
        });
        let owed = models[0].owed().unwrap();
        assert_eq!((owed.len(), owed[&3].as_str(), owed[&70_000].len()), (2, "it is away", REASON_BYTES));
        write(&|to| models[0].settle(to, &[3, 4].into()).unwrap());
        assert_eq!(models[0].owed().unwrap().into_keys().collect::<Vec<_>>(), [70_000]);
        assert_eq!(models[1].owed().unwrap().into_keys().collect::<Vec<_>>(), [4]);
    }
}

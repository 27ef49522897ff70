//! The live ordinals of a version, and the changes of a version.
//!
//! In: sets of ordinals, from the caller or packed as in the log. Out: the bitmaps of a version. **Invariant:** a delta is exact
//! against its base: it inserts ordinals that were dead and retracts ordinals that were live. So counts add up without a bitmap,
//! and the inverse delta undoes a delta.

use crate::codec::{self, CodecError, Reader};
use roaring::RoaringBitmap;

/// The ordinals that one version inserts and retracts against its base.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Delta {
    /// Inserted ordinals.
    pub inserted: RoaringBitmap,
    /// Retracted ordinals.
    pub retracted: RoaringBitmap,
}

impl Delta {
    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inserted.is_empty() && self.retracted.is_empty()
    }
}

/// Both deltas of a version.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Changes {
    /// Of entries.
    pub entries: Delta,
    /// Of document rows.
    pub documents: Delta,
}

impl Changes {
    /// Appends the four sets to `out` in the log's encoding.
    pub(crate) fn pack(&self, out: &mut Vec<u8>) {
        for delta in [&self.entries, &self.documents] {
            codec::put_set(out, &delta.inserted);
            codec::put_set(out, &delta.retracted);
        }
    }

    /// Reads the four sets of `packed`.
    pub(crate) fn unpack(packed: &[u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(packed);
        let mut set = || -> Result<RoaringBitmap, CodecError> {
            let mut bitmap = RoaringBitmap::new();
            reader.set(|run| {
                bitmap.insert_range(run);
            })?;
            Ok(bitmap)
        };
        let entries = Delta { inserted: set()?, retracted: set()? };
        let documents = Delta { inserted: set()?, retracted: set()? };
        Ok(Self { entries, documents })
    }
}

/// How many ordinals a version inserts and retracts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Inserted ordinals.
    pub inserted: u64,
    /// Retracted ordinals.
    pub retracted: u64,
}

/// All live ordinals of one version.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bitmaps {
    /// Ordinals of entries.
    pub entries: RoaringBitmap,
    /// Ordinals of document rows.
    pub documents: RoaringBitmap,
}

impl Bitmaps {
    /// Applies the packed changes of a version; returns whether they were exact.
    pub(crate) fn apply(&mut self, packed: &[u8]) -> Result<bool, CodecError> {
        let mut reader = Reader::new(packed);
        let mut exact = true;
        for bitmap in [&mut self.entries, &mut self.documents] {
            reader.set(|run| {
                let wanted = u64::from(run.end() - run.start()) + 1;
                let moved = if wanted == 1 { u64::from(bitmap.insert(*run.start())) } else { bitmap.insert_range(run) };
                exact &= moved == wanted;
            })?;
            reader.set(|run| {
                let wanted = u64::from(run.end() - run.start()) + 1;
                let moved = if wanted == 1 { u64::from(bitmap.remove(*run.start())) } else { bitmap.remove_range(run) };
                exact &= moved == wanted;
            })?;
        }
        Ok(exact)
    }

    /// Returns the serialised size of both bitmaps.
    pub(crate) fn serialized_size(&self) -> usize {
        self.entries.serialized_size() + self.documents.serialized_size()
    }
}

//! What a publish answers for: each entry that it names is in both indexes.
//!
//! In: the records of a publish, before they are logged. Out: both indexes with every entry that these name.
//!
//! ```text
//!  records ──► named entries ──┬─ no document ──► added again from its text, committed
//!                              └─ no vector ────► can it have one, and is it not owed? ──► found elsewhere, or embedded again
//!
//!  before the batch: a file went ──┬─ of vectors ──► written again from memory
//!                                  └─ of words ────► the lexical index is made again from the stored texts
//! ```
//!
//! **Invariant:** a row of the catalogue says what an entry is, and not that an index has it: a row that no kept version
//! reaches may have outlived files that were lost, since the next start mends what versions reach and nothing else. So what a
//! record names is looked up in the sets of what both indexes hold, at a cost that follows the delta, and what is missing is
//! made again from the database before the log names it.

use super::{ApplyError, IndexWriter, Mended, heal};
use crate::index::lexical::LexicalWriter;
use crate::store::WriteTransaction;
use roaring::RoaringBitmap;
use snapshots::Record;

impl IndexWriter {
    /// Takes the writer back with all files of both indexes in place: what was removed under a running writer is made again.
    ///
    /// Costs a look at the names in two folders where nothing is missing.
    ///
    /// # Errors
    /// Where files cannot be written again; the next start mends them.
    pub fn with_lost_files(mut self) -> Result<Self, ApplyError> {
        let written = self.vectors.write_lost()?;
        if written > 0 {
            tracing::warn!("{written} files of vectors were gone and are written again");
        }
        let Some(lost) = self.lexical.lost_file()? else { return Ok(self) };
        let place = self.lexical.folder().to_owned();
        let entries = self.lexical.held() & self.catalogue.ordinals()?.entries;
        self.lexical.give_up();
        heal::make_lexical(&place, &self.catalogue, &self.memo, &entries, self.next_entry.used())?;
        tracing::warn!(
            "the lexical index was made again from {} stored texts: {} was gone",
            entries.len(),
            lost.display()
        );
        Ok(Self { lexical: LexicalWriter::open_or_create(&place)?, ..self })
    }

    /// Makes both indexes hold each entry that a version of `records` is the first to name; an entry whose vector the model
    /// refuses is owed one.
    pub(super) fn answer_for(
        &mut self,
        records: &[Record],
        to: &mut WriteTransaction<'_>,
    ) -> Result<Mended, ApplyError> {
        let mut named = RoaringBitmap::new();
        for record in records {
            if let Record::Version(version) = record {
                named |= &version.changes.entries.inserted;
            }
        }
        let unknown = &named - &self.without_vector - &self.owed - self.vectors.held();
        let mended = match unknown.is_empty() {
            true => Mended::default(),
            false => self.mender.mend(&unknown, &mut self.vectors, to, true)?,
        };
        self.note(&mended);
        let words = named - self.lexical.held();
        if !words.is_empty() {
            heal::add_words(&self.catalogue, &self.memo, &words, &mut self.lexical)?;
            self.lexical.commit(self.next_entry.used())?;
        }
        if !mended.given.is_empty() || !words.is_empty() {
            let (words, vectors) = (words.len(), mended.given.len());
            tracing::warn!(
                "{words} texts and {vectors} vectors of entries that came back were missing and are there again"
            );
        }
        Ok(mended)
    }
}

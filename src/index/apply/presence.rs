//! Ensures that each entry named by a publish is in both indexes.
//!
//! In: the records of a publish, before they are logged. Out: both indexes with every entry that these name.
//!
//! ```text
//!  records ──► named entries ──┬─ no document ──► added again from its text, committed
//!                              └─ no vector ────► can it have one, and is it not owed? ──► found elsewhere, or embedded again
//!
//!  before the batch: a lost file ──┬─ of vectors ──► written again from memory
//!                                  └─ of words ────► the lexical index is rebuilt from the stored texts
//! ```
//!
//! **Invariant:** a catalogue row says what an entry is. It does not prove that an index has it: the next start repairs only what
//! versions reach, so a row outside of them may have survived lost files. So the publish looks up each entry of a record in the
//! sets of both indexes, at a cost that follows the delta, and rebuilds missing ones from the database before the log names them.

use super::{ApplyError, IndexWriter, Mended, heal};
use crate::index::lexical::LexicalWriter;
use crate::store::WriteTransaction;
use roaring::RoaringBitmap;
use snapshots::Record;

impl IndexWriter {
    /// Returns the writer with all files of both indexes in place: files that were removed under a running writer are rebuilt.
    ///
    /// If nothing is missing, the cost is listing two folders.
    ///
    /// # Errors
    /// If files cannot be written again; the next start repairs them.
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

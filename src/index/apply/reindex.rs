//! Rebuilds the lexical index from the stored texts, if it is damaged or another analyzer made it.
//!
//! In: the open parts of a store. Out: the same store, with every stored entry indexed and counted by this build's analyzer.
//!
//! ```text
//!  stored texts ─► lexical.new ─► tokens in the catalogue ─► tokens of all versions: one group of the log ─► lexical
//! ```
//!
//! **Invariant:** the new index replaces the old one last. While the old one is there, the next start repeats all of this;
//! repeating a step writes nothing. The entries of versions and their digests stay, so every snapshot answers as before, with
//! this analyzer's ranks. Tokens are counted from texts that match their hashes.
//!
//! For another analyzer, entries that no version reaches are indexed as well, because a publish may find them by identity; if the
//! text of one is gone, its row is removed.

use super::ApplyError;
use super::heal::{put_in_place, remove};
use crate::index::lexical::{LexicalWriter, WriterOptions, searched_name};
use crate::store::{Database, Gate, Layout, StoreError, StoreMemo};
use dataflows::data::TextHash;
use dataflows::memo::Memo;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use snapshots::{Archive, Ordinal, Tokens};
use std::path::Path;

/// Most rows of one transaction.
const TRANSACTION_ROWS: usize = if cfg!(test) { 7 } else { 8192 };

/// Reason for the rebuild.
pub(super) enum Reason {
    /// A part of it is lost.
    Damaged(String),
    /// It is intact, and another analyzer made it.
    OtherAnalyzer,
}

/// The result of counting all stored entries again.
#[derive(Default)]
struct Counted {
    tokens: FxHashMap<u32, Tokens<u32>>,
    /// Those with other counts in their rows.
    changed: Vec<(Ordinal, Tokens<u32>)>,
    /// Those whose text is gone.
    lost: Vec<Ordinal>,
}

/// Rebuilds the lexical index of a store and replaces the old one. The caller holds the writer's lock.
///
/// # Errors
/// [`StoreError::Reading`] if another analyzer made the index and a process reads it, because that would mix words and counts of
/// two analyzers. [`ApplyError::ResultGone`] if the text of an entry that a version reaches is lost.
pub(super) fn reindex(
    layout: &Layout,
    database: &Database,
    memo: &StoreMemo,
    archive: &mut Archive,
    reached: &RoaringBitmap,
    reason: &Reason,
) -> Result<(), ApplyError> {
    if matches!(reason, Reason::OtherAnalyzer) {
        drop(shut(layout)?);
        let path = layout.root().display();
        tracing::warn!(
            "indexing the texts of the store at {path} again, since words are found otherwise in this release"
        );
    }
    let (place, beside) = (layout.lexical(), layout.root().join("lexical.new"));
    let make = |entries: &RoaringBitmap| make(&beside, database, memo, archive, entries, reached);
    let mut counted = match reason {
        Reason::Damaged(_) => make(reached)?,
        Reason::OtherAnalyzer => Counted::default(),
    };
    // A damaged index cannot tell its analyzer, but the rows can.
    let is_other = matches!(reason, Reason::OtherAnalyzer) || !counted.changed.is_empty();
    if is_other {
        counted = make(&database.catalogue().ordinals()?.entries)?;
    }
    let gate = is_other.then(|| shut(layout)).transpose()?;
    write_rows(database, &counted)?;
    archive.recount(&|ordinal| counted.tokens.get(&ordinal.get()).copied())?;
    put_in_place(&beside, &place)?;
    drop(gate);
    let texts = counted.tokens.len();
    match reason {
        Reason::Damaged(reason) => {
            tracing::warn!("the lexical index was made again from {texts} stored texts: {reason}");
        }
        Reason::OtherAnalyzer => tracing::warn!("{texts} stored texts were indexed again"),
    }
    Ok(())
}

fn shut(layout: &Layout) -> Result<Gate, ApplyError> {
    Ok(Gate::shut(layout)?.ok_or_else(|| StoreError::Reading { path: layout.root().to_owned() })?)
}

/// Builds the index in `beside` from those of `entries` that have a text; all that a version reaches have one.
fn make(
    beside: &Path,
    database: &Database,
    memo: &StoreMemo,
    archive: &Archive,
    entries: &RoaringBitmap,
    reached: &RoaringBitmap,
) -> Result<Counted, ApplyError> {
    let catalogue = database.catalogue();
    remove(beside)?;
    let mut writer = LexicalWriter::open_with(beside, WriterOptions::bulk())?;
    let mut counted = Counted::default();
    for ordinal in entries.iter().map(Ordinal::new) {
        let (record, card) = catalogue.entry_with_card(ordinal)?;
        let text = memo.text(record.entry.text).filter(|text| TextHash::of(text) == record.entry.text);
        let Some(text) = text else {
            if reached.contains(ordinal.get()) {
                memo.check()?;
                return Err(ApplyError::ResultGone { what: "text", path: record.entry.path });
            }
            counted.lost.push(ordinal);
            continue;
        };
        let tokens = Tokens::from(writer.add(ordinal, &text, &searched_name(&card))?);
        counted.tokens.insert(ordinal.get(), tokens);
        if tokens != record.tokens {
            counted.changed.push((ordinal, tokens));
        }
    }
    writer.commit(archive.used_entries().max(catalogue.next_entry()?))?;
    writer.close()?;
    Ok(counted)
}

/// Writes the changed token counts into the rows, and removes the rows of entries without a text.
fn write_rows(database: &Database, counted: &Counted) -> Result<(), ApplyError> {
    let (catalogue, mapping) = (database.catalogue(), database.mapping()?);
    for part in counted.changed.chunks(TRANSACTION_ROWS) {
        let mut transaction = mapping.write()?;
        catalogue.put_tokens(&mut transaction, part)?;
        transaction.commit()?;
    }
    for part in counted.lost.chunks(TRANSACTION_ROWS) {
        let mut transaction = mapping.write()?;
        catalogue.remove(&mut transaction, part.iter().copied(), std::iter::empty())?;
        transaction.commit()?;
    }
    Ok(())
}

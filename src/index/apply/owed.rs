//! Vectors that entries lack and should have: asked of the model once more, as far as nothing else has them.
//!
//! In: entries of the catalogue. Out: their vectors, appended; what else was learned, written into a transaction.
//!
//! ```text
//!  entry ──► input ──► memo ──┬─ a vector that waits, or one that another entry has ──► appended
//!                             ├─ has none ─────────────────────────────────────────────► noted: can have none
//!                             └─ failed, lost, unknown ──► the model, in batches ──┬───► appended, or can have none
//!                                                                                  └───► owed, with the reason
//! ```
//!
//! **Invariant:** where a vector stands is written after the vector is durable, in the caller's transaction. Each call of the
//! model is counted as `retried`, in the same transaction. Entries that share an input are answered together.

use super::ApplyError;
use crate::index::vector::VectorWriter;
use crate::store::{Catalogue, Coverage, Kept, StoreError, StoreMemo, WriteTransaction};
use dataflows::data::{Card, EmbedInput, TextHash};
use dataflows::embed::{Embedder, Vector, embed_each};
use dataflows::memo::{Embedded, Keep, Memo};
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use snapshots::Ordinal;
use std::sync::Arc;

/// Texts that the model is given at once.
const BATCH: usize = 32;

/// What gives entries their vectors.
#[derive(Clone)]
pub(super) struct Mender {
    pub(super) catalogue: Catalogue,
    pub(super) coverage: Coverage,
    pub(super) memo: StoreMemo,
    pub(super) embedder: Arc<dyn Embedder>,
}

/// What became of entries that lacked their vectors.
#[derive(Default)]
pub(super) struct Mended {
    /// Those that have one now.
    pub(super) given: RoaringBitmap,
    /// Those that can have none.
    pub(super) without: RoaringBitmap,
    /// Those that are still owed one, and those whose row is gone.
    pub(super) owed: RoaringBitmap,
    /// Those that are in the catalogue no more.
    pub(super) gone: RoaringBitmap,
    /// Those whose text is gone.
    lost: Vec<Ordinal>,
    /// The inputs that are answered by now.
    answered: Vec<EmbedInput>,
    /// The inputs that are not, and why.
    refused: Vec<(EmbedInput, Embedded)>,
    /// Texts that were given to the model.
    pub(super) retried: u64,
    /// Whether the model refused every text of a batch: it is not asked for others then.
    pub(super) is_refused: bool,
}

impl Mended {
    /// Adds what became of others.
    pub(super) fn add(&mut self, other: Self) {
        self.given |= other.given;
        self.without |= other.without;
        self.owed |= other.owed;
        self.gone |= other.gone;
        self.retried += other.retried;
        self.is_refused |= other.is_refused;
    }
}

/// An input of some entries, and what is embedded for it.
struct Question {
    entries: Vec<Ordinal>,
    embedded: String,
}

/// An answer for an input: its vector, that it has none, or why there is no answer.
pub(super) type Answer = Result<Option<Vector>, String>;

impl Mender {
    /// Gives these entries their vectors as far as they can be had, without the model where it was refused just now; none of
    /// them is in `vectors`.
    ///
    /// Once `to` is committed, [`Self::committed`] takes note of it.
    pub(super) fn mend(
        &self,
        entries: &RoaringBitmap,
        vectors: &mut VectorWriter,
        to: &mut WriteTransaction<'_>,
        asks: bool,
    ) -> Result<Mended, ApplyError> {
        let mut mended = Mended { is_refused: !asks, ..Mended::default() };
        let (mut known, mut asked) = (FxHashMap::default(), FxHashMap::default());
        self.look(entries, vectors, &mut mended, &mut known, &mut asked)?;
        let mut answers: Vec<(EmbedInput, Vec<Ordinal>, Answer)> =
            known.into_iter().map(|(input, (entries, answer))| (input, entries, Ok(answer))).collect();
        let mut questions: Vec<(EmbedInput, Question)> = asked.into_iter().collect();
        // In an order that does not depend on a hash map.
        questions.sort_unstable_by_key(|(_, question)| question.entries.first().copied());
        for batch in questions.chunks(BATCH) {
            let answered = if mended.is_refused {
                vec![Err("the model refused all texts in front of it".to_owned()); batch.len()]
            } else {
                let texts: Vec<&str> = batch.iter().map(|(_, question)| question.embedded.as_str()).collect();
                let answered = embed_each(&*self.embedder, &texts);
                mended.retried += texts.len() as u64 + answered.retried;
                answered.vectors
            };
            mended.is_refused |= answered.iter().all(Result::is_err);
            let answered = batch.iter().zip(answered);
            answers.extend(answered.map(|((input, question), answer)| (*input, question.entries.clone(), answer)));
        }
        self.write(answers, &mut mended, vectors, to)?;
        Ok(mended)
    }

    /// Asks the model for one vector.
    pub(super) fn ask(&self, card: &Card, text: TextHash) -> Result<Answer, ApplyError> {
        let Some(text) = self.memo.text(text) else {
            self.memo.check()?;
            return Ok(Err("its text is missing from the database".to_owned()));
        };
        let answered = embed_each(&*self.embedder, &[&card.frame().around(&text)]);
        Ok(answered.vectors.into_iter().next().unwrap_or(Ok(None)))
    }

    /// Takes note that a transaction with what `mended` says is durable.
    pub(super) fn committed(&self, mended: &mut Mended) {
        self.memo.forget_faults(mended.answered.drain(..));
        // So that the graph does not ask for them beside the attempts that are counted.
        self.memo.put_embedded(std::mem::take(&mut mended.refused), Keep::WhileRunning);
    }

    /// Finds out what is known of the entries' inputs, and what must be asked.
    fn look(
        &self,
        entries: &RoaringBitmap,
        vectors: &VectorWriter,
        mended: &mut Mended,
        known: &mut FxHashMap<EmbedInput, (Vec<Ordinal>, Option<Vector>)>,
        asked: &mut FxHashMap<EmbedInput, Question>,
    ) -> Result<(), ApplyError> {
        for ordinal in entries.iter().map(Ordinal::new) {
            let (record, card) = match self.catalogue.entry_with_card(ordinal) {
                Err(StoreError::Lost { table: "entries", .. }) => {
                    mended.gone.insert(ordinal.get());
                    continue;
                }
                row => row?,
            };
            let text = record.entry.text;
            let frame = card.frame();
            let input = frame.input(text);
            if let Some((entries, _)) = known.get_mut(&input) {
                entries.push(ordinal);
                continue;
            }
            if let Some(question) = asked.get_mut(&input) {
                question.entries.push(ordinal);
                continue;
            }
            let answer = match self.memo.kept(input)? {
                Some(Kept::Vector(vector)) => Some(Some(vector)),
                Some(Kept::NoVector) => Some(None),
                Some(Kept::At(other)) => held(vectors, other)?.map(Some),
                Some(Kept::Fault(_)) | None => None,
            };
            if let Some(answer) = answer {
                known.insert(input, (vec![ordinal], answer));
                continue;
            }
            let Some(text) = self.memo.text(text) else {
                self.memo.check()?;
                mended.lost.push(ordinal);
                continue;
            };
            asked.insert(input, Question { entries: vec![ordinal], embedded: frame.around(&text) });
        }
        Ok(())
    }

    /// Appends vectors and writes what is known now.
    fn write(
        &self,
        answers: Vec<(EmbedInput, Vec<Ordinal>, Answer)>,
        mended: &mut Mended,
        vectors: &mut VectorWriter,
        to: &mut WriteTransaction<'_>,
    ) -> Result<(), ApplyError> {
        let (mut rows, mut places, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
        for (input, entries, answer) in answers {
            let own = entries.iter().map(|ordinal| ordinal.get());
            match answer {
                Ok(Some(vector)) => {
                    mended.given.extend(own);
                    places.push((input, entries.first().copied()));
                    rows.extend(entries.into_iter().map(|ordinal| (ordinal, vector.clone())));
                }
                Ok(None) => {
                    mended.without.extend(own);
                    places.push((input, None));
                }
                Err(reason) => {
                    mended.owed.extend(own);
                    mended.refused.push((input, Embedded::Fault(reason.clone())));
                    reasons.extend(entries.into_iter().map(|ordinal| (ordinal, reason.clone())));
                }
            }
        }
        for ordinal in std::mem::take(&mut mended.lost) {
            mended.owed.insert(ordinal.get());
            reasons.push((ordinal, "its text is missing from the database".to_owned()));
        }
        if !rows.is_empty() {
            vectors.append(&rows)?;
        }
        mended.answered.extend(places.iter().map(|(input, _)| *input));
        self.memo.place(to, places)?;
        self.coverage.put_without(to, &mended.without)?;
        self.coverage.settle(to, &(&mended.given | &mended.without | &mended.gone))?;
        self.coverage.put_owed(to, reasons.iter().map(|(ordinal, reason)| (*ordinal, reason.as_str())))?;
        if mended.retried > 0 {
            self.catalogue.add_retried(to, mended.retried)?;
        }
        Ok(())
    }
}

/// Returns the vector that the files hold of an entry.
pub(super) fn held(vectors: &VectorWriter, ordinal: Ordinal) -> Result<Option<Vector>, ApplyError> {
    if !vectors.held().contains(ordinal.get()) {
        return Ok(None);
    }
    let components = vectors.vector_of(ordinal)?;
    // A vector that is none any more is made again.
    Ok(components.and_then(|components| Vector::from_components(components).ok()))
}

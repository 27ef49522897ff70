//! Embeds the inputs of entries: each distinct (card, text) once, in batches, beside the graph.
//!
//! In: entries. Out: the embedded inputs, only so that the frontier tells when all of an epoch's vectors are in the memo.

use super::Parts;
use crate::data::{EmbedId, Entry, StageName, View};
use crate::embed::Embedder;
use crate::memo::{Embedded, Keep, Memo};
use crate::stage::{Task, Time, asynchronous};
use differential_dataflow::VecCollection;
use differential_dataflow::operators::ThresholdTotal;
use std::sync::Arc;

/// Embeds each distinct input that the memo does not have.
pub(super) fn embed<'s>(
    entries: VecCollection<'s, Time, (View, Entry)>,
    parts: &Parts,
) -> VecCollection<'s, Time, EmbedId> {
    let distinct = entries.map(|(_, entry)| entry.embed_id()).distinct_total();
    let task = EmbedTask { memo: parts.memo.clone(), embedder: parts.embedder.clone() };
    asynchronous(distinct, Arc::new(task), parts.pool.clone(), parts.ledger.clone())
}

/// Joins card and text and calls the model.
struct EmbedTask {
    memo: Arc<dyn Memo>,
    embedder: Arc<dyn Embedder>,
}

impl Task<EmbedId> for EmbedTask {
    fn name(&self) -> StageName {
        StageName::Embed
    }

    fn is_known(&self, &id: &EmbedId) -> bool {
        self.memo.has_embedded(id)
    }

    fn run(&self, inputs: &[EmbedId]) -> u64 {
        let mut rows = Vec::with_capacity(inputs.len());
        let mut asked = Vec::with_capacity(inputs.len());
        for &id in inputs {
            match (self.memo.card(id.card), self.memo.text(id.text)) {
                (Some(card), Some(text)) => asked.push((id, card.embedded_text(&text))),
                _ => {
                    self.memo.lost(format!("the card {} or the text {}", id.card, id.text));
                    rows.push((id, Embedded::Fault("its card or text is missing from the store".to_owned())));
                }
            }
        }
        let texts: Vec<&str> = asked.iter().map(|(_, text)| text.as_str()).collect();
        match self.embedder.embed_documents(&texts) {
            Ok(vectors) if vectors.len() == asked.len() => {
                let answers = vectors.into_iter().map(|vector| vector.map_or(Embedded::NoVector, Embedded::Vector));
                rows.extend(asked.iter().map(|(id, _)| *id).zip(answers));
            }
            Ok(vectors) => {
                let error = format!("the model gave {} vectors for {} texts", vectors.len(), asked.len());
                rows.extend(asked.iter().map(|(id, _)| (*id, Embedded::Fault(error.clone()))));
            }
            Err(error) => rows.extend(asked.iter().map(|(id, _)| (*id, Embedded::Fault(error.to_string())))),
        }
        let (faults, answers): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|(_, embedded)| matches!(embedded, Embedded::Fault(_)));
        let failed = faults.len() as u64;
        self.memo.put_embedded(answers, Keep::Durable);
        self.memo.put_embedded(faults, Keep::WhileRunning);
        failed
    }

    fn give_up(&self, &id: &EmbedId, reason: String) {
        self.memo.put_embedded(vec![(id, Embedded::Fault(reason))], Keep::WhileRunning);
    }

    fn batch(&self) -> usize {
        32
    }
}

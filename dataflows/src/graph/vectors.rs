//! From entries to vectors: each distinct input is embedded once, in batches, beside the graph.
//!
//! In: entries with their cards. Out: what was asked for, only so that the frontier tells when the model has answered for
//! all of an epoch, or failed to.
//!
//! **Invariant:** what is asked for is compared by its name, which its text and what stands around it give. So the stage
//! asks once whatever entries share an input, and nothing is arranged here.

use super::Parts;
use crate::data::{Card, CardedEntry, EmbedInput, StageName, TextHash, View};
use crate::embed::{Embedder, embed_each};
use crate::memo::{Embedded, Keep, Memo};
use crate::stage::{Ran, Task, Time, asynchronous};
use differential_dataflow::VecCollection;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::hash;
use std::sync::Arc;

/// A text under a card whose vector an entry needs; its name stands for the rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    input: EmbedInput,
    #[serde(with = "crate::data::shared")]
    card: Arc<Card>,
    text: TextHash,
}

impl Asked {
    fn new(CardedEntry { entry, card }: CardedEntry) -> Self {
        Self { input: card.embed_input(entry.text), card, text: entry.text }
    }
}

impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        self.input == other.input
    }
}

impl Eq for Asked {}

impl PartialOrd for Asked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Asked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.input.cmp(&other.input)
    }
}

impl hash::Hash for Asked {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.input.hash(state);
    }
}

/// Embeds each distinct input that the memo does not know.
pub(super) fn embed<'s>(
    entries: VecCollection<'s, Time, (View, CardedEntry)>,
    parts: &Parts,
) -> VecCollection<'s, Time, Asked> {
    let task = EmbedTask { memo: parts.memo.clone(), embedder: parts.embedder.clone() };
    let asked = entries.map(|(_, entry)| Asked::new(entry));
    asynchronous(asked, Arc::new(task), parts.pool.clone(), parts.ledger.clone())
}

/// Joins card and text and calls the model.
struct EmbedTask {
    memo: Arc<dyn Memo>,
    embedder: Arc<dyn Embedder>,
}

impl Task<Asked> for EmbedTask {
    fn name(&self) -> StageName {
        StageName::Embed
    }

    fn is_known(&self, asked: &Asked) -> bool {
        self.memo.has_embedded(asked.input)
    }

    fn run(&self, inputs: &[Asked]) -> Ran {
        let (mut answers, mut faults) = (Vec::with_capacity(inputs.len()), Vec::new());
        let mut texts = Vec::with_capacity(inputs.len());
        for Asked { input, card, text } in inputs {
            match self.memo.text(*text) {
                Some(text) => texts.push((*input, card.frame().around(&text))),
                None => {
                    self.memo.lost(format!("the text {text}"));
                    faults.push((*input, Embedded::Fault("its text is missing from the store".to_owned())));
                }
            }
        }
        let asked: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
        let answered = embed_each(&*self.embedder, &asked);
        for ((input, _), answer) in texts.iter().zip(answered.vectors) {
            match answer {
                Ok(vector) => answers.push((*input, vector.map_or(Embedded::NoVector, Embedded::Vector))),
                Err(error) => faults.push((*input, Embedded::Fault(error))),
            }
        }
        let ran = Ran { faults: faults.len() as u64, retried: answered.retried };
        self.memo.put_embedded(answers, Keep::Durable);
        self.memo.put_embedded(faults, Keep::WhileRunning);
        ran
    }

    fn give_up(&self, asked: &Asked, reason: String) {
        self.memo.put_embedded(vec![(asked.input, Embedded::Fault(reason))], Keep::WhileRunning);
    }

    fn batch(&self) -> usize {
        32
    }
}

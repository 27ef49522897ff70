//! Cuts texts: each distinct text is cut once under each way of cutting.
//!
//! In: documents by their future chunk list. Out: the same documents, once that list is in the memo.

use super::Parts;
use super::documents::{Representatives, Textual};
use crate::chunk::{TextChunk, cut_text};
use crate::code::{OutlineError, Outliner};
use crate::data::{Chunk, ChunkingId, Document, Outcome, StageName, TextHash, View};
use crate::memo::{Chunked, Keep, Memo};
use crate::rules::{RuleId, Rules};
use crate::stage::{Ran, Task, Time, asynchronous};
use differential_dataflow::VecCollection;
use differential_dataflow::operators::ThresholdTotal;
use std::sync::Arc;

/// Cuts each distinct text once; a document leaves with its chunk list's identity, and its module still empty.
pub(super) fn cut<'s>(
    texts: VecCollection<'s, Time, Textual>,
    parts: &Parts,
) -> VecCollection<'s, Time, (View, Document)> {
    let rules = parts.rules.clone();
    let representative = Representatives::by(&rules, |id| rules.rule(id).chunking_id(TextHash::default()));
    let distinct =
        texts.clone().map(move |(id, ((.., rule), _, text))| (id, text, representative.of(rule))).distinct_total();
    let (rules, memo, outliner) = (parts.rules.clone(), parts.memo.clone(), parts.outliner.clone());
    let task = ChunkTask { rules, memo, outliner };
    let ready = asynchronous(distinct, Arc::new(task), parts.pool.clone(), parts.ledger.clone());

    let (memo, rules) = (parts.memo.clone(), parts.rules.clone());
    let ready = ready.map(move |(id, _, _)| (id, fault_of(&*memo, id)));
    texts.join_map(ready, move |&chunking, ((view, path, content, rule), charset, _), fault| {
        let outcome = match fault {
            Some(error) => Outcome::Fault { stage: StageName::Chunk, error: error.clone() },
            None => {
                let labels = rules.rule(*rule).labels(path);
                Outcome::Indexed { chunking, module: String::new(), labels }
            }
        };
        (*view, Document { path: path.clone(), content: *content, outcome, charset: *charset })
    })
}

fn fault_of(memo: &dyn Memo, id: ChunkingId) -> Option<String> {
    match memo.chunks(id).as_deref() {
        Some(Chunked::Chunks(_) | Chunked::WithoutSyntax(..)) => None,
        Some(Chunked::Fault(error)) => Some(error.clone()),
        None => Some("the chunk list was lost".to_owned()),
    }
}

/// Cuts a cleaned text.
struct ChunkTask {
    rules: Arc<Rules>,
    memo: Arc<dyn Memo>,
    outliner: Arc<dyn Outliner>,
}

impl Task<(ChunkingId, TextHash, RuleId)> for ChunkTask {
    fn name(&self) -> StageName {
        StageName::Chunk
    }

    fn is_known(&self, &(id, _, _): &(ChunkingId, TextHash, RuleId)) -> bool {
        self.memo.chunks(id).is_some()
    }

    fn run(&self, inputs: &[(ChunkingId, TextHash, RuleId)]) -> Ran {
        let mut faults = 0;
        for &(id, hash, rule) in inputs {
            let Some(text) = self.memo.text(hash) else {
                self.give_up(&(id, hash, rule), format!("the cleaned text {hash} is missing from the store"));
                faults += 1;
                continue;
            };
            let cut = match cut_text(self.rules.rule(rule), &text, &*self.outliner) {
                Ok(cut) => cut,
                // Without a result: the graph ends, and nothing of it is published.
                Err(OutlineError::Halted) => return faults.into(),
                Err(error) => {
                    self.give_up(&(id, hash, rule), error.to_string());
                    faults += 1;
                    continue;
                }
            };
            let (chunks, texts): (Vec<Chunk>, Vec<(TextHash, String)>) = cut
                .chunks
                .into_iter()
                .map(|TextChunk { chunk, text }| {
                    let hash = chunk.text;
                    (chunk, (hash, text))
                })
                .unzip();
            let chunked = Chunked::new(chunks, cut.no_syntax);
            self.memo.put_chunks(id, Some((hash, &text)), chunked, texts, Keep::Durable);
        }
        faults.into()
    }

    fn give_up(&self, &(id, _, _): &(ChunkingId, TextHash, RuleId), reason: String) {
        self.memo.put_chunks(id, None, Chunked::Fault(reason), Vec::new(), Keep::WhileRunning);
    }

    fn batch(&self) -> usize {
        // Parsing is the longest work of a small epoch; one text per call spreads it over all threads.
        1
    }
}

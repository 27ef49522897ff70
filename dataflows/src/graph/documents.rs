//! Cleans contents: each distinct content is cleaned once, however many paths and views hold it.
//!
//! In: files. Out: per file its cleaned text, or the row with the reason why there is none.
//!
//! **Invariant:** a file leaves through exactly one of the outputs: `skipped`, `others` (skipped or at fault after its content
//! was read), or `texts`.

use super::Parts;
use crate::clean::convert;
use crate::code::is_manifest;
use crate::data::{
    Charset, ChunkingId, Cleaned, ContentId, Document, DocumentId, DocumentPath, File, FileMode, Outcome, SkipReason,
    StageName, TextHash, View,
};
use crate::memo::{Content, Contents, Keep, Memo};
use crate::rules::{RuleId, Rules};
use crate::stage::{Ran, Task, Time, asynchronous};
use differential_dataflow::VecCollection;
use differential_dataflow::operators::ThresholdTotal;
use std::sync::Arc;

/// A file that the rules accept as a document.
pub(super) type Candidate = (View, DocumentPath, ContentId, RuleId);
/// The same with the encoding that its tree gives it.
pub(super) type Told = (Candidate, Option<Charset>);
/// A document by the chunk list of its text and rule.
pub(super) type Textual = (ChunkingId, (Candidate, Option<Charset>, TextHash));
/// What the clean stage is asked.
type Input = (DocumentId, ContentId, RuleId, Option<Charset>);

/// Files by the decision of the rules on their path.
pub(super) struct Routed<'s> {
    /// Files whose content decides.
    pub(super) documents: VecCollection<'s, Time, Candidate>,
    /// Files that are no documents, whatever their content.
    pub(super) skipped: VecCollection<'s, Time, (View, Document)>,
}

/// Routes each file by its path and mode.
pub(super) fn route(files: VecCollection<'_, Time, File>, rules: Arc<Rules>) -> Routed<'_> {
    let skipping = rules.clone();
    let skipped = files.clone().flat_map(move |file| {
        let reason = skip_reason(&skipping, &file)?;
        let (path, content) = (file.path, file.state.content);
        Some((file.view, Document { path, content, outcome: Outcome::Skipped(reason), charset: None }))
    });
    let documents = files.flat_map(move |file| {
        if skip_reason(&rules, &file).is_some() {
            return None;
        }
        let rule = rules.for_path(&file.path);
        Some((file.view, file.path, file.state.content, rule))
    });
    Routed { documents, skipped }
}

/// Returns the reason why a file is no document, as far as its mode and path decide.
pub(crate) fn skip_reason(rules: &Rules, file: &File) -> Option<SkipReason> {
    match file.state.mode {
        FileMode::Symlink => Some(SkipReason::Symlink),
        FileMode::Submodule => Some(SkipReason::Submodule),
        FileMode::Regular => rules.rule(rules.for_path(&file.path)).excluded().then_some(SkipReason::Excluded),
    }
}

/// Documents by the result of cleaning.
pub(super) struct CleanedFiles<'s> {
    /// Those with a text.
    pub(super) texts: VecCollection<'s, Time, Textual>,
    /// Those without a text, with the reason or the fault.
    pub(super) others: VecCollection<'s, Time, (View, Document)>,
    /// The texts of manifests, which name the module of their folder.
    pub(super) manifests: VecCollection<'s, Time, (View, DocumentPath, TextHash)>,
}

/// Cleans each distinct content once and joins the result to every file.
pub(super) fn clean<'s>(files: VecCollection<'s, Time, Told>, parts: &Parts) -> CleanedFiles<'s> {
    let rules = parts.rules.clone();
    let files = files.map(move |(file, charset)| (rules.rule(file.3).document_id(file.2, charset), (file, charset)));
    let representative = Representatives::new(&parts.rules);
    let distinct = files
        .clone()
        .map(move |(id, ((_, _, content, rule), charset))| (id, content, representative.of(rule), charset))
        .distinct_total();
    let task = CleanTask { rules: parts.rules.clone(), memo: parts.memo.clone(), contents: parts.contents.clone() };
    let ready = asynchronous(distinct, Arc::new(task), parts.pool.clone(), parts.ledger.clone());

    let memo = parts.memo.clone();
    let cleaned = ready.map(move |(id, ..)| {
        let cleaned = memo.cleaned(id).unwrap_or_else(|| Cleaned::Fault("the cleaned text was lost".to_owned()));
        (id, cleaned)
    });
    let files = files.join_map(cleaned, |_, (file, charset), cleaned| (file.clone(), *charset, cleaned.clone()));
    let rules = parts.rules.clone();
    let texts = files.clone().flat_map(move |(file, charset, cleaned)| {
        let text = cleaned.text()?;
        Some((rules.rule(file.3).chunking_id(text), (file, charset, text)))
    });
    let manifests = files.clone().flat_map(|((view, path, ..), _, cleaned)| {
        let text = cleaned.text().filter(|_| is_manifest(&path))?;
        Some((view, path, text))
    });
    let others = files.flat_map(|((view, path, content, _), charset, cleaned)| {
        let outcome = match cleaned {
            Cleaned::Text { .. } | Cleaned::Converted { .. } => return None,
            Cleaned::Skipped(reason) => Outcome::Skipped(reason),
            Cleaned::Fault(error) => Outcome::Fault { stage: StageName::Clean, error },
        };
        Some((view, Document { path, content, outcome, charset }))
    });
    CleanedFiles { texts, others, manifests }
}

/// For each rule the first one with the same cleaning: rules that share a [`DocumentId`] must send one row to the stage.
pub(super) struct Representatives(Vec<RuleId>);

impl Representatives {
    fn new(rules: &Rules) -> Self {
        let probe = |id: RuleId| rules.rule(id).document_id(ContentId::default(), None);
        Self::by(rules, probe)
    }

    /// Groups rules by the identity that each gives to the same input.
    pub(super) fn by<N: PartialEq>(rules: &Rules, name: impl Fn(RuleId) -> N) -> Self {
        let ids: Vec<RuleId> = rules.ids().collect();
        let first_like = |&id: &RuleId| ids.iter().copied().find(|&other| name(other) == name(id)).unwrap_or(id);
        Self(ids.iter().map(first_like).collect())
    }

    pub(super) fn of(&self, rule: RuleId) -> RuleId {
        self.0.get(rule.index()).copied().unwrap_or(rule)
    }
}

/// Reads a content and cleans it.
struct CleanTask {
    rules: Arc<Rules>,
    memo: Arc<dyn Memo>,
    contents: Arc<dyn Contents>,
}

impl Task<Input> for CleanTask {
    fn name(&self) -> StageName {
        StageName::Clean
    }

    fn is_known(&self, &(id, ..): &Input) -> bool {
        self.memo.cleaned(id).is_some()
    }

    fn run(&self, inputs: &[Input]) -> Ran {
        let mut faults = 0;
        for &(id, content, rule, charset) in inputs {
            let rule = self.rules.rule(rule);
            match self.contents.read(content, rule.max_bytes()) {
                Ok(Content::Bytes(bytes)) => match convert(rule, charset, &bytes) {
                    Ok((text, from)) => {
                        let (hash, bytes) = (TextHash::of(&text), text.len() as u64);
                        let cleaned = match from {
                            None => Cleaned::Text { text: hash, bytes },
                            Some(from) => Cleaned::Converted { text: hash, bytes, from },
                        };
                        self.memo.put_cleaned(id, &cleaned, Some(&text), Keep::Durable);
                    }
                    Err(reason) => self.memo.put_cleaned(id, &Cleaned::Skipped(reason), None, Keep::Durable),
                },
                Ok(Content::TooLarge(_)) => {
                    self.memo.put_cleaned(id, &Cleaned::Skipped(SkipReason::TooLarge), None, Keep::Durable);
                }
                Ok(Content::Absent(reason)) => {
                    self.memo.put_cleaned(id, &Cleaned::Skipped(reason), None, Keep::WhileRunning);
                }
                Err(error) => {
                    // Transient: a later run may find the object.
                    self.memo.put_cleaned(id, &Cleaned::Fault(error.to_string()), None, Keep::WhileRunning);
                    faults += 1;
                }
            }
        }
        faults.into()
    }

    fn give_up(&self, &(id, ..): &Input, reason: String) {
        self.memo.put_cleaned(id, &Cleaned::Fault(reason), None, Keep::WhileRunning);
    }

    fn batch(&self) -> usize {
        4
    }
}

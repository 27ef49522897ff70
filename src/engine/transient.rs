//! Documents with a transient fault: a missing object, a file that changed during the read.
//!
//! In: the graph's output of each epoch. Out: the documents of each head to try again.
//!
//! **Invariant:** it holds exactly the documents in the graph with such a fault; its size is their number.

use super::contents::{AllContents, Look};
use crate::store::{Catalogue, StoreError};
use dataflows::data::{ContentId, Document, DocumentPath, Outcome, SkipReason, StageName, View};
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use snapshots::Ordinal;
use std::collections::BTreeMap;

/// The transient documents of all heads.
#[derive(Default)]
pub(super) struct Transient(BTreeMap<(View, DocumentPath), Document>);

impl Transient {
    /// Applies an epoch's changes.
    pub(super) fn take(&mut self, changes: &[(View, Document, isize)]) {
        let transient = |wanted: isize| {
            changes.iter().filter(move |(_, document, change)| *change == wanted && is_transient(&document.outcome))
        };
        for (view, document, _) in transient(-1) {
            self.0.remove(&(*view, document.path.clone()));
        }
        for (view, document, _) in transient(1) {
            self.0.insert((*view, document.path.clone()), document.clone());
        }
    }

    /// Returns every such document.
    pub(super) fn documents(&self) -> Vec<(View, Document)> {
        self.0.iter().map(|((view, _), document)| (*view, document.clone())).collect()
    }
}

/// Returns the rows of documents that had a transient fault and can be read now.
///
/// The cost is one read of every row that a document ever had.
pub(super) fn mendable(catalogue: &Catalogue, contents: &AllContents) -> Result<RoaringBitmap, StoreError> {
    let rows = (0..catalogue.next_document()?).map(Ordinal::new);
    let mut mendable = RoaringBitmap::new();
    let mut readable: FxHashMap<ContentId, bool> = FxHashMap::default();
    for ordinal in rows {
        // A row that an interrupted publish left out names nothing.
        let Ok(document) = catalogue.document(ordinal) else { continue };
        let content = document.content;
        if is_transient(&document.outcome)
            && *readable.entry(content).or_insert_with(|| contents.look(content) == Look::Readable)
        {
            mendable.insert(ordinal.get());
        }
    }
    Ok(mendable)
}

fn is_transient(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Fault { stage, .. } => *stage == StageName::Clean,
        Outcome::Skipped(reason) => *reason == SkipReason::LfsMissing,
        Outcome::Indexed { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(path: &str, content: u8, outcome: Outcome) -> Document {
        Document { path: path.into(), content: ContentId::from_bytes([content; 20]), outcome, charset: None }
    }

    fn missing() -> Outcome {
        Outcome::Fault { stage: StageName::Clean, error: "missing".to_owned() }
    }

    #[test]
    fn what_comes_and_goes_is_kept_while_it_is_there() {
        let mut transient = Transient::default();
        let lfs = Outcome::Skipped(SkipReason::LfsMissing);
        transient.take(&[
            (View(1), document("a", 1, missing()), 1),
            (View(2), document("a", 1, missing()), 1),
            (View(1), document("b", 2, lfs), 1),
            (View(1), document("c", 3, Outcome::Skipped(SkipReason::Binary)), 1),
        ]);
        assert_eq!(transient.documents().len(), 3);
        // A path whose missing content is replaced by another missing one stays, with the new content.
        transient.take(&[
            (View(1), document("a", 1, missing()), -1),
            (View(1), document("a", 4, missing()), 1),
            (View(2), document("a", 1, missing()), -1),
        ]);
        let contents: Vec<u8> =
            transient.documents().iter().map(|(_, document)| document.content.as_bytes()[0]).collect();
        assert_eq!(contents, [4, 2]);
    }
}

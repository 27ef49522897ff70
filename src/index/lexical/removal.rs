//! The query by which tantivy deletes the documents of some entries.
//!
//! In: entries, and the segments whose documents of them are known. Out: a query for these documents.
//!
//! **Invariant:** in an unknown segment, for example one that a merge creates while the query waits, every document's ordinal is
//! checked. So a document is deleted wherever it is by then.

use super::schema::ORDINAL;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;
use tantivy::columnar::ColumnValues;
use tantivy::index::{SegmentId, SegmentReader};
use tantivy::query::doc_predicate_query::{
    ConstOrVariableSegmentPredicate, DocPredicate, DocPredicateQuery, SegmentDocPredicate,
};
use tantivy::query::{AllScorer, BitSetDocSet};
use tantivy::{BitSet, DocId, DocSet};

/// Returns the query for the documents of these entries; `known` lists them for some of the segments.
pub(super) fn documents_of(entries: RoaringBitmap, known: FxHashMap<SegmentId, Vec<DocId>>) -> DocPredicateQuery {
    Removal { entries: Arc::new(entries), known }.into()
}

struct Removal {
    entries: Arc<RoaringBitmap>,
    known: FxHashMap<SegmentId, Vec<DocId>>,
}

impl fmt::Debug for Removal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Removal").field(&self.entries.len()).finish()
    }
}

impl DocPredicate for Removal {
    type SegmentDocPredicate = OfEntries;

    fn doc_predicate(
        &self,
        reader: &SegmentReader,
    ) -> tantivy::Result<ConstOrVariableSegmentPredicate<Self::SegmentDocPredicate>> {
        let necessary_condition: Box<dyn DocSet> = match self.known.get(&reader.segment_id()) {
            Some(documents) if documents.is_empty() => return Ok(ConstOrVariableSegmentPredicate::Const(false)),
            Some(documents) => {
                let mut set = BitSet::with_max_value(reader.max_doc());
                for document in documents {
                    set.insert(*document);
                }
                Box::new(BitSetDocSet::from(set))
            }
            None => Box::new(AllScorer::new(reader.max_doc())),
        };
        let ordinals = reader.fast_fields().u64(ORDINAL)?.values;
        let predicate = OfEntries { entries: Arc::clone(&self.entries), ordinals };
        Ok(ConstOrVariableSegmentPredicate::Variable { predicate, necessary_condition })
    }
}

struct OfEntries {
    entries: Arc<RoaringBitmap>,
    ordinals: Arc<dyn ColumnValues>,
}

impl SegmentDocPredicate for OfEntries {
    fn eval(&mut self, document: DocId) -> bool {
        u32::try_from(self.ordinals.get_val(document)).is_ok_and(|ordinal| self.entries.contains(ordinal))
    }
}

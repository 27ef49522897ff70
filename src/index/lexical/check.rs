//! Checks whether the files of the lexical index are intact, and which entries they hold.
//!
//! In: a directory, beside any writer. Out: the ordinals of all documents in intact segments, and the damage.
//!
//! **Invariant:** a file is read only once its checksum (tantivy's own, at the end of each file) fits. No entry of a segment with
//! a damaged file counts as held. Nothing is written.
//!
//! A writer may merge segments and remove the old files during the check, so a missing file counts only if the segment list is
//! unchanged afterwards.

use super::error::LexicalError;
use super::schema::{Fields, ORDINAL, TEXT_FIELDS};
use super::writer;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::path::{Path, PathBuf};
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{IndexMeta, Segment, SegmentComponent, SegmentMeta, SegmentReader};
use tantivy::{Index, TantivyError};

/// How often the segment list may change during the check.
const ATTEMPTS: usize = 16;

/// The files of a segment, except that of deleted documents. tantivy treats some missing ones as empty, so they are listed here.
const COMPONENTS: [SegmentComponent; 6] = [
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::Terms,
    SegmentComponent::Store,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
];

/// Looks up how many tokens an entry has in each field.
pub type LengthsOf<'a> = &'a dyn Fn(Ordinal) -> Option<[u32; TEXT_FIELDS]>;

/// The content of a lexical index.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LexicalCheck {
    /// The ordinals of the documents in intact segments.
    pub ordinals: RoaringBitmap,
    /// Those whose documents have another length than the entry.
    pub other_length: RoaringBitmap,
    /// Files that were read.
    pub files: usize,
    /// Each damaged file with the damage, in the order of their names.
    pub damaged: Vec<(PathBuf, String)>,
}

/// Checks the index in `dir`; with `lengths`, also that each document is as long as its entry.
///
/// Reads every file once.
///
/// # Errors
/// As [`LexicalReader::open`](super::LexicalReader::open) where the list of segments cannot be read.
pub fn check(dir: &Path, lengths: Option<LengthsOf<'_>>) -> Result<LexicalCheck, LexicalError> {
    let failed = |source: TantivyError| LexicalError::Open { path: dir.to_owned(), source: source.into() };
    let (index, fields) = writer::open(dir)?;
    let mut metas = index.load_metas().map_err(failed)?;
    for _ in 0..ATTEMPTS {
        let found = check_segments(dir, &index, fields, &metas, lengths);
        let now = index.load_metas().map_err(failed)?;
        if found.damaged.is_empty() || same_segments(&metas, &now) {
            return Ok(found);
        }
        metas = now;
    }
    Ok(check_segments(dir, &index, fields, &metas, lengths))
}

fn same_segments(left: &IndexMeta, right: &IndexMeta) -> bool {
    let state = |meta: &SegmentMeta| (meta.id(), meta.delete_opstamp());
    left.segments.iter().map(state).eq(right.segments.iter().map(state))
}

fn check_segments(
    dir: &Path,
    index: &Index,
    fields: Fields,
    metas: &IndexMeta,
    lengths: Option<LengthsOf<'_>>,
) -> LexicalCheck {
    let mut check = LexicalCheck::default();
    for meta in &metas.segments {
        let damaged = check.damaged.len();
        for file in files_of(meta) {
            check.files += 1;
            match index.directory().validate_checksum(&file) {
                Ok(true) => {}
                Ok(false) => check.damaged.push((dir.join(file), "its checksum does not fit".to_owned())),
                Err(error) => check.damaged.push((dir.join(file), error.to_string())),
            }
        }
        if check.damaged.len() > damaged {
            continue;
        }
        let segment = index.segment(meta.clone());
        if let Err(reason) = check_segment(&segment, fields, lengths, &mut check) {
            check.damaged.push((dir.join(meta.id().uuid_string()), reason));
        }
    }
    check.damaged.sort();
    check
}

/// Returns the names of a segment's files.
pub(super) fn files_of(meta: &SegmentMeta) -> Vec<PathBuf> {
    let removed = meta.has_deletes().then_some(SegmentComponent::Delete);
    COMPONENTS.into_iter().chain(removed).map(|component| meta.relative_path(component)).collect()
}

/// Adds the content of a segment, all of it or nothing.
fn check_segment(
    segment: &Segment,
    fields: Fields,
    lengths: Option<LengthsOf<'_>>,
    check: &mut LexicalCheck,
) -> Result<(), String> {
    let failed = |error: TantivyError| error.to_string();
    let reader = SegmentReader::open(segment).map_err(failed)?;
    let column = reader.fast_fields().u64(ORDINAL).map_err(failed)?.values;
    if column.num_vals() != reader.max_doc() {
        return Err(format!("it has {} documents and {} ordinals", reader.max_doc(), column.num_vals()));
    }
    let mut ordinals = RoaringBitmap::new();
    let mut other_length = RoaringBitmap::new();
    let mut norms = Vec::new();
    for field in fields.texts {
        norms.push(reader.fieldnorms_readers().get_field(field).map_err(failed)?);
    }
    for document in reader.doc_ids_alive() {
        let ordinal = u32::try_from(column.get_val(document)).map_err(|_| "an ordinal has more than 32 bits")?;
        if !ordinals.insert(ordinal) || check.ordinals.contains(ordinal) {
            return Err(format!("ordinal {ordinal} has two documents"));
        }
        if let Some(lengths) = lengths.and_then(|lengths| lengths(Ordinal::new(ordinal))) {
            let stored =
                |norms: &Option<FieldNormReader>| norms.as_ref().map_or(0, |norms| norms.fieldnorm_id(document));
            let fits = |(norms, length)| stored(norms) == FieldNormReader::fieldnorm_to_id(length);
            if !norms.iter().zip(lengths).all(fits) {
                other_length.insert(ordinal);
            }
        }
    }
    check.ordinals |= ordinals;
    check.other_length |= other_length;
    Ok(())
}

//! A large segment in IVF lists: each row is in the list of its nearest centroid, so that a search may visit only the near lists.
//!
//! In: rows, centroids, and the nearest centroid of each row. Out: lists, each a separate segment, and the nearness of each to a
//! question.
//!
//! **Invariant:** every row is in exactly one list, lists are never empty, and a list is scanned exactly as any segment is: a
//! score has the same bits wherever its row is. So only the choice of lists is approximate, and visiting all of them is exact.

use super::VectorError;
use super::codes::{CodedQuestion, Codes};
use super::rows::Rows;
use super::scan::{Alive, Backend};
use super::search::Question;
use super::segment::VectorSegment;
use super::stored::StoredFile;
use crate::index::window::Window;
use half::f16;
use roaring::RoaringBitmap;
use snapshots::Ordinal;
use std::sync::{Arc, OnceLock};

/// Rows on their way into a clustered segment or its file.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ClusterRows {
    dimensions: usize,
    /// The components of one centroid per list.
    centres: Vec<f16>,
    lists: Vec<Rows>,
    /// The ordinals of all lists.
    bitmap: RoaringBitmap,
}

impl ClusterRows {
    /// Distributes `rows` by the number of each row's centroid; returns nothing if a number has no centroid.
    pub(super) fn deal_out(rows: &Rows, centres: &[f16], nearest: &[u32]) -> Option<Self> {
        let dimensions = rows.dimensions();
        let mut sizes = vec![0; centres.len() / dimensions];
        for &list in nearest {
            *sizes.get_mut(list as usize)? += 1;
        }
        let mut lists: Vec<Rows> = sizes.into_iter().map(|size| Rows::with_capacity(dimensions, size)).collect();
        for (position, &list) in nearest.iter().enumerate() {
            lists[list as usize].push_row(rows.ordinals()[position], rows.row(position));
        }
        Self::from_parts(dimensions, centres.to_vec(), lists).ok()
    }

    /// Takes centroids and lists, drops empty lists, or returns why they cannot be a segment's.
    pub(super) fn from_parts(dimensions: usize, centres: Vec<f16>, lists: Vec<Rows>) -> Result<Self, &'static str> {
        if lists.len().checked_mul(dimensions) != Some(centres.len()) {
            return Err("the number of centres does not fit the number of lists");
        }
        if centres.iter().any(|component| !component.is_finite()) {
            return Err("a centre is not finite");
        }
        // Sorted once: adding the ordinals of thousands of lists to a bitmap one by one takes longer than reading them.
        let mut ordinals = Vec::with_capacity(lists.iter().map(Rows::len).sum());
        lists.iter().for_each(|rows| ordinals.extend_from_slice(rows.ordinals()));
        ordinals.sort_unstable();
        let Ok(bitmap) = RoaringBitmap::from_sorted_iter(ordinals) else {
            return Err("an ordinal is in two lists");
        };
        let (centres, lists) = centres
            .chunks(dimensions.max(1))
            .zip(lists)
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(centre, rows)| (centre.to_vec(), rows))
            .unzip::<Vec<f16>, Rows, Vec<Vec<f16>>, Vec<Rows>>();
        Ok(Self { dimensions, centres: centres.concat(), lists, bitmap })
    }

    /// Removes the rows that `held` has, and adds the rest to it.
    pub(super) fn admit(self, held: &mut RoaringBitmap) -> Self {
        if held.is_disjoint(&self.bitmap) {
            *held |= &self.bitmap;
            return self;
        }
        let lists = self.lists.into_iter().map(|rows| rows.admit(held)).collect();
        Self::from_parts(self.dimensions, self.centres, lists).expect("fewer rows of lists are lists")
    }

    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(Rows::len).sum()
    }

    pub(super) const fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(super) const fn bitmap(&self) -> &RoaringBitmap {
        &self.bitmap
    }

    pub(super) fn centres(&self) -> &[f16] {
        &self.centres
    }

    pub(super) fn lists(&self) -> &[Rows] {
        &self.lists
    }

    /// Returns the rows in one block.
    pub(super) fn rows(&self) -> Rows {
        Rows::merge(self.dimensions, &self.lists)
    }
}

/// An immutable, searchable block of vectors in IVF lists.
pub(super) struct ClusteredSegment {
    backend: Backend,
    dimensions: usize,
    lists: Vec<VectorSegment>,
    bitmap: RoaringBitmap,
    /// Where centres and codes lie; nothing: in the guide, which is there from the beginning.
    file: Option<Arc<StoredFile>>,
    guide: OnceLock<Guide>,
}

/// What says which rows are worth a look. It is read when that is first asked: not every search does.
pub(super) struct Guide {
    /// The centroids, under the numbers of their lists.
    centres: VectorSegment,
    codes: Codes,
}

impl Guide {
    fn new(backend: Backend, dimensions: usize, centres: Vec<f16>, codes: Codes) -> Result<Self, VectorError> {
        let numbers = (0..(centres.len() / dimensions) as u32).collect();
        let centres = Rows::from_parts(dimensions, numbers, centres).expect("centres are checked");
        Ok(Self { centres: VectorSegment::new(backend, &centres)?, codes })
    }

    /// Calls `with` with each position in a list and an estimate of its inner product with the question (see [`Codes`]).
    pub(super) fn estimate(&self, list: u32, nearness: f32, question: &CodedQuestion, with: impl FnMut(usize, f32)) {
        self.codes.estimate(list, nearness, question, with);
    }
}

impl ClusteredSegment {
    /// Builds the engines; there must be at least one row.
    pub(super) fn new(backend: Backend, rows: &ClusterRows) -> Result<Self, VectorError> {
        let lists = rows.lists.iter().map(|rows| VectorSegment::new(backend, rows)).collect::<Result<_, _>>()?;
        let guide = Guide::new(backend, rows.dimensions, rows.centres.clone(), Codes::new(rows))?;
        let (dimensions, bitmap) = (rows.dimensions, rows.bitmap().clone());
        Ok(Self { backend, dimensions, lists, bitmap, file: None, guide: OnceLock::from(guide) })
    }

    /// Returns the segment of a file with lists, whose rows have these ordinals.
    pub(super) fn stored(backend: Backend, dimensions: usize, file: Arc<StoredFile>, ordinals: &[u32]) -> Self {
        let list = |block: usize| {
            let own = &ordinals[file.rows_of(block)];
            VectorSegment::stored(backend, dimensions, file.clone(), block..block + 1, own)
        };
        let (lists, bitmap) = ((0..file.blocks()).map(list).collect(), file.bitmap().clone());
        Self { backend, dimensions, lists, bitmap, file: Some(file), guide: OnceLock::new() }
    }

    /// Returns what says which rows are worth a look.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged, or the engine refuses.
    pub(super) fn guide(&self) -> Result<&Guide, VectorError> {
        if let (None, Some(file)) = (self.guide.get(), &self.file) {
            let guide = Guide::new(self.backend, self.dimensions, file.centres()?, file.codes()?)?;
            // Another thread may have been quicker.
            let _ = self.guide.set(guide);
        }
        Ok(self.guide.get().expect("it is there from the beginning, or was read"))
    }

    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(VectorSegment::len).sum()
    }

    pub(super) const fn bitmap(&self) -> &RoaringBitmap {
        &self.bitmap
    }

    /// Returns the lists' numbers with the inner products of their centroids with the question, the nearest first.
    pub(super) fn nearest_lists(&self, question: &Question) -> Result<Vec<(u32, f32)>, VectorError> {
        let found = self.guide()?.centres.best(question, &Alive::all(self.lists.len()), self.lists.len())?;
        Ok(found.into_iter().map(|(list, nearness)| (list.get(), nearness)).collect())
    }

    /// Returns the number of lists.
    pub(super) fn lists(&self) -> u32 {
        self.lists.len() as u32
    }

    pub(super) fn list(&self, number: u32) -> &VectorSegment {
        &self.lists[number as usize]
    }

    /// Returns the live ordinals of the segment as a set with fast look-ups.
    pub(super) fn window(&self, entries: &RoaringBitmap) -> Window {
        match (self.bitmap.min(), self.bitmap.max()) {
            (Some(least), Some(greatest)) => Window::new(entries, least, greatest, self.len()),
            _ => Window::default(),
        }
    }

    pub(super) fn vector_of(&self, ordinal: Ordinal) -> Result<Option<Vec<f16>>, VectorError> {
        if !self.bitmap.contains(ordinal.get()) {
            return Ok(None);
        }
        for list in &self.lists {
            if let Some(vector) = list.vector_of(ordinal)? {
                return Ok(Some(vector));
            }
        }
        Ok(None)
    }

    /// Returns the rows that the segment was built from.
    pub(super) fn rows(&self) -> Result<ClusterRows, VectorError> {
        let lists = self.lists.iter().map(VectorSegment::rows).collect::<Result<_, _>>()?;
        let centres = match (self.guide.get(), &self.file) {
            (None, Some(file)) => file.centres()?,
            _ => self.guide()?.centres.rows()?.components().to_vec(),
        };
        Ok(ClusterRows { dimensions: self.dimensions, centres, lists, bitmap: self.bitmap.clone() })
    }
}

//! Centroids of many rows, and the nearest one of each row: spherical k-means.
//!
//! In: rows. Out: centroids of length 1, and a centroid's number for each row.
//!
//! **Invariant:** a function of rows and number of lists on one machine: the seed is fixed. Another processor may round sums
//! otherwise, so no version, score or digest depends on the result.

use super::{BLOCK_ROWS, blas_uses_one_thread, check, no_memory, omp_set_num_threads};
use crate::index::background::Unwanted;
use crate::index::vector::VectorError;
use crate::index::vector::clustered::ClusterRows;
use crate::index::vector::rows::Rows;
use crate::index::vector::upkeep::NOT_WANTED;
use faiss_sys as sys;
use half::f16;
use half::slice::HalfFloatSliceExt;
use std::ffi::c_int;
use std::ptr::{self, NonNull};

/// Training rows per list: half as many found 0.970 of the ten nearest where these find 0.977.
const SAMPLE: usize = 64;
/// Rounds of training.
const ROUNDS: usize = 10;
const SEED: c_int = 1234;

/// Distributes rows to at most `lists` lists, each row to that of the centroid with the greatest inner product; checks regularly
/// whether the result is still wanted.
pub(in crate::index::vector) fn deal_out(
    rows: &Rows,
    lists: usize,
    unwanted: &Unwanted,
) -> Result<ClusterRows, VectorError> {
    let go_on = || if unwanted.is_set() { Err(VectorError::Upkeep { reason: NOT_WANTED }) } else { Ok(()) };
    omp_set_num_threads(1);
    blas_uses_one_thread();
    let dimensions = rows.dimensions();
    let lists = lists.clamp(1, rows.len());
    let centres = Centres::new(dimensions)?;
    let training = Training::new(dimensions, lists)?;
    let every = (rows.len() / (lists * SAMPLE)).max(1);
    let mut sample = Vec::with_capacity(rows.len().div_ceil(every) * dimensions);
    let mut widened = vec![0.0_f32; dimensions];
    for position in (0..rows.len()).step_by(every) {
        rows.row(position).convert_to_f32_slice(&mut widened);
        sample.extend_from_slice(&widened);
    }
    for _ in 0..ROUNDS {
        go_on()?;
        training.train(&sample, &centres)?;
    }
    drop(sample);
    let components = training.centres(lists * dimensions)?;
    let mut nearest = Vec::with_capacity(rows.len());
    let mut widened = vec![0.0_f32; BLOCK_ROWS.min(rows.len()) * dimensions];
    for block in rows.components().chunks(BLOCK_ROWS * dimensions) {
        go_on()?;
        let widened = &mut widened[..block.len()];
        block.convert_to_f32_slice(widened);
        centres.nearest_to(widened, &mut nearest)?;
    }
    ClusterRows::deal_out(rows, &components, &nearest)
        .ok_or(VectorError::Faiss { action: "find centres", message: "a row has no centre".to_owned() })
}

/// The index that training fills with its centroids.
struct Centres {
    index: NonNull<sys::FaissIndexFlatIP>,
    dimensions: usize,
}

impl Centres {
    fn new(dimensions: usize) -> Result<Self, VectorError> {
        let mut index = ptr::null_mut();
        // SAFETY: `index` is a valid place for the new pointer, which the value made next owns.
        let status = unsafe { sys::faiss_IndexFlatIP_new_with(&raw mut index, dimensions as i64) };
        check("make an index", status)?;
        Ok(Self { index: NonNull::new(index).ok_or_else(|| no_memory("make an index"))?, dimensions })
    }

    /// Appends the number of the nearest centroid of each row in `widened`.
    fn nearest_to(&self, widened: &[f32], nearest: &mut Vec<u32>) -> Result<(), VectorError> {
        let count = widened.len() / self.dimensions;
        let mut labels = vec![-1_i64; count];
        // SAFETY: `widened` holds `count` rows of the index's dimension, and `labels` has room for one number each.
        let status = unsafe {
            sys::faiss_Index_assign(self.index.as_ptr(), count as i64, widened.as_ptr(), labels.as_mut_ptr(), 1)
        };
        check("find the nearest centres", status)?;
        nearest.extend(labels.into_iter().map(|label| u32::try_from(label).unwrap_or(u32::MAX)));
        Ok(())
    }
}

impl Drop for Centres {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `faiss_IndexFlatIP_new_with` and is freed once.
        unsafe { sys::faiss_Index_free(self.index.as_ptr()) }
    }
}

/// One run of k-means.
struct Training(NonNull<sys::FaissClustering>);

impl Training {
    fn new(dimensions: usize, lists: usize) -> Result<Self, VectorError> {
        let failed = |_| VectorError::Faiss { action: "find centres", message: "too many of them".to_owned() };
        let (dimensions, lists) =
            (c_int::try_from(dimensions).map_err(failed)?, c_int::try_from(lists).map_err(failed)?);
        // SAFETY: plain numbers, for which zero is a value, and which the call fills with FAISS's own choices.
        let mut parameters: sys::FaissClusteringParameters = unsafe { std::mem::zeroed() };
        // SAFETY: the place is valid.
        unsafe { sys::faiss_ClusteringParameters_init(&raw mut parameters) };
        // One call is one round and begins with the centroids of the previous one, so that the check can run in between.
        parameters.niter = 1;
        parameters.spherical = 1;
        parameters.seed = SEED;
        // The sample has the right size already; FAISS would print a warning for a small one.
        parameters.min_points_per_centroid = 1;
        parameters.max_points_per_centroid = 4 * SAMPLE as c_int;
        let mut training = ptr::null_mut();
        // SAFETY: `training` is a valid place for the new pointer, and the parameters are copied.
        let status = unsafe {
            sys::faiss_Clustering_new_with_params(&raw mut training, dimensions, lists, &raw const parameters)
        };
        check("find centres", status)?;
        Ok(Self(NonNull::new(training).ok_or_else(|| no_memory("find centres"))?))
    }

    fn train(&self, sample: &[f32], centres: &Centres) -> Result<(), VectorError> {
        let count = (sample.len() / centres.dimensions) as i64;
        // SAFETY: `sample` holds `count` rows of the dimension that both were made with, and no other code uses the index.
        let status =
            unsafe { sys::faiss_Clustering_train(self.0.as_ptr(), count, sample.as_ptr(), centres.index.as_ptr()) };
        check("find centres", status)
    }

    /// Returns the components of all centroids.
    fn centres(&self, expected: usize) -> Result<Vec<f16>, VectorError> {
        let (mut components, mut len) = (ptr::null_mut(), 0);
        // SAFETY: both places are valid; what the pointer leads to belongs to the training, which outlives the copy.
        let components = unsafe {
            sys::faiss_Clustering_centroids(self.0.as_ptr(), &raw mut components, &raw mut len);
            if components.is_null() || len != expected {
                return Err(VectorError::Faiss { action: "find centres", message: format!("{len} numbers came back") });
            }
            std::slice::from_raw_parts(components, len)
        };
        Ok(components.iter().map(|&component| f16::from_f32(component)).collect())
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `faiss_Clustering_new_with_params` and is freed once.
        unsafe { sys::faiss_Clustering_free(self.0.as_ptr()) }
    }
}

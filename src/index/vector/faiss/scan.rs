//! One immutable `SQfp16` index per segment, searched by inner product.
//!
//! In: checked rows. Out: the best living positions with their scores.
//!
//! **Invariant:** the index never changes once it is built, so threads may search it together.
//!
//! `SQfp16` keeps components as `f16`: adding the widened components of a [`Vector`](dataflows::embed::Vector) and reading them
//! back loses no bit, so the components are stored only here. Unlike those of `Flat`, its scores do not depend on the number of
//! questions in a call or on neighbouring rows. Selection happens in the scan, exactly.

use super::{BLOCK_ROWS, check, no_memory, omp_set_num_threads};
use crate::index::vector::VectorError;
use crate::index::vector::scan::{Alive, Scan};
use faiss_sys as sys;
use half::f16;
use half::slice::HalfFloatSliceExt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// One index of FAISS, owned.
pub(in crate::index::vector) struct FaissScan {
    index: NonNull<sys::FaissIndex>,
    dimensions: usize,
    len: usize,
}

// SAFETY: the index is owned by this value alone and bound to no thread.
unsafe impl Send for FaissScan {}
// SAFETY: after `build` it is only read, and FAISS's searches on an unchanging CPU index may run concurrently
// (https://github.com/facebookresearch/faiss/wiki/Threads-and-asynchronous-calls).
unsafe impl Sync for FaissScan {}

impl Drop for FaissScan {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `faiss_IndexScalarQuantizer_new_with` and is freed once.
        unsafe { sys::faiss_Index_free(self.index.as_ptr()) }
    }
}

impl FaissScan {
    pub(in crate::index::vector) fn build(dimensions: usize, components: &[f16]) -> Result<Self, VectorError> {
        let len = components.len() / dimensions;
        omp_set_num_threads(1);
        let mut index = ptr::null_mut();
        // SAFETY: `index` is a valid place for the new pointer, which the guard made next owns.
        let status = unsafe {
            sys::faiss_IndexScalarQuantizer_new_with(
                &raw mut index,
                dimensions as i64,
                sys::FaissQuantizerType_QT_fp16,
                sys::FaissMetricType_METRIC_INNER_PRODUCT,
            )
        };
        check("make an index", status)?;
        let index = NonNull::new(index).ok_or_else(|| no_memory("make an index"))?;
        let scan = Self { index, dimensions, len };
        let mut widened = vec![0.0_f32; BLOCK_ROWS.min(len) * dimensions];
        for block in components.chunks(BLOCK_ROWS * dimensions) {
            let widened = &mut widened[..block.len()];
            block.convert_to_f32_slice(widened);
            let count = (block.len() / dimensions) as i64;
            // SAFETY: `widened` holds `count` rows of the index's dimension, and no other code has the index yet.
            check("add vectors", unsafe { sys::faiss_Index_add(index.as_ptr(), count, widened.as_ptr()) })?;
        }
        Ok(scan)
    }
}

impl Scan for FaissScan {
    fn best(&self, question: &[f32], alive: &Alive, count: usize) -> Result<Vec<(u32, f32)>, VectorError> {
        let count = count.min(alive.count());
        if count == 0 {
            return Ok(Vec::new());
        }
        if question.len() != self.dimensions {
            return Err(VectorError::OtherDimensions { found: question.len(), expected: self.dimensions });
        }
        omp_set_num_threads(1);
        let mut scores = vec![0.0_f32; count];
        let mut labels = vec![-1_i64; count];
        let selection = alive.bits().map(Selection::new).transpose()?;
        let parameters = selection.as_ref().map_or(ptr::null(), |selection| selection.parameters.cast_const());
        // SAFETY: the question has the index's dimension, both outputs have room for `count`, and the selection and the
        // bits that it points to live until after the call; null parameters select everything.
        let status = unsafe {
            sys::faiss_Index_search_with_params(
                self.index.as_ptr(),
                1,
                question.as_ptr(),
                count as i64,
                parameters,
                scores.as_mut_ptr(),
                labels.as_mut_ptr(),
            )
        };
        check("search", status)?;
        // Unfilled slots hold −1, and may hold 0 under other sizes: the bit decides.
        let positions = labels.into_iter().map(|label| usize::try_from(label).ok().filter(|&label| label < self.len));
        let living = positions.zip(scores).filter_map(|(position, score)| {
            position.filter(|&position| alive.contains(position)).map(|position| (position as u32, score + 0.0))
        });
        Ok(living.collect())
    }

    fn components(&self, start: usize, count: usize) -> Result<Vec<f16>, VectorError> {
        assert!(start.checked_add(count).is_some_and(|end| end <= self.len), "positions of a segment");
        omp_set_num_threads(1);
        let mut widened = vec![0.0_f32; count * self.dimensions];
        let mut components = vec![f16::ZERO; widened.len()];
        if count > 0 {
            // SAFETY: the positions exist, and `widened` has room for `count` rows.
            let status = unsafe {
                sys::faiss_Index_reconstruct_n(self.index.as_ptr(), start as i64, count as i64, widened.as_mut_ptr())
            };
            check("read vectors", status)?;
        }
        components.convert_from_f32_slice(&widened);
        Ok(components)
    }
}

/// Search parameters with a selector over borrowed bits; both are freed together, after the call they are made for.
struct Selection<'a> {
    selector: *mut sys::FaissIDSelectorBitmap,
    parameters: *mut sys::FaissSearchParameters,
    bits: PhantomData<&'a [u8]>,
}

impl<'a> Selection<'a> {
    fn new(bits: &'a [u8]) -> Result<Self, VectorError> {
        let mut selection = Self { selector: ptr::null_mut(), parameters: ptr::null_mut(), bits: PhantomData };
        // SAFETY: `bits` outlives the selector, which keeps the pointer and does not free it.
        let status = unsafe { sys::faiss_IDSelectorBitmap_new(&raw mut selection.selector, bits.len(), bits.as_ptr()) };
        check("select the living", status)?;
        // SAFETY: the selector is valid; the parameters keep the pointer and do not free it.
        let status =
            unsafe { sys::faiss_SearchParameters_new(&raw mut selection.parameters, selection.selector.cast()) };
        check("select the living", status)?;
        Ok(selection)
    }
}

impl Drop for Selection<'_> {
    fn drop(&mut self) {
        // SAFETY: each pointer is null, which deletes nothing, or ours and freed once; the parameters go first because
        // they point to the selector.
        unsafe {
            sys::faiss_SearchParameters_free(self.parameters);
            sys::faiss_IDSelectorBitmap_free(self.selector);
        }
    }
}

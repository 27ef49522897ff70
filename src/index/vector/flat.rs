//! The exact scan in plain Rust: used without FAISS, and as its reference.
//!
//! In: rows. Out: inner products with every live one.
//!
//! **Invariant:** products are added in one fixed order, in eight lanes that are summed in sequence, so a score has the
//! same bits on every machine.

use super::VectorError;
use super::scan::{Alive, Scan};
use half::f16;
use half::slice::HalfFloatSliceExt;

const LANES: usize = 8;

/// The components themselves.
pub(super) struct FlatScan {
    dimensions: usize,
    components: Box<[f16]>,
}

impl FlatScan {
    pub(super) fn build(dimensions: usize, components: &[f16]) -> Self {
        Self { dimensions, components: components.into() }
    }
}

impl Scan for FlatScan {
    fn best(&self, question: &[f32], alive: &Alive, count: usize) -> Result<Vec<(u32, f32)>, VectorError> {
        let mut row = vec![0.0; self.dimensions];
        let mut scored = Vec::with_capacity(alive.count());
        for (position, components) in self.components.chunks_exact(self.dimensions).enumerate() {
            if alive.contains(position) {
                components.convert_to_f32_slice(&mut row);
                scored.push((position as u32, inner_product(question, &row)));
            }
        }
        let better = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if count < scored.len() {
            scored.select_nth_unstable_by(count, better);
            scored.truncate(count);
        }
        scored.sort_unstable_by(better);
        Ok(scored)
    }

    fn components(&self, start: usize, count: usize) -> Result<Vec<f16>, VectorError> {
        Ok(self.components[start * self.dimensions..(start + count) * self.dimensions].to_vec())
    }
}

fn inner_product(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (blocks_a, blocks_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = blocks_a.remainder().iter().zip(blocks_b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in blocks_a.zip(blocks_b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    // Adding a positive zero turns a negative one positive, so that equal scores have equal bits.
    lanes.iter().sum::<f32>() + rest + 0.0
}

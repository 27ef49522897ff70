//! A quantised code for each row of a clustered segment: a search reads only the code of most rows.
//!
//! In: rows in lists, with the lists' centroids. Out: for a question, an estimate of each row's inner product, without reading
//! the row.
//!
//! **Invariant:** codes follow from rows and centres alone, by the same arithmetic on every machine; they are made when a file is
//! written, and stand in it. An estimate only says which rows are worth a look; scores never come from here.
//!
//! ```text
//! codes of a file   rows × the signs of P r, the lowest bit of a byte first · rows × ‖r‖² / ‖P r‖₁ as f32, little endian
//! ```
//!
//! One bit a component of *P r*, and one number (J. Gao, C. Long: "RaBitQ", SIGMOD 2024, section 3). With *r* = row − centroid
//! and *P* a rotation, let *b* be the signs (±1) of *P r*. Then ⟨q, r⟩ ≈ ⟨P q, b⟩ · ‖r‖² / ‖P r‖₁, without bias over rotations,
//! and with an error that falls with the square root of the number of bits. The inner product with the row is this plus the known
//! one with the centroid.
//!
//! *P* applies fixed pseudo-random signs and a Walsh-Hadamard transform, twice. This spreads every direction over all components
//! with dimensions · log₂ dimensions additions.

use super::clustered::ClusterRows;
use super::rows::Rows;
use super::search::Question;
use dataflows::data::SplitMix;
use half::slice::HalfFloatSliceExt;

/// The contribution of one code byte, eight signs, to the product with a question: one number for each of its values.
type Table = [f32; 256];

/// The codes of one segment's rows, list after list.
#[derive(Default)]
pub(super) struct Codes {
    /// Bytes of a code.
    width: usize,
    signs: Box<[u8]>,
    /// ‖r‖² / ‖P r‖₁ of each row.
    scales: Box<[f32]>,
    /// The first row of each list, followed by the end of the last one.
    starts: Box<[u32]>,
}

/// A question, rotated for reading codes.
pub(super) struct CodedQuestion(Box<[Table]>);

impl Codes {
    pub(super) fn new(clusters: &ClusterRows) -> Self {
        let dimensions = clusters.dimensions();
        let padded = padded(dimensions);
        let flips = flips(padded);
        let width = padded / 8;
        let (mut signs, mut scales, mut starts) =
            (Vec::with_capacity(clusters.len() * width), Vec::with_capacity(clusters.len()), vec![0]);
        let (mut centre, mut row) = (vec![0.0_f32; dimensions], vec![0.0_f32; padded]);
        for (list, rows) in clusters.lists().iter().enumerate() {
            clusters.centres()[list * dimensions..(list + 1) * dimensions].convert_to_f32_slice(&mut centre);
            for position in 0..rows.len() {
                let squares = residual(rows, position, &centre, &mut row);
                rotate(&mut row, &flips);
                let sum: f32 = row.iter().map(|component| component.abs()).sum();
                scales.push(if sum > 0.0 { squares / sum } else { 0.0 });
                signs.extend(
                    row.chunks_exact(8)
                        .map(|eight| (0..8).fold(0_u8, |byte, bit| byte | u8::from(eight[bit] >= 0.0) << bit)),
                );
            }
            starts.push(scales.len() as u32);
        }
        Self { width, signs: signs.into(), scales: scales.into(), starts: starts.into() }
    }

    /// Returns how many bytes the code of a row takes in a file.
    pub(super) fn row_bytes(dimensions: usize) -> usize {
        padded(dimensions) / 8 + 4
    }

    /// Appends the codes as they stand in a file.
    pub(super) fn push_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.signs);
        bytes.extend(self.scales.iter().flat_map(|scale| scale.to_le_bytes()));
    }

    /// Returns the codes that a file holds, which are those of as many rows as `starts` ends with.
    pub(super) fn from_bytes(bytes: &[u8], dimensions: usize, starts: Vec<u32>) -> Self {
        let (width, rows) = (padded(dimensions) / 8, starts.last().map_or(0, |&rows| rows as usize));
        let (signs, scales) = bytes.split_at(rows * width);
        let scales = scales.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        Self { width, signs: signs.into(), scales: scales.collect(), starts: starts.into() }
    }

    /// Calls `with` with each row of a list, as a position in the list, and the estimate of its inner product with the question;
    /// `nearness` is that of the list's centroid.
    pub(super) fn estimate(
        &self,
        list: u32,
        nearness: f32,
        question: &CodedQuestion,
        mut with: impl FnMut(usize, f32),
    ) {
        let (start, end) = (self.starts[list as usize] as usize, self.starts[list as usize + 1] as usize);
        let signs = self.signs[start * self.width..end * self.width].chunks_exact(self.width);
        for (position, (signs, scale)) in signs.zip(&self.scales[start..end]).enumerate() {
            with(position, nearness + scale * question.product(signs));
        }
    }
}

impl CodedQuestion {
    pub(super) fn new(question: &Question) -> Self {
        let padded = padded(question.components().len());
        let mut rotated = question.components().to_vec();
        rotated.resize(padded, 0.0);
        rotate(&mut rotated, &flips(padded));
        let table = |eight: &[f32]| -> Table {
            let mut table = [0.0; 256];
            for (byte, sum) in table.iter_mut().enumerate() {
                *sum = (0..8).map(|bit| if byte >> bit & 1 == 1 { eight[bit] } else { -eight[bit] }).sum();
            }
            table
        };
        Self(rotated.chunks_exact(8).map(table).collect())
    }

    /// Returns the product with the signs of a code, which has a multiple of four bytes: four sums, so that additions need not
    /// wait for each other.
    fn product(&self, signs: &[u8]) -> f32 {
        let mut sums = [0.0_f32; 4];
        for (tables, bytes) in self.0.chunks_exact(4).zip(signs.chunks_exact(4)) {
            for (sum, (table, &byte)) in sums.iter_mut().zip(tables.iter().zip(bytes)) {
                *sum += table[byte as usize];
            }
        }
        sums.iter().sum()
    }
}

/// The fewest bits of a code: short vectors need several bits per component.
const FEWEST_BITS: usize = 256;
/// One round would map vectors with few large components to few patterns of signs.
const ROUNDS: usize = 2;

/// Returns the number of components of the rotation: a power of two.
fn padded(dimensions: usize) -> usize {
    dimensions.next_power_of_two().max(FEWEST_BITS)
}

/// Writes row − centroid, padded with zeros, and returns the square of its length.
fn residual(rows: &Rows, position: usize, centre: &[f32], into: &mut [f32]) -> f32 {
    let (own, padding) = into.split_at_mut(centre.len());
    rows.row(position).convert_to_f32_slice(own);
    padding.fill(0.0);
    let mut squares = 0.0;
    for (component, centre) in own.iter_mut().zip(centre) {
        *component -= centre;
        squares += *component * *component;
    }
    squares
}

/// Returns ±1 for each component and round, the same ones always ([`SplitMix`]).
fn flips(padded: usize) -> Vec<f32> {
    let mut numbers = SplitMix::new(0);
    (0..ROUNDS * padded).map(|_| if numbers.next() >> 63 == 0 { 1.0 } else { -1.0 }).collect()
}

/// Rotates: signs, then an orthonormal Walsh-Hadamard transform, in each round.
fn rotate(vector: &mut [f32], flips: &[f32]) {
    let scale = 1.0 / (vector.len() as f32).sqrt();
    for flips in flips.chunks_exact(vector.len()) {
        for (component, flip) in vector.iter_mut().zip(flips) {
            *component *= flip * scale;
        }
        let mut half = 1;
        while half < vector.len() {
            for pair in vector.chunks_exact_mut(2 * half) {
                let (left, right) = pair.split_at_mut(half);
                for (left, right) in left.iter_mut().zip(right) {
                    (*left, *right) = (*left + *right, *left - *right);
                }
            }
            half *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;
    use proptest::prelude::*;

    fn product(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Pseudo-random components with some that are much larger than others, as in real vectors.
    fn components(seed: u64, dimensions: usize) -> Vec<f32> {
        let signs = flips(dimensions * (seed as usize + 1));
        let sum = |at: usize| (0..5).map(|step| signs[(at * 7 + step * 13) % signs.len()]).sum::<f32>();
        (0..dimensions).map(|at| (sum(at + dimensions * seed as usize) + 0.3) / (1.0 + at as f32 / 9.0)).collect()
    }

    proptest! {
        #![proptest_config(crate::index::cases(64))]

        #[test]
        fn a_rotation_keeps_inner_products(
            pairs in prop::collection::vec((-4.0_f32..4.0, -4.0_f32..4.0), 1..70),
        ) {
            let (mut a, mut b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let padded = padded(a.len());
            a.resize(padded, 0.0);
            b.resize(padded, 0.0);
            let before = product(&a, &b);
            rotate(&mut a, &flips(padded));
            rotate(&mut b, &flips(padded));
            prop_assert!((product(&a, &b) - before).abs() < 1e-2, "{before}");
        }
    }

    #[test]
    fn estimates_are_near_the_inner_products_and_a_row_at_its_centre_is_known_exactly() {
        for dimensions in [16, 100, 256, 384] {
            let mut rows = Rows::new(dimensions);
            let centre: Vec<f16> = components(0, dimensions).into_iter().map(f16::from_f32).collect();
            rows.push_row(0, &centre);
            for seed in 1..200 {
                let row: Vec<f16> = components(seed, dimensions).into_iter().map(f16::from_f32).collect();
                rows.push_row(seed as u32, &row);
            }
            let clusters = ClusterRows::deal_out(&rows, &centre, &vec![0; rows.len()]).unwrap();
            let codes = Codes::new(&clusters);
            let question = Question::new(&components(1000, dimensions), dimensions).unwrap();
            let widened = |components: &[f16]| -> Vec<f32> { components.iter().map(|c| c.to_f32()).collect() };
            let nearness = product(question.components(), &widened(&centre));
            let mut estimates = Vec::new();
            codes.estimate(0, nearness, &CodedQuestion::new(&question), |at, estimate| estimates.push((at, estimate)));
            assert_eq!(estimates.iter().map(|(at, _)| *at).collect::<Vec<_>>(), (0..rows.len()).collect::<Vec<_>>());
            assert_eq!(estimates[0].1.to_bits(), nearness.to_bits());
            // Errors relative to the expected one: 0.75 ‖r‖ / √bits for a question of length 1.
            let errors = estimates.iter().skip(1).map(|&(at, estimate)| {
                let row = widened(rows.row(at));
                let residual: Vec<f32> = row.iter().zip(widened(&centre)).map(|(row, centre)| row - centre).collect();
                let expected = 0.75 * (product(&residual, &residual) / padded(dimensions) as f32).sqrt();
                (estimate - product(question.components(), &row)) / expected
            });
            let squares: f32 = errors.map(|error| error * error).sum();
            let error = (squares / (rows.len() - 1) as f32).sqrt();
            assert!(error < 1.3, "{error} times what is expected, {dimensions} dimensions");
        }
    }

    #[test]
    fn codes_follow_from_rows_and_centres_alone() {
        let mut rows = Rows::new(256);
        for seed in 0..3 {
            let row: Vec<f16> = components(seed, 256).into_iter().map(f16::from_f32).collect();
            rows.push_row(seed as u32, &row);
        }
        let centre = vec![f16::from_f32(0.25); 256];
        let codes = Codes::new(&ClusterRows::deal_out(&rows, &centre, &[0, 0, 0]).unwrap());
        // They must be the same on another machine or build.
        assert_eq!(blake3::hash(&codes.signs).to_hex()[..16], *"d874663d9a5a4b78");
    }
}

//! Rows on their way into a segment or a file: ordinals, and their vectors' components one after the other.
//!
//! In: (ordinal, vector) pairs, or rows of other segments. Out: one sorted block.
//!
//! **Invariant:** ordinals strictly ascend, and every row has the same number of components, all finite.

use dataflows::embed::Vector;
use half::f16;
use roaring::RoaringBitmap;
use snapshots::Ordinal;

/// The bits that are all set in an infinite or NaN `f16` (IEEE 754, binary16).
const EXPONENT: u16 = 0x7c00;

/// Components per check.
const CHECKED: usize = 1024;

/// Sorted rows.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Rows {
    dimensions: usize,
    ordinals: Vec<u32>,
    components: Vec<f16>,
}

impl Rows {
    /// Starts without rows.
    pub(super) const fn new(dimensions: usize) -> Self {
        Self { dimensions, ordinals: Vec::new(), components: Vec::new() }
    }

    /// Starts without rows, with capacity.
    pub(super) fn with_capacity(dimensions: usize, rows: usize) -> Self {
        Self { dimensions, ordinals: Vec::with_capacity(rows), components: Vec::with_capacity(rows * dimensions) }
    }

    /// Takes the rows of a file or a segment, or returns why they are invalid.
    pub(super) fn from_parts(
        dimensions: usize,
        ordinals: Vec<u32>,
        components: Vec<f16>,
    ) -> Result<Self, &'static str> {
        if ordinals.len().checked_mul(dimensions) != Some(components.len()) {
            return Err("the number of components does not fit the number of rows");
        }
        if !ordinals.is_sorted_by(|a, b| a < b) {
            return Err("its ordinals do not ascend");
        }
        if !are_finite(&components) {
            return Err("a component is not finite");
        }
        Ok(Self { dimensions, ordinals, components })
    }

    /// Appends a row; its ordinal is larger than all before.
    pub(super) fn push(&mut self, ordinal: Ordinal, vector: &Vector) {
        self.push_row(ordinal.get(), vector.components());
    }

    /// Appends a row of checked components; its ordinal is larger than all before.
    pub(super) fn push_row(&mut self, ordinal: u32, components: &[f16]) {
        debug_assert!(components.len() == self.dimensions);
        debug_assert!(self.ordinals.last().is_none_or(|&last| last < ordinal));
        self.ordinals.push(ordinal);
        self.components.extend_from_slice(components);
    }

    /// Returns all rows of `parts` in one block; no ordinal is in two parts.
    pub(super) fn merge(dimensions: usize, parts: &[Self]) -> Self {
        let mut order: Vec<(u32, usize, usize)> = Vec::with_capacity(parts.iter().map(Self::len).sum());
        for (part, rows) in parts.iter().enumerate() {
            order.extend(rows.ordinals.iter().enumerate().map(|(position, &ordinal)| (ordinal, part, position)));
        }
        order.sort_unstable();
        let mut components = Vec::with_capacity(order.len() * dimensions);
        for &(_, part, position) in &order {
            components.extend_from_slice(parts[part].row(position));
        }
        Self { dimensions, ordinals: order.into_iter().map(|(ordinal, ..)| ordinal).collect(), components }
    }

    /// Removes the rows that `held` has, and adds the rest to it.
    pub(super) fn admit(self, held: &mut RoaringBitmap) -> Self {
        let own = self.bitmap();
        let rows = if held.is_disjoint(&own) { self } else { self.split(held).1 };
        *held |= own;
        rows
    }

    /// Returns the rows whose ordinals are in `ordinals`, and the rest.
    pub(super) fn split(&self, ordinals: &RoaringBitmap) -> (Self, Self) {
        let mut parts = (Self::new(self.dimensions), Self::new(self.dimensions));
        for (position, &ordinal) in self.ordinals.iter().enumerate() {
            let part = if ordinals.contains(ordinal) { &mut parts.0 } else { &mut parts.1 };
            part.push_row(ordinal, self.row(position));
        }
        parts
    }

    /// Removes the rows of these ordinals.
    pub(super) fn without(self, ordinals: &RoaringBitmap) -> Self {
        self.admit(&mut ordinals.clone())
    }

    pub(super) const fn len(&self) -> usize {
        self.ordinals.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.ordinals.is_empty()
    }

    pub(super) const fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(super) fn ordinals(&self) -> &[u32] {
        &self.ordinals
    }

    pub(super) fn components(&self) -> &[f16] {
        &self.components
    }

    pub(super) fn row(&self, position: usize) -> &[f16] {
        &self.components[position * self.dimensions..(position + 1) * self.dimensions]
    }

    pub(super) fn bitmap(&self) -> RoaringBitmap {
        RoaringBitmap::from_sorted_iter(self.ordinals.iter().copied()).expect("ordinals of rows ascend")
    }
}

/// Returns whether all components are numbers.
pub(super) fn are_finite(components: &[f16]) -> bool {
    // Block by block, without a way out in the middle: the processor looks at many components at a time.
    let is_odd = |odd: bool, component: &f16| odd | (component.to_bits() & EXPONENT == EXPONENT);
    !components.chunks(CHECKED).any(|block| block.iter().fold(false, is_odd))
}

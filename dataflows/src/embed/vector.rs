//! One embedding: a direction, as sixteen-bit components.
//!
//! In: a model's `f32` output, or the stored components. Out: the components for memo, index and hashes.
//!
//! **Invariant:** every component is finite, and the length is 1 up to the rounding to `f16`.
//!
//! Length and quotient are computed in `f64`, one component after the other, so the bits are the same on every machine.

use super::EmbedError;
use half::f16;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Allowed deviation of the length of rounded components from 1: half a unit in the last place of `f16` (2⁻¹¹), with room for
/// vectors with many subnormal components.
const LENGTH_TOLERANCE: f64 = 1.0 / 256.0;

/// A unit vector; its rounded components are the vector.
///
/// ```
/// use dataflows::embed::Vector;
/// let vector = Vector::new(&[3.0, 4.0]).unwrap();
/// assert_eq!(vector.to_f32(), [0.60009766, 0.7998047]);
/// assert!(Vector::new(&[0.0, 0.0]).is_err());
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u16>", into = "Vec<u16>")]
pub struct Vector(Box<[f16]>);

impl Vector {
    /// Returns `components` scaled to length 1 and rounded.
    ///
    /// # Errors
    /// If a component is not finite, or all are zero.
    pub fn new(components: &[f32]) -> Result<Self, EmbedError> {
        let length = length(components.iter().map(|&component| f64::from(component)))?;
        let unit = components.iter().map(|&component| f16::from_f32((f64::from(component) / length) as f32));
        Ok(Self(unit.collect()))
    }

    /// Wraps the components of an earlier `Vector`.
    ///
    /// # Errors
    /// If a component is not finite, or the length is not 1.
    pub fn from_components(components: impl Into<Box<[f16]>>) -> Result<Self, EmbedError> {
        let components = components.into();
        let length = length(components.iter().map(|component| component.to_f64()))?;
        if (length - 1.0).abs() > LENGTH_TOLERANCE {
            return Err(EmbedError::NotUnit { length });
        }
        Ok(Self(components))
    }

    /// Returns the components.
    #[must_use]
    pub fn components(&self) -> &[f16] {
        &self.0
    }

    /// Returns the components, widened without loss.
    #[must_use]
    pub fn to_f32(&self) -> Vec<f32> {
        self.0.iter().map(|component| component.to_f32()).collect()
    }

    /// Returns the number of components.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }
}

/// Returns the Euclidean length, or the reason why there is no direction.
fn length(components: impl ExactSizeIterator<Item = f64>) -> Result<f64, EmbedError> {
    let dimensions = components.len();
    let mut squares = 0.0;
    for (position, component) in components.enumerate() {
        if !component.is_finite() {
            return Err(EmbedError::NotFinite { position });
        }
        squares += component * component;
    }
    if squares == 0.0 { Err(EmbedError::NoDirection { dimensions }) } else { Ok(squares.sqrt()) }
}

impl From<Vector> for Vec<u16> {
    fn from(vector: Vector) -> Self {
        vector.0.iter().map(|component| component.to_bits()).collect()
    }
}

impl TryFrom<Vec<u16>> for Vector {
    type Error = EmbedError;

    fn try_from(bits: Vec<u16>) -> Result<Self, EmbedError> {
        Self::from_components(bits.into_iter().map(f16::from_bits).collect::<Box<[f16]>>())
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vector({} components)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_has_no_direction() {
        assert!(matches!(Vector::new(&[]), Err(EmbedError::NoDirection { dimensions: 0 })));
        assert!(matches!(Vector::new(&[0.0, -0.0]), Err(EmbedError::NoDirection { dimensions: 2 })));
        assert!(matches!(Vector::new(&[1.0, f32::NAN]), Err(EmbedError::NotFinite { position: 1 })));
        assert!(matches!(Vector::new(&[f32::INFINITY]), Err(EmbedError::NotFinite { position: 0 })));
        assert!(matches!(Vector::from_components(vec![f16::ONE, f16::ONE]), Err(EmbedError::NotUnit { .. })));
        assert!(matches!(Vector::try_from(vec![0x7c00]), Err(EmbedError::NotFinite { position: 0 })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_bits_come_back_from_storage_whatever_the_scale(
            components in prop::collection::vec(-1.0_f32..1.0, 1..300),
            scale in prop::sample::select(vec![1e-30_f32, 1.0, 1e30]),
        ) {
            let scaled: Vec<f32> = components.iter().map(|component| component * scale).collect();
            prop_assume!(scaled.iter().any(|&component| component != 0.0));
            let vector = Vector::new(&scaled).unwrap();
            prop_assert_eq!(Vector::try_from(Vec::<u16>::from(vector.clone())).unwrap(), vector);
        }
    }
}

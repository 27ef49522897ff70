//! A deterministic test model: the bag of a text's words, where each word's hash gives a direction.
//!
//! In: texts. Out: vectors; texts that share words are near. It serves tests and dry runs.
//!
//! **Invariant:** deterministic on every machine, in any batch; a text without a letter or digit has no vector.

use super::{EmbedError, Embedder, Vector};
use crate::data::{Hasher, ModelId, SplitMix};

/// The deterministic embedder of tests: hashed words, no files, no state.
///
/// ```
/// use dataflows::embed::{Embedder, HashEmbedder};
/// let vectors = HashEmbedder::new(32).embed_documents(&["spawn camera", "…"]).unwrap();
/// assert!(vectors[0].is_some() && vectors[1].is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HashEmbedder {
    dimensions: usize,
}

impl HashEmbedder {
    /// Makes vectors of `dimensions` components.
    #[must_use]
    pub const fn new(dimensions: usize) -> Self {
        Self { dimensions }
    }

    /// Adds up the directions of the words of `text`.
    fn sum(&self, text: &str) -> Option<Vec<f32>> {
        let mut sum = vec![0.0_f32; self.dimensions];
        let mut any = false;
        for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
            any = true;
            let [seed, _] = Hasher::new("hash-embedder").part(word.to_lowercase().as_bytes()).finish();
            let mut numbers = SplitMix::new(seed);
            for component in &mut sum {
                *component += (numbers.next() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0;
            }
        }
        (any && sum.iter().any(|&component| component != 0.0)).then_some(sum)
    }
}

impl Embedder for HashEmbedder {
    fn fingerprint(&self) -> ModelId {
        let hasher = Hasher::new("embedder").part(b"hash-embedder 1").part(&(self.dimensions as u64).to_le_bytes());
        ModelId::from_words(hasher.finish())
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn name(&self) -> &str {
        "hash"
    }

    fn embed_documents(&self, texts: &[&str]) -> Result<Vec<Option<Vector>>, EmbedError> {
        texts.iter().map(|text| self.sum(text).map(|sum| Vector::new(&sum)).transpose()).collect()
    }

    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        Ok(self.sum(text).map(|sum| {
            let length = sum.iter().map(|component| component * component).sum::<f32>().sqrt();
            sum.iter().map(|component| component / length).collect()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_words_are_near_and_batches_do_not_matter() {
        let model = HashEmbedder::new(64);
        let texts = ["spawn a camera", "Spawn, a camera!", "despawn every window", ""];
        let together = model.embed_documents(&texts).unwrap();
        for (text, vector) in texts.iter().zip(&together) {
            assert_eq!(&model.embed_documents(&[text]).unwrap()[0], vector);
        }
        assert_eq!(together[0], together[1]);
        assert_eq!(together[3], None);
        let query = model.embed_query("camera").unwrap().unwrap();
        let score = |row: &Option<Vector>| -> f32 {
            row.as_ref().unwrap().to_f32().iter().zip(&query).map(|(a, b)| a * b).sum()
        };
        assert!(score(&together[0]) > score(&together[2]) + 0.2);
    }
}
